"""Tables of whatever a protocol measures: final figures, series over the turns, breakdowns; then counts and costs.

The first columns name the cell: its model, its variant if there are any, its dataset, its turns if they differ.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from codechat.base.domain import OUTCOMES, Decided
from codechat.report.comparison import Comparison, LoadedCell, SessionVerdicts, V
from codechat.report.data import Column, Interval, Table, Value
from codechat.report.metrics import Measures
from codechat.report.metrics.counts import DECIDED, INSIDE_MEANS, inside_in
from codechat.report.metrics.measures import FEW, Measure, Unit, interval_of, size_of, value_of
from codechat.report.metrics.statistics import rate

SPECS: Mapping[Unit, str] = {"share": ".3f", "percent": "+.1f", "count": "d", "number": ".3f", "p": "p"}
INTERVALS = "Intervals: 95 %, resampled by task."
Place = int | str | None  # where in a list or a mapping; None: the value itself
Row = tuple[tuple[Value, ...], Mapping[str, Any], Place]  # its first values, and where in which metrics the others lie


class Naming:
    """Which naming columns a comparison needs, and their values for a cell."""

    def __init__(self, comparison: Comparison[Any], *, with_dataset: bool = True) -> None:
        length = comparison.length is None and any(found.cell.agenda for found in comparison.cells)
        known: list[tuple[bool, Column, Callable[[SessionVerdicts], Value]]] = [
            (True, Column("model", "Model"), lambda found: found.cell.model),
            (
                any(found.cell.variant for found in comparison.cells),
                Column("variant", "Variant"),
                lambda f: f.cell.variant,
            ),
            (with_dataset, Column("dataset", "Dataset"), lambda found: found.cell.dataset),
            (length, Column("turns", "N", "d"), lambda found: found.cell.turns),
        ]
        self.columns = tuple(column for needed, column, _ in known if needed)
        self._values = [value for needed, _, value in known if needed]

    def of(self, found: SessionVerdicts) -> tuple[Value, ...]:
        """The cell's values of these columns."""
        return tuple(value(found) for value in self._values)


def named_table(
    comparison: Comparison[V],
    columns: Sequence[Column],
    rows: Iterable[tuple[V, Sequence[Value]]],
    strong: Iterable[tuple[int, int]] = (),
    **about: str,
) -> Table:
    """A table whose rows begin with the name of a cell; `strong` holds rows and places among `columns`."""
    naming = Naming(comparison)
    named = len(naming.columns)
    return Table(
        columns=(*naming.columns, *columns),
        rows=tuple((*naming.of(found), *values) for found, values in rows),
        strong=frozenset((row, named + place) for row, place in strong),
        **about,
    )


@dataclass(frozen=True)
class Sheet:
    """Whose figures tables hold: metrics, each under the values of the naming columns. One cell alone needs no name.

    `prefix` begins the tables' names; `group` is their chapter.
    """

    measures: Measures
    columns: tuple[Column, ...]
    cells: Sequence[tuple[tuple[Value, ...], Mapping[str, Any]]]
    prefix: str = ""
    group: str = "results"

    @classmethod
    def of(cls, comparison: Comparison[Any]) -> "Sheet":
        """The figures of a comparison's cells."""
        naming, protocol = Naming(comparison), comparison.protocol
        cells = [(naming.of(found), found.cell.metrics) for found in comparison.in_order()]
        return cls(comparison.measures, naming.columns, cells, f"{protocol}_", protocol)


def tables_of(sheet: Sheet) -> Iterator[Table]:
    """Every table that there is something for: `finals` (a row a cell), `turns` and `by_<group>`."""
    finals, series = sheet.measures.finals, sheet.measures.series
    if finals:
        table = _table(
            sheet, "finals", "final figures", finals, [(named, metrics, None) for named, metrics in sheet.cells]
        )
        note = table.note + (" Bold: the best on its dataset." if len(table.rows) > 1 else "")
        better = {measure.key: measure.higher_is_better for measure in finals}
        dataset = next((place for place, column in enumerate(table.columns) if column.key == "dataset"), 0)
        ends = [better.get(column.key) for column in table.columns]
        yield replace(table, note=note, strong=best_in([row[dataset] for row in table.rows], table.rows, ends))
    if series:
        rows: list[Row] = []
        for named, metrics in sheet.cells:
            last = max(each.first_turn + len(value_of(metrics, each) or ()) for each in series)
            rows += [((*named, turn), metrics, turn) for turn in range(min(s.first_turn for s in series), last)]
        yield _table(sheet, "turns", "turn by turn", series, rows, Column("turn", "Turn", "d"))
    for by in dict.fromkeys(part.by for part in sheet.measures.breakdowns):
        parts = [part for part in sheet.measures.breakdowns if part.by == by]
        rows = [
            ((*named, name), metrics, name) for named, metrics in sheet.cells for name in groups_in(parts, [metrics])
        ]
        yield _table(sheet, f"by_{by}", f"by {by}", parts, rows, Column(by, by.capitalize()))


def groups_in(parts: Sequence[Measure], metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    """The groups that any of the breakdowns has, in the order in which they stand."""
    return list(dict.fromkeys(group for part in parts for each in metrics for group in value_of(each, part) or ()))


def at(values: Any, measure: Measure, place: Place) -> Any:
    """One value of a series (its first is that of `first_turn`), of a breakdown, or of a final; None where missing."""
    if place is None or values is None:
        return values
    if isinstance(place, str):
        return values.get(place)
    number = place - getattr(measure, "first_turn", 0)
    return values[number] if 0 <= number < len(values) else None


def _table(
    sheet: Sheet, name: str, what: str, measures: Sequence[Measure], rows: Sequence[Row], *place: Column
) -> Table:
    """Of each measure its value, and its interval and size if any row has them. `place` is the column of the rows'."""
    columns = [*sheet.columns, *place]
    values: list[list[Value]] = [[*named] for named, _, _ in rows]
    sizes: list[list[Value]] = []  # measures that rest on the same numbers show them once
    for measure in measures:
        parts = (
            (Column(measure.key, measure.label, SPECS[measure.unit]), value_of),
            (Column(f"{measure.key}_ci", "95 % interval", SPECS[measure.unit]), interval_of),
            (Column(f"{measure.key}_n", "n", "d"), size_of),
        )
        for number, (column, read) in enumerate(parts):
            found = [at(read(metrics, measure), measure, where) for _, metrics, where in rows]
            known = any(value is not None for value in found) and (read is not size_of or found not in sizes)
            sizes += [found] if read is size_of else []
            if number == 0 or known:
                columns.append(column)
                for line, value in zip(values, found, strict=True):
                    line.append(Interval.of(value) if read is interval_of else value)
    few = [_few(measures, metrics, where) for _, metrics, where in rows]
    if any(few):
        columns.append(Column("few", f"Fewer than {FEW}"))
        for line, mark in zip(values, few, strict=True):
            line.append(mark)
    meanings = dict.fromkeys(f"{measure.label}: {measure.help}." for measure in measures if measure.help)
    return Table(
        f"{sheet.prefix}{name}", f"{sheet.measures.name}: {what}", tuple(columns), tuple(map(tuple, values)),
        " ".join([*meanings, INTERVALS]), sheet.group,
    )  # fmt: skip


def _few(measures: Sequence[Measure], metrics: Mapping[str, Any], where: Place) -> str:
    """A mark, if a share of a group is of few decisions; empty if none is, or if there is no group."""
    if not isinstance(where, str):
        return ""
    sizes = [at(size_of(metrics, each), each, where) for each in measures if each.key != "undecided"]
    return "few" if any(0 < size < FEW for size in sizes if size is not None) else ""


def best_in(
    blocks: Sequence[object | None], rows: Sequence[Sequence[Value]], better: Sequence[bool | None]
) -> frozenset[tuple[int, int]]:
    """Where the best value of a column stands among two or more rows of a block; rows of the block None do not count.

    `better` says by column whether a higher value is better, None if neither is.
    """
    best: set[tuple[int, int]] = set()
    for name in {*blocks} - {None}:
        for place, high in enumerate(better):
            values = [(n, row[place]) for n, (block, row) in enumerate(zip(blocks, rows, strict=True)) if block == name]
            known = {number: value for number, value in values if isinstance(value, int | float)}
            if high is not None and len(known) > 1:
                top = (max if high else min)(known.values())
                best |= {(number, place) for number, value in known.items() if value == top}
    return frozenset(best)


PLACES: tuple[Decided, ...] = get_args(Decided)
TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens")


def counts(comparison: Comparison[Any], *, prefix: str = "", group: str = "data") -> Table:
    """What was left out of the figures, and every outcome; `prefix` begins the table's name."""
    keys, counted = ("sessions", "completed", "errored"), comparison.measures.counts
    titles = [
        *(key.capitalize() for key in keys), "Context overflow", "Replies", "Replies cut",
        *(count.label for count in counted), *(name.replace("_", " ") for name in OUTCOMES),
    ]  # fmt: skip
    names = [
        *keys,
        "overflowed",
        "replies",
        "replies_cut",
        *(count.key for count in counted),
        *(f"outcome_{name}" for name in OUTCOMES),
    ]
    rows: list[tuple[SessionVerdicts, list[Value]]] = []
    for found in comparison.in_order():
        metrics = found.cell.metrics
        replies = metrics.get("replies") or {}
        values = [*(metrics[key] for key in keys), found.overflowed, replies.get("all"), replies.get("cut")]
        values += [value_of(metrics, count) for count in counted]
        rows.append((found, [*values, *map(metrics["outcomes"].get, OUTCOMES)]))
    unscored = [sum(verdicts.count(None) for verdicts in found.passed) for found, _ in rows]
    if any(unscored):
        titles, names = [*titles, "Not scored"], [*names, "not_scored"]
        rows = [(found, [*values, number]) for (found, values), number in zip(rows, unscored, strict=True)]
    inside = any(inside_in(found.cell.metrics) for found, _ in rows)
    if inside:
        titles += [f"Decided {place}" for place in PLACES]
        names += [f"decided_{place}" for place in PLACES]
        rows = [(found, [*values, *map((found.cell.metrics.get(DECIDED) or {}).get, PLACES)]) for found, values in rows]
    meanings = [f"{count.label}: {count.help}." for count in counted if count.help]
    meanings += [f"Decided inside: {INSIDE_MEANS}."] if inside else []
    return named_table(
        comparison, [Column(key, title, "d") for key, title in zip(names, titles, strict=True)], rows,
        name=f"{prefix}counts", title="Sessions, outcomes, and what is left out", group=group,
        note=" ".join(["Errored sessions (infrastructure failed) are in no figure.", *meanings,
                       "Outcomes are of turns that were not skipped. Replies cut: ended by a limit of tokens or a "
                       "filter, of the replies at scored turns; a dash if they were not counted yet."]),
    )  # fmt: skip


def payers_of(cells: Iterable[LoadedCell]) -> list[str]:
    """Every payer that any of the cells has, by name: model under test, judges, and further roles that were asked."""
    return list(dict.fromkeys(payer for cell in cells for payer in cell.metrics["tokens"]))


def costs(comparison: Comparison[Any], *, prefix: str = "", group: str = "data") -> Table:
    """Tokens, money and time per cell, for every payer apart."""
    columns: list[Column] = []
    payers = payers_of(found.cell for found in comparison.in_order())
    lacked = any(payer not in found.cell.metrics["tokens"] for found in comparison.in_order() for payer in payers)
    for payer in payers:
        title = payer.replace("_", " ").capitalize()
        columns += [Column(f"{payer}_{key}", f"{title}: {key.replace('_', ' ')}", ",d") for key in TOKENS]
        columns.append(Column(f"{payer}_usd", f"{title}: US$", ",.2f"))
    columns.append(Column("model_tokens_per_session", "Model: tokens per session", ",.0f"))
    columns += [Column("retries", "Retries", "d"), Column("wall_s", "Wall time, s", ",.1f")]
    return named_table(
        comparison, columns, ((found, _costs(found, payers)) for found in comparison.in_order()),
        name=f"{prefix}costs", title="Tokens, cost and time", group=group,
        note="Of completed sessions. Cached tokens are part of the input tokens. A dash: no price is known"
        + (", or the cell asked no such role." if lacked else "."),
    )  # fmt: skip


def _costs(found: SessionVerdicts, payers: Iterable[str]) -> list[Value]:
    metrics = found.cell.metrics
    row: list[Value] = []
    for payer in payers:
        used = metrics["tokens"].get(payer, {})
        row += [*map(used.get, TOKENS), metrics["cost_usd"].get(payer)]
    used = metrics["tokens"]["model"]
    per_session = rate(used["input_tokens"] + used["output_tokens"], metrics["completed"])
    return [*row, per_session, metrics["retries"], metrics["wall_s"]]
