"""What a session has so far: its turns, and which of them were tested as an earlier one."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal

from codechat.base.records import TurnRecord


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
    """The checks of a session by turn. What it says depends on programs and tests alone, and on no order."""

    def __init__(self) -> None:
        self._checks: dict[int, list[str]] = defaultdict(list)
        self._first: dict[str, int] = {}

    def add(self, turn: int, check: str) -> None:
        """A check at a turn, by a hash of the program's text and the tests."""
        self._checks[turn].append(check)

    def finish(self, turn: int) -> int | None:
        """The earliest turn with an equal program, if all checks of this one had been made before; turns in order."""
        checks = self._checks.pop(turn, [])
        known = [self._first[each] for each in checks if each in self._first]
        for each in checks:
            self._first.setdefault(each, turn)
        return min(known) if known and len(known) == len(checks) else None
