"""What tables and figures need of a refinement cell's sessions, gathered in one pass."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from codechat.metrics import Final
from codechat.metrics.corrected import NO_CODE, Correction, Share
from codechat.metrics.judge_errors import JudgeLabels
from codechat.metrics.measures import interval_of, value_of
from codechat.metrics.statistics import Figure
from codechat.records import InstructionRecord, SessionRecord, TurnRecord
from codechat.report.data import Interval
from codechat.report.study import Study, Verdicts, resamples_of, sustained
from codechat.studies.refine.metrics import ByType


@dataclass
class Breaking:
    """How often an instruction met code that passed, and how often it broke it."""

    instruction: InstructionRecord
    met: int = 0
    broke: int = 0


class Slice(NamedTuple):
    """Judged changes of one turn and scope whose code passes, fails, or is not scored (None)."""

    turn: int
    scope: str
    passed: bool | None


@dataclass
class Outcomes(Verdicts):
    """One cell's completed sessions; `regression_at` and `adherence_at` hold a figure a turn, from turn 1 on.

    `judged` holds the changes judged adhered, of all judged ones, by turn, scope and whether the code passes.
    """

    regression: ByType[Figure] = field(default_factory=lambda: ByType.create(Figure))
    self_correction: ByType[Figure] = field(default_factory=lambda: ByType.create(Figure))
    regression_at: dict[int, Figure] = field(default_factory=lambda: defaultdict(Figure))
    adherence_at: dict[int, Figure] = field(default_factory=lambda: defaultdict(Figure))
    adherence: Figure = field(default_factory=Figure)
    judged: dict[Slice, Figure] = field(default_factory=lambda: defaultdict(Figure))
    instructions: dict[str, Breaking] = field(default_factory=dict)

    def judged_in(self, wanted: Callable[[Slice], bool]) -> dict[str, Figure]:
        """By scope the changes judged adhered, of all judged ones in some slices."""
        found: dict[str, Figure] = {}
        for place, figure in self.judged.items():
            if wanted(place):
                whole = found.setdefault(place.scope, Figure())
                for task, (hits, total) in figure.by_task.items():
                    whole.count(task, hits, total)
        return found

    @cached_property
    def correction(self) -> Correction | str | None:
        """What corrects the cell's adherence, or why nothing does; None if nobody asked for it."""
        labels, own = self.cell.labels, self.cell.source
        if not isinstance(labels, JudgeLabels):
            return labels
        tasks = {
            name: {task for part in judged.values() for task in part.by_task} for name, judged in labels.judged.items()
        }
        tasks[own] = tasks.get(own, set()) | {*self.tasks}
        named = {name: self.cell.dataset if name == own else name for name in tasks}
        return Correction(
            labels, {name: resamples_of(tuple(sorted(each)), named[name]) for name, each in tasks.items()}
        )

    def corrected(self, wanted: Callable[[Slice], bool]) -> Share | str | None:
        """The corrected adherence in some slices, or why there is none; None if nobody asked for it."""
        correction = self.correction
        if not isinstance(correction, Correction):
            return correction
        return correction.share(self.cell.source, self.judged_in(wanted))

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
            scope = turn.instruction.scope if turn.instruction is not None and turn.code is not None else NO_CODE
            own = self.judged[Slice(turn.turn, scope, turn.passed)]
            for figure in (self.adherence, self.adherence_at[turn.turn], own):
                figure.count(task, turn.adherence.verdict == "adhered")


RefineStudy = Study[Outcomes]
