"""Who looks on while a cell runs: the terminal's progress bar or a notebook's own view, and the store of its run."""

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
    """Turns and sessions that have ended; `planned` are the turns that there will be in all.

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
        """Count a finished turn."""
        self._count(turn)
        self.new += new

    def _count(self, turn: TurnRecord) -> None:
        self.turns += 1
        self.scored += turn.passed is not None
        self.passed += turn.passed is True

    def session(self, session: SessionRecord, planned: int) -> None:
        """Count a session; if it ended early, its missing turns are no longer planned."""
        self.sessions += 1
        self.errored += session.status == "errored"
        self.planned -= planned - len(session.turns)

    def recalled(self, session: SessionRecord, planned: int) -> None:
        """Count a session of the journal with its turns."""
        for turn in session.turns:
            self._count(turn)
        self.session(session, planned)

    @property
    def done(self) -> int:
        """The turns that have ended."""
        return self.turns

    def words(self, sessions: int) -> list[str]:
        """The counts in words, of so many sessions in all."""
        passing = [f"{100 * self.passed / self.scored:.0f} % pass"] if self.scored else []
        errored = [f"{self.errored:,} errored"] if self.errored else []
        return [
            f"{self.turns:,}/{self.planned:,} turns", f"{self.sessions:,}/{sessions:,} sessions", *passing, *errored
        ]  # fmt: skip

    def progress(self, ledger: Ledger, budget: Budget) -> dict[str, float]:
        """The figures that a store shows: sessions, their share of passing turns, tokens, dollars, errored sessions.

        What is not known yet is absent. May be called in another thread than the one that counts.
        """
        sums = Ledger(dict(ledger.of))  # which may get another payer meanwhile
        dollars = budget.spent_usd(sums)
        return {
            "sessions": self.sessions,
            **({"pass_rate": self.passed / self.scored} if self.scored else {}),
            "tokens": sums.tokens,
            **({"dollars": dollars} if dollars is not None else {}),
            "errors": self.errored,
        }


class Progressing(Protocol):
    """Running counts that a store can show: of a cell, or of items that are made."""

    def progress(self, ledger: Ledger, budget: Budget) -> dict[str, float]:
        """The figures that a store shows. May be called in another thread than the one that counts."""


class Observer(Protocol):
    """Is called as a cell runs. Derive from `Silent` to implement only some of the methods."""

    def finished(self, cell: Cell, words: str) -> None:
        """The cell was finished before, as `words` say: when, and against which endpoints. `begin` follows."""

    def begin(self, cell: Cell, turns: int, budget: Budget) -> None:
        """A cell of at most so many turns begins, or is found finished."""

    def note(self, text: str) -> None:
        """Show the user a remark."""

    def watching(self, counts: Counts, ledger: Ledger) -> AbstractContextManager[object]:
        """Surrounds the sessions; `counts` and `ledger` have the running sums of turns and of usage.

        A turn or session is in `counts` before the observer is called with it.
        """

    def interruptible(self, brake: Brake) -> AbstractContextManager[object]:
        """Surrounds the sessions within the event loop: pulling the brake ends them."""

    def turn(self, turn: TurnRecord, *, new: bool) -> None:
        """A turn was finished; not `new` if all of it was in the journal."""

    def session(self, session: SessionRecord, planned: int) -> None:
        """A session of at most `planned` turns was finished or errored; `turn` was called for each of its turns."""

    def recalled(self, session: SessionRecord, planned: int) -> None:
        """A session was found finished in the journal; `turn` is not called for its turns."""

    def measured(self, cell: Cell, metrics: Mapping[str, Any], seconds: float) -> None:
        """The metrics and tables are written, after so many seconds; figures, the seal and tracking follow."""


class Silent:
    """An observer that does nothing."""

    def finished(self, cell: Cell, words: str) -> None: ...

    def begin(self, cell: Cell, turns: int, budget: Budget) -> None: ...

    def note(self, text: str) -> None: ...

    def watching(self, counts: Counts, ledger: Ledger) -> AbstractContextManager[object]:
        return nullcontext()

    def interruptible(self, brake: Brake) -> AbstractContextManager[object]:
        return nullcontext()

    def turn(self, turn: TurnRecord, *, new: bool) -> None: ...

    def session(self, session: SessionRecord, planned: int) -> None: ...

    def recalled(self, session: SessionRecord, planned: int) -> None: ...

    def measured(self, cell: Cell, metrics: Mapping[str, Any], seconds: float) -> None: ...


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
            with contextlib.suppress(RuntimeError):  # the sessions may have ended meanwhile, and the loop with them
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
    """Surrounds a cell, which `begun` describes: whatever ends the cell also ends what is shown of it."""
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
