"""Cells that ended when enough was known: their own intervals and differences, apart from cells of a fixed size."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from codechat.report.data import Column, Drawing, Interval, Section, Table, Value, columns_of, with_interval
from codechat.report.generic import Chapter
from codechat.report.generic.figures import drawings_of
from codechat.report.generic.overview import section_of
from codechat.report.generic.tables import costs, counts, named_table
from codechat.report.metrics.sequences import ALPHA, STOPPED, difference_interval, in_order
from codechat.report.metrics.statistics import sustained
from codechat.report.study import Study, Verdicts

MEANING = (
    "These cells ran their tasks in a random order and ended when enough was known, so nothing here is averaged or "
    "compared with cells of a fixed size. A value is the mean of the tasks that were run; its interval is of the mean "
    "that all tasks of the dataset would have given, and holds at any moment of the study (a confidence sequence by "
    "betting without replacement; Waudby-Smith and Ramdas, 2024). If all tasks were run, there is nothing left to "
    "infer: the interval is the value. It says nothing of tasks outside the dataset."
)
Columns = tuple[Column, ...]


class StoppedChapter(Chapter):
    """The chapter of all cells with `stop.width` or `stop.difference`, whatever their protocol."""

    leads = False

    def tables(self, study: Study[Any]) -> Iterator[Table]:
        yield _ends(study)
        yield _by_turn(study)
        if differences := list(_differences(study)):
            yield _pairs(differences)
        names = {"prefix": f"{STOPPED}_", "group": STOPPED}
        yield counts(study, **names)
        yield costs(study, **names)

    def drawings(self, study: Study[Any]) -> Iterator[Drawing]:
        yield from drawings_of(study)

    def sections(self, study: Study[Any]) -> list[Section]:
        return [section_of(study, note=MEANING)]


def _ends(study: Study[Verdicts]) -> Table:
    columns = (
        *columns_of("d", tasks="Tasks run", of="of"), *columns_of(why="Ended as"), *with_interval("mst", "MST", ".3f")
    )  # fmt: skip
    rows = []
    for found in study.in_order():
        metrics = found.cell.metrics
        about = metrics[STOPPED]
        rows.append(
            (found, (about["tasks"], about["of"], about["why"], metrics["mst"], Interval.of(metrics["ci"]["mst"])))
        )
    return named_table(
        study, columns, rows, name="stopped", title="Cells that ended when enough was known", group=STOPPED,
        note=MEANING,
    )  # fmt: skip


def _by_turn(study: Study[Verdicts]) -> Table:
    columns = (*columns_of("d", turn="Turn"), *with_interval("pass_at_1", "Pass@1", ".3f"))
    rows = [
        (found, (turn, value, Interval.of(found.cell.metrics["ci"]["pass_at_1"][turn])))
        for found in study.in_order()
        for turn, value in enumerate(found.cell.metrics["pass_at_1"])
    ]
    return named_table(
        study, columns, rows, name="stopped_turns", title="Pass@1 by turn of cells that ended when enough was known",
        group=STOPPED, note=f"{MEANING} Each interval holds for itself.",
    )  # fmt: skip


def _differences(study: Study[Verdicts]) -> Iterator[tuple[Verdicts, Verdicts]]:
    """The cells that ran the same tasks in the same order."""
    for dataset in study.datasets:
        for a, b in combinations(study.on(dataset), 2):
            same = all(getattr(a.cell, name) == getattr(b.cell, name) for name in ("seed", "protocol"))
            one, other = (each.cell.metrics[STOPPED] for each in (a, b))
            if same and all(one[name] == other[name] for name in ("of", "turns")):
                yield a, b


def _pairs(compared: list[tuple[Verdicts, Verdicts]]) -> Table:
    """MST of A minus B on the tasks that both ran first; by every interval at once α is spent."""
    columns = (
        *columns_of(dataset="Dataset", a="A", b="B"), *columns_of("d", tasks="Tasks"),
        Column("difference", "MST, A − B", "+.3f"), Column("difference_ci", "Interval", "+.3f"),
        *columns_of(decided="Decided"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for a, b in compared:
        about = a.cell.metrics[STOPPED]
        mine, its = ({task: sustained(row) for task, row in zip(e.tasks, e.passed, strict=True)} for e in (a, b))
        order = in_order(mine.keys() & its.keys(), a.cell.seed)
        if not order:
            continue
        parts = [mine[task] for task in order], [its[task] for task in order]
        low, high = difference_interval(*parts, about["turns"], about["of"], ALPHA / len(compared))
        value = (sum(parts[0]) - sum(parts[1])) / len(order)
        decided = "no" if low <= 0 <= high else f"{a.cell.label if low > 0 else b.cell.label} sustains more"
        rows.append((a.cell.dataset, a.cell.label, b.cell.label, len(order), value, Interval(low, high), decided))
    return Table(
        "stopped_pairs", "Paired differences of cells that ended when enough was known", columns, tuple(rows),
        group=STOPPED,
        note=f"On the tasks that both ran, which are the first of one random order. All {len(rows)} intervals hold "
        "together in 95 % of studies, at any moment of them (Bonferroni). They are of the difference that all tasks "
        "of the dataset would have given.",
    )  # fmt: skip
