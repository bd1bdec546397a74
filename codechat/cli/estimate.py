"""`dry_run=true`: shows the estimated cost of a cell or a whole sweep."""

from rich.markup import escape
from rich.table import Table

from codechat.cli.terminal import out
from codechat.domain import Usage
from codechat.engine.cell import Cell
from codechat.engine.estimate import ASSUMPTIONS, Estimate
from codechat.judges import QUESTIONS
from codechat.metrics.spending import JUDGE
from codechat.template import counted


def show_estimate(cell: Cell, estimate: Estimate) -> None:
    """Print the estimate of one cell."""
    whole = f" of {len(cell.tasks)}" if estimate.sessions != len(cell.tasks) else ""
    sessions = f"{estimate.sessions}{whole} session{'s' * (len(cell.tasks) != 1)}"
    out.print(f"[bold]{escape(cell.name)}[/bold] would hold {sessions}, {counted(estimate.turns, 'turn')}")
    show_sum(estimate, "")


def show_sum(estimate: Estimate, title: str) -> None:
    """Print calls, tokens and cost of every payer."""
    table = Table(title=title or None, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for header in ("", "calls", "tokens in", "tokens out", "US dollars"):
        table.add_column(header, justify="right" if header else "left")
    for payer, cost in estimate.usd.items():
        roles = (*QUESTIONS, JUDGE) if payer == JUDGE else (payer,)
        calls = sum(estimate.calls.get(role, 0) for role in roles)
        usage = sum((estimate.tokens.get(role, Usage()) for role in roles), Usage())
        money = "not known" if cost is None else f"{cost:,.2f}"
        name = "judges" if payer == JUDGE else payer
        table.add_row(name, f"{calls:,}", f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", money)
    out.print(table)


def show_assumptions() -> None:
    """Print the assumptions behind the figures."""
    out.print("\nNothing was run. Assumed:")
    for assumption in ASSUMPTIONS:
        out.print(f"  - {assumption}", markup=False)
    out.print("Prices are those of model.prices, and of the judges' models; budget_usd and budget_tokens set a bound.")
