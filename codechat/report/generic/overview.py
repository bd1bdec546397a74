"""A protocol's section of the page: the leader in words, the final figures as a board, the series as charts."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import floor, log10
from typing import Any

from codechat.base.template import counted
from codechat.report.comparison import Comparison, LoadedCell
from codechat.report.data import Board, BoardColumn, Chart, Headline, Line, Part, Section, Shown
from codechat.report.generic.tables import payers_of
from codechat.report.metrics import Final
from codechat.report.metrics.counts import DECIDED, INSIDE_MEANS, inside_in
from codechat.report.metrics.measures import FEW, interval_of, size_of, size_text, value_of

TOPS = {"share": 1.0, "percent": 100.0}  # where an axis ends; else at the highest value


def section_of(
    comparison: Comparison[Any],
    groups: Sequence[str] = (),
    *,
    claim: Headline | None = None,
    board: Board | None = None,
    note: str = "",
    charts: Sequence[Chart] | None = None,
) -> Section:
    """The section, the tables and figures of `groups` at the end. A study may replace the claim, board or charts."""
    claim = claim or standing(comparison)
    note = note or f"A turn passes where {comparison.measures.passed}."
    parts: list[Part] = [
        f"{claim.title}. {claim.text}", *pooling_notes(comparison.loaded), board or board_of(comparison),
        f"{note} Bands and whiskers: 95 % intervals by task.", charts_of(comparison) if charts is None else charts,
        *groups_of(comparison),
    ]  # fmt: skip
    name, title = comparison.protocol, comparison.measures.title
    return Section(f"protocol-{name}", title, name.capitalize(), parts, groups=tuple(groups) or (name,))


def board_of(comparison: Comparison[Any]) -> Board:
    """The cells with their final figures, tokens and costs."""
    measures, cells = comparison.measures, comparison.loaded
    columns = [
        *naming_columns(cells),
        *samples_columns(cells),
        *(final_column(cells, final, first=final is measures.finals[0]) for final in measures.finals),
        *count_columns(cells, "Sessions", **SESSIONS),
        *inside_columns(cells),
        *use_columns(cells),
    ]
    return Board(measures.name, columns, sort=measures.finals[0].label if measures.finals else "")


def naming_columns(cells: Sequence[LoadedCell]) -> list[BoardColumn]:
    """Model, and dataset and setting if they vary."""
    varying = {"Dataset": [cell.dataset for cell in cells], "Setting": [cell.variant for cell in cells]}
    return [BoardColumn("Model", cells, "cell"), *(each for item in varying.items() for each in if_it_varies(*item))]


def groups_of(comparison: Comparison[Any]) -> Iterator[str | Board]:
    """The figure that ranks cells by group, or else the first breakdown; nothing for a single group."""
    measures, first = comparison.measures, [final.key for final in comparison.measures.finals[:1]]
    part = next((each for each in measures.breakdowns if [each.key] == first), next(iter(measures.breakdowns), None))
    if part is None:
        return
    rows = [
        (cell, name, value, ends.get(name), sizes.get(name))
        for cell in comparison.loaded
        for values, ends, sizes in [[read(cell.metrics, part) or {} for read in (value_of, interval_of, size_of)]]
        for name, value in values.items()
        if value is not None
    ]
    if len({name for _, name, *_ in rows}) < 2:
        return
    cells, names, figures, ends, sizes = zip(*rows, strict=True)
    highest = max([0, *(each[1] for each in ends if each), *figures])
    values: list[Shown] = list(zip(figures, ends, strict=True))
    columns = [
        *naming_columns(cells),
        BoardColumn(part.by.capitalize(), names, strong=True),
        BoardColumn(part.label, values, part.unit, hint=part.help, most=TOPS.get(part.unit) or highest or 1),
    ]
    if any(sizes):
        counts: list[Shown] = [None if size is None else (size, size_text(size)[2:]) for size in sizes]
        columns.append(BoardColumn("n", counts, hint=f"of how many; *: fewer than {FEW}"))
    yield f"{part.label} by {part.by}{f': {part.help}' if part.help else ''}."
    yield Board(f"{part.label} by {part.by}", columns, sort=part.label)


def final_column(cells: Sequence[LoadedCell], final: Final, *, first: bool) -> BoardColumn:
    """A final figure; the first, which ranks the cells, is drawn with its interval."""
    values: list[Shown] = [(value_of(cell.metrics, final), interval_of(cell.metrics, final)) for cell in cells]
    highest = max((ends[1] for cell in cells if (ends := interval_of(cell.metrics, final))), default=0)
    most = (TOPS.get(final.unit) or highest or 1) if first else None
    return BoardColumn(final.label, values, final.unit, hint=final.help, strong=first, most=most)


def samples_columns(cells: Sequence[LoadedCell]) -> list[BoardColumn]:
    """The samples of a task by entrant, unless all have one."""
    counts = [cell.samples for cell in cells]
    hint = "sessions of each task: cells that differ in the seed alone are one entrant"
    return [BoardColumn("Samples", counts, "count", hint=hint)] if max(counts, default=1) > 1 else []


def pooling_notes(cells: Sequence[LoadedCell]) -> Iterator[str]:
    """Sentences on the entrants that pool several cells: the samples of a task, and the seeds."""
    alike: dict[tuple[str, str, int], list[str]] = {}
    for cell in cells:
        if cell.repeats:
            alike.setdefault((cell.dataset, cell.seeds, cell.samples), []).append(cell.label)
    for (dataset, seeds, samples), labels in alike.items():
        yield (
            f"{listed(labels)} on {dataset} {'each pool' if len(labels) > 1 else 'pools'} {counted(samples, 'cell')} "
            f"that differ in the seed alone (seeds {seeds}): {counted(samples, 'sample')} of each task."
        )


def listed(names: Sequence[str]) -> str:
    """The names as a text with commas and an *and*."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def if_it_varies(title: str, values: Sequence[str]) -> list[BoardColumn]:
    """A column of texts, unless all cells have the same."""
    return [BoardColumn(title, values)] if len(set(values)) > 1 else []


def count_columns(cells: Sequence[LoadedCell], group: str, **titles: tuple[str, str]) -> list[BoardColumn]:
    """Counts of the metrics; `titles` holds a title and a hint by key."""
    return [
        BoardColumn(title, [cell.metrics[key] for cell in cells], "count", group, hint)
        for key, (title, hint) in titles.items()
    ]


def inside_columns(cells: Sequence[LoadedCell]) -> list[BoardColumn]:
    """The number of verdicts decided inside, unless all are 0."""
    counts = [inside_in(cell.metrics) if DECIDED in cell.metrics else None for cell in cells]
    return [BoardColumn("decided inside", counts, "count", "Turns", INSIDE_MEANS)] if any(counts) else []


SESSIONS = {"sessions": ("all", "errored ones included"), "errored": ("errored", "left out of every figure")}


def use_columns(cells: Sequence[LoadedCell]) -> list[BoardColumn]:
    """The tokens and the money of the model under test, its judges and all further roles together."""
    tokens, dollars = [], []
    for cell in cells:
        used, paid = cell.metrics["tokens"], cell.metrics["cost_usd"]
        tokens.append(sum(each["input_tokens"] + each["output_tokens"] for each in used.values()) if used else None)
        known = [each for each in paid.values() if each is not None]
        unknown = any(paid.get(payer) is None and any(each.values()) for payer, each in used.items())
        dollars.append(sum(known) if known and not unknown else None)
    who = listed(payers_of(cells) or ["model"])
    return [
        BoardColumn("tokens", tokens, "count", "Use", f"input and output, {who}"),
        BoardColumn("cost $", dollars, "number", "Use", f"{who}; a dash where a price is not known"),
    ]


def charts_of(comparison: Comparison[Any]) -> list[Chart]:
    """A chart per series and dataset with values."""
    datasets = list(dict.fromkeys(cell.dataset for cell in comparison.loaded))
    charts = []
    for series, dataset in product(comparison.measures.series, datasets):
        share = series.unit == "share"
        text = f": {series.help}" if series.help else ""
        lines = [
            Line(cell, cell.label, values, interval_of(cell.metrics, series), series.first_turn)
            for cell in comparison.loaded
            for values in [value_of(cell.metrics, series) or ()]
            if cell.dataset == dataset and any(value is not None for value in values)
        ]
        if lines:
            title = f"{series.label}, {dataset}" if len(datasets) > 1 else series.label
            charts.append(Chart(title, series.label, lines, text, 1.0 if share else _round_top(lines), share))
    return charts


def _round_top(lines: Sequence[Line]) -> float:
    """The end of an axis: 1, 2, 4 or 8 times a power of ten, whose quarters are short numbers."""
    ends = [end for line in lines for each in line.ci or () if each for end in each]
    highest = max([*ends, *(value for line in lines for value in line.values if value is not None)])
    if highest <= 0:
        return 1.0
    power = 10.0 ** floor(log10(highest))
    return power * next(factor for factor in (1, 2, 4, 8, 10) if factor * power >= highest)


def rivals_of(cells: Sequence[LoadedCell]) -> list[LoadedCell]:
    """The compared cells: baselines count only if there are no others."""
    return [cell for cell in cells if not cell.is_baseline] or list(cells)


def standing(comparison: Comparison[Any]) -> Headline:
    """The leader on the dataset that most cells share, and the counts behind the claim."""
    measures, cells, facts = comparison.measures, comparison.loaded, facts_of(comparison)
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
    best = _number(final, value_of(ranked[0].metrics, final))
    level = [cell for cell in ranked if _number(final, value_of(cell.metrics, final)) == best]
    if len(ranked) == 1:
        title = f"{final.label} {best}"
    elif len(level) > 1:
        title = f"{listed([cell.label for cell in level])} are level: {final.label} {best}"
    else:
        title = f"{ranked[0].label} leads: {final.label} {best}"
    return Headline(title, " ".join(_qualified(final, [ranked[0], *ranked[len(level) :]])), facts)


def facts_of(comparison: Comparison[Any]) -> list[tuple[str, str]]:
    """The numbers of cells and of sessions."""
    cells = comparison.loaded
    sessions, errored = (sum(cell.metrics[name] for cell in cells) for name in ("sessions", "errored"))
    return [(f"{len(cells):,}", "cell" if len(cells) == 1 else "cells"),
            (f"{sessions:,}", f"sessions; {errored:,} errored")]  # fmt: skip


def _qualified(final: Final, ranked: Sequence[LoadedCell]) -> list[str]:
    """The leader's figure with its interval, and the next cell."""
    best = ranked[0]
    text = [f"{final.help[:1].upper()}{final.help[1:]}, on {best.dataset}." if final.help else f"On {best.dataset}."]
    ends = interval_of(best.metrics, final)
    text += [f"95 % interval {_number(final, ends[0])} to {_number(final, ends[1])}."] if ends else []
    if len(ranked) > 1:
        second = ranked[1]
        text.append(f"Next is {second.label} with {_number(final, value_of(second.metrics, final))}.")
        if ends and (others := interval_of(second.metrics, final)):
            apart = ends[0] > others[1] or ends[1] < others[0]
            text.append("Their intervals are apart." if apart else "Their intervals overlap.")
    return text


def _number(final: Final, value: float) -> str:
    return f"{value:.3f}" if final.unit == "share" else f"{value:.3g}"
