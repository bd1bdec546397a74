"""The sweep of several instructions a turn with the baselines, whose truth is known; figures by this file's own sums."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from codechat.cli.app import main
from codechat.run.run import run
from codechat.run.settings.compose import compose

pytestmark = pytest.mark.long

SWEEP = Path(__file__).parents[2] / "sweeps" / "composite.yaml"
NUMBERS = (1, 2, 3)
RATES = {"cosmetic": 0.1, "structural": 0.2, "semantic": 0.4}
MENDS = 0.3
SEEN = 0.985  # of the drifter's defects, by the starter tests
ORDER = ("cosmetic", "structural", "semantic")
Cell = tuple[dict[str, Any], list[dict[str, Any]]]


def cell(folder: Path, model: str, number: int, *more: str) -> Cell:
    few = ["judge=rules", "tracking=none", "seed=5", "hardware.workers=2", "sandbox.allow_weak=true"]
    composite = [] if number == 0 else [f"agenda.composite={number}"]
    outcome = run(compose([f"model={model}", *composite, *few, f"runs_dir={folder}", *more]))
    assert outcome.status == 0 and outcome.metrics is not None
    lines = (outcome.folder / "sessions.jsonl").read_text(encoding="utf-8").splitlines()
    return json.loads((outcome.folder / "metrics.json").read_text()), [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def echoes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Cell]:
    folder = tmp_path_factory.mktemp("echo")
    return {number: cell(folder, "echo", number, "dataset.limit=12", "agenda.turns=7") for number in (0, *NUMBERS)}


@pytest.fixture(scope="module")
def drifts(tmp_path_factory: pytest.TempPathFactory) -> Cell:
    rates = [f"model.regression.{scope}={rate}" for scope, rate in RATES.items()]
    return cell(tmp_path_factory.mktemp("drifter"), "drifter", 2, f"model.self_correction={MENDS}", *rates)


def steps(sessions: Iterable[dict[str, Any]]) -> Iterable[tuple[dict[str, Any], dict[str, Any]]]:
    """Answered follow-up turns, each after the turn before."""
    for session in sessions:
        yield from ((before, turn) for before, turn in pairwise(session["turns"]) if not turn["skipped"])


def ids(turn: dict[str, Any]) -> list[str]:
    return [asked["id"] for asked in turn.get("asked", [])]


def test_the_sweep_is_of_one_two_and_three() -> None:
    assert yaml.safe_load(SWEEP.read_text())["grids"] == [{"agenda": "balanced", "agenda.composite": [*NUMBERS]}]


def test_one_instruction_is_the_cell_of_ever(echoes: dict[int, Cell]) -> None:
    plain, one = echoes[0], echoes[1]
    assert plain[1] == one[1] and "composite" not in plain[0].keys() | one[0].keys()
    assert plain[1][0]["cell_id"] != echoes[2][1][0]["cell_id"]


def test_more_instructions_are_asked_besides_the_same_ones(echoes: dict[int, Cell]) -> None:
    """Up to the first turn where the run with fewer asks what the other one had asked before."""
    alike = 0
    for few, many in ((1, 2), (2, 3)):
        for one, other in zip(echoes[few][1], echoes[many][1], strict=True):
            assert one["agenda"] == other["agenda"]
            given = set[str]()
            for mine, its in pairwise_turns(one, other):
                if set(ids(mine)) & given:
                    break
                shared = ids(its)[: len(ids(mine))]
                if set(ids(mine)) & set(ids(its)[few:]):
                    break
                assert shared == ids(mine)
                given |= set(ids(its)) - set(ids(mine))
                alike += len(shared)
    assert alike > 120


def pairwise_turns(one: dict[str, Any], other: dict[str, Any]) -> Iterable[tuple[dict[str, Any], dict[str, Any]]]:
    return zip(one["turns"][1:], other["turns"][1:], strict=True)


def test_no_instruction_is_given_twice_and_each_has_its_type(echoes: dict[int, Cell]) -> None:
    sizes = set()
    for session in echoes[3][1]:
        asked = [each for turn in session["turns"] for each in turn.get("asked", [])]
        assert len({each["id"] for each in asked}) == len(asked)
        for kind, turn in zip(session["agenda"], session["turns"][1:], strict=True):
            sizes.add(len(turn["asked"]))
            assert turn["asked"][0]["scope"] == kind
            assert ("instruction" in turn and turn["instruction"] is not None) is (len(turn["asked"]) == 1)
    assert 3 in sizes


def test_of_the_same_types_all_have_the_scope_of_the_turn(tmp_path: Path) -> None:
    _, sessions = cell(tmp_path, "echo", 2, "dataset.limit=2", "agenda.turns=4", "agenda.composite_types=same")
    for session in sessions:
        for kind, turn in zip(session["agenda"], session["turns"][1:], strict=True):
            assert {each["scope"] for each in turn["asked"]} == {kind}


def test_the_echo_follows_nothing_and_breaks_nothing(echoes: dict[int, Cell]) -> None:
    found = echoes[3][0]["composite"]
    assert {
        figure["hits"] for name in ("adherence", "all_followed", "regression") for figure in found[name].values()
    } == {0}
    assert set(echoes[3][0]["pass_at_1"]) == {1.0}


def test_the_refactorer_breaks_nothing_and_follows_its_share(tmp_path: Path) -> None:
    metrics, sessions = cell(tmp_path, "refactorer", 2, "dataset.limit=12", "agenda.turns=6")
    assert set(metrics["pass_at_1"]) == {1.0}
    judged = [each["adherence"]["verdict"] for _, turn in steps(sessions) for each in turn["asked"]]
    decided = [verdict for verdict in judged if verdict != "undecided"]
    figure = metrics["composite"]["adherence"]["2"]
    assert 0.1 < figure["value"] < 0.9
    assert sum(each["hits"] for each in metrics["composite"]["adherence"].values()) == decided.count("adhered")
    assert sum(each["n"] for each in metrics["composite"]["adherence"].values()) == len(decided)


def test_the_drifter_breaks_as_often_as_its_two_draws_say(drifts: Cell) -> None:
    expected, variance, broke = 0.0, 0.0, 0
    for before, turn in steps(drifts[1]):
        if before["passed"]:
            chance = 1 - math.prod(1 - RATES[each["scope"]] * SEEN for each in turn["asked"])
            expected, variance, broke = (
                expected + chance,
                variance + chance * (1 - chance),
                broke + (not turn["passed"]),
            )
    assert variance > 20 and abs(broke - expected) < 3.5 * math.sqrt(variance)


def test_every_figure_follows_from_the_sessions(drifts: Cell) -> None:
    metrics, sessions = drifts
    counts: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    turns: dict[str, int] = defaultdict(int)
    by_scope: dict[str, list[int]] = defaultdict(lambda: [0, 0])

    def count(name: str, key: str, hit: bool) -> None:
        counts[name][key][0] += hit
        counts[name][key][1] += 1

    for before, turn in steps(sessions):
        number, asked = str(len(turn["asked"])), turn["asked"]
        turns[number] += 1
        verdicts = [each["adherence"]["verdict"] for each in asked]
        for verdict in verdicts:
            if verdict != "undecided":
                count("adherence", number, verdict == "adhered")
        if "violated" in verdicts or "undecided" not in verdicts:
            count("all_followed", number, set(verdicts) == {"adhered"})
        if before["passed"]:
            count("regression", number, not turn["passed"])
            scopes = sorted([each["scope"] for each in asked], key=ORDER.index)
            for pair in set(combinations(scopes, 2)):
                count("regression_by_pair", "+".join(pair), not turn["passed"])
            if len(set(scopes)) == 1:
                by_scope[scopes[0]][0] += not turn["passed"]
                by_scope[scopes[0]][1] += 1
    found = metrics["composite"]
    assert found["turns"] == turns
    for name, own in counts.items():
        assert {key: [figure["hits"], figure["n"]] for key, figure in found[name].items()} == own, name
        for figure in found[name].values():
            assert figure["value"] == pytest.approx(figure["hits"] / figure["n"])
            low, high = figure["ci"]
            assert 0 <= low <= figure["value"] <= high <= 1
    rates = {scope: hits / total for scope, (hits, total) in by_scope.items()}
    assert metrics["regression"]["by_scope"] == pytest.approx(rates), "turns whose instructions share the scope"
    assert metrics["regression"]["overall"] == pytest.approx(
        sum(hits for hits, _ in counts["regression"].values())
        / sum(total for _, total in counts["regression"].values())
    )
    conflicts = [c["conflict"]["by"] for s in sessions for t in s["turns"] for c in t["candidates"] if "conflict" in c]
    assert found["conflicts"] == ({"rules": len(conflicts)} if conflicts else {})


@pytest.mark.usefixtures("rendered")
def test_the_report_has_a_chapter_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in NUMBERS:
        cell(tmp_path / "runs", "drifter", number, "dataset.limit=3", "agenda.turns=4")
    assert main(["report", f"runs={tmp_path / 'runs'}", f"out={tmp_path / 'report'}"]) == 0
    capsys.readouterr()
    assert (tmp_path / "report" / "figures" / "composite.svg").exists()
    table = (tmp_path / "report" / "tables" / "composite.csv").read_text()
    assert [line.split(",")[1] for line in table.splitlines()[1:]][:3] == ["composite=1", "composite=2", "composite=3"]
    assert len((tmp_path / "report" / "tables" / "composite_pairs.csv").read_text().splitlines()) > 2
