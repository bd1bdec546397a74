"""The outcomes of refinement's cells, several models as one, and the paper's means over models (Figs. 4, 5 and 7)."""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

from codechat.base.domain import CHANGES, SCOPES
from codechat.base.records import InstructionRecord, SessionRecord, TurnRecord
from codechat.report import drawing
from codechat.report.comparison import Comparison, LoadedCell, SessionVerdicts, originals_of, resamples_of
from codechat.report.data import Column, Drawing, Interval, Table, Value, columns_of, with_interval
from codechat.report.drawing import EDGE, SPREAD, Look, bars, from_zero, name_groups, panels, spread, strips
from codechat.report.generic.overview import rivals_of
from codechat.report.metrics import Final, statistics
from codechat.report.metrics.measures import interval_of, value_of
from codechat.report.metrics.outline import transitions
from codechat.report.metrics.statistics import TaskBootstrap, TaskRatio, mean_of, mean_of_all, percent_change
from codechat.report.metrics.sums import size
from codechat.studies.refine.chapter.powered import NO_CODE
from codechat.studies.refine.metrics import ByType

MEAN = "mean of all"  # in place of a dataset's name
FEWEST = 2  # models that make a mean
Measured = tuple[float | None, Interval | None]
GROUP = "models"
ALL = "all together"  # in place of a dataset's name: turns are pooled, not averaged
RATES = {"regression": "Regression", "self_correction": "Self-correction"}
OVERALL = ("overall", "all")
TYPES = (OVERALL, *(("scope", name) for name in SCOPES), *(("change", name) for name in CHANGES))
COUNTS = ("pass_adhered", "pass_violated", "fail_adhered", "fail_violated")
MEANS_NOTE = (
    "Means are unweighted, over the models and then over the datasets; a model without such a turn is left out of the "
    "mean. Intervals: 95 %, resampled by task for all models alike; the models themselves are not resampled."
)
Rows = Iterator[tuple[Value, ...]]
MOST_SETUPS = 4  # of a figure
MOST_LETTERS = 30  # of names that stand upright side by side below a narrow panel
WHOLE: dict[str, Any] = {
    "color": "#111111", "marker": "D", "linestyle": "none", "label": "all models together", "markersize": 8,
    "elinewidth": 1.8, "capsize": 4, "zorder": 4, **EDGE,
}  # fmt: skip
PARTS: dict[str, Sequence[str]] = {"by model": (), "by scope": SCOPES, "by change": CHANGES}
MEANINGS = {
    "self_correction": ("Self-correction", "mended failing code", "paper, Fig. 7"),
    "regression": ("Regression", "broke passing code", "paper, Figs. 4 and 5, over all datasets"),
}


@dataclass
class Breaking:
    """How often an instruction met code that passed, and how often it broke it."""

    instruction: InstructionRecord
    met: int = 0
    broke: int = 0


@dataclass
class Outcomes(SessionVerdicts):
    """Completed sessions of a cell: figures by turn, changes judged adhered by scope, the code's languages."""

    regression: ByType[TaskRatio] = field(default_factory=lambda: ByType.create(TaskRatio))
    self_correction: ByType[TaskRatio] = field(default_factory=lambda: ByType.create(TaskRatio))
    regression_at: dict[int, TaskRatio] = field(default_factory=lambda: defaultdict(TaskRatio))
    adherence_at: dict[int, TaskRatio] = field(default_factory=lambda: defaultdict(TaskRatio))
    adherence: TaskRatio = field(default_factory=TaskRatio)
    judged: dict[str, TaskRatio] = field(default_factory=lambda: defaultdict(TaskRatio))
    instructions: dict[str, Breaking] = field(default_factory=dict)
    languages: set[str] = field(default_factory=set)

    @property
    def sustained(self) -> list[int]:
        """Per session, the passing turns from turn 0 on."""
        return [statistics.sustained(verdicts) for verdicts in self.passed]

    def figure(self, values: Sequence[int]) -> TaskRatio:
        """A mean over sessions, kept apart by task. `values` holds one number a session."""
        figure = TaskRatio()
        for task, value in zip(self.tasks, values, strict=True):
            figure.count(task, value)
        return figure

    def surviving(self, turn: int) -> TaskRatio:
        """Sessions that have passed at every turn up to this one, if they have it."""
        figure = TaskRatio()
        for task, verdicts, length in zip(self.tasks, self.passed, self.sustained, strict=True):
            if len(verdicts) > turn:
                figure.count(task, length > turn)
        return figure

    def sustained_turns(self, turns: int | None = None) -> TaskRatio:
        """MST; with `turns`, of sessions cut after so many, to compare cells of several lengths."""
        return self.figure([min(length, turns or length) for length in self.sustained])

    def mst(self, turns: int | None = None) -> "Measured":
        """MST as in metrics.json, or of sessions cut after so many turns; with its interval."""
        if turns is None:
            return self.measured("mst")
        figure = self.sustained_turns(turns)
        return figure.rate, Interval.of(self.resamples.interval(figure))

    def passing(self, turn: int) -> TaskRatio:
        """Pass@1 at a turn, which counts from the end if it is negative."""
        figure = TaskRatio()
        place = turn % self.cell.turns
        for task, verdicts in zip(self.tasks, self.passed, strict=True):
            for verdict in verdicts[place : place + 1]:
                if verdict is not None:
                    figure.count(task, verdict)
        return figure

    def measured(self, place: str) -> "Measured":
        """A value of metrics.json with its interval; `place` joins its keys by dots."""
        measure = Final(place, "")
        return value_of(self.cell.metrics, measure), Interval.of(interval_of(self.cell.metrics, measure))

    def counted(self, figure: TaskRatio) -> "Measured":
        """The rate of one of the cell's figures with its 95 % interval, resampled by task."""
        return figure.rate, Interval.of(self.resamples.shown(figure))

    def add(self, session: SessionRecord) -> None:
        """Count a completed session."""
        super().add(session)
        self.languages.add(session.language)
        for before, turn in transitions(session.turns):
            if session.has_answer(turn):
                self._add_transition(session.task_id, before, turn)
                if turn.followed in ("adhered", "violated"):
                    for figure in (self.adherence, self.adherence_at[turn.turn]):
                        figure.count(session.task_id, turn.followed == "adhered")
                for asked, adherence in turn.judged:
                    if adherence is not None and adherence.verdict != "undecided":
                        scope = asked.scope if asked and turn.code is not None else NO_CODE
                        self.judged[scope].count(session.task_id, adherence.verdict == "adhered")

    def _add_transition(self, task: str, before: TurnRecord, turn: TurnRecord) -> None:
        if before.passed is None or turn.passed is None:
            return
        figures = self.regression if before.passed else self.self_correction
        for figure in figures.of(turn.kind):
            figure.count(task, turn.passed is not before.passed)
        if before.passed:
            self.regression_at[turn.turn].count(task, not turn.passed)
            for asked in turn.asked:
                breaking = self.instructions.setdefault(asked.id, Breaking(asked))
                breaking.met += 1
                breaking.broke += not turn.passed


RefineComparison = Comparison[Outcomes]


@dataclass(frozen=True)
class Setup:
    """Cells of one setup by model; every model has one cell on each of the datasets. `setting` describes the setup."""

    setting: str
    datasets: Sequence[str]
    cells: Mapping[str, Sequence[LoadedCell]]


def setups_of(cells: Sequence[LoadedCell]) -> list[Setup]:
    """The setups, most models first. Baselines and twins count only if there is nothing else.

    A setup has the datasets that leave the most cells; models without one of them are left out, since a mean over other
    tasks says nothing. Of several choices of a dataset's tasks only the most common counts.
    """
    found: dict[Hashable, list[LoadedCell]] = {}
    for cell in originals_of(rivals_of(cells)):
        if cell.metrics.get("mst") is not None:
            found.setdefault((cell.variant, cell.agenda, cell.turns, cell.setup), []).append(cell)
    setups = [_setup(_alike(members)) for members in found.values()]
    return sorted(setups, key=lambda setup: -len(setup.cells))


def _alike(cells: Sequence[LoadedCell]) -> list[LoadedCell]:
    """The cells with the choice of tasks that most cells of a dataset have."""
    if any(cell.mark for cell in cells):  # different tasks of one name have no mean
        names = [cell.dataset for cell in cells]
        common = max(sorted(set(names)), key=names.count)
        cells = [cell for cell in cells if cell.dataset == common]
    choices = {}
    for cell in cells:
        options = cell.config.get("dataset") or {}
        choices[cell.folder] = json.dumps([options.get("limit"), options.get("tasks")])
    common_of = {}
    for name in {cell.dataset for cell in cells}:
        found = [choices[cell.folder] for cell in cells if cell.dataset == name]
        common_of[name] = max(found, key=found.count)
    return [cell for cell in cells if choices[cell.folder] == common_of[cell.dataset]]


def _setup(cells: Sequence[LoadedCell]) -> Setup:
    models: dict[str, list[LoadedCell]] = {}
    for cell in cells:
        models.setdefault(cell.model, []).append(cell)
    had = {model: frozenset(cell.dataset for cell in found) for model, found in models.items()}
    left = {names: len(names) * sum(each >= names for each in had.values()) for names in had.values()}
    datasets = max(left, key=lambda names: (left[names], len(names)))
    whole = {model: [cell for cell in found if cell.dataset in datasets]
             for model, found in models.items() if had[model] >= datasets}  # fmt: skip
    return Setup(cells[0].setting, sorted(datasets), whole)


Pick = Callable[[Outcomes], TaskRatio]


class Draws(NamedTuple):
    """A value, and the same in every resample of the tasks."""

    value: float | None
    resampled: Sequence[float | None]

    @property
    def measured(self) -> Measured:
        """The value with its 95 % interval."""
        return self.value, None if self.value is None else Interval.of(statistics.percentile_interval(self.resampled))


def change(first: Draws, last: Draws) -> Draws:
    """The change from the first to the last in per cent of the first."""
    ends = zip(first.resampled, last.resampled, strict=True)
    return Draws(percent_change(first.value, last.value), [percent_change(*pair) for pair in ends])


@dataclass(frozen=True)
class Together:
    """One cell for each of several models and dataset; all models of a dataset share a resample of its tasks."""

    setting: str
    datasets: Sequence[str]
    models: Sequence[str]
    cells: Mapping[tuple[str, str], Outcomes]

    def on(self, dataset: str) -> list[Outcomes]:
        """The cells on a dataset, a model each; all cells for any other word."""
        return [found for (_, name), found in self.cells.items() if name == dataset or dataset not in self.datasets]

    def blocks(self, word: str) -> list[str]:
        """The datasets, and if there are several a word for all of them."""
        return [*self.datasets, *([word] if len(self.datasets) > 1 else [])]

    @property
    def noun(self) -> str:
        """How many are averaged over, in words."""
        kind = "baselines" if all(found.cell.is_baseline for found in self.cells.values()) else "models"
        return f"{len(self.models)} {kind}"

    @property
    def turns(self) -> int:
        """N, which all cells have."""
        return next(iter(self.cells.values())).cell.turns

    def mean(self, pick: Pick, name: str) -> Draws:
        """The mean of the models' rates on a dataset; for `MEAN`, of the datasets. None if a dataset has no rate."""
        if name == MEAN:
            means = [self.mean(pick, dataset) for dataset in self.datasets]
            rows = zip(*(each.resampled for each in means), strict=True)
            return Draws(mean_of_all([each.value for each in means]), [mean_of_all(row) for row in rows])
        figures = [pick(found) for found in self.on(name)]
        drawn = [self._resamples[name].ratios(figure) for figure in figures]
        return Draws(mean_of([figure.rate for figure in figures]), [mean_of(row) for row in zip(*drawn, strict=True)])

    def counted(self, pick: Pick, models: Sequence[str] = ()) -> TaskRatio:
        """A figure over all turns on all datasets, of some models or of all."""
        whole = TaskRatio()
        for (model, dataset), found in self.cells.items():
            if model in (models or self.models):
                for task, counts in pick(found).by_task.items():
                    whole.count(f"{dataset}\n{task}", *counts)
        return whole

    def pooled(self, pick: Pick, models: Sequence[str] = ()) -> Measured:
        """The rate over all turns on all datasets, of some models or of all, with its interval."""
        whole = self.counted(pick, models)
        return whole.rate, Interval.of(self._all_tasks.shown(whole))

    @cached_property
    def _resamples(self) -> Mapping[str, TaskBootstrap]:
        tasks = {name: {task for found in self.on(name) for task in found.tasks} for name in self.datasets}
        return {name: resamples_of(tuple(sorted(found)), name) for name, found in tasks.items()}

    @cached_property
    def _all_tasks(self) -> TaskBootstrap:
        tasks = {f"{dataset}\n{task}" for (_, dataset), found in self.cells.items() for task in found.tasks}
        return resamples_of(tuple(sorted(tasks)), "\n".join(self.datasets))


def together(comparison: RefineComparison) -> list[Together]:
    """The setups of several models, most models first."""
    found = {each.cell.folder: each for each in comparison.cells}
    setups = [setup for setup in setups_of([each.cell for each in comparison.cells]) if len(setup.cells) >= FEWEST]
    words = [setup.setting for setup in setups]
    return [
        Together(
            # setups that differ in their datasets alone, such as one judge for each
            setup.setting if words.count(setup.setting) == 1 else ", ".join([setup.setting, *setup.datasets]),
            setup.datasets, sorted(setup.cells),
            {(model, cell.dataset): found[cell.folder] for model, cells in setup.cells.items() for cell in cells},
        )
        for setup in setups
    ]  # fmt: skip


def tables(setups: Sequence[Together]) -> Iterator[Table]:
    """All of them, if a setup has several models."""
    if setups:
        yield from (table(setups) for table in (by_dataset, by_type, by_turns, association))


def rate_of(rate: str, breakdown: str, name: str) -> Pick:
    """What gives a cell's regression or self-correction for a type of instruction; `overall` is for all."""

    def pick(found: Outcomes) -> TaskRatio:
        rates = getattr(found, rate)
        figure: TaskRatio = rates.overall if breakdown == "overall" else getattr(rates, f"by_{breakdown}")[name]
        return figure

    return pick


def described(setups: Sequence[Together]) -> str:
    """What is averaged or pooled, in words."""
    return "; ".join(
        f"{each.noun} ({', '.join(each.models)}) on {' and '.join(each.datasets)}, "
        f"{', '.join(filter(None, (f'{each.turns} turns', each.setting)))}"
        for each in setups
    )


def sizes(setups: Sequence[Together]) -> str:
    """How many models on which datasets; how many setups if there are several."""
    return f"{len(setups)} setups" if len(setups) > 1 else f"{setups[0].noun} on {' and '.join(setups[0].datasets)}"


def _table(
    setups: Sequence[Together], columns: Sequence[Column], rows: Callable[[Together], Rows], *, note: str, **about: str
) -> Table:
    """The rows of every setup, with its setting if there are several."""
    several = len(setups) > 1
    named = (Column("setting", "Setting"),) if several else ()
    found = tuple((each.setting, *row) if several else row for each in setups for row in rows(each))
    note = f"{note} Over {described(setups)}."
    return Table(columns=(*named, *columns), rows=found, strong=frozenset(), most=None, note=note, group=GROUP, **about)


def by_dataset(setups: Sequence[Together]) -> Table:
    """Pass@1 at both ends and MST, averaged over the models (the paper's RQ1 and Table V)."""
    lengths = {each.turns for each in setups}
    last = "N−1" if len(lengths) > 1 else str(lengths.pop() - 1)
    columns = (
        *columns_of(over="Over"), Column("models", "Models", "d"),
        *with_interval("pass_first", "Pass@1 turn 0", ".3f"), *with_interval("pass_last", f"Pass@1 turn {last}", ".3f"),
        *with_interval("delta_pct", f"Δ0→{last} %", "+.1f"), *with_interval("mst", "MST", ".3f"),
    )  # fmt: skip
    return _table(
        setups, columns, _means, name="models_by_dataset",
        title=f"Means over the models, {sizes(setups)} (paper, RQ1 and Table V)",
        note=f"Δ is the change of the mean Pass@1. {MEANS_NOTE}",
    )  # fmt: skip


def _means(models: Together) -> Rows:
    for name in models.blocks(MEAN):
        first, last = (models.mean(partial(Outcomes.passing, turn=turn), name) for turn in (0, -1))
        shown = (first, last, change(first, last), models.mean(Outcomes.sustained_turns, name))
        yield (name, len(models.models), *(value for each in shown for value in each.measured))


def by_type(setups: Sequence[Together]) -> Table:
    """Regression and self-correction by scope and change, averaged over the models (the paper's RQ2)."""
    columns: list[Column] = [*columns_of(dataset="Dataset", breakdown="Breakdown", type="Type")]
    for rate, title in RATES.items():
        columns += with_interval(rate, title, ".3f")
        columns += columns_of(".3f", **{f"{rate}_least": "least", f"{rate}_most": "most"})
    return _table(
        setups, columns, _types, name="models_by_type",
        title=f"Regression and self-correction, means over the models, {sizes(setups)} (paper, RQ2)",
        note=f"Least and most: the lowest and the highest rate of a model on a dataset. {MEANS_NOTE}",
    )  # fmt: skip


def _types(models: Together) -> Rows:
    for name in models.blocks(MEAN):
        for breakdown, kind in TYPES:
            row: list[Value] = [name, breakdown, kind]
            for rate in RATES:
                pick = rate_of(rate, breakdown, kind)
                known = [value for found in models.on(name) if (value := pick(found).rate) is not None]
                row += [*models.mean(pick, name).measured, min(known, default=None), max(known, default=None)]
            yield tuple(row)


def by_turns(setups: Sequence[Together]) -> Table:
    """Regression and self-correction over all turns together, by model and by type (the paper's Figs. 4, 5 and 7)."""
    columns: list[Column] = [*columns_of(breakdown="Breakdown", type="Type")]
    for item, before in zip(RATES.items(), ("passed", "failed"), strict=True):
        columns += [*with_interval(*item, ".3f"), Column(f"{before}_before", f"{before.capitalize()} before", "d")]
    return _table(
        setups, columns, _together, name="models_together",
        title=f"Regression and self-correction, all turns together, {sizes(setups)} (paper, Fig. 7)",
        note="Shares of the turns of all datasets together, so that each dataset counts by its turns. Intervals: 95 %, "
        "resampled by task.",
    )  # fmt: skip


def _together(models: Together) -> Rows:
    yield from _pooled_rows(models, TYPES, ())
    for model in models.models:
        for _, *values in _pooled_rows(models, [OVERALL], [model]):
            yield ("model", model, *values[1:])


def _pooled_rows(models: Together, types: Sequence[tuple[str, str]], only: Sequence[str]) -> Rows:
    for kind in types:
        row: list[Value] = [*kind]
        for rate in RATES:
            pick = rate_of(rate, *kind)
            row += [*models.pooled(pick, only), size(models.counted(pick, only))]
        yield tuple(row)


def association(setups: Sequence[Together]) -> Table:
    """Phi between correctness and adherence over the turns of all models (paper, VI-B)."""
    columns = (
        *columns_of(over="Over"), *columns_of("d", models="Models", turns="Judged turns"), Column("phi", "Phi", "+.3f"),
        *columns_of("d", **{key: key.replace("_", ", ").capitalize() for key in COUNTS}, undecided="Undecided"),
    )  # fmt: skip
    return _table(
        setups, columns, _phi, name="models_phi",
        title=f"Correctness and adherence, all models together, {sizes(setups)} (paper, VI-B)",
        note="Over the judged follow-up turns of all models: the counts are added, then Phi is computed of them.",
    )  # fmt: skip


def _phi(models: Together) -> Rows:
    for name in models.blocks(ALL):
        metrics = [found.cell.metrics for found in models.on(name)]
        counts = [sum(each["phi"][key] for each in metrics) for key in COUNTS]
        undecided = sum(each["undecided"] for each in metrics)
        yield (name, len(models.models), sum(counts), statistics.phi(*counts).value, *counts, undecided)


def drawings(setups: Sequence[Together]) -> Iterator[Drawing]:
    """A figure per rate, if a setup has several models; none of more setups than a figure shows, which tables hold."""
    for rate, (name, did, where) in MEANINGS.items() if 0 < len(setups) <= MOST_SETUPS else ():
        yield Drawing(
            f"models_{rate}", f"{name} over all turns together ({where})",
            f"The share of turns that {did}: by model, scope and change. Black points and the dashed line are all "
            f"models together; whiskers: 95 % by task. Over {described(setups)}.",
            GROUP, partial(_draw, setups=setups, rate=rate),
        )  # fmt: skip


def _draw(comparison: RefineComparison, look: Look, setups: Sequence[Together], rate: str) -> Any:
    places = [(setup, part) for setup in setups for part in PARTS]
    titles = [f"{setup.setting}, {part}" if len(setups) > 1 else part.capitalize() for setup, part in places]
    most = max(len(setup.models) for setup in setups)
    figure, axes = panels(titles, 3.9, drawing.height_of(most, 3.4), 3, one_scale=most <= drawing.MOST_LINES)
    for panel, (setup, part) in zip(axes, places, strict=True):
        kinds = [(part.removeprefix("by "), name) for name in PARTS[part]]
        if kinds:
            _by_type(panel, look, setup, {name: rate_of(rate, *kind) for kind in kinds for name in kind[1:]})
        else:
            _by_model(panel, look, setup, rate_of(rate, *OVERALL))
            panel.set_ylabel(f"{MEANINGS[rate][0]} rate")
    return from_zero(figure, axes)


def _by_model(panel: Any, look: Look, setup: Together, pick: Pick) -> None:
    if len(setup.models) > drawing.MOST_LINES:
        heads = [*setup.models, WHOLE["label"]]  # the row past the last model is of all
        drawing.rows(panel, heads, [""], lambda row, _: setup.pooled(pick, setup.models[row : row + 1]))
        return
    for place, model in enumerate(setup.models):
        bars(panel, [(place, *setup.pooled(pick, [model]))], **_style(look, setup, model))
    whole, _ = setup.pooled(pick)
    if whole is not None:
        panel.axhline(whole, color=WHOLE["color"], linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    name_groups(panel, setup.models, MOST_LETTERS)


def _by_type(panel: Any, look: Look, setup: Together, picks: Mapping[str, Pick]) -> None:
    strips(panel, len(picks))
    entrants = [(WHOLE, []), *((_style(look, setup, model), [model]) for model in setup.models)]
    for number, (style, models) in enumerate(entrants):
        aside = spread(number, len(entrants), SPREAD)
        found = enumerate(setup.pooled(pick, models) for pick in picks.values())
        bars(panel, [(place + aside, *measured) for place, measured in found], **style)
    name_groups(panel, list(picks), MOST_LETTERS)


def _style(look: Look, setup: Together, model: str) -> dict[str, Any]:
    if len(setup.models) > drawing.MOST_LINES:  # they are named in rows
        return {"color": drawing.OTHERS, "fmt": "o", "ms": 2.5, "ecolor": "none"}
    label = next(found.cell.label for (name, _), found in setup.cells.items() if name == model)
    return {**look.point(label), "label": model}
