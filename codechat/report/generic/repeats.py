"""Entrants with several samples of every task: pooled cells, any or all of k samples, sources of variance."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from codechat.report.comparison import Comparison, SessionVerdicts, V
from codechat.report.data import Column, Drawing, Interval, Table, columns_of, with_interval
from codechat.report.drawing import Look, legend, panels, share_range
from codechat.report.generic.tables import named_table
from codechat.report.metrics.repeats import (
    Part,
    all_of,
    any_of,
    components,
    mean_over_tasks,
    sizes,
)
from codechat.report.metrics.statistics import TaskRatio, rate, sustained

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
    "task, as many as there are (with the measured sharing of draws), or any number; empty if they leave 0, "
    "since no mean is known exactly."
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
        tasks = (len(counts), counts.count(len(parts)), sum(counts))
        folders = ", ".join(part.folder.name for part in parts)
        rows.append((found, (len(parts), found.cell.seeds, *tasks, folders)))
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


def table_of_k(
    comparison: Comparison[V],
    places: Sequence[Column],
    titles: Mapping[str, str],
    rows: Iterable[tuple[V, tuple[int, ...], Sequence[TaskRatio]]],
    **about: str,
) -> Table:
    """Results of any or all of k samples, each with an interval; `titles` name the figures by their keys. A row is a
    cell, its place (k last) and its figures. The last column of `places` is the number of tasks."""
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
            if split is None:
                continue
            apart = words or ("samples share draws" if split.agenda is not None else "no: each seed draws both")
            errors = (split.standard_error(split.tasks, count) for count in (1, found.cell.samples, inf))
            values = (split.tasks, split.task, split.agenda, split.sample, split.within)
            rows.append((found, (of, *values, rate(split.task, split.task + split.within), apart, *errors)))
    title = "Where the variance comes from"
    return named_table(comparison, columns, rows, title=title, note=VARIANCE_NOTE, name=name, group=group)


def one_source(found: SessionVerdicts, turn: int | None) -> tuple[str, str]:
    """The only source of differences between samples of a task, if it is known, and the evidence."""
    if turn == 0:
        return "sample", "no agenda yet"
    model = found.cell.config.get("model") or {}
    if model.get("temperature") == 0 and all(len(replies) == 1 for replies in found.openings.values()):
        return "agenda", "greedy replies agree"
    return ("sample", "the agenda is drawn once") if len(set(found.draws)) == 1 else ("", "")


def _sampled(found: SessionVerdicts, turn: int | None) -> list[list[tuple[int, float]]]:
    """By task each sample's draw and value: whether the turn passes, or the sustained turns for None."""

    def value_at(place: int) -> int | None:
        verdicts = found.passed[place]
        return sustained(verdicts) if turn is None else next(iter(verdicts[turn : turn + 1]), None)

    return [
        [(found.draws[place], float(value)) for place in places if (value := value_at(place)) is not None]
        for places in found.samples.values()
    ]


def of_k(found: SessionVerdicts, turn: int, k: int, part: Callable[[int, int, int], Part], *, alive: bool) -> TaskRatio:
    """The share of tasks of which any or all (`part`) of k samples pass at a turn, or are alive."""

    def counted(places: Sequence[int]) -> Part:
        reached = [found.passed[place][: turn + 1] for place in places]
        scored = [verdicts for verdicts in reached if len(verdicts) > turn and verdicts[-1] is not None]
        hits = sum((False not in verdicts) if alive else bool(verdicts[-1]) for verdicts in scored)
        return part(len(scored), hits, k)

    return mean_over_tasks({task: counted(places) for task, places in found.samples.items()})


def measured(found: SessionVerdicts, figure: TaskRatio) -> tuple[float | None, Interval | None]:
    """A figure's value and interval."""
    return figure.rate, Interval.of(found.resamples.shown(figure))


def drawings(comparison: Comparison[Any], *, prefix: str = "", group: str = GROUP) -> Iterator[Drawing]:
    """The figure of pass@k and pass^k, if an entrant has several samples."""
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
