"""The columns that name a row (model, variant if there are any, dataset, N if it differs), and tables that begin so."""

from collections.abc import Iterable, Sequence
from typing import Any

from codechat.report.data import Column, Table, Value
from codechat.report.study import Study, Verdicts


class Naming:
    """Which naming columns a study needs, and their values for a cell."""

    def __init__(self, study: Study[Any], *, with_dataset: bool = True) -> None:
        self._variants = any(found.cell.variant for found in study.cells)
        self._dataset = with_dataset
        self._length = study.length is None and any(found.cell.agenda for found in study.cells)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The naming columns, first in their table."""
        columns = [Column("model", "Model")]
        if self._variants:
            columns.append(Column("variant", "Variant"))
        if self._dataset:
            columns.append(Column("dataset", "Dataset"))
        if self._length:
            columns.append(Column("turns", "N", "d"))
        return tuple(columns)

    def of(self, found: Verdicts) -> tuple[Value, ...]:
        """The cell's values of these columns."""
        values: list[Value] = [found.cell.model]
        if self._variants:
            values.append(found.cell.variant)
        if self._dataset:
            values.append(found.cell.dataset)
        if self._length:
            values.append(found.length)
        return tuple(values)


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
