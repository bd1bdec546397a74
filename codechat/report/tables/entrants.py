"""The columns that name a row: model, variant where there are any, dataset, N where it differs."""

from typing import Any

from codechat.report.data import Column, Value
from codechat.report.study import Cells, Found


class Naming:
    """Which naming columns a study needs, and their values for a cell."""

    def __init__(self, study: Cells[Any], *, with_dataset: bool = True) -> None:
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

    def of(self, found: Found) -> tuple[Value, ...]:
        """The cell's values of these columns."""
        values: list[Value] = [found.cell.model]
        if self._variants:
            values.append(found.cell.variant)
        if self._dataset:
            values.append(found.cell.dataset)
        if self._length:
            values.append(found.length)
        return tuple(values)


def last_turn(study: Cells[Any]) -> str:
    """The last turn as titles name it: `9`, or `N−1` where cells differ in length."""
    return "N−1" if study.length is None else str(study.length - 1)
