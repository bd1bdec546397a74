"""What a study of one model costs and takes at a provider's tiers, at a simulated provider: dollars and hours.

    python benchmarks/tiers.py --dialogues 542 --turns 10

The engine holds the dialogues (the starter's tasks, with a sandbox that passes everything at once) with a local server
that has OpenAI's API with files and batches, `service_tier`, and a prompt cache: prefixes of 1,024 tokens and more, by
128, that are dropped 10 minutes after their last use. A token is four characters. Prices are those of `conf/model/gpt5`
(input 1.25, cached 0.125, output 10 dollars per million), flex and batch at half; both of the judges have the same.

Time is simulated, since a batch takes hours: a call takes 0.5 s, and a second for 5,000 tokens read or 40 written, in
flex three times as long; 64 are under way at once. A batch takes 7 minutes in the median and an hour at most in nine of
ten cases (a lognormal draw); those that are under way at the same time are one round. In batches the clock goes on by
that, so that prefixes may be dropped between two turns; otherwise dialogues go on within the ten minutes.

Exit status 1 if records differ by more than times, usage and tiers, or if no tier halves the dollars of today's run.
"""

import argparse
import asyncio
import dataclasses
import hashlib
import json
import math
import random
import sys
import tempfile
import time
from typing import Any

from instant import register

from codechat.calls import Brake
from codechat.engine.cell import build_cell
from codechat.engine.cell.budget import Budget
from codechat.engine.running.observer import Silent
from codechat.engine.running.sessions import Recorded, run_missing_sessions
from codechat.engine.settings.compose import compose
from codechat.journal import Journal
from codechat.metrics.spending import spent_usd
from codechat.testing import Answer, BatchServer, Call, dataset_tasks, fading_solver
from codechat.testing.batches import MadeBatch
from codechat.testing.cells import without_times

PRICES = (
    "{input: 1.25, output: 10, cached_input: 0.125, tiers: {flex: {input: 0.625, output: 5, cached_input: 0.0625}, "
    "batch: {input: 0.625, output: 5, cached_input: 0.0625}}}"
)
SLOTS, LEAST, STEP, KEPT_S = 64, 1_024, 128, 600.0
MEDIAN_S, NINE_OF_TEN_S = 420.0, 3_600.0
CHARS = 4


class Provider(BatchServer):
    """OpenAI's API with list prices' facts: tiers, a prompt cache and batches, and a clock of its own."""

    def __init__(self, *, has_cache: bool, seed: int = 0) -> None:
        super().__init__(self._answer, keep_calls=False)
        self._solve = fading_solver(dataset_tasks("starter"))
        self._has_cache, self._luck = has_cache, random.Random(seed)
        self._kept: dict[bytes, float] = {}
        self.now = self.calls_s = 0.0
        self.rounds, self._open, self._round_s = 0, set[str](), 0.0

    def _answer(self, call: Call) -> Answer:
        reply = self._solve(call)
        assert isinstance(reply, str)
        text = "\n".join(f"{each['role']}: {each['content']}" for each in call.messages)
        sent, said, cached = len(text) // CHARS, len(reply) // CHARS, self._cached(text)
        tier = call.body.get("service_tier")
        self.calls_s += (3 if tier == "flex" else 1) * (0.5 + (sent - cached) / 5_000 + said / 40)
        usage = {"prompt_tokens": sent, "completion_tokens": said, "prompt_tokens_details": {"cached_tokens": cached}}
        return Answer(reply, usage=usage, tier=tier)

    def _cached(self, text: str) -> int:
        """The tokens of a prompt that are kept; then those of all of it are."""
        if not self._has_cache:
            return 0
        found, so_far, going = 0, hashlib.sha256(), True
        for end in range(STEP * CHARS, len(text) + 1, STEP * CHARS):
            so_far.update(text[end - STEP * CHARS : end].encode())
            key = so_far.digest()
            going = going and self.now - self._kept.get(key, -math.inf) <= KEPT_S
            found += STEP * going
            self._kept[key] = self.now
        return found if found >= LEAST else 0

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


@dataclasses.dataclass(frozen=True)
class Found:
    """What a run cost, what it took, and its records without times, usage and tiers."""

    usd: float
    hours: float
    batches: int
    rounds: int
    cached: float
    records: str


def study(tier: str, dialogues: int, turns: int, *, has_cache: bool, judge: str) -> Found:
    """Hold the dialogues in a tier."""
    with tempfile.TemporaryDirectory() as folder, Provider(has_cache=has_cache) as server:
        words = ["sandbox=instant", "tracking=none", "model=openai", f"agenda.turns={turns}", f"runs_dir={folder}"]
        words += [f"judge={judge}"]
        judges = ["judge.applicability", "judge.adherence"] if judge == "llm" else []
        for place in ("model", *judges):
            words += [] if place == "model" else [f"model@{place}=openai"]
            words += [f"{place}.name=fading-12", f"{place}.base_url={server.base_url}", f"{place}.cache=false"]
            words += [f"{place}.max_concurrency={SLOTS}", f"{place}.tier={tier}", f"{place}.batch_poll_s=0.2"]
            words += [f"{place}.prices={PRICES}"]
        cell = build_cell(compose(words))
        many = [dataclasses.replace(cell.tasks[n % len(cell.tasks)], task_id=f"t/{n}") for n in range(dialogues)]
        many = [dataclasses.replace(task, prompt=f"{task.prompt}\n# Number {n}") for n, task in enumerate(many)]
        cell, budget = dataclasses.replace(cell, tasks=tuple(many)), Budget.of(cell.config)
        journal = Journal(cell.folder / "journal.db")
        asyncio.run(run_missing_sessions(cell, journal, Silent(), Brake(), budget))
        paid = [usd for usd in spent_usd(journal.ledger.spent, budget.tariff).values() if usd is not None]
        used = sum((each.input_tokens for each in journal.ledger.spent.values()), 0)
        cached = sum(each.cached_input_tokens for each in journal.ledger.spent.values()) / max(used, 1)
        records = "\n".join(json.dumps(_plain(json.loads(line))) for line in Recorded(cell, journal).lines())
        journal.close()
        hours = (server.now if tier == "batch" else server.calls_s / SLOTS) / 3_600
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
    ways = (("standard", False), ("standard", True), ("flex", True), ("batch", False), ("batch", True))
    found: list[Found] = []
    for tier, has_cache in ways:
        began = time.monotonic()
        one = study(tier, chosen.dialogues, chosen.turns, has_cache=has_cache, judge=chosen.judge)
        found.append(one)
        same = "same records" if one.records == found[0].records else "OTHER RECORDS"
        rounds = f", {one.batches} batches in {one.rounds} rounds" if tier == "batch" else ""
        name = f"{tier}, {'with' if has_cache else 'no'} prompt cache"
        print(
            f"{name:<28} ${one.usd:8.2f}  {one.hours:6.2f} h  {one.cached:5.1%} of input cached{rounds}, {same} "
            f"({time.monotonic() - began:.0f} s)",
            flush=True,
        )
    today, cheapest = found[1], min(found, key=lambda each: each.usd)
    print(f"cheapest / today's run: {cheapest.usd / today.usd:.3f}")
    equal = all(each.records == found[0].records for each in found)
    return 0 if equal and round(cheapest.usd / today.usd, 6) <= 1 / 2 else 1


if __name__ == "__main__":
    sys.exit(main())
