"""Sessions reduced to the data of figures: a few hundred bytes each, so that ten thousand fit into memory."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from codechat.base.domain import AdherenceVerdict, Outcome
from codechat.base.records import SessionRecord, TurnRecord
from codechat.report.metrics.spending import Tokens, add_tokens, no_tokens


class TurnOutline(NamedTuple):
    """The data of a turn that figures need. `kind`, `answered` and `rolled_back` are as in the record, `verdict` is on
    all instructions of the turn. `outcome` and `passed` are None for a turn that is not scored. `asked` has the kinds
    and verdicts of several instructions, and is empty for one."""

    outcome: Outcome | None
    passed: bool | None
    skipped: bool
    answered: bool
    verdict: AdherenceVerdict | None
    kind: str | None
    rolled_back: bool = False
    asked: tuple[tuple[str, AdherenceVerdict | None], ...] = ()

    @property
    def adhered(self) -> bool | None:
        """Whether each instruction was followed; None if this was not judged or is undecided."""
        return self.verdict == "adhered" if self.answered and self.verdict not in (None, "undecided") else None


class SessionOutline(NamedTuple):
    """A completed session."""

    task_id: str
    turns: tuple[TurnOutline, ...]


@dataclass
class SessionOutlines:
    """The outlines of all sessions of a cell, with sums made in the same pass."""

    sessions: int = 0
    length: int = 0
    completed: list[SessionOutline] = field(default_factory=list)
    undecided_applicability: int = 0
    skipped_unparsable: int = 0
    conflicts: Counter[str] = field(default_factory=Counter)
    tokens: Tokens = field(default_factory=no_tokens)
    _outcomes: Counter[tuple[Outcome | None, bool]] = field(default_factory=Counter)

    def count(self, outcome: Outcome) -> int:
        """The number of turns with an outcome, without skipped turns."""
        return self._outcomes[outcome, False]

    @property
    def skipped_turns(self) -> int:
        """Turns for which no instruction was found."""
        return sum(count for (_, skipped), count in self._outcomes.items() if skipped)

    @property
    def without_code(self) -> int:
        """Sessions whose first reply held no code, so that all later turns were skipped."""
        return sum(
            len(each.turns) > 1 and each.turns[0].outcome == "no_code" and all(turn.skipped for turn in each.turns[1:])
            for each in self.completed
        )

    @property
    def undecided(self) -> int:
        """Answers whose adherence is undecided."""
        return sum(turn.verdict == "undecided" for each in self.completed for turn in each.turns if not turn.skipped)

    def add(self, session: SessionRecord) -> None:
        """Add a session. Candidates of skipped turns count: a turn can be skipped because one of them is undecided."""
        self.sessions += 1
        self.length = max(self.length, len(session.turns), len(session.agenda) + 1)
        if session.status != "completed":
            return
        turns = tuple(_outline(session, turn) for turn in session.turns)
        self.completed.append(SessionOutline(session.task_id, turns))
        self._outcomes.update((turn.outcome, turn.skipped) for turn in turns)
        self.undecided_applicability += sum(c.applicable is None for turn in session.turns for c in turn.candidates)
        conflicts = (c.conflict for turn in session.turns for c in turn.candidates if c.conflict is not None)
        self.conflicts.update(each.by if each.contradicts else "undecided" for each in conflicts)
        self.skipped_unparsable += _skips_on_unparsable(session)
        add_tokens(self.tokens, session)


T = TypeVar("T", TurnOutline, TurnRecord)


def transitions(turns: Sequence[T]) -> Iterator[tuple[T, T]]:
    """Each turn after the first, behind the turn whose code it met: the last one before it that was not rolled back."""
    stands: T | None = None
    for turn in turns:
        if stands is not None:
            yield stands, turn
        if not turn.rolled_back:
            stands = turn


def outlines_of(sessions: Iterable[SessionRecord]) -> SessionOutlines:
    """The outlines of sessions, which are read one by one."""
    found = SessionOutlines()
    for session in sessions:
        found.add(session)
    return found


def _skips_on_unparsable(session: SessionRecord) -> int:
    """Skipped turns whose current code, the last of the session, does not parse, and no earlier one was read."""
    count, parses = 0, True
    for turn in session.turns:
        if turn.skipped:
            count += not parses and turn.read_turn is None
        elif turn.code is not None and not turn.rolled_back:
            parses = turn.outcome != "syntax_error"
    return count


_KINDS: dict[TurnOutline, TurnOutline] = {}  # equal turns share one object: there are only some hundred different ones


def _outline(session: SessionRecord, turn: TurnRecord) -> TurnOutline:
    several = turn.asked if len(turn.asked) > 1 else ()
    asked = tuple(
        (f"{one.scope}/{one.change}", None if one.adherence is None else one.adherence.verdict) for one in several
    )
    scored = (turn.outcome, turn.passed, turn.skipped, session.has_answer(turn))
    outline = TurnOutline(*scored, turn.followed, turn.kind, turn.rolled_back, asked)
    return _KINDS.setdefault(outline, outline)
