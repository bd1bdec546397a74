"""What a study of one model costs and takes at two simulated providers, in each of their tiers: dollars and hours.

    python benchmarks/tiers.py --dialogues 542 --turns 10

The engine holds the dialogues (the starter's tasks, with a sandbox that passes everything at once) with a local server.
A token is four characters; the judges are the same model. Prices are those of `conf/prices/`:

- OpenAI's API, GPT-5: `service_tier`, files and batches, and its own prompt cache: prefixes of 1,024 tokens and more,
  by 128, that are dropped 10 minutes after their last use, or 24 hours after it if a request says so. Today's run, that
  of codechat before it knew of tiers, is one at the full price with this cache, for which nothing need be sent.
- Anthropic's, Claude Sonnet 4: Message Batches, and a prompt cache that keeps and finds what a request marks, from
  1,024 tokens on, for five minutes or an hour after its last use. Writing it costs. Today's run sends no marks.

Time is simulated, since a batch takes hours: a call takes 0.5 s, and a second for 5,000 tokens read or 40 written, in
flex three times as long; 64 are under way at once. A batch takes 7 minutes in the median and an hour at most in nine of
ten cases (a lognormal draw); those that are under way at the same time are one round. In batches the clock goes on by
that, so that prefixes may be dropped between two turns, and requests of one batch find nothing of each other;
otherwise dialogues go on within the five minutes.

Exit status 1 if records differ by more than times, usage and tiers, or if a provider has no tier at which the study, as
codechat sends it, costs at most half of today's run.
"""

import argparse
import asyncio
import dataclasses
import hashlib
import json
import math
import os
import random
import sys
import tempfile
import time
from typing import Any, NamedTuple

from instant import register

from codechat.models import Prices
from codechat.models.calls import Brake
from codechat.models.prices import price_lists
from codechat.report.metrics.spending import spent_usd
from codechat.run.cell import build_cell
from codechat.run.cell.budget import Budget
from codechat.run.journal import Journal
from codechat.run.running.observer import Silent
from codechat.run.running.sessions import Recorded, run_missing_sessions
from codechat.run.settings.compose import compose
from codechat.testing import Answer, BatchServer, Call, MessageBatches, dataset_tasks, fading_solver
from codechat.testing.batches import MadeBatch
from codechat.testing.cells import without_times

SLOTS, LEAST, STEP = 64, 1_024, 128
MEDIAN_S, NINE_OF_TEN_S = 420.0, 3_600.0
LIFETIMES = {"5m": 300.0, "10m": 600.0, "1h": 3_600.0, "24h": 86_400.0}
CHARS = 4


class Provider(BatchServer):
    """A provider with a prompt cache and batches, and a clock of its own."""

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(self._answer, keep_calls=False)
        self._solve = fading_solver(dataset_tasks("starter"))
        self._luck = random.Random(seed)
        # by prefix: when it was written, when it was last used, and for how long it stays then
        self._kept: dict[bytes, tuple[float, float, float]] = {}
        self.now = self.calls_s = 0.0
        self.rounds, self._open, self._round_s = 0, set[str](), 0.0

    def _answer(self, call: Call) -> Answer:
        reply = self._solve(call)
        assert isinstance(reply, str)
        text = "\n".join(f"{each['role']}: {each['content']}" for each in call.messages)
        sent, said, cached, written = len(text) // CHARS, len(reply) // CHARS, *self.cached(call, text)
        tier = call.body.get("service_tier")
        self.calls_s += (3 if tier == "flex" else 1) * (0.5 + (sent - cached) / 5_000 + said / 40)
        return Answer(reply, usage=self.counts(sent, said, cached, written), tier=tier)

    def cached(self, call: Call, text: str) -> tuple[int, int]:
        """The tokens of a prompt that are found, and those that are written at a price."""
        kept_s = LIFETIMES[call.body.get("prompt_cache_retention", "10m")]
        found, so_far, going = 0, hashlib.sha256(), True
        for end in range(STEP * CHARS, len(text) + 1, STEP * CHARS):
            so_far.update(text[end - STEP * CHARS : end].encode())
            key = so_far.digest()
            going = going and self.has(key)
            found += STEP * going
            self.keep(key, kept_s)
        return found if found >= LEAST else 0, 0

    def has(self, key: bytes) -> bool:
        """Whether a prefix is still kept, and not written by a request of the same batch."""
        written, used, kept_s = self._kept.get(key, (0.0, -math.inf, 0.0))
        return self.now - used <= kept_s and (not self.rounds or self.now > written)

    def keep(self, key: bytes, kept_s: float) -> None:
        """Write a prefix, or use it: what was there before this batch stays there for all of it."""
        written, used, before_s = self._kept.get(key, (0.0, -math.inf, 0.0))
        lives = self.now - used <= before_s
        self._kept[key] = written if lives else self.now, self.now, kept_s

    def counts(self, sent: int, said: int, cached: int, written: int) -> dict[str, Any]:
        """Usage as the protocol says it."""
        return {"prompt_tokens": sent, "completion_tokens": said, "prompt_tokens_details": {"cached_tokens": cached}}

    def add(self, *parts: Any, **more: Any) -> MadeBatch:
        batch = super().add(*parts, **more)
        if not self._open:
            self.rounds, self._round_s = self.rounds + 1, 0.0
        self._open.add(batch.name)
        waits = self._luck.lognormvariate(math.log(MEDIAN_S), math.log(NINE_OF_TEN_S / MEDIAN_S) / 1.2816)
        longest = max(self._round_s, min(waits, 86_400.0))
        self.now, self._round_s = self.now + longest - self._round_s, longest
        return batch

    def look(self, batch: MadeBatch) -> None:
        super().look(batch)
        if batch.results is not None:
            self._open.discard(batch.name)


class Forgetful(Provider):
    """The same without a cache."""

    def cached(self, call: Call, text: str) -> tuple[int, int]:
        return 0, 0


class Claude(MessageBatches, Provider):
    """Anthropic's Messages, with batches and a cache of what is marked."""

    @property
    def base_url(self) -> str:
        return super().base_url.removesuffix("/v1")

    def reads(self, path: str, body: bytes) -> dict[str, Any] | None:
        if path.partition("?")[0] != "/v1/messages":
            return None
        sent = json.loads(body)
        system = sent.get("system") or ""
        parts = [{"role": "system", "content": system}] * bool(system) + sent["messages"]
        blocks = [
            (each["role"], {"text": each["content"]} if isinstance(each["content"], str) else block)
            for each in parts
            for block in (each["content"] if isinstance(each["content"], list) else [{}])
        ]
        messages = [{"role": role, "content": block["text"]} for role, block in blocks]
        marks = [block.get("cache_control") for _, block in blocks]
        return {"model": "fading-12", "messages": messages, "marks": marks}

    def writes(self, call: Call, answer: Answer) -> dict[str, Any]:
        return {
            "id": f"msg_{call.number}", "type": "message", "role": "assistant", "model": MODELS[Claude],
            "content": [{"type": "text", "text": answer.text}], "stop_reason": "end_turn", "stop_sequence": None,
            "usage": answer.usage,
        }  # fmt: skip

    def cached(self, call: Call, text: str) -> tuple[int, int]:
        found = tokens = written = 0
        so_far = hashlib.sha256()
        for message, mark in zip(call.messages, call.body["marks"], strict=True):
            so_far.update(f"{message['role']}: {message['content']}\n".encode())
            tokens += len(f"{message['role']}: {message['content']}\n") // CHARS
            key = so_far.digest()
            if any(call.body["marks"]) and self.has(key):
                found = tokens
                self.keep(key, self._kept[key][2])
            if mark and tokens >= LEAST:
                written = tokens - found
                self.keep(key, LIFETIMES[mark.get("ttl", "5m")])
        return found, written

    def counts(self, sent: int, said: int, cached: int, written: int) -> dict[str, Any]:
        rest = {"input_tokens": max(0, sent - cached - written), "output_tokens": said}  # each message is rounded
        return rest | {"cache_read_input_tokens": cached, "cache_creation_input_tokens": written}


MODELS: dict[type[Provider], str] = {Provider: "gpt-5", Claude: "claude-sonnet-4"}
OPENAI = ("openai", "name=fading-12")
ANTHROPIC = ("provider", "provider=anthropic", f"name={MODELS[Claude]}", "max_tokens=16384", "api_key_env=BENCH_KEY")


class Way(NamedTuple):
    """One way to run the study: what it is called, at which server, in which tier, and how prompts are kept."""

    name: str
    server: type[Provider]
    tier: str
    prompt_cache: str = "null"

    @property
    def words(self) -> list[str]:
        """The options of each model but its place in the config."""
        prices = next(each.models[self.listed] for each in price_lists() if self.listed in each.models)
        charged = prices.model_dump(include=set(Prices.model_fields), exclude_none=True)
        told = {"prices": json.dumps(charged).replace('"', "")}
        told |= {"tier": self.tier, "prompt_cache": self.prompt_cache, "cache": "false", "batch_poll_s": "0.2"}
        return [*self.model[1:], f"max_concurrency={SLOTS}", *(f"{name}={value}" for name, value in told.items())]

    @property
    def listed(self) -> str:
        """The name in the price list."""
        return MODELS[Claude if self.server is Claude else Provider]

    @property
    def model(self) -> tuple[str, ...]:
        """The preset, and what the provider needs."""
        return ANTHROPIC if self.server is Claude else OPENAI


WAYS = {
    "OpenAI, GPT-5": (
        Way("standard, today's run: automatic cache", Provider, "standard"),
        Way("standard, if nothing were cached", Forgetful, "standard"),
        Way("flex", Provider, "flex"),
        Way("batch, kept for 10 minutes", Provider, "batch", "off"),
        Way("batch, kept for 24 hours", Provider, "batch", "24h"),
    ),
    "Anthropic, Claude Sonnet 4": (
        Way("standard, today's run: nothing marked", Claude, "standard", "off"),
        Way("standard, marked", Claude, "standard"),
        Way("batch, nothing marked", Claude, "batch", "off"),
        Way("batch, marked for an hour", Claude, "batch"),
    ),
}
"""By provider, today's run first. Where codechat sends nothing by itself to another address, the way says it."""


@dataclasses.dataclass(frozen=True)
class Found:
    """What a run cost, what it took, and its records without times, usage and tiers."""

    usd: float
    hours: float
    batches: int
    rounds: int
    cached: float
    records: str


def study(way: Way, dialogues: int, turns: int, *, judge: str) -> Found:
    """Hold the dialogues."""
    with tempfile.TemporaryDirectory() as folder, way.server() as server:
        words = ["sandbox=instant", "tracking=none", f"model={way.model[0]}", f"agenda.turns={turns}"]
        words += [f"runs_dir={folder}", f"judge={judge}"]
        judges = ["judge.applicability", "judge.adherence"] if judge == "llm" else []
        words += [f"model@{place}={way.model[0]}" for place in judges]
        for place in ("model", *judges):
            words += [f"{place}.{option}" for option in (*way.words, f"base_url={server.base_url}")]
        cell = build_cell(compose(words))
        many = [dataclasses.replace(cell.tasks[n % len(cell.tasks)], task_id=f"t/{n}") for n in range(dialogues)]
        # As the paper's tasks, no two begin alike: what dialogues share is the system prompt and the judges' questions.
        many = [dataclasses.replace(task, prompt=f"# Number {n}\n{task.prompt}") for n, task in enumerate(many)]
        cell, budget = dataclasses.replace(cell, tasks=tuple(many)), Budget.of(cell.config)
        journal = Journal(cell.folder / "journal.db")
        asyncio.run(run_missing_sessions(cell, journal, Silent(), Brake(), budget))
        paid = [usd for usd in spent_usd(journal.ledger.spent, budget.tariff).values() if usd is not None]
        used = sum((each.input_tokens for each in journal.ledger.spent.values()), 0)
        cached = sum(each.cached_input_tokens for each in journal.ledger.spent.values()) / max(used, 1)
        records = "\n".join(json.dumps(_plain(json.loads(line))) for line in Recorded(cell, journal).lines())
        journal.close()
        hours = (server.now if server.rounds else server.calls_s / SLOTS) / 3_600
        return Found(sum(paid), hours, len(server.batches), server.rounds, cached, records)


def _plain(record: Any) -> Any:
    """A record without times and usage, in which its tiers are."""
    return _without_usage(without_times(record))


def _without_usage(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_usage(each) for key, each in value.items() if "usage" not in key}
    return [_without_usage(each) for each in value] if isinstance(value, list) else value


def main() -> int:
    """Run the study in each way, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialogues", type=int, default=542)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--judge", choices=["llm", "rules"], default="llm")
    chosen = parser.parse_args()
    register([])
    os.environ["BENCH_KEY"] = "k"
    good = True
    for provider, ways in WAYS.items():
        print(f"{provider}, {chosen.dialogues} dialogues of {chosen.turns} turns", flush=True)
        today: Found | None = None
        least = math.inf
        for way in ways:
            began = time.process_time()
            one = study(way, chosen.dialogues, chosen.turns, judge=chosen.judge)
            today = today or one
            ratio, same = one.usd / today.usd, one.records == today.records
            good = good and same
            least = min(least, math.inf if way.prompt_cache == "off" else round(ratio, 3))
            rounds = f", {one.batches} batches in {one.rounds} rounds" if one.batches else ""
            print(
                f"  {way.name:<38} ${one.usd:8.2f} {ratio:6.3f} {one.hours:6.2f} h  {one.cached:5.1%} of input cached"
                f"{rounds}, {'same' if same else 'OTHER'} records ({time.process_time() - began:.0f} s)",
                flush=True,
            )
        good = good and least <= 1 / 2
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
