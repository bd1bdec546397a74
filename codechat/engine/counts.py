"""The running counts of a cell: what a progress bar draws, and what a store shows while the cell runs."""

from dataclasses import dataclass

from codechat.engine.budget import Budget
from codechat.journal import Ledger
from codechat.records import SessionRecord, TurnRecord


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

    def progress(self, ledger: Ledger, budget: Budget) -> dict[str, float]:
        """What a store shows: sessions, their share of passing turns, tokens, dollars, errored sessions.

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
