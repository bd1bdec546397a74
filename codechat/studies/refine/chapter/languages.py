"""One model in several programming languages: the same tasks, paired, each language beside the one before it."""

from collections.abc import Sequence
from itertools import combinations

from codechat.report.data import Column, Table, Value, columns_of, with_interval
from codechat.report.generic.paired import Pair, difference, minus
from codechat.report.metrics.statistics import Figure, sustained
from codechat.studies.refine.chapter.outcomes import Outcomes, RefineStudy


def by_language(study: RefineStudy) -> Table | None:
    """The table of all pairs of cells of one model and setup in two languages; None if there is none.

    Tasks are paired by their ids, whatever the datasets are called; only those count that both completed.
    """
    compared = [pair for pair in map(_pair, combinations(study.in_order(), 2)) if pair is not None and pair.tasks]
    if not compared:
        return None
    columns = (
        *columns_of(model="Model", setting="Setting", datasets="Datasets", a="A", b="B"), Column("tasks", "Tasks", "d"),
        *_columns("first", "Pass@1 first"), *_columns("last", "Pass@1 last"), *_columns("mst", "MST"),
    )  # fmt: skip
    return Table(
        "by_language", "By language, paired by task", columns, tuple(map(_row, compared)), group="pairs",
        note="Cells of one model and setup in two programming languages, on the tasks and turns that both completed, "
        "paired by their ids. A − B: its 95 % interval is resampled by task, with both languages of a task together. "
        "The instructions are those that hold for each language, so a turn of one asks for a change of the same type "
        "as in the other, and not for the same change.",
    )  # fmt: skip


def _columns(key: str, title: str) -> tuple[Column, ...]:
    sides = columns_of(".3f", **{f"{key}_a": f"{title} A", f"{key}_b": "B"})
    return (*sides, *with_interval(f"{key}_difference", "A − B", "+.3f"))


def _pair(sides: tuple[Outcomes, Outcomes]) -> Pair[Outcomes] | None:
    """The two cells, if they differ in the language and, but for the dataset, in nothing else."""
    a, b = sorted(sides, key=lambda found: (found.languages != {"python"}, sorted(found.languages)))
    single = len(a.languages) == len(b.languages) == 1
    alike = (a.cell.model, a.cell.setup) == (b.cell.model, b.cell.setup)
    return Pair(a, b) if single and alike and a.languages != b.languages else None


def _row(pair: Pair[Outcomes]) -> tuple[Value, ...]:
    (first_a, first_b), (last_a, last_b) = pair.at(0), pair.at(-1)
    mst_a, mst_b = (_sustained(pair, side) for side in pair.verdicts)
    datasets = f"{pair.a.cell.dataset}, {pair.b.cell.dataset}"
    (name_a,), (name_b,) = pair.a.languages, pair.b.languages
    return (
        *(pair.a.cell.model, pair.a.cell.setting, datasets, name_a, name_b, len(pair.tasks)),
        *_compared(pair, first_a, first_b), *_compared(pair, last_a, last_b), *_compared(pair, mst_a, mst_b),
    )  # fmt: skip


def _sustained(pair: Pair[Outcomes], side: Sequence[Sequence[tuple[bool | None, ...]]]) -> Figure:
    tasks = zip(pair.tasks, side, strict=True)
    return Figure({task: (sum(map(sustained, samples)), len(samples)) for task, samples in tasks})


def _compared(pair: Pair[Outcomes], a: Figure, b: Figure) -> tuple[Value, ...]:
    return a.rate, b.rate, minus(a.rate, b.rate), difference(pair.ratios(a), pair.ratios(b))
