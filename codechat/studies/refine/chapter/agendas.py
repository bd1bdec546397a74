"""What agendas do to a session: figures by its length, and what an agenda was learned from."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from codechat.report import drawing
from codechat.report.data import Column, Drawing, Interval, Table, Value, columns_of, with_interval
from codechat.report.drawing import Look, Point
from codechat.report.generic.tables import named_table
from codechat.report.metrics.statistics import TaskRatio, percent_change, percentile_interval
from codechat.studies.refine.agendas import nests
from codechat.studies.refine.agendas.learned import Learned
from codechat.studies.refine.chapter.outcomes import Measured, Outcomes, RefineComparison

LENGTHS, LEARNED = "lengths", "learned"
GROUPS = {LENGTHS: "By the length of the session", LEARNED: "What the agendas were learned from"}
CUTS = (4, 6, 8, 10, 15, 20)
"""The lengths at which longer sessions are cut, turn 0 included."""


def tables(comparison: RefineComparison) -> Iterator[Table]:
    """The tables of the cells that have such agendas."""
    if cut := [found for found in comparison.in_order() if _cuts(found)]:
        yield _lengths(comparison, cut)
    if learned := learned_in(comparison):
        yield _chains(learned)


def drawings(comparison: RefineComparison) -> Iterator[Drawing]:
    """MST, Pass@1 and regression by the length of the session, if a cell can be cut."""
    if any(map(_cuts, comparison.cells)):
        yield Drawing(
            "session_length", "By the length of the session",
            "Sessions cut after N turns: the share of the turns that is sustained (MST / N), Pass@1 at the last turn, "
            "and the share of turns up to it that broke passing code; bands or whiskers: 95 % by task.",
            LENGTHS, _draw,
        )  # fmt: skip


def _cuts(found: Outcomes) -> list[int]:
    """The lengths at which a cell's sessions are cut; none if a shorter session would have had another agenda."""
    whole = found.cell.turns
    cuts = [*(cut for cut in CUTS if cut < whole), whole] if nests(found.cell.config.get("agenda") or {}) else []
    return cuts if len(cuts) > 1 else []


def _regression(found: Outcomes, turns: int) -> TaskRatio:
    return TaskRatio.union(found.regression_at[turn] for turn in range(1, turns))


def _lengths(comparison: RefineComparison, cells: Sequence[Outcomes]) -> Table:
    columns = (
        Column("cut", "Cut at N", "d"), *with_interval("mst", "MST", ".3f"), Column("mst_share", "MST / N", ".3f"),
        *with_interval("pass_last", "Pass@1 last", ".3f"), *with_interval("delta_pct", "Δ %", "+.1f"),
        *with_interval("regression", "Regression", ".3f"),
    )  # fmt: skip
    return named_table(
        comparison, columns, [(found, _cut(found, turns)) for found in cells for turns in _cuts(found)],
        name="session_length", title="By the length of the session, N", group=LENGTHS,
        note="Sessions cut after N turns, which is what sessions of N turns would have been: their agendas are the "
        "beginnings of the longer ones. Pass@1 is of the last turn, Δ its change from turn 0; regression is over "
        "all turns up to N. Intervals: 95 %, resampled by task; all rows of a cell are of the same sessions.",
    )  # fmt: skip


def _cut(found: Outcomes, turns: int) -> list[Value]:
    first, last = found.passing(0), found.passing(turns - 1)
    mst, ends = found.mst(turns)
    drawn = map(percent_change, found.resamples.ratios(first), found.resamples.ratios(last))
    change = percent_change(first.rate, last.rate), Interval.of(percentile_interval(drawn))
    shown = (*found.counted(last), *change, *found.counted(_regression(found, turns)))
    return [turns, mst, ends, None if mst is None else mst / turns, *shown]


def _draw(comparison: RefineComparison, look: Look) -> Any:
    panels = {"MST / N": _share, "Pass@1, last turn": _passing, "Regression up to N": _broken}
    cells = [found for found in comparison.in_order() if _cuts(found)]
    figure, axes = drawing.panels(list(panels), width=3.4, height=3.0, columns=3, one_scale=False)
    for panel, value in zip(axes, panels.values(), strict=True):
        drawing.lines(panel, partial(_points, value), look, cells)
        panel.set_xlabel("N, turns of the session")
        panel.set_ylim(bottom=0)
    drawing.legend(figure, axes)
    return figure


def _points(value: Callable[[Outcomes, int], Measured], found: Outcomes) -> list[Point]:
    return [(turns, *value(found, turns)) for turns in _cuts(found)]


def _share(found: Outcomes, turns: int) -> Measured:
    value, ends = found.mst(turns)
    return value and value / turns, ends and Interval(*(end / turns for end in ends))


def _passing(found: Outcomes, turns: int) -> Measured:
    return found.counted(found.passing(turns - 1))


def _broken(found: Outcomes, turns: int) -> Measured:
    return found.counted(_regression(found, turns))


def learned_words(learned: Learned) -> str:
    """What an agenda was learned from."""
    share = f"{100 * learned.recognised / learned.turns:.0f} %"
    return f"{learned.dialogues:,} dialogues with {learned.turns:,} follow-up requests, {share} recognised"


def learned_in(comparison: RefineComparison) -> dict[str, Learned]:
    """By its words each of the different counts that the cells' agendas were drawn from."""
    found = [part.metrics.get(LEARNED) for each in comparison.in_order() for part in each.cell.parts]
    counts = [Learned.model_validate(each) for each in found if each]
    return {learned_words(one): one for one in counts}


def _chains(learned: dict[str, Learned]) -> Table:
    types = dict.fromkeys(name for one in learned.values() for name in one.types)
    columns = (
        *columns_of(source="Learned from", after="Types"), Column("requests", "Requests", "d"),
        *columns_of(".3f", **{name: name for name in types}),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for words, one in learned.items():
        shares = {name: count / one.recognised for name, count in one.types.items()}
        parts = {"all requests": (one.recognised, shares), "at first": (sum(one.first.values()), one.starts)}
        parts |= {f"after {name}": (sum(one.transitions[name].values()), row) for name, row in one.rows.items()}
        rows += [(words, part, size, *map(row.get, types)) for part, (size, row) in parts.items()]
    return Table(
        "learned", "Types and transitions that agendas were drawn from", columns, tuple(rows), group=LEARNED,
        note="Shares of the recognised requests; at first and after a type with one more request that is spread as all "
        "requests are (additive smoothing). A request without a type breaks the chain. "
        + " ".join(f"Turns of {words}: {_lengths_of(one)}." for words, one in learned.items()),
    )  # fmt: skip


def _lengths_of(learned: Learned) -> str:
    return ", ".join(f"{turns} ({count})" for turns, count in learned.lengths.items())
