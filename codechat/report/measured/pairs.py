"""Whether two cells of a protocol differ: every pair on the tasks that both completed."""

from codechat.metrics import Measures
from codechat.metrics.statistics import Figure
from codechat.report.data import Column, Table, Value
from codechat.report.measured.found import Measured
from codechat.report.outcomes import resamples_of
from codechat.report.statistics.paired import Agreement, difference, signed_ranks
from codechat.report.tables.pairs import HOLM, NAMES, P, Pair, clear, holm_by_dataset

MCNEMAR, MCNEMAR_HOLM = Column("last_p", "p", "p"), Column("last_p_holm", "p (Holm)", "p")


def differences(measures: Measures, compared: list[Pair[Measured]], *, prefix: str, group: str) -> Table:
    """The share of turns that pass, A minus B, and whose code passes at the last turn."""
    columns = (
        *NAMES,
        Column("passing_a", "Passing turns A", ".3f"),
        Column("passing_b", "Passing turns B", ".3f"),
        Column("difference", "A − B", "+.3f"),
        Column("difference_ci", "95 % interval", "+.3f"),
        P,
        HOLM,
        Column("rank_biserial", "Rank-biserial r", "+.2f"),
        Column("only_a", "Last turn: only A passes", "d"),
        Column("only_b", "only B", "d"),
        MCNEMAR,
        MCNEMAR_HOLM,
    )
    shares = [tuple([sum(row) / len(row) for row in side] for side in pair.verdicts) for pair in compared]
    tests = [signed_ranks(*sides) for sides in shares]
    ends = [Agreement.of(*([row[-1] for row in side] for side in pair.verdicts)) for pair in compared]
    corrected = holm_by_dataset(compared, [test.p for test in tests])
    ends_corrected = holm_by_dataset(compared, [end.p for end in ends])
    rows: list[tuple[Value, ...]] = []
    for number, (pair, test, end) in enumerate(zip(compared, tests, ends, strict=True)):
        figures = [_passing(pair, side) for side in pair.verdicts]
        a, b = (figure.rate for figure in figures)
        interval = difference(*map(resamples_of(pair.tasks, pair.a.cell.dataset).ratios, figures))
        minus = None if a is None or b is None else a - b
        rows.append((*pair.names, a, b, minus, interval, test.p, corrected[number], test.rank_biserial,
                     end.only_a, end.only_b, end.p, ends_corrected[number]))  # fmt: skip
    return Table(
        f"{prefix}pairs", f"{measures.name}: paired differences", columns, tuple(rows), group=group,
        strong=clear(columns, rows),
        note=f"A turn passes where {measures.passed}. On the tasks and turns that both completed. Intervals: 95 %, "
        "paired bootstrap by task. p: Wilcoxon's signed-rank test on the tasks' shares of passing turns, and McNemar's "
        "exact test on the last turn; Holm-corrected over all pairs of a dataset; bold: below 0.05.",
    )  # fmt: skip


def _passing(pair: Pair[Measured], side: list[tuple[bool, ...]]) -> Figure:
    """Turns that pass, of all turns, kept apart by task."""
    return Figure({task: (sum(row), len(row)) for task, row in zip(pair.tasks, side, strict=True)})
