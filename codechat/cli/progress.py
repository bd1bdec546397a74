"""Work at a terminal: its remarks, its progress bar, and Ctrl-C.

A timer draws the bar, or elsewhere writes a line now and then, from running counts: calls are not slowed down. The
first Ctrl-C, or signal of a scheduler, lets the calls under way finish; the second ends at once.
"""

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from rich.console import RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from codechat.cli.terminal import err, out
from codechat.models.calls import ATTEMPTS, Brake, traffic
from codechat.models.calls.batch_queue import batches_in_words
from codechat.report.metrics.spending import Tariff
from codechat.run.cell.budget import Budget
from codechat.run.journal import Ledger
from codechat.run.running.sessions import GRACE_S

REFRESHES_PER_S = 4
FIRST_LINE_S, LINE_EVERY_S, LONGEST_PAUSE_S = 30.0, 60.0, 600.0
"""Seconds until the first line of progress without a terminal, and the least and the most until the next: in between, a
tenth of the time so far."""
LONG_CALL_S, DAY_S = 60.0, 86_400.0
"""Seconds from which on a call is named; batches, which may take days, are not."""
MARGIN = 100  # the width of both lines
# Schedulers announce an end by SIGTERM, SIGUSR1 or SIGUSR2.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
# SLURM sends SIGTERM to a job's processes and its shell, which passes it on: two of them count as one.
SAME_SIGNAL_S = 1.0
INTERRUPTED = f"\ninterrupted: calls under way are finished ({GRACE_S:.0f} s at most); once more ends now"


class Counted(Protocol):
    """Running counts of a cell's turns, or of constructed items: `new` ones are not from the journal."""

    planned: int
    new: int

    @property
    def done(self) -> int: ...

    def words(self, sessions: int) -> list[str]:
        """The counts in words; `sessions` is the number of all sessions or seeds."""


class FactsBar(Progress):
    """A bar with facts after it and, if there are any, below it; without a terminal a line with all facts now and then.

    `state` returns the numbers of done and planned units and the facts; it is called only when they are shown. Without
    `lines` nothing is shown where there is no terminal.
    """

    def __init__(
        self,
        state: Callable[[], tuple[int, int, list[str]]],
        below: Callable[[], list[str]] = list,
        *,
        redirect: bool = True,
        lines: bool = True,
    ) -> None:
        self._state, self._below = state, below
        self._lines, self._began, self._line_s = lines and not err.is_terminal, time.monotonic(), FIRST_LINE_S
        self._ended: threading.Event | None = None
        columns = (BarColumn(bar_width=16), TextColumn("{task.fields[facts]}", markup=False))
        super().__init__(
            *columns,
            console=err,
            disable=not err.is_terminal,
            refresh_per_second=REFRESHES_PER_S,
            redirect_stdout=redirect,
            redirect_stderr=redirect,
        )
        self.add_task("", total=None, facts="")

    def start(self) -> None:
        super().start()
        if self._lines:
            self._ended = threading.Event()
            threading.Thread(target=self._write_lines, args=(self._ended,), daemon=True).start()

    def stop(self) -> None:
        if self._ended is not None:
            self._ended.set()
        super().stop()

    def _write_lines(self, ended: threading.Event) -> None:
        while not ended.wait(self._began + self._line_s - time.monotonic()):
            self._line_s += min(max(LINE_EVERY_S, self._line_s / 10), LONGEST_PAUSE_S)
            err.print(" · ".join([*self._state()[2], *self._below()]), markup=False)

    def get_renderables(self) -> Iterable[RenderableType]:
        if self.tasks:
            done, planned, facts = self._state()
            self.update(self.tasks[0].id, completed=done, total=planned, facts=" · ".join(facts))
        yield self.make_tasks_table(self.tasks)
        below = self._below()
        while len(" · ".join(below)) > MARGIN:
            below = below[:-1]
        if below:
            yield Text(" · ".join(below), no_wrap=True, style="dim")


class ProgressBar:
    """The counts of a cell or a construction, and the time left; below them the spending.

    Work found in the journal counts as done, but not for the speed from which the time left is estimated.
    """

    def __init__(self, sessions: int, counts: Counted, ledger: Ledger, budget: Budget, *, lines: bool = True) -> None:
        self._sessions, self._counts, self._ledger, self._budget = sessions, counts, ledger, budget
        self._began, self._tokens_before, self._traffic_before = time.monotonic(), ledger.tokens, traffic()
        self._bar = FactsBar(lambda: (counts.done, counts.planned, self.headline()), self.spending, lines=lines)

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
        """The usage over all processes and the calls of this process, without zeros, the least important last."""
        ledger, now, before = self._ledger, traffic(), self._traffic_before
        facts = []
        if ledger.tokens:
            cached = ledger.total("cached_input_tokens")
            share = f" ({_short(cached)} cached)" if cached else ""
            tokens_in, tokens_out = ledger.total("input_tokens"), ledger.total("output_tokens")
            facts.append(f"{_short(tokens_in)} in{share}, {_short(tokens_out)} out")
        paid = self._budget.spent_usd(ledger)
        if paid is not None:
            facts.append(f"${paid:,.2f}" + (f" of ${self._budget.usd:,.2f}" if self._budget.usd is not None else ""))
        counts = (
            (now.in_flight, "in flight"),
            (now.waiting, "waiting"),
            (now.retries - before.retries, "retries"),
            (now.rate_limited - before.rate_limited, "× 429"),
            (now.cache_hits - before.cache_hits, "from cache"),
        )
        facts += [f"{count:,} {name}" for count, name in counts if count]
        facts += [*long_calls(), *batches_in_words()]
        speed = (ledger.tokens - self._tokens_before) / max(time.monotonic() - self._began, 1e-9)
        return [*facts, f"{_short(speed)} tok/s"] if speed >= 1 else facts


class WorkView:
    """Prints the head and the remarks of a cell or a construction, and shows its progress while it runs.

    Without a terminal only with `lines`.
    """

    def __init__(self, *, lines: bool = True) -> None:
        self._lines = lines
        self._sessions, self._budget = 0, Budget(None, None, Tariff())
        self._bar: ProgressBar | None = None

    def _show_head(self, name: str, facts: str, sessions: int, budget: Budget) -> None:
        self._sessions, self._budget = sessions, budget
        out.print(f"[bold]{escape(name)}[/bold]{escape(facts)}")

    def note(self, text: str) -> None:
        if self._bar is not None:
            self._bar.note(text)
        else:
            err.print(text, markup=False)

    def watching(self, counts: Counted, ledger: Ledger) -> contextlib.AbstractContextManager[object]:
        self._bar = ProgressBar(self._sessions, counts, ledger, self._budget, lines=self._lines)
        return self._bar

    def interruptible(self, brake: Brake) -> contextlib.AbstractContextManager[object]:
        return on_signal(brake)


def long_calls() -> list[str]:
    """The longest call under way, if it takes long: its endpoint, its time so far, and its limit."""
    calls = [call for call in list(ATTEMPTS.values()) if call.limit_s < DAY_S]
    oldest = min(calls, key=lambda call: call.began, default=None)
    if oldest is None or (seconds := time.monotonic() - oldest.began) < LONG_CALL_S:
        return []
    return [f"a call to {oldest.place} for {clock(seconds)} (at most {clock(oldest.limit_s)})"]


def _short(count: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}"
    return f"{count:.0f}"


def clock(seconds: float) -> str:
    """A duration as h:mm:ss, or m:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextlib.contextmanager
def on_signal(brake: Brake) -> Iterator[None]:
    """Within a coroutine: the first signal pulls the brake; a second one, or a time limit, cancels the task."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    first = 0.0

    def react(number: int) -> None:
        nonlocal first
        if not brake.interrupted:
            first = time.monotonic()
            err.print(INTERRUPTED)
            brake.pull("interrupted", interrupted=True)
            loop.call_later(GRACE_S, task.cancel)
        elif number == signal.SIGINT or time.monotonic() > first + SAME_SIGNAL_S:
            task.cancel()

    before = _handlers()
    for number in SIGNALS:
        loop.add_signal_handler(number, react, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


@contextlib.contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """The signals raise `KeyboardInterrupt`, as Ctrl-C does, while no coroutine handles them."""
    with _handle_by(signal.default_int_handler):
        yield


@contextlib.contextmanager
def pass_on(stop: Callable[[], None]) -> Iterator[None]:
    """The first two signals call `stop`, which asks other processes to end; the third raises `KeyboardInterrupt`."""
    signals = 0

    def react(number: int, frame: FrameType | None) -> None:
        nonlocal signals
        signals += 1
        if signals > 2:
            raise KeyboardInterrupt
        stop()
        if signals == 1:
            err.print(INTERRUPTED)

    with _handle_by(react):
        yield


@contextlib.contextmanager
def _handle_by(handler: Callable[[int, FrameType | None], Any]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = _handlers()
    for number in SIGNALS:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _handlers() -> dict[signal.Signals, Any]:
    """The handler of each signal. A handler that is not Python's cannot be restored: the default replaces it."""
    return {number: signal.getsignal(number) or signal.SIG_DFL for number in SIGNALS}
