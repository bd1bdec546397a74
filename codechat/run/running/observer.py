"""Observers of a running cell: the terminal's progress bar or a notebook's view, and the store of its run."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from codechat.base.records import SessionRecord, TurnRecord
from codechat.models.calls import Brake
from codechat.report.tracking import Ending, FinishedCell, LiveStore, Shown, Tracker
from codechat.run.cell import Cell
from codechat.run.cell.budget import Budget
from codechat.run.journal import Ledger


@dataclass
class Counts:
    """Turns and sessions that have ended; `planned` are all turns to come.

    `scored` turns were tested, `passed` ones with success; `new` ones are not from the journal.
    """

    planned: int = 0
    sessions: int = 0
    errored: int = 0
    turns: int = 0
    scored: int = 0
    passed: int = 0
    new: int = 0

    def turn(self, turn: TurnRecord, *, new: bool) -> None:
        self.turns += 1
        self.scored += turn.passed is not None
        self.passed += turn.passed is True
        self.new += new

    def session(self, session: SessionRecord, planned: int) -> None:
        """Count a session; if it ended early, its missing turns are no longer planned."""
        self.sessions += 1
        self.errored += session.status == "errored"
        self.planned -= planned - len(session.turns)

    def recalled(self, session: SessionRecord, planned: int) -> None:
        """Count a session of the journal with its turns."""
        for turn in session.turns:
            self.turn(turn, new=False)
        self.session(session, planned)

    @property
    def done(self) -> int:
        """The turns that have ended."""
        return self.turns

    def words(self, sessions: int) -> list[str]:
        """The counts in words; `sessions` is the number of all sessions."""
        counts = [f"{self.turns:,}/{self.planned:,} turns", f"{self.sessions:,}/{sessions:,} sessions"]
        passing = [f"{100 * self.passed / self.scored:.0f} % pass"] if self.scored else []
        return [*counts, *passing, *([f"{self.errored:,} errored"] if self.errored else [])]

    def progress(self, ledger: Ledger, budget: Budget) -> dict[str, float]:
        """The numbers that a store shows (see `Progressing`); unknown ones are absent."""
        rate = {"pass_rate": self.passed / self.scored} if self.scored else {}
        return {"sessions": self.sessions, **rate, **budget.progress(ledger), "errors": self.errored}


class Progressing(Protocol):
    """Running counts of a cell, or of a construction."""

    def progress(self, ledger: Ledger, budget: Budget) -> dict[str, float]:
        """The numbers that a store shows. May be called in another thread than the one that counts."""


class Observer:
    """Is called as a cell runs. Override some of the methods: they do nothing here."""

    def finished(self, cell: Cell, words: str) -> None:
        """The cell was finished before; `words` say when and against which endpoints. `begin` follows."""

    def begin(self, cell: Cell, turns: int, budget: Budget) -> None:
        """A cell of at most so many turns begins, or is found finished."""

    def note(self, text: str) -> None:
        """Show the user a remark."""

    def watching(self, counts: Counts, ledger: Ledger) -> AbstractContextManager[object]:
        """Surrounds the sessions; `counts` and `ledger` have the running sums of turns and of usage.

        They include a turn or session before the observer is called with it.
        """
        return nullcontext()

    def interruptible(self, brake: Brake) -> AbstractContextManager[object]:
        """Surrounds the sessions within the event loop: pulling the brake ends them."""
        return nullcontext()

    def turn(self, turn: TurnRecord, *, new: bool) -> None:
        """A turn was finished; not `new` if all of it was in the journal."""

    def session(self, session: SessionRecord, planned: int) -> None:
        """A session of at most `planned` turns was finished or errored; `turn` was called for each of its turns."""

    def recalled(self, session: SessionRecord, planned: int) -> None:
        """A session was found finished in the journal; `turn` is not called for its turns."""

    def measured(self, cell: Cell, metrics: Mapping[str, Any], seconds: float) -> None:
        """The metrics and tables are written, after so many seconds; figures, the seal and tracking follow."""


Silent = Observer


@dataclass
class Follow:
    """A cell's display in its store: none if the tracker shows only finished cells, or nothing is missing in it."""

    tracker: Tracker
    budget: Budget
    begun: Callable[[], FinishedCell]
    shown: Shown | None = None

    @contextlib.contextmanager
    def sessions(self, counts: Progressing, ledger: Ledger, note: Callable[[str], None]) -> Iterator[None]:
        """Surrounds a cell's sessions within the event loop: shows their running counts and usage."""
        if not isinstance(self.tracker, LiveStore):
            yield
            return
        loop = asyncio.get_running_loop()

        def warn(text: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop may have ended with the sessions
                loop.call_soon_threadsafe(note, f"warning: {text}")

        self.shown = self.tracker.show(self.begun, lambda: counts.progress(ledger, self.budget), warn)
        try:
            yield
        finally:
            if self.shown:
                self.shown.stop()

    def tracked(self) -> None:
        """The finished cell was sent to the store, which has set the run's status unless it failed."""
        self.shown = None

    def end(self, ending: Ending) -> None:
        """The cell has ended otherwise."""
        if self.shown:
            self.shown.end(ending)
        self.shown = None


@contextlib.contextmanager
def following(tracker: Tracker, budget: Budget, begun: Callable[[], FinishedCell]) -> Iterator[Follow]:
    """Surrounds a cell, which `begun` describes: its end, of any kind, also ends its display in the store."""
    follow = Follow(tracker, budget, begun)
    try:
        yield follow
    except (KeyboardInterrupt, asyncio.CancelledError):
        follow.end("KILLED")
        raise
    except BaseException:
        follow.end("FAILED")
        raise
    follow.end("KILLED")  # unless it was tracked, an interruption has ended it
