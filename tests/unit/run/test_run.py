"""What running a cell or a shard leaves behind, tells and returns, by how it ends."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat import run
from codechat.base.errors import InfrastructureError, UserError
from codechat.base.seal import SEAL, edited
from codechat.models.baselines import Echo
from codechat.models.calls import Brake
from codechat.run.cell import Cell, build_cell
from codechat.run.run import DONE, INTERRUPTED, TOO_MANY_ERRORS, Outcome, run_built
from codechat.run.running.observer import Silent
from codechat.run.settings.compose import compose

TASKS, TURNS = 4, 2
WORDS = ("model=echo", f"dataset.limit={TASKS}", f"agenda.turns={TURNS}", "tracking=none")


class Watching(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.begun: list[int] = []
        self.measures: list[Any] = []
        self.finishes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def begin(self, cell: Cell, planned: int, budget: Any) -> None:
        self.begun.append(planned)

    def measured(self, cell: Cell, metrics: Any, seconds: float) -> None:
        assert (cell.folder / "metrics.json").exists() and seconds > 0
        self.measures.append(metrics)

    def finished(self, cell: Cell, words: Any) -> None:
        self.finishes.append(str(words))


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The tasks at which the model cannot be reached."""
    tasks, code = set[str](), Echo.code

    def answer(self: Echo, view: Any, turn: int) -> str:
        if view.task.task_id in tasks:
            raise InfrastructureError("the line is dead")
        return code(self, view, turn)

    monkeypatch.setattr(Echo, "code", answer)
    return tasks


def ran(folder: Path, *words: str, watcher: Watching | None = None) -> Outcome:
    return run(compose([*WORDS, f"runs_dir={folder}", *words]), watcher)


def ids(folder: Path) -> list[str]:
    return [task.task_id for task in build_cell(compose([*WORDS, f"runs_dir={folder}"])).tasks]


@pytest.mark.usefixtures("rendered")
def test_a_finished_cell_has_its_files_and_is_only_looked_at_again(tmp_path: Path) -> None:
    first, again = Watching(), Watching()
    outcome = ran(tmp_path, watcher=first)
    folder = outcome.folder
    assert (outcome.status, outcome.unfinished, outcome.part, outcome.layout) == (DONE, "", None, ())
    assert outcome.seconds > 0 and len(list(outcome.sessions)) == TASKS
    assert {"journal.db", "config.yaml", "sessions.jsonl", "metrics.json"} <= {path.name for path in folder.iterdir()}
    assert (
        list((folder / "figures").glob("*.svg"))
        and list((folder / "tables").glob("*.csv"))
        and (folder / SEAL).is_file()
        and edited(folder) == ""
    )
    assert json.loads((folder / "metrics.json").read_text()) == json.loads(json.dumps(outcome.metrics))
    assert not any("more than once" in note for note in first.notes)
    assert (first.begun, first.finishes, len(first.measures)) == ([TASKS * TURNS], [], 1)
    before = (folder / "sessions.jsonl").read_bytes()
    second = ran(tmp_path, watcher=again)
    assert second.status == DONE and len(again.finishes) == len(again.measures) == 1
    assert (folder / "sessions.jsonl").read_bytes() == before
    assert outcome.metrics is not None and second.metrics is not None
    assert second.metrics["wall_s"] > outcome.metrics["wall_s"] > 0, "the time of all runs counts"


@pytest.mark.parametrize(("allowed", "status"), [(0, TOO_MANY_ERRORS), (1, TOO_MANY_ERRORS), (2, DONE)])
def test_more_errors_than_allowed_end_with_three(tmp_path: Path, failing: set[str], allowed: int, status: int) -> None:
    failing.update(ids(tmp_path)[:2])
    outcome = ran(tmp_path, f"max_errors={allowed}")
    assert outcome.status == status and outcome.unfinished == ""
    assert outcome.metrics is not None and (outcome.metrics["errored"], outcome.metrics["sessions"]) == (2, TASKS)
    failing.clear()
    assert ran(tmp_path, f"max_errors={allowed}").status == DONE, "what errored is tried again"


@pytest.mark.parametrize(("allowed", "status"), [(0, TOO_MANY_ERRORS), (1, DONE)])
def test_a_shard_counts_its_sessions_and_measures_nothing(
    tmp_path: Path, failing: set[str], allowed: int, status: int
) -> None:
    failing.add(ids(tmp_path)[1])
    outcome = ran(tmp_path, "shard.index=1", "shard.count=2", f"max_errors={allowed}")
    part = outcome.part
    assert part is not None and outcome.metrics is None and outcome.seconds > 0
    assert (outcome.status, part.completed, part.errored) == (status, 1, 1)
    assert part.error == f"{ids(tmp_path)[1]}: the line is dead"
    assert outcome.folder.parent.name == "shards" and (outcome.folder / "ended.json").exists()
    assert not (outcome.folder / "metrics.json").exists()
    failing.clear()
    whole = ran(tmp_path)
    assert whole.status == DONE and [each.status for each in whole.sessions] == ["completed"] * TASKS


@pytest.mark.parametrize("words", [(), ("shard.index=0", "shard.count=2"), ("stop.difference=true", "stop.until=2")])
def test_an_interrupted_run_is_neither_measured_nor_tracked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    def pull(cell: Any, journal: Any, watcher: Any, brake: Brake, *_: Any, **__: Any) -> None:
        brake.interrupted = True

    monkeypatch.setattr("codechat.run.run.run_sessions", pull)
    watcher = Watching()
    outcome = ran(tmp_path, *words, watcher=watcher)
    assert (outcome.status, outcome.unfinished) == (INTERRUPTED, "interrupted") and outcome.seconds > 0
    assert outcome.metrics is None and outcome.part is None and watcher.measures == []
    assert not list(tmp_path.rglob("metrics.json")) and not list(tmp_path.rglob("ended.json"))


def test_a_dry_run_only_estimates(tmp_path: Path) -> None:
    outcome = ran(tmp_path, "dry_run=true")
    assert outcome.status == DONE and outcome.estimate is not None and not list(tmp_path.iterdir())
    part = ran(tmp_path, "dry_run=true", "shard.index=0", "shard.count=2")
    assert len(part.cell.tasks) == TASKS // 2 and not list(tmp_path.iterdir())


def test_a_difference_needs_a_sweep(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="put -m in front"):
        ran(tmp_path, "stop.difference=true")
    outcome = ran(tmp_path, "stop.difference=true", "stop.until=2")
    assert outcome.status == DONE and outcome.metrics is not None and outcome.metrics["sessions"] == 2


def test_remarks_are_notes_and_so_is_a_folder_that_is_not_continued(tmp_path: Path) -> None:
    watcher = Watching()
    cell = ran(tmp_path, "seed=1", "seed=2", watcher=watcher).cell
    assert any("seed=2 counts" in note for note in watcher.notes)
    assert not any("not continued" in note for note in watcher.notes)
    old = replace(cell, older=(cell.id[::-1],), name="renamed")
    other = old.folder_of(cell.id[::-1])
    shutil.copytree(cell.folder, other)
    watcher = Watching()
    run_built(old, ["codechat"], watcher)
    assert any(note.startswith(f"{other} ") and "not continued" in note for note in watcher.notes)
