"""`codechat construct`: make tasks by a recipe."""

import shlex
from collections.abc import Mapping
from typing import Any

from rich.markup import escape

from codechat.base.environment import shell_command
from codechat.base.template import counted
from codechat.cli.cell_view import show_assumptions, show_sum, show_tracking
from codechat.cli.progress import WorkView, termination_as_interrupt
from codechat.cli.terminal import err, out, plain_table
from codechat.run.cell.budget import Budget
from codechat.run.cell.estimate import OF_ALL, OF_SEEDS
from codechat.run.construct.making import Construction
from codechat.run.construct.output import CARD, ITEMS, QUESTIONS, STAGE_HEADS, stage_rows
from codechat.run.construct.recipe import compose_construction
from codechat.run.construct.run import INTERRUPTED, Outcome, construct


class Terminal(WorkView):
    """Prints remarks, and a progress bar while items are made."""

    def begin(self, made: Construction, budget: Budget) -> None:
        facts = f"{counted(len(made.items), 'seed')}, {counted(len(made.stages), 'stage')} · {made.folder}"
        self._show_head(made.name, f" · {facts}", len(made.items), budget)


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
    """Print the table of stages, the recipe's own table, the questions to people, and where the files are."""
    made, folder = outcome.made, outcome.made.folder
    heads, *rows = map(tuple, yields.get("funnel") or [()])
    for headers, lines, title in ((STAGE_HEADS, stage_rows(yields), f"\n{escape(made.name)}"), (heads, rows, "")):
        table = plain_table(*headers, title=title, left=1)
        for line in lines:
            table.add_row(*map(escape, line))
        if headers:
            out.print(table)
    out.print(f"\n{counted(yields['kept'], 'task')} kept of {counted(yields['seeds'], 'seed')}", markup=False)
    if yields["waiting"]:
        held = f"; {counted(yields['held'], 'item')} held back until then" if yields["held"] else ""
        out.print(
            f"{counted(yields['waiting'], 'item')} waiting for people: answer the lines of {folder / QUESTIONS} in a "
            f"file, and add answers=FILE{held}",
            markup=False,
        )
    out.print(f"folder      {folder} (begin with {CARD})", markup=False)
    if made.recipe.cell and yields["kept"] and not made.is_partial:
        cell = [shell_command("codechat"), *made.recipe.cell, f"dataset.path={folder / ITEMS}"]
        out.print(f"run them    {shlex.join(cell)} model=NAME", markup=False)
