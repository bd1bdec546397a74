"""Cells that end before their last task (`stop.*`), once their figure is known well enough.

Tasks run in a random order, and the rule is checked at `CHECKPOINTS` evenly spaced numbers of tasks. A cell keeps only
the sessions up to the first checkpoint that met the rule, even if the journal holds more: its records depend on the
replies alone. Intervals: `codechat.report.metrics.statistics`.
"""

import contextlib
import math
from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from typing import Any

from codechat.base.errors import UserError
from codechat.base.records import SessionRecord
from codechat.datasets.tasks import Task
from codechat.report.metrics import Final, Measures, Series
from codechat.report.metrics.statistics import ALPHA, STOPPED, difference_interval, in_order, mean_interval, sustained
from codechat.run.cell import Cell, build_cell, session_id
from codechat.run.journal import Journal
from codechat.run.settings.compose import Composed, compose, key_of

CHECKPOINTS = 20
MEASURES = Measures(
    STOPPED,
    "Stopped when known: cells that ended before their last task",
    (Series("pass_at_1", "Pass@1", help="share of sessions whose code passes the whole test suite"),),
    (
        Final("mst", "MST", unit="number", help="mean of the passing turns from turn 0 on"),
        Final("tasks", "Tasks run", f"{STOPPED}.tasks", "count", None),
        Final("of", "of tasks in all", f"{STOPPED}.of", "count", None),
    ),
    passed="the code passes the whole test suite",
)


def measures_of(cell: Cell) -> Measures:
    """The measures of the cell's protocol; with `stop.*` only measures with an interval."""
    return MEASURES if cell.config.stop.is_set else cell.protocol.measures


def checkpoints(size: int) -> list[int]:
    """The numbers of tasks, of `size`, at which the rule is checked."""
    return [math.ceil(size * step / CHECKPOINTS) for step in range(1, CHECKPOINTS + 1)]


def check_stop(cell: Cell) -> None:
    """Raises `UserError` if the cell cannot end as its options ask."""
    if not (stop := cell.config.stop).is_set:
        return
    turns = max(map(cell.protocol.turns, cell.tasks))
    if not cell.protocol.measures.have("mst", "pass_at_1"):
        raise UserError(f"stop.* needs MST and Pass@1, and protocol={cell.protocol_name} has none", "leave it out")
    if stop.turn is not None and stop.turn >= turns:
        raise UserError(f"stop.turn={stop.turn}: the turns are 0 to {turns - 1}", "choose one of them")
    if cell.config.shard.count is not None:
        raise UserError("a shard does not see the sessions of the others", "leave out either shard.* or stop.*")
    if stop.difference and stop.until is None and not cell.config.dry_run:
        raise UserError("stop.difference=true compares the cells of a sweep", "put -m in front, and vary the model")


class Progress:
    """The sessions of a cell with `stop.*` so far, and the number of tasks that it needs, at most `limit`.

    `rows` are in the order of the tasks, up to the first incomplete session: its sustained turns, then 1 for each turn
    whose code passes, else 0.
    """

    def __init__(self, cell: Cell, journal: Journal | None, limit: int | None = None) -> None:
        stop, self.size, self.turns = cell.config.stop, len(cell.tasks), max(map(cell.protocol.turns, cell.tasks))
        self.order = in_order((task.task_id for task in cell.tasks), cell.config.seed)
        self.column = 0 if stop.figure == "mst" else -1 if stop.turn is None else 1 + stop.turn
        self.needed, self.rows = min(limit or self.size, stop.until or self.size, self.size), list[list[int]]()
        for task in self.order[: self.needed]:
            outline = journal.outline(session_id(cell.id, task), completed=True) if journal else None
            if outline is None:
                break
            passed = [turn.passed for turn in SessionRecord.model_validate_json(outline).turns]
            self.rows.append([sustained(passed), *(int(passed[at : at + 1] == [True]) for at in range(self.turns))])
        if stop.width is not None:
            ends = ((n, *self.interval(self.column, n)) for n in checkpoints(self.size) if n <= len(self.rows))
            self.needed = next((n for n, low, high in ends if high - low <= stop.width), self.needed)

    def interval(self, column: int, count: int) -> tuple[float, float]:
        """The interval of a column's mean, by the first `count` rows."""
        return mean_interval([row[column] for row in self.rows[:count]], 1 if column else self.turns, self.size)

    def undecided(self, other: "Progress", pairs: int) -> bool:
        """Whether the difference of two unfinished cells has no certain sign; the pairs share α (Bonferroni)."""
        ours, theirs = ([row[self.column] for row in each.rows] for each in (self, other))
        low, high = difference_interval(ours, theirs, 1 if self.column else self.turns, self.size, ALPHA / pairs)
        return low <= 0 <= high and self.needed == other.needed


def tasks_needed(cell: Cell, journal: Journal, limit: int | None = None) -> tuple[Task, ...]:
    """The tasks that a cell has to run by the sessions in its journal, in dataset order."""
    if not cell.config.stop.is_set:
        return cell.tasks
    progress = Progress(cell, journal, limit)
    chosen = {*progress.order[: progress.needed]}
    return tuple(task for task in cell.tasks if task.task_id in chosen)


def stop_report(cell: Cell, journal: Journal) -> dict[str, Any]:
    """The entries in metrics.json of a cell with `stop.*`; intervals are None if a session is missing."""
    if not (stop := cell.config.stop).is_set:
        return {}
    progress = Progress(cell, journal)
    needed, size, turns = progress.needed, progress.size, progress.turns
    whole = len(progress.rows) >= needed
    mst, *passing = (progress.interval(column, needed) if whole else None for column in range(turns + 1))
    why = "checkpoint of the paired differences" if needed == stop.until else "the interval is narrow enough"
    why = why if needed < size else "all tasks were run"
    about = {"tasks": needed, "of": size, "figure": stop.figure, "turn": stop.turn, "turns": turns, "why": why}
    return {"ci": {"mst": mst, "pass_at_1": passing}, STOPPED: about}


def checkpoint_runs(cells: Sequence[Composed]) -> Iterator[list[Composed]]:
    """The cells of a sweep to run together: at each checkpoint the undecided cells with `stop.difference`, then all.

    Raises `UserError` for a cell with nothing to compare it with.
    """
    runs = not any(each.config.dry_run for each in cells)
    compared = {n: build_cell(each) for n, each in enumerate(cells) if runs and each.config.stop.difference}
    pairs = [(a, b) for a, b in combinations(compared, 2) if comparable(compared[a], compared[b])]
    until, going = dict.fromkeys(compared, 0), {*chain(*pairs)}
    if going != compared.keys():
        raise UserError("stop.difference=true needs two cells of the same tasks", "vary the model, or one setting")
    for step in range(CHECKPOINTS):
        until |= {n: checkpoints(len(compared[n].tasks))[step] for n in going}
        found = {n: progress_at(compared[n], until[n]) for n in sorted(going)}
        if behind := [n for n, so_far in found.items() if len(so_far.rows) < so_far.needed]:
            words = {n: [word for word in cells[n].words if not key_of(word).startswith("tracking")] for n in behind}
            yield [compose([*words[n], "tracking=none", f"stop.until={until[n]}"]) for n in behind]
            found = {n: progress_at(compared[n], until[n]) for n in found}
        going = {*chain(*((a, b) for a, b in pairs if {a, b} <= going and found[a].undecided(found[b], len(pairs))))}
    yield [compose([*each.words, f"stop.until={until[n]}"]) if n in until else each for n, each in enumerate(cells)]


def comparable(a: Cell, b: Cell) -> bool:
    """Whether the sessions of two cells are paired by task: two models in one setting, or one model in two."""
    tasks = ([cell.dataset.content_hash, *(task.task_id for task in cell.tasks)] for cell in (a, b))
    one, other = ({**cell.config.identity(), "tasks": next(tasks)} for cell in (a, b))
    differ = {name for name in one | other if one.get(name) != other.get(name)}
    return not differ & {"dataset", "tasks", "seed", "stop"} and (differ == {"model"} or "model" not in differ)


def progress_at(cell: Cell, checkpoint: int) -> Progress:
    """The progress up to a checkpoint, by the journal in the cell's folder."""
    path = cell.folder / "journal.db"
    with contextlib.closing(Journal(path)) if path.exists() else contextlib.nullcontext() as journal:
        return Progress(cell, journal, checkpoint)
