"""What the page shows before a session is opened: a value per cell."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from codechat.metrics import REFINE
from codechat.metrics.measures import Measure, interval_of, value_of
from codechat.report.cells import LoadedCell, measures_of
from codechat.report.page.archive import Index
from codechat.report.page.standings import is_baseline, standing

# What the page shows of refinement cells.
SHOWN = (
    "skipped_turns", "undecided", "pass_at_1", "iar", "mst", "delta_pct", "regression", "self_correction",
)  # fmt: skip


def cell_values(cells: Sequence[LoadedCell], index: Index) -> list[dict[str, Any]]:
    """One JSON value per cell: its names, what the leaderboard tells of it, and its curves."""
    return [
        {
            "label": cell.label,
            "model": cell.model,
            "dataset": cell.dataset,
            "protocol": cell.protocol,
            "agenda": cell.agenda,
            "variant": cell.variant,
            "turns": cell.turns,
            "folder": cell.folder.name,
            "baseline": is_baseline(cell),
            **_common(cell.metrics),
            **(_refined(cell, number, index) if cell.protocol == REFINE.protocol else _measured(cell)),
        }
        for number, cell in enumerate(cells)
    ]


def protocol_values(cells: Sequence[LoadedCell]) -> list[dict[str, Any]]:
    """One JSON value per protocol other than the refinement: its names, what it measures, and who leads."""
    found: dict[str, list[LoadedCell]] = {}
    for cell in cells:
        if cell.protocol != REFINE.protocol:
            found.setdefault(cell.protocol, []).append(cell)
    return [
        {
            "key": protocol,
            "title": measures.title,
            "name": measures.name,
            "passed": measures.passed,
            "standing": standing(measures, members),
            "finals": [_named(final) for final in measures.finals],
            "series": [{**_named(series), "first": series.first_turn} for series in measures.series],
        }
        for protocol, members in found.items()
        for measures in [measures_of(members)]
    ]


def _named(measure: Measure) -> dict[str, Any]:
    return {"key": measure.key, "label": measure.label, "unit": measure.unit, "help": measure.help}


def _measured(cell: LoadedCell) -> dict[str, Any]:
    """Values and intervals of what the cell's protocol measures, by key."""
    measures, metrics = cell.measures, cell.metrics
    return (
        {
            kind: {each.key: [value_of(metrics, each), interval_of(metrics, each)] for each in found}
            for kind, found in (("finals", measures.finals), ("series", measures.series))
        }
        if measures is not None
        else {}
    )


def _common(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """What every protocol's metrics have."""
    return {
        **{name: metrics[name] for name in ("sessions", "completed", "errored", "outcomes")},
        "cost": {payer: metrics["cost_usd"].get(payer) for payer in ("model", "judge")},
        "tokens": {payer: metrics["tokens"].get(payer) for payer in ("model", "judge")},
    }


def _refined(cell: LoadedCell, number: int, index: Index) -> dict[str, Any]:
    metrics = cell.metrics
    intervals, trend = metrics["ci"], metrics["mann_kendall"]["pass_at_1"] or {}
    return {
        **{name: metrics[name] for name in SHOWN},
        "mst_ci": intervals["mst"],
        "delta_ci": intervals["delta_pct"],
        "pass_ci": intervals["pass_at_1"],
        "trend": trend.get("trend"),
        "trend_p": trend.get("p"),
        "adherence": _adherence(metrics["phi"]),
        "survival": _survival(number, cell.turns, index),
    }


def _adherence(phi: Mapping[str, int]) -> float | None:
    """Adhered turns of all judged ones."""
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
