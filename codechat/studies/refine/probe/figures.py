"""The figures of a probe: passing turns that differ, regressions that no test sees, a stricter MST and Pass@1.

By the stricter reading a turn passes if it passes its tests and differs from the reference on none of the fresh inputs.
A turn that was not probed, or on which no input was decided, counts by its tests alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from codechat.base.errors import UserError
from codechat.base.files import write_atomically
from codechat.base.records import SessionRecord
from codechat.report.comparison import resamples_of
from codechat.report.data import Column, Table, Value, columns_of, with_interval
from codechat.report.data import Interval as Ends
from codechat.report.formats import write_table
from codechat.report.metrics.statistics import Interval, TaskBootstrap, TaskRatio, sustained
from codechat.report.metrics.sums import size
from codechat.studies.refine.metrics import ByType
from codechat.studies.refine.probe.records import TURNS, ProbedTurn, read_probed

FIGURES = "probe.json"
PROBE = "probe"
"""The name of the results, and of their tables' group."""
ALL = "all together"  # in place of a dataset's name
SHOWN = 100  # differences on a page; the CSV file has all
NOTE = (
    "Fresh inputs: mutations of the tests' inputs that satisfy the task's contract. Stricter: a turn passes if it "
    "passes the tests and differs from the reference on none of them. A hidden regression passes the tests and "
    "differs, and a seen one fails the tests; both are shares of the answered follow-up turns whose code before passed "
    "and differed nowhere. Left out: passing turns without fresh inputs; undecided: with none that was decided. Both "
    "count by their tests alone. Intervals: 95 %, by task."
)
Records = Mapping[tuple[str, str, int], ProbedTurn]
Named = Sequence[tuple[tuple[Value, ...], "Probed"]]


class _State(NamedTuple):
    """A turn's code, or the code in force if it has none: `differs` is None if unknown. `kind` is the record's."""

    passed: bool | None
    differs: bool | None
    answered: bool
    kind: str | None

    @property
    def sound(self) -> bool:
        """Whether the code passes and surely differs nowhere."""
        return self.passed is True and self.differs is False


class Found(NamedTuple):
    """A passing turn that differs from the reference; `hidden` if the code before passed and did not."""

    probed: ProbedTurn
    kind: str | None
    hidden: bool


def records_in(folder: Path) -> Records:
    """The turns of a probe's folder by cell, session and turn. Raises `UserError` if there are none."""
    if not (folder / TURNS).is_file():
        raise UserError(f"{folder} holds no {TURNS}", "give the folder that codechat probe wrote to")
    return {(turn.cell_id, turn.session_id, turn.turn): turn for turn in read_probed(folder)}


@dataclass
class Probed:
    """One cell's completed sessions with the results of a probe; every figure is kept by task.

    `differs` counts the probed passing turns that differ from the reference, `changed` the ones that differ from the
    passing code before. `hidden` and `seen` have one denominator. `lost` is MST minus MST by the stricter reading.
    """

    dataset: str = ""
    model: str = ""
    cells: set[str] = field(default_factory=set)
    sessions: int = 0
    undecided: int = 0
    left_out: int = 0
    differs: ByType[TaskRatio] = field(default_factory=lambda: ByType.create(TaskRatio))
    differs_at: list[TaskRatio] = field(default_factory=list)
    changed: TaskRatio = field(default_factory=TaskRatio)
    hidden: ByType[TaskRatio] = field(default_factory=lambda: ByType.create(TaskRatio))
    seen: ByType[TaskRatio] = field(default_factory=lambda: ByType.create(TaskRatio))
    passing: list[TaskRatio] = field(default_factory=list)
    strict: list[TaskRatio] = field(default_factory=list)
    mst: TaskRatio = field(default_factory=TaskRatio)
    strict_mst: TaskRatio = field(default_factory=TaskRatio)
    lost: TaskRatio = field(default_factory=TaskRatio)
    found: list[Found] = field(default_factory=list)

    @classmethod
    def of(cls, sessions: Iterable[SessionRecord], records: Records) -> "Probed":
        """The figures of a cell, or of several cells that differ in the seed alone."""
        probed = cls()
        for session in sessions:
            probed.dataset, probed.model = session.dataset, session.model
            probed.cells.add(session.cell_id)
            if session.status == "completed":
                probed._add(session, records)
        return probed

    @classmethod
    def together(cls, parts: Sequence["Probed"]) -> "Probed":
        """The cells of several datasets as one, without their turns and types."""
        whole = cls(ALL, parts[0].model, set().union(*(part.cells for part in parts)))
        for name in ("sessions", "undecided", "left_out"):
            setattr(whole, name, sum(getattr(part, name) for part in parts))
        for part in parts:
            for mine, its in zip(whole._overall(), part._overall(), strict=True):
                for task, counts in its.by_task.items():
                    mine.count(f"{part.dataset}\n{task}", *counts)
        return whole

    def _overall(self) -> tuple[TaskRatio, ...]:
        rates = (self.differs.overall, self.changed, self.hidden.overall, self.seen.overall)
        return (*rates, self.mst, self.strict_mst, self.lost)

    def _add(self, session: SessionRecord, records: Records) -> None:
        self.sessions += 1
        states: list[_State] = []
        stands: _State | None = None  # after a roll-back, the code before
        for turn in session.turns:
            answered = session.has_answer(turn)
            record = records.get((session.cell_id, session.session_id, turn.turn)) if answered else None
            differs = stands.differs if stands and not answered else None
            if record is not None and record.reference.inputs:
                differs = record.reference.differs > 0
            now = _State(turn.passed, differs, answered, turn.kind)
            states.append(now)
            if answered and turn.passed:
                self._add_passing(session.task_id, turn.turn, now, record)
            if answered and turn.passed and differs and record is not None:
                self.found.append(Found(record, now.kind, stands is not None and stands.sound))
            if stands is not None:
                self._add_transition(session.task_id, stands, now)
            if not turn.rolled_back:
                stands = now
        self._add_lengths(session.task_id, states)

    def _add_passing(self, task: str, turn: int, now: _State, record: ProbedTurn | None) -> None:
        if record is None or now.differs is None:
            self.undecided += record is not None
            self.left_out += record is None
            return
        while len(self.differs_at) <= turn:
            self.differs_at.append(TaskRatio())
        for figure in (*self.differs.of(now.kind), self.differs_at[turn]):
            figure.count(task, now.differs)
        if record.before is not None and record.before.inputs:
            self.changed.count(task, record.before.differs > 0)

    def _add_transition(self, task: str, before: _State, now: _State) -> None:
        known = now.passed is False or (now.passed and now.differs is not None)
        if now.answered and before.sound and known:
            for figure in self.hidden.of(now.kind):
                figure.count(task, bool(now.passed and now.differs))
            for figure in self.seen.of(now.kind):
                figure.count(task, not now.passed)

    def _add_lengths(self, task: str, states: Sequence[_State]) -> None:
        verdicts = [state.passed for state in states]
        strict = [state.passed and not state.differs for state in states]
        for turn, both in enumerate(zip(verdicts, strict, strict=True)):
            while len(self.passing) <= turn:
                self.passing.append(TaskRatio())
                self.strict.append(TaskRatio())
            for figure, verdict in zip((self.passing[turn], self.strict[turn]), both, strict=True):
                if verdict is not None:
                    figure.count(task, verdict)
        lengths = sustained(verdicts), sustained(strict)
        self.mst.count(task, lengths[0])
        self.strict_mst.count(task, lengths[1])
        self.lost.count(task, lengths[0] - lengths[1])

    @cached_property
    def resamples(self) -> TaskBootstrap:
        """The resamples of the cell's tasks, as a report draws them for the dataset."""
        return resamples_of(tuple(sorted(self.mst.by_task)), self.dataset)

    def share(self, figure: TaskRatio) -> tuple[float | None, Ends | None]:
        """The value of a share with its 95 % interval, for a table."""
        return figure.rate, Ends.of(self.resamples.shown(figure))

    def mean(self, figure: TaskRatio) -> tuple[float | None, Ends | None]:
        """The value of a mean per session with its 95 % interval, for a table."""
        return figure.rate, Ends.of(self.resamples.interval(figure))


class Figure(BaseModel):
    """A share, or a mean per session: the value, its 95 % interval by task, and how many turns or sessions it is of."""

    value: float | None
    ci: Interval | None
    n: int


class ProbeFigures(BaseModel):
    """The figures of one cell, or of cells that differ in the seed alone. Lists have an entry per turn."""

    model_config = ConfigDict(extra="forbid")

    cells: list[str]
    name: str
    model: str
    dataset: str
    sessions: int
    probed: int
    undecided: int
    left_out: int
    differs: ByType[Figure]
    differs_at: list[Figure]
    differs_from_before: Figure
    hidden_regression: ByType[Figure]
    seen_regression: ByType[Figure]
    pass_at_1: list[Figure]
    strict_pass_at_1: list[Figure]
    mst: Figure
    strict_mst: Figure
    lost_turns: Figure


class ProbeReport(BaseModel):
    """The content of probe.json."""

    cells: list[ProbeFigures]


def figures_of(name: str, probed: Probed) -> ProbeFigures:
    """A cell's figures as values with intervals."""

    def share(figure: TaskRatio) -> Figure:
        value, ends = probed.share(figure)
        return Figure(value=value, ci=ends, n=size(figure))

    def mean(figure: TaskRatio) -> Figure:
        value, ends = probed.mean(figure)
        return Figure(value=value, ci=ends, n=size(figure))

    return ProbeFigures(
        cells=sorted(probed.cells), name=name, model=probed.model, dataset=probed.dataset, sessions=probed.sessions,
        probed=size(probed.differs.overall), undecided=probed.undecided, left_out=probed.left_out,
        differs=probed.differs.map(share), differs_at=[share(each) for each in probed.differs_at],
        differs_from_before=share(probed.changed),
        hidden_regression=probed.hidden.map(share), seen_regression=probed.seen.map(share),
        pass_at_1=[share(each) for each in probed.passing], strict_pass_at_1=[share(each) for each in probed.strict],
        mst=mean(probed.mst), strict_mst=mean(probed.strict_mst), lost_turns=mean(probed.lost),
    )  # fmt: skip


def write_figures(cells: Mapping[str, Iterable[SessionRecord]], out: Path) -> tuple[ProbeReport, list[Table]]:
    """Write `probe.json` and the tables of the turns in `out`. `cells` has the sessions by a name for readers, such as
    the model and the dataset. Returns the figures, and the tables, the first of which is for the terminal."""
    records = records_in(out)
    found = {name: Probed.of(sessions, records) for name, sessions in cells.items()}
    report = ProbeReport(cells=[figures_of(*item) for item in found.items()])
    write_atomically(out / FIGURES, report.model_dump_json(indent=1) + "\n")
    columns = columns_of(cell="Cell")
    tables = list(tables_of(columns, [((name,), probed) for name, probed in found.items()]))
    for table in tables:
        write_table(table, out / "tables")
    return report, tables


def tables_of(naming: Sequence[Column], named: Named, whole: Named = ()) -> Iterator[Table]:
    """All tables. The first has a row for each of `named` and `whole`, the rest for each of `named`."""
    counts = {"probed": "Probed turns", "undecided": "Undecided", "left_out": "Left out"}
    rates = {
        "differs": "Differ",
        "changed": "Differ from before",
        "hidden": "Hidden regression",
        "seen": "Seen regression",
    }
    lengths = {"mst": "MST", "strict_mst": "Stricter MST", "lost": "MST lost"}
    shares = (*(each for item in rates.items() for each in with_interval(*item, ".3f")),)
    means = (*(each for item in lengths.items() for each in with_interval(*item, ".3f")),)
    yield _table(
        "probe", "Passing turns on fresh inputs",
        (*naming, *columns_of("d", **counts), *shares, Column("before_n", "Equal before", "d"), *means),
        [(*names, *_overview(probed)) for names, probed in (*named, *whole)],
    )  # fmt: skip
    of = columns_of("d", differs_n="Probed turns"), columns_of("d", before_n="Equal before")
    yield _table(
        "probe_types", "Passing turns on fresh inputs, by type of instruction",
        (*naming, *columns_of(breakdown="Breakdown", type="Type"), *shares[:2], *of[0], *shares[4:], *of[1]),
        [(*names, *row) for names, probed in named for row in _types(probed)],
    )  # fmt: skip
    curves = {"pass_at_1": "Pass@1", "strict": "Stricter", "differs": "Differ"}
    yield _table(
        "probe_turns", "Pass@1 by the tests and by fresh inputs too",
        (*naming, Column("turn", "Turn", "d"), *(x for c in curves.items() for x in with_interval(*c, ".3f")), *of[0]),
        [(*names, *row) for names, probed in named for row in _turns(probed)],
    )  # fmt: skip
    where = {"task": "Task", "session": "Session"}
    what = {"scope": "Scope", "change": "Change", "hidden": "Hidden regression", "input": "Input",
            "expected": "Expected", "actual": "Actual"}  # fmt: skip
    differing = columns_of("d", differs="Differs on", inputs="of inputs")
    yield _table(
        "probe_differences", "The smallest fresh input on which a passing turn differs",
        (*naming, *columns_of(**where), Column("turn", "Turn", "d"), *columns_of(**what), *differing),
        [(*names, *_difference(each)) for names, probed in named for each in _shown_first(probed)], SHOWN,
    )  # fmt: skip


def _table(
    name: str, title: str, columns: Sequence[Column], rows: Sequence[tuple[Value, ...]], most: int | None = None
) -> Table:
    return Table(name, title, tuple(columns), tuple(rows), NOTE, PROBE, most=most)


def _overview(probed: Probed) -> Iterator[Value]:
    yield from (size(probed.differs.overall), probed.undecided, probed.left_out)
    for figure in (probed.differs.overall, probed.changed, probed.hidden.overall, probed.seen.overall):
        yield from probed.share(figure)
    yield size(probed.hidden.overall)
    for figure in (probed.mst, probed.strict_mst, probed.lost):
        yield from probed.mean(figure)


def _types(probed: Probed) -> Iterator[tuple[Value, ...]]:
    figures = zip(probed.differs.items(), probed.hidden.items(), probed.seen.items(), strict=True)
    for (place, differs), (_, hidden), (_, seen) in figures:
        breakdown, _, kind = place.removeprefix("by_").partition(".")
        regressions = (*probed.share(hidden), *probed.share(seen), size(hidden))
        yield (breakdown, kind or "all", *probed.share(differs), size(differs), *regressions)


def _turns(probed: Probed) -> Iterator[tuple[Value, ...]]:
    for turn, (passing, strict) in enumerate(zip(probed.passing, probed.strict, strict=True)):
        differs = probed.differs_at[turn] if turn < len(probed.differs_at) else TaskRatio()
        yield (turn, *probed.share(passing), *probed.share(strict), *probed.share(differs), size(differs))


def _shown_first(probed: Probed) -> list[Found]:
    """The differences, hidden regressions first: the others are the same slips at later turns, or at turn 0."""
    return sorted(probed.found, key=lambda found: not found.hidden)


def _difference(found: Found) -> Iterator[Value]:
    turn, against = found.probed, found.probed.reference
    yield from (turn.task_id, turn.session_id, turn.turn)
    yield from (found.kind or "/").split("/")
    yield "yes" if found.hidden else "no"
    shown = against.smallest
    yield from ((shown.input, shown.expected, shown.actual) if shown else (None, None, None))
    yield from (against.differs, against.inputs)
