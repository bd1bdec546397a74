"""What the page claims in words: who keeps code alive longest, and how sure that is."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from codechat.domain import SCOPES
from codechat.report.data import Table
from codechat.report.sections import Headline
from codechat.report.study import LoadedCell
from codechat.studies.refine.chapter.setups import setups_of

PAIRS = "pairs_mst"  # the table of paired comparisons
LEVEL = "0.00"  # a difference that is nought as it is written


def headline(cells: Sequence[LoadedCell], tables: Sequence[Table]) -> Headline:
    """Who leads, what the figure is, and how sure it is; `tables` hold the paired comparisons."""
    kicker = "Which model keeps code alive while a developer keeps asking for changes?"
    setups = setups_of(cells)
    if not setups:
        return Headline("Nothing to rank", "No cell of this report has a mean of sustained turns.", kicker=kicker)
    rivals = setups[0].cells
    ranked = sorted(rivals, key=lambda model: (-_mst(rivals[model]), model))
    best, compared = ranked[0], [cell for model in ranked for cell in rivals[model]]
    level = [model for model in ranked if f"{_mst(rivals[model]):.2f}" == f"{_mst(rivals[best]):.2f}"]
    lead = f"{best} keeps code alive longest:"
    if len(ranked) == 1:
        lead = f"{best} sustains"
    elif len(level) > 1:
        lead = f"{_joined(level)} keep code alive equally long:"
    title = f"{lead} {_mst(rivals[best]):.2f} of {compared[0].turns} turns"
    text = [_what_it_is(rivals[best])]
    if len(level) < len(ranked):
        following = ranked[len(level)]
        text.append(f"Next is {following} with {_mst(rivals[following]):.2f}.")
    text += _tested(level if len(level) > 1 else ranked[:2], rivals, tables)
    return Headline(title, " ".join(text), _facts(compared), kicker)


def _mst(cells: Sequence[LoadedCell]) -> float:
    """The unweighted mean over the datasets."""
    return fmean(cell.metrics["mst"] for cell in cells)


def _what_it_is(best: Sequence[LoadedCell]) -> str:
    """What the figure is, and on which tasks."""
    return (
        "The mean number of turns that pass one after another from turn 0 (MST)"
        f"{', averaged over ' if len(best) > 1 else ' on '}{_joined(cell.dataset for cell in best)}, "
        f"{best[0].agenda} agenda."
    )


def _tested(names: Sequence[str], rivals: Mapping[str, Sequence[LoadedCell]], tables: Sequence[Table]) -> list[str]:
    """By how much the first is ahead of the second on the same tasks, on which a hard task counts against both."""
    if len(names) != 2:
        return []
    best, second = (rivals[name] for name in names)
    cells = [(mine.dataset, mine.label, its.label) for mine in best for its in second if mine.dataset == its.dataset]
    signs = dict.fromkeys(cells, 1) | {(dataset, b, a): -1 for dataset, a, b in cells}
    figures, unsure, level = [], [], True
    for row in (row for table in tables if table.name == PAIRS for row in table.named_rows()):
        sign = signs.get((row["dataset"], row["a"], row["b"]))
        if sign is not None and row["mst_difference_ci"] is not None:
            ends = " to ".join(_number(end) for end in sorted(sign * end for end in row["mst_difference_ci"]))
            turns = _number(sign * row["mst_difference"])
            figures.append(f"{turns} turns on {row['dataset']} (95 % interval {ends})")
            level = level and turns == LEVEL
            unsure += [row["dataset"]] if row["p_holm"] is None or row["p_holm"] >= 0.05 else []
    if not figures:
        return []
    if level:
        return [f"Task by task {_joined(names)} differ by {_joined(figures)}."]
    sure = f"which may be chance on {_joined(unsure)}" if unsure else "more than chance explains"
    return [f"Task by task {names[0]} is ahead by {_joined(figures)}, {sure} (Wilcoxon, Holm-corrected)."]


def _number(value: float) -> str:
    text = f"{value:+.2f}"
    return LEVEL if text[1:] == LEVEL else text.replace("-", "−")


def _joined(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _facts(cells: Sequence[LoadedCell]) -> list[tuple[str, str]]:
    """Figures over the compared cells, each the mean of the cells, and the counts behind them."""
    facts = []
    first, last = (_mean(cell.metrics["pass_at_1"][turn] for cell in cells) for turn in (0, -1))
    if first is not None and last is not None:
        means = f"Pass@1 from turn 0 to turn {cells[0].turns - 1}"
        means += f", mean of {len(cells)} cells" if len(cells) > 1 else ""
        facts.append((f"{100 * first:.0f} % → {100 * last:.0f} %", means))
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
