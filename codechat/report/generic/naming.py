"""The columns that name a row (model, variant if there are any, dataset, N if it differs), and tables that begin so."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from codechat.report.data import Column, Table, Value
from codechat.report.study import Study, Verdicts


class Naming:
    """Which naming columns a study needs, and their values for a cell."""

    def __init__(self, study: Study[Any], *, with_dataset: bool = True) -> None:
        length = study.length is None and any(found.cell.agenda for found in study.cells)
        known: list[tuple[bool, Column, Callable[[Verdicts], Value]]] = [
            (True, Column("model", "Model"), lambda found: found.cell.model),
            (any(found.cell.variant for found in study.cells), Column("variant", "Variant"), lambda f: f.cell.variant),
            (with_dataset, Column("dataset", "Dataset"), lambda found: found.cell.dataset),
            (length, Column("turns", "N", "d"), lambda found: found.length),
        ]
        self.columns = tuple(column for needed, column, _ in known if needed)
        self._values = [value for needed, _, value in known if needed]

    def of(self, found: Verdicts) -> tuple[Value, ...]:
        """The cell's values of these columns."""
        return tuple(value(found) for value in self._values)


def named_table(
    study: Study[Any],
    columns: Sequence[Column],
    rows: Iterable[tuple[Verdicts, Sequence[Value]]],
    strong: Iterable[tuple[int, int]] = (),
    **about: str,
) -> Table:
    """A table whose rows begin with the name of a cell; `strong` holds rows and places among `columns`."""
    naming = Naming(study)
    named = len(naming.columns)
    return Table(
        columns=(*naming.columns, *columns),
        rows=tuple((*naming.of(found), *values) for found, values in rows),
        strong=frozenset((row, named + place) for row, place in strong),
        **about,
    )
