"""Adherence as people's labels correct it, beside the judge's raw figures."""

from collections.abc import Iterator, Sequence

from codechat.base.domain import SCOPES
from codechat.report.data import Column, Interval, Table, Value, columns_of, with_interval
from codechat.report.generic.paired import Pair, difference, minus, pairs
from codechat.report.generic.tables import named_table
from codechat.report.metrics.powered import FEWEST, JudgeLabels, Powered, powered, powered_difference
from codechat.report.metrics.statistics import TaskRatio
from codechat.report.metrics.sums import size
from codechat.studies.refine.chapter.outcomes import Outcomes, RefineComparison

GROUP = "adherence"
MEANING = (
    "Corrected: the share of judged instructions that applied and were followed, as people would say. "
    "Prediction-powered (PPI++): the cell's own labels, with all verdicts of the judge to reduce the variance. It "
    "assumes that the labels are a random draw of this cell's decisions, as `audit export` makes it, and nothing of "
    f"the judge. It needs {FEWEST} labels of each verdict in the cell itself. Intervals: 95 %, by task."
)
Measured = tuple[float | None, Interval | None]


def asked(comparison: RefineComparison) -> bool:
    """Whether the report was given people's labels."""
    return any(found.cell.labels is not None for found in comparison.cells)


def corrected(found: Outcomes, scope: str = "") -> Powered | str | None:
    """The corrected adherence, or why there is none; None if nobody asked for it."""
    labels = found.cell.labels
    if not isinstance(labels, JudgeLabels):
        return labels
    judged = {scope: found.judged[scope]} if scope else found.judged
    return powered(labels, {part.cell_id for part in found.cell.parts}, judged)


def measured(share: Powered | str | None) -> Measured:
    """The share with its interval, if there is one."""
    return (share.value, Interval.of(share.interval)) if isinstance(share, Powered) else (None, None)


def tables(comparison: RefineComparison) -> Iterator[Table]:
    """All of them, if the report was given people's labels."""
    if asked(comparison):
        yield _rates(comparison)
        if compared := [pair for pair in pairs(comparison) if pair.a.cell.labels is pair.b.cell.labels is not None]:
            yield _differences(compared)


def _rates(comparison: RefineComparison) -> Table:
    columns = (
        *columns_of(of="Of"), Column("judged", "Judged", "d"), *with_interval("raw", "Raw", ".3f"),
        *with_interval("powered", "PPI++", ".3f"), *columns_of(note="Note"),
    )  # fmt: skip
    rows = []
    for found in comparison.in_order():
        # a cell without labels says so once
        for scope in ("", *SCOPES) if isinstance(found.cell.labels, JudgeLabels) else ("",):
            whole = found.judged[scope] if scope else found.adherence
            if whole.by_task:
                share = corrected(found, scope)
                name = scope or "all turns"
                rows.append((found, (name, size(whole), *found.counted(whole), *measured(share), _note(share))))
    return named_table(
        comparison, columns, rows, name="adherence_corrected",
        title="Adherence, raw and corrected for the judge's errors", group=GROUP,
        note=f"{MEANING} A reply without code follows nothing, which needs no judge.",
    )  # fmt: skip


def _note(*shares: Powered | str | None) -> str:
    return "; ".join(dict.fromkeys(f"not corrected: {share}" for share in shares if isinstance(share, str)))


def _differences(compared: Sequence[Pair[Outcomes]]) -> Table:
    """Adherence of A minus B, on all tasks of either."""
    columns = (
        *columns_of(dataset="Dataset", a="A", b="B"), *with_interval("raw", "Raw, A − B", "+.3f"),
        *with_interval("powered", "PPI++", "+.3f"), *columns_of(note="Note"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for pair in compared:
        raw: list[TaskRatio] = [found.adherence for found in (pair.a, pair.b)]
        shares = [corrected(found) for found in (pair.a, pair.b)]
        estimates = [share for share in shares if isinstance(share, Powered)]
        value, ends = powered_difference(*estimates) if len(estimates) == 2 else (None, None)
        rows.append((
            pair.a.cell.dataset, pair.a.cell.label, pair.b.cell.label, minus(raw[0].rate, raw[1].rate),
            difference(*map(pair.ratios, raw)), value, Interval.of(ends), _note(*shares),
        ))  # fmt: skip
    return Table(
        "adherence_differences", "Differences of adherence, raw and by people's labels", columns, tuple(rows),
        group=GROUP,
        note="Raw: as the judge decided, which is right only if it errs equally, and little, in both cells; else the "
        f"difference may be one of the judge's leniency. {MEANING}",
    )  # fmt: skip
