"""An estimate of a cell's calls, tokens and cost before anything is spent, by stated assumptions."""

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from codechat.base.domain import BATCH, FLEX, STANDARD, Tier, Usage
from codechat.base.errors import UserError
from codechat.base.files import from_yaml
from codechat.models import UNDER_TEST, ModelConfig
from codechat.models.prices import listed_prices, prices_of
from codechat.models.roles import models_in, role_of
from codechat.report.metrics.spending import Costs, Tariff, spent_usd
from codechat.run.cell import Cell, build_cell, journals_in, session_id
from codechat.run.cell.budget import is_free
from codechat.run.journal import Journal, account_of
from codechat.run.protocols import Ask
from codechat.run.protocols.expecting import CHECKS, PROSE
from codechat.run.settings.compose import Composed
from codechat.run.settings.config import CellConfig

CHARS_PER_TOKEN = 4
JUDGEMENT = 200
"""Tokens of a judge's answer."""

FIRST_TOKEN_S, INPUT_PER_S, OUTPUT_PER_S = 0.5, 5_000, 40
"""Seconds until a reply begins; tokens per second of one call that a model reads (cached ones aside), and writes."""

ROUND_S, FLEX_TIMES, MOST_IN_BATCH = 7 * 60.0, 3, 1_000_000
"""The median wait for a batch (nine of ten are there within an hour); how many times as long a call in flex takes."""

OF_CELLS = (
    f"a reply is the reference solution and {PROSE} characters of prose, no reasoning, at most max_tokens",
    "every session has all its turns, and each request holds the whole conversation so far",
    f"a judge checks {CHECKS} candidates a turn (rounded up to judge.lookahead) and answers in {JUDGEMENT} tokens",
)
OF_SEEDS = ("the calls and tokens of each role are those of an average seed, as the recipe expects them",)
OF_ALL = (
    f"{CHARS_PER_TOKEN} characters are a token",
    "no retries, no re-asks, nothing from the response cache",
    "cached: the endpoint still has what a request shares with an earlier one, replies included, as vLLM has in enough "
    "memory; of a provider with a price list (conf/prices) nothing below the length that it caches from; what it takes "
    "for writing its cache is in the cost, and so is the price of the tier",
    f"time: each payer by itself, max_concurrency calls at once, the first token after {FIRST_TOKEN_S:g} s, "
    f"{INPUT_PER_S:,} tokens a second read and {OUTPUT_PER_S} written by a call; calls of several payers overlap",
    f"tiers: in flex a call takes {FLEX_TIMES} times as long; the calls of a dialogue in batches take "
    f"{ROUND_S / 60:.0f} minutes each, the median of providers (one in ten takes more than an hour)",
)
ASSUMPTIONS = (*OF_CELLS, *OF_ALL)


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
            _summed(self.calls, other.calls),
            _summed(self.tokens, other.tokens),
            _summed(self.usd, other.usd),
            _summed(self.uncached_usd, other.uncached_usd),
            _summed(self.seconds, other.seconds),
        )


def _summed(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The sums by role or payer; that of a value and None is None."""
    both = [(name, one[name], other[name]) for name in one.keys() & other.keys()]
    return {**one, **other, **{name: None if None in (a, b) else a + b for name, a, b in both}}


def estimate_of(cell: Cell, tariff: Tariff, journals: Iterable[Path] | None = None) -> Estimate:
    """The estimate for the part of a cell that no journal (null: of its folder) holds yet. Calls no model.

    With a pilot the calls and tokens of each role are those that its assumptions give, times what the pilot took of
    what they give for the pilot. Raises `UserError` for a pilot that tells nothing.
    """
    protocol, known = cell.protocol, _count_replies(cell, journals_in(cell.folder) if journals is None else journals)
    sizes, pilot = sizes_of(cell), cell.config.pilot
    missing, turns = list[tuple[Iterable[Ask], int]](), 0
    for task in cell.tasks:
        done, planned = known.get(task.task_id, 0), protocol.turns(task)
        if done < planned:
            missing.append((protocol.asks(task), done))
            turns += planned - done
    taken = {} if pilot is None else what_pilot_took(Path(pilot))
    return sum_of(missing, turns, sizes, tariff, taken)


def sizes_of(cell: Cell) -> "Sizes":
    """The sizes of a cell's models and judges."""
    config = cell.config
    models = {UNDER_TEST: config.model, **{role_of(place): each for place, each in models_in(config.protocol, "")}}
    judges = dict(models_in(config.judge, "judge")) if "judge" in cell.uses else {}
    return Sizes.of(models, {role_of(place): each for place, each in judges.items()})


def what_pilot_took(folder: Path) -> dict[str, "Measured"]:
    """By role what the calls of a finished cell took, and what is assumed of the same sessions. Raises `UserError`."""
    try:
        values = from_yaml((folder / "config.yaml").read_text(encoding="utf-8"))
        account = account_of(folder / "journal.db")
    except (OSError, ValueError, UserError) as error:
        raise UserError(f"pilot={folder} is no cell's folder", "give that of a cell that was run to its end") from error
    choices = values.pop("choices", {})
    known = {name: value for name, value in values.items() if name in CellConfig.whole().model_fields}
    cell = build_cell(Composed(CellConfig.from_values(known), choices))
    spent, calls = dict[str, Usage](), dict[str, int]()
    for ledger in (account.own, *account.taken.values()):
        if ledger.total("cached_replies"):
            raise UserError(
                f"pilot={folder} has replies of the response cache, of which no tokens were counted",
                "run the pilot with model.cache=false",
            )
        for role, usage in ledger.spent.items():
            spent[role] = spent.get(role, Usage()) + usage
        for charge in ledger.charges():
            calls[charge.payer] = calls.get(charge.payer, 0) + charge.calls
    assumed = needs_of([(cell.protocol.asks(task), 0) for task in cell.tasks], sizes_of(cell))
    return {role: Measured(usage, calls.get(role, 0), assumed.get(role, Need())) for role, usage in spent.items()}


def needs_of(sessions: Iterable[tuple[Iterable[Ask], int]], sizes: "Sizes") -> dict[str, "Need"]:
    """By role the calls of sessions, each with its expected calls and the turns that are answered already."""
    needs: dict[str, Need] = {}
    for asks, done in sessions:
        for role, need in sizes.session(asks, done).items():
            needs.setdefault(role, Need()).add(need)
    return needs


def sum_of(
    sessions: Sequence[tuple[Iterable[Ask], int]],
    turns: int,
    sizes: "Sizes",
    tariff: Tariff,
    taken: "Mapping[str, Measured]" = {},  # noqa: B006  never changed
) -> Estimate:
    """The estimate for sessions, or items, each with its expected calls and the turns that are answered already.

    `taken` is what a pilot took, by role.
    """
    needs = {role: Need() for role in tariff.prices} | needs_of(sessions, sizes)
    needs = {role: taken[role].applied(need) if role in taken else need for role, need in needs.items()}
    tokens = {role: need.usage.served_as(sizes.tiers.get(role, STANDARD)) for role, need in needs.items()}
    calls = {role: round(need.calls) for role, need in needs.items()}
    uncached = {
        role: Usage(each.input_tokens, each.output_tokens).served_as(sizes.tiers.get(role, STANDARD))
        for role, each in tokens.items()
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
    """The calls of one role: their tokens, the seconds of all of them one by one, and those of the longest session.

    `cached` and `written` are the parts of what is `sent` that the endpoint has cached, and puts into its cache.
    """

    calls: float = 0.0
    sent: float = 0.0
    cached: float = 0.0
    said: float = 0.0
    busy_s: float = 0.0
    longest_s: float = 0.0
    written: float = 0.0

    def add(self, session: "Need") -> None:
        """Add a session's calls, which wait for each other."""
        self.calls += session.calls
        self.sent += session.sent
        self.cached += session.cached
        self.said += session.said
        self.written += session.written
        self.busy_s += session.busy_s
        self.longest_s = max(self.longest_s, session.busy_s)

    def times(self, count: float) -> "Need":
        """So many calls of the same size."""
        sums = (self.calls, self.sent, self.cached, self.said, self.busy_s)
        calls, sent, cached, said, busy_s = (count * each for each in sums)
        return Need(calls, sent, cached, said, busy_s, written=count * self.written)

    @property
    def usage(self) -> Usage:
        """The tokens."""
        return Usage(round(self.sent), round(self.said), round(self.cached), round(self.written))

    def seconds(self, at_once: int) -> float:
        """The time of all calls, so many at once."""
        return max(self.busy_s / at_once, self.longest_s)


def seconds_of(calls: float, fresh: float, said: float) -> float:
    """The time of calls one by one, by the tokens that are read anew and written."""
    return calls * FIRST_TOKEN_S + fresh / INPUT_PER_S + said / OUTPUT_PER_S


@dataclass(frozen=True, slots=True)
class Measured:
    """What a pilot's calls of one role took, beside what is assumed of them."""

    usage: Usage
    calls: int
    assumed: Need

    def applied(self, need: Need) -> Need:
        """What is assumed of other calls, corrected by the pilot; its shares of the input are cached and written."""
        if not (self.calls and self.assumed.calls and self.usage.input_tokens):
            return need
        sent = need.sent * self.usage.input_tokens / self.assumed.sent
        cached, written = (
            sent * part / self.usage.input_tokens
            for part in (self.usage.cached_input_tokens, self.usage.cache_write_tokens)
        )
        often = self.calls / self.assumed.calls
        calls = often * need.calls
        # reasoning and prose are as long for a short program as for a long one, so they are added, call by call
        beyond = (self.usage.output_tokens - often * self.assumed.said) / self.calls
        said = max(0.0, often * need.said + calls * beyond)
        slower = seconds_of(calls, sent - cached, said) / seconds_of(need.calls, need.sent - need.cached, need.said)
        busy_s, longest_s = need.busy_s * slower, need.longest_s * slower
        return Need(calls, sent, cached, said, busy_s, longest_s, written)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes by which expected calls become tokens and time, by role.

    Each role's longest reply and its calls at once, the roles that cost nothing, the tokens from which an endpoint
    caches, the roles whose endpoint charges for it, and the tiers that are asked for.
    """

    longest: dict[str, float]
    at_once: dict[str, int]
    free: frozenset[str]
    tiers: dict[str, Tier] = field(default_factory=dict)
    caches_from: dict[str, int] = field(default_factory=dict)
    written: frozenset[str] = frozenset()

    @classmethod
    def of(cls, models: Mapping[str, ModelConfig], judges: Mapping[str, ModelConfig]) -> "Sizes":
        """The sizes of the models of roles, and of those that judge instructions."""
        free, every = {role for role, model in models.items() if is_free(model)}, {**judges, **models}
        listed = {role: known for role, model in every.items() if (known := listed_prices(model)) is not None}
        prices = {role: prices_of(model) for role, model in every.items()}
        tiers: dict[str, Tier] = {role: getattr(model, "tier", STANDARD) for role, model in every.items()}
        return cls(
            {role: model.longest_reply() for role, model in models.items()},
            {role: MOST_IN_BATCH if tiers[role] == BATCH else each.max_concurrency for role, each in every.items()},
            frozenset(free),
            tiers,
            {role: known.caches_from for role, known in listed.items()},
            frozenset(role for role, each in prices.items() if each is not None and each.cache_write is not None),
        )

    def session(self, asks: Iterable[Ask], done: int) -> dict[str, Need]:
        """The calls by role that a session still needs, after `done` answered turns.

        The first turn after those finds nothing cached of its conversation, which another process held.
        """
        found: dict[str, Need] = {}
        for ask in asks:
            if ask.turn < done or ask.role in self.free:
                continue
            longest, least = self.longest.get(ask.role, math.inf), self.caches_from.get(ask.role, 0)
            reply = JUDGEMENT if ask.answer is None else min(ask.answer / CHARS_PER_TOKEN, longest)
            sent = ask.characters / CHARS_PER_TOKEN + ask.replies * reply
            shared = min(sent, ask.shared / CHARS_PER_TOKEN + ask.shared_replies * reply)
            cached = shared if shared >= least and (ask.role in found or ask.answer is None) else 0.0
            written = sent - cached if ask.role in self.written and sent >= least else 0.0
            call_s = seconds_of(1.0, sent - cached, reply)
            call_s = {BATCH: ROUND_S, FLEX: FLEX_TIMES * call_s}.get(self.tiers.get(ask.role, STANDARD), call_s)
            one = Need(1.0, sent, cached, reply, call_s, written=written)
            found.setdefault(ask.role, Need()).add(one.times(ask.times))
        return found
