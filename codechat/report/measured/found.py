"""What tables and figures of any protocol need of a cell's sessions: which turns passed, task by task."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from codechat.metrics import Measures
from codechat.report.cells import LoadedCell, measures_of
from codechat.report.outcomes import counted
from codechat.report.study import Cells


@dataclass
class Measured:
    """One cell's completed sessions, reduced to verdicts (see `study.Found`); all else is in the cell's metrics."""

    cell: LoadedCell
    tasks: list[str] = field(default_factory=list)
    passed: list[tuple[bool, ...]] = field(default_factory=list)
    overflowed: int = 0

    @property
    def length(self) -> int:
        """N: the most turns of a session, turn 0 included."""
        return self.cell.turns


def gather_measured(cell: LoadedCell) -> Measured:
    """Read a cell once. Raises `UserError` where its records and its metrics don't belong together."""
    found = Measured(cell)
    for session in counted(cell):
        found.tasks.append(session.task_id)
        found.passed.append(tuple(turn.passed for turn in session.turns))
        found.overflowed += session.ended == "context_overflow"
    return found


@dataclass(frozen=True)
class Group:
    """The cells of one protocol, and what any of them says that it measures."""

    measures: Measures
    study: Cells[Measured]


def groups_of(cells: Sequence[LoadedCell]) -> list[Group]:
    """The cells by protocol, each protocol where its first cell stands; cells without a completed session left out."""
    groups: dict[str, list[Measured]] = {}
    for cell in cells:
        found = gather_measured(cell)
        if found.tasks:
            groups.setdefault(cell.protocol, []).append(found)
    return [Group(measures_of([found.cell for found in group]), Cells(tuple(group))) for group in groups.values()]
