"""The stepwise protocol: five layouts of a request byte for byte, the script's extraction, and figures by hand."""

from typing import Any

import pytest
from pydantic import ValidationError

from codechat.base.domain import Message, Usage
from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, TurnRecord
from codechat.run.settings.compose import compose
from codechat.sandbox.suites.assertions import Assertions
from codechat.studies.sreval.metrics import CHECKS, stepwise_metrics
from codechat.studies.sreval.protocol import StepwiseConfig, layout, official_code
from codechat.studies.sreval.rows import Step, StepTask
from support.mistakes import mistake

TASK = StepTask(
    "t",
    "Add.",
    steps=tuple(
        Step(text, Assertions(("assert f()",)), code)
        for text, code in (
            ("  Add.\n", "def f():\n    return 1\n"),
            ("Then double.", "def f():\n    return 2\n"),
            ("Then stop.", "def f():\n    return 3\n"),
        )
    ),
)
SYSTEM = Message(
    "system",
    "You are an expert python programmer. Answer every request with the complete program in one single code block that "
    "opens with ```python and closes with ```. Write no shell commands, no tests, no examples of use, and nothing "
    "outside the block.",
)
FIRST = Message("user", "programming problem:\nAdd.")
EDIT = "Change this code as the programming problem below asks:\n\n```python\n{}\n```\n\nprogramming problem:\n{}"
REPLIES = ["Here:\n```python\nx = 1\n```", "Done."]
CODES = ["x = 1\n", "x = 1\n"]


def config(**options: str) -> StepwiseConfig:
    words = [f"protocol.{name}={value}" for name, value in options.items()]
    return StepwiseConfig.model_validate(compose(["protocol=stepwise", *words]).config.protocol.model_dump())


def user(text: str) -> Message:
    return Message("user", text)


def said(text: str) -> Message:
    return Message("assistant", text)


@pytest.mark.parametrize(
    ("options", "second", "third"),
    [
        (
            {"prompting": "full_history", "context": "basic"},
            [user("Add."), said(REPLIES[0]), user("programming problem:\nThen double.")],
            [
                user("Add."),
                said(REPLIES[0]),
                user("Then double."),
                said("Done."),
                user("programming problem:\nThen stop."),
            ],
        ),
        (
            {"prompting": "full_history", "context": "golden"},
            [
                user("Add."),
                said("```python\ndef f():\n    return 1\n```"),
                user("programming problem:\nThen double."),
            ],
            [
                user("Add."),
                said("```python\ndef f():\n    return 1\n```"),
                user("Then double."),
                said("```python\ndef f():\n    return 2\n```"),
                user("programming problem:\nThen stop."),
            ],
        ),
        (
            {"prompting": "code_edit", "context": "basic"},
            [user(EDIT.format("x = 1", "Then double."))],
            [user(EDIT.format("x = 1", "Then stop."))],
        ),
        (
            {"prompting": "code_edit", "context": "golden"},
            [user(EDIT.format("def f():\n    return 1", "Then double."))],
            [user(EDIT.format("def f():\n    return 2", "Then stop."))],
        ),
        (
            {"prompting": "cumulative"},
            [user("programming problem:\nAdd.\nThen double.")],
            [user("programming problem:\nAdd.\nThen double.\nThen stop.")],
        ),
    ],
)
def test_layouts(options: dict[str, str], second: list[Message], third: list[Message]) -> None:
    chosen = config(**options)
    assert layout(chosen, TASK, 0, [], []) == (SYSTEM, FIRST)
    assert list(layout(chosen, TASK, 1, REPLIES[:1], CODES[:1])) == [SYSTEM, *second]
    assert list(layout(chosen, TASK, 2, REPLIES, CODES)) == [SYSTEM, *third]


def test_cumulative_with_golden_is_refused() -> None:
    with mistake("protocol.prompting=cumulative", "protocol.context=golden"):
        compose(["protocol=stepwise", "protocol.prompting=cumulative", "protocol.context=golden"])


def test_a_prompt_without_its_field_is_refused() -> None:
    with pytest.raises((UserError, ValidationError), match="must contain"):
        compose(["protocol=stepwise", "protocol.prompts.edit=Change it."])


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("<think>```python\nno\n```</think>```python\nyes\n```", "yes\n"),
        ("```js\nother\n```\n```py\nown\n```", "own\n"),
        ("```\nany\n```", "any\n"),
        ("```python\nopen", "```python\nopen"),
        ("x = 1", "x = 1"),
    ],
)
def test_the_scripts_extraction(reply: str, code: str) -> None:
    assert official_code(reply, "python") == code


def session(task: str, passed: str, kept: dict[int, list[bool]] | None = None, status: str = "completed") -> Any:
    """A session with a letter a turn, `P` or `F`; `kept` are the earlier tests of a turn."""
    turns = [
        TurnRecord.model_validate({
            "turn": turn, "response": "r", "outcome": "pass" if mark == "P" else "fail", "passed": mark == "P",
            "passed_base": mark == "P", "usage": Usage(10, turn),
            CHECKS: [{"turn": place, "passed": each} for place, each in enumerate((kept or {}).get(turn, []))],
        })
        for turn, mark in enumerate(passed)
    ]  # fmt: skip
    return SessionRecord(
        cell_id="c", session_id=task, task_id=task, dataset="d", model="m", protocol="stepwise", agenda=[], seed=0,
        status=status, error="down" if status == "errored" else None, turns=turns,
    )  # fmt: skip


def test_figures_by_hand() -> None:
    """Tasks of 3, 4 and 5 turns, and an errored session that counts nowhere."""
    found = stepwise_metrics(
        [
            session("a", "PPP", {1: [True], 2: [True, True]}),
            session("b", "PFPF", {1: [False], 2: [True], 3: []}),
            session("c", "FPPPF"),
            session("d", "FFF", status="errored"),
        ],
        seed=0,
    )
    assert found["acc"] == [2 / 3, 2 / 3, 1.0, 1 / 2, 0.0]
    assert found["avg_acc"] == pytest.approx((2 / 3 + 2 / 3 + 1 + 1 / 2 + 0) / 5)
    assert found["question_acc"] == 8 / 12
    assert (found["acc_after_first"], found["n"]["acc_after_first"]) == (6 / 9, 9)
    assert found["complete_rate"] == 1 / 3
    assert found["atc"] == pytest.approx((33 + 46 + 60) / 3)
    assert found["kept"] == [1 / 2, 1.0]
    assert found["kept_overall"] == 4 / 5
    assert found["n"]["acc"] == [3, 3, 3, 2, 1]
    assert (found["sessions"], found["completed"], found["errored"]) == (4, 3, 1)
    low, high = found["ci"]["avg_acc"]
    assert 0 <= low <= found["avg_acc"] <= high <= 1


def test_nothing_completed_gives_no_figure() -> None:
    found = stepwise_metrics([session("d", "FFF", status="errored")], seed=0)
    assert found["avg_acc"] is None and found["acc"] == [] and found["atc"] is None
