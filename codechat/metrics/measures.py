"""What a protocol measures, as data: what MLflow, the terminal, tables, figures and the report page are drawn from.

A protocol says once what its metrics.json holds; metrics.json carries that description along (under `measures`), so
that a report reads any cell, whatever is installed where the report is made. An `at` is a place in metrics.json, its
keys joined by dots, such as `regression.overall`; the 95 % interval of what lies there lies under `ci.` and the same
place, and the number of tasks, sessions or turns that it rests on under `n.`, where there are any.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

# share: of 1, drawn from 0 to 1; percent: of 100; p: a p-value; count: whole; number: anything else
Unit = Literal["share", "percent", "count", "number", "p"]
FIELD = "measures"  # the description's key in metrics.json
# What every metrics.json has beside what its protocol measures (contract, section 2).
COMMON = ("sessions", "completed", "errored", "outcomes", "retries", "tokens", "cost_usd", "wall_s")


@dataclass(frozen=True, slots=True)
class Series:
    """A list over the turns, the first of which is `first_turn`; tracked as `turn/<key>`.

    `at` is `key` unless told otherwise. `help` is the definition, in one sentence.
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
    """One number of a cell; tracked as `final/<key>`. `higher_is_better` is None where neither is."""

    key: str
    label: str
    at: str = ""
    unit: Unit = "share"
    higher_is_better: bool | None = True
    help: str = ""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A final by group: a mapping from a group's name to a number; tracked as `final/<key>_<group>`.

    `by` says what the groups are (`strategy`, `level`): breakdowns by the same are columns of one table.
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
    """All that a protocol measures, in reading order; the first of `finals` is what cells are ranked by.

    Besides, every metrics.json has what `COMMON` lists; `counts` are what else the figures rest on, such as skipped
    turns.
    `passed` says in words when a turn's `passed` is true. What stands before a colon in `title` is the short name.
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

    def described(self) -> dict[str, Any]:
        """JSON values, as metrics.json carries them."""
        return asdict(self)


def merged(descriptions: Iterable[Measures]) -> Measures:
    """What any of some cells of one protocol measures, as options can add to it; at least one must be given."""
    first, *rest = sorted(descriptions, key=lambda each: len(each.finals) + len(each.series), reverse=True)
    parts: dict[str, Any] = {}
    for name in ("series", "finals", "breakdowns", "counts"):
        found: dict[tuple[str, str], Measure] = {}
        for measure in (each for one in (first, *rest) for each in getattr(one, name)):
            found.setdefault((measure.key, getattr(measure, "by", "")), measure)
        parts[name] = tuple(found.values())
    return replace(first, **parts)


def measures_in(metrics: Mapping[str, Any]) -> Measures | None:
    """The description that a metrics.json carries; None where it has none that this version reads."""
    try:
        return TypeAdapter(Measures).validate_python(metrics.get(FIELD))
    except ValidationError:
        return None


def value_of(metrics: Mapping[str, Any], measure: Measure) -> Any:
    """What a metrics.json holds of a measure: a list, a number or a mapping; None where it is missing."""
    return _at(metrics, measure.at or measure.key)


def interval_of(metrics: Mapping[str, Any], measure: Measure) -> Any:
    """The interval beside each of its values, in the same shape; None where there is none."""
    return _at(metrics.get("ci") or {}, measure.at or measure.key)


def size_of(metrics: Mapping[str, Any], measure: Measure) -> Any:
    """What each of its values rests on, in the same shape; None where that is not told."""
    return _at(metrics.get("n") or {}, measure.at or measure.key)


def _at(values: Any, place: str) -> Any:
    for name in place.split("."):
        if not isinstance(values, Mapping):
            return None
        values = values.get(name)
    return values
