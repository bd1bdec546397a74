"""Which cells may be compared as a whole: those of one setup, which differ in nothing but the model and the dataset."""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from codechat.report.generic.overview import rivals_of
from codechat.report.study import LoadedCell


@dataclass(frozen=True)
class Setup:
    """Cells of one setup by model; every model has one cell on each of the datasets. `setting` tells it in words."""

    setting: str
    datasets: Sequence[str]
    cells: Mapping[str, Sequence[LoadedCell]]


def setups_of(cells: Sequence[LoadedCell]) -> list[Setup]:
    """The setups, that of the most models first. Baselines count only if there is nothing else.

    A setup has those datasets that leave the most cells; models that lack one of them are left out, since a mean over
    other tasks says nothing. Of different choices of a dataset's tasks, and of different tasks of one name, only those
    that most cells have count.
    """
    found: dict[Hashable, list[LoadedCell]] = {}
    for cell in rivals_of(cells):
        if cell.metrics.get("mst") is not None:
            found.setdefault((cell.variant, cell.agenda, cell.turns, cell.setup), []).append(cell)
    setups = [_setup(_alike(members)) for members in found.values()]
    return sorted(setups, key=lambda setup: -len(setup.cells))


def _alike(cells: Sequence[LoadedCell]) -> list[LoadedCell]:
    """The cells whose dataset's tasks are those that most cells of its name have."""
    if any(cell.mark for cell in cells):  # different tasks of one name have no mean
        names = [cell.dataset for cell in cells]
        common = max(sorted(set(names)), key=names.count)
        cells = [cell for cell in cells if cell.dataset == common]
    chosen = {}
    for name in {cell.dataset for cell in cells}:
        selections = [_selection(cell) for cell in cells if cell.dataset == name]
        chosen[name] = max(selections, key=selections.count)
    return [cell for cell in cells if _selection(cell) == chosen[cell.dataset]]


def _selection(cell: LoadedCell) -> str:
    """Which of the dataset's tasks the cell ran."""
    options = cell.config.get("dataset") or {}
    return json.dumps([options.get("limit"), options.get("tasks")])


def _setup(cells: Sequence[LoadedCell]) -> Setup:
    """The cells of one setup on those datasets that leave the most cells, and of those the most datasets."""
    models: dict[str, list[LoadedCell]] = {}
    for cell in cells:
        models.setdefault(cell.model, []).append(cell)
    had = {model: frozenset(cell.dataset for cell in found) for model, found in models.items()}
    left = {names: len(names) * sum(each >= names for each in had.values()) for names in had.values()}
    datasets = max(left, key=lambda names: (left[names], len(names)))
    whole = {model: [cell for cell in found if cell.dataset in datasets]
             for model, found in models.items() if had[model] >= datasets}  # fmt: skip
    return Setup(cells[0].setting, sorted(datasets), whole)
