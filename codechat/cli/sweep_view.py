"""A sweep at a terminal: a line per cell, a bar over cells that run elsewhere, the table at the end."""

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from codechat.base.environment import shell_command
from codechat.base.template import counted
from codechat.cli.cell_view import show_assumptions, show_sum
from codechat.cli.interruption import pass_on
from codechat.cli.progress import REFRESHES_PER_S, clock
from codechat.cli.terminal import err, out, plain_table
from codechat.report.metrics.measures import measures_in, value_of
from codechat.run.cell.estimate import total
from codechat.run.launchers import Job, Result, Sweep, TurnCounts
from codechat.run.run import BUG, DONE, INTERRUPTED, MISTAKE, TOO_MANY_ERRORS

STATES = {DONE: "done", BUG: "bug", MISTAKE: "not run", TOO_MANY_ERRORS: "errors", INTERRUPTED: "interrupted"}

LONGEST = 100  # characters of a word of a cell


class SweepView:
    """The sweep at a terminal."""

    def __init__(self, cells: int) -> None:
        self._cells, self._ended = cells, 0
        self._bar: _Bar | None = None

    def begins(self, job: Job) -> None:
        """Name the cell, and its place in the sweep."""
        out.print(f"\n[dim]cell {job.number + 1} of {self._cells}: {escape(_named(job.composed.words))}[/dim]")

    def ended(self, job: Job, result: Result) -> None:
        """Print the output of a cell that ran elsewhere, now that it is over."""
        self._ended += 1
        with self._bar.hidden() if self._bar is not None else nullcontext():
            self.begins(job)
            for piece in result.printed:
                console = err if piece.error else out
                console.print(piece.text, markup=False, end="")

    def note(self, text: str) -> None:
        """Show a remark."""
        err.print(text, markup=False)

    @contextmanager
    def watching(self, tally: Callable[[], TurnCounts]) -> Iterator[None]:
        """Show a bar over all cells, on a terminal only."""
        self._bar = _Bar(lambda: self._headline(tally()), lambda: self._ended, self._cells)
        self._bar.start()
        try:
            yield
        finally:
            self._bar.stop()
            self._bar = None

    def _headline(self, tally: TurnCounts) -> list[str]:
        facts = [f"{self._ended}/{self._cells} cells"]
        if tally.planned:
            facts.append(f"{tally.turns:,}/{tally.planned:,} turns of those begun")
        if tally.scored:
            facts.append(f"{100 * tally.passed / tally.scored:.0f} % pass")
        return facts

    def interruptible(self, stop: Callable[[], None]) -> AbstractContextManager[object]:
        """Pass the user's interruption on to the cells."""
        return pass_on(stop)


class _Bar(Progress):
    """One line that a timer draws; it asks for the facts only then."""

    def __init__(self, facts: Callable[[], list[str]], ended: Callable[[], int], cells: int) -> None:
        self._facts, self._ended, self._began = facts, ended, time.monotonic()
        super().__init__(
            BarColumn(bar_width=16),
            TextColumn("{task.fields[facts]}", markup=False),
            console=err,
            disable=not err.is_terminal,
            refresh_per_second=REFRESHES_PER_S,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self.add_task("", total=cells, facts="")

    def get_renderables(self) -> Iterable[RenderableType]:
        if self.tasks:
            facts = [*self._facts(), clock(time.monotonic() - self._began)]
            self.update(self._task, completed=self._ended(), facts=" · ".join(facts))
        yield self.make_tasks_table(self.tasks)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Within, other output has the terminal to itself."""
        self.stop()
        try:
            yield
        finally:
            self.start()


def show_end(sweep: Sweep, results: Mapping[int, Result], dropped: Sequence[str]) -> None:
    """Print the table of the cells, or the sum of their estimates, and the command that compares them."""
    estimates = [result.estimate for result in results.values() if result.estimate]
    if estimates:
        show_sum(total(estimates), f"\nsweep {sweep.name}: {counted(len(estimates), 'cell')}, each as if run alone")
        show_assumptions()
        return
    words = [set(job.composed.words) for job in sweep.jobs]
    shared = set.intersection(*words) if len(words) > 1 else set()
    keys = [word.partition("=")[0] for word in dropped]
    same = {word for word, key in zip(dropped, keys, strict=True) if keys.count(key) == 1}
    table = _table(sweep, shared | same, results)
    out.print(table, width=max(out.width, Measurement.get(out, out.options, table).maximum), crop=False)
    if len(results) < len(sweep.jobs):
        out.print(f"\n{counted(len(sweep.jobs) - len(results), 'cell was', 'cells were')} not begun")
    finished = [result for _, result in sorted(results.items()) if result.metrics]
    if finished:
        folders = ",".join(str(result.folder) for result in finished)
        compare = [shell_command("codechat"), "report", f"runs={folders}", f"out=report-{sweep.name}"]
        out.print(f"\ncompare  {shlex.join(compare)}", markup=False)


@dataclass(frozen=True)
class _Headline:
    """Both ends of a protocol's first series, and its first final; of how many turns, if it counts turns."""

    labels: tuple[str, str, str]
    values: tuple[float | None, float | None, float | None]
    turns: int = 0


def _headline(metrics: Mapping[str, Any]) -> _Headline:
    measures = measures_in(metrics)
    if measures is None:
        raise ValueError("these metrics do not say what they are")
    series, final = measures.series[0], measures.finals[0]
    curve = value_of(metrics, series) or [None]
    values = (curve[0], curve[-1], value_of(metrics, final))
    return _Headline((f"{series.label} first", "last", final.label), values, len(curve) * (final.key == "mst"))


def _named(words: Sequence[str]) -> str:
    """The words that distinguish a cell from others, long ones without their ends."""
    return " ".join(word if len(word) <= LONGEST else f"{word[:LONGEST]} …" for word in words) or "the defaults"


def _table(sweep: Sweep, constant: set[str], results: Mapping[int, Result]) -> Table:
    """A row for every cell that has a result, named by all its overrides except the `constant` ones."""

    labels = {_headline(result.metrics).labels for result in results.values() if result.metrics}
    own = labels.pop() if len(labels) == 1 else ("first turn", "last", "in all")  # cells of several protocols
    table = plain_table("cell", "state", *own, "folder", title=f"\nsweep {escape(sweep.name)}")
    for job in sorted(sweep.jobs, key=lambda each: each.number):
        if job.number not in results:
            continue
        result = results[job.number]
        varies = _named([word for word in job.composed.words if word not in constant])
        headline = _headline(result.metrics) if result.metrics else None
        values, turns = (headline.values, headline.turns) if headline is not None else ((None,) * 3, 0)
        shown = ["—" if value is None else f"{value:.3f}" for value in values]
        shown[2] += f" of {turns}" if turns else ""
        state = result.state if result.status is None else STATES[result.status]
        untracked = ", not tracked" if result.untracked else ""
        table.add_row(escape(varies), state + untracked, *shown, escape(str(result.folder or "")))
    return table
