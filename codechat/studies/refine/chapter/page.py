"""The page and the figures of refinement: headline, leaderboard, curves, rates by type (paper, Figs. 3 to 7)."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from statistics import fmean, median
from typing import Any

from codechat.base.domain import CHANGES, SCOPES
from codechat.report import drawing
from codechat.report.comparison import LoadedCell
from codechat.report.data import (
    Board,
    BoardColumn,
    Card,
    Cards,
    Chart,
    Drawing,
    Headline,
    Line,
    Section,
    Shown,
    Table,
)  # fmt: skip
from codechat.report.drawing import Look, Point, points_of
from codechat.report.generic import overview
from codechat.report.generic.factors import Study, panels_of
from codechat.report.metrics.counts import SKIPPED_UNPARSABLE
from codechat.report.metrics.measures import interval_of
from codechat.report.metrics.statistics import TaskRatio, mean_of, rate
from codechat.studies.refine.chapter import agendas, comparisons
from codechat.studies.refine.chapter.outcomes import Measured, Outcomes, RefineComparison, setups_of
from codechat.studies.refine.metrics import REFINE

PAIRS = "pairs_mst"  # the table of paired comparisons
LEVEL = "0.00"  # a difference that is shown as zero
BOARD_NOTE = (
    "MST is the mean number of turns, from turn 0 on, that pass the whole test suite one after another; the bar is its "
    "95 % interval by task. Choose a column's title to sort, a model's name to see its sessions."
)
ALIVE_NOTE = "Share of sessions whose code has passed at every turn so far. Errored sessions are left out."
LEGEND = (
    ("main", "Pass@1 (band: 95 % interval by task)"),
    ("second", "alive since turn 0"),
    ("third", "instructions followed"),
    ("context", "others alive; of many the lowest, median and highest"),
)
SUSTAINED = "Sustained turns"
TREND_HINT = "Mann–Kendall: ↓ decreasing, ↑ increasing, · no trend at α = 0.05"
TREND = {"decreasing": "↓", "increasing": "↑", "no trend": "·"}
TYPES = {"by_scope": SCOPES, "by_change": CHANGES, "all_turns": ("all turns",)}


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
    text = [
        "The mean number of turns that pass one after another from turn 0 (MST)"
        f"{', averaged over ' if len(rivals[best]) > 1 else ' on '}{_joined(cell.dataset for cell in rivals[best])}, "
        f"{rivals[best][0].agenda} agenda."
    ]
    if len(level) < len(ranked):
        following = ranked[len(level)]
        text.append(f"Next is {following} with {_mst(rivals[following]):.2f}.")
    text += _tested(level if len(level) > 1 else ranked[:2], rivals, tables)
    return Headline(title, " ".join(text), _facts(compared), kicker)


def _mst(cells: Sequence[LoadedCell]) -> float:
    return fmean(cell.metrics["mst"] for cell in cells)


def _tested(names: Sequence[str], rivals: Mapping[str, Sequence[LoadedCell]], tables: Sequence[Table]) -> list[str]:
    if len(names) != 2:
        return []
    best, second = (rivals[name] for name in names)
    cells = [(mine.dataset, mine.label, its.label) for mine in best for its in second if mine.dataset == its.dataset]
    signs = dict.fromkeys(cells, 1) | {(dataset, b, a): -1 for dataset, a, b in cells}
    figures, unsure, level, families = [], [], True, set()
    for row in (row for table in tables if table.name == PAIRS for row in table.named_rows()):
        sign = signs.get((row["dataset"], row["a"], row["b"]))
        if sign is not None and row["mst_difference_ci"] is not None:
            ends = " to ".join(_number(end) for end in sorted(sign * end for end in row["mst_difference_ci"]))
            turns = _number(sign * row["mst_difference"])
            figures.append(f"{turns} turns on {row['dataset']} (95 % interval {ends})")
            level = level and turns == LEVEL
            families.add(row["tests"])
            unsure += [row["dataset"]] if row["p_holm"] is None or row["p_holm"] >= 0.05 else []
    if not figures:
        return []
    if level:
        return [f"Task by task {_joined(names)} differ by {_joined(figures)}."]
    sure = f"which may be chance on {_joined(unsure)}" if unsure else "more than chance explains"
    of = _joined(f"{tests} pair{'s' * (tests > 1)}" for tests in sorted(families))
    return [f"Task by task {names[0]} is ahead by {_joined(figures)}, {sure} (Wilcoxon, Holm-corrected over {of})."]


def _number(value: float) -> str:
    text = f"{value:+.2f}"
    return LEVEL if text[1:] == LEVEL else text.replace("-", "−")


def _joined(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _facts(cells: Sequence[LoadedCell]) -> list[tuple[str, str]]:
    facts = []
    first, last = (mean_of(cell.metrics["pass_at_1"][turn] for cell in cells) for turn in (0, -1))
    if first is not None and last is not None:
        means = f"Pass@1 from turn 0 to turn {cells[0].turns - 1}"
        means += f", mean of {len(cells)} cells" if len(cells) > 1 else ""
        facts.append((f"{first:.3f} → {last:.3f}", means))
    rates = {scope: mean_of(cell.metrics["regression"]["by_scope"][scope] for cell in cells) or 0.0 for scope in SCOPES}
    worst = max(rates, key=lambda scope: rates[scope])
    if rates[worst] > 0:
        facts.append((f"{rates[worst]:.3f}", f"of {worst} changes break working code, the most of the scopes"))
    mended = mean_of(cell.metrics["self_correction"]["overall"] for cell in cells)
    if mended is not None:
        facts.append((f"{mended:.3f}", "of changes to broken code mend it"))
    sessions, errored, skipped, undecided = (
        sum(cell.metrics[name] for cell in cells) for name in ("sessions", "errored", "skipped_turns", "undecided")
    )
    turns = "turn" if skipped == 1 else "turns"
    broken = sum(cell.metrics.get(SKIPPED_UNPARSABLE, 0) for cell in cells)
    turns += f" skipped ({broken:,} on code that does not parse)" if broken else " skipped"
    counts = f"sessions; {errored:,} errored; {skipped:,} {turns}, {undecided:,} undecided"
    return [*facts, (f"{sessions:,}", counts)]


def sections_of(comparison: RefineComparison, groups: Sequence[str], study: Study) -> list[Section]:
    """The sections; `groups` are the tables and figures that stand in the last. A chart compares models, or the levels
    of the first setting if the study is about settings."""
    found = {each.cell.folder: each for each in comparison.cells}

    def line(cell: LoadedCell, name: str) -> Line:
        each = found.get(cell.folder)
        return Line(cell, name, [each.surviving(turn).rate for turn in range(cell.turns)] if each else [])

    panels: dict[str, list[Line]] = defaultdict(list)
    if study.leads:
        for title, levels in panels_of(study):
            panels[title] += [line(cell, level) for level, cell in levels]
    else:
        for cell in comparison.loaded:
            panels[f"{cell.dataset}, {cell.setting}"].append(line(cell, cell.model))
    drawn = {title: [each for each in lines if each.values] for title, lines in panels.items()}
    charts = [Chart("", "Alive", lines, title) for title, lines in drawn.items() if lines]
    cards = [_card(own, [x for x in lines if x is not own]) for lines in panels.values() for own in lines]
    shown = {card.cell.folder for card in cards}
    cards += [_card(line(cell, cell.model), []) for cell in comparison.loaded if cell.folder not in shown]
    meaning = [comparisons.MEANING] if comparisons.has_labels(comparison) else []
    learned = [f"Agendas were learned from {words}." for words in agendas.learned_in(comparison)]
    notes = (BOARD_NOTE, *meaning, *learned, *overview.pooling_notes(comparison.loaded))
    ranked = Section("leaderboard", "Leaderboard", "Leaderboard", (*notes, *_boards(comparison.loaded, found)))
    survival = Section("survival", "How long code stays alive", "", (ALIVE_NOTE, charts))
    return [
        *([survival, ranked] if study.leads else [ranked, survival]),
        Section("curves", "Cell by cell" if study.leads else "Model by model", "Curves", (Cards(LEGEND, cards),)),
        Section("results", "Tables and figures", "Tables", groups=groups),
    ]


def _boards(cells: Sequence[LoadedCell], found: Mapping[Path, Outcomes]) -> Iterator[str | Board]:
    """A board per length of sessions, longest first: MST grows with the length."""
    lengths = sorted({cell.turns for cell in cells}, reverse=True)
    for length in lengths:
        if len(lengths) > 1:
            yield f"Sessions of {length} turns, ranked among themselves, since MST grows with the length:"
        yield _board([cell for cell in cells if cell.turns == length], found)


def _corrected_columns(cells: Sequence[LoadedCell], found: Mapping[Path, Outcomes]) -> list[BoardColumn]:
    if all(cell.labels is None for cell in cells):
        return []
    shares = [comparisons.corrected(found[cell.folder]) if cell.folder in found else None for cell in cells]
    ends: list[Shown] = [comparisons.measured(share) for share in shares]
    values = [comparisons.measured(share)[0] for share in shares]
    return [
        BoardColumn("corrected", values, "share", "Adhered", "for the judge's errors, by labels"),
        BoardColumn("95 % interval", ends, "share", "Adhered", most=1.0, ends=True),
    ]


def _board(cells: Sequence[LoadedCell], found: Mapping[Path, Outcomes]) -> Board:
    metrics = [cell.metrics for cell in cells]
    ends = [[m["pass_at_1"][place] if m["pass_at_1"] else None for m in metrics] for place in (0, -1)]
    longest = cells[0].turns
    change = "change from the first turn to the last, in per cent of the first"
    followed = _corrected_columns(cells, found)
    mst = f"MST of {longest}"
    columns = [
        BoardColumn("Model", cells, "cell"),
        *overview.if_it_varies("Dataset", [cell.dataset for cell in cells]),
        *overview.if_it_varies("Agenda", [cell.agenda for cell in cells]),
        *overview.if_it_varies("Setting", [cell.setting_without("agenda") for cell in cells]),
        *overview.samples_columns(cells),
        BoardColumn(mst, [m["mst"] for m in metrics], "number", SUSTAINED, "mean sustained turns", strong=True),
        BoardColumn("95 % interval", [(m["mst"], m["ci"]["mst"]) for m in metrics], "number", SUSTAINED,
                    most=longest, ends=True),
        BoardColumn("first", ends[0], "share", "Pass@1", "at turn 0"),
        BoardColumn("last", ends[1], "share", "Pass@1", "at the last turn"),
        BoardColumn("Δ %", [m["delta_pct"] for m in metrics], "change", "Pass@1", change),
        BoardColumn("trend", [_trend(m) for m in metrics], "text", "Pass@1", TREND_HINT),
        BoardColumn("as judged" if followed else "Adhered",
                    [_adhered(m) for m in metrics], "share", "Adhered" if followed else "",
                    "instructions followed, of all judged"),
        *followed,
        *(BoardColumn(scope, [m["regression"]["by_scope"][scope] for m in metrics], "share", "Regression rate",
                      f"{scope} changes that break working code") for scope in SCOPES),
        *overview.count_columns(cells, "Sessions", **overview.SESSIONS),
        *overview.count_columns(cells, "Turns", skipped_turns=("skipped", "turns without an applicable instruction"),
                       undecided=("undecided", "turns without a readable verdict on adherence")),
        *overview.inside_columns(cells),
        *overview.use_columns(cells),
    ]  # fmt: skip
    return Board(f"Leaderboard, {longest} turns", columns, sort=mst)


def _trend(metrics: Mapping[str, Any]) -> Shown:
    trend = metrics["mann_kendall"]["pass_at_1"]
    if trend is None:
        return None
    p = trend["p"]
    return p, f"{TREND[trend['trend']]} {'p < 0.001' if p < 0.001 else f'p = {p:.3f}'}"


def _adhered(metrics: Mapping[str, Any]) -> float | None:
    phi = metrics["phi"]
    adhered, violated = (phi[f"pass_{kind}"] + phi[f"fail_{kind}"] for kind in ("adhered", "violated"))
    return rate(adhered, adhered + violated)


def _context(cell: LoadedCell, others: Sequence[Line]) -> list[Line]:
    """The others' lines, or of many the lowest, the median and the highest value at every turn."""
    if len(others) <= drawing.MOST_LINES:
        return [replace(other, name="", style="context") for other in others]
    turns = zip_longest(*(other.values for other in others))
    known = [[value for value in values if value is not None] for values in turns]
    picks: Sequence[Callable[[list[float]], float]] = (min, median, max)
    return [Line(cell, "", [pick(each) if each else None for each in known], style="context") for pick in picks]


def _card(alive: Line, others: Sequence[Line]) -> Card:
    cell, metrics = alive.cell, alive.cell.metrics
    lines = [
        *_context(cell, others),
        Line(cell, "", metrics["iar"], first=1, style="third"),
        replace(alive, name="alive", style="second"),
        Line(cell, "Pass@1", metrics["pass_at_1"], interval_of(metrics, REFINE.series[0]), style="main"),
    ]
    of = f" of {cell.turns}"
    return Card(cell, (("MST", metrics["mst"], "number", of), ("Δ", metrics["delta_pct"], "change", " %")), lines)


def _curve(name: str, figure: Callable[[Outcomes, int], TaskRatio], first: int, *, steps: bool = False) -> Any:
    """Draws the curve of a figure for every turn from `first` on."""

    def values(found: Outcomes) -> list[Point]:
        return [(turn, *found.counted(figure(found, turn))) for turn in range(first, found.cell.turns)]

    return partial(drawing.curves, values=values, name=name, steps=steps)


def regression(comparison: RefineComparison, look: Look, breakdown: str) -> Any:
    """The regression rate by scope or by change."""
    most = max(len(comparison.on(dataset)) for dataset in comparison.datasets)
    figure, axes = drawing.panels(comparison.datasets, height=drawing.height_of(most, 3.3))
    for panel, dataset in zip(axes, comparison.datasets, strict=True):
        drawing.points(
            panel, look, TYPES[breakdown], comparison.on(dataset),
            lambda found, name: comparisons.regression(found, f"{breakdown}.{name}"),
        )  # fmt: skip
        panel.set_ylabel("Regression rate")
    return drawing.from_zero(figure, axes)


def self_correction(comparison: RefineComparison, look: Look) -> Any:
    """The self-correction rate over all turns, by scope and by change: a row of three panels per dataset."""
    places = [(dataset, name) for dataset in comparison.datasets for name in ("all_turns", "by_scope", "by_change")]
    titles = [f"{dataset}, {name.replace('_', ' ')}" for dataset, name in places]
    most = max(len(comparison.on(dataset)) for dataset in comparison.datasets)
    figure, axes = drawing.panels(titles, width=3.9, height=drawing.height_of(most, 3.0), columns=3)
    for panel, (dataset, name) in zip(axes, places, strict=True):
        drawing.points(panel, look, TYPES[name], comparison.on(dataset), partial(_mended, name))
        panel.set_ylabel("Self-correction rate" if name == "all_turns" else "")
    return drawing.from_zero(figure, axes)


def _mended(breakdown: str, found: Outcomes, name: str) -> Measured:
    rates = found.self_correction
    return found.counted(rates.overall if breakdown == "all_turns" else getattr(rates, breakdown)[name])


DRAWINGS = (
    Drawing("figure_3_pass_at_1", "Pass@1 over the turns (paper, Fig. 3)",
        "The share of sessions whose code passes the whole test suite at each turn; bands or whiskers: 95 % by task.",
        "trend", partial(drawing.curves, values=points_of(REFINE.series[0]), name="Pass@1")),
    Drawing("survival", "Survival: sessions still passing since turn 0",
        "The share of sessions that have passed at every turn so far; bands or whiskers: 95 % by task.",
        "trend", _curve("Passing since turn 0", Outcomes.surviving, 0, steps=True)),
    Drawing("figure_4_regression_by_scope", "Regression by scope (paper, Fig. 4)",
        "The share of turns that broke passing code, by the scope of the instruction; whiskers: 95 % by task.",
        "breaks", partial(regression, breakdown="by_scope")),
    Drawing("figure_5_regression_by_change", "Regression by change (paper, Fig. 5)",
        "The share of turns that broke passing code, by the change asked for; whiskers: 95 % by task.",
        "breaks", partial(regression, breakdown="by_change")),
    Drawing("regression_by_turn", "Regression by turn position",
        "The share of passing code that each turn breaks; bands or whiskers: 95 % by task.",
        "breaks", _curve("Regression rate", lambda found, turn: found.regression_at[turn], 1)),
    Drawing("figure_7_self_correction", "Self-correction, dataset by dataset (paper, Fig. 7)",
        "The share of turns that mended failing code: by model, scope and change; whiskers: 95 % by task.",
        "breaks", self_correction),
    Drawing("figure_6_adherence", "Instruction adherence over the turns (paper, Fig. 6)",
        "The share of judged turns that followed the instruction, correctness aside; bands or whiskers: 95 % by task.",
        "adherence", _curve("Instruction adherence rate", lambda found, turn: found.adherence_at[turn], 1)),
)  # fmt: skip
