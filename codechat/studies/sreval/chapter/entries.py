"""Whose figures the paper's tables hold: the report's models, each beside what the paper prints of it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from codechat.report.study import REPLAYED, LoadedCell, Study
from codechat.studies.sreval.chapter.published import LEVELS, Figures, Setting, paper

OWN = "own"  # the level of all datasets that the paper does not know
MEASURED, PUBLISHED = "measured", "published"
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


def entries(study: Study[Any], level: str) -> list[Entry]:
    """The measured models of a level, each followed by its published figures, then the paper's other models.

    A published figure is there if a cell has its setting, all tasks of its dataset and the paper's own harness.
    """
    cells = [found.cell for found in study.in_order() if level_of(found.cell) == level]
    measured: dict[str, Entry] = {}
    beside: dict[str, list[str]] = defaultdict(list)
    for cell in sorted(cells, key=lambda cell: study.labels.index(cell.label)):
        name = ", ".join(filter(None, [cell.model, *told(cell)]))
        entry = measured.setdefault(name, Entry(name, MEASURED, not cell.is_baseline))
        entry.figures[setting_of(cell)] = _figures(cell.metrics)
        beside[_in_paper(cell)] += [name] if name not in beside[_in_paper(cell)] else []
    published = {entry.name: entry for entry in _published({setting_of(cell) for cell in cells if comparable(cell)})}
    found: list[Entry] = []
    for name, entry in measured.items():
        found.append(entry)
        found += [published.pop(known) for known, names in beside.items() if names[-1] == name and known in published]
    return [*found, *published.values()]


def comparable(cell: LoadedCell) -> bool:
    """Whether the paper has figures of such a cell: all tasks of one of its datasets, asked as its script asks."""
    size, protocol = paper().tasks.get(cell.dataset), cell.config["protocol"]
    whole = size is not None and cell.metrics["sessions"] == size["tasks"]
    shown = cell.dataset in LEVELS["function"] or protocol.get("local_context") == "first"
    return whole and shown and protocol.get("harness") == "official"


def _published(settings: set[Setting]) -> Iterator[Entry]:
    """The paper's models with what it prints in these settings, in its order."""
    for model, figures in paper().figures.items():
        known = {setting: each for setting, each in figures.items() if setting in settings}
        if known:
            yield Entry(paper().names[model], PUBLISHED, figures=known)


def told(cell: LoadedCell) -> Iterator[str]:
    """What sets a cell apart from others of its model, but prompting and context."""
    return (words for key, words in cell.differences.items() if key not in COLUMNS)


def _in_paper(cell: LoadedCell) -> str:
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
