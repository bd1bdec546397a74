"""A cell of the drifter shows what its probabilities say: regression rates, self-correction, Pass@1 and MST."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from codechat.run.run import run
from codechat.run.settings.compose import compose

pytestmark = pytest.mark.long

RATES = {"cosmetic": 0.1, "structural": 0.25, "semantic": 0.5}
SELF_CORRECTION = 0.2
SEEN = 0.985  # of the defects, by the starter tests
DEVIATIONS = 3.5


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("drifter")
    rates = [f"model.regression.{scope}={rate}" for scope, rate in RATES.items()]
    overrides = ["model=drifter", "judge=rules", "tracking=none", "seed=3", f"runs_dir={folder}", *rates]
    outcome = run(compose([*overrides, f"model.self_correction={SELF_CORRECTION}"]))
    assert outcome.status == 0
    assert outcome.metrics is not None
    return outcome.metrics, sessions(outcome.folder)


def sessions(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "sessions.jsonl").read_text(encoding="utf-8").splitlines()]


def follow_ups(records: list[dict[str, Any]], before: bool) -> list[tuple[str, bool]]:
    """Scope and verdict of every answered follow-up turn whose code before passed, or failed."""
    found = []
    for record in records:
        for earlier, turn in zip(record["turns"], record["turns"][1:], strict=False):
            if not turn["skipped"] and earlier["passed"] is before:
                found.append((turn["instruction"]["scope"], turn["passed"]))
    return found


def within(observed: float, expected: float, variance: float) -> bool:
    return abs(observed - expected) <= DEVIATIONS * math.sqrt(variance)


def test_regression_per_scope(cell: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    metrics, records = cell
    for scope, rate in RATES.items():
        number = sum(one == scope for one, _ in follow_ups(records, before=True))
        expected = rate * SEEN
        assert number > 50
        assert within(metrics["regression"]["by_scope"][scope], expected, expected * (1 - expected) / number), scope


def test_self_correction(cell: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    metrics, records = cell
    number = len(follow_ups(records, before=False))
    variance = SELF_CORRECTION * (1 - SELF_CORRECTION) / number
    assert within(metrics["self_correction"]["overall"], SELF_CORRECTION, variance)


def expected_states(record: dict[str, Any]) -> tuple[list[float], list[float]]:
    """The probabilities, per turn, that a session's code passes, and that it has passed all along."""
    passing, sustained = [1.0], [1.0]
    for turn in record["turns"][1:]:
        if turn["skipped"]:
            passing.append(passing[-1])
            sustained.append(sustained[-1])
            continue
        breaks = RATES[turn["instruction"]["scope"]] * SEEN
        passing.append(passing[-1] * (1 - breaks) + (1 - passing[-1]) * SELF_CORRECTION)
        sustained.append(sustained[-1] * (1 - breaks))
    return passing, sustained


def test_pass_at_1_curve(cell: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    metrics, records = cell
    states = [expected_states(record)[0] for record in records]
    for turn, observed in enumerate(metrics["pass_at_1"]):
        chances = [state[turn] for state in states]
        variance = sum(chance * (1 - chance) for chance in chances) / len(chances) ** 2
        assert within(observed, sum(chances) / len(chances), variance), f"turn {turn}"


def test_mean_sustainable_turns(cell: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    metrics, records = cell
    expected, variance = 0.0, 0.0
    for record in records:
        alive = expected_states(record)[1]
        mean = sum(alive)
        # E[X²] of a length X with P(X > t) = alive[t] is the sum of (2t + 1) · P(X > t).
        square = sum((2 * turn + 1) * chance for turn, chance in enumerate(alive))
        expected, variance = expected + mean, variance + square - mean**2
    assert within(metrics["mst"], expected / len(records), variance / len(records) ** 2)
