"""The refinement's sections of the page: the leaderboard, how long code stays alive, every model's curves."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codechat.domain import SCOPES
from codechat.metrics.statistics import rate
from codechat.report.generic.overview import (
    SESSIONS,
    count_columns,
    if_it_varies,
    inside_columns,
    pooling_notes,
    samples_columns,
    use_columns,
)
from codechat.report.sections import Board, BoardColumn, Card, Cards, Chart, Line, Section, Shown
from codechat.report.study import LoadedCell
from codechat.studies.refine.chapter import corrected
from codechat.studies.refine.chapter.outcomes import Outcomes, RefineStudy

BOARD_NOTE = (
    "MST is the mean number of turns, from turn 0 on, that pass the whole test suite one after another; the bar is its "
    "95 % interval by task. Choose a column's title to sort, a model's name to see its sessions."
)
ALIVE_NOTE = "Share of sessions whose code has passed at every turn so far. Errored sessions are left out."
LEGEND = (
    ("main", "Pass@1, % (band: 95 % interval by task)"),
    ("second", "alive since turn 0"),
    ("third", "instructions followed"),
    ("context", "other models alive"),
)
SUSTAINED = "Sustained turns"
TREND_HINT = "Mann–Kendall: ↓ decreasing, ↑ increasing, · no trend at α = 0.05"
TREND = {"decreasing": "↓", "increasing": "↑", "no trend": "·"}


def sections_of(study: RefineStudy, groups: Sequence[str]) -> list[Section]:
    """The sections; `groups` are the tables and figures that stand in the last."""
    panels: dict[str, list[Line]] = {}
    found = {each.cell.folder: each for each in study.cells}
    for cell in study.loaded:
        each = found.get(cell.folder)
        alive = [each.surviving(turn).rate for turn in range(cell.turns)] if each else []
        panels.setdefault(f"{cell.dataset}, {cell.setting}", []).append(Line(cell, cell.model, alive))
    drawn = {name: [line for line in lines if line.values] for name, lines in panels.items()}
    charts = [Chart("", "Alive", lines, name) for name, lines in drawn.items() if lines]
    cards = [_card(line, [x for x in lines if x is not line]) for lines in panels.values() for line in lines]
    return [
        Section(
            "leaderboard",
            "Leaderboard",
            "Leaderboard",
            (BOARD_NOTE, *_correction_note(study), *pooling_notes(study.loaded), _board(study.loaded, found)),
        ),
        Section("survival", "How long code stays alive", "", (ALIVE_NOTE, charts)),
        Section("curves", "Model by model", "Curves", (Cards(LEGEND, cards),)),
        Section("results", "Tables and figures", "Tables", groups=groups),
    ]


def _correction_note(study: RefineStudy) -> Iterator[str]:
    """What the corrected adherence is, if the report has one."""
    if corrected.asked(study):
        yield corrected.MEANING


def _corrected_columns(cells: Sequence[LoadedCell], found: Mapping[Path, Outcomes]) -> list[BoardColumn]:
    """Adherence as people would see it, with its interval, if the report has it."""
    if all(cell.labels is None for cell in cells):
        return []
    shares = [found[cell.folder].corrected(corrected.everything) if cell.folder in found else None for cell in cells]
    values = [corrected.measured(share) for share in shares]
    ends: list[Shown] = [(value, interval) for value, interval in values]
    return [
        BoardColumn(
            "corrected", [value for value, _ in values], "share", "Adhered", "for the judge's errors, by labels"
        ),
        BoardColumn("95 % interval", ends, "share", "Adhered", most=1.0, ends=True),
    ]


def _board(cells: Sequence[LoadedCell], found: Mapping[Path, Outcomes]) -> Board:
    metrics = [cell.metrics for cell in cells]
    ends = [[m["pass_at_1"][place] if m["pass_at_1"] else None for m in metrics] for place in (0, -1)]
    longest = max(cell.turns for cell in cells)
    change = "change from the first turn to the last, in per cent of the first"
    followed = _corrected_columns(cells, found)
    columns = [
        BoardColumn("Model", cells, "cell"),
        *if_it_varies("Dataset", [cell.dataset for cell in cells]),
        *if_it_varies("Agenda", [cell.agenda for cell in cells]),
        *if_it_varies("Setting", [cell.setting_without("agenda") for cell in cells]),
        *samples_columns(cells),
        BoardColumn("MST", [m["mst"] for m in metrics], "number", SUSTAINED, "mean sustained turns", strong=True),
        BoardColumn("95 % interval", [(m["mst"], m["ci"]["mst"]) for m in metrics], "number", SUSTAINED,
                    most=longest, ends=True),
        BoardColumn("first", ends[0], "share", "Pass@1", "at turn 0"),
        BoardColumn("last", ends[1], "share", "Pass@1", "at the last turn"),
        BoardColumn("Δ %", [m["delta_pct"] for m in metrics], "change", "Pass@1", change),
        BoardColumn("trend", [_trend(m) for m in metrics], "text", "Pass@1", TREND_HINT),
        BoardColumn("as judged" if followed else "Adhered",
                    [_adhered(m) for m in metrics], "share", "Adhered" if followed else "",
                    "instructions followed, of those judged"),
        *followed,
        *(BoardColumn(scope, [m["regression"]["by_scope"][scope] for m in metrics], "share", "Regression rate",
                      f"{scope} changes that break working code") for scope in SCOPES),
        *count_columns(cells, "Sessions", **SESSIONS),
        *count_columns(cells, "Turns", skipped_turns=("skipped", "turns without an applicable instruction"),
                       undecided=("undecided", "turns without a readable verdict on adherence")),
        *inside_columns(cells),
        *use_columns(cells),
    ]  # fmt: skip
    return Board("Leaderboard", columns, sort="MST")


def _trend(metrics: Mapping[str, Any]) -> Shown:
    """The p-value, and how it is shown."""
    trend = metrics["mann_kendall"]["pass_at_1"]
    if trend is None:
        return None
    p = trend["p"]
    return p, f"{TREND[trend['trend']]} {'p < 0.001' if p < 0.001 else f'p = {p:.3f}'}"


def _adhered(metrics: Mapping[str, Any]) -> float | None:
    """Adhered turns of all judged ones."""
    adhered, violated = (
        sum(metrics["phi"][f"{code}_{kind}"] for code in ("pass", "fail")) for kind in ("adhered", "violated")
    )
    return rate(adhered, adhered + violated)


def _card(alive: Line, others: Sequence[Line]) -> Card:
    cell, metrics = alive.cell, alive.cell.metrics
    lines = [
        *(replace(other, name="", style="context") for other in others),
        Line(cell, "", metrics["iar"], first=1, style="third"),
        replace(alive, name="alive", style="second"),
        Line(cell, "Pass@1", metrics["pass_at_1"], metrics["ci"]["pass_at_1"], style="main"),
    ]
    return Card(cell, (("MST", metrics["mst"], "number", ""), ("Δ", metrics["delta_pct"], "change", " %")), lines)
