"""The tables of SR-Eval's paper, over the report's cells, with the paper's own figures beside them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codechat.report.data import Column, Table, Value
from codechat.report.generic.tables import said_apart
from codechat.report.metrics.loaded import LOADED
from codechat.report.study import LoadedCell, Study
from codechat.studies.sreval.chapter.ablations import ablation_tables
from codechat.studies.sreval.chapter.published import (
    LEVELS,
    MEASURED,
    OWN,
    PUBLISHED,
    Entry,
    Figures,
    Setting,
    apart,
    comparable,
    entries,
    in_paper,
    level_of,
    paper,
    setting_of,
    unmarked,
)

GROUP = "stepwise_paper"
FULL = "full_history"
SHORT = {"basic": "BS", "golden": "GS"}
PROMPTINGS = (FULL, "code_edit", "cumulative")
TITLES = {"function": "function level", "repository": "repository level", OWN: "other tasks"}
NUMBERED = {"function": (3, 5), "repository": (4, 6), OWN: (3, 5)}
MEANING = "BS: basic context, GS: golden context. Intervals are in stepwise_finals and stepwise_turns."
SOURCES = (
    "Published: from SR-Eval's paper, whose prompts are worded otherwise, and where a failed call is a failed turn. "
    "Such a figure stands here only if a cell has its dataset with all tasks, its prompting and its context, with "
    "protocol.harness=official and, in repositories, the code above the function at every turn in Python, at the first "
    "in Java."
)
NOWHERE = " No cell here has."
BEST = " Bold: the best that was measured, baselines apart."


@dataclass(frozen=True)
class Level:
    """The cells of one level: their datasets and settings, and whose figures there are."""

    name: str
    cells: Sequence[LoadedCell]
    entries: Sequence[Entry]

    @property
    def datasets(self) -> list[str]:
        """The datasets, those of the paper in its order."""
        order = [*LEVELS.get(self.name, {})]
        known = {cell.dataset: unmarked(cell) for cell in self.cells}
        return sorted(known, key=lambda name: (order.index(known[name]) if order else 0, name))

    def within(self, prompting: str) -> list[str]:
        """The datasets that have cells of a prompting."""
        found = {cell.dataset for cell in self.cells if setting_of(cell).prompting == prompting}
        return [dataset for dataset in self.datasets if dataset in found]

    def contexts(self, prompting: str) -> list[str]:
        """The contexts that cells of a prompting have."""
        found = {setting.context for cell in self.cells if (setting := setting_of(cell)).prompting == prompting}
        return [context for context in SHORT if context in found]

    def titled(self, dataset: str) -> str:
        """The dataset as a column names it: its language, if it is one of the paper's."""
        known = next(unmarked(cell) for cell in self.cells if cell.dataset == dataset)
        return dataset.replace(known, LEVELS.get(self.name, {}).get(known, known), 1)

    @property
    def note(self) -> str:
        """Whose figures the tables hold."""
        if self.name == OWN:
            return BEST
        told = said_apart((cell.label, apart(cell)) for cell in self.cells)
        return f" {SOURCES}{'' if any(map(comparable, self.cells)) else NOWHERE + told}{BEST}"


def paper_tables(study: Study[Any]) -> Iterator[Table]:
    """Those of every level that has cells, then the sizes of the datasets."""
    cells = [found.cell for found in study.in_order()]
    for name in TITLES:
        own = [cell for cell in cells if level_of(cell) == name]
        if own:
            level = Level(name, own, entries(study, name))
            if level.contexts(FULL):
                yield overview(level)
                yield from (rounds(level, dataset) for dataset in level.within(FULL))
            yield promptings(level)
    yield sizes(study)
    yield from ablation_tables(study, GROUP)
    if any(level_of(cell) != OWN for cell in cells):
        yield models(study)


def overview(level: Level) -> Table:
    """AvgAcc and the complete rate of every model with full history: a column for each dataset and context."""
    columns: list[Column] = []
    picks: list[Callable[[Entry], Value]] = []
    for dataset in level.within(FULL):
        for key, title in (("avg_acc", "AvgAcc"), ("complete_rate", "CR")):
            for context in level.contexts(FULL):
                name = f"{_word(level.titled(dataset))}_{key}_{context}"
                columns.append(Column(name, f"{level.titled(dataset)} {title} {SHORT[context]}", ".4f"))
                picks.append(_pick(Setting(dataset, FULL, context), key))
    table, _ = NUMBERED[level.name]
    return _table(
        columns, _lines(level.entries, picks), name=f"stepwise_models_{level.name}",
        title=f"AvgAcc and complete rate, {TITLES[level.name]}, full history (as SR-Eval's Table {table})",
        note=f"CR: the complete rate. {MEANING}{level.note}",
    )  # fmt: skip


def rounds(level: Level, dataset: str) -> Table:
    """Acc by round of every model on a dataset with full history."""
    settings = [Setting(dataset, FULL, context) for context in level.contexts(FULL)]
    most = max(len(each.rounds) for entry in level.entries for each in map(entry.figures.get, settings) if each)
    columns, picks = list[Column](), list[Callable[[Entry], Value]]()
    for number in range(most):
        for setting in settings:
            short = SHORT[setting.context]
            columns.append(Column(f"round_{number + 1}_{setting.context}", f"Round {number + 1} {short}", ".4f"))
            picks.append(_round(setting, number))
    for key, title in (("avg_acc", "AvgAcc"), ("complete_rate", "CR")):
        for setting in settings:
            columns.append(Column(f"{key}_{setting.context}", f"{title} {SHORT[setting.context]}", ".4f"))
            picks.append(_pick(setting, key))
    table, _ = NUMBERED[level.name]
    return _table(
        columns, _lines(level.entries, picks), name=f"stepwise_rounds_{_word(dataset)}",
        title=f"Acc by round, {dataset}, full history (as SR-Eval's Table {table})",
        note=f"Round k is turn k − 1 of the records; its tasks are those that have it. {MEANING}{level.note}",
    )  # fmt: skip


def promptings(level: Level) -> Table:
    """AvgAcc, complete rate and tokens of every model by context and prompting: a block of columns for each dataset."""
    columns: list[Column] = []
    for dataset in level.datasets:
        named = level.titled(dataset)
        for key, title, spec in (("avg_acc", "AvgAcc", ".4f"), ("complete_rate", "CR", ".4f"), ("atc", "ATC", ",.2f")):
            columns.append(Column(f"{_word(named)}_{key}", f"{named} {title}", spec))
    lines = []
    told_of = [entry for entry in level.entries if any(each.atc is not None for each in entry.figures.values())]
    for entry in told_of:  # the paper has this table for few of its models
        for context, short in SHORT.items():
            for prompting in PROMPTINGS:
                settings = [Setting(dataset, prompting, context) for dataset in level.datasets]
                picks = [_pick(each, key) for each in settings for key in ("avg_acc", "complete_rate", "atc")]
                told = (short, prompting.replace("_", " "))
                lines += [(one, told, values) for one, _, values in _lines([entry], picks)]
    _, table = NUMBERED[level.name]
    return _table(
        columns, lines, (Column("context", "Context"), Column("prompting", "Prompting")),
        name=f"stepwise_prompting_{level.name}",
        title=f"AvgAcc, complete rate and tokens by prompting, {TITLES[level.name]} (as SR-Eval's Table {table})",
        note=f"CR: the complete rate. ATC: input and output tokens of a task's turns, fewer being better. "
        f"{MEANING}{level.note}",
    )  # fmt: skip


def sizes(study: Study[Any]) -> Table:
    """Tasks and turns of every dataset, with the paper's Table 1."""
    texts = (Column("dataset", "Dataset"), Column("source", "Source"))
    counts = [Column(*each, "d") for each in (("tasks", "Tasks"), ("least", "Turns, least"), ("most", "most"))]
    columns = (*texts, *counts, Column("mean", "mean", ".2f"), Column("turns", "in all", "d"))
    lengths = tuple(Column(f"{unit}_{part}", f"{part.capitalize()}, {unit}", ".1f") for unit in UNITS for part in PARTS)
    rows: list[tuple[Value, ...]] = []
    for dataset in study.datasets:
        measured = {_counted(found.cell.metrics["n"]["acc"]) for found in study.on(dataset) if found.tasks}
        long = _lengths_of(study, dataset)
        rows += [(dataset, MEASURED, *each, *long) for each in sorted(measured, reverse=True)]
        size = paper().tasks.get(dataset)
        if size is not None:
            rows.append((
                dataset, PUBLISHED, *(size[column.key] for column in columns[2:]),
                *(length for unit in UNITS for length in size[unit]),
            ))  # fmt: skip
    return Table(
        "stepwise_tasks", "Tasks and turns (as SR-Eval's Table 1)", (*columns, *lengths), tuple(rows),
        "Measured: of the completed sessions; a row for every number of them. Lengths: means over the turns of the "
        "tasks that a cell ran; a question of a repository has the code above the function, if the repository was "
        "there.", GROUP,
    )  # fmt: skip


UNITS, PARTS = ("characters", "lines"), ("question", "code", "tests")


def _lengths_of(study: Study[Any], dataset: str) -> list[Value]:
    """The mean lengths of the turns of a dataset's tasks; None if no cell has kept them."""
    known = [(found.cell.metrics.get(LOADED) or {}).get("lengths") for found in study.on(dataset)]
    found = next(filter(None, known), None)
    return [each for unit in UNITS for each in (found[unit] if found else [None] * len(PARTS))]


def models(study: Study[Any]) -> Table:
    """The paper's models with the marks of its Table 2, and the cells of this report that ask each."""
    columns = [Column("model", "Model"), Column("short", "Abbreviation"), Column("category", "Category")]
    columns += [Column("size", "Size"), Column("open", "Open weights"), Column("preset", "Preset")]
    columns += [Column("cells", "Cells here", "d")]
    asked = [in_paper(found.cell) for found in study.in_order()]
    rows = tuple(
        (paper().names[model], model, *(paper().marks[model][key] for key in ("category", "size", "open", "preset")),
         asked.count(paper().names[model]))
        for model in paper().names
    )  # fmt: skip
    return Table(
        "stepwise_paper_models", "The paper's models (SR-Eval's Table 2)", tuple(columns), rows,
        "Category and size are as the paper prints them. What an API serves under a name may have changed since.",
        GROUP,
    )  # fmt: skip


def _counted(by_round: Sequence[int]) -> tuple[int, int, int, float, int]:
    """Of the numbers of tasks that have a round: the tasks, their least and most turns, the mean and the sum."""
    tasks, turns = by_round[0], sum(by_round)
    return tasks, sum(count == tasks for count in by_round), len(by_round), turns / tasks, turns


Line = tuple[Entry, tuple[Value, ...], list[Value]]  # whose figures, what else names the row, and the figures


def _pick(setting: Setting, key: str) -> Callable[[Entry], Value]:
    def pick(entry: Entry) -> Value:
        found = entry.figures.get(setting)
        return None if found is None else getattr(found, key)

    return pick


def _round(setting: Setting, number: int) -> Callable[[Entry], Value]:
    def pick(entry: Entry) -> Value:
        found: Figures | None = entry.figures.get(setting)
        return found.rounds[number] if found is not None and number < len(found.rounds) else None

    return pick


def _lines(of: Iterable[Entry], picks: Sequence[Callable[[Entry], Value]]) -> Iterator[Line]:
    """The entries that have any of the figures."""
    for entry in of:
        values = [pick(entry) for pick in picks]
        if any(value is not None for value in values):
            yield entry, (), values


def _table(columns: Sequence[Column], lines: Iterable[Line], named: Sequence[Column] = (), **about: str) -> Table:
    """The lines as rows, each under its model and where its figures come from."""
    lines = list(lines)
    heads = (Column("model", "Model"), Column("source", "Source"), *named)
    rows = tuple((entry.name, entry.source, *told, *values) for entry, told, values in lines)
    return Table(
        columns=(*heads, *columns), rows=rows, group=GROUP,
        strong=frozenset((row, len(heads) + place) for row, place in _best(columns, lines)), **about,
    )  # fmt: skip


def _best(columns: Sequence[Column], lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Where the best measured values stand, of two or more rows that have the same names but the model's."""
    blocks: Mapping[tuple[Value, ...], None] = dict.fromkeys(told for _, told, _ in lines)
    for block in blocks:
        rivals = [(row, values) for row, (entry, told, values) in enumerate(lines) if entry.rival and told == block]
        for place, column in enumerate(columns):
            known = {row: value for row, values in rivals if isinstance(value := values[place], int | float)}
            if len(known) > 1:
                top = (min if column.key.endswith("atc") else max)(known.values())
                yield from ((row, place) for row, value in known.items() if value == top)


def _word(text: str) -> str:
    """The text as part of a column's key."""
    return re.sub(r"\W+", "_", text).strip("_").lower()
