"""What the page shows before a session is opened: a value per cell."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from codechat.models import MODELS
from codechat.report.cells import LoadedCell
from codechat.report.page.archive import Index

SHOWN = (
    "sessions", "completed", "errored", "skipped_turns", "undecided", "outcomes", "pass_at_1", "iar", "mst",
    "delta_pct", "regression", "self_correction",
)  # fmt: skip


def cell_values(cells: Sequence[LoadedCell], index: Index) -> list[dict[str, Any]]:
    """One JSON value per cell: its names, what the leaderboard tells of it, and its curves.

    A protocol that leaves another kind of metrics has what is missing as null.
    """
    return [
        {
            "label": cell.label,
            "model": cell.model,
            "dataset": cell.dataset,
            "agenda": cell.agenda,
            "variant": cell.variant,
            "turns": cell.turns,
            "folder": cell.folder.name,
            "baseline": is_baseline(cell),
            "survival": _survival(number, cell.turns, index),
            **_figures(cell.metrics),
        }
        for number, cell in enumerate(cells)
    ]


def is_baseline(cell: LoadedCell) -> bool:
    """Whether the model saw the reference solutions: a yardstick, no rival."""
    kind = (cell.config.get("model") or {}).get("kind")
    return any(component.baseline for component in MODELS if component.name == kind)


def _figures(metrics: Mapping[str, Any]) -> dict[str, Any]:
    intervals, trends = metrics.get("ci") or {}, metrics.get("mann_kendall") or {}
    tokens, cost = metrics.get("tokens") or {}, metrics.get("cost_usd") or {}
    trend = trends.get("pass_at_1") or {}
    return {
        **{name: metrics.get(name) for name in SHOWN},
        "mst_ci": intervals.get("mst"),
        "delta_ci": intervals.get("delta_pct"),
        "pass_ci": intervals.get("pass_at_1"),
        "trend": trend.get("trend"),
        "trend_p": trend.get("p"),
        "adherence": _adherence(metrics.get("phi")),
        "cost": {payer: cost.get(payer) for payer in ("model", "judge")},
        "tokens": {payer: tokens.get(payer) for payer in ("model", "judge")},
    }


def _adherence(phi: Mapping[str, int] | None) -> float | None:
    """Adhered turns of all judged ones."""
    if phi is None:
        return None
    adhered = phi["pass_adhered"] + phi["fail_adhered"]
    judged = adhered + phi["pass_violated"] + phi["fail_violated"]
    return adhered / judged if judged else None


def _survival(number: int, turns: int, index: Index) -> list[float]:
    """Share of a cell's completed sessions that have passed at every turn up to each turn."""
    lengths = [
        sum(1 for _ in takewhile(lambda letter: letter == "p", outcomes))
        for cell, outcomes, state in zip(index.cell, index.outcomes, index.state, strict=True)
        if cell == number and state != 1
    ]
    return [sum(length > turn for length in lengths) / len(lengths) for turn in range(turns)] if lengths else []
