"""The tables and figures that every cell leaves beside its metrics.json."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codechat.files import write_atomically
from codechat.metrics import REFINE, Measures
from codechat.report.figures.style import save, styled
from codechat.report.formats import write_table
from codechat.report.measured.figures import write_cell_figures
from codechat.report.measured.tables import Sheet, tables_of


def write_tables(measures: Measures, metrics: Mapping[str, Any], folder: Path) -> None:
    """Of a refinement cell `turns.csv` and `transitions.csv`; of any other `finals`, `turns` and `by_<group>`.

    The latter are CSV, Markdown and LaTeX. Rates are shares of 1.
    """
    if measures.protocol == REFINE.protocol:
        _refine_tables(metrics, folder)
        return
    for table in tables_of(Sheet(measures, (), [((), metrics)])):
        write_table(table, folder)


def write_figures(measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
    """`turns.svg` and `turns.png`, and of other protocols than the refinement `by_<group>` too."""
    if measures.protocol == REFINE.protocol:
        _refine_figure(metrics, title, folder)
    else:
        write_cell_figures(measures, metrics, title, folder)


def _refine_tables(metrics: Mapping[str, Any], folder: Path) -> None:
    """`turns.csv`, one row a turn, and `transitions.csv`, one row per type of instruction. Rates are shares of 1."""
    intervals = metrics["ci"]["pass_at_1"]
    iar = [None, *metrics["iar"]][: len(intervals)]
    turns = [
        (turn, rate, *(interval or (None, None)), adherence)
        for turn, (rate, interval, adherence) in enumerate(zip(metrics["pass_at_1"], intervals, iar, strict=True))
    ]
    _csv(folder / "turns.csv", ("turn", "pass_at_1", "ci_low", "ci_high", "iar"), turns)
    rows: list[tuple[Any, ...]] = []
    for breakdown in ("by_scope", "by_change", "by_cell"):
        regression, correction = metrics["regression"][breakdown], metrics["self_correction"][breakdown]
        rows += [(breakdown, name, regression[name], correction[name]) for name in regression]
    overall = ("overall", "", metrics["regression"]["overall"], metrics["self_correction"]["overall"])
    _csv(folder / "transitions.csv", ("breakdown", "type", "regression", "self_correction"), [overall, *rows])


def _csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_atomically(path, text.getvalue())


def _refine_figure(metrics: Mapping[str, Any], title: str, folder: Path) -> None:
    """Pass@1 with its interval, and the adherence rate, over the turns."""
    pass_at_1, intervals, iar = metrics["pass_at_1"], metrics["ci"]["pass_at_1"], metrics["iar"]
    if not pass_at_1 or pass_at_1[0] is None:
        return
    with styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        turns = range(len(pass_at_1))
        axes.plot(turns, pass_at_1, marker="o", color="#2457a7", label="Pass@1 (95 % interval by task)")
        low, high = zip(*intervals, strict=True)
        axes.fill_between(turns, low, high, color="#2457a7", alpha=0.15, linewidth=0)
        judged = [(turn, rate) for turn, rate in enumerate(iar, 1) if rate is not None]
        if judged:
            axes.plot(*zip(*judged, strict=True), marker="s", linestyle="--", color="#c2571a", label="adherence rate")
        axes.set(title=title, xlabel="turn", ylabel="share", ylim=(-0.03, 1.03), xticks=list(turns))
        axes.legend(frameon=False, loc="best")
        save(figure, folder, "turns")
