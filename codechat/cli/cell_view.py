"""The terminal's lines on a cell: its estimated cost (`dry_run=true`), its headline figures, where it is tracked."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from codechat.base.config import Config
from codechat.base.domain import STANDARD, Usage
from codechat.base.environment import shell_command
from codechat.base.records import SessionRecord
from codechat.base.template import counted
from codechat.cli.terminal import err, out, plain_table
from codechat.judging import QUESTIONS
from codechat.models.endpoints import address_of
from codechat.models.prices import listed_prices
from codechat.models.remote import RemoteConfig
from codechat.report.chapters import chapter_of
from codechat.report.generic import agents
from codechat.report.metrics import Measures, caution_of
from codechat.report.metrics.counts import DECIDED, INSIDE_MEANS, MOVED, constructs_in, inside_in, moved_words
from codechat.report.metrics.spending import JUDGE
from codechat.report.tracking import TRACKING, TrackedRun
from codechat.report.tracking.address import Address
from codechat.run.answering.endpoints import without_query
from codechat.run.cell import Cell
from codechat.run.cell.estimate import Estimate
from codechat.run.results.measured import Tracking
from codechat.run.settings.compose import parse_word, quoted


def show_estimate(cell: Cell, estimate: Estimate) -> None:
    """Print the estimate of one cell, and the endpoints that it would ask."""
    whole = f" of {len(cell.tasks)}" if estimate.sessions != len(cell.tasks) else ""
    sessions = f"{estimate.sessions}{whole} session{'s' * (len(cell.tasks) != 1)}"
    out.print(f"[bold]{escape(cell.name)}[/bold] would hold {sessions}, {counted(estimate.turns, 'turn')}")
    show_sum(estimate, "")
    asked = [f"{place} {m.name} at {without_query(str(address_of(m)))}" for place, m in cell.endpoints.items()]
    if asked:
        out.print(f"asks  {', '.join(asked)}", markup=False)
    for place, model in cell.endpoints.items():
        listed, tier = listed_prices(model), getattr(model, "tier", STANDARD)
        source = f"{place}.prices" if model.prices else listed.source if listed else "none is known"
        line = f"prices  {place} {model.name}: {source}" + (f", tier {tier}" if tier != STANDARD else "")
        out.print(line, markup=False, soft_wrap=True)
    unbounded = [place for place, m in cell.endpoints.items() if isinstance(m, RemoteConfig) and m.max_tokens is None]
    if unbounded:
        ends = "a reply that repeats itself ends at the endpoint's limit, or after timeout_s and is then asked again"
        line = f"replies  without max_tokens, of {', '.join(unbounded)}: {ends}"
        out.print(line, markup=False, soft_wrap=True)
    for remark in cell.remarks:
        err.print(remark, markup=False)


def show_sum(estimate: Estimate, title: str, *, idle: bool = True) -> None:
    """Print calls, tokens, cost and time of every payer; payers without calls only if `idle`."""
    headers = ("", "calls", "tokens in", "of them cached", "tokens out", "US dollars", "without cache", "time")
    table = plain_table(*headers, title=title, left=1)
    for payer, cost in estimate.usd.items():
        roles = (*QUESTIONS, JUDGE) if payer == JUDGE else (payer,)
        calls = sum(estimate.calls.get(role, 0) for role in roles)
        if not calls and not idle:
            continue
        usage = sum((estimate.tokens.get(role, Usage()) for role in roles), Usage())
        tokens = (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens)
        money = map(_dollars, (cost, estimate.uncached_usd[payer]))
        seconds = sum(estimate.seconds.get(role, 0.0) for role in roles)
        name = "judges" if payer == JUDGE else payer
        table.add_row(name, f"{calls:,}", *(f"{count:,}" for count in tokens), *money, _duration(seconds))
    out.print(table)


def _dollars(usd: float | None) -> str:
    return "not known" if usd is None else f"{usd:,.{3 if 0 < usd < 1 else 2}f}"


def show_layout(lines: Sequence[str]) -> None:
    """Print the model servers that would be started."""
    for number, line in enumerate(lines):
        out.print(f"{'servers  ' if not number else '         '}{line}", markup=False, soft_wrap=True)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:,.1f} h"


def show_assumptions(assumptions: Sequence[str]) -> None:
    """Print the assumptions behind the figures."""
    out.print("\nNothing was run. Assumed:")
    for assumption in assumptions:
        out.print(f"  - {assumption}", markup=False)
    out.print("Prices: model.prices, else a list in conf/prices. budget_usd and budget_tokens set a bound.")


def summary(measures: Measures, metrics: Mapping[str, Any], title: str, departure: str = "") -> Table:
    """A line per figure of the protocol's chapter, below the caution, if there is one."""
    table = plain_table(title=title)
    if caution := caution_of(metrics, departure):
        table.add_row("[bold red]caution[/bold red]", escape(caution))
    for name, value in chapter_of(measures.protocol).summary(measures, metrics):
        table.add_row(f"[bold]{escape(name)}[/bold]", escape(value))
    if worked := agents.summary_text(metrics):
        table.add_row("[bold]agent[/bold]", escape(worked))
    return table


def inside_line(metrics: Mapping[str, Any], sessions: Iterable[SessionRecord]) -> str:
    """The number of verdicts decided inside, and the most frequent reason; empty if there is none.

    The sessions are read only if there is one.
    """
    inside = inside_in(metrics)
    if not inside:
        return ""
    decided = metrics[DECIDED]
    line = f"{inside} of {inside + decided['outside']} verdicts were decided inside ({INSIDE_MEANS})"
    most = constructs_in(sessions).most_common(1)
    reason = f", {most[0][1]} of them because of {most[0][0]}" if most else ""
    return f"{line}{reason}{moved_words(decided.get(MOVED, 0))}"


USUAL = "mlflow"


def show_tracking(tracking: Tracking, config: Config, folder: Path) -> None:
    """Print where a cell is tracked; if the store failed, a warning with the command that sends the cell later."""
    if tracking.failure:
        later = [shell_command("codechat"), "upload", f"run={folder}", *store_words(config)]
        err.print(
            f"warning: not tracked: {tracking.failure}\n"
            f"The records are safe. Later: {shlex.join(later)}{_password_of(config)}",
            markup=False,
        )
    elif tracking.run is not None:
        show_tracked(tracking.run)


def store_words(config: Config) -> Iterator[str]:
    """The overrides that choose this store again: options that differ from the defaults, without secrets."""
    kind = TRACKING.of(config).name
    if kind != USUAL:
        yield f"tracking={kind}"
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if name != TRACKING.key and (field.is_required() or value != field.get_default(call_default_factory=True)):
            yield _word(f"tracking.{name}", Address.of(value).public_uri if name == "uri" else value)


def _word(key: str, value: object) -> str:
    """The override that sets a key; a text is quoted if Hydra would misread it."""
    word = f"{key}={value}"
    read = parse_word(word)
    same = read is not None and not read.is_sweep_override() and read.value() == value
    return word if same or not isinstance(value, str) else shlex.split(quoted(key, value))[0]


def _password_of(config: Config) -> str:
    """A line on how to give the password that the command leaves out; empty if there is none."""
    uri = getattr(config, "uri", None)
    if uri is None or Address.of(uri).public_uri == uri:
        return ""
    variable = Address.of(uri).password_variable
    return "\n(the password is left out: " + (f"set {variable})" if variable else "add it to the URI)")


def show_tracked(tracked: TrackedRun) -> None:
    """Print where the run is and how to open it."""
    out.print(f"MLflow run  {tracked.run_id}", markup=False)
    out.print(f"compare     {tracked.open_with}", markup=False)
    out.print(f"            then open {tracked.charts}", markup=False)
