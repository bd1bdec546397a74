"""A cell's headline figures as lines of text, for the terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from codechat.metrics import Measures
from codechat.metrics.measures import Unit, interval_of, value_of

TextLine = tuple[str, str]
SPECS: Mapping[Unit, str] = {"share": ".3f", "percent": "+.1f", "count": ".0f", "number": ".3f", "p": ".3g"}
NONE = "—"


def summary_lines(measures: Measures, metrics: Mapping[str, Any]) -> Iterator[TextLine]:
    """Counts, finals with their intervals, both ends of each series, and the first final by every group."""
    counts = ((value_of(metrics, count), count.label[:1].lower() + count.label[1:]) for count in measures.counts)
    yield "sessions", sessions_text(metrics, counts)
    for final in measures.finals:
        yield final.label, value_text(value_of(metrics, final), interval_of(metrics, final), SPECS[final.unit])
    for series in measures.series:
        values = list(enumerate(value_of(metrics, series) or [], series.first_turn))
        known = [(turn, value) for turn, value in values if value is not None]
        if known:
            yield f"{series.label}, turn {known[0][0]} → {known[-1][0]}", ends_text([value for _, value in known])
    leading = measures.finals[0].key if measures.finals else None
    for part in measures.breakdowns:
        groups = (value_of(metrics, part) or {}).items()
        if part.key == leading and len(groups) > 1:
            each = [f"{name}: {value:{SPECS[part.unit]}}" for name, value in groups if value is not None]
            yield f"{part.label} by {part.by}", ", ".join(each) or NONE
    if any(metrics["outcomes"].values()):  # nothing is tested under some protocols
        yield "outcomes", outcomes_text(metrics)


def sessions_text(metrics: Mapping[str, Any], counts: Iterable[tuple[int | None, str]]) -> str:
    """Completed sessions, and what else was counted if it is not nought."""
    rest = ((metrics["errored"], "errored"), *counts)
    return ", ".join([f"{metrics['completed']} completed", *(f"{count} {word}" for count, word in rest if count)])


def outcomes_text(metrics: Mapping[str, Any]) -> str:
    """How often each outcome was met."""
    return ", ".join(f"{count} {name}" for name, count in metrics["outcomes"].items() if count) or NONE


def ends_text(series: Sequence[float | None], change: float | None = None) -> str:
    """The first and the last value of a series, with the change between them in per cent."""
    if not series:
        return NONE
    ends = " → ".join(value_text(value) for value in (series[0], series[-1]))
    return ends if change is None else f"{ends} ({change:+.1f} %)"


def value_text(value: float | None, interval: Sequence[float] | None = None, spec: str = ".3f") -> str:
    """A value with its interval."""
    if value is None:
        return NONE
    return f"{value:{spec}}" + (f" [{interval[0]:{spec}}, {interval[1]:{spec}}]" if interval else "")
