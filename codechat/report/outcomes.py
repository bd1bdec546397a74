"""What tables and figures need of a cell's sessions, gathered in one pass so that no dialogue stays in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise, takewhile

from codechat.errors import UserError
from codechat.files import content_hash
from codechat.metrics.refine import ByType
from codechat.metrics.statistics import Figure, TaskBootstrap
from codechat.records import InstructionRecord, SessionRecord, TurnRecord
from codechat.report.cells import LoadedCell
from codechat.report.data import Interval
from codechat.report.study import Cells


@dataclass
class Breaking:
    """How often an instruction met code that passed, and how often it broke it."""

    instruction: InstructionRecord
    met: int = 0
    broke: int = 0


@dataclass
class Outcomes:
    """One cell's completed sessions, reduced to verdicts.

    `tasks` and `passed` hold a session each, `passed` with one verdict a turn; `regression_at` and `adherence_at` start
    at turn 1; `overflowed` counts sessions that outgrew the model's context.
    """

    cell: LoadedCell
    tasks: list[str] = field(default_factory=list)
    passed: list[tuple[bool, ...]] = field(default_factory=list)
    regression: ByType[Figure] = field(default_factory=lambda: ByType.filled(Figure))
    self_correction: ByType[Figure] = field(default_factory=lambda: ByType.filled(Figure))
    regression_at: list[Figure] = field(default_factory=list)
    adherence_at: list[Figure] = field(default_factory=list)
    adherence: Figure = field(default_factory=Figure)
    instructions: dict[str, Breaking] = field(default_factory=dict)
    overflowed: int = 0

    @property
    def length(self) -> int:
        """N: the turns of a session, turn 0 included."""
        return len(self.cell.metrics["pass_at_1"])

    @property
    def sustained(self) -> list[int]:
        """Per session, the passing turns from turn 0 on."""
        return [sum(takewhile(bool, verdicts)) for verdicts in self.passed]

    def figure(self, values: Sequence[int]) -> Figure:
        """A mean over sessions, kept apart by task. `values` holds one number a session."""
        figure = Figure()
        for task, value in zip(self.tasks, values, strict=True):
            figure.count(task, value)
        return figure

    def passing(self, turn: int) -> Figure:
        """Sessions that pass at a turn, of those that have it."""
        figure = Figure()
        for task, verdicts in zip(self.tasks, self.passed, strict=True):
            if turn < len(verdicts):
                figure.count(task, verdicts[turn])
        return figure

    def surviving(self, turn: int) -> Figure:
        """Sessions that have passed at every turn up to this one."""
        return self.figure([length > turn for length in self.sustained])

    def interval(self, figure: Figure) -> Interval | None:
        """The 95 % interval of one of the cell's figures, resampled by task."""
        return as_interval(self.resamples.interval(figure))

    @property
    def resamples(self) -> TaskBootstrap:
        """The cell's resamples: cells over the same tasks share theirs, two datasets never do."""
        return resamples_of(tuple(sorted(set(self.tasks))), self.cell.dataset)


@lru_cache(maxsize=8)
def resamples_of(tasks: tuple[str, ...], dataset: str) -> TaskBootstrap:
    """Resamples of these tasks. Figures of two cells taken from the same resamples are paired by task."""
    return TaskBootstrap(tasks, int(content_hash(dataset)[:12], 16))


def as_interval(ends: Sequence[float] | None) -> Interval | None:
    """An interval as metrics.json holds it, or None."""
    return None if ends is None else Interval(*ends)


def gather(cell: LoadedCell) -> Outcomes:
    """Read a refinement cell once. Raises `UserError` where its records and its metrics don't belong together."""
    found = Outcomes(cell)
    found.regression_at = [Figure() for _ in range(1, found.length)]
    found.adherence_at = [Figure() for _ in range(1, found.length)]
    for session in counted(cell):
        _add(found, session)
    return found


def counted(cell: LoadedCell) -> Iterator[SessionRecord]:
    """The completed sessions. Raises `UserError`, at the end, where metrics.json counts other numbers of them."""
    sessions = completed = 0
    for session in cell.sessions():
        sessions += 1
        if session.status == "completed":
            completed += 1
            yield session
    if (sessions, completed) != (cell.metrics["sessions"], cell.metrics["completed"]):
        raise UserError(
            f"{cell.folder}: metrics.json counts {cell.metrics['sessions']} sessions, sessions.jsonl holds {sessions}",
            "run the cell again: it calls no model for what is there, and writes both anew",
        )


def _add(found: Outcomes, session: SessionRecord) -> None:
    found.tasks.append(session.task_id)
    found.passed.append(tuple(turn.passed for turn in session.turns))
    found.overflowed += session.ended == "context_overflow"
    for before, turn in pairwise(session.turns):
        if session.answered(turn):
            _add_transition(found, session.task_id, before, turn)
            _add_adherence(found, session.task_id, turn)


def _add_transition(found: Outcomes, task: str, before: TurnRecord, turn: TurnRecord) -> None:
    figures = found.regression if before.passed else found.self_correction
    asked = turn.instruction
    for figure in figures.of(f"{asked.scope}/{asked.change}" if asked else None):
        figure.count(task, turn.passed is not before.passed)
    if before.passed:
        found.regression_at[turn.turn - 1].count(task, not turn.passed)
        if asked is not None:
            breaking = found.instructions.setdefault(asked.id, Breaking(asked))
            breaking.met += 1
            breaking.broke += not turn.passed


def _add_adherence(found: Outcomes, task: str, turn: TurnRecord) -> None:
    if turn.adherence is not None and turn.adherence.verdict != "undecided":
        for figure in (found.adherence, found.adherence_at[turn.turn - 1]):
            figure.count(task, turn.adherence.verdict == "adhered")


Study = Cells[Outcomes]
