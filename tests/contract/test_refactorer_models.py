"""The baselines that write code: what they answer, and how often the drifter breaks it and starts over."""

import math
from typing import Any

import pytest

from codechat.base.domain import Instruction, Message
from codechat.models import MODELS, BaselineView, Model, Request
from codechat.sandbox.languages import extract
from codechat.studies.refine.baselines.refactoring import refactor
from support.benches import task_of

pytestmark = pytest.mark.long

REFERENCE = "def total(values):\n    found = 0\n    for value in values:\n        found += value\n    return found\n"
TASK = task_of("T/1", "def total(values):", REFERENCE, prompt="Add up.")
DRAWS = 2000


def instruction(scope: Any, change: Any = "add") -> Instruction:
    return Instruction("cosmetic-add-comment", "Add a comment.", scope, change, {"pattern": "comment"})


def model(kind: str, **options: Any) -> Model:
    config = MODELS.validate({"kind": kind, **options})
    return MODELS.build(config)


def request(seed: int, asked: Instruction | None, code: str | None, turn: int = 1) -> Request:
    return Request((Message("user", "…"),), "T/1", turn, BaselineView(TASK, asked, code, seed))


async def reply(
    made: Model, asked: Instruction | None, code: str | None = REFERENCE, seed: int = 0, turn: int = 1
) -> str:
    found = extract((await made.complete(request(seed, asked, code, turn))).text, TASK.target)
    assert found.code is not None
    return found.code.strip()


@pytest.mark.parametrize("kind", ["refactorer", "drifter"])
async def test_the_first_turn_is_the_reference(kind: str) -> None:
    assert await reply(model(kind), None, None) == REFERENCE.strip()


async def test_the_refactorer_does_what_it_is_asked_or_nothing() -> None:
    asked = instruction("cosmetic")
    made = await reply(model("refactorer"), asked)
    assert made == refactor(REFERENCE, asked, "total").code.strip() != REFERENCE.strip()
    unknown = Instruction("mine", "Sing.", "cosmetic", "add")
    assert await reply(model("refactorer"), unknown) == REFERENCE.strip()


async def test_a_baseline_without_its_view_is_a_bug() -> None:
    with pytest.raises(RuntimeError, match="view"):
        await model("drifter").complete(Request((), "T/1", 0, None))


def near(count: int, probability: float) -> bool:
    """Within four standard deviations of a binomial count."""
    return abs(count - DRAWS * probability) <= 4 * math.sqrt(DRAWS * probability * (1 - probability)) + 1e-9


@pytest.mark.parametrize(
    ("scope", "change", "expected"),
    [
        ("cosmetic", "add", 0.08),
        ("structural", "add", 0.13),
        ("semantic", "add", 0.22),
        ("semantic", "remove", 0.44),
        ("structural", "modify", 0.0),
    ],
)
async def test_defects_come_at_the_configured_rate(scope: str, change: str, expected: float) -> None:
    made = model("drifter", change_factor={"remove": 2, "modify": 0})
    asked = instruction(scope, change)
    clean = refactor(REFERENCE, asked, "total").code.strip()
    broken = sum([await reply(made, asked, seed=seed) != clean for seed in range(DRAWS)])
    assert near(broken, expected)


async def test_broken_code_stays_broken_until_the_tool_starts_over() -> None:
    made = model("drifter", self_correction=0.3)
    asked = instruction("cosmetic")
    broken = REFERENCE.replace("found += value", "found -= value")
    clean = refactor(REFERENCE, asked, "total").code.strip()
    replies = [await reply(made, asked, broken, seed=seed) for seed in range(DRAWS)]
    assert near(sum(one == clean for one in replies), 0.3)
    kept = refactor(broken, asked, "total").code.strip()
    assert near(sum(one == kept for one in replies), 1 - 0.3 - 0.08)


async def test_turns_and_seeds_are_drawn_apart_and_again_alike() -> None:
    made = model("drifter", regression={"cosmetic": 0.5})
    asked = instruction("cosmetic")
    by_turn = [await reply(made, asked, turn=turn) for turn in range(1, 40)]
    assert by_turn == [await reply(made, asked, turn=turn) for turn in range(1, 40)]
    assert by_turn != [await reply(made, asked, turn=turn, seed=1) for turn in range(1, 40)]
    assert len(set(by_turn)) > 3
