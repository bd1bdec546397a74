"""Tables of any protocol's measures: final figures, series over the turns, breakdowns; then counts and costs.

The first columns name the cell: model, variant if there are any, dataset, turns if they differ.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from codechat.base.domain import OUTCOMES, Decided
from codechat.report.comparison import Comparison, LoadedCell, SessionVerdicts, V
from codechat.report.data import Column, Interval, Table, Value
from codechat.report.metrics import Measures
from codechat.report.metrics.counts import (
    DECIDED,
    EXAMINED,
    INSIDE_MEANS,
    LACKS_NAME,
    SKIPPED_UNPARSABLE,
    TRUNCATED,
    TRUNCATED_SESSIONS,
    UNREAD,
    inside_in,
)
from codechat.report.metrics.measures import FEW, Measure, Unit, groups_in, interval_of, size_of, value_of
from codechat.report.metrics.statistics import rate

SPECS: Mapping[Unit, str] = {"share": ".3f", "percent": "+.1f", "count": "d", "number": ".3f", "p": "p"}
INTERVALS = "Intervals: 95 %, resampled by task; Wilson's where all tasks agree on a share."
Place = int | str | None  # where in a list or a mapping; None: the value itself
Row = tuple[tuple[Value, ...], Mapping[str, Any], Place]  # first values, and the metrics and place of the others


class Naming:
    """The naming columns of a comparison, and their values for a cell."""

    def __init__(self, comparison: Comparison[Any], *, with_dataset: bool = True) -> None:
        cells = [found.cell for found in comparison.cells]
        needed = {
            Column("model", "Model"): True,
            Column("variant", "Variant"): any(cell.variant for cell in cells),
            Column("dataset", "Dataset"): with_dataset,
            Column("turns", "N", "d"): comparison.length is None and any(cell.agenda for cell in cells),
        }
        self.columns = tuple(column for column, wanted in needed.items() if wanted)

    def of(self, found: SessionVerdicts) -> tuple[Value, ...]:
        """The cell's values of these columns."""
        return tuple(getattr(found.cell, column.key) for column in self.columns)


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
        most=None,
        **about,
    )


@dataclass(frozen=True)
class Sheet:
    """The metrics that tables show, each with the values of the naming columns. A single cell needs no name. `prefix`
    begins the tables' names; `group` is their chapter."""

    measures: Measures
    columns: tuple[Column, ...]
    cells: Sequence[tuple[tuple[Value, ...], Mapping[str, Any]]]
    prefix: str = ""
    group: str = "results"

    @classmethod
    def of(cls, comparison: Comparison[Any]) -> "Sheet":
        naming, protocol = Naming(comparison), comparison.protocol
        cells = [(naming.of(found), found.cell.metrics) for found in comparison.in_order()]
        return cls(comparison.measures, naming.columns, cells, f"{protocol}_", protocol)


def tables_of(sheet: Sheet) -> Iterator[Table]:
    """Every table that is not empty: `finals` (a row a cell), `turns` and `by_<group>`."""
    finals, series = sheet.measures.finals, sheet.measures.series
    if finals:
        table = _table(sheet, "finals", "final figures", finals, [(*cell, None) for cell in sheet.cells])
        better = {measure.key: measure.higher_is_better for measure in finals}
        dataset = next((place for place, column in enumerate(table.columns) if column.key == "dataset"), 0)
        ends = [better.get(column.key) for column in table.columns]
        strong = best_in([row[dataset] for row in table.rows], table.rows, ends)
        note = table.note + (" Bold: the best on its dataset." if strong else "")
        yield replace(table, note=note, strong=strong)
    if series:
        rows: list[Row] = []
        for named, metrics in sheet.cells:
            last = max(each.first_turn + len(value_of(metrics, each) or ()) for each in series)
            rows += [((*named, turn), metrics, turn) for turn in range(min(s.first_turn for s in series), last)]
        yield _table(sheet, "turns", "turn by turn", series, rows, Column("turn", "Turn", "d"))
    for by in dict.fromkeys(part.by for part in sheet.measures.breakdowns):
        parts = [part for part in sheet.measures.breakdowns if part.by == by]
        rows = [((*named, name), cell, name) for named, cell in sheet.cells for name in groups_in(parts, [cell])]
        yield _table(sheet, f"by_{by}", f"by {by}", parts, rows, Column(by, by.capitalize()))


def at(values: Any, measure: Measure, place: Place) -> Any:
    """One value of a series (which begins at `first_turn`), of a breakdown, or of a final; None if missing."""
    if place is None or values is None:
        return values
    if isinstance(place, str):
        return values.get(place)
    number = place - getattr(measure, "first_turn", 0)
    return values[number] if 0 <= number < len(values) else None


def _table(
    sheet: Sheet, name: str, what: str, measures: Sequence[Measure], rows: Sequence[Row], *place: Column
) -> Table:
    """The value of each measure, and the interval and size if any row has them. `place` is the column of the rows."""
    columns = [*sheet.columns, *place]
    cells = {id(metrics): metrics for _, metrics, _ in rows}  # a cell has many rows
    values: list[list[Value]] = [[*named] for named, _, _ in rows]
    sizes: list[list[Value]] = []  # measures that rest on the same numbers show them once
    for measure in measures:
        parts = (
            (Column(measure.key, measure.label, SPECS[measure.unit]), value_of),
            (Column(f"{measure.key}_ci", "95 % interval", SPECS[measure.unit]), interval_of),
            (Column(f"{measure.key}_n", "n", "d"), size_of),
        )
        for number, (column, read) in enumerate(parts):
            whole = {key: read(metrics, measure) for key, metrics in cells.items()}
            found = [at(whole[id(metrics)], measure, where) for _, metrics, where in rows]
            known = any(value is not None for value in found) and (read is not size_of or found not in sizes)
            sizes += [found] if read is size_of else []
            if number == 0 or known:
                columns.append(column)
                for line, value in zip(values, found, strict=True):
                    line.append(Interval.of(value) if read is interval_of else value)
    few = ["few" if _rests_on_few(measures, metrics, where) else "" for _, metrics, where in rows]
    if any(few):
        columns.append(Column("few", f"Fewer than {FEW}"))
        for line, mark in zip(values, few, strict=True):
            line.append(mark)
    meanings = dict.fromkeys(f"{measure.label}: {measure.help}." for measure in measures if measure.help)
    return Table(
        f"{sheet.prefix}{name}", f"{sheet.measures.name}: {what}", tuple(columns), tuple(map(tuple, values)),
        " ".join([*meanings, INTERVALS]), sheet.group,
    )  # fmt: skip


def _rests_on_few(measures: Sequence[Measure], metrics: Mapping[str, Any], where: Place) -> bool:
    """Whether a share of a group rests on few decisions."""
    sizes = [at(size_of(metrics, each), each, where) for each in measures if each.key != "undecided"]
    return isinstance(where, str) and any(0 < size < FEW for size in sizes if size is not None)


def best_in(
    blocks: Sequence[object | None], rows: Sequence[Sequence[Value]], better: Sequence[bool | None]
) -> frozenset[tuple[int, int]]:
    """The places of the best value of each column among two or more rows of a block; the block None does not count.
    `better` is by column True if a higher value is better, False if a lower one is, and None if neither is."""
    best: set[tuple[int, int]] = set()
    for name in {*blocks} - {None}:
        for place, high in enumerate(better):
            values = [(n, row[place]) for n, (block, row) in enumerate(zip(blocks, rows, strict=True)) if block == name]
            known = {number: value for number, value in values if isinstance(value, int | float)}
            if high is not None and len(known) > 1:
                top = (max if high else min)(known.values())
                best |= {(number, place) for number, value in known.items() if value == top}
    return frozenset(best)


NOT_READ = (
    "Input cut: by its count of input tokens the endpoint did not read the whole request, at so many turns, in that "
    "share of sessions."
)
PLACES: tuple[Decided, ...] = get_args(Decided)
TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens")


def counts(comparison: Comparison[Any], *, prefix: str = "", group: str = "data") -> Table:
    """Sessions and turns that are left out of the figures, and every outcome; `prefix` begins the table's name."""
    counted = comparison.measures.counts
    titles = {key: key.capitalize() for key in ("sessions", "completed", "errored")}
    titles |= {"overflowed": "Context overflow", "replies": "Replies", "replies_cut": "Replies cut"}
    titles |= {count.key: count.label for count in counted}
    broken = any(found.cell.metrics.get(SKIPPED_UNPARSABLE) for found in comparison.in_order())
    titles |= {SKIPPED_UNPARSABLE: "Skipped, code does not parse"} if broken else {}
    titles |= {f"outcome_{name}": name.replace("_", " ") for name in OUTCOMES}
    cells = list(comparison.in_order())
    other_code = any((found.cell.metrics.get("replies") or {}).get(LACKS_NAME) for found in cells)
    titles |= {"outcome_no_code": "no code with the name", LACKS_NAME: "of these, other code"} if other_code else {}
    unscored = [sum(verdicts.count(None) for verdicts in found.passed) for found in cells]
    inside = any(inside_in(found.cell.metrics) for found in cells)
    titles |= {"not_scored": "Not scored"} if any(unscored) else {}
    titles |= {f"decided_{place}": f"Decided {place}" for place in PLACES} if inside else {}
    cut_inputs = any((found.cell.metrics.get("replies") or {}).get(TRUNCATED) for found in cells)
    titles |= {TRUNCATED: "Turns, input cut", TRUNCATED_SESSIONS: "Sessions, input cut"} if cut_inputs else {}
    of_judges = [_of_judges(found.cell.metrics) for found in cells]
    titles |= {key: key.replace("_", " ").capitalize() for each in of_judges for key in each}
    rows: list[tuple[SessionVerdicts, list[Value]]] = []
    for found, number, judged in zip(cells, unscored, of_judges, strict=True):
        metrics, replies = found.cell.metrics, found.cell.metrics.get("replies") or {}
        known = {
            **{key: metrics[key] for key in ("sessions", "completed", "errored")},
            **{"overflowed": found.overflowed, "replies": replies.get("all"), "replies_cut": replies.get("cut")},
            **{count.key: value_of(metrics, count) for count in counted},
            **{f"outcome_{name}": count for name, count in metrics["outcomes"].items()},
            **{f"decided_{place}": count for place, count in (metrics.get(DECIDED) or {}).items()},
            **judged,
            "not_scored": number,
            SKIPPED_UNPARSABLE: metrics.get(SKIPPED_UNPARSABLE, 0),
            LACKS_NAME: replies.get(LACKS_NAME, 0) if replies else None,
            TRUNCATED: replies.get(TRUNCATED, 0) if replies else None,
            TRUNCATED_SESSIONS: rate(replies.get(TRUNCATED_SESSIONS, 0), metrics["completed"]) if replies else None,
        }
        rows.append((found, [known.get(key) for key in titles]))
    meanings = [f"{count.label}: {count.help}." for count in counted if count.help]
    meanings += [NOT_READ] if cut_inputs else []
    meanings += [f"Decided inside: {INSIDE_MEANS}."] if inside else []
    meanings += ["Judge check: right answers of twelve, before the cell."] if any(of_judges) else []
    columns = [Column(key, title, ".3f" if key == TRUNCATED_SESSIONS else "d") for key, title in titles.items()]
    return named_table(
        comparison, columns, rows,
        name=f"{prefix}counts", title="Sessions, outcomes, and what is left out", group=group,
        note=" ".join(["Errored sessions (infrastructure failed) are in no figure.", *meanings,
                       "Outcomes are of turns that were not skipped. Replies cut: ended by a limit of tokens or a "
                       "filter, of the replies at scored turns; a dash if they were not counted yet."]),
    )  # fmt: skip


def _of_judges(metrics: Mapping[str, Any]) -> dict[str, int]:
    """The right answers in `judge.check`, and the decisions without a readable answer, by the keys of columns."""
    unread = metrics.get(UNREAD) or {}
    return {f"{EXAMINED}_{role}": right for role, right in (metrics.get(EXAMINED) or {}).items()} | {
        f"{UNREAD}_{role}": each["unreadable"] for role, each in unread.items()
    }


def payers_of(cells: Iterable[LoadedCell]) -> list[str]:
    """Every payer of the cells by name: model under test, judges, and further roles that were asked."""
    return list(dict.fromkeys(payer for cell in cells for payer in cell.metrics["tokens"]))


def costs(comparison: Comparison[Any], *, prefix: str = "", group: str = "data") -> Table:
    """Tokens, money and time per cell, by payer."""
    columns: list[Column] = []
    cells = list(comparison.in_order())
    payers = payers_of(found.cell for found in cells)
    lacked = any(payer not in found.cell.metrics["tokens"] for found in cells for payer in payers)
    for payer in payers:
        title = payer.replace("_", " ").capitalize()
        columns += [Column(f"{payer}_{key}", f"{title}: {key.replace('_', ' ')}", ",d") for key in TOKENS]
        columns.append(Column(f"{payer}_usd", f"{title}: US$", ",.2f"))
    columns.append(Column("model_tokens_per_session", "Model: tokens per session", ",.0f"))
    columns += [Column("retries", "Retries", "d"), Column("wall_s", "Wall time, s", ",.1f")]
    return named_table(
        comparison, columns, ((found, _costs(found.cell.metrics, payers)) for found in cells),
        name=f"{prefix}costs", title="Tokens, cost and time", group=group,
        note="Of completed sessions. Cached tokens are part of the input tokens. A dash: no price is known"
        + (", or the cell asked no such role." if lacked else "."),
    )  # fmt: skip


def _costs(metrics: Mapping[str, Any], payers: Iterable[str]) -> list[Value]:
    row: list[Value] = []
    for payer in payers:
        used = metrics["tokens"].get(payer, {})
        row += [*map(used.get, TOKENS), metrics["cost_usd"].get(payer)]
    used = metrics["tokens"]["model"]
    per_session = rate(used["input_tokens"] + used["output_tokens"], metrics["completed"])
    return [*row, per_session, metrics["retries"], metrics["wall_s"]]
