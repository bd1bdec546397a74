"""An estimate of a cell's calls, tokens and cost before anything is spent, by stated assumptions."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from codechat.domain import Usage
from codechat.engine.budget import is_free
from codechat.engine.cell import Cell, session_id
from codechat.journal import Journal
from codechat.metrics.spending import Costs, Tariff, spent_usd
from codechat.models import UNDER_TEST
from codechat.models.roles import models_in, role_of
from codechat.protocols import Ask
from codechat.protocols.expecting import CHECKS, PROSE

CHARS_PER_TOKEN = 4
JUDGEMENT = 200
"""Tokens of a judge's answer."""

ASSUMPTIONS = (
    f"{CHARS_PER_TOKEN} characters are a token",
    f"a reply is the reference solution and {PROSE} characters of prose, no reasoning, at most max_tokens",
    "every session has all its turns, and each request holds the whole conversation so far",
    f"a judge checks {CHECKS} candidates a turn (rounded up to judge.lookahead) and answers in {JUDGEMENT} tokens",
    "no retries, no re-asks, nothing from the response cache",
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Missing sessions and turns, their calls and tokens by role, and `usd` by payer (None without a price)."""

    sessions: int
    turns: int
    calls: dict[str, int]
    tokens: dict[str, Usage]
    usd: Costs

    def __add__(self, other: "Estimate") -> "Estimate":
        """The sum; a cost that one does not know is unknown, unless that one makes no call."""
        return Estimate(
            self.sessions + other.sessions,
            self.turns + other.turns,
            {role: self.calls.get(role, 0) + other.calls.get(role, 0) for role in self.calls | other.calls},
            {
                role: self.tokens.get(role, Usage()) + other.tokens.get(role, Usage())
                for role in self.tokens | other.tokens
            },
            {payer: _sum(self.usd.get(payer, 0.0), other.usd.get(payer, 0.0)) for payer in self.usd | other.usd},
        )


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def estimate_of(cell: Cell, tariff: Tariff) -> Estimate:
    """The estimate for the part of a cell that its journal does not hold yet. Writes nothing, calls no model."""
    protocol, known = cell.protocol(), _count_replies(cell)
    sizes = _Sizes.of(cell)
    calls: dict[str, int] = dict.fromkeys(tariff.prices, 0)
    tokens: dict[str, Usage] = dict.fromkeys(calls, Usage())
    sessions = turns = 0
    for task in cell.tasks:
        done, planned = known.get(task.task_id, 0), protocol.turns(task)
        if done >= planned:
            continue
        sessions, turns = sessions + 1, turns + planned - done
        for role, (count, usage) in sizes.session(protocol.asks(task), done).items():
            calls[role] = calls.get(role, 0) + count
            tokens[role] = tokens.get(role, Usage()) + usage
    usd = spent_usd(tokens, tariff)
    for payer in usd:
        if not any(count for role, count in calls.items() if tariff.sum_name(role) == payer):
            usd[payer] = 0.0
    return Estimate(sessions, turns, calls, tokens, usd)


def total(estimates: Iterable[Estimate]) -> Estimate:
    """The sum of several cells."""
    return reduce(lambda one, other: one + other, estimates)


def _count_replies(cell: Cell) -> dict[str, int]:
    """The number of replies in the cell's journal, by task; a huge number for a finished session."""
    path = cell.folder / "journal.db"
    if not path.exists():
        return {}
    journal, found = Journal(path), dict[str, int]()
    for task in cell.tasks:
        identity = session_id(cell.id, task.task_id)
        done = journal.outline(identity, completed=True) is not None
        found[task.task_id] = 1_000_000 if done else journal.answers(identity, UNDER_TEST)
    journal.close()
    return found


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The sizes that turn expected calls into tokens: each role's longest reply, and the roles that cost nothing."""

    longest: dict[str, float]
    free: frozenset[str]

    @classmethod
    def of(cls, cell: Cell) -> "_Sizes":
        config = cell.config
        models = {UNDER_TEST: config.model, **{role_of(place): each for place, each in models_in(config.protocol, "")}}
        free = {role for role, model in models.items() if is_free(model)}
        return cls({role: model.longest_reply() for role, model in models.items()}, frozenset(free))

    def session(self, asks: Iterable[Ask], done: int) -> dict[str, tuple[int, Usage]]:
        """Calls and tokens by role that a session still needs, after `done` answered turns."""
        sums: dict[str, list[float]] = {}
        for ask in asks:
            if ask.turn < done or ask.role in self.free:
                continue
            longest = self.longest.get(ask.role, math.inf)
            reply = JUDGEMENT if ask.answer is None else min(ask.answer / CHARS_PER_TOKEN, longest)
            sent = ask.characters / CHARS_PER_TOKEN + ask.replies * reply
            parts = sums.setdefault(ask.role, [0.0, 0.0, 0.0])
            for place, part in enumerate((1.0, sent, reply)):
                parts[place] += ask.times * part
        return {role: (round(times), Usage(round(sent), round(said))) for role, (times, sent, said) in sums.items()}
