"""A protocol's measures as data, from which MLflow, the terminal, tables, figures and the report page are made.

metrics.json contains this description (key `measures`), so that a report can read any cell, even if its protocol is not
installed. An `at` is a place in metrics.json, its keys joined by dots, such as `regression.overall`. If present, the
95 % interval of the value is at `ci.` and the same place, and the number of tasks, sessions or turns behind it at `n.`.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from codechat.base.records import UNDER_TEST
from codechat.report.metrics.counts import AGENT, DECIDED
from codechat.report.metrics.statistics import STOPPED, of_width

# share: of 1, drawn from 0 to 1; percent: of 100; p: a p-value; count: whole; number: anything else
Unit = Literal["share", "percent", "count", "number", "p"]
FEW = 10  # decisions of a group, below which its share is marked
FIELD = "measures"  # the description's key in metrics.json
# In every metrics.json, in addition to the protocol's measures (contract, section 2).
COMMON = ("sessions", "completed", "errored", "outcomes", "retries", "tokens", "cost_usd", "wall_s")
MOST_FINALS = 5  # in the headline
WALL = "cost/wall_s"  # the key of a point


@dataclass(frozen=True, slots=True)
class Series:
    """A list over the turns from `first_turn` on; tracked as `turn/<key>`. `at` is `key` unless given. `help` is the
    definition, in one sentence."""

    key: str
    label: str
    at: str = ""
    first_turn: int = 0
    unit: Unit = "share"
    higher_is_better: bool = True
    help: str = ""


@dataclass(frozen=True, slots=True)
class Final:
    """One number of a cell; tracked as `final/<key>`. `higher_is_better` is None if neither is better."""

    key: str
    label: str
    at: str = ""
    unit: Unit = "share"
    higher_is_better: bool | None = True
    help: str = ""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A final by group: a mapping from a group's name to a number; tracked as `final/<key>_<group>`. `by` names the
    groups (`strategy`, `level`): breakdowns by the same groups are columns of one table."""

    key: str
    label: str
    by: str
    at: str
    unit: Unit = "share"
    higher_is_better: bool | None = True
    help: str = ""


Measure = Series | Final | Breakdown


@dataclass(frozen=True, slots=True)
class Measures:
    """All measures of a protocol, in reading order; cells are ranked by the first of `finals`.

    Every metrics.json also has the values of `COMMON`; `counts` names further counts, such as skipped turns.
    `passed` says in words when a turn's `passed` is true. The part of `title` before a colon is the short name.
    """

    protocol: str
    title: str
    series: tuple[Series, ...] = ()
    finals: tuple[Final, ...] = ()
    breakdowns: tuple[Breakdown, ...] = ()
    counts: tuple[Final, ...] = ()
    passed: str = "the code passes the tests"

    @property
    def name(self) -> str:
        return self.title.partition(":")[0]

    def have(self, *keys: str) -> bool:
        """Whether there is a series or a final for each of the keys."""
        return {*keys} <= {*(each.key for each in self.series), *(each.key for each in self.finals)}

    def describe(self) -> dict[str, Any]:
        """The JSON values for metrics.json."""
        return asdict(self)


def merge(descriptions: Iterable[Measures]) -> Measures:
    """The union of the measures of several cells of one protocol, whose options can add some; at least one is given."""
    first, *others = sorted(descriptions, key=lambda each: len(each.finals) + len(each.series), reverse=True)
    parts: dict[str, Any] = {}
    for name in ("series", "finals", "breakdowns", "counts"):
        found: dict[tuple[str, str], Measure] = {}
        for measure in (each for description in (first, *others) for each in getattr(description, name)):
            found.setdefault((measure.key, getattr(measure, "by", "")), measure)
        parts[name] = tuple(found.values())
    return replace(first, **parts)


def measures_in(metrics: Mapping[str, Any]) -> Measures | None:
    """The description in a metrics.json; None if it has none that this version can read."""
    try:
        return TypeAdapter(Measures).validate_python(metrics.get(FIELD))
    except ValidationError:
        return None


def value_of(metrics: Mapping[str, Any], measure: Measure) -> Any:
    """A measure's value in a metrics.json: a list, a number or a mapping; None if it is missing."""
    return _at(metrics, measure.at or measure.key)


def interval_of(metrics: Mapping[str, Any], measure: Measure) -> Any:
    """The intervals of a measure's values for readers, in the same shape; None if there are none.

    `ci` has percentiles of resamples, which have no width if all tasks agree: such a share has Wilson's interval. The
    intervals of a cell with `stop.*` are no resamples, and stay.
    """
    ends, sizes = value_of(metrics.get("ci") or {}, measure), size_of(metrics, measure)
    if STOPPED in metrics or measure.unit != "share" or (sizes is None and not isinstance(measure, Series)):
        return ends
    return _shown(ends, value_of(metrics, measure), sizes, metrics.get("completed") or 0)


def _shown(ends: Any, value: Any, size: Any, most: int) -> Any:
    """`of_width` of each value; `most` bounds the number of tasks, since turns of one task are not independent."""
    if isinstance(value, Mapping) and isinstance(ends, Mapping):
        return {key: _shown(each, value.get(key), (size or {}).get(key), most) for key, each in ends.items()}
    if isinstance(value, list) and isinstance(ends, list) and value and len(ends) == len(value):
        sizes = size if isinstance(size, list) else [size] * len(value)
        return [_shown(*each, most) for each in zip(ends, value, sizes, strict=True)]
    if not isinstance(ends, list | tuple) or not isinstance(value, int | float):
        return ends
    shown = of_width((ends[0], ends[1]), value, most if size is None else min(size, most))
    return None if shown is None else list(shown)


def size_of(metrics: Mapping[str, Any], measure: Measure) -> Any:
    """The counts behind a measure's values, in the same shape; None if there are none."""
    return value_of(metrics.get("n") or {}, measure)


def changing_sizes(metrics: Mapping[str, Any], series: Series) -> list[int]:
    """The number behind each known value of a share over turns, if the numbers differ; empty if all rest on as many.

    Such values are not of the same members: a share rises by itself if failing ones leave it.
    """
    pairs = zip(value_of(metrics, series) or (), size_of(metrics, series) or (), strict=False)
    sizes = [size for value, size in pairs if value is not None]
    return sizes if series.unit == "share" and len({*sizes}) > 1 else []


def changes_text(metrics: Mapping[str, Any], series: Series) -> str:
    """The first and the last number behind a share whose members change, and the least if it is lower; else empty."""
    sizes = changing_sizes(metrics, series)
    if not sizes:
        return ""
    first, last, least, most = sizes[0], sizes[-1], min(sizes), max(sizes)
    beyond = [f"least {least:,}"] if least < min(first, last) else []
    beyond += [f"most {most:,}"] if most > max(first, last) else []
    return f"{first:,} → {last:,}" + (f", {', '.join(beyond)}" if beyond else "")


def groups_in(parts: Sequence[Measure], metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    """The groups that any of the breakdowns has, in the order in which they stand."""
    return list(dict.fromkeys(group for part in parts for each in metrics for group in value_of(each, part) or ()))


def size_text(size: int) -> str:
    """The number of decisions behind a share; an asterisk marks fewer than `FEW`."""
    return f"n {size:,}{'*' if size < FEW else ''}"


def sizes_text(sizes: Sequence[int]) -> str:
    """The smallest and the largest number of decisions behind the shares of several cells; empty if there is none."""
    return "–".join(map(size_text, sorted({min(sizes), max(sizes)}))) if sizes else ""


def _at(values: Any, place: str) -> Any:
    for name in place.split("."):
        if not isinstance(values, Mapping):
            return None
        values = values.get(name)
    return values


def fault_of(metrics: Mapping[str, Any], measures: Measures) -> str:
    """Why a protocol's metrics cannot be shown: a count is missing, a final is no number, or a number is not finite;
    empty if they can be."""
    for key in ("sessions", "completed", "errored"):
        if not isinstance(metrics.get(key), int):
            return f"must have '{key}', a count"
    if not isinstance(metrics.get("outcomes"), Mapping):
        return "must have 'outcomes', the turns by outcome"
    for final in measures.finals:
        value = value_of(metrics, final)
        if value is not None and not isinstance(value, int | float):
            return f"must have a number or None as '{final.at or final.key}', and has {value!r:.60}"
    return next((f"must have finite numbers, and has {number} at '{at}'" for at, number in infinite_in(metrics)), "")


def infinite_in(values: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """The places of numbers that JSON or a float cannot hold (NaN, infinity, a huge integer), and the numbers."""
    if isinstance(values, int | float):
        if not -sys.float_info.max <= values <= sys.float_info.max:
            yield place, f"{values}" if isinstance(values, float) else "a huge integer"
        return
    named: Iterable[tuple[object, Any]] = ()
    if isinstance(values, Mapping):
        named = values.items()
    elif isinstance(values, list | tuple):
        named = enumerate(values)
    for name, value in named:
        yield from infinite_in(value, f"{place}.{name}" if place else str(name))


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a metric. `step` is the turn for the series under `turn/`, else 0."""

    key: str
    value: float
    step: int = 0


def points_of(measures: Measures, metrics: Mapping[str, Any]) -> list[Point]:
    """The points of a cell's metrics: series over turns, final figures and costs, without null values. A share whose
    members change over the turns also has their numbers, `turn/<key>_n`."""
    scalars = {**_counts(metrics), **_finals(measures, metrics), **_costs(metrics)}
    points = [
        Point(f"turn/{series.key}", value, turn)
        for series in measures.series
        for turn, value in enumerate(value_of(metrics, series) or (), series.first_turn)
        if value is not None
    ]
    sizes = [
        Point(f"turn/{series.key}_n", float(size), turn)
        for series in measures.series
        if changing_sizes(metrics, series)
        for turn, size in enumerate(size_of(metrics, series), series.first_turn)
    ]
    scalar_points = [Point(key, float(value)) for key, value in scalars.items() if value is not None]
    return [*points, *sizes, *scalar_points]


def headline_of(measures: Measures) -> dict[str, str]:
    """The keys of the most important points with their meaning: the first series and the first finals."""
    series = {f"turn/{each.key}": each.label for each in measures.series[:1]}
    finals = {f"final/{each.key}": each.label for each in measures.finals[:MOST_FINALS]}
    return {**series, **finals, "final/errored": "errored sessions"}


def _counts(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    agent = metrics.get(AGENT) or {}
    return {
        **{f"final/{name}": metrics[name] for name in ("sessions", "completed", "errored")},
        **{f"final/outcome_{outcome}": count for outcome, count in metrics["outcomes"].items()},
        **{f"final/decided_{place}": count for place, count in (metrics.get(DECIDED) or {}).items()},
        **{f"final/agent_{name}": value for name, value in agent.items() if isinstance(value, int | float)},
    }


def _finals(measures: Measures, metrics: Mapping[str, Any]) -> dict[str, float | None]:
    """The cell's numbers, then those by group; characters that metric stores refuse become `_` in a group's name."""
    finals = {f"final/{final.key}": value_of(metrics, final) for final in (*measures.counts, *measures.finals)}
    for part in measures.breakdowns:
        for group, value in (value_of(metrics, part) or {}).items():
            finals[f"final/{part.key}_{re.sub(r'[^A-Za-z0-9_.-]', '_', group)}"] = value
    return finals


def _costs(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    """The costs. Offline models use no tokens and are left out, since charts of zeros are of no use."""
    paying = {payer for payer, used in metrics["tokens"].items() if any(used.values())}
    counts = {f"cost/{name}": metrics.get(name) for name in ("retries", "rate_limited", "cached_replies")}
    return {
        WALL: metrics["wall_s"],
        "cost/prefix_hit_rate": metrics.get("servers", {}).get(UNDER_TEST, {}).get("prefix_hit_rate"),
        **{key: count for key, count in counts.items() if paying or count},
        **{f"cost/{payer}_usd": dollars for payer, dollars in metrics["cost_usd"].items() if payer in paying},
        **{f"cost/{payer}_spent_usd": usd for payer, usd in metrics.get("spent_usd", {}).items() if payer in paying},
        **{f"cost/{payer}_{kind}": n for payer in sorted(paying) for kind, n in metrics["tokens"][payer].items()},
    }
