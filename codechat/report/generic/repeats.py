"""Entrants with several samples of every task: what is pooled, what any or all of k samples reach, why they vary."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from codechat.report.comparison import Comparison, SessionVerdicts, V
from codechat.report.data import Column, Drawing, Interval, Table, Value, columns_of, with_interval
from codechat.report.drawing import Look, legend, panels, share_range
from codechat.report.generic.tables import named_table
from codechat.report.metrics.repeats import (
    Components,
    Part,
    all_of,
    any_of,
    components,
    longest_of,
    mean_over_tasks,
    shortest_of,
    sizes,
)
from codechat.report.metrics.statistics import TaskRatio, sustained

GROUP = "repeats"
TITLE = "What repeated samples tell"
K_NOTE = (
    "Unbiased: means over all choices of k of a task's samples, then over the tasks that have k; errored sessions are "
    "no samples. pass@k: one of the k passes at this turn; pass^k: all k do. Alive: passing at every turn since turn "
    "0; alive@k: one of the k is, alive^k: all k are. k = 1 is Pass@1 and the share alive. "
    "Intervals: 95 %, resampled by task, each with all its samples."
)
VARIANCE_NOTE = (
    "The variance of one session's value: between tasks, and between samples of one task, which differ by the drawn "
    "instructions (agenda) and by the model's own draws (sample). At turn 0 nothing is drawn but the reply. Later the "
    "two are told apart where samples share the draw of the agenda (agenda.seed), or where the model decodes greedily "
    "(temperature 0) and its replies at turn 0 agree; elsewhere every seed draws both, and only their sum is known. A "
    "negative estimate is 0. Standard error: of the mean, by these components, with as many tasks, and one sample of a "
    "task, as many as there are, or any number; empty if they leave 0, since no mean is known exactly."
)


def pooled_in(comparison: Comparison[V]) -> list[V]:
    """The entrants that pool several cells."""
    return [found for found in comparison.in_order() if found.cell.samples > 1]


def tested_in(comparison: Comparison[V]) -> list[V]:
    """The entrants that pool several cells and have a turn with a verdict."""
    return [found for found in pooled_in(comparison) if any(set(verdicts) - {None} for verdicts in found.passed)]


def tables(comparison: Comparison[Any], *, prefix: str = "", group: str = GROUP) -> Iterator[Table]:
    """All of them, if an entrant pools several cells; `prefix` begins their names."""
    if pooled_in(comparison):
        yield _pooled(comparison, f"{prefix}repeats", group)
    if tested_in(comparison):
        yield _turns(comparison, f"{prefix}repeats_turns", group)
        yield _lengths(comparison, f"{prefix}repeats_sustained", group)
        yield _variance(comparison, f"{prefix}repeats_variance", group)


def _pooled(comparison: Comparison[V], name: str, group: str) -> Table:
    columns = (
        Column("samples", "Samples", "d"), *columns_of(seeds="Seeds"),
        *columns_of("d", tasks="Tasks", whole="with all samples", sessions="Completed sessions"),
        *columns_of(folders="Cells"),
    )  # fmt: skip
    rows = []
    for found in comparison.in_order():
        parts, counts = found.cell.parts, [len(places) for places in found.samples.values()]
        whole = sum(count == len(parts) for count in counts)
        named = (found.cell.seeds, ", ".join(part.folder.name for part in parts))
        rows.append((found, (len(parts), named[0], len(counts), whole, sum(counts), named[1])))
    return named_table(
        comparison, columns, rows, title="What is pooled, and from how many samples", name=name, group=group,
        note="Cells that differ in the seed alone are one entrant: its figures are over all their sessions, and its "
        "intervals resample tasks, each with all its samples. Samples: sessions that each task has, errored ones "
        "included.",
    )  # fmt: skip


def _turns(comparison: Comparison[V], name: str, group: str) -> Table:
    titles = {"pass_any": "pass@k", "pass_all": "pass^k", "alive_any": "alive@k", "alive_all": "alive^k"}
    rows = [
        (found, (turn, k), figures)
        for found in tested_in(comparison) for turn in range(found.cell.turns) for k in sizes(found.cell.samples)
        for figures in [[of_k(found, turn, k, part, alive=each) for each in (False, True) for part in (any_of, all_of)]]
        if figures[0].by_task
    ]  # fmt: skip
    return table_of_k(
        comparison, columns_of("d", turn="Turn", k="k", tasks="Tasks"), titles, rows,
        title="pass@k and pass^k, turn by turn", note=K_NOTE, name=name, group=group,
    )  # fmt: skip


def _lengths(comparison: Comparison[V], name: str, group: str) -> Table:
    def lasting(found: V, k: int, part: Callable[[Sequence[int], int], Part]) -> TaskRatio:
        return mean_over_tasks({task: part(_lasting(found, places), k) for task, places in found.samples.items()})

    rows = [
        (found, (k,), [lasting(found, k, part) for part in (longest_of, shortest_of)])
        for found in tested_in(comparison) for k in sizes(found.cell.samples)
    ]  # fmt: skip
    return table_of_k(
        comparison, columns_of("d", k="k", tasks="Tasks"),
        {"longest": "Longest of k", "shortest": "Shortest of k"}, rows,
        title="Sustained turns of k samples", name=name, group=group,
        note="Sustained turns: those that pass one after another from turn 0 on. Of k samples of a task the longest, "
        "and the shortest, which is as long as all k are alive: the sum of alive^k over the turns. k = 1 is the mean "
        "of the tasks' means. Unbiased, over the tasks that have k samples. Intervals: 95 %, resampled by task.",
    )  # fmt: skip


def table_of_k(
    comparison: Comparison[V],
    places: Sequence[Column],
    titles: Mapping[str, str],
    rows: Iterable[tuple[V, tuple[int, ...], Sequence[TaskRatio]]],
    **about: str,
) -> Table:
    """What any or all of k samples reach, each figure with its interval; `titles` name the figures by their keys.

    A row is a cell, where it stands (k last) and its figures. The last column of `places` is for the number of tasks.
    """
    columns = [*places, *(column for item in titles.items() for column in with_interval(*item, ".3f"))]
    values = [
        (found, (*place, len(figures[0].by_task), *(each for figure in figures for each in measured(found, figure))))
        for found, place, figures in rows
    ]
    return named_table(comparison, columns, values, (), **about)


def _variance(comparison: Comparison[V], name: str, group: str) -> Table:
    parts = {"task": "Task", "agenda": "Agenda", "sample": "Sample", "within": "Agenda + sample"}
    columns = (
        *columns_of(of="Of"), Column("tasks", "Tasks", "d"), *columns_of(".4f", **parts),
        Column("task_share", "Task, share", ".2f"), *columns_of(apart="Told apart"),
        *columns_of(".4f", se_one="Standard error, 1 sample", se_own="as measured", se_many="any number"),
    )  # fmt: skip
    rows = []
    for found in tested_in(comparison):
        last = found.cell.turns - 1
        for of, turn in (("Pass@1, turn 0", 0), (f"Pass@1, turn {last}", last), ("Sustained turns", None)):
            source, words = one_source(found, turn)
            split = components(_sampled(found, turn), one_source=source)
            if split is not None:
                rows.append((found, (of, *_split(split, found.cell.samples, words))))
    return named_table(
        comparison, columns, rows, title="Where the variance comes from", note=VARIANCE_NOTE, name=name, group=group
    )


def _split(found: Components, samples: int, words: str) -> Sequence[Value]:
    whole = found.task + found.within
    apart = words or ("samples share draws" if found.agenda is not None else "no: each seed draws both")
    errors = (found.standard_error(found.tasks, count) for count in (1, samples, inf))
    return (
        *(found.tasks, found.task, found.agenda, found.sample, found.within),
        *(found.task / whole if whole else None, apart, *errors),
    )


def one_source(found: SessionVerdicts, turn: int | None) -> tuple[str, str]:
    """What alone makes samples of a task differ, if it is known, and how that is known."""
    if turn == 0:
        return "sample", "no agenda yet"
    model = found.cell.config.get("model") or {}
    if model.get("temperature") == 0 and all(len(replies) == 1 for replies in found.openings.values()):
        return "agenda", "greedy replies agree"
    return ("sample", "the agenda is drawn once") if len(set(found.draws)) == 1 else ("", "")


def _sampled(found: SessionVerdicts, turn: int | None) -> list[list[tuple[int, float]]]:
    """By task each sample's draw and value: whether the turn passes, or the sustained turns for None."""
    sampled = []
    for places in found.samples.values():
        if turn is None:
            values: list[int | bool | None] = [*_lasting(found, places)]
        else:
            values = [next(iter(found.passed[place][turn : turn + 1]), None) for place in places]
        sampled.append([(found.draws[p], float(v)) for p, v in zip(places, values, strict=True) if v is not None])
    return sampled


def of_k(found: SessionVerdicts, turn: int, k: int, part: Callable[[int, int, int], Part], *, alive: bool) -> TaskRatio:
    """What any or all (`part`) of k samples of a task do at a turn: pass, or be alive."""

    def counted(places: Sequence[int]) -> Part:
        reached = [found.passed[place][: turn + 1] for place in places]
        scored = [verdicts for verdicts in reached if len(verdicts) > turn and verdicts[-1] is not None]
        hits = sum((False not in verdicts) if alive else bool(verdicts[-1]) for verdicts in scored)
        return part(len(scored), hits, k)

    return mean_over_tasks({task: counted(places) for task, places in found.samples.items()})


def _lasting(found: SessionVerdicts, places: Sequence[int]) -> list[int]:
    return [sustained(found.passed[place]) for place in places]


def measured(found: SessionVerdicts, figure: TaskRatio) -> tuple[float | None, Interval | None]:
    """A figure's value, and its interval over the cell's resamples of tasks."""
    return figure.rate, Interval.of(found.resamples.interval(figure))


def drawings(comparison: Comparison[Any], *, prefix: str = "", group: str = GROUP) -> Iterator[Drawing]:
    """The figure of pass@k and pass^k, if there is something to draw."""
    if tested_in(comparison):
        yield Drawing(
            f"{prefix}repeats", "Pass@1 between pass@k and pass^k",
            "The share of tasks that one sample passes at each turn (line), that one of all k samples passes (upper "
            "edge) and that all k pass (lower edge), k being the number of samples. The wider the band, the more a "
            "single run depends on chance.", group, _draw,
        )  # fmt: skip


def _draw(comparison: Comparison[V], look: Look) -> Any:
    entrants = tested_in(comparison)
    datasets = list(dict.fromkeys(found.cell.dataset for found in entrants))
    figure, axes = panels(datasets)
    heights: list[float] = []
    for found in entrants:
        panel, k = axes[datasets.index(found.cell.dataset)], found.cell.samples
        shown = [(1, any_of), (k, any_of), (k, all_of)]
        rows = [
            (turn, *(of_k(found, turn, size, part, alive=False).rate for size, part in shown))
            for turn in range(found.cell.turns)
        ]
        rows = [row for row in rows if None not in row]
        if not rows:  # no task has as many completed samples as there are cells
            continue
        turns, middle, upper, lower = zip(*rows, strict=True)
        line = look.line(found.cell.label)
        panel.plot(turns, middle, **{**line, "label": f"{found.cell.label}, k = {k}"})
        panel.fill_between(turns, lower, upper, color=line["color"], alpha=0.16, linewidth=0)
        heights += [*upper, *lower]
    for panel in axes:
        panel.set(xlabel="Turn", ylim=share_range(heights) if heights else None)
        panel.set_ylabel("Share of tasks")
    legend(figure, axes)
    return figure
