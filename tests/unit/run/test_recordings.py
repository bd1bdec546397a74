"""Recorded cells that are scored again: which can be, whose replies they have, and what must be as it was."""

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codechat.base.domain import Message
from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, TurnRecord
from codechat.report.metrics import Effort
from codechat.run.cell import build_cell
from codechat.run.cell.rescored import Recording, Rescoring, other_tests, read_recording, rescored_cell
from codechat.run.settings.compose import compose
from support.mistakes import mistake


def session(task: str, *, cell: str = "c", status: Any = "completed", asked: str | None = None) -> SessionRecord:
    turns = [] if asked is None else [TurnRecord(turn=0, request=[Message("system", "s"), Message("user", asked)])]
    return SessionRecord(
        cell_id=cell, session_id=task, task_id=task, dataset="d", model="m", protocol="p", agenda=["a"], seed=0,
        status=status, turns=turns,
    )  # fmt: skip


def write(folder: Path, *sessions: SessionRecord) -> Path:
    path = folder / "sessions.jsonl"
    path.write_text("".join(each.line() + "\n" for each in sessions))
    return path


def test_the_completed_sessions_are_read_with_their_first_requests(tmp_path: Path) -> None:
    found = read_recording(write(tmp_path, session("a", asked="one"), session("b", status="errored"), session("c")))
    assert (found.cell_id, found.errored, list(found.sessions)) == ("c", 1, ["a", "c"])
    assert found.openings == {"a": "one"} and found.content is None


@pytest.mark.parametrize(
    ("sessions", "told"),
    [
        ([session("a"), session("a")], "several cells"),
        ([session("a"), session("b", cell="other")], "several cells"),
        ([session("a", status="errored")], "no completed"),
        ([], "no completed"),
    ],
)
def test_what_is_no_whole_cell_is_refused(tmp_path: Path, sessions: list[SessionRecord], told: str) -> None:
    with pytest.raises(UserError, match=told):
        read_recording(write(tmp_path, *sessions))


def cell(
    tmp_path: Path, sessions: list[str], content: str | None = None, openings: dict[str, str] | None = None
) -> Any:
    config = compose(["model=echo", "judge=rules"]).config
    recording = Recording("abc", dict.fromkeys(sessions, "{}"), 0, openings or {}, content)
    return rescored_cell(config, {}, recording, "name", tmp_path)


def some_tasks(count: int) -> list[Any]:

    return list(build_cell(compose(["model=echo", f"dataset.limit={count}"])).tasks)


def test_the_tasks_are_those_of_the_recording_in_its_order(tmp_path: Path) -> None:
    one, two = some_tasks(2)
    found = cell(tmp_path, [two.task_id, one.task_id])
    assert [task.task_id for task in found.tasks] == [two.task_id, one.task_id]
    assert found.id != cell(tmp_path, [one.task_id]).id and found.folder == tmp_path
    assert other_tests(found) == ""
    with pytest.raises(UserError, match="no task 'gone'"):
        cell(tmp_path, ["gone"])


def test_other_tests_are_remarked_and_other_questions_refused(tmp_path: Path) -> None:
    (one,) = some_tasks(1)
    same = cell(tmp_path, [one.task_id], openings={one.task_id: "anything"})
    assert other_tests(cell(tmp_path, [one.task_id], same.dataset.content_hash, {one.task_id: "anything"})) == ""
    asked = {one.task_id: f"Please: {one.prompt}"}
    changed = cell(tmp_path, [one.task_id], "0123456789", asked)
    assert "01234567, now" in other_tests(changed)
    with pytest.raises(UserError, match="was another"):
        cell(tmp_path, [one.task_id], "0123456789", {one.task_id: "another question"})


async def test_in_place_of_new_dialogues_the_recorded_ones_are_scored() -> None:
    seen = list[Any]()

    class Inner:
        measures = "measures"

        def turns(self, task: Any) -> int:
            return 7

        def agenda(self, generator: Any) -> list[str]:
            return ["drawn"]

        def asks(self, task: Any) -> Any:
            return iter("x")

        def metrics(self, sessions: Any, *, seed: int, effort: Any) -> Any:
            return {"seed": seed}

        async def run(self, task: Any, kit: Any) -> None:
            seen.append(kit.recording.task_id)
            kit.log.turns = turns

    inner: Any = Inner()
    task: Any = SimpleNamespace(task_id="a")
    kit: Any = SimpleNamespace(log=SimpleNamespace(agenda=[]), changed=lambda: UserError("changed", "mend it"))
    turns = list[Any]()
    one = Rescoring(inner, Recording("c", {"a": session("a").line()}, 0, {}, None))
    await one.run(task, kit)
    assert seen == ["a"] and kit.log.agenda == ["a"]
    turns.append("a turn that the recording lacks")
    with mistake("changed"):
        await one.run(task, kit)
    measures: Any = one.measures
    assert (measures, one.turns(task), one.agenda(random.Random(0)), list(one.asks(task))) == (
        "measures",
        7,
        ["drawn"],
        ["x"],
    )  # type: ignore[comparison-overlap]
    assert one.metrics([], seed=3, effort=Effort()) == {"seed": 3}
