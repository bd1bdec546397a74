"""SR-Eval's paper as it prints itself (`published.yaml`), and each model of a report beside it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from codechat.base.files import from_yaml
from codechat.report.comparison import REPLAYED, Comparison, LoadedCell
from codechat.report.generic.published import MEASURED, PUBLISHED, beside
from codechat.studies.sreval.dataset import PUBLISHED as PUBLISHED_TASKS
from codechat.studies.sreval.protocol import paper_context

DATA = Path(__file__).with_name("published.yaml")
LEVELS: Mapping[str, Mapping[str, str]] = {
    "function": {"sreval_python": "Python", "sreval_java": "Java"},
    "repository": {"sreval_python_repository": "Python", "sreval_java_repository": "Java"},
}
"""The paper's datasets by level, each with its language."""


class Setting(NamedTuple):
    """What a figure of a model rests on: `prompting` and `context` are options of the protocol."""

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

    `names` has their full names with the reasoning level, `presets` the abbreviation of each of codechat's presets;
    `tasks` is Table 1 by dataset, and `total` its last row; `marks` is Table 2 by model, as the data file has it.
    """

    names: Mapping[str, str]
    presets: Mapping[str, str]
    tasks: Mapping[str, Mapping[str, Any]]
    figures: Mapping[str, Mapping[Setting, Figures]]
    marks: Mapping[str, Mapping[str, Any]]


@cache
def paper() -> Paper:
    """The data file's content."""
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
    presets = {about["preset"]: model for model, about in data["models"].items()}
    return Paper(names, presets, data["tasks"], found, data["models"])


OWN = "own"  # the level of all datasets that the paper does not know
COLUMNS = {"protocol.prompting", "protocol.context"}  # options that lead to columns, and so to no name of a row


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
    """Where a cell's figures belong."""
    protocol = cell.config["protocol"]
    return Setting(cell.dataset, str(protocol["prompting"]), str(protocol["context"]))


def entries(comparison: Comparison[Any], level: str) -> list[Entry]:
    """The measured models of a level, each followed by its published figures, then the paper's other models.

    A published figure is there if a cell has its setting, all tasks of its dataset and the paper's own harness.
    """
    cells = [found.cell for found in comparison.in_order() if level_of(found.cell) == level]
    measured: dict[str, Entry] = {}
    names: dict[str, str] = {}
    for cell in sorted(cells, key=lambda cell: comparison.labels.index(cell.label)):
        name = ", ".join(filter(None, [cell.model, *told(cell)]))
        entry = measured.setdefault(name, Entry(name, MEASURED, not cell.is_baseline))
        entry.figures[setting_of(cell)] = _figures(cell.metrics)
        names[name] = in_paper(cell)
    published = {entry.name: entry for entry in _published({setting_of(cell) for cell in cells if comparable(cell)})}
    return beside([(names[name], [entry]) for name, entry in measured.items()], published)


def comparable(cell: LoadedCell) -> bool:
    """Whether the paper has figures of such a cell: all tasks of one of its datasets, asked as its script asks."""
    return not apart(cell)


def apart(cell: LoadedCell) -> list[str]:
    """What sets a cell apart from those that the paper has figures of, in words."""
    size, protocol = paper().tasks.get(cell.dataset), cell.config["protocol"]
    whole = size is not None and cell.metrics["sessions"] == size["tasks"] and cell.content in PUBLISHED_TASKS
    wanted = "of its own" if size is None else f"not the published {size['tasks']}"
    found = [] if whole else [f"{cell.metrics['sessions']} tasks, {wanted}"]
    where = protocol.get("local_context") or paper_context(cell.dataset)
    if cell.dataset not in LEVELS["function"] and where != paper_context(cell.dataset):
        found.append(f"protocol.local_context={where}")
    harness = protocol.get("harness")
    return found if harness == "official" else [*found, f"protocol.harness={harness}"]


def _published(settings: set[Setting]) -> Iterator[Entry]:
    """The paper's models with what it prints in these settings, in its order."""
    for model, figures in paper().figures.items():
        known = {setting: each for setting, each in figures.items() if setting in settings}
        if known:
            yield Entry(paper().names[model], PUBLISHED, figures=known)


def told(cell: LoadedCell) -> Iterator[str]:
    """What sets a cell apart from others of its model, but prompting and context."""
    return (words for key, words in cell.differences.items() if key not in COLUMNS)


def in_paper(cell: LoadedCell) -> str:
    """The name that the paper's model of a cell has in these tables; empty if the paper has none such."""
    preset, effort = cell.model.removesuffix(REPLAYED), (cell.config.get("model") or {}).get("reasoning_effort")
    known = paper().presets
    model = known.get(f"{preset}_{effort}") or known.get(preset)
    return paper().names[model] if model is not None else ""


def unmarked(cell: LoadedCell) -> str:
    """The dataset's name without the mark of its content."""
    return cell.dataset.removesuffix(f" ({cell.mark})") if cell.mark else cell.dataset


def _figures(metrics: Mapping[str, Any]) -> Figures:
    return Figures(metrics["acc"], metrics["avg_acc"], metrics["complete_rate"], metrics["atc"])
