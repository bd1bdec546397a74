"""Whether two entrants differ in how long and at which turns they pass, with corrected tests and effect sizes."""

from collections.abc import Iterator, Sequence

from codechat.metrics.statistics import percent_change, rate
from codechat.report.chapters.refine.outcomes import Outcomes, RefineStudy
from codechat.report.data import Column, Interval, Table, Value, columns_of, with_interval
from codechat.report.generic.paired import Agreement, difference
from codechat.report.generic.pairs import NAMES, TESTED, Pair, adjusted, clear, paired_columns, paired_rows
from codechat.report.study import sustained

Survival = tuple[Sequence[int], int]
"""How many turns each session passed from turn 0 on, and N, the turns there are.

A session that passed all N has not failed yet: it is censored.
"""


def differences(compared: list[Pair[Outcomes]]) -> Table:
    """A minus B in MST and in Δ, with the paired bootstrap, the signed-rank test and its effect size."""
    columns = (
        *paired_columns("mst", "MST", "mst_difference"),
        *with_interval("delta_difference", "Δ A − Δ B, points", "+.1f"),
    )
    lasted = paired_rows(compared, lambda verdicts: (sustained(verdicts), 1))
    rows = [(*values, *_delta(pair)) for pair, values in zip(compared, lasted, strict=True)]
    return Table(
        "pairs_mst", "Paired differences of MST and Δ", columns, tuple(rows), group="pairs",
        strong=clear(columns, rows),
        note="On the tasks and turns that both completed. Intervals: 95 %, paired bootstrap by task. p: Wilcoxon's "
        "signed-rank test on the tasks' passing turns, Holm-corrected over all pairs of a dataset; bold: below 0.05. "
        "Rank-biserial r: 1 where every task that differs favours A, −1 where every one favours B.",
    )  # fmt: skip


def _delta(pair: Pair[Outcomes]) -> tuple[float | None, Interval | None]:
    """The difference of the changes in Pass@1 from the first to the last shared turn, in percentage points."""
    ends, drawn = [], []
    for side in pair.verdicts:
        first, last = [row[0] for row in side], [row[-1] for row in side]
        ends.append(percent_change(_share(first), _share(last)))
        drawn.append(list(map(percent_change, pair.resampled(first), pair.resampled(last))))
    a, b = ends
    return (None if a is None or b is None else a - b), difference(*drawn)


def _share(verdicts: Sequence[bool | None]) -> float | None:
    return rate(verdicts.count(True), len(verdicts) - verdicts.count(None))


def turns(compared: list[Pair[Outcomes]]) -> Table:
    """McNemar's test per turn."""
    columns = (
        *NAMES,
        *columns_of("d", turn="Turn", both="Both pass", only_a="Only A", only_b="Only B", neither="Neither"),
        *TESTED,
        *with_interval("risk_difference", "Risk difference", "+.3f"),
        Column("odds_ratio", "Odds ratio", ".2f"),
    )
    found = list(_agreements(compared))
    p_values = [agreement.p for _, _, agreement, _ in found]
    corrected = adjusted([pair for pair, *_ in found], p_values)
    rows: list[tuple[Value, ...]] = []
    for (pair, turn, agreement, interval), p, p_holm in zip(found, p_values, corrected, strict=True):
        counts = (agreement.both, agreement.only_a, agreement.only_b, agreement.neither)
        rows.append((*pair.names, turn, *counts, p, p_holm, agreement.risk_difference, interval, agreement.odds_ratio))
    return Table(
        "pairs_turns", "McNemar's test per turn", columns, tuple(rows), group="pairs",
        strong=clear(columns, rows),
        note="Exact and two-sided, on the tasks that both completed; Holm-corrected over all pairs and turns of a "
        "dataset; bold: below 0.05. Risk difference: Pass@1 of A minus that of B, its interval resampled by task. "
        "Odds ratio: tasks that only A passes per task that only B passes; a dash where B has none.",
    )  # fmt: skip


def _agreements(compared: list[Pair[Outcomes]]) -> Iterator[tuple[Pair[Outcomes], int, Agreement, Interval | None]]:
    for pair in compared:
        for turn in range(pair.turns):
            a, b = ([row[turn] for row in side] for side in pair.verdicts)
            yield pair, turn, Agreement.of(a, b), difference(pair.resampled(a), pair.resampled(b))


def survival(study: RefineStudy, compared: list[Pair[Outcomes]]) -> Table:
    """The log-rank test: all entrants of a dataset at once, then pair by pair."""
    columns = (
        *NAMES[:3], Column("sessions_a", "Sessions A", "d"), Column("sessions_b", "Sessions B", "d"),
        Column("chi2", "χ²", ".2f"), *TESTED,
    )  # fmt: skip
    tests = [log_rank([_curve(pair.a), _curve(pair.b)]) for pair in compared]
    corrected = adjusted(compared, [test[1] if test else None for test in tests])
    rows: list[tuple[Value, ...]] = []
    for dataset in study.datasets:
        curves = [_curve(found) for found in study.on(dataset)]
        test = log_rank(curves) if len(curves) > 2 else None
        if test:
            rows.append((dataset, "all entrants", "", None, None, *test, None))
    for pair, test, p_holm in zip(compared, tests, corrected, strict=True):
        sizes = (len(pair.a.tasks), len(pair.b.tasks))
        rows.append((*pair.names[:3], *sizes, *((*test, p_holm) if test else (None,) * 3)))
    return Table(
        "pairs_survival", "Log-rank test between survival curves", columns, tuple(rows), group="pairs",
        strong=clear(columns, rows),
        note="A session has failed at the first turn that does not pass; one that passes to the end is censored. Over "
        "the turns that the curves share. The test takes the sessions of two entrants as independent, though they "
        "share their tasks; the paired tests do not. Holm-corrected over all pairs of a dataset; bold: below 0.05.",
    )  # fmt: skip


def _curve(found: Outcomes) -> Survival:
    return found.sustained, found.length


def log_rank(groups: Sequence[Survival]) -> tuple[float, float] | None:
    """χ² and p of the test that the curves are one, over the turns they share; a degree of freedom less than curves.

    None if no session ever fails or a group is empty.
    """
    from statsmodels.duration.survfunc import survdiff

    shared = min(turns for _, turns in groups)
    times, failed, members = [], [], []
    for number, (lasted, _) in enumerate(groups):
        # the first failing turn, counted from 1: a session that fails at turn 0 has time 1
        times += [min(turns, shared) + 1 for turns in lasted]
        failed += [int(turns < shared) for turns in lasted]
        members += [number] * len(lasted)
    if not any(failed) or len(set(members)) < len(groups):
        return None
    chi2, p = survdiff(times, failed, members)
    return float(chi2), float(p)
