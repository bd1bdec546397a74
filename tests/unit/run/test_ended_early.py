"""Cells that may end early: how far they have to go by what their journals hold, and what is said of their end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, TurnRecord
from codechat.report.metrics.sequences import difference_interval, in_order, mean_interval
from codechat.run.cell import Cell, build_cell, session_id
from codechat.run.cell.stopping import (
    MEASURES,
    check_stop,
    completed_in_order,
    described,
    due,
    has_come_to,
    looks,
    measures_of,
    pairs_of,
    portions,
    still_undecided,
)
from codechat.run.journal import Journal
from codechat.run.settings.compose import compose


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
def test_a_small_cell_is_looked_at_after_every_task(size: int, expected: list[int]) -> None:
    assert looks(size) == expected


def test_a_large_one_is_looked_at_twenty_times() -> None:
    assert looks(164) == [9, 17, 25, 33, 41, 50, 58, 66, 74, 82, 91, 99, 107, 115, 123, 132, 140, 148, 156, 164]


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
    assert due(one, journal) == one.tasks and list(portions(one, journal)) == [list(one.tasks)]
    assert measures_of(one) is one.protocol.measures


@pytest.mark.parametrize(("words", "count"), [("stop.look=2", 2), ("stop.until=3", 3), ("stop.until=99", 5)])
def test_a_sweep_says_how_far_a_cell_goes(tmp_path: Path, journal: Journal, words: str, count: int) -> None:
    one = cell(tmp_path, "dataset.limit=5", "stop.difference=true", words)
    assert [task.task_id for task in due(one, journal)] == [
        task.task_id for task in one.tasks if task.task_id in order(one)[:count]
    ]
    assert measures_of(one) is MEASURES
    portioned = [[task.task_id for task in each] for each in portions(one, journal)]
    assert portioned == [[each] for each in order(one)[:count]]


async def test_a_cell_ends_at_the_first_look_at_which_its_interval_is_narrow(tmp_path: Path, journal: Journal) -> None:
    size, passing = 10, [True, True, True]
    widths = [high - low for count in range(1, size + 1) for low, high in [mean_interval([3] * count, 3, size)]]
    assert widths[5] < widths[4]
    one = cell(tmp_path, "dataset.limit=10", f"stop.width={widths[5]}")
    assert len(due(one, journal)) == size
    await fill(one, journal, dict.fromkeys(order(one)[:5], passing))
    assert len(due(one, journal)) == size, "it is not known yet"
    await fill(one, journal, dict.fromkeys(order(one)[5:6], passing))
    assert {task.task_id for task in due(one, journal)} == {*order(one)[:6]}
    await fill(one, journal, dict.fromkeys(order(one)[6:8], passing))
    assert {task.task_id for task in due(one, journal)} == {*order(one)[:6]}, "more sessions change nothing"
    assert sum(len(each) for each in portions(one, journal)) == 6
    found = described(one, journal)
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
    assert [each.task_id for each in completed_in_order(one, journal, 4)] == [first]
    assert list(completed_in_order(one, journal, 0)) == []
    found = described(one, journal)
    assert found["ci"] == {"mst": None, "pass_at_1": [None] * 3}
    assert found["stopped"]["tasks"] == 4 and "all" in found["stopped"]["why"]


async def test_where_a_sweep_ended_a_cell_differences_were_decided(tmp_path: Path, journal: Journal) -> None:
    one = cell(
        tmp_path, "dataset.limit=4", "stop.difference=true", "stop.until=2", "stop.figure=pass_at_1", "stop.turn=1"
    )
    await fill(one, journal, {task: [True, task == order(one)[0], False] for task in order(one)[:2]})
    found = described(one, journal)
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
    assert pairs_of([base, other_setting]) == [(base, other_setting)]
    assert pairs_of([base, other_model]) == [(base, other_model)]
    assert pairs_of([base, other_tasks]) == pairs_of([base, other_seed]) == pairs_of([base, both]) == []
    assert pairs_of([base, other_setting, other_model, both]) == [
        (base, other_setting), (base, other_model), (other_setting, both), (other_model, both)
    ]  # fmt: skip


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
    assert still_undecided([a, b], {a.id: apart - 1, b.id: apart - 1}) == {a.id, b.id}
    assert still_undecided([a, b], {a.id: apart, b.id: apart}) == set()
    assert still_undecided([a, b], {a.id: apart - 1}) == set(), "the other has ended"
    assert still_undecided([b, a], {a.id: apart, b.id: apart}) == set()
    assert still_undecided([a], {a.id: 1}) == set()


async def test_cells_without_their_sessions_are_not_compared(tmp_path: Path) -> None:
    words = ("dataset.limit=6", "stop.difference=true")
    a, b = cell(tmp_path, *words), cell(tmp_path, "model=reference", *words)
    assert not has_come_to(a, 1) and not a.folder.exists()
    await in_folder(a, [True] * 3)
    await in_folder(b, [True] * 2)
    assert [has_come_to(a, look) for look in (2, 3, 4)] == [True, True, False]
    assert still_undecided([a, b], {a.id: 2, b.id: 2}) == {a.id, b.id}
    assert still_undecided([a, b], {a.id: 3, b.id: 3}) == set()
