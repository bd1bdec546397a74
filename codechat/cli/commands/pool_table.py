"""The pool in `codechat list instructions`: the instructions, the share of each kind, the rejected ones."""

from collections import Counter
from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from codechat.cli.terminal import out
from codechat.domain import CHANGES, SCOPES
from codechat.errors import UserError
from codechat.instructions import Pool


def print_pool(pool: Pool, mistakes: Sequence[UserError] = ()) -> None:
    """Print the accepted instructions by kind, their distribution, and the rejected ones with their reasons.

    Then what may be meant otherwise, and the mistakes of the file.
    """
    accepted = sorted(pool.instructions, key=lambda each: (SCOPES.index(each.scope), CHANGES.index(each.change)))
    table = _table("", "scope", "change", "decided by", "instruction", "id")
    for number, each in enumerate(accepted, 1):
        by = "rules" if each.rule is not None else "LLM"
        table.add_row(str(number), each.scope, each.change, by, escape(each.text), each.id)
    out.print(table)
    ruled = sum(each.rule is not None for each in accepted)
    decided = f"decided by their rules: {ruled}; without a rule, for an LLM: {len(accepted) - ruled}"
    out.print(f"\n[bold]distribution[/bold] of {len(accepted)} accepted instructions ({decided})")
    out.print(_distribution(pool))
    if pool.rejected:
        out.print(f"\n[bold]rejected[/bold] by curation: {len(pool.rejected)}, never drawn")
        refused = _table("scope", "instruction", "why")
        for candidate in pool.rejected:
            refused.add_row(candidate.scope, escape(candidate.text), escape(candidate.reason))
        out.print(refused)
    if pool.warnings:
        out.print(f"\n[bold]warnings[/bold]: {len(pool.warnings)}")
        for warning in pool.warnings:
            out.print(warning, markup=False)
    if mistakes:
        out.print(f"\n[bold]mistakes[/bold]: {len(mistakes)}; no cell runs with this file until they are mended")
        for mistake in mistakes:
            out.print(str(mistake).replace("\n", "; "), markup=False)


def _distribution(pool: Pool) -> Table:
    cells = Counter((each.scope, each.change) for each in pool.instructions)
    table = _table("scope", *CHANGES, "all", "share")
    for scope in SCOPES:
        row = [cells[scope, change] for change in CHANGES]
        table.add_row(scope, *map(str, row), str(sum(row)), _share(sum(row), cells.total()))
    columns = [sum(cells[scope, change] for scope in SCOPES) for change in CHANGES]
    table.add_row("all", *map(str, columns), str(cells.total()), "")
    table.add_row("share", *(_share(count, cells.total()) for count in columns), "", "")
    return table


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "—"


def _table(*headers: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for header in headers:
        table.add_column(header, overflow="fold")
    return table
