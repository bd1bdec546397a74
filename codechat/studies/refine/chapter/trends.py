"""How much is lost over the turns: the paper's Tables IV, VI and VII, and the values behind its curves."""

from collections.abc import Mapping, Sequence
from typing import Any

from codechat.metrics.statistics import percent_change
from codechat.report.data import Column, Interval, Table, Value, columns_of, with_interval
from codechat.report.generic.tables import named_table
from codechat.studies.refine.chapter.outcomes import Outcomes, RefineStudy

ALPHA = 0.05
MANN_KENDALL_NOTE = (
    "Mann–Kendall: the original two-sided test, α = 0.05, as in the paper; bold: p < 0.05. "
    "It assumes independent values. These are rates of the same sessions at successive turns, so they depend on each "
    "other, and p comes out smaller than it should; with few turns few p-values are possible, and with four values or "
    "fewer none is below 0.05. Read it as a description of the shape, not as proof; intervals are resampled by task."
)


def decay(study: RefineStudy) -> Table:
    """Δ of Pass@1 and its trend per model and dataset (Table IV)."""
    last = study.last_turn
    columns = (
        *columns_of(".3f", pass_first="Pass@1 turn 0", pass_last=f"Pass@1 turn {last}"),
        *with_interval("delta_pct", f"Δ0→{last} %", "+.1f"),
    )
    rows = [(*_ends(found.cell.metrics["pass_at_1"]), *found.measured("delta_pct")) for found in study.in_order()]
    title = "Functional correctness over the turns (paper, Table IV)"
    return _trend_table(study, "pass_at_1", columns, rows, name="table_4_decay", title=title, group="trend")


def adherence(study: RefineStudy) -> Table:
    """Δ of instruction adherence and its trend per model and dataset (Table VII)."""
    last = study.last_turn
    columns = (
        *columns_of(".3f", iar_first="Adherence turn 1", iar_last=f"Adherence turn {last}"),
        Column("iar_delta_pct", f"Δ1→{last} %", "+.1f"),
        *with_interval("iar", "Adherence, all turns", ".3f"),
    )
    rows = [
        (*_ends(found.cell.metrics["iar"]), found.cell.metrics["iar_delta_pct"], *found.counted(found.adherence))
        for found in study.in_order()
    ]
    title = "Instruction adherence over the turns (paper, Table VII)"
    return _trend_table(study, "iar", columns, rows, name="table_7_adherence", title=title, group="adherence")


def _ends(series: Sequence[float | None]) -> tuple[float | None, float | None]:
    return (series[0], series[-1]) if series else (None, None)


def _trend_table(
    study: RefineStudy, series: str, columns: Sequence[Column], rows: Sequence[Sequence[Value]], **about: str
) -> Table:
    """The rows, one a cell, each with the Mann–Kendall test of a series."""
    test = (Column("mk_s", "S", "d"), Column("mk_z", "Z", ".2f"), Column("mk_p", "p", "p"), Column("trend", "Trend"))
    trends = [found.cell.metrics["mann_kendall"][series] for found in study.in_order()]
    tested = [(found, (*row, *_trend(trend))) for found, row, trend in zip(study.in_order(), rows, trends, strict=True)]
    strong = [(row, len(columns) + 2) for row, trend in enumerate(trends) if trend is not None and trend["p"] < ALPHA]
    return named_table(study, (*columns, *test), tested, strong, note=MANN_KENDALL_NOTE, **about)


def _trend(trend: Mapping[str, Any] | None) -> tuple[Value, ...]:
    if trend is None:
        return (None,) * 4
    arrows = {"decreasing": "↓ decreasing", "increasing": "↑ increasing"}
    return (trend["s"], trend["z"], trend["p"], arrows.get(trend["trend"], trend["trend"]))


def sensitivity(study: RefineStudy) -> Table:
    """MST with sessions cut at T turns, and how much each longer cut adds (Table VI)."""
    caps = sorted({int(cap) for found in study.cells for cap in found.cell.metrics["mst_at"]})
    columns = [Column(f"mst_at_{cap}", f"T={cap}", ".3f") for cap in caps[:1]]
    for cap in caps[1:]:
        columns += [Column(f"mst_at_{cap}", f"T={cap}", ".3f"), Column(f"change_{cap}_pct", "change %", "+.1f")]
    rows = [(found, _steps(found.cell.metrics["mst_at"], caps)) for found in study.in_order()]
    lowest = []
    for number, (_, row) in enumerate(rows):
        changes = [(value, place) for place, value in enumerate(row) if place and place % 2 == 0 and value is not None]
        lowest += [(number, min(changes)[1])] if changes else []
    return named_table(
        study, columns, rows, lowest,
        name="table_6_mst_sensitivity", title="Sensitivity of MST to the longest session, T (paper, Table VI)",
        note="Sessions cut after T turns; the change is against the T before it of the same row. Bold: the lowest "
        "change of its row.",
        group="trend",
    )  # fmt: skip


def _steps(mst_at: Mapping[str, float | None], caps: Sequence[int]) -> list[float | None]:
    """MST at every cap, each but the first with its change in per cent against the cap before that the cell has."""
    values = [mst_at.get(str(cap)) for cap in caps]
    row, before = values[:1], values[0] if values else None
    for value in values[1:]:
        row += [value, percent_change(before, value)]
        before = before if value is None else value
    return row


def turns(study: RefineStudy) -> Table:
    """Every curve's values: one row per cell and turn."""
    titles = {
        "pass_at_1": "Pass@1",
        "surviving": "Passing since turn 0",
        "adherence": "Adherence",
        "regression": "Regression",
    }
    columns = [Column("turn", "Turn", "d"), *(each for item in titles.items() for each in with_interval(*item, ".3f"))]
    rows = [(found, _turn(found, turn)) for found in study.in_order() for turn in range(found.cell.turns)]
    return named_table(
        study, columns, rows, name="turns", title="Turn by turn", group="trend",
        note="Intervals: 95 %, resampled by task. Adherence and regression begin with the first follow-up, turn 1.",
    )  # fmt: skip


def _turn(found: Outcomes, turn: int) -> tuple[Value, ...]:
    metrics = found.cell.metrics
    values: list[Value] = [turn, metrics["pass_at_1"][turn], Interval.of(metrics["ci"]["pass_at_1"][turn])]
    values += found.counted(found.surviving(turn))
    for series in (found.adherence_at, found.regression_at):
        values += found.counted(series[turn]) if turn else (None, None)
    return tuple(values)


def association(study: RefineStudy) -> Table:
    """Correctness against adherence: Phi with its 2 × 2 counts (paper, VI-B)."""
    cells = ("pass_adhered", "pass_violated", "fail_adhered", "fail_violated")
    columns = (
        Column("phi", "Phi", "+.3f"),
        *columns_of("d", **{key: key.replace("_", ", ").capitalize() for key in cells}, undecided="Undecided"),
    )
    metrics = [(found, found.cell.metrics) for found in study.in_order()]
    rows = [(found, (m["phi"]["value"], *map(m["phi"].get, cells), m["undecided"])) for found, m in metrics]
    return named_table(
        study, columns, rows,
        name="phi", title="Correctness and adherence", group="adherence",
        note="Over judged follow-up turns. Phi is 1 where a turn passes exactly when it adheres, 0 where the two are "
        "unrelated; a dash where all turns pass, fail, adhere or violate.",
    )  # fmt: skip
