"""`codechat construct`: make tasks by a recipe."""

import shlex
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from rich.markup import escape

from codechat.base.environment import shell_command
from codechat.base.template import counted
from codechat.cli.cell_view import show_assumptions, show_sum, show_tracking
from codechat.cli.interruption import on_signal, termination_as_interrupt
from codechat.cli.progress import ProgressBar
from codechat.cli.terminal import err, out, plain_table
from codechat.models.calls import Brake
from codechat.run.cell.budget import Budget
from codechat.run.cell.estimate import OF_ALL, OF_SEEDS
from codechat.run.construct.config import compose_construction
from codechat.run.construct.ends import Counts
from codechat.run.construct.making import Construction
from codechat.run.construct.output import CARD, ITEMS, QUESTIONS, funnel_of, stage_rows
from codechat.run.construct.run import INTERRUPTED, Outcome, construct
from codechat.run.journal import Ledger


class Terminal:
    """Prints remarks, and a progress bar while items are made."""

    def __init__(self) -> None:
        self._made: Construction | None = None
        self._budget: Budget | None = None
        self._bar: ProgressBar | None = None

    def begin(self, made: Construction, budget: Budget) -> None:
        self._made, self._budget = made, budget
        facts = f"{counted(len(made.items), 'seed')}, {counted(len(made.stages), 'stage')} · {made.folder}"
        out.print(f"[bold]{escape(made.name)}[/bold] · {escape(facts)}")

    def note(self, text: str) -> None:
        if self._bar is not None:
            self._bar.note(text)
        else:
            err.print(text, markup=False)

    def watching(self, counts: Counts, ledger: Ledger) -> AbstractContextManager[object]:
        assert self._made is not None and self._budget is not None
        self._bar = ProgressBar(len(self._made.items), counts, ledger, self._budget)
        return self._bar

    def interruptible(self, brake: Brake) -> AbstractContextManager[object]:
        return on_signal(brake)


def run_construct(words: list[str]) -> int:
    """Make the tasks that a recipe describes, or what is missing of them. Returns the exit status."""
    command = [shell_command("codechat"), "construct", *words]
    with termination_as_interrupt():
        outcome = construct(*compose_construction(words), Terminal(), command)
    made = outcome.made
    if outcome.estimate is not None:
        items = counted(outcome.estimate.sessions, "item")
        out.print(f"[bold]{escape(made.name)}[/bold] would make {items} of {counted(len(made.items), 'seed')}")
        show_sum(outcome.estimate, "", idle=False)
        show_assumptions((*OF_SEEDS, *OF_ALL))
        return outcome.status
    assert outcome.yields is not None
    _show(outcome, outcome.yields)
    if outcome.status == INTERRUPTED:
        err.print(f"interrupted; everything finished is kept. Resume: {shlex.join(command)}", markup=False)
        return outcome.status
    show_tracking(outcome.tracking, made.config.tracking, made.folder)
    if outcome.unfinished:
        err.print(outcome.unfinished, markup=False)
    elif outcome.yields["errored"]:
        err.print(
            f"{counted(outcome.yields['errored'], 'item')} errored, {made.config.max_errors} are allowed (max_errors); "
            f"the first: {outcome.first_error:.400}\nRun the same command again to retry only these.",
            markup=False,
        )
    return outcome.status


def _show(outcome: Outcome, yields: Mapping[str, Any]) -> None:
    """Print the table of stages, and what waits for people."""
    headers = ("stage", "reached", "passed", "dropped", "waiting", "calls", "tokens", "US dollars")
    table = plain_table(*headers, title=f"\n{escape(outcome.made.name)}", left=1)
    for row in stage_rows(yields):
        table.add_row(*map(escape, row))
    out.print(table)
    if "funnel" in yields:
        heads, rows = funnel_of(yields)
        beside = plain_table(*heads, left=1)
        for row in rows:
            beside.add_row(*map(escape, row))
        out.print(beside)
    folder = outcome.made.folder
    out.print(f"\n{counted(yields['kept'], 'task')} kept of {counted(yields['seeds'], 'seed')}", markup=False)
    if yields["waiting"]:
        held = f"; {counted(yields['held'], 'item')} held back until then" if yields["held"] else ""
        out.print(
            f"{counted(yields['waiting'], 'item')} waiting for people: answer the lines of {folder / QUESTIONS} in a "
            f"file, and add answers=FILE{held}",
            markup=False,
        )
    out.print(f"folder      {folder} (begin with {CARD})", markup=False)
    made = outcome.made
    if made.recipe.cell and yields["kept"] and not made.is_partial:
        cell = [shell_command("codechat"), *made.recipe.cell, f"dataset.path={folder / ITEMS}"]
        out.print(f"run them    {shlex.join(cell)} model=NAME", markup=False)
