"""Recorded dialogues that are scored again: what is tested, and what is kept of the record."""

from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Extraction, Message, Reply, Target, Verdict
from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, TurnRecord
from codechat.datasets.tasks import Task
from codechat.report.metrics import Effort
from codechat.run.protocols import PROTOCOLS
from codechat.run.protocols.recorded import MEASURES, Recorded, RecordedConfig, recorded_metrics
from codechat.run.protocols.services import reply_of


class Kept:
    """A kit that passes every answer."""

    def __init__(self, recording: SessionRecord | None = None) -> None:
        self.recording = recording
        self.turns: list[TurnRecord] = []
        self.checked: list[str | None] = []

    async def ask(self, role: str, turn: int, messages: tuple[Message, ...]) -> Reply:
        if self.recording is not None:
            return reply_of(self.recording.turns[turn])
        return Reply(f"turn {turn} of {len(messages)}")

    async def check(self, turn: int, extraction: Extraction, suite: Any) -> Verdict:
        self.checked.append(extraction.code)
        return Verdict("pass", True, None, inside="")

    def finish_turn(self, turn: TurnRecord) -> None:
        self.turns.append(turn)


async def test_a_reply_is_read_again_as_it_was_recorded(tmp_path: Path) -> None:
    asked = [Message("user", "an x, please")]
    turns = [
        TurnRecord(turn=0, request=asked, response="```python\nx = 1\n```", code="x = 2"),
        TurnRecord(turn=1, request=asked, code="x = 3"),
    ]
    session = SessionRecord(
        cell_id="c", session_id="s", task_id="t", dataset="d", model="m", protocol="recorded", agenda=[], seed=0,
        status="completed", turns=turns,
    )  # fmt: skip
    (tmp_path / "sessions.jsonl").write_text(session.line() + "\n")
    suite: Any = object()
    for code, read in (("extracted", "x = 1"), ("published", "x = 2")):
        config = PROTOCOLS.validate({"kind": "recorded", "path": str(tmp_path / "sessions.jsonl"), "code": code})
        assert isinstance(config, RecordedConfig)
        kit: Any = Kept()
        task = Task("t", "p", suite=suite, target=Target("python"))
        kit.recording = session
        await Recorded(config, MEASURES, recorded_metrics).run(task, kit)
        assert [each.response for each in kit.turns] == [turns[0].response, None]
        assert [(each or "").strip() for each in kit.checked] == [read, "x = 3"]
        kit = Kept()
        await Recorded(config, MEASURES, recorded_metrics).run(task, kit)
        assert [each.response for each in kit.turns] == ["turn 0 of 1", None], "where nothing was said nobody is asked"


def config(path: Path) -> RecordedConfig:
    found = PROTOCOLS.validate({"kind": "recorded", "path": str(path)})
    assert isinstance(found, RecordedConfig)
    return found


def session(turns: list[TurnRecord], *, task: str = "t", status: Any = "completed") -> SessionRecord:
    return SessionRecord(
        cell_id="c", session_id=task, task_id=task, dataset="d", model="m", protocol="recorded", agenda=[], seed=0,
        status=status, turns=turns,
    )  # fmt: skip


def turn(number: int, passed: bool | None, official: bool | None = None, **more: Any) -> TurnRecord:
    known = {} if official is None else {"official": {"passed": official}}
    outcome = None if passed is None else "pass" if passed else "fail"
    return TurnRecord.model_validate({"turn": number, "outcome": outcome, "passed": passed, **known, **more})


def test_figures_count_turns_and_agreement_by_place_and_overall() -> None:
    sessions = [
        session([turn(0, True, True), turn(1, False, True)], task="a"),
        session([turn(0, False), turn(1, None, False), turn(2, True)], task="b"),
        session([turn(0, True, True)], task="c", status="errored"),
        session([], task="d"),
        session([turn(0, None)], task="e"),
    ]
    found = recorded_metrics(sessions, seed=0, effort=Effort())
    assert (found["sessions"], found["completed"], found["errored"]) == (5, 4, 1)
    assert {name: count for name, count in found["outcomes"].items() if count} == {"pass": 2, "fail": 2}
    assert found["passed"] == [0.5, 0.0, 1.0] and found["n"]["passed"] == [2, 1, 1]
    assert found["official"] == [1.0, 0.5, None] and found["n"]["official"] == [1, 2, 0]
    assert found["agreement"] == [1.0, 0.0, None] and found["n"]["agreement"] == [1, 1, 0]
    assert found["overall"] == {"passed": 0.5, "official": 2 / 3, "agreement": 0.5, "solved": 0.5}
    assert found["n"]["overall"] == {"passed": 4, "official": 3, "agreement": 2, "solved": 2}
    assert len(found["ci"]["overall"]["passed"]) == 2 and found["ci"]["official"][2] is None


def test_the_dialogues_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "sessions.jsonl"
    asked = [Message("user", "an x, please"), Message("user", "more")]
    whole = session([TurnRecord(turn=0, request=asked, response="said"), TurnRecord(turn=1, request=asked[:1])])
    path.write_text(whole.line() + "\n" + session([], task="empty").line() + "\n")
    one = Recorded(config(path), MEASURES, recorded_metrics)
    task = Task("t", "p")
    assert one.turns(task) == 2
    asks = [(each.turn, each.characters, each.answer) for each in one.asks(task)]
    assert asks == [(0, 16, 4), (1, 12, 0)]
    for other in ("empty", "absent"):
        with pytest.raises(UserError, match=other):
            one.turns(Task(other, "p"))


async def test_a_skipped_turn_has_the_code_and_the_verdict_of_the_one_before(tmp_path: Path) -> None:
    turns = [
        TurnRecord.model_validate(
            {"turn": 0, "code": "x = 1", "official": {"passed": True}, "executed": 1, "other": 2}
        ),
        TurnRecord(turn=1, skipped=True),
        TurnRecord(turn=2),
    ]
    suite: Any = object()
    kit: Any = Kept(session(turns))
    one = Recorded(config(tmp_path / "x"), MEASURES, recorded_metrics)
    await one.run(Task("t", "p", suite=suite), kit)
    first, second, third = kit.turns
    assert kit.checked == ["x = 1", None]
    assert (second.skipped, second.code, second.outcome, second.passed) == (True, "x = 1", "pass", True)
    assert (first.skipped, third.skipped, third.code) == (False, False, None)
    extra = first.model_extra or {}
    assert extra["official"] == {"passed": True} and extra["executed"] == 1 and "other" not in extra
    kit = Kept(session(turns[:1]))
    await one.run(Task("t", "p"), kit)
    assert kit.checked == [] and kit.turns[0].passed is None


async def test_a_turn_that_is_skipped_first_is_read_as_any_other(tmp_path: Path) -> None:
    kit: Any = Kept(session([TurnRecord(turn=0, skipped=True, code="x")]))
    suite: Any = object()
    one = Recorded(config(tmp_path / "x"), MEASURES, recorded_metrics)
    await one.run(Task("t", "p", suite=suite), kit)
    assert kit.checked == ["x"] and not kit.turns[0].skipped
