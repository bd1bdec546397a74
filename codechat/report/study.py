"""The cells of a report that are compared with one another: those of one protocol."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from codechat.report.cells import LoadedCell


class Found(Protocol):
    """What was read of one cell: `tasks` and `passed` hold a session each, `passed` with one verdict a turn."""

    @property
    def cell(self) -> LoadedCell: ...

    @property
    def tasks(self) -> list[str]: ...

    @property
    def passed(self) -> list[tuple[bool, ...]]: ...

    @property
    def overflowed(self) -> int:
        """Sessions that outgrew the model's context."""

    @property
    def length(self) -> int:
        """N: the most turns of a session, turn 0 included."""


F = TypeVar("F", bound=Found)


@dataclass(frozen=True)
class Cells(Generic[F]):
    """All cells of one protocol. An entrant is a model with its variant: it has one cell per dataset at most."""

    cells: tuple[F, ...]

    @property
    def datasets(self) -> list[str]:
        """Names of the datasets, sorted."""
        return sorted({found.cell.dataset for found in self.cells})

    @property
    def labels(self) -> list[str]:
        """Labels of the entrants, by model."""
        return list(dict.fromkeys(found.cell.label for found in sorted(self.cells, key=_by_model)))

    @property
    def models(self) -> list[str]:
        """Names of the models, sorted."""
        return sorted({found.cell.model for found in self.cells})

    @property
    def length(self) -> int | None:
        """N, where all cells have the same."""
        lengths = {found.length for found in self.cells}
        return lengths.pop() if len(lengths) == 1 else None

    def entrant(self, label: str) -> Mapping[str, F]:
        """An entrant's cells by dataset."""
        return {found.cell.dataset: found for found in self.cells if found.cell.label == label}

    def on(self, dataset: str) -> Iterator[F]:
        """The cells of a dataset, in the order of `labels`."""
        return iter(sorted((found for found in self.cells if found.cell.dataset == dataset), key=_by_model))

    def in_order(self) -> Iterator[F]:
        """All cells, dataset by dataset."""
        return (found for dataset in self.datasets for found in self.on(dataset))


def _by_model(found: Found) -> tuple[str, str, int, str]:
    cell = found.cell
    return (cell.model, cell.agenda, cell.turns, cell.variant)
