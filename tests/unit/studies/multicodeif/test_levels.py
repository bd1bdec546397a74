"""Levels: what each level's request holds, and that all constraints so far are checked."""

import asyncio
from pathlib import Path
from typing import Any

from codechat.base.domain import Target
from codechat.base.errors import ContextOverflow
from codechat.run.settings.compose import compose
from codechat.studies.multicodeif.metrics import ConstrainedTurn
from codechat.studies.multicodeif.protocol_levels import Levels, LevelsConfig
from codechat.studies.multicodeif.rows import ConstrainedTask
from support.benches import converse, fenced
from support.multicodeif import SNAKE, SPACES, level

TWO = fenced("def f():\n  good_name = 1\n  return good_name\n")
TASK = ConstrainedTask(
    "chain/0",
    "Name well.",
    Target("python"),
    levels=(level("L1", "Name well.", SNAKE), level("L2", "Name well, indent well.", SNAKE, SPACES)),
)


def levels(**options: Any) -> Levels:
    words = [f"protocol.{name}={value}" for name, value in options.items()]
    config = compose(["protocol=levels", *words]).config
    return Levels(LevelsConfig.model_validate(config.protocol.model_dump()), config.judge)


def test_every_level_is_asked_by_itself(tmp_path: Path) -> None:
    kit, model, _ = asyncio.run(converse(levels(), TASK, tmp_path, [TWO, TWO]))
    assert [[each.content for each in request.messages] for request in model.requests] == [
        ["Name well."],
        ["Name well, indent well."],
    ]
    found = [ConstrainedTurn.of(turn) for turn in kit.log.turns]
    assert [[each.met for each in turn.constraints] for turn in found] == [[True], [True, False]]
    assert [(turn.level, turn.round) for turn in found] == [("L1", 0), ("L2", 0)]
    assert [turn.passed for turn in kit.log.turns] == [True, False]


def test_or_in_one_dialogue(tmp_path: Path) -> None:
    thinking = f"<think>hm</think>{TWO}"
    _, model, _ = asyncio.run(converse(levels(context="full"), TASK, tmp_path, [thinking, TWO]))
    assert [each.content for each in model.requests[1].messages] == ["Name well.", TWO, "Name well, indent well."]


def test_after_an_overflow_no_later_level_is_met(tmp_path: Path) -> None:
    kit, _, _ = asyncio.run(converse(levels(), TASK, tmp_path, lambda _: ContextOverflow("too long")))
    assert [(turn.turn, turn.outcome, turn.passed) for turn in kit.log.turns] == [
        (0, "no_code", False),
        (1, "no_code", False),
    ]
    assert kit.log.ended == "context_overflow"
    assert [bool(turn.request) for turn in kit.log.turns] == [True, False]
