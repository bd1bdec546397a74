"""The tables and the lines of text that a refinement cell leaves of itself."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codechat.files import write_atomically
from codechat.report.data import Column, Interval, Table, Value
from codechat.report.formats import as_csv
from codechat.report.generic.lines import NONE, TextLine, ends_text, outcomes_text, sessions_text, value_text


def write_tables(metrics: Mapping[str, Any], folder: Path) -> None:
    """`turns.csv`, one row a turn, and `transitions.csv`, one row per type of instruction. Rates are shares of 1."""
    intervals = [Interval.of(ends) for ends in metrics["ci"]["pass_at_1"]]
    iar = [None, *metrics["iar"]][: len(intervals)]
    turns = [(turn, *values) for turn, values in enumerate(zip(metrics["pass_at_1"], intervals, iar, strict=True))]
    _write("turns", ("turn", "pass_at_1", "ci", "iar"), turns, folder)
    regression, correction = metrics["regression"], metrics["self_correction"]
    rows: list[tuple[Value, ...]] = [("overall", "", regression["overall"], correction["overall"])]
    for breakdown in ("by_scope", "by_change", "by_cell"):
        rows += [(breakdown, name, rate, correction[breakdown][name]) for name, rate in regression[breakdown].items()]
    _write("transitions", ("breakdown", "type", "regression", "self_correction"), rows, folder)


def _write(name: str, keys: Sequence[str], rows: Sequence[tuple[Value, ...]], folder: Path) -> None:
    table = Table(name, "", tuple(Column(key, key) for key in keys), tuple(rows))
    write_atomically(folder / f"{name}.csv", as_csv(table))


def summary_lines(metrics: Mapping[str, Any]) -> Iterator[TextLine]:
    """What the terminal shows: the paper's headline figures."""
    last = len(metrics["pass_at_1"]) - 1
    trend = metrics["mann_kendall"]["pass_at_1"]
    counts = ((metrics["skipped_turns"], "turns skipped"), (metrics["undecided"], "turns undecided"))
    yield "sessions", sessions_text(metrics, counts)
    yield f"Pass@1, turn 0 → {last}", ends_text(metrics["pass_at_1"], metrics["delta_pct"])
    yield "Mann–Kendall trend", NONE if trend is None else f"{trend['trend']} (p = {trend['p']:.3g})"
    yield "Mean Sustainable Turns", value_text(metrics["mst"], metrics["ci"]["mst"]) + f" of {last + 1}"
    yield f"adherence, turn 1 → {last}", ends_text(metrics["iar"], metrics["iar_delta_pct"])
    yield "regression", _rates(metrics["regression"])
    yield "self-correction", _rates(metrics["self_correction"])
    yield "outcomes", outcomes_text(metrics)


def _rates(rates: Mapping[str, Any]) -> str:
    if rates["overall"] is None:
        return NONE
    scopes = ", ".join(f"{name} {value:.3f}" for name, value in rates["by_scope"].items() if value is not None)
    return f"{rates['overall']:.3f} ({scopes})"
