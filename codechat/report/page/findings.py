"""What the page claims in words: who keeps code alive longest, and how sure that is."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from codechat.domain import SCOPES
from codechat.metrics import REFINE
from codechat.report.cells import LoadedCell, measures_of
from codechat.report.data import Interval, Table
from codechat.report.page.standings import is_baseline, standing

PAIRS = "pairs_mst"  # the table of paired comparisons


@dataclass(frozen=True, slots=True)
class Lead:
    """By how many sustained turns one cell is ahead of another on the same tasks; `p` is corrected."""

    dataset: str
    turns: float
    interval: Interval
    p: float | None


def findings(cells: Sequence[LoadedCell], tables: Sequence[Table]) -> dict[str, Any]:
    """The headline and what qualifies it: `title`, `text`, and `facts`, pairs of a figure and what it is.

    It is of the refinement cells, or where there is none of the protocol with the most rivals.
    """
    refined = [cell for cell in cells if cell.protocol == REFINE.protocol]
    if cells and not refined:
        return _of_most_rivals(cells)
    rivals = _comparable(refined)
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
    return {"title": title, "text": " ".join(_qualified(ranked, rivals, tables)), "facts": _facts(compared)}


def _of_most_rivals(cells: Sequence[LoadedCell]) -> dict[str, Any]:
    """The standing of the protocol that has the most cells that are no baselines."""
    rivals = Counter({cell.protocol: 0 for cell in cells} | Counter(c.protocol for c in cells if not is_baseline(c)))
    protocol = rivals.most_common(1)[0][0]
    members = [cell for cell in cells if cell.protocol == protocol]
    return standing(measures_of(members), members)


def _comparable(cells: Sequence[LoadedCell]) -> dict[str, list[LoadedCell]]:
    """The cells that the headline compares, by model: those of the setting that most models share.

    Models that lack one of the setting's datasets are left out: a mean over other tasks says nothing. Baselines count
    only where there is nothing else.
    """
    cells = [cell for cell in cells if not is_baseline(cell)] or cells
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


def _qualified(ranked: Sequence[str], rivals: Mapping[str, Sequence[LoadedCell]], tables: Sequence[Table]) -> list[str]:
    """Sentences on what the figure is, who comes next, and how sure the order is."""
    best = rivals[ranked[0]]
    told = [
        "The mean number of turns that pass one after another from turn 0 (MST)"
        f"{', averaged over ' if len(best) > 1 else ' on '}{_joined(cell.dataset for cell in best)}, "
        f"{best[0].agenda} agenda."
    ]
    if len(ranked) > 1:
        second = rivals[ranked[1]]
        told.append(f"Next is {ranked[1]} with {_mst(second):.2f}.")
        told += _tested(
            ranked[0], [_lead(mine, its, tables) for mine in best for its in second if mine.dataset == its.dataset]
        )
    return told


def _lead(mine: LoadedCell, its: LoadedCell, tables: Sequence[Table]) -> Lead | None:
    """What the report's paired comparison says of two cells; None where it could not compare them."""
    for table in tables:
        keys = [column.key for column in table.columns]
        for row in (dict(zip(keys, values, strict=True)) for values in table.rows if table.name == PAIRS):
            if row["dataset"] == mine.dataset and {row["a"], row["b"]} == {mine.label, its.label}:
                return _signed(row, 1 if row["a"] == mine.label else -1)
    return None


def _signed(row: Mapping[str, Any], sign: int) -> Lead | None:
    """A row of the comparison, read from A's side (1) or from B's (-1)."""
    if row["mst_difference_ci"] is None:
        return None
    low, high = sorted(sign * end for end in row["mst_difference_ci"])
    return Lead(row["dataset"], sign * row["mst_difference"], Interval(low, high), row["p_holm"])


def _tested(best: str, found: Sequence[Lead | None]) -> list[str]:
    """By how much the best is ahead on the same tasks, where a hard task counts against both."""
    leads = [lead for lead in found if lead is not None]
    if not leads:
        return []
    figures = [
        f"{_number(lead.turns)} turns on {lead.dataset} (95 % interval {' to '.join(map(_number, lead.interval))})"
        for lead in leads
    ]
    unsure = [lead.dataset for lead in leads if lead.p is None or lead.p >= 0.05]
    sure = f"which may be chance on {_joined(unsure)}" if unsure else "more than chance explains"
    return [f"Task by task {best} is ahead by {_joined(figures)}, {sure} (Wilcoxon, Holm-corrected)."]


def _number(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _joined(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


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
