"""An estimate of a cell's calls, tokens and cost before anything is spent, by stated assumptions."""

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

from codechat.domain import BATCH, FLEX, STANDARD, Tier, Usage
from codechat.engine.cell import Cell, journals_in, session_id
from codechat.engine.cell.budget import is_free
from codechat.journal import Journal
from codechat.metrics.spending import Costs, Tariff, spent_usd
from codechat.models import UNDER_TEST, ModelConfig
from codechat.models.roles import models_in, role_of
from codechat.protocols import Ask
from codechat.protocols.expecting import CHECKS, PROSE

CHARS_PER_TOKEN = 4
JUDGEMENT = 200
"""Tokens of a judge's answer."""

FIRST_TOKEN_S, INPUT_PER_S, OUTPUT_PER_S = 0.5, 5_000, 40
"""Seconds until a reply begins; tokens per second of one call that a model reads (cached ones aside), and writes."""

ROUND_S, FLEX_TIMES, MOST_IN_BATCH = 7 * 60.0, 3, 1_000_000
"""The median wait for a batch (nine of ten are there within an hour); how many times as long a call in flex takes."""

ASSUMPTIONS = (
    f"{CHARS_PER_TOKEN} characters are a token",
    f"a reply is the reference solution and {PROSE} characters of prose, no reasoning, at most max_tokens",
    "every session has all its turns, and each request holds the whole conversation so far",
    f"a judge checks {CHECKS} candidates a turn (rounded up to judge.lookahead) and answers in {JUDGEMENT} tokens",
    "no retries, no re-asks, nothing from the response cache",
    "cached: the endpoint still has what a request shares with an earlier one, replies included, as vLLM has in enough "
    "memory; providers serve less of it (OpenAI nothing below 1,024 tokens), at most at the price without cache",
    f"time: each payer by itself, max_concurrency calls at once, the first token after {FIRST_TOKEN_S:g} s, "
    f"{INPUT_PER_S:,} tokens a second read and {OUTPUT_PER_S} written by a call; calls of several payers overlap",
    f"tiers: in flex a call takes {FLEX_TIMES} times as long; the calls of a dialogue in batches take "
    f"{ROUND_S / 60:.0f} minutes each, the median of providers (one in ten takes more than an hour)",
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Missing sessions and turns, their calls and tokens by role, and `usd` by payer (None without a price).

    `uncached_usd` is the cost if no endpoint caches anything; `seconds` is the time that the calls of each role take.
    """

    sessions: int
    turns: int
    calls: dict[str, int]
    tokens: dict[str, Usage]
    usd: Costs
    uncached_usd: Costs
    seconds: dict[str, float]

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
            _costs(self.usd, other.usd),
            _costs(self.uncached_usd, other.uncached_usd),
            {role: self.seconds.get(role, 0.0) + other.seconds.get(role, 0.0) for role in self.seconds | other.seconds},
        )


def _costs(one: Costs, other: Costs) -> Costs:
    return {payer: _sum(one.get(payer, 0.0), other.get(payer, 0.0)) for payer in one | other}


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def estimate_of(cell: Cell, tariff: Tariff, journals: Iterable[Path] | None = None) -> Estimate:
    """The estimate for the part of a cell that no journal (null: of its folder) holds yet. Calls no model."""
    protocol, known = cell.protocol, _count_replies(cell, journals_in(cell.folder) if journals is None else journals)
    config = cell.config
    models = {UNDER_TEST: config.model, **{role_of(place): each for place, each in models_in(config.protocol, "")}}
    judges = dict(models_in(config.judge, "judge")) if "judge" in cell.uses else {}
    sizes = Sizes.of(models, {role_of(place): each for place, each in judges.items()})
    missing, turns = list[tuple[Iterable[Ask], int]](), 0
    for task in cell.tasks:
        done, planned = known.get(task.task_id, 0), protocol.turns(task)
        if done < planned:
            missing.append((protocol.asks(task), done))
            turns += planned - done
    return sum_of(missing, turns, sizes, tariff)


def sum_of(sessions: Sequence[tuple[Iterable[Ask], int]], turns: int, sizes: "Sizes", tariff: Tariff) -> Estimate:
    """The estimate for sessions, or items, each with its expected calls and the turns that are answered already."""
    needs = {role: Need() for role in tariff.prices}
    for asks, done in sessions:
        for role, need in sizes.session(asks, done).items():
            needs.setdefault(role, Need()).add(need)
    tokens = {role: need.usage.served_as(sizes.tiers.get(role, STANDARD)) for role, need in needs.items()}
    calls = {role: round(need.calls) for role, need in needs.items()}
    uncached = {
        role: replace(need.usage, cached_input_tokens=0).served_as(sizes.tiers.get(role, STANDARD))
        for role, need in needs.items()
    }
    usd, uncached_usd = spent_usd(tokens, tariff), spent_usd(uncached, tariff)
    for payer in usd:
        if not any(count for role, count in calls.items() if tariff.sum_name(role) == payer):
            usd[payer] = uncached_usd[payer] = 0.0
    seconds = {role: need.seconds(sizes.at_once.get(role, 1)) for role, need in needs.items()}
    return Estimate(len(sessions), turns, calls, tokens, usd, uncached_usd, seconds)


def total(estimates: Iterable[Estimate]) -> Estimate:
    """The sum of several cells."""
    return reduce(lambda one, other: one + other, estimates)


def _count_replies(cell: Cell, journals: Iterable[Path]) -> dict[str, int]:
    """The number of replies in the journals, by task; a huge number for a finished session."""
    found = dict[str, int]()
    for path in journals:
        with contextlib.closing(Journal(path)) as journal:
            for task in cell.tasks:
                identity = session_id(cell.id, task.task_id)
                done = journal.outline(identity, completed=True) is not None
                count = 1_000_000 if done else journal.answers(identity, UNDER_TEST)
                found[task.task_id] = max(count, found.get(task.task_id, 0))
    return found


@dataclass(slots=True)
class Need:
    """The calls of one role: their tokens, the seconds of all of them one by one, and those of the longest session."""

    calls: float = 0.0
    sent: float = 0.0
    cached: float = 0.0
    said: float = 0.0
    busy_s: float = 0.0
    longest_s: float = 0.0

    def add(self, session: "Need") -> None:
        """Add a session's calls, which wait for each other."""
        self.calls += session.calls
        self.sent += session.sent
        self.cached += session.cached
        self.said += session.said
        self.busy_s += session.busy_s
        self.longest_s = max(self.longest_s, session.busy_s)

    def times(self, count: float) -> "Need":
        """So many calls of the same size."""
        return Need(*(count * each for each in (self.calls, self.sent, self.cached, self.said, self.busy_s)))

    @property
    def usage(self) -> Usage:
        """The tokens."""
        return Usage(round(self.sent), round(self.said), round(self.cached))

    def seconds(self, at_once: int) -> float:
        """The time of all calls, so many at once."""
        return max(self.busy_s / at_once, self.longest_s)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes by which expected calls become tokens and time.

    Each role's longest reply, its calls at once and its tier, and the roles that cost nothing.
    """

    longest: dict[str, float]
    at_once: dict[str, int]
    free: frozenset[str]
    tiers: dict[str, Tier] = field(default_factory=dict)

    @classmethod
    def of(cls, models: Mapping[str, ModelConfig], judges: Mapping[str, ModelConfig]) -> "Sizes":
        """The sizes of the models of roles, and of those that judge instructions."""
        free = {role for role, model in models.items() if is_free(model)}
        every = {**judges, **models}
        tiers: dict[str, Tier] = {role: getattr(model, "tier", STANDARD) for role, model in every.items()}
        at_once = {
            role: MOST_IN_BATCH if tiers[role] == BATCH else model.max_concurrency for role, model in every.items()
        }
        return cls({role: model.longest_reply() for role, model in models.items()}, at_once, frozenset(free), tiers)

    def session(self, asks: Iterable[Ask], done: int) -> dict[str, Need]:
        """The calls by role that a session still needs, after `done` answered turns.

        The first turn after those finds nothing cached of its conversation, which another process held.
        """
        found: dict[str, Need] = {}
        for ask in asks:
            if ask.turn < done or ask.role in self.free:
                continue
            longest = self.longest.get(ask.role, math.inf)
            reply = JUDGEMENT if ask.answer is None else min(ask.answer / CHARS_PER_TOKEN, longest)
            sent = ask.characters / CHARS_PER_TOKEN + ask.replies * reply
            shared = min(sent, ask.shared / CHARS_PER_TOKEN + ask.shared_replies * reply)
            cached = shared if ask.role in found or ask.answer is None else 0.0
            call_s = FIRST_TOKEN_S + (sent - cached) / INPUT_PER_S + reply / OUTPUT_PER_S
            call_s = {BATCH: ROUND_S, FLEX: FLEX_TIMES * call_s}.get(self.tiers.get(ask.role, STANDARD), call_s)
            one = Need(1.0, sent, cached, reply, call_s)
            found.setdefault(ask.role, Need()).add(one.times(ask.times))
        return found
