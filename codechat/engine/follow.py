"""A cell's run in the store while the cell runs: from its first sessions to its end, however it ends."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from codechat.engine.budget import Budget
from codechat.engine.counts import Counts
from codechat.journal import Ledger
from codechat.tracking import Ending, FinishedCell, LiveStore, Shown, Tracker


@dataclass
class Follow:
    """What is shown of a cell; nothing if its tracker shows only finished ones, or nothing is missing in it."""

    tracker: Tracker
    budget: Budget
    begun: Callable[[], FinishedCell]
    shown: Shown | None = None

    @contextlib.contextmanager
    def sessions(self, counts: Counts, ledger: Ledger, note: Callable[[str], None]) -> Iterator[None]:
        """Surrounds a cell's sessions within the event loop: shows their running counts and usage."""
        if not isinstance(self.tracker, LiveStore):
            yield
            return
        loop = asyncio.get_running_loop()

        def tell(text: str) -> None:
            with contextlib.suppress(RuntimeError):  # the sessions may have ended meanwhile, and the loop with them
                loop.call_soon_threadsafe(note, f"warning: {text}")

        self.shown = self.tracker.show(self.begun, lambda: counts.progress(ledger, self.budget), tell)
        try:
            yield
        finally:
            if self.shown:
                self.shown.stop()

    def tracked(self, failure: str) -> None:
        """The finished cell was sent to the store, which may have failed."""
        if self.shown and failure:
            self.shown.leave("FAILED")
        elif self.shown:
            self.shown.end("FINISHED", known=True)

    def end(self, ending: Ending) -> None:
        """The cell has ended otherwise."""
        if self.shown:
            self.shown.end(ending)


@contextlib.contextmanager
def following(tracker: Tracker, budget: Budget, begun: Callable[[], FinishedCell]) -> Iterator[Follow]:
    """Surrounds a cell: an error or an interruption that leaves it ends what is shown. `begun` describes the cell."""
    follow = Follow(tracker, budget, begun)
    try:
        yield follow
    except (KeyboardInterrupt, asyncio.CancelledError):
        follow.end("KILLED")
        raise
    except BaseException:
        follow.end("FAILED")
        raise
