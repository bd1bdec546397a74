"""What the page shows before a session is opened: a value per cell, and the findings in words."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from statistics import fmean
from typing import Any

from codechat.domain import SCOPES
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
            "baseline": _is_baseline(cell),
            "survival": _survival(number, cell.turns, index),
            **_figures(cell.metrics),
        }
        for number, cell in enumerate(cells)
    ]


def _is_baseline(cell: LoadedCell) -> bool:
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


def findings(cells: Sequence[LoadedCell]) -> dict[str, Any]:
    """The headline and what qualifies it: `title`, `text`, and `facts`, pairs of a figure and what it is."""
    rivals = _comparable(cells)
    if not rivals:
        return {
            "title": "Nothing to rank",
            "text": "No cell of this report has a mean of sustained turns.",
            "facts": [],
        }
    ranked = sorted(rivals, key=lambda model: (-_mst(rivals[model]), model))
    best, compared = ranked[0], [cell for model in ranked for cell in rivals[model]]
    turns = compared[0].turns
    if len(ranked) == 1:
        title = f"{best} sustains {_mst(rivals[best]):.2f} of {turns} turns"
    elif round(_mst(rivals[best]), 2) == round(_mst(rivals[ranked[1]]), 2):
        title = f"{best} and {ranked[1]} keep code alive equally long: {_mst(rivals[best]):.2f} of {turns} turns"
    else:
        title = f"{best} keeps code alive longest: {_mst(rivals[best]):.2f} of {turns} turns"
    return {"title": title, "text": " ".join(_qualified(ranked, rivals)), "facts": _facts(compared)}


def _comparable(cells: Sequence[LoadedCell]) -> dict[str, list[LoadedCell]]:
    """The cells that the headline compares, by model: those of the setting that most models share.

    Models that lack one of the setting's datasets are left out: a mean over other tasks says nothing. Baselines count
    only where there is nothing else.
    """
    cells = [cell for cell in cells if not _is_baseline(cell)] or cells
    settings: dict[tuple[str, str, int], dict[str, list[LoadedCell]]] = {}
    for cell in cells:
        if cell.metrics.get("mst") is not None:
            models = settings.setdefault((cell.variant, cell.agenda, cell.turns), {})
            models.setdefault(cell.model, []).append(cell)
    if not settings:
        return {}
    models = max(settings.values(), key=len)
    datasets = max(({cell.dataset for cell in found} for found in models.values()), key=len)
    return {model: found for model, found in models.items() if {cell.dataset for cell in found} >= datasets}


def _mst(cells: Sequence[LoadedCell]) -> float:
    """The unweighted mean over the datasets."""
    return fmean(cell.metrics["mst"] for cell in cells)


def _qualified(ranked: Sequence[str], rivals: Mapping[str, Sequence[LoadedCell]]) -> list[str]:
    """Sentences on how sure the headline is."""
    best = rivals[ranked[0]]
    datasets = " and ".join(cell.dataset for cell in best)
    told = [
        "The mean number of turns that pass one after another from turn 0 (MST)"
        f"{', averaged over ' if len(best) > 1 else ' on '}{datasets}, {best[0].agenda} agenda."
    ]
    if len(ranked) > 1:
        second = rivals[ranked[1]]
        pairs = [(mine, its) for mine in best for its in second if mine.dataset == its.dataset]
        open_on = [mine.dataset for mine, its in pairs if _overlap(mine, its)]
        told.append(f"Next is {ranked[1]} with {_mst(second):.2f}.")
        told.append(
            f"The 95 % intervals of the two overlap on {' and '.join(open_on)}: their order may be chance."
            if open_on
            else "The 95 % intervals of the two do not overlap."
        )
    return told


def _overlap(one: LoadedCell, other: LoadedCell) -> bool:
    mine, its = one.metrics["ci"]["mst"], other.metrics["ci"]["mst"]
    return mine is None or its is None or (mine[0] <= its[1] and its[0] <= mine[1])


def _facts(cells: Sequence[LoadedCell]) -> list[tuple[str, str]]:
    """Figures over the compared cells, each the mean of the cells, and the counts behind them."""
    facts = []
    ends = [(cell.metrics["pass_at_1"][0], cell.metrics["pass_at_1"][-1]) for cell in cells]
    first, last = (_mean(values) for values in zip(*ends, strict=True))
    if first is not None and last is not None:
        told = f"Pass@1 from turn 0 to turn {cells[0].turns - 1}, mean of {len(cells)} cells"
        facts.append((f"{100 * first:.0f} % → {100 * last:.0f} %", told))
    rates = {scope: _mean(cell.metrics["regression"]["by_scope"][scope] for cell in cells) or 0.0 for scope in SCOPES}
    worst = max(rates, key=lambda scope: rates[scope])
    if rates[worst] > 0:
        facts.append((f"{100 * rates[worst]:.1f} %", f"of {worst} changes break working code, the most of the scopes"))
    mended = _mean(cell.metrics["self_correction"]["overall"] for cell in cells)
    if mended is not None:
        facts.append((f"{100 * mended:.1f} %", "of changes to broken code mend it"))
    sessions, errored, skipped, undecided = (
        sum(cell.metrics[name] for cell in cells) for name in ("sessions", "errored", "skipped_turns", "undecided")
    )
    counts = f"sessions; {errored:,} errored; {skipped:,} turns skipped, {undecided:,} undecided"
    return [*facts, (f"{sessions:,}", counts)]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
