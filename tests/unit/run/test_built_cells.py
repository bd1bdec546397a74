"""What a cell is built of and asks, and what is refused or remarked before it runs."""

import asyncio
from collections.abc import Mapping
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Failure, Program, Verdict
from codechat.base.errors import UserError
from codechat.base.files import from_yaml
from codechat.report.tracking import read_tracking
from codechat.run.cell import Cell, build_cell, endpoints_of, session_id
from codechat.run.cell.budget import Budget
from codechat.run.cell.estimate import _recorded
from codechat.run.cell.references import References, sandbox_for
from codechat.run.cell.rescored import Recording, RescoredCell
from codechat.run.journal import Journal
from codechat.run.results.measured import remeasure
from codechat.run.run import Outcome, run
from codechat.run.running.observer import Silent
from codechat.run.running.sessions import SessionsInJournal
from codechat.run.settings.compose import compose

JUDGED = ["model=openai", "model.name=m", "judge=llm", "dataset.limit=2"]


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    return build_cell(compose(["model=echo", "judge=rules", "dataset.limit=2", f"runs_dir={tmp_path}"]))


def test_the_judges_models_are_asked_and_paid_for_where_instructions_are_judged() -> None:
    config = compose(JUDGED).config
    assert {"model", "judge.applicability", "judge.adherence"} <= set(endpoints_of(config))
    assert {"model", "applicability", "adherence"} <= set(Budget.of(config).tariff.prices)


def test_a_dataset_without_tasks_makes_no_cell(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(cell.tasks) == 2
    monkeypatch.setattr("codechat.run.cell.select_here", lambda *_: ((), ""))
    with pytest.raises(UserError, match="has no tasks"):
        build_cell(compose(["model=echo"]))


def test_what_came_of_a_cell_lies_in_its_folder(cell: Cell) -> None:
    outcome = Outcome(0, cell)
    assert outcome.folder == cell.folder and list(outcome.sessions) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["shard.index=2", "shard.count=2"], "shard 2 of 2"), (["shard.index=-1", "shard.count=2"], "shard -1 of 2"),
        (["shard.index=0"], "needs shard.count"), (["shard.count=2"], "needs shard.index"),
        (["shard.index=1", "shard.count=2"], ""), ([], ""),
    ],
)  # fmt: skip
def test_a_shard_is_one_of_those_that_there_are(words: list[str], told: str) -> None:
    if not told:
        compose(words)
        return
    with pytest.raises(UserError, match=told):
        compose(words)


def test_remarks_on_the_command_come_before_the_cell(tmp_path: Path) -> None:
    noted: list[str] = []

    class Notes(Silent):
        def note(self, remark: str) -> None:
            noted.append(remark)

    composed = replace(
        compose(["model=echo", "dry_run=true", "dataset.limit=2", f"runs_dir={tmp_path}"]), remarks=("look here",)
    )
    assert run(composed, Notes()).estimate is not None and noted[0] == "look here"
    assert run(composed).estimate is not None


def test_a_config_is_measured_again_without_what_this_version_does_not_know(cell: Cell) -> None:
    values = from_yaml(cell.config_yaml())
    found = remeasure({**values, "option_of_a_later_version": 1}, [])
    assert found is not None and found["completed"] == 0
    assert remeasure({**values, "protocol": {"kind": "unheard of"}}, []) is None


async def test_references_that_pass_are_run_once_and_counted_as_they_end(cell: Cell) -> None:
    class Half:
        async def check(self, program: Program, suite: Any) -> Verdict:
            right = program.source == cell.tasks[0].reference
            return Verdict("pass", True, None) if right else Verdict("fail", False, Failure("wrong"))

    seen: list[tuple[int, int]] = []
    tests: Any = Half()
    references = References(cell.dataset, tests, cell.config.sandbox, print, lambda *done: seen.append(done))
    for _ in range(2):
        (defect,) = await references.defects(cell.tasks)
        assert defect.task_id == cell.tasks[1].task_id and "wrong" in defect.problem
    assert seen == [(1, 2), (2, 2), (1, 1)]


def test_a_cell_that_ran_is_read_from_its_journal(tmp_path: Path) -> None:
    words = ["model=echo", "judge=rules", "dataset.limit=1", "agenda.turns=2", "tracking=none", "hardware.workers=1"]
    shown: list[Any] = []

    class Notes(Silent):
        def measured(self, cell: Cell, metrics: Mapping[str, Any], seconds: float) -> None:
            shown.append(metrics)

    ended = run(compose([*words, f"runs_dir={tmp_path}"]), Notes())
    (task,) = ended.cell.tasks
    assert shown == [ended.metrics] and read_tracking(ended.folder).folder == ended.folder
    with closing(Journal(ended.folder / "journal.db")) as journal:
        assert [each.task_id for each in SessionsInJournal(ended.cell, journal)] == [task.task_id]
    assert _recorded(ended.cell, [ended.folder / "journal.db"])[0] == {task.task_id: 1_000_000}
    assert _recorded(ended.cell, [tmp_path / "new.db"])[0] == {task.task_id: 0}


def test_a_session_that_is_stopped_is_kept_as_unfinished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget, "reason_to_stop", lambda *_: "enough")
    words = ["model=echo", "judge=rules", "dataset.limit=1", "agenda.turns=2", "tracking=none", "hardware.workers=1"]
    ended = run(compose([*words, f"runs_dir={tmp_path}"]))
    with closing(Journal(ended.folder / "journal.db")) as journal:
        (session,) = SessionsInJournal(ended.cell, journal)
    assert (session.status, session.error) == ("errored", "not finished: enough") and ended.status


def test_a_record_under_todays_name_of_its_dataset_stays_as_it_was_written(cell: Cell, tmp_path: Path) -> None:
    (task, _) = cell.tasks
    written = '{"schema":1,"dataset":"%s","agenda":[]}'
    with closing(Journal(tmp_path / "journal.db")) as journal:
        line = written % cell.dataset.name
        asyncio.run(journal.finish(session_id(cell.id, task.task_id), line, "{}", completed=True))
        own = replace(cell, dataset=replace(cell.dataset, own=True))
        assert (
            list(SessionsInJournal(cell, journal).lines())
            == list(SessionsInJournal(own, journal).lines())
            == [line + "\n"]
        )


def test_a_cell_that_is_scored_again_says_whose_replies_it_has(cell: Cell, tmp_path: Path) -> None:
    parts = {each.name: getattr(cell, each.name) for each in fields(cell) if each.init}
    again = RescoredCell(**parts, recording=Recording("abc", {}, 0, {}, None), place=tmp_path)
    assert again.settings() == {**cell.settings(), "rescored_from": "abc"} and again.folder == tmp_path


async def test_a_weak_sandbox_says_so(tmp_path: Path) -> None:
    words = ["model=echo", "judge=rules", "dataset.limit=1", f"runs_dir={tmp_path}", "sandbox=process"]
    noted, one = list[str](), build_cell(compose(words))
    async with sandbox_for(one.tasks, one.config.sandbox, 1, noted.append, trusted=True) as room:
        assert noted == [room.notice]
    with pytest.raises(UserError, match="allow_weak"):
        async with sandbox_for(one.tasks, one.config.sandbox, 1, noted.append):
            pass
