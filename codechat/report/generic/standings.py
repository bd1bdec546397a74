"""Who leads among the cells of a protocol, in words: by the first figure that it measures."""

from collections.abc import Sequence
from typing import Any

from codechat.metrics import Final
from codechat.metrics.measures import interval_of, value_of
from codechat.report.sections import Headline
from codechat.report.study import LoadedCell, Study


def rivals_of(cells: Sequence[LoadedCell]) -> list[LoadedCell]:
    """The cells that are compared: baselines count only if there is nothing else."""
    return [cell for cell in cells if not cell.is_baseline] or list(cells)


def standing(study: Study[Any]) -> Headline:
    """The leader on the dataset that most cells share, and the counts behind the claim."""
    measures, cells = study.measures, study.loaded
    facts = _facts(cells)
    if not measures.finals:
        return Headline(measures.name, facts=facts)
    final = measures.finals[0]
    rivals = [cell for cell in rivals_of(cells) if value_of(cell.metrics, final) is not None]
    if not rivals:
        return Headline(f"{measures.name}: nothing to rank", facts=facts)
    datasets = [cell.dataset for cell in rivals]
    dataset = max(sorted(set(datasets)), key=datasets.count)
    ranked = [cell for cell in rivals if cell.dataset == dataset]
    ranked.sort(key=lambda cell: value_of(cell.metrics, final), reverse=final.higher_is_better is not False)
    best = _shown(final, ranked[0])
    title = f"{ranked[0].label} leads: {final.label} {best}" if len(ranked) > 1 else f"{final.label} {best}"
    if len(ranked) > 1 and _shown(final, ranked[1]) == best:
        title = f"{ranked[0].label} and {ranked[1].label} are level: {final.label} {best}"
    return Headline(title, " ".join(_qualified(final, ranked)), facts)


def _qualified(final: Final, ranked: Sequence[LoadedCell]) -> list[str]:
    """What the figure is, how sure it is, and who comes next."""
    best = ranked[0]
    text = [f"{final.help[:1].upper()}{final.help[1:]}, on {best.dataset}." if final.help else f"On {best.dataset}."]
    ends = interval_of(best.metrics, final)
    text += [f"95 % interval {_number(final, ends[0])} to {_number(final, ends[1])}."] if ends else []
    if len(ranked) > 1:
        second = ranked[1]
        text.append(f"Next is {second.label} with {_shown(final, second)}.")
        if ends and (others := interval_of(second.metrics, final)):
            apart = ends[0] > others[1] or ends[1] < others[0]
            text.append("Their intervals are apart." if apart else "Their intervals overlap.")
    return text


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
