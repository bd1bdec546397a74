"""An estimate of a cell's calls, tokens and cost before anything is spent, by stated assumptions."""

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from codechat.base.domain import BATCH, CHARS_PER_TOKEN, FLEX, STANDARD, Tier, Usage
from codechat.datasets.tasks import Task
from codechat.models import UNDER_TEST, ModelConfig
from codechat.models.agent.config import AgentConfig
from codechat.models.prices import listed_prices, prices_of
from codechat.models.roles import models_in, role_of
from codechat.report.metrics.spending import Costs, Tariff, spent_usd
from codechat.run.cell import Cell, journals_in, session_id
from codechat.run.cell.budget import is_free
from codechat.run.cell.examining import expected_asks, recorded_asks
from codechat.run.journal import Journal
from codechat.run.protocols import PROTOCOLS, Ask
from codechat.run.protocols.dialogue import CHECKS, EXPLANATION, PROSE
from codechat.run.settings.config import CellConfig

JUDGEMENT = 200
"""Tokens of a judge's answer."""

STEP = 100
"""Tokens of a coding agent's remark and command. Its three presets send 90 to 120 for one, with an output of a line."""

FIRST_TOKEN_S, INPUT_PER_S, OUTPUT_PER_S = 0.5, 5_000, 40
"""Seconds until a reply begins; tokens per second of one call that a model reads (cached ones aside), and writes."""

KNOWN_FROM = 10
"""Recorded calls of a role from which on their tokens scale the estimate of those to come."""

ROUND_S, FLEX_TIMES, MOST_IN_BATCH = 7 * 60.0, 3, 1_000_000
"""The median wait for a batch (nine of ten end within an hour); how many times as long a call in flex takes."""

OF_CELLS = (
    f"a reply is the reference solution and {PROSE} characters more ({EXPLANATION:,} under prompts that allow an "
    "explanation), no reasoning, at most max_tokens",
    "every session has all its turns, and each request holds the whole conversation so far",
    f"a judge checks {CHECKS} candidates a turn (rounded up to judge.lookahead) and answers in {JUDGEMENT} tokens",
    f"from {KNOWN_FROM} calls of a role on in the cell's journal, the tokens of its calls to come are scaled by theirs",
    "a model that judges first answers twelve questions whose answers are known, in each role (judge.check)",
)
OF_AGENTS = (
    "a turn of a coding agent takes model.expected.requests requests, each with model.expected.overhead_tokens of "
    "instructions and tools, the dialogue so far if the agent remembers it, and on average half of what the turn adds",
    f"a turn of a coding agent writes its reply once and reads as much; each request writes {STEP} tokens more, and "
    "reads as many",
)
OF_SEEDS = ("the calls and tokens of each role are the recipe's expectation for an average seed",)
OF_ALL = (
    f"{CHARS_PER_TOKEN} characters are a token (four tokenizers: 2.6 to 4.3, code less than prose)",
    "no retries, no re-asks, nothing from the response cache",
    "cached: the endpoint still has what a request shares with an earlier one, replies included, as vLLM has in enough "
    "memory; of a provider with a price list (conf/prices) nothing below the length that it caches from; what it takes "
    "for writing its cache is in the cost, and so is the price of the tier",
    f"time: each payer by itself, max_concurrency calls at once, the first token after {FIRST_TOKEN_S:g} s, "
    f"{INPUT_PER_S:,} tokens a second read and {OUTPUT_PER_S} written by a call; calls of several payers overlap",
    f"tiers: in flex a call takes {FLEX_TIMES} times as long; the calls of a dialogue in batches take "
    f"{ROUND_S / 60:.0f} minutes each, the median of providers (one in ten takes more than an hour)",
)


def assumptions_of(configs: Iterable[CellConfig]) -> tuple[str, ...]:
    """The assumptions behind the estimate for cells with these options."""
    cells = list(configs)
    of_agents = OF_AGENTS if any(isinstance(cell.model, AgentConfig) for cell in cells) else ()
    of_protocols = (PROTOCOLS.of(cell.protocol).traits.assumes(cell.protocol) for cell in cells)
    return (*OF_CELLS, *dict.fromkeys(chain.from_iterable(of_protocols)), *of_agents, *OF_ALL)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Missing sessions and turns, their calls and tokens by role, and `usd` by payer (None without a price).

    `uncached_usd` is the cost if no endpoint caches anything; `seconds` is the time of each role's calls.
    """

    sessions: int
    turns: int
    calls: dict[str, int]
    tokens: dict[str, Usage]
    usd: Costs
    uncached_usd: Costs
    seconds: dict[str, float]


def total(estimates: Iterable[Estimate]) -> Estimate:
    """The sum of several cells; a cost is None if a cell that asks the payer does not know it."""

    def summed(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        sums = dict(parts[0])
        for name, value in (pair for part in parts[1:] for pair in part.items()):
            sums[name] = value if name not in sums else None if None in (sums[name], value) else sums[name] + value
        return sums

    cells = list(estimates)
    names = ("calls", "tokens", "usd", "uncached_usd", "seconds")
    sums = {name: summed([getattr(each, name) for each in cells]) for name in names}
    return Estimate(sum(each.sessions for each in cells), sum(each.turns for each in cells), **sums)


def estimate_of(cell: Cell, tariff: Tariff, journals: Iterable[Path] | None = None) -> Estimate:
    """The estimate for the part of a cell that is missing in the journals (None: of its folder). Calls no model."""
    protocol = cell.protocol
    paths = [*(journals_in(cell.folder) if journals is None else journals)]
    known, measured = _recorded(cell, paths)
    missing, unfinished, turns = list[tuple[Iterable[Ask], int]](), list[Task](), 0
    for task in cell.tasks:
        done, planned = known.get(task.task_id, 0), protocol.turns(task)
        if done < planned:
            missing.append((protocol.asks(task), done))
            unfinished.append(task)
            turns += planned - done
    sizes = replace(sizes_of(cell), measured=measured)
    return sum_of(missing, turns, sizes, tariff, expected_asks(cell, unfinished, paths))


def sizes_of(cell: Cell) -> "Sizes":
    """The sizes of a cell's models and judges."""
    config = cell.config
    models = {UNDER_TEST: config.model, **{role_of(place): each for place, each in models_in(config.protocol, "")}}
    judges = dict(models_in(config.judge, "judge")) if "judge" in cell.uses else {}
    return Sizes.of(models, {role_of(place): each for place, each in judges.items()})


def sum_of(
    sessions: Sequence[tuple[Iterable[Ask], int]],
    turns: int,
    sizes: "Sizes",
    tariff: Tariff,
    before: Iterable[Ask] = (),
) -> Estimate:
    """The estimate for sessions, or items, each with its expected calls and its number of answered turns.

    `before` are calls ahead of the sessions, made at once.
    """
    needs = {role: Need() for role in tariff.prices}
    for asks, done in (*(([ask], 0) for ask in before), *sessions):
        for role, need in sizes.session(asks, done).items():
            needs.setdefault(role, Need()).add(need)
    tiers = {role: sizes.tiers.get(role, STANDARD) for role in needs}
    tokens = {role: need.usage.served_as(tiers[role]) for role, need in needs.items()}
    calls = {role: round(need.calls) for role, need in needs.items()}
    uncached = {role: Usage(t.input_tokens, t.output_tokens).served_as(tiers[role]) for role, t in tokens.items()}
    usd, uncached_usd = spent_usd(tokens, tariff), spent_usd(uncached, tariff)
    for payer in usd:
        if not any(count for role, count in calls.items() if tariff.sum_name(role) == payer):
            usd[payer] = uncached_usd[payer] = 0.0
    seconds = {role: need.seconds(sizes.at_once.get(role, 1)) for role, need in needs.items()}
    return Estimate(len(sessions), turns, calls, tokens, usd, uncached_usd, seconds)


def _recorded(cell: Cell, journals: Iterable[Path]) -> tuple[dict[str, int], "Measured"]:
    """The number of replies in the journals, by task, a huge number for a finished session; and what they measure.

    The fullest journal measures: a cell's own has taken in its shards' journals.
    """
    counts, measured, most = dict[str, int](), Measured(), 0
    for path in journals:
        found = dict[str, int]()
        with contextlib.closing(Journal(path)) as journal:
            for task in cell.tasks:
                identity = session_id(cell.id, task.task_id)
                done = journal.outline(identity, completed=True) is not None
                found[task.task_id] = 1_000_000 if done else journal.answers(identity, UNDER_TEST)
            used, checks = journal.used(completed=False), [*recorded_asks(cell, journal)]
        counts = {name: max(count, counts.get(name, 0)) for name, count in found.items()}
        if (tokens := sum(each.output_tokens for each in used.values())) > most:
            most, measured = tokens, _measured(cell, found, checks, used)
    return counts, measured


def _measured(cell: Cell, done: Mapping[str, int], checks: list[Ask], used: Mapping[str, Usage]) -> "Measured":
    """The recorded tokens of each role in parts of the estimate for the same turns, and for the judge's `checks`."""
    past = [
        checks,
        *([ask for ask in cell.protocol.asks(task) if ask.turn < done[task.task_id]] for task in cell.tasks),
    ]

    def parts(sizes: Sizes, name: str, counted: str) -> dict[str, float]:
        needs: dict[str, Need] = {}
        for asks in past:
            for role, need in sizes.session(asks, 0).items():
                needs.setdefault(role, Need()).add(need)
        enough = {role: getattr(need, name) for role, need in needs.items() if need.calls >= KNOWN_FROM}
        found = {role: getattr(used.get(role, Usage()), counted) / size for role, size in enough.items() if size}
        return {role: part for role, part in found.items() if part > 0}

    sizes = sizes_of(cell)
    said = parts(sizes, "said", "output_tokens")
    return Measured(parts(replace(sizes, measured=Measured(said=said)), "sent", "input_tokens"), said)


@dataclass(frozen=True, slots=True)
class Measured:
    """By role, the factors of the tokens of a call, which records have shown; 1 for other roles."""

    sent: Mapping[str, float] = field(default_factory=dict)
    said: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Need:
    """The calls of one role: their tokens, the seconds of all calls one by one, and of the longest session.

    `cached` and `written` are the parts of `sent` that the endpoint has cached, and puts into its cache.
    """

    calls: float = 0.0
    sent: float = 0.0
    cached: float = 0.0
    said: float = 0.0
    busy_s: float = 0.0
    longest_s: float = 0.0
    written: float = 0.0

    def add(self, other: "Need", times: float = 1.0) -> None:
        """Add a session's calls, which wait for each other; or a call, so many times."""
        for name in ("calls", "sent", "cached", "said", "written", "busy_s"):
            setattr(self, name, getattr(self, name) + times * getattr(other, name))
        self.longest_s = max(self.longest_s, times * other.busy_s)

    @property
    def usage(self) -> Usage:
        """The tokens."""
        return Usage(round(self.sent), round(self.said), round(self.cached), round(self.written))

    def seconds(self, at_once: int) -> float:
        """The time of all calls, so many at once."""
        return max(self.busy_s / at_once, self.longest_s)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes, by role, from which expected calls become tokens and time.

    The longest reply, the calls at once, the roles that cost nothing, the tier, the tokens from which an endpoint
    caches, the roles whose endpoint charges for writing its cache, what records have shown, and the coding agents.
    """

    longest: dict[str, float]
    at_once: dict[str, int]
    free: frozenset[str]
    tiers: dict[str, Tier] = field(default_factory=dict)
    caches_from: dict[str, int] = field(default_factory=dict)
    written: frozenset[str] = frozenset()
    measured: Measured = Measured()
    agents: dict[str, AgentConfig] = field(default_factory=dict)

    @classmethod
    def of(cls, models: Mapping[str, ModelConfig], judges: Mapping[str, ModelConfig]) -> "Sizes":
        """The sizes of the models of roles, and of judges of instructions."""
        every = {**judges, **models}
        listed = {role: known for role, model in every.items() if (known := listed_prices(model)) is not None}
        prices = {role: prices_of(model) for role, model in every.items()}
        tiers: dict[str, Tier] = {role: getattr(model, "tier", STANDARD) for role, model in every.items()}
        return cls(
            {role: model.longest_reply() for role, model in models.items()},
            {role: MOST_IN_BATCH if tiers[role] == BATCH else each.max_concurrency for role, each in every.items()},
            frozenset(role for role, model in models.items() if is_free(model)),
            tiers,
            {role: known.caches_from for role, known in listed.items()},
            frozenset(role for role, each in prices.items() if each is not None and each.cache_write is not None),
            agents={role: model for role, model in models.items() if isinstance(model, AgentConfig)},
        )

    def tokens(self, asks: Iterable[Ask], done: int = 0) -> dict[str, Usage]:
        """The tokens by role of the calls that a session still needs, in the tier of each role's model."""
        needs = self.session(asks, done)
        return {role: need.usage.served_as(self.tiers.get(role, STANDARD)) for role, need in needs.items()}

    def session(self, asks: Iterable[Ask], done: int) -> dict[str, Need]:
        """The calls by role that a session still needs after `done` answered turns.

        The first call of a resumed conversation finds nothing cached.
        """
        needs: dict[str, Need] = {}
        for ask in asks:
            if ask.turn < done or ask.role in self.free:
                continue
            longest, least = self.longest.get(ask.role, math.inf), self.caches_from.get(ask.role, 0)
            reply = JUDGEMENT if ask.answer is None else ask.answer / CHARS_PER_TOKEN
            if (agent := self.agents.get(ask.role)) is not None:
                reply = reply / agent.expected.requests + STEP
            reply = min(reply * self.measured.said.get(ask.role, 1.0), longest)
            scale = self.measured.sent.get(ask.role, 1.0)
            for whole, begun in _requests(ask, reply, agent):
                sent, shared = scale * whole, scale * min(whole, begun)
                cached = shared if shared >= least and (ask.role in needs or ask.answer is None) else 0.0
                written = sent - cached if ask.role in self.written and sent >= least else 0.0
                call_s = FIRST_TOKEN_S + (sent - cached) / INPUT_PER_S + reply / OUTPUT_PER_S
                call_s = {BATCH: ROUND_S, FLEX: FLEX_TIMES * call_s}.get(self.tiers.get(ask.role, STANDARD), call_s)
                call = Need(1.0, sent, cached, reply, call_s, written=written)
                needs.setdefault(ask.role, Need()).add(call, ask.times)
        return needs


def _requests(ask: Ask, reply: float, agent: AgentConfig | None) -> Iterator[tuple[float, float]]:
    """The tokens of the requests that a call takes, each with the part of them that an earlier request began with."""
    told, before = ask.characters / CHARS_PER_TOKEN, ask.shared / CHARS_PER_TOKEN
    if agent is None:
        yield told + ask.replies * reply, before + ask.shared_replies * reply
        return
    expected, step = agent.expected, 2 * reply  # a request adds what it writes, and as much from its tools
    earlier = before + ask.turn * expected.requests * step if agent.continued else 0.0
    begun = expected.overhead_tokens + earlier
    for number in range(expected.requests):
        sent = expected.overhead_tokens + earlier + told - before + number * step
        yield sent, begun
        begun = sent + reply
