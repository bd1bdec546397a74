"""Who leads among the cells of a protocol, in words: by the first figure that it measures."""

from collections.abc import Sequence
from typing import Any

from codechat.metrics import Final, Measures
from codechat.metrics.measures import interval_of, value_of
from codechat.models import MODELS
from codechat.report.cells import LoadedCell


def is_baseline(cell: LoadedCell) -> bool:
    """Whether the model saw the reference solutions: a yardstick, no rival."""
    kind = (cell.config.get("model") or {}).get("kind")
    return any(component.traits.baseline for component in MODELS if component.name == kind)


def standing(measures: Measures, cells: Sequence[LoadedCell]) -> dict[str, Any]:
    """`title`, `text` and `facts` (pairs of a figure and what it is) on the dataset that most cells share.

    Baselines count only where there is nothing else.
    """
    facts = _facts(cells)
    if not measures.finals:
        return {"title": measures.name, "text": "", "facts": facts}
    final = measures.finals[0]
    rivals = [cell for cell in cells if not is_baseline(cell)] or list(cells)
    rivals = [cell for cell in rivals if value_of(cell.metrics, final) is not None]
    if not rivals:
        return {"title": f"{measures.name}: nothing to rank", "text": "", "facts": facts}
    datasets = [cell.dataset for cell in rivals]
    dataset = max(sorted(set(datasets)), key=datasets.count)
    ranked = [cell for cell in rivals if cell.dataset == dataset]
    ranked.sort(key=lambda cell: value_of(cell.metrics, final), reverse=final.higher_is_better is not False)
    best = _shown(final, ranked[0])
    title = f"{ranked[0].label} leads: {final.label} {best}" if len(ranked) > 1 else f"{final.label} {best}"
    if len(ranked) > 1 and _shown(final, ranked[1]) == best:
        title = f"{ranked[0].label} and {ranked[1].label} are level: {final.label} {best}"
    return {"title": title, "text": " ".join(_qualified(final, ranked)), "facts": facts}


def _qualified(final: Final, ranked: Sequence[LoadedCell]) -> list[str]:
    """What the figure is, how sure it is, and who comes next."""
    best = ranked[0]
    told = [f"{final.help[:1].upper()}{final.help[1:]}, on {best.dataset}." if final.help else f"On {best.dataset}."]
    ends = interval_of(best.metrics, final)
    told += [f"95 % interval {_number(final, ends[0])} to {_number(final, ends[1])}."] if ends else []
    if len(ranked) > 1:
        second = ranked[1]
        told.append(f"Next is {second.label} with {_shown(final, second)}.")
        if ends and (others := interval_of(second.metrics, final)):
            apart = ends[0] > others[1] or ends[1] < others[0]
            told.append("Their intervals are apart." if apart else "Their intervals overlap.")
    return told


def _shown(final: Final, cell: LoadedCell) -> str:
    return _number(final, value_of(cell.metrics, final))


def _number(final: Final, value: float) -> str:
    return f"{100 * value:.1f} %" if final.unit == "share" else f"{value:.3g}"


def _facts(cells: Sequence[LoadedCell]) -> list[tuple[str, str]]:
    sessions, errored = (sum(cell.metrics[name] for cell in cells) for name in ("sessions", "errored"))
    return [
        (f"{len(cells):,}", "cell" if len(cells) == 1 else "cells"),
        (f"{sessions:,}", f"sessions; {errored:,} errored"),
    ]
