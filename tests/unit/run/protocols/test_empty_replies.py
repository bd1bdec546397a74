"""Replies without a text in dialogues: no protocol sends an empty message, or two of one role in a row."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Message, Target
from codechat.base.records import SessionRecord
from codechat.datasets.tasks import Task
from codechat.judging import JudgeConfig
from codechat.run.protocols import DialogueProtocol, Parts
from codechat.run.settings.compose import compose
from codechat.sandbox.suites.assertions import Assertions
from codechat.studies.codeif.protocol_dynamic import dynamic
from codechat.studies.codeif.protocol_static import static
from codechat.studies.multicodeif.protocol_levels import Levels
from codechat.studies.multicodeif.protocol_repair import Repair
from codechat.studies.multicodeif.rows import ConstrainedTask
from codechat.studies.sreval.protocol import Stepwise
from codechat.studies.sreval.rows import Step, StepTask
from support.benches import asking, conversation_task, converse
from support.multicodeif import SNAKE, constrained_task, level

CONVERSATION = conversation_task(asking("A"), asking("B"))
CHAIN = ConstrainedTask(
    "chain/0", "Name.", Target("python"), levels=tuple(level(f"L{n}", "Name.", SNAKE) for n in (1, 2, 3))
)
STEPS = StepTask("t", "Add.", steps=tuple(Step(f"Add {n}.", Assertions(("assert f()",)), None) for n in range(3)))
EMPTY = ["", " \n", "<think>so", "[THINK]```python\nf = 1\n```", "<|channel|>analysis<|message|>We", ""]


def made(name: str) -> tuple[DialogueProtocol, Task]:
    kind, *words = name.split()
    config: Any = compose([f"protocol={kind}", *(f"protocol.{word}" for word in words)]).config
    protocol, parts = config.protocol, Parts(JudgeConfig(kind="none"), {})
    match kind:
        case "static":
            return static(protocol, parts), CONVERSATION
        case "dynamic":
            return dynamic(protocol, parts), CONVERSATION
        case "stepwise":
            return Stepwise(protocol), STEPS
        case "repair":
            return Repair(protocol, config.judge), constrained_task(SNAKE)
        case _:
            return Levels(protocol, config.judge), CHAIN


def refused(messages: tuple[Message, ...]) -> bool:
    """Whether strict endpoints refuse a dialogue: an empty message, or two of one role in a row."""
    roles = [each.role for each in messages if each.role != "system"]
    alternates = all(one != other for one, other in itertools.pairwise(roles))
    return not alternates or any(not each.content.strip() for each in messages)


@pytest.mark.parametrize(
    "name",
    ["static", "dynamic", "stepwise", "stepwise harness=official", "repair context=full", "levels context=full"],
)
async def test_a_dialogue_goes_on(tmp_path: Path, name: str) -> None:
    protocol, task = made(name)
    kit, model, _ = await converse(protocol, task, tmp_path, EMPTY)
    assert len(model.requests) >= 3 and not any(refused(request.messages) for request in model.requests)
    assert "(no text)" in [each.content for each in model.requests[1].messages]
    assert [tuple(turn.request) for turn in kit.log.turns] == [request.messages for request in model.requests]
    assert [turn.response for turn in kit.log.turns] == EMPTY[: len(kit.log.turns)]


async def test_a_session_is_resumed_over_empty_replies(tmp_path: Path) -> None:
    protocol, task = made("static")
    first, model, _ = await converse(protocol, task, tmp_path, EMPTY)
    again, unasked, _ = await converse(protocol, task, tmp_path, lambda _: AssertionError("asked again"))
    assert model.requests and not unasked.requests and again.log.turns == first.log.turns


def test_records_that_hold_an_empty_message_are_read_as_they_are() -> None:
    turn = {"turn": 0, "request": [{"role": "assistant", "content": ""}], "response": "", "outcome": "no_code"}
    fields = {"cell_id": "c", "session_id": "s", "task_id": "t", "dataset": "d", "model": "m", "protocol": "p"}
    line = {**fields, "schema": 1, "agenda": [], "seed": 0, "status": "completed", "turns": [turn]}
    session = SessionRecord.model_validate(line)
    assert session.turns[0].request == [Message("assistant", "")]
    assert not {"reasoning", "truncated"} & set(SessionRecord.model_validate(line).line().split('"'))
