"""The values of metrics.json that MLflow draws: series over turns, final figures and costs, each with its prefix."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codechat.base.records import UNDER_TEST
from codechat.report.metrics.counts import DECIDED
from codechat.report.metrics.measures import Measures, value_of

MOST_FINALS = 5  # in the headline


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a metric. `step` is the turn for the series under `turn/`, else 0."""

    key: str
    value: float
    step: int = 0


def points_of(measures: Measures, metrics: Mapping[str, Any]) -> list[Point]:
    """The points of a cell's metrics, without null values."""
    scalars = {**_counts(metrics), **_finals(measures, metrics), **_costs(metrics)}
    points = [
        Point(f"turn/{series.key}", value, turn)
        for series in measures.series
        for turn, value in enumerate(value_of(metrics, series) or (), series.first_turn)
        if value is not None
    ]
    return points + [Point(key, float(value)) for key, value in scalars.items() if value is not None]


def headline_of(measures: Measures) -> dict[str, str]:
    """The keys of the most important points with their meaning: the first series and the first finals."""
    series = {f"turn/{each.key}": each.label for each in measures.series[:1]}
    finals = {f"final/{each.key}": each.label for each in measures.finals[:MOST_FINALS]}
    return {**series, **finals, "final/errored": "errored sessions"}


def _counts(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    return {
        **{f"final/{name}": metrics[name] for name in ("sessions", "completed", "errored")},
        **{f"final/outcome_{outcome}": count for outcome, count in metrics["outcomes"].items()},
        **{f"final/decided_{place}": count for place, count in (metrics.get(DECIDED) or {}).items()},
    }


def _finals(measures: Measures, metrics: Mapping[str, Any]) -> dict[str, float | None]:
    """The cell's numbers, then those by group; characters that metric stores refuse become `_` in a group's name."""
    finals = {f"final/{final.key}": value_of(metrics, final) for final in (*measures.counts, *measures.finals)}
    for part in measures.breakdowns:
        for group, value in (value_of(metrics, part) or {}).items():
            finals[f"final/{part.key}_{re.sub(r'[^A-Za-z0-9_.-]', '_', group)}"] = value
    return finals


def _costs(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    """The costs, except those of offline models, which use no tokens: nobody looks for charts of zeros."""
    paying = {payer for payer, used in metrics["tokens"].items() if any(used.values())}
    counts = {f"cost/{name}": metrics.get(name) for name in ("retries", "rate_limited", "cached_replies")}
    rate = metrics.get("servers", {}).get(UNDER_TEST, {}).get("prefix_hit_rate")
    return {
        "cost/wall_s": metrics["wall_s"],
        "cost/prefix_hit_rate": rate,
        **{key: count for key, count in counts.items() if paying or count},
        **{f"cost/{payer}_usd": dollars for payer, dollars in metrics["cost_usd"].items() if payer in paying},
        **{f"cost/{payer}_spent_usd": usd for payer, usd in metrics.get("spent_usd", {}).items() if payer in paying},
        **{f"cost/{payer}_{kind}": n for payer in sorted(paying) for kind, n in metrics["tokens"][payer].items()},
    }
