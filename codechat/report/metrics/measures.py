"""A protocol's measures as data, from which MLflow, the terminal, tables, figures and the report page are made.

metrics.json contains this description of itself (under `measures`), so that a report can read any cell, even if its
protocol is not installed. An `at` is a place in metrics.json, its keys joined by dots, such as `regression.overall`;
if present, the 95 % interval of its value is at `ci.` and the same place, and the number of tasks, sessions or turns
behind it at `n.`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

# share: of 1, drawn from 0 to 1; percent: of 100; p: a p-value; count: whole; number: anything else
Unit = Literal["share", "percent", "count", "number", "p"]
FEW = 10  # decisions of a group, below which its share is marked
FIELD = "measures"  # the description's key in metrics.json
# In every metrics.json besides the protocol's measures (contract, section 2).
COMMON = ("sessions", "completed", "errored", "outcomes", "retries", "tokens", "cost_usd", "wall_s")


@dataclass(frozen=True, slots=True)
class Series:
    """A list over the turns from `first_turn` on; tracked as `turn/<key>`.

    `at` is `key` unless given. `help` is the definition, in one sentence.
    """

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
    """A final by group: a mapping from a group's name to a number; tracked as `final/<key>_<group>`.

    `by` names the groups (`strategy`, `level`): breakdowns by the same groups are columns of one table.
    """

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
        """The short name."""
        return self.title.partition(":")[0]

    def have(self, *keys: str) -> bool:
        """Whether there is a series or a final for each of the keys."""
        return {*keys} <= {*(each.key for each in self.series), *(each.key for each in self.finals)}

    def describe(self) -> dict[str, Any]:
        """The JSON values for metrics.json."""
        return asdict(self)


def merge(descriptions: Iterable[Measures]) -> Measures:
    """The union of the measures of several cells of one protocol, whose options can add some; at least one is given."""
    first, *rest = sorted(descriptions, key=lambda each: len(each.finals) + len(each.series), reverse=True)
    parts: dict[str, Any] = {}
    for name in ("series", "finals", "breakdowns", "counts"):
        found: dict[tuple[str, str], Measure] = {}
        for measure in (each for one in (first, *rest) for each in getattr(one, name)):
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
    """The intervals of a measure's values, in the same shape; None if there are none."""
    return _at(metrics.get("ci") or {}, measure.at or measure.key)


def size_of(metrics: Mapping[str, Any], measure: Measure) -> Any:
    """The counts behind a measure's values, in the same shape; None if there are none."""
    return _at(metrics.get("n") or {}, measure.at or measure.key)


def size_text(size: int) -> str:
    """Of how many a share is, in words; an asterisk marks fewer than `FEW`."""
    return f"n {size:,}{'*' if size < FEW else ''}"


def sizes_text(sizes: Sequence[int]) -> str:
    """Of how many the shares of several cells are: the least and the most; empty if there is none."""
    return "–".join(map(size_text, sorted({min(sizes), max(sizes)}))) if sizes else ""


def _at(values: Any, place: str) -> Any:
    for name in place.split("."):
        if not isinstance(values, Mapping):
            return None
        values = values.get(name)
    return values


def fault_of(metrics: Mapping[str, Any], measures: Measures) -> str:
    """The reason why a protocol's metrics cannot be shown, or nothing: a count is missing, or a final is no number."""
    for key in ("sessions", "completed", "errored"):
        if not isinstance(metrics.get(key), int):
            return f"must have '{key}', a count"
    if not isinstance(metrics.get("outcomes"), Mapping):
        return "must have 'outcomes', the turns by outcome"
    for final in measures.finals:
        value = value_of(metrics, final)
        if value is not None and not isinstance(value, int | float):
            return f"must have a number or None as '{final.at or final.key}', and has {value!r:.60}"
    return ""
