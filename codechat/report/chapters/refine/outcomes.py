"""What tables and figures need of a refinement cell's sessions, gathered in one pass."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from codechat.metrics import Final
from codechat.metrics.measures import interval_of, value_of
from codechat.metrics.refine import ByType
from codechat.metrics.statistics import Figure
from codechat.records import InstructionRecord, SessionRecord, TurnRecord
from codechat.report.data import Interval
from codechat.report.study import Study, Verdicts, sustained


@dataclass
class Breaking:
    """How often an instruction met code that passed, and how often it broke it."""

    instruction: InstructionRecord
    met: int = 0
    broke: int = 0


@dataclass
class Outcomes(Verdicts):
    """One cell's completed sessions; `regression_at` and `adherence_at` hold a figure a turn, from turn 1 on."""

    regression: ByType[Figure] = field(default_factory=lambda: ByType.create(Figure))
    self_correction: ByType[Figure] = field(default_factory=lambda: ByType.create(Figure))
    regression_at: dict[int, Figure] = field(default_factory=lambda: defaultdict(Figure))
    adherence_at: dict[int, Figure] = field(default_factory=lambda: defaultdict(Figure))
    adherence: Figure = field(default_factory=Figure)
    instructions: dict[str, Breaking] = field(default_factory=dict)

    @property
    def sustained(self) -> list[int]:
        """Per session, the passing turns from turn 0 on."""
        return [sustained(verdicts) for verdicts in self.passed]

    def figure(self, values: Sequence[int]) -> Figure:
        """A mean over sessions, kept apart by task. `values` holds one number a session."""
        figure = Figure()
        for task, value in zip(self.tasks, values, strict=True):
            figure.count(task, value)
        return figure

    def surviving(self, turn: int) -> Figure:
        """Sessions that have passed at every turn up to this one."""
        return self.figure([length > turn for length in self.sustained])

    def measured(self, place: str) -> tuple[float | None, Interval | None]:
        """A value of metrics.json with its interval; `place` joins its keys by dots."""
        measure = Final(place, "")
        return value_of(self.cell.metrics, measure), Interval.of(interval_of(self.cell.metrics, measure))

    def counted(self, figure: Figure) -> tuple[float | None, Interval | None]:
        """The rate of one of the cell's figures with its 95 % interval, resampled by task."""
        return figure.rate, Interval.of(self.resamples.interval(figure))

    def add(self, session: SessionRecord) -> None:
        """Count a completed session."""
        super().add(session)
        for before, turn in pairwise(session.turns):
            if session.has_answer(turn):
                self._add_transition(session.task_id, before, turn)
                self._add_adherence(session.task_id, turn)

    def _add_transition(self, task: str, before: TurnRecord, turn: TurnRecord) -> None:
        if before.passed is None or turn.passed is None:
            return
        figures = self.regression if before.passed else self.self_correction
        asked = turn.instruction
        for figure in figures.of(f"{asked.scope}/{asked.change}" if asked else None):
            figure.count(task, turn.passed is not before.passed)
        if before.passed:
            self.regression_at[turn.turn].count(task, not turn.passed)
            if asked is not None:
                breaking = self.instructions.setdefault(asked.id, Breaking(asked))
                breaking.met += 1
                breaking.broke += not turn.passed

    def _add_adherence(self, task: str, turn: TurnRecord) -> None:
        if turn.adherence is not None and turn.adherence.verdict != "undecided":
            for figure in (self.adherence, self.adherence_at[turn.turn]):
                figure.count(task, turn.adherence.verdict == "adhered")


RefineStudy = Study[Outcomes]
