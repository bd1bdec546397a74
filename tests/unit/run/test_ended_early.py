"""Cells that may end early: how far they have to go by what their journals hold, and what is said of their end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, TurnRecord
from codechat.report.metrics.statistics import difference_interval, in_order, mean_interval
from codechat.run.cell import Cell, build_cell, session_id
from codechat.run.cell.stopping import (
    MEASURES,
    Progress,
    check_stop,
    checkpoint_runs,
    checkpoints,
    comparable,
    measures_of,
    progress_at,
    stop_report,
    tasks_needed,
)
from codechat.run.journal import Journal
from codechat.run.settings.compose import Composed, compose


def cell(runs: Path, *words: str) -> Cell:
    return build_cell(compose(["model=echo", "agenda.turns=3", f"runs_dir={runs}", *words]))


def order(one: Cell) -> list[str]:
    return in_order((task.task_id for task in one.tasks), one.config.seed)


def record(one: Cell, task: str, passed: list[bool | None]) -> str:
    turns = [TurnRecord(turn=at, outcome=None if each is None else "pass" if each else "fail", passed=each)
             for at, each in enumerate(passed)]  # fmt: skip
    return SessionRecord(
        cell_id=one.id, session_id=session_id(one.id, task), task_id=task, dataset="d", model="m", protocol="p",
        agenda=[], seed=0, status="completed", turns=turns,
    ).line()  # fmt: skip


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    found = Journal(tmp_path / "j.db")
    yield found
    found.close()


async def fill(one: Cell, journal: Journal, passed: dict[str, list[bool | None]], *, completed: bool = True) -> None:
    for task, each in passed.items():
        line = record(one, task, each)
        await journal.finish(session_id(one.id, task), line, line, completed=completed)


@pytest.mark.parametrize(("size", "expected"), [(1, [1]), (10, list(range(1, 11))), (20, list(range(1, 21)))])
def test_a_small_cell_has_a_checkpoint_after_every_task(size: int, expected: list[int]) -> None:
    assert sorted({*checkpoints(size)}) == expected


def test_a_large_one_has_twenty_checkpoints() -> None:
    assert checkpoints(164) == [9, 17, 25, 33, 41, 50, 58, 66, 74, 82, 91, 99, 107, 115, 123, 132, 140, 148, 156, 164]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["stop.width=0.1", "stop.turn=3"], "0 to 2"),
        (["stop.width=0.1", "stop.turn=2"], ""),
        (["stop.width=0.1"], ""),
        (["stop.width=0.1", "shard.index=0", "shard.count=2"], "shard"),
        (["shard.index=0", "shard.count=2"], ""),
    ],
)
def test_a_cell_that_cannot_end_as_it_is_asked_is_refused(tmp_path: Path, words: list[str], told: str) -> None:
    figure = ["stop.figure=pass_at_1"] if "stop.turn" in " ".join(words) else []
    one = cell(tmp_path, "dataset.limit=4", *figure, *words)
    if told:
        with pytest.raises(UserError, match=told):
            check_stop(one)
    else:
        check_stop(one)


async def test_without_such_options_all_tasks_are_due_at_once(tmp_path: Path, journal: Journal) -> None:
    one = cell(tmp_path, "dataset.limit=3")
    assert tasks_needed(one, journal) == tasks_needed(one, journal, 1) == one.tasks
    assert measures_of(one) is one.protocol.measures and stop_report(one, journal) == {}


@pytest.mark.parametrize(("words", "count"), [("stop.until=2", 2), ("stop.until=3", 3), ("stop.until=99", 5)])
def test_a_sweep_says_how_far_a_cell_goes(tmp_path: Path, journal: Journal, words: str, count: int) -> None:
    one = cell(tmp_path, "dataset.limit=5", "stop.difference=true", words)
    assert measures_of(one) is MEASURES
    for end in range(1, 6):
        first = order(one)[: min(end, count)]
        assert tasks_needed(one, journal, end) == tuple(task for task in one.tasks if task.task_id in first)
    assert tasks_needed(one, journal) == tasks_needed(one, journal, 5)


async def test_a_cell_ends_at_the_first_checkpoint_at_which_its_interval_is_narrow(
    tmp_path: Path, journal: Journal
) -> None:
    size, passing = 10, [True, True, True]
    widths = [high - low for count in range(1, size + 1) for low, high in [mean_interval([3] * count, 3, size)]]
    assert widths[5] < widths[4]
    one = cell(tmp_path, "dataset.limit=10", f"stop.width={widths[5]}")
    assert len(tasks_needed(one, journal)) == size
    await fill(one, journal, dict.fromkeys(order(one)[:5], passing))
    assert len(tasks_needed(one, journal)) == size, "it is not known yet"
    await fill(one, journal, dict.fromkeys(order(one)[5:6], passing))
    assert {task.task_id for task in tasks_needed(one, journal)} == {*order(one)[:6]}
    await fill(one, journal, dict.fromkeys(order(one)[6:8], passing))
    assert {task.task_id for task in tasks_needed(one, journal)} == {*order(one)[:6]}, "more sessions change nothing"
    assert [len(tasks_needed(one, journal, end)) for end in (1, 5, 6, 7, 10)] == [1, 5, 6, 6, 6]
    found = stop_report(one, journal)
    assert found["ci"]["mst"] == mean_interval([3] * 6, 3, size)
    assert found["ci"]["pass_at_1"] == [mean_interval([1] * 6, 1, size)] * 3
    about = found["stopped"]
    assert (about["tasks"], about["of"], about["turns"], about["figure"], about["turn"]) == (6, 10, 3, "mst", None)
    assert "narrow" in about["why"]


async def test_a_session_that_is_missing_or_errored_ends_what_is_in_order(tmp_path: Path, journal: Journal) -> None:
    one = cell(tmp_path, "dataset.limit=4", "stop.width=0.01")
    first, second, third, _ = order(one)
    await fill(one, journal, {first: [True, False, None], third: [True]})
    await fill(one, journal, {second: [True]}, completed=False)
    assert Progress(one, journal, 4).rows == [[1, 1, 0, 0]], "MST, then whether the turns pass"
    found = stop_report(one, journal)
    assert found["ci"] == {"mst": None, "pass_at_1": [None] * 3}
    assert found["stopped"]["tasks"] == 4 and "all" in found["stopped"]["why"]


async def test_where_a_sweep_ended_a_cell_differences_were_decided(tmp_path: Path, journal: Journal) -> None:
    one = cell(
        tmp_path, "dataset.limit=4", "stop.difference=true", "stop.until=2", "stop.figure=pass_at_1", "stop.turn=1"
    )
    await fill(one, journal, {task: [True, task == order(one)[0], False] for task in order(one)[:2]})
    found = stop_report(one, journal)
    assert found["ci"]["mst"] == mean_interval([2, 1], 3, 4)
    assert found["ci"]["pass_at_1"] == [mean_interval(each, 1, 4) for each in ([1, 1], [1, 0], [0, 0])]
    assert "difference" in found["stopped"]["why"] and found["stopped"]["turn"] == 1


def test_cells_are_compared_that_differ_in_the_model_or_in_the_setting_alone(tmp_path: Path) -> None:
    base = cell(tmp_path, "dataset.limit=6")
    other_setting = cell(tmp_path, "dataset.limit=6", "agenda.turns=2")
    other_tasks = cell(tmp_path, "dataset.limit=5")
    other_seed = cell(tmp_path, "dataset.limit=6", "seed=9")
    other_model = cell(tmp_path, "dataset.limit=6", "model=reference")
    both = cell(tmp_path, "dataset.limit=6", "model=reference", "agenda.turns=2")
    assert comparable(base, other_setting) and comparable(base, other_model)
    assert not any(comparable(base, other) for other in (other_tasks, other_seed, both))
    assert comparable(other_setting, both) and comparable(other_model, both)
    assert comparable(base, cell(tmp_path, "dataset.limit=6", "model.max_concurrency=2"))
    assert not comparable(base, cell(tmp_path, "dataset.limit=6", "stop.width=1"))


async def in_folder(one: Cell, passed: list[bool]) -> None:
    one.folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(one.folder / "journal.db")
    await fill(one, journal, {task: [each] * 3 for task, each in zip(order(one), passed, strict=False)})
    journal.close()


@pytest.mark.parametrize("figure", ["mst", "pass_at_1"])
async def test_a_difference_is_decided_once_its_interval_leaves_zero_out(tmp_path: Path, figure: str) -> None:
    words = ("dataset.limit=40", "stop.difference=true", f"stop.figure={figure}")
    a, b = cell(tmp_path, *words), cell(tmp_path, "model=reference", *words)
    top = 3 if figure == "mst" else 1
    apart = next(count for count in range(1, 41)
                 if difference_interval([0] * count, [top] * count, top, 40)[1] < 0)  # fmt: skip
    await in_folder(a, [False] * 40)
    await in_folder(b, [True] * 40)
    before, at = ([progress_at(each, count) for each in (a, b)] for count in (apart - 1, apart))
    assert before[0].undecided(before[1], 1) and before[1].undecided(before[0], 1)
    assert not at[0].undecided(at[1], 1) and not at[1].undecided(at[0], 1)
    assert at[0].undecided(at[1], 1000), "of many differences each needs more"
    assert not before[0].undecided(progress_at(b, apart - 2), 1), "the other has ended"


async def test_a_cell_goes_on_while_a_session_that_hides_its_difference_is_missing(tmp_path: Path) -> None:
    words = ("dataset.limit=6", "stop.difference=true")
    a, b = cell(tmp_path, *words), cell(tmp_path, "model=reference", *words)
    assert (progress_at(a, 1).needed, progress_at(a, 1).rows) == (1, []) and not a.folder.exists()
    await in_folder(a, [True] * 3)
    await in_folder(b, [True] * 2)
    assert [len(progress_at(a, end).rows) for end in (2, 3, 4)] == [2, 3, 3]
    assert progress_at(a, 3).undecided(progress_at(b, 3), 1)


def until(due: list[Composed]) -> list[int | None]:
    return [each.config.stop.until for each in due]


async def test_a_sweep_runs_its_cells_from_checkpoint_to_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three models the two that are far apart from the third are alike: the third ends first."""
    monkeypatch.setattr("codechat.run.cell.stopping.CHECKPOINTS", 5)
    words = ["dataset.limit=40", "agenda.turns=3", f"runs_dir={tmp_path}", "tracking.uri=sqlite:///x.db"]
    composed = [compose([*words, f"model={name}", "stop.difference=true"]) for name in ("echo", "reference", "drifter")]
    fixed = compose([*words, "model=echo"])
    cells, passed, said = [build_cell(each) for each in composed], (True, True, False), []
    for due in checkpoint_runs([*composed, fixed]):
        said.append(until(due))
        if len(due) < 4:
            assert {each.config.tracking.kind for each in due} == {"none"}  # type: ignore[attr-defined]
            for each in due:
                at = next(n for n, one in enumerate(composed) if one.config.model == each.config.model)
                await in_folder(cells[at], [passed[at]] * (each.config.stop.until or 0))
    apart = next(n for n in checkpoints(40) if difference_interval([3] * n, [0] * n, 3, 40, 0.05 / 3)[0] > 0)
    reached = [n for n in checkpoints(40) if n <= apart]
    assert said[:-1] == [[n] * 3 if n in reached else [n] * 2 for n in checkpoints(40)]
    assert said[-1] == [40, 40, apart, None]
    (last,) = checkpoint_runs([*composed, fixed])
    assert until(last) == said[-1], "what is recorded is not run again"
    assert last[-1] is fixed and last[0].config.tracking == composed[0].config.tracking


def test_a_sweep_without_differences_runs_once(tmp_path: Path) -> None:
    plain = [compose(["model=echo", f"seed={seed}", f"runs_dir={tmp_path}"]) for seed in (1, 2)]
    assert list(checkpoint_runs(plain)) == [plain]
    words = ["model=echo", "stop.difference=true", f"runs_dir={tmp_path}"]
    with pytest.raises(UserError, match="two cells"):
        next(checkpoint_runs([compose(words)]))
    dry = [compose([*words, "dry_run=true"])]
    assert list(checkpoint_runs(dry)) == [dry]
