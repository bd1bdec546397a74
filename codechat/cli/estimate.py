"""`dry_run=true`: shows the estimated cost of a cell or a whole sweep."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from codechat.cli.terminal import out
from codechat.domain import Usage
from codechat.engine.answering.endpoints import shown
from codechat.engine.cell import Cell
from codechat.engine.cell.estimate import ASSUMPTIONS, Estimate
from codechat.judges import QUESTIONS
from codechat.metrics.spending import JUDGE
from codechat.models.endpoints import address_of
from codechat.template import counted


def show_estimate(cell: Cell, estimate: Estimate) -> None:
    """Print the estimate of one cell."""
    whole = f" of {len(cell.tasks)}" if estimate.sessions != len(cell.tasks) else ""
    sessions = f"{estimate.sessions}{whole} session{'s' * (len(cell.tasks) != 1)}"
    out.print(f"[bold]{escape(cell.name)}[/bold] would hold {sessions}, {counted(estimate.turns, 'turn')}")
    show_sum(estimate, "")
    _show_endpoints(cell)


def show_sum(estimate: Estimate, title: str) -> None:
    """Print calls, tokens, cost and time of every payer."""
    table = Table(title=title or None, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for header in ("", "calls", "tokens in", "of them cached", "tokens out", "US dollars", "without cache", "time"):
        table.add_column(header, justify="right" if header else "left")
    for payer, cost in estimate.usd.items():
        roles = (*QUESTIONS, JUDGE) if payer == JUDGE else (payer,)
        calls = sum(estimate.calls.get(role, 0) for role in roles)
        usage = sum((estimate.tokens.get(role, Usage()) for role in roles), Usage())
        tokens = (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens)
        money = ("not known" if each is None else f"{each:,.2f}" for each in (cost, estimate.uncached_usd[payer]))
        seconds = sum(estimate.seconds.get(role, 0.0) for role in roles)
        name = "judges" if payer == JUDGE else payer
        table.add_row(name, f"{calls:,}", *(f"{count:,}" for count in tokens), *money, _duration(seconds))
    out.print(table)


def show_layout(lines: Sequence[str]) -> None:
    """Print the model servers that would be started."""
    for number, line in enumerate(lines):
        out.print(f"{'servers  ' if not number else '         '}{line}", markup=False, soft_wrap=True)


def _duration(seconds: float) -> str:
    """A rough time, in the unit in which it is easily read."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:,.1f} h"


def _show_endpoints(cell: Cell) -> None:
    """Print who would be asked, and where."""
    places = cell.endpoints
    if places:
        asked = ", ".join(f"{place} {model.name} at {shown(str(address_of(model)))}" for place, model in places.items())
        out.print(f"asks  {asked}", markup=False)


def show_assumptions() -> None:
    """Print the assumptions behind the figures."""
    out.print("\nNothing was run. Assumed:")
    for assumption in ASSUMPTIONS:
        out.print(f"  - {assumption}", markup=False)
    out.print("Prices are those of model.prices, and of the judges' models; budget_usd and budget_tokens set a bound.")
