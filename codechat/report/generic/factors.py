"""What varied settings change: the effect of each factor, averaged over all other factors and paired by task.

A factor is a setting that varies among the cells of a report, or the model. A *block* is all cells of one dataset that
differ in the factor alone. Level A minus level B is a mean over the blocks that have both, each block on the tasks that
both cells completed. Blocks of one dataset share resamples of their tasks.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from math import isnan
from statistics import fmean
from typing import Any

from codechat.report.comparison import RESCORED, Comparison, LoadedCell, SessionVerdicts, resamples_of
from codechat.report.data import Board, BoardColumn, Column, Headline, Interval, Section, Table, columns_of
from codechat.report.generic.overview import listed, rivals_of
from codechat.report.generic.paired import HOLM, holm, passing, signed_ranks
from codechat.report.metrics.statistics import ALPHA, TaskRatio, of_width, percentile_interval

MODEL = "model"
NAMES: Mapping[str, str] = {"turns": "session length", "prompts": "prompts"}
REPLICATED = {"seed", "agenda.seed", "cell_id"}  # they set cells apart, and are no question
TESTED = (
    "Each row is level A minus level B, the mean over all pairs of cells that differ in nothing else, paired by task. "
    "Intervals: 95 %, bootstrap by task. p: Wilcoxon's signed-rank test on the tasks' means, Holm-corrected over all "
    "pairs of levels of one factor; bold: below 0.05."
)
TITLE = "What the settings change"


@dataclass(frozen=True)
class Outcome:
    """A share of a session's turns, in which effects are measured. `part_of` takes the verdicts of a session and
    returns the counted turns and all; `verb` precedes a number of them, `note` warns of a misreading by factor."""

    label: str
    part_of: Callable[[Sequence[bool | None]], tuple[int, int]]
    verb: str
    noun: str
    note: Mapping[str, str] = field(default_factory=dict)


PASSING = Outcome("share of turns that pass", passing, "passes", "the turns")


@dataclass(frozen=True)
class Effect:
    """Level `a` minus level `b` of a factor, over so many pairs of cells."""

    a: str
    b: str
    values: tuple[float, float]
    interval: Interval | None
    blocks: int
    tasks: int
    p: float | None
    p_holm: float | None = None

    @property
    def difference(self) -> float:
        return self.values[0] - self.values[1]

    @property
    def is_clear(self) -> bool:
        """Whether chance explains the difference no more."""
        return self.p_holm is not None and self.p_holm < ALPHA

    @property
    def turned(self) -> "Effect":
        """Level `b` minus level `a`."""
        ends = None if self.interval is None else Interval(-self.interval.high, -self.interval.low)
        return replace(self, a=self.b, b=self.a, values=self.values[::-1], interval=ends)

    @property
    def numbers(self) -> str:
        """The difference with its interval."""
        ends = f" [{signed(self.interval.low)}, {signed(self.interval.high)}]" if self.interval else ""
        return signed(self.difference) + ends

    @property
    def verdict(self) -> str:
        """What the test says, in words."""
        return "more than chance explains" if self.is_clear else "which may be chance"


@dataclass(frozen=True)
class Question:
    """What one factor changes. `effects` holds all pairs of levels, the higher level first; `levels` the level's mean
    and interval over the blocks that have all levels, the highest first; empty if there are none."""

    factor: str
    effects: tuple[Effect, ...]
    levels: Mapping[str, tuple[float, Interval | None]]
    blocks: tuple[tuple[SessionVerdicts, ...], ...]

    @property
    def name(self) -> str:
        return NAMES.get(self.factor, self.factor.removeprefix("protocol.").removeprefix("model."))

    @property
    def largest(self) -> Effect:
        return max(self.effects, key=lambda effect: effect.difference)

    @property
    def family(self) -> str:
        """The tests among which p-values are corrected."""
        pairs = len(self.effects)
        return f"Holm over {pairs} pairs of levels" if pairs > 1 else "one pair of levels"


def factor_of(key: str) -> str:
    """The factor that an option belongs to: options of an agenda, a judge or a set of prompts vary together."""
    if key == "agenda.turns":
        return "turns"
    if key.startswith("protocol.prompts"):
        return "prompts"
    group = "judge" if key == RESCORED else key.partition(".")[0]
    return group if group in ("agenda", "judge") else key


def levels_of(cell: LoadedCell) -> dict[str, str]:
    """The cell's level of every factor, in words."""
    words: dict[str, list[str]] = defaultdict(list)
    for key, word in cell.differences.items():
        words[factor_of(key)].append(word)
    return {MODEL: cell.model} | {factor: _level(factor, found) for factor, found in words.items()}


def _level(factor: str, words: Sequence[str]) -> str:
    text = ", ".join(words)
    if factor == "turns":
        return f"{text.removeprefix('turns=')} turns"
    name = factor.rpartition(".")[2]
    return text.removeprefix(f"{factor}=").removeprefix(f"{name}=")


@dataclass(frozen=True)
class Study:
    """The questions that the cells of a comparison answer, settings before the model."""

    comparison: Comparison[Any]
    outcome: Outcome | None

    @cached_property
    def cells(self) -> list[SessionVerdicts]:
        """The compared cells, in reading order."""
        rivals = {cell.folder for cell in rivals_of([found.cell for found in self.comparison.cells])}
        return [found for found in self.comparison.in_order() if found.cell.folder in rivals]

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """A question per factor with a pair of cells that differ in it alone; none if only the model varies."""
        if self.outcome is None:
            return ()
        factors = dict.fromkeys(name for found in self.cells for name in levels_of(found.cell))
        asked = [name for name in factors if name != MODEL and name not in REPLICATED]
        settings = list(filter(None, (self._question(name, self.outcome) for name in asked)))
        settings.sort(key=lambda each: -sum(map(len, each.blocks)))
        return (*settings, *filter(None, [self._question(MODEL, self.outcome)] if settings else []))

    @property
    def leads(self) -> bool:
        """Whether the report is about settings: more than half of the cells differ in one alone from another cell."""
        compared = {found.cell.folder for each in self.questions if each.factor != MODEL
                    for block in each.blocks for found in block}  # fmt: skip
        return 2 * len(compared) > len(self.cells)

    def _question(self, factor: str, outcome: Outcome) -> Question | None:
        grouped: dict[tuple[Any, ...], dict[str, SessionVerdicts]] = defaultdict(dict)
        for found in self.cells:
            levels = levels_of(found.cell)
            if factor in levels:
                rest = tuple(sorted(item for item in levels.items() if item[0] != factor))
                grouped[found.cell.dataset, rest][levels[factor]] = found
        blocks = [_Block(cells, outcome) for cells in grouped.values() if len(cells) > 1]
        names = list(dict.fromkeys(level for block in blocks for level in block.cells))
        effects = [effect for a, b in combinations(names, 2) if (effect := _effect(a, b, blocks)) is not None]
        if not effects:
            return None
        corrected = holm([effect.p for effect in effects])
        effects = [replace(effect, p_holm=p) for effect, p in zip(effects, corrected, strict=True)]
        means = _means(names, blocks)
        order = sorted(means, key=lambda level: -means[level][0])
        return Question(
            factor, tuple(each if each.difference >= 0 else each.turned for each in effects),
            {level: means[level] for level in order}, tuple(tuple(block.cells.values()) for block in blocks),
        )  # fmt: skip


@dataclass(frozen=True)
class _Block:
    """Cells that differ in one factor, by level."""

    cells: Mapping[str, SessionVerdicts]
    outcome: Outcome

    @cached_property
    def whole(self) -> Mapping[str, TaskRatio]:
        """The outcome by task, of every level."""
        return {level: _counted(found, self.outcome) for level, found in self.cells.items()}

    def drawn(self, level: str, tasks: tuple[str, ...]) -> tuple[float, Any]:
        """The outcome on these tasks, and the same in every resample of them: none of a single task."""
        import numpy as np

        figure = TaskRatio({task: self.whole[level].by_task[task] for task in tasks})
        resampled = resamples_of(tasks, self.cells[level].cell.dataset).ratios(figure)
        return figure.rate or 0.0, np.array(resampled, dtype=float)


def _counted(found: SessionVerdicts, outcome: Outcome) -> TaskRatio:
    figure = TaskRatio()
    for task, verdicts in zip(found.tasks, found.passed, strict=True):
        hits, total = outcome.part_of(verdicts)
        if total:
            figure.count(task, hits, total)
    return figure


def _shared(blocks: Sequence[_Block], levels: Sequence[str]) -> list[tuple[_Block, tuple[str, ...]]]:
    """The blocks with all these levels, each with the tasks, sorted, that all of them completed with a scored turn."""
    whole = [block for block in blocks if {*levels} <= block.cells.keys()]
    shared = [(block, set.intersection(*({*block.whole[level].by_task} for level in levels))) for block in whole]
    return [(block, tuple(sorted(tasks))) for block, tasks in shared if tasks]


def _effect(a: str, b: str, blocks: Sequence[_Block]) -> Effect | None:
    """The effect over all blocks with both levels; None without a shared task."""
    shared = _shared(blocks, (a, b))
    if not shared:
        return None
    ones, others = ([block.drawn(level, tasks) for block, tasks in shared] for level in (a, b))
    by_task: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for block, tasks in shared:
        counts = [block.whole[level].by_task for level in (a, b)]
        for task in tasks:
            by_task[block.cells[a].cell.dataset, task].append([hits / of for hits, of in (x[task] for x in counts)])
    means = [[fmean(pair[side] for pair in pairs) for pairs in by_task.values()] for side in (0, 1)]
    ends = _interval([one - other for (_, one), (_, other) in zip(ones, others, strict=True)])
    interval = Interval.of(ends) if ends is not None and ends[0] < ends[1] else None  # none is known exactly
    values = fmean(value for value, _ in ones), fmean(value for value, _ in others)
    return Effect(a, b, values, interval, len(shared), len(by_task), signed_ranks(*means).p)


def _means(levels: Sequence[str], blocks: Sequence[_Block]) -> dict[str, tuple[float, Interval | None]]:
    """The mean of every level over the blocks with all levels; none without such a block."""
    shared = _shared(blocks, levels)
    size = len({task for _, tasks in shared for task in tasks})
    found = {}
    for level in levels if shared else ():
        values, resampled = zip(*(block.drawn(level, tasks) for block, tasks in shared), strict=True)
        mean = fmean(values)
        found[level] = mean, Interval.of(of_width(_interval(resampled), mean, size))
    return found


def _interval(resampled: Sequence[Any]) -> tuple[float, float] | None:
    """The interval of a mean over blocks; None if a block has a single task, which has no resamples."""
    mean = sum(resampled) / len(resampled)
    return None if isnan(mean[0]) else percentile_interval(mean.tolist())


def signed(value: float) -> str:
    """A difference of shares."""
    return f"{value:+z.3f}".replace("-", "−").replace("+0.000", "0.000")


def headline(study: Study, facts: Sequence[tuple[str, str]]) -> Headline:
    """The largest effect of a setting, then every factor's with interval, test and the size of the test's family."""
    outcome = study.outcome
    assert outcome is not None
    asked = [each for each in study.questions if each.factor != MODEL]
    # at last what has an effect by its definition
    first = max(asked, key=lambda it: (it.factor not in outcome.note, it.largest.is_clear, it.largest.difference))
    effect = first.largest
    if not effect.is_clear:
        title = f"No clear effect of {first.name}: {effect.a} − {effect.b} {effect.numbers} of {outcome.noun}"
    else:
        subject = effect.a if first.factor == "turns" else f"{_capital(first.name)} {effect.a}"
        title = f"{subject} {outcome.verb} {effect.numbers.replace('+', '')} more of {outcome.noun}"
        title += f" than {effect.b}"
    sentences = [f"{outcome.label.capitalize()}, 0 to 1, on {listed(study.comparison.datasets)}; paired by task."]
    sentences += [sentence(each) for each in study.questions]
    sentences += [outcome.note[each.factor] for each in study.questions if each.factor in outcome.note]
    kicker = f"What {'does' if len(asked) == 1 else 'do'} {listed([each.name for each in asked])} change?"
    return Headline(title, " ".join(sentences), facts, kicker)


def sentence(question: Question) -> str:
    """The largest effect of a factor."""
    effect = question.largest
    name = _capital(question.name)
    if effect.difference == 0 or effect.p_holm is None:
        return f"{name}: no difference ({len(question.effects)} pairs of levels)."
    p = "p < 0.001" if effect.p_holm < 0.001 else f"p = {effect.p_holm:.3f}"
    means = f"{effect.a} {effect.values[0]:.3f}, {effect.b} {effect.values[1]:.3f}"
    over = f"over {effect.blocks} pairs of cells" if effect.blocks > 1 else "from one pair of cells"
    return f"{name}: {means}, difference {effect.numbers} {over}, {effect.verdict} ({p}, {question.family})."


def section(study: Study) -> Section:
    """The levels of every factor with their intervals, and the differences from the highest level."""
    assert study.outcome is not None
    parts: list[str | Board] = []
    for question in study.questions:  # the page's lead has the sentences if the study is about settings
        parts += [*([] if study.leads else [sentence(question)]), _board(question, study.outcome)]
    parts.append(
        f"{study.outcome.label.capitalize()}: means over the cells that differ in nothing else, with 95 % intervals by "
        "task. A difference has its own interval, since its two sides share tasks."
    )
    return Section(f"answer-{study.comparison.protocol}", TITLE, "Answer", parts, groups=(_name(study),))


def _board(question: Question, outcome: Outcome) -> Board:
    """The levels, each with its difference from the highest."""
    top = next(iter(question.levels), question.largest.a)
    against = {effect.b: effect.turned for effect in question.effects if effect.a == top}
    against |= {effect.a: effect for effect in question.effects if effect.b == top}
    means = question.levels or {level: (effect.values[0], None) for level, effect in against.items()}
    effects = [against.get(level) for level in means]
    ends = [abs(end) for effect in question.effects for end in (effect.difference, *(effect.interval or ()))]
    differences = [None if each is None else (each.difference, each.interval) for each in effects]
    chances, blocks = ([getattr(each, name, None) for each in effects] for name in ("p_holm", "blocks"))
    hint = f"Wilcoxon's signed-rank test on the tasks' means, {question.family}"
    name, reach = _capital(question.name), max(ends) or 1.0
    return Board(f"{name}: {outcome.label}", [
        BoardColumn(name, list(means)),
        BoardColumn(outcome.label, list(means.values()), "share", strong=True, most=1.0),
        BoardColumn(f"minus {top}", differences, "difference", most=reach, least=-reach),
        BoardColumn(HOLM, chances, "p", hint=hint),
        BoardColumn("pairs of cells", blocks, "count", hint="differ in nothing else"),
    ], sort=outcome.label)  # fmt: skip


def tables(study: Study) -> list[Table]:
    """Every pair of levels of every factor; no table if no setting varies."""
    if not study.questions or study.outcome is None:
        return []
    columns = (
        *columns_of(factor="Factor", a="A", b="B"), *columns_of("d", cells="Pairs of cells", tasks="Tasks"),
        *columns_of(".3f", value_a="A", value_b="B"),
        *columns_of("+.3f", difference="A − B", difference_ci="95 % interval"),
        *columns_of("p", p="p", p_holm=HOLM), Column("family", "Tests", "d"),
    )  # fmt: skip
    every = [(question, effect) for question in study.questions for effect in question.effects]
    rows = tuple(
        (question.name, each.a, each.b, each.blocks, each.tasks, *each.values, each.difference, each.interval, each.p,
         each.p_holm, len(question.effects))
        for question, each in every
    )  # fmt: skip
    place = [column.title for column in columns].index(HOLM)
    clear = frozenset((row, place) for row, (_, each) in enumerate(every) if each.is_clear)
    name = _name(study)
    return [Table(name, f"Effects of settings: {study.outcome.label}", columns, rows, TESTED, name, clear)]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _name(study: Study) -> str:
    return f"{study.comparison.protocol}_effects"


def panels_of(study: Study) -> Iterator[tuple[str, list[tuple[str, LoadedCell]]]]:
    """The blocks of the first question: a title, and the cells with their levels."""
    for first in study.questions[:1]:
        for block in first.blocks:
            rest = [level for factor, level in levels_of(block[0].cell).items() if factor != first.factor]
            levels = [(levels_of(found.cell)[first.factor], found.cell) for found in block]
            yield ", ".join([block[0].cell.dataset, *rest]), levels
