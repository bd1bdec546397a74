"""Cells that end before their last task: which tasks they hold, by what their journals have.

The tasks of such a cell are run in a random order, in `LOOKS` portions; after each portion the interval of its figure
is looked at (`codechat.report.metrics.sequences`). A cell holds the sessions up to the first look at which it is known
enough, whichever others its journal has, so that its records hang on nothing but the replies.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from codechat.base.errors import UserError
from codechat.base.records import SessionRecord
from codechat.datasets.tasks import Task
from codechat.report.metrics import Measures, Series
from codechat.report.metrics.measures import Final
from codechat.report.metrics.outline import SessionOutline, outlines_of
from codechat.report.metrics.sequences import (
    ALPHA,
    STOPPED,
    difference_interval,
    in_order,
    mean_interval,
    passes_at,
    sustained_turns,
)
from codechat.run.cell import Cell, session_id
from codechat.run.journal import Journal

LOOKS = 20
"""Into so many portions a cell's tasks are divided: the next one begins when all sessions of the last have ended."""

MEASURES = Measures(
    protocol=STOPPED,
    title="Stopped when known: cells that ended before their last task",
    series=(Series("pass_at_1", "Pass@1", help="share of sessions whose code passes the whole test suite"),),
    finals=(Final("mst", "MST", unit="number", help="mean of the passing turns from turn 0 on"),),
    passed="the code passes the whole test suite",
)
"""What such a cell's metrics.json holds that may be read with its intervals: it stands in a chapter of its own."""


def measures_of(cell: Cell) -> Measures:
    """What describes the cell's metrics.json: its protocol, or for a cell that may end early this module."""
    return MEASURES if cell.config.stop.is_set else cell.protocol.measures


def looks(size: int) -> list[int]:
    """After how many tasks of `size` a cell is looked at."""
    return sorted({math.ceil(size * look / LOOKS) for look in range(1, LOOKS + 1)})


def check_stop(cell: Cell) -> None:
    """Raises `UserError` if the cell cannot end as its options ask."""
    stop = cell.config.stop
    if not stop.is_set:
        return
    if not cell.protocol.measures.have("mst", "pass_at_1"):
        raise UserError(f"stop.* needs MST and Pass@1, and protocol={cell.protocol_name} has none", "leave it out")
    if stop.turn is not None and stop.turn >= (length := _length(cell)):
        raise UserError(f"stop.turn={stop.turn}: the turns are 0 to {length - 1}", "choose one of them")
    if cell.config.shard.count is not None:
        raise UserError("a shard does not see the sessions of the others", "leave out either shard.* or stop.*")


def due(cell: Cell, journal: Journal) -> tuple[Task, ...]:
    """The tasks of a cell as far as it has to go, by the sessions that its journal has; in dataset order."""
    stop, size = cell.config.stop, len(cell.tasks)
    if not stop.is_set:
        return cell.tasks
    end = min(stop.look or stop.until or size, size)
    if stop.width is not None:
        done = list(completed_in_order(cell, journal, end))
        narrow = (look for look in looks(size) if look <= len(done) and _width(cell, done[:look]) <= stop.width)
        end = next(narrow, end)
    chosen = {*in_order((task.task_id for task in cell.tasks), cell.config.seed)[:end]}
    return tuple(task for task in cell.tasks if task.task_id in chosen)


def portions(cell: Cell, journal: Journal) -> Iterator[list[Task]]:
    """The tasks to be run, portion by portion, until the cell is known enough; one portion if it is not to be known."""
    if not cell.config.stop.is_set:
        yield list(cell.tasks)
        return
    tasks, begun = {task.task_id: task for task in cell.tasks}, 0
    order = in_order(tasks, cell.config.seed)
    for look in looks(len(order)):
        end = min(look, len(due(cell, journal)))
        if end <= begun:
            return
        yield [tasks[each] for each in order[begun:end]]
        begun = end


def completed_in_order(cell: Cell, journal: Journal, end: int) -> Iterator[SessionOutline]:
    """The sessions of a cell in the order in which its tasks are run, up to the first that is not completed."""
    for task in in_order((task.task_id for task in cell.tasks), cell.config.seed)[:end]:
        record = journal.outline(session_id(cell.id, task), completed=True)
        if record is None:
            return
        yield outlines_of([SessionRecord.model_validate_json(record)]).completed[0]


def described(cell: Cell, journal: Journal) -> dict[str, Any]:
    """What metrics.json says of a cell that may end early: where it ended, and its intervals in place of others.

    Intervals by resampling do not hold where the data decide when to end. None stands if a session is missing.
    """
    stop, size = cell.config.stop, len(cell.tasks)
    held, turns = len(due(cell, journal)), _length(cell)
    done = list(completed_in_order(cell, journal, held))
    ends: dict[str, Any] = {"mst": None, "pass_at_1": [None] * turns}
    if len(done) == held:
        sustained = [sustained_turns(session.turns) for session in done]
        passing = [[passes_at(session.turns, turn) for session in done] for turn in range(turns)]
        ends = {
            "mst": mean_interval(sustained, turns, size),
            "pass_at_1": [mean_interval(each, 1, size) for each in passing],
        }
    by = "the paired differences are decided" if held == stop.until else "the interval is narrow enough"
    why = by if held < size else "all tasks were run"
    about = {"tasks": held, "of": size, "figure": stop.figure, "turn": stop.turn, "turns": turns, "why": why}
    return {"ci": ends, STOPPED: about}


def still_undecided(cells: Sequence[Cell], at: Mapping[str, int]) -> set[str]:
    """The ids of the cells that have a difference which is not decided, of those that go on.

    `cells` are all of a sweep that are compared, `at` has the number of tasks that each of those going on has by now.
    All differences together are wrong in at most α of all studies: α is divided by their number (Bonferroni).
    """
    compared = pairs_of(cells)
    values = {cell.id: _values_at(cell, at[cell.id]) for cell in cells if cell.id in at}
    found = set[str]()
    for a, b in compared:
        mine, its = values.get(a.id, []), values.get(b.id, [])
        if min(len(mine), len(its)) < at.get(a.id, 1):  # one has ended, is known by its own interval, or lacks sessions
            continue
        low, high = difference_interval(mine, its, _top(a), len(a.tasks), ALPHA / len(compared))
        if low <= 0 <= high:
            found |= {a.id, b.id}
    return found


def pairs_of(cells: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """The cells whose sessions are paired by task: two models under one setting, or one model under two."""
    return [pair for pair in combinations(cells, 2) if _comparable(*(_setting(cell) for cell in pair))]


def _setting(cell: Cell) -> Mapping[str, Any]:
    content = {"content": cell.dataset.content_hash, "tasks": [task.task_id for task in cell.tasks]}
    return {**cell.config.identity(), "dataset": content}


def _comparable(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two cells have the same tasks in the same order, and the same model or the same setting."""
    same = all(a.get(name) == b.get(name) for name in ("dataset", "seed", "stop"))
    rest = [{name: value for name, value in each.items() if name != "model"} for each in (a, b)]
    return same and (a["model"] == b["model"] or rest[0] == rest[1])


def has_come_to(cell: Cell, look: int) -> bool:
    """Whether a cell's journal has all sessions up to a look, or up to where the cell ended before."""
    path = cell.folder / "journal.db"
    if not path.exists():
        return False
    with contextlib.closing(Journal(path)) as journal:
        end = min(look, len(due(cell, journal)))
        return len(list(completed_in_order(cell, journal, end))) == end


def _values_at(cell: Cell, look: int) -> list[int]:
    """The parts of a cell's sessions in its figure, in the order of tasks, up to a look or to where the cell ended."""
    with contextlib.closing(Journal(cell.folder / "journal.db")) as journal:
        end = min(look, len(due(cell, journal)))
        return _values(cell, list(completed_in_order(cell, journal, end)))


def _values(cell: Cell, sessions: Sequence[SessionOutline]) -> list[int]:
    stop = cell.config.stop
    if stop.figure == "mst":
        return [sustained_turns(session.turns) for session in sessions]
    turn = _length(cell) - 1 if stop.turn is None else stop.turn
    return [passes_at(session.turns, turn) for session in sessions]


def _top(cell: Cell) -> int:
    """The most that a session adds to the figure."""
    return _length(cell) if cell.config.stop.figure == "mst" else 1


def _length(cell: Cell) -> int:
    """The turns of a session, turn 0 included."""
    return max(map(cell.protocol.turns, cell.tasks))


def _width(cell: Cell, sessions: Sequence[SessionOutline]) -> float:
    low, high = mean_interval(_values(cell, sessions), _top(cell), len(cell.tasks))
    return high - low
