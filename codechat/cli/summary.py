"""A finished cell's headline figures, as the terminal shows them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from codechat.metrics import REFINE, Measures
from codechat.metrics.measures import Unit, interval_of, value_of

Line = tuple[str, str]
SPECS: Mapping[Unit, str] = {"share": ".3f", "percent": "+.1f", "count": ".0f", "number": ".3f", "p": ".3g"}
NONE = "—"


def summary(measures: Measures, metrics: Mapping[str, Any], title: str) -> Table:
    """A line per figure; a protocol without lines of its own has those of everything that it measures."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    lines = OWN_LINES.get(measures.protocol)
    for name, value in lines(metrics) if lines else _lines(measures, metrics):
        table.add_row(f"[bold]{escape(name)}[/bold]", escape(value))
    return table


def _lines(measures: Measures, metrics: Mapping[str, Any]) -> Iterator[Line]:
    """Counts, finals with their intervals, both ends of each series, and the first final by every group."""
    counts = ((value_of(metrics, count), count.label[:1].lower() + count.label[1:]) for count in measures.counts)
    yield "sessions", _sessions(metrics, counts)
    for final in measures.finals:
        yield final.label, _value(value_of(metrics, final), interval_of(metrics, final), SPECS[final.unit])
    for series in measures.series:
        values = list(enumerate(value_of(metrics, series) or [], series.first_turn))
        told = [(turn, value) for turn, value in values if value is not None]
        if told:
            yield f"{series.label}, turn {told[0][0]} → {told[-1][0]}", _ends([value for _, value in told], None)
    leading = measures.finals[0].key if measures.finals else None
    for part in measures.breakdowns:
        groups = (value_of(metrics, part) or {}).items()
        if part.key == leading and len(groups) > 1:
            each = (f"{name} {_value(value, None, SPECS[part.unit])}" for name, value in groups if value is not None)
            yield f"{part.label} by {part.by}", ", ".join(each) or NONE
    yield "outcomes", _outcomes(metrics)


def _refine_lines(metrics: Mapping[str, Any]) -> Iterator[Line]:
    last = len(metrics["pass_at_1"]) - 1
    trend = metrics["mann_kendall"]["pass_at_1"]
    counts = ((metrics["skipped_turns"], "turns skipped"), (metrics["undecided"], "turns undecided"))
    yield "sessions", _sessions(metrics, counts)
    yield f"Pass@1, turn 0 → {last}", _ends(metrics["pass_at_1"], metrics["delta_pct"])
    yield "Mann–Kendall trend", NONE if trend is None else f"{trend['trend']} (p = {trend['p']:.3g})"
    yield "Mean Sustainable Turns", _value(metrics["mst"], metrics["ci"]["mst"]) + f" of {last + 1}"
    yield f"adherence, turn 1 → {last}", _ends(metrics["iar"], metrics["iar_delta_pct"])
    yield "regression", _rates(metrics["regression"])
    yield "self-correction", _rates(metrics["self_correction"])
    yield "outcomes", _outcomes(metrics)


# Protocols whose lines say more than a list of everything would.
OWN_LINES: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Line]]] = {REFINE.protocol: _refine_lines}


def _sessions(metrics: Mapping[str, Any], counts: Iterable[tuple[int | None, str]]) -> str:
    """Completed sessions, and what else was counted, where it is not nought."""
    rest = ((metrics["errored"], "errored"), *counts)
    return ", ".join([f"{metrics['completed']} completed", *(f"{count} {word}" for count, word in rest if count)])


def _outcomes(metrics: Mapping[str, Any]) -> str:
    return ", ".join(f"{count} {name}" for name, count in metrics["outcomes"].items() if count) or NONE


def _ends(series: Sequence[float | None], delta: float | None) -> str:
    if not series:
        return NONE
    ends = " → ".join(_value(value, None) for value in (series[0], series[-1]))
    return ends if delta is None else f"{ends} ({delta:+.1f} %)"


def _value(value: float | None, interval: Sequence[float] | None, spec: str = ".3f") -> str:
    if value is None:
        return NONE
    return f"{value:{spec}}" + (f" [{interval[0]:{spec}}, {interval[1]:{spec}}]" if interval else "")


def _rates(rates: Mapping[str, Any]) -> str:
    if rates["overall"] is None:
        return NONE
    scopes = ", ".join(f"{name} {value:.3f}" for name, value in rates["by_scope"].items() if value is not None)
    return f"{rates['overall']:.3f} ({scopes})"
