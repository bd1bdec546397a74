"""The progress bar: two lines that a timer draws from running counts, so that calls are not slowed down."""

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Protocol, Self

from rich.console import RenderableType
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from codechat.cli.terminal import err
from codechat.models.calls import traffic
from codechat.models.calls.batches import batches_in_words
from codechat.run.cell.budget import Budget
from codechat.run.journal import Ledger

REFRESHES_PER_S = 4
MARGIN = 100  # the width of both lines


class Counted(Protocol):
    """Running counts of work: of a cell's turns, or of items that are made."""

    planned: int
    new: int

    @property
    def done(self) -> int:
        """How much of what is `planned` is done; `new` of it by this process."""

    def words(self, sessions: int) -> list[str]:
        """The counts in words; `sessions` is the number of all sessions or seeds."""


class ProgressBar:
    """The counts of a cell or a construction, and the time left; below it the spending. On a terminal only.

    Work from the journal count as done but not for the speed: the time left is estimated from the pace of this
    process.
    """

    def __init__(self, sessions: int, counts: Counted, ledger: Ledger, budget: Budget) -> None:
        self._sessions, self._counts = sessions, counts
        self._ledger, self._budget = ledger, budget
        self._began, self._tokens_before, self._traffic_before = time.monotonic(), ledger.tokens, traffic()
        self._bar = _TwoLines(self)
        self._task = self._bar.add_task("", total=counts.planned, facts="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def note(self, text: str) -> None:
        """Show a line above the bar."""
        self._bar.console.print(text, markup=False)

    def update(self) -> None:
        """Move the bar to the current counts."""
        done, planned = self._counts.done, self._counts.planned
        self._bar.update(self._task, completed=done, total=planned, facts=" · ".join(self.headline()))

    def renderable(self) -> RenderableType:
        """Both lines with the current counts."""
        return self._bar.get_renderable()

    def headline(self) -> list[str]:
        """The progress so far."""
        counts, elapsed = self._counts, time.monotonic() - self._began
        left, facts = counts.planned - counts.done, counts.words(self._sessions)
        if counts.new and left > 0:
            facts.append(f"{clock(elapsed / counts.new * left)} left")
        return [*facts, clock(elapsed)]

    def spending(self) -> list[str]:
        """The cell's usage over all its processes and the calls of this one, without zeros.

        The least important comes last, because the line may be too short for it.
        """
        ledger, now, before = self._ledger, traffic(), self._traffic_before
        facts = []
        if ledger.tokens:
            cached = ledger.total("cached_input_tokens")
            share = f" ({_short(cached)} cached)" if cached else ""
            facts.append(
                f"{_short(ledger.total('input_tokens'))} in{share}, {_short(ledger.total('output_tokens'))} out"
            )
        paid = self._budget.spent_usd(ledger)
        if paid is not None:
            facts.append(f"${paid:,.2f}" + (f" of ${self._budget.usd:,.2f}" if self._budget.usd is not None else ""))
        counts = (
            (now.in_flight, "in flight"),
            (now.retries - before.retries, "retries"),
            (now.rate_limited - before.rate_limited, "× 429"),
            (now.cache_hits - before.cache_hits, "from cache"),
        )
        facts += [f"{count:,} {name}" for count, name in counts if count]
        facts += batches_in_words()
        speed = (ledger.tokens - self._tokens_before) / max(time.monotonic() - self._began, 1e-9)
        return [*facts, f"{_short(speed)} tok/s"] if speed >= 1 else facts


class _TwoLines(Progress):
    """The bar with the line below it; it asks for the facts only when it draws."""

    def __init__(self, facts: ProgressBar) -> None:
        self._facts = facts
        super().__init__(
            BarColumn(bar_width=16),
            TextColumn("{task.fields[facts]}", markup=False),
            console=err,
            disable=not err.is_terminal,
            refresh_per_second=REFRESHES_PER_S,
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        if self.tasks:
            self._facts.update()
        yield self.make_tasks_table(self.tasks)
        facts = self._facts.spending()
        while len(" · ".join(facts)) > MARGIN:
            facts = facts[:-1]
        if facts:
            yield Text(" · ".join(facts), no_wrap=True, style="dim")


def _short(count: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}"
    return f"{count:.0f}"


def clock(seconds: float) -> str:
    """A duration as a clock shows it."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
