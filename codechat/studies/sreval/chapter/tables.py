"""The tables of SR-Eval's paper over the report's cells, next to its printed figures (`published.yaml`)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from codechat.base.files import from_yaml
from codechat.report.comparison import REPLAYED, Comparison, LoadedCell
from codechat.report.data import Column, Table, Value, columns_of
from codechat.report.generic.published import MEASURED, NOWHERE, PUBLISHED, beside, said_apart
from codechat.report.generic.tables import best_in
from codechat.report.metrics.counts import LOADED
from codechat.studies.sreval.dataset import PUBLISHED as PUBLISHED_TASKS
from codechat.studies.sreval.protocol import paper_context

DATA = Path(__file__).with_name("published.yaml")
LEVELS: Mapping[str, Mapping[str, str]] = {
    "function": {"sreval_python": "Python", "sreval_java": "Java"},
    "repository": {"sreval_python_repository": "Python", "sreval_java_repository": "Java"},
}
"""The paper's datasets by level, each with its language."""


class Setting(NamedTuple):
    """The setting of a model's figure: `prompting` and `context` are options of the protocol."""

    dataset: str
    prompting: str
    context: str


class Figures(NamedTuple):
    """A model's figures in a setting: Acc by round, empty if unknown, AvgAcc, complete rate, and tokens per task."""

    rounds: Sequence[float | None]
    avg_acc: float | None
    complete_rate: float | None
    atc: float | None


@dataclass(frozen=True)
class Paper:
    """The paper's figures. Models go by its abbreviations, such as `OSS-20-T`, in its order.

    `names` has their full names with the reasoning level; `tasks` is Table 1 by dataset, and `total` its last row;
    `marks` is Table 2 by model, with codechat's `preset`.
    """

    names: Mapping[str, str]
    tasks: Mapping[str, Mapping[str, Any]]
    figures: Mapping[str, Mapping[Setting, Figures]]
    marks: Mapping[str, Mapping[str, Any]]


@cache
def paper() -> Paper:
    data = from_yaml(DATA.read_text(encoding="utf-8"))
    found: dict[str, dict[Setting, Figures]] = {model: {} for model in data["models"]}
    for dataset, lines in data["rounds"].items():
        for line, (*rounds, avg_acc, complete_rate) in lines.items():
            model, context = line.split()
            found[model][Setting(dataset, "full_history", context)] = Figures(rounds, avg_acc, complete_rate, None)
    for dataset, lines in data["prompting"].items():
        for line, (avg_acc, complete_rate, atc) in lines.items():
            model, context, prompting = line.split()
            setting = Setting(dataset, prompting, context)
            known = found[model].get(setting, Figures((), avg_acc, complete_rate, None))
            found[model][setting] = known._replace(atc=atc)
    names = {model: about["name"] for model, about in data["models"].items()}
    return Paper(names, data["tasks"], found, data["models"])


OWN = "own"  # the level of all datasets outside the paper
COLUMNS = {"protocol.prompting", "protocol.context"}  # options with columns, which names of rows leave out


@dataclass
class Entry:
    """A model's figures by setting, measured or published. A `rival` is measured and no baseline."""

    name: str
    source: str
    rival: bool = False
    figures: dict[Setting, Figures] = field(default_factory=dict)


def level_of(cell: LoadedCell) -> str:
    """The level of a cell's dataset."""
    return next((level for level, datasets in LEVELS.items() if unmarked(cell) in datasets), OWN)


def setting_of(cell: LoadedCell) -> Setting:
    """The setting of a cell's figures."""
    protocol = cell.config["protocol"]
    return Setting(cell.dataset, str(protocol["prompting"]), str(protocol["context"]))


def entries(comparison: Comparison[Any], level: str) -> list[Entry]:
    """The measured models of a level, each followed by its published figures, then the paper's other models.

    Published figures need a cell with their setting, all tasks of their dataset and the paper's own harness.
    """
    cells = [found.cell for found in comparison.in_order() if level_of(found.cell) == level]
    measured: dict[str, Entry] = {}
    names: dict[str, str] = {}
    for cell in sorted(cells, key=lambda cell: comparison.labels.index(cell.label)):
        name = ", ".join(filter(None, [cell.model, *variant_of(cell)]))
        entry = measured.setdefault(name, Entry(name, MEASURED, not cell.is_baseline))
        figures = (cell.metrics[key] for key in ("acc", "avg_acc", "complete_rate", "atc"))
        entry.figures[setting_of(cell)] = Figures(*figures)
        names[name] = in_paper(cell)
    settings, published = {setting_of(cell) for cell in cells if not apart(cell)}, dict[str, Entry]()
    for model, known in paper().figures.items():
        if shown := {setting: each for setting, each in known.items() if setting in settings}:
            named = paper().names[model]
            published[named] = Entry(named, PUBLISHED, figures=shown)
    return beside([(names[name], [entry]) for name, entry in measured.items()], published)


def apart(cell: LoadedCell) -> list[str]:
    """The differences, in words, between a cell and the cells of the paper's figures: tasks, context and harness."""
    size, protocol = paper().tasks.get(cell.dataset), cell.config["protocol"]
    whole = size is not None and cell.metrics["sessions"] == size["tasks"] and cell.content in PUBLISHED_TASKS
    wanted = "not of the paper" if size is None else f"not the published {size['tasks']}"
    found = [] if whole else [f"{cell.metrics['sessions']} tasks, {wanted}"]
    where = protocol.get("local_context") or paper_context(cell.dataset)
    if cell.dataset not in LEVELS["function"] and where != paper_context(cell.dataset):
        found.append(f"protocol.local_context={where}")
    harness = protocol.get("harness")
    return found if harness == "official" else [*found, f"protocol.harness={harness}"]


def variant_of(cell: LoadedCell) -> Iterator[str]:
    """The differences between a cell and others of its model, without prompting and context."""
    return (words for key, words in cell.differences.items() if key not in COLUMNS)


def in_paper(cell: LoadedCell) -> str:
    """The name of a cell's model in these tables; empty if the paper has no such model."""
    preset, effort = cell.model.removesuffix(REPLAYED), (cell.config.get("model") or {}).get("reasoning_effort")
    known = {about["preset"]: model for model, about in paper().marks.items()}
    model = known.get(f"{preset}_{effort}") or known.get(preset)
    return paper().names[model] if model is not None else ""


def unmarked(cell: LoadedCell) -> str:
    """The dataset's name without the mark of its content."""
    return cell.dataset.removesuffix(f" ({cell.mark})") if cell.mark else cell.dataset


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
BEST = " Bold: the best that was measured, baselines apart."


@dataclass(frozen=True)
class Level:
    """The cells of one level: their datasets, settings and entries."""

    name: str
    cells: Sequence[LoadedCell]
    entries: Sequence[Entry]

    @property
    def datasets(self) -> list[str]:
        """The datasets, in the paper's order."""
        order = [*LEVELS.get(self.name, {})]
        known = {cell.dataset: unmarked(cell) for cell in self.cells}
        return sorted(known, key=lambda name: (order.index(known[name]) if order else 0, name))

    def within(self, prompting: str) -> list[str]:
        """The datasets with cells of a prompting."""
        found = {cell.dataset for cell in self.cells if setting_of(cell).prompting == prompting}
        return [dataset for dataset in self.datasets if dataset in found]

    def contexts(self, prompting: str) -> list[str]:
        """The contexts of cells of a prompting."""
        found = {setting.context for cell in self.cells if (setting := setting_of(cell)).prompting == prompting}
        return [context for context in SHORT if context in found]

    def titled(self, dataset: str) -> str:
        """The dataset's name in a column: the language, for a dataset of the paper."""
        known = next(unmarked(cell) for cell in self.cells if cell.dataset == dataset)
        return dataset.replace(known, LEVELS.get(self.name, {}).get(known, known), 1)

    @property
    def note(self) -> str:
        """The note on the sources of figures."""
        if self.name == OWN:
            return BEST
        lacking = NOWHERE + said_apart((cell.label, apart(cell)) for cell in self.cells)
        return f" {SOURCES}{lacking if all(map(apart, self.cells)) else ''}{BEST}"


def paper_tables(comparison: Comparison[Any]) -> Iterator[Table]:
    """The tables of every level with cells, then the sizes of the datasets."""
    cells = [found.cell for found in comparison.in_order()]
    for name in TITLES:
        own = [cell for cell in cells if level_of(cell) == name]
        if own:
            level = Level(name, own, entries(comparison, name))
            if level.contexts(FULL):
                yield overview(level)
                yield from (rounds(level, dataset) for dataset in level.within(FULL))
            yield promptings(level)
    yield sizes(comparison)
    yield from ablation_tables(comparison)
    if any(level_of(cell) != OWN for cell in cells):
        yield models(comparison)


def overview(level: Level) -> Table:
    """AvgAcc and the complete rate of every model with full history: a column for each dataset and context."""
    picks = [
        Pick(f"{_word(level.titled(dataset))}_{key}_{context}", f"{level.titled(dataset)} {title} {SHORT[context]}",
             Setting(dataset, FULL, context), key)
        for dataset in level.within(FULL) for key, title in RATES.items() for context in level.contexts(FULL)
    ]  # fmt: skip
    return _table(
        picks, _lines(level.entries, picks), name=f"stepwise_models_{level.name}",
        title=f"AvgAcc and complete rate, {TITLES[level.name]}, full history "
        f"(as SR-Eval's Table {NUMBERED[level.name][0]})",
        note=f"CR: the complete rate. {MEANING}{level.note}",
    )  # fmt: skip


def rounds(level: Level, dataset: str) -> Table:
    """Acc by round of every model on a dataset with full history."""
    settings = [Setting(dataset, FULL, context) for context in level.contexts(FULL)]
    most = max(len(each.rounds) for entry in level.entries for each in map(entry.figures.get, settings) if each)
    shown: list[tuple[str | int, str, str]] = [(k, f"round_{k + 1}", f"Round {k + 1}") for k in range(most)]
    shown += [(key, key, title) for key, title in RATES.items()]
    picks = [
        Pick(f"{name}_{setting.context}", f"{title} {SHORT[setting.context]}", setting, what)
        for what, name, title in shown for setting in settings
    ]  # fmt: skip
    return _table(
        picks, _lines(level.entries, picks), name=f"stepwise_rounds_{_word(dataset)}",
        title=f"Acc by round, {dataset}, full history (as SR-Eval's Table {NUMBERED[level.name][0]})",
        note=f"Round k is turn k − 1 of the records; its tasks have that round. {MEANING}{level.note}",
    )  # fmt: skip


def promptings(level: Level) -> Table:
    """AvgAcc, complete rate and tokens of every model by context and prompting: a block of columns for each dataset."""

    def picks(context: str, prompting: str) -> list[Pick]:
        return [
            Pick(f"{_word(named)}_{key}", f"{named} {title}", Setting(dataset, prompting, context), key)
            for dataset in level.datasets
            for named in [level.titled(dataset)]
            for key, title in (*RATES.items(), ("atc", "ATC"))
        ]

    known = [entry for entry in level.entries if any(each.atc is not None for each in entry.figures.values())]
    lines = [
        line
        for entry in known  # the paper has this table for few of its models
        for context, short in SHORT.items()
        for prompting in PROMPTINGS
        for line in _lines([entry], picks(context, prompting), (short, prompting.replace("_", " ")))
    ]
    return _table(
        picks("", ""), lines, (Column("context", "Context"), Column("prompting", "Prompting")),
        name=f"stepwise_prompting_{level.name}", title="AvgAcc, complete rate and tokens by prompting, "
        f"{TITLES[level.name]} (as SR-Eval's Table {NUMBERED[level.name][1]})",
        note=f"CR: the complete rate. ATC: input and output tokens of a task's turns, fewer being better. "
        f"{MEANING}{level.note}",
    )  # fmt: skip


def sizes(comparison: Comparison[Any]) -> Table:
    """Tasks and turns of every dataset, with the paper's Table 1."""
    texts = (Column("dataset", "Dataset"), Column("source", "Source"))
    counts = [Column(*each, "d") for each in (("tasks", "Tasks"), ("least", "Turns, least"), ("most", "most"))]
    columns = (*texts, *counts, Column("mean", "mean", ".2f"), Column("turns", "in all", "d"))
    lengths = tuple(Column(f"{unit}_{part}", f"{part.capitalize()}, {unit}", ".1f") for unit in UNITS for part in PARTS)
    rows: list[tuple[Value, ...]] = []
    for dataset in comparison.datasets:
        measured = {_counted(found.cell.metrics["n"]["acc"]) for found in comparison.on(dataset) if found.tasks}
        long = _lengths_of(comparison, dataset)
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


def _lengths_of(comparison: Comparison[Any], dataset: str) -> list[Value]:
    """The mean lengths of the turns of a dataset's tasks; None if no cell has kept them."""
    known = [(found.cell.metrics.get(LOADED) or {}).get("lengths") for found in comparison.on(dataset)]
    found = next(filter(None, known), None)
    return [each for unit in UNITS for each in (found[unit] if found else [None] * len(PARTS))]


def models(comparison: Comparison[Any]) -> Table:
    """The paper's models with the marks of its Table 2, and the cells of this report that ask each."""
    columns = columns_of(model="Model", short="Abbreviation", category="Category", size="Size")
    columns += columns_of(open="Open weights", preset="Preset") + columns_of("d", cells="Cells here")
    asked = [in_paper(found.cell) for found in comparison.in_order()]
    rows = tuple(
        (paper().names[model], model, *(paper().marks[model][key] for key in ("category", "size", "open", "preset")),
         asked.count(paper().names[model]))
        for model in paper().names
    )  # fmt: skip
    return Table(
        "stepwise_paper_models", "The paper's models (SR-Eval's Table 2)", columns, rows,
        "Category and size are as the paper prints them. What an API serves under a name may have changed since.",
        GROUP,
    )  # fmt: skip


def _counted(by_round: Sequence[int]) -> tuple[int, int, int, float, int]:
    """From the numbers of tasks with each round: the tasks, their least and most turns, the mean and the sum."""
    tasks, turns = by_round[0], sum(by_round)
    return tasks, sum(count == tasks for count in by_round), len(by_round), turns / tasks, turns


Line = tuple[Entry, tuple[Value, ...], list[Value]]  # the entry, further names of the row, and the figures
RATES = {"avg_acc": "AvgAcc", "complete_rate": "CR"}


class Pick(NamedTuple):
    """A column by its key and title, and its value of an entry: a figure by name, or Acc of a round."""

    key: str
    title: str
    setting: Setting
    what: str | int

    def of(self, entry: Entry) -> Value:
        """An entry's value; None if it has none."""
        found, what = entry.figures.get(self.setting), self.what
        if found is None:
            return None
        if isinstance(what, str):
            return getattr(found, what)  # type: ignore[no-any-return]
        return found.rounds[what] if what < len(found.rounds) else None


def _lines(of: Iterable[Entry], picks: Sequence[Pick], names: tuple[Value, ...] = ()) -> Iterator[Line]:
    for entry in of:
        values = [pick.of(entry) for pick in picks]
        if any(value is not None for value in values):
            yield entry, names, values


def _table(picks: Sequence[Pick], lines: Iterable[Line], named: Sequence[Column] = (), **about: str) -> Table:
    """The lines as rows, each with its model and the source of its figures; the best rivals of a block are bold."""
    lines = list(lines)
    heads = (Column("model", "Model"), Column("source", "Source"), *named)
    columns = [Column(pick.key, pick.title, ",.2f" if pick.what == "atc" else ".4f") for pick in picks]
    blocks = [names if entry.rival else None for entry, names, _ in lines]
    best = best_in(blocks, [values for *_, values in lines], [pick.what != "atc" for pick in picks])
    return Table(
        columns=(*heads, *columns), group=GROUP, strong=frozenset((row, len(heads) + place) for row, place in best),
        most=None, rows=tuple((entry.name, entry.source, *names, *values) for entry, names, values in lines), **about,
    )  # fmt: skip


def _word(text: str) -> str:
    return re.sub(r"\W+", "_", text).strip("_").lower()


OURS = "ours"
SUFFIXES = {"_without_alignment": "w/o Evaluator", "_without_both": "w/o DC & Evaluator"}
"""The ends of `dataset.name` of tasks made with `skip=[alignment]` and with `skip=[alignment,distinctiveness]`."""
METHODS = (OURS, *SUFFIXES.values())


def ablation_tables(comparison: Comparison[Any]) -> Iterator[Table]:
    """Tables 7 and 8: the effect of stages of validation on a benchmark, and people's ratings of the tasks.

    They need cells over tasks made with all stages, and over the same made without some.
    """
    found: dict[tuple[str, str, str], dict[str, tuple[float | None, float | None]]] = {}
    for cell in (each.cell for each in comparison.in_order() if level_of(each.cell) == OWN):
        name, method = unmarked(cell), OURS
        for suffix, named in SUFFIXES.items():
            if name.endswith(suffix):
                name, method = name.removesuffix(suffix), named
        model = ", ".join([cell.model, *variant_of(cell), *(part.replace("_", " ") for part in setting_of(cell)[1:])])
        figures = (cell.metrics["avg_acc"], cell.metrics["complete_rate"])
        found.setdefault((model, name, MEASURED), {})[method] = figures
    measured = {key: methods for key, methods in found.items() if OURS in methods and len(methods) > 1}
    if not measured:
        return
    data = from_yaml(DATA.read_text(encoding="utf-8"))
    for model, languages in data["ablations"].items():
        for language, methods in languages.items():
            measured[paper().names[model], language, PUBLISHED] = {each: tuple(methods[each]) for each in METHODS}
    yield _ablations(measured)
    columns = columns_of(level="Level", dimension="Dimension", source="Source")
    counts = (Column("count", "Ratings", "d"), *columns_of(".3f", mean="Mean", deviation="SD"))
    rows = tuple(
        (level, dimension, PUBLISHED, *figures)
        for level, dimensions in data["people"].items()
        for dimension, figures in dimensions.items()
    )
    title = "What people said of the paper's tasks, of 5 points (SR-Eval's Table 8)"
    yield Table(
        "stepwise_people", title, (*columns, *counts), rows, "Three developers, 80 tasks with 333 turns.", GROUP
    )


def _ablations(found: Mapping[tuple[str, str, str], Mapping[str, tuple[float | None, float | None]]]) -> Table:
    texts = columns_of(model="Model", tasks="Tasks", source="Source", method="Method")
    columns = [Column("avg_acc", "AvgAcc", ".4f"), Column("delta_1", "Δ₁", ".2f")]
    columns += [Column("complete_rate", "CR", ".4f"), Column("delta_2", "Δ₂", ".2f")]
    rows: list[tuple[Value, ...]] = []
    for names, methods in found.items():
        for method in filter(methods.__contains__, METHODS):
            values: list[Value] = []
            for value, ours in zip(methods[method], methods[OURS], strict=True):
                values += [value, None if value is None or ours is None else 100 * (value - ours)]
            rows.append((*names, method, *values))
    note = (
        "Δ₁, Δ₂: points of a hundred above the tasks that all stages let through: the more, the less the tests of the "
        "others discriminate. Evaluator: semantic alignment; DC: distinctiveness. The published tasks are the paper's."
    )
    title = "Tasks made without stages of validation (as SR-Eval's Table 7)"
    return Table("stepwise_ablations", title, (*texts, *columns), tuple(rows), note, GROUP)
