"""Where code breaks and where it heals: by type of instruction, and by instruction."""

from collections.abc import Iterator

from codechat.metrics.statistics import Figure
from codechat.report.data import Column, Interval, Table, Value, columns_of, with_interval
from codechat.report.generic.tables import named_table
from codechat.studies.refine.chapter.outcomes import Breaking, Outcomes, RefineStudy

BREAKDOWNS = ("by_scope", "by_change", "by_cell")


def transitions(study: RefineStudy) -> Table:
    """Regression and self-correction by type of instruction, with what they are shares of (the paper's RQ2)."""
    columns = (
        *columns_of(breakdown="Breakdown", type="Type"),
        *with_interval("regression", "Regression", ".3f"),
        Column("passed_before", "Passed before", "d"),
        *with_interval("self_correction", "Self-correction", ".3f"),
        Column("failed_before", "Failed before", "d"),
    )
    rows = [(found, row) for found in study.in_order() for row in _rows(found)]
    return named_table(
        study, columns, rows,
        name="transitions", title="Regression and self-correction by type of instruction", group="breaks",
        note="Regression: turns that broke code that had passed. Self-correction: turns that mended code that had "
        "failed. Skipped turns and turns after a context overflow are left out. Intervals: 95 %, resampled by task.",
    )  # fmt: skip


def _rows(found: Outcomes) -> Iterator[tuple[Value, ...]]:
    regression, correction = found.regression, found.self_correction
    yield ("overall", "all", *_rates(found, "overall", regression.overall, correction.overall))
    for breakdown in BREAKDOWNS:
        for name, figure in getattr(regression, breakdown).items():
            mended = getattr(correction, breakdown)[name]
            yield (breakdown.removeprefix("by_"), name, *_rates(found, f"{breakdown}.{name}", figure, mended))


def _rates(found: Outcomes, place: str, broken: Figure, mended: Figure) -> tuple[Value, ...]:
    interval = found.measured(f"regression.{place}")[1]
    return (broken.rate, interval, total(broken), *found.counted(mended), total(mended))


def total(figure: Figure) -> int:
    """What a rate is a share of."""
    return sum(count for _, count in figure.by_task.values())


def breaking(study: RefineStudy) -> list[Breaking]:
    """Every instruction that met passing code, over all cells; the most breaking first.

    Ordered by the lower end of the interval of its rate, so that one broken turn of one does not lead.
    """
    merged: dict[str, Breaking] = {}
    for found in study.cells:
        for key, seen in found.instructions.items():
            known = merged.setdefault(key, Breaking(seen.instruction))
            known.met += seen.met
            known.broke += seen.broke
    floor = {key: (wilson(seen.broke, seen.met) or (0.0,))[0] for key, seen in merged.items()}
    return [merged[key] for key in sorted(merged, key=lambda key: (-floor[key], -merged[key].met, key))]


def instructions(study: RefineStudy) -> Table:
    """Every instruction with how often it broke code that passed."""
    columns = (
        *columns_of(instruction="Instruction", id="Id", scope="Scope", change="Change"),
        *columns_of("d", passed_before="Passed before", broke="Broke"),
        *with_interval("regression", "Regression", ".3f"),
    )
    rows = [
        (what.text, what.id, what.scope, what.change, seen.met, seen.broke, seen.broke / seen.met,
         wilson(seen.broke, seen.met))
        for seen in breaking(study) for what in [seen.instruction]
    ]  # fmt: skip
    return Table(
        "instructions", "The most breaking instructions", columns, tuple(rows), group="breaks",
        note="Over all cells, most breaking first: ordered by the lower end of Wilson's 95 % interval, which treats "
        "turns as independent; turns of one task are not, so the true intervals are wider.",
    )  # fmt: skip


def wilson(hits: int, total: int) -> Interval | None:
    """Wilson's 95 % score interval, which holds for few trials and for shares near 0 and 1; None without a trial."""
    from statsmodels.stats.proportion import proportion_confint

    if not total:
        return None
    low, high = proportion_confint(hits, total, alpha=0.05, method="wilson")
    return Interval(float(low), float(high))
