"""The chapters that protocols bring to a report, by the protocol's name, and the chapter of cells with `stop.*`.

The `chapter` of a study registers itself when it is imported. So does a module of another installed package that is
named under the entry-point group `codechat.chapter`, or the protocol's module under `codechat.protocol`.
A protocol without a chapter has the generic chapter.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, TypeVar

from codechat.base.plugins import import_all
from codechat.report.comparison import Comparison, LoadedCell
from codechat.report.data import Column, Interval, Table, Value, with_interval
from codechat.report.generic import Chapter
from codechat.report.generic.factors import Study
from codechat.report.generic.paired import NAMES, pairs
from codechat.report.generic.tables import INTERVALS, Sheet, costs, counts, tables_of
from codechat.report.metrics.statistics import ALPHA, STOPPED, difference_interval, in_order, sustained

__all__ = ["Chapter", "chapter_of", "leads", "register", "study_of"]

C = TypeVar("C", bound=type[Chapter])
MEANING = (
    "These cells ran their tasks in a random order and ended when enough was known, so nothing here is averaged or "
    "compared with cells of a fixed size. Each interval is of the mean that all tasks of the dataset would have given, "
    "and holds at any moment (a confidence sequence by betting without replacement; Waudby-Smith and Ramdas, 2024). "
    "If all tasks were run, there is nothing left to infer: the interval is the value."
)


class StoppedChapter(Chapter):
    """The chapter of cells with `stop.width` or `stop.difference`, apart from cells of a fixed size."""

    leads = False
    outcome = None

    def tables(self, comparison: Comparison[Any]) -> Iterator[Table]:
        for table in tables_of(Sheet.of(comparison)):
            yield replace(table, note=table.note.replace(INTERVALS, MEANING))
        compared = [pair for pair in pairs(comparison) if _order(pair.a.cell) == _order(pair.b.cell)]
        rows: list[tuple[Value, ...]] = []
        for pair in compared:
            a, b, (seed, size, turns) = pair.a.cell, pair.b.cell, _order(pair.a.cell)
            lengths = [dict(zip(pair.tasks, (sustained(s[0]) for s in side), strict=True)) for side in pair.verdicts]
            one, other = ([by_task[task] for task in in_order(pair.tasks, seed)] for by_task in lengths)
            low, high = difference_interval(one, other, turns, size, ALPHA / len(compared))
            decided = "no" if low <= 0 <= high else f"{a.label if low > 0 else b.label} sustains more"
            rows.append((*pair.names, (sum(one) - sum(other)) / len(one), Interval(low, high), decided))
        if rows:
            yield Table(
                f"{STOPPED}_pairs", "Paired differences of cells that ended when enough was known",
                (*NAMES, *with_interval("difference", "MST, A − B", "+.3f"), Column("decided", "Decided")), tuple(rows),
                f"{MEANING} All these intervals hold together in 95 % of studies (Bonferroni).", STOPPED,
            )  # fmt: skip
        yield counts(comparison, prefix=f"{STOPPED}_", group=STOPPED)
        yield costs(comparison, prefix=f"{STOPPED}_", group=STOPPED)


def _order(cell: LoadedCell) -> list[int]:
    """The seed, the number of tasks and the turns: equal in two cells whose tasks are paired."""
    return [cell.seed, *map(cell.metrics[STOPPED].get, ("of", "turns"))]


_OWN: dict[str, Chapter] = {STOPPED: StoppedChapter()}
_GENERIC = Chapter()


def register(protocol: str) -> Callable[[C], C]:
    """Decorator for the chapter of a protocol. Raises `ValueError` if the protocol has another already."""

    def remember(chapter: C) -> C:
        known = _OWN.setdefault(protocol, chapter())
        if type(known).__module__ != chapter.__module__:
            raise ValueError(f"the protocol '{protocol}' has two chapters: {type(known).__module__} has one already")
        return chapter

    return remember


def chapter_of(protocol: str) -> Chapter:
    """The protocol's chapter, or the generic one. Raises `UserError` if an installed chapter cannot be loaded."""
    _discover()
    return _OWN.get(protocol, _GENERIC)


@lru_cache(maxsize=32)  # more than a report has protocols: each is asked for several times
def study_of(comparison: Comparison[Any]) -> Study:
    """What the settings that vary among the cells change."""
    return Study(comparison, chapter_of(comparison.protocol).outcome)


def leads(protocol: str) -> bool:
    """Whether a protocol has a chapter that comes first in a report."""
    chapter = chapter_of(protocol)
    return chapter is not _GENERIC and chapter.leads


@cache
def _discover() -> None:
    import_all(__name__, "chapter")
    import_all(__name__, "protocol")
