"""What a session has so far: its turns, and which of them were tested as an earlier one."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal

from codechat.base.records import TurnRecord
from codechat.sandbox.suites.checker import ProgramKeys


@dataclass
class SessionLog:
    """A session's results so far, from which the engine makes its record.

    `judgement` is the protocol's verdict on the whole dialogue, as JSON.
    """

    agenda: list[str] = field(default_factory=list)
    turns: list[TurnRecord] = field(default_factory=list)
    ended: Literal["context_overflow"] | None = None
    judgement: Any = None


class EqualTurns:
    """The checks of a session by turn. What it says depends on programs, tests and verdicts alone, and on no order."""

    def __init__(self) -> None:
        self._checks: dict[int, list[ProgramKeys | None]] = defaultdict(list)
        self._first: dict[str, int] = {}

    def add(self, turn: int, tested: ProgramKeys | None) -> None:
        """A check at a turn; None if programs share no verdicts."""
        self._checks[turn].append(tested)

    def finish(self, turn: int) -> int | None:
        """The earliest turn with an equal program, if all checks of this one had been made before; turns in order."""
        checks = self._checks.pop(turn, [])
        earlier = [self._earliest(each) for each in checks]
        for key in (key for each in checks if each for key in (each.exact, each.shared) if key):
            self._first.setdefault(key, turn)
        known = [each for each in earlier if each is not None]
        return min(known) if known and len(known) == len(checks) else None

    def _earliest(self, tested: ProgramKeys | None) -> int | None:
        keys = (tested.exact, tested.shared) if tested else ()
        return min((self._first[key] for key in keys if key in self._first), default=None)
