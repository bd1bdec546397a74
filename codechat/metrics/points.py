"""What of metrics.json MLflow draws: series over turns, final figures, and costs, told apart by a prefix."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a metric. `step` is the turn for the series under `turn/`, else 0."""

    key: str
    value: float
    step: int = 0


def refine_points(metrics: Mapping[str, Any]) -> list[Point]:
    """The points of a refinement cell's metrics (`refine_metrics`); what is null is left out."""
    scalars = {**_finals(metrics), **_costs(metrics)}
    return [
        *_series("turn/pass_at_1", metrics["pass_at_1"], first=0),
        *_series("turn/iar", metrics["iar"], first=1),
        *(Point(key, float(value)) for key, value in scalars.items() if value is not None),
    ]


def _series(key: str, values: Sequence[float | None], first: int) -> Iterator[Point]:
    for turn, value in enumerate(values, first):
        if value is not None:
            yield Point(key, value, turn)


def _finals(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    plain = (
        "sessions", "completed", "errored", "skipped_turns", "undecided", "undecided_applicability",
        "mst", "delta_pct", "iar_delta_pct",
    )  # fmt: skip
    trends = metrics["mann_kendall"]
    return {
        **{f"final/{name}": metrics[name] for name in plain},
        **{f"final/outcome_{outcome}": count for outcome, count in metrics["outcomes"].items()},
        **{f"final/mst_at_{turns}": value for turns, value in metrics["mst_at"].items()},
        "final/mk_p": trends["pass_at_1"] and trends["pass_at_1"]["p"],
        "final/mk_p_iar": trends["iar"] and trends["iar"]["p"],
        **_by_type("final/regression", metrics["regression"]),
        **_by_type("final/self_correction", metrics["self_correction"]),
        "final/phi": metrics["phi"]["value"],
    }


def _by_type(key: str, rates: Mapping[str, Any]) -> dict[str, float | None]:
    """`key` itself is the rate over all turns; a cell's slash becomes an underscore."""
    parts = {**rates["by_scope"], **rates["by_change"], **rates["by_cell"]}
    return {key: rates["overall"], **{f"{key}_{name.replace('/', '_')}": value for name, value in parts.items()}}


def _costs(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    return {
        "cost/wall_s": metrics["wall_s"],
        "cost/retries": metrics["retries"],
        **{f"cost/{payer}_usd": dollars for payer, dollars in metrics["cost_usd"].items()},
        **{f"cost/{payer}_{kind}": n for payer, used in metrics["tokens"].items() for kind, n in used.items()},
    }
