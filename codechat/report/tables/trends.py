"""How much is lost over the turns: the paper's Tables IV, VI and VII, and the values behind its curves."""

from collections.abc import Mapping, Sequence
from typing import Any

from codechat.metrics.statistics import percent_change
from codechat.report.data import Column, Table, Value
from codechat.report.outcomes import Outcomes, Study, as_interval
from codechat.report.tables.entrants import Naming, last_turn

ALPHA = 0.05
MANN_KENDALL_NOTE = (
    "Mann–Kendall: the original two-sided test, α = 0.05, as in the paper; bold: p < 0.05. "
    "It assumes independent values. These are rates of the same sessions at successive turns, so they depend on each "
    "other, and p comes out smaller than it should; with few turns few p-values are possible, and with four values or "
    "fewer none is below 0.05. Read it as a description of the shape, not as proof; intervals are resampled by task."
)


def decay(study: Study) -> Table:
    """Δ of Pass@1 and its trend per model and dataset (Table IV)."""
    last = last_turn(study)
    columns = (
        Column("pass_first", "Pass@1 turn 0", ".3f"),
        Column("pass_last", f"Pass@1 turn {last}", ".3f"),
        Column("delta_pct", f"Δ0→{last} %", "+.1f"),
        Column("delta_pct_ci", "95 % interval", "+.1f"),
    )

    def values(found: Outcomes) -> tuple[Value, ...]:
        metrics = found.cell.metrics
        interval = as_interval(metrics["ci"]["delta_pct"])
        return (metrics["pass_at_1"][0], metrics["pass_at_1"][-1], metrics["delta_pct"], interval)

    rows = [(found, values(found), found.cell.metrics["mann_kendall"]["pass_at_1"]) for found in study.in_order()]
    title = "Functional correctness over the turns (paper, Table IV)"
    return _trend_table(study, columns, rows, name="table_4_decay", title=title, group="trend")


def adherence(study: Study) -> Table:
    """Δ of instruction adherence and its trend per model and dataset (Table VII)."""
    last = last_turn(study)
    columns = (
        Column("iar_first", "Adherence turn 1", ".3f"),
        Column("iar_last", f"Adherence turn {last}", ".3f"),
        Column("iar_delta_pct", f"Δ1→{last} %", "+.1f"),
        Column("iar", "Adherence, all turns", ".3f"),
        Column("iar_ci", "95 % interval", ".3f"),
    )

    def values(found: Outcomes) -> tuple[Value, ...]:
        metrics = found.cell.metrics
        ends = (metrics["iar"][0], metrics["iar"][-1]) if metrics["iar"] else (None, None)
        return (*ends, metrics["iar_delta_pct"], found.adherence.rate, found.interval(found.adherence))

    rows = [(found, values(found), found.cell.metrics["mann_kendall"]["iar"]) for found in study.in_order()]
    title = "Instruction adherence over the turns (paper, Table VII)"
    return _trend_table(study, columns, rows, name="table_7_adherence", title=title, group="adherence")


def _trend_table(
    study: Study,
    columns: tuple[Column, ...],
    rows: list[tuple[Outcomes, tuple[Value, ...], Mapping[str, Any] | None]],
    **about: str,
) -> Table:
    naming = Naming(study)
    test = (
        Column("mk_s", "S", "d"),
        Column("mk_z", "Z", ".2f"),
        Column("mk_p", "p", "p"),
        Column("trend", "Trend"),
    )
    full = [(*naming.of(found), *values, *_trend(trend)) for found, values, trend in rows]
    p = len(naming.columns) + len(columns) + 2
    strong = {(index, p) for index, (_, _, trend) in enumerate(rows) if trend is not None and trend["p"] < ALPHA}
    return Table(
        columns=(*naming.columns, *columns, *test),
        rows=tuple(full),
        note=MANN_KENDALL_NOTE,
        strong=frozenset(strong),
        **about,
    )


def _trend(trend: Mapping[str, Any] | None) -> tuple[Value, ...]:
    if trend is None:
        return (None,) * 4
    arrows = {"decreasing": "↓ decreasing", "increasing": "↑ increasing"}
    return (trend["s"], trend["z"], trend["p"], arrows.get(trend["trend"], trend["trend"]))


def sensitivity(study: Study) -> Table:
    """MST with sessions cut at T turns, and how much each longer cut adds (Table VI)."""
    naming = Naming(study)
    caps = sorted({int(cap) for found in study.cells for cap in found.cell.metrics["mst_at"]})
    columns = [*naming.columns]
    for index, cap in enumerate(caps):
        columns.append(Column(f"mst_at_{cap}", f"T={cap}", ".3f"))
        if index:
            columns.append(Column(f"change_{cap}_pct", "change %", "+.1f"))
    cells = list(study.in_order())
    steps = [_steps(found.cell.metrics["mst_at"], caps) for found in cells]
    changed = range(2, 2 * len(caps), 2)  # where a row of steps holds a change
    strong: set[tuple[int, int]] = set()
    for number, row in enumerate(steps):
        known = [(value, place) for place in changed if (value := row[place]) is not None]
        if known:
            strong.add((number, len(naming.columns) + min(known)[1]))
    rows = [(*naming.of(found), *row) for found, row in zip(cells, steps, strict=True)]
    return Table(
        "table_6_mst_sensitivity", "Sensitivity of MST to the longest session, T (paper, Table VI)", tuple(columns),
        tuple(rows), group="trend", strong=frozenset(strong),
        note="Sessions cut after T turns; the change is against the column before. Bold: the lowest change of its row.",
    )  # fmt: skip


def _steps(mst_at: Mapping[str, float | None], caps: Sequence[int]) -> list[float | None]:
    """MST at every cap, each but the first with its change in per cent against the one before."""
    row: list[float | None] = []
    before: float | None = None
    for cap in caps:
        value = mst_at.get(str(cap))
        row += [value, percent_change(before, value)] if row else [value]
        before = value
    return row


def turns(study: Study) -> Table:
    """Every curve's values: one row per cell and turn."""
    naming = Naming(study)
    columns = (
        Column("turn", "Turn", "d"),
        Column("pass_at_1", "Pass@1", ".3f"),
        Column("pass_at_1_ci", "95 % interval", ".3f"),
        Column("surviving", "Passing since turn 0", ".3f"),
        Column("surviving_ci", "95 % interval", ".3f"),
        Column("adherence", "Adherence", ".3f"),
        Column("adherence_ci", "95 % interval", ".3f"),
        Column("regression", "Regression", ".3f"),
        Column("regression_ci", "95 % interval", ".3f"),
    )
    rows = [(*naming.of(found), *_turn(found, turn)) for found in study.in_order() for turn in range(found.length)]
    return Table(
        "turns", "Turn by turn", (*naming.columns, *columns), tuple(rows), group="trend",
        note="Intervals: 95 %, resampled by task. Adherence and regression begin with the first follow-up, turn 1.",
    )  # fmt: skip


def _turn(found: Outcomes, turn: int) -> tuple[Value, ...]:
    metrics = found.cell.metrics
    survivors = found.surviving(turn)
    values: list[Value] = [turn, metrics["pass_at_1"][turn], as_interval(metrics["ci"]["pass_at_1"][turn])]
    values += [survivors.rate, found.interval(survivors)]
    for series in (found.adherence_at, found.regression_at):
        figure = series[turn - 1] if turn else None
        values += [figure.rate, found.interval(figure)] if figure else [None, None]
    return tuple(values)
