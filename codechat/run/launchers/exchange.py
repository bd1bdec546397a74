"""A folder through which a launcher and the processes of its cells speak: counts come out of it, a wish to stop in."""

import contextlib
import dataclasses
import functools
import io
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from codechat.base.environment import collect_seldom
from codechat.models.hardware import CELLS_AT_ONCE
from codechat.run.launchers import Job, Printed, Report, Result, Run, TurnCounts
from codechat.run.run import INTERRUPTED

POLL_S = 0.2
REPORT_EVERY_S = 0.5
_BUSY = threading.Lock()  # held while a cell runs
# The first wish finishes the calls under way. The second ends at once: it is another signal, because two equal ones in
# quick succession count as one.
WISHES = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Exchange:
    """The launcher's side. `launcher` is its process: cells stop when that is gone."""

    folder: Path
    launcher: int

    def stop(self) -> None:
        """Ask the cells to stop; once more: to end at once."""
        (self.folder / f"stop-{self.wishes()}").touch()

    def wishes(self) -> int:
        """The number of times that the cells were asked to stop."""
        return len(list(self.folder.glob("stop-*")))

    def begin(self, number: int) -> None:
        """Note that a cell is begun."""
        (self.folder / f"begun-{number}").touch()

    def begun(self) -> set[int]:
        """The numbers of the cells that were begun."""
        return {int(path.name.removeprefix("begun-")) for path in self.folder.glob("begun-*")}

    def report(self, number: int, tally: TurnCounts) -> None:
        """Put a cell's counts where the launcher sees them: not durable, and a reader never sees half of them."""
        draft = self.folder / f".tally-{number}"
        draft.write_text(json.dumps(dataclasses.asdict(tally)))
        draft.replace(self.folder / f"tally-{number}")

    def tally(self) -> TurnCounts:
        """The sum of all counts so far."""
        total = TurnCounts()
        for path in self.folder.glob("tally-*"):
            total += TurnCounts(**json.loads(path.read_text()))
        return total


def run_apart(run: Run, job: Job, exchange: Exchange, at_once: int) -> Result | None:
    """Run a cell in a process other than the launcher's; None if it was asked to stop before.

    `at_once` cells share this machine's cores. The process leaves the terminal's group, so that Ctrl-C reaches the
    launcher alone, which then asks the cells to stop.
    """
    _leave_terminal(exchange.launcher)
    if exchange.wishes():
        return None
    exchange.begin(job.number)
    os.environ[CELLS_AT_ONCE] = str(at_once)
    with _BUSY, _obeying(exchange), collect_seldom():
        return run_recorded(run, job, _Seldom(exchange, job.number))


def run_recorded(run: Run, job: Job, report: Report | None = None) -> Result:
    """Run a cell, keeping what it prints in its result."""
    printed: list[Printed] = []
    out, err = _Recorder(printed, error=False), _Recorder(printed, error=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            result = run(job, report)
        except KeyboardInterrupt:  # before the cell had begun, or after its end
            result = Result(INTERRUPTED)
    return replace(result, printed=tuple(printed))


@functools.cache
def _leave_terminal(launcher: int) -> None:
    """Once in a process: leave the terminal's group, and end when the launcher is gone and no cell runs any more."""

    def watch() -> None:
        while os.getppid() == launcher:
            time.sleep(POLL_S)
        with _BUSY:
            os._exit(INTERRUPTED)  # nothing is left to do, and the process would wait for minutes

    os.setsid()
    threading.Thread(target=watch, name="codechat-orphan", daemon=True).start()


@contextlib.contextmanager
def _obeying(exchange: Exchange) -> Iterator[None]:
    """Pass the launcher's wishes to stop on to this process, as signals; one that is gone wishes to stop."""
    over = threading.Event()

    def watch() -> None:
        heeded = 0
        while not over.wait(POLL_S) and heeded < len(WISHES):
            gone = os.getppid() != exchange.launcher
            number = WISHES[heeded]
            if heeded < max(exchange.wishes(), gone) and signal.getsignal(number) != signal.SIG_DFL:
                os.kill(os.getpid(), number)
                heeded += 1

    thread = threading.Thread(target=watch, name="codechat-stop", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class _Seldom:
    """Reports a cell's counts, but not each time."""

    def __init__(self, exchange: Exchange, number: int) -> None:
        self._exchange, self._number = exchange, number
        self._next = 0.0

    def __call__(self, tally: TurnCounts) -> None:
        now = time.monotonic()
        if now >= self._next or tally.turns == tally.planned:
            self._next = now + REPORT_EVERY_S
            self._exchange.report(self._number, tally)


class _Recorder(io.TextIOBase):
    """A stream that keeps what is written."""

    def __init__(self, printed: list[Printed], *, error: bool) -> None:
        self._printed, self._error = printed, error

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._printed.append(Printed(text, self._error))
        return len(text)
