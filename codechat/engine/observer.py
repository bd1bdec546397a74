"""The view on a running cell: the terminal's progress bar, a notebook's own view, or none."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from codechat.calls import Brake
from codechat.engine.budget import Budget
from codechat.engine.cell import Cell
from codechat.engine.counts import Counts
from codechat.journal import Ledger
from codechat.records import SessionRecord, TurnRecord


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
        """The metrics are written, after so many seconds; tracking follows."""


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


class Counting(Silent):
    """Counts a cell's turns and sessions, and passes everything on to another observer."""

    def __init__(self, counts: Counts, observer: Observer) -> None:
        self._counts, self._observer = counts, observer

    def note(self, text: str) -> None:
        self._observer.note(text)

    def interruptible(self, brake: Brake) -> AbstractContextManager[object]:
        return self._observer.interruptible(brake)

    def turn(self, turn: TurnRecord, *, new: bool) -> None:
        self._counts.turn(turn, new=new)
        self._observer.turn(turn, new=new)

    def session(self, session: SessionRecord, planned: int) -> None:
        self._counts.session(session, planned)
        self._observer.session(session, planned)

    def recalled(self, session: SessionRecord, planned: int) -> None:
        self._counts.recalled(session, planned)
        self._observer.recalled(session, planned)
