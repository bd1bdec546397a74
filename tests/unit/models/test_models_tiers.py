"""Tiers: what is asked for, what was served, what it costs, and what becomes of a tier without room."""

import asyncio
import contextlib
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Message, Reply, Usage
from codechat.base.errors import InfrastructureError, UserError
from codechat.base.records import TurnRecord
from codechat.models import MODELS, Request, prices, remote
from codechat.models.calls import Timing, limits
from codechat.models.remote import Remote
from codechat.report.metrics.spending import spent_usd
from codechat.run.cell.budget import tariff_of
from codechat.run.journal import Journal, Ledger
from codechat.run.settings.compose import compose
from codechat.testing import Answer, BatchServer, Call, OpenAIServer, Result, rate_limited

PRICES = {"input": 2, "output": 8, "tiers": {"flex": {"input": 1, "output": 4}}}
REQUEST = Request((Message("user", "one two three four"),), "t/0", 0)


async def _no_wait(_: float) -> None:
    await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = Timing(sleep=_no_wait, uniform=lambda low, high: low)
    monkeypatch.setattr(limits.Endpoint.__init__, "__defaults__", (quick,))


def ask(
    behaviour: Callable[[Call], Result], times: int = 1, kind: type[OpenAIServer] = OpenAIServer, **options: Any
) -> tuple[list[Reply], list[dict[str, Any]]]:
    """Replies of a model with such options, and the bodies that its endpoint got."""
    with kind(behaviour) as server:
        config = MODELS.validate({"kind": "openai", "name": "m", "base_url": server.base_url, **options})

        async def call() -> list[Reply]:
            async with contextlib.aclosing(MODELS.build(config)) as model:
                assert isinstance(model, Remote)
                return [await model.complete(REQUEST) for _ in range(times)]

        return asyncio.run(call()), [call.body for call in server.calls]


def served(tier: str | None) -> Callable[[Call], Result]:
    return lambda _: Answer("five six", tier=tier)


def test_flex_is_asked_for_and_what_was_served_is_in_the_usage() -> None:
    (reply,), (body,) = ask(served("flex"), tier="flex", cache=False)
    assert body["service_tier"] == "flex"
    assert reply.usage == Usage(4, 2, tiers={"flex": Usage(4, 2)})


@pytest.mark.parametrize("tier", ["default", None])
def test_what_was_served_otherwise_counts_at_the_full_price(tier: str | None) -> None:
    (reply,), _ = ask(served(tier), tier="flex", cache=False)
    assert reply.usage == Usage(4, 2)


def test_the_default_asks_for_no_tier() -> None:
    _, (body,) = ask(served(None), cache=False)
    assert "service_tier" not in body


def test_a_kept_reply_has_the_tier_that_it_had_and_any_tier_finds_it() -> None:
    (first, again), bodies = ask(served("flex"), 2, tier="flex")
    (standard,), none = ask(served(None))
    assert len(bodies) == 1 and first.usage == again.usage and again.cached
    assert len(none) == 1  # another address: but the key has no tier in it
    assert standard.usage.tiers == {}


def refusing(refusals: int) -> Callable[[Call], Result]:
    def answer(call: Call) -> Result:
        flex = call.body.get("service_tier") == "flex"
        return rate_limited() if flex and call.number < refusals else Answer("five six", tier="flex" if flex else None)

    return answer


def test_flex_without_room_is_asked_again_far_more_often_than_other_calls() -> None:
    (reply,), bodies = ask(refusing(40), tier="flex", cache=False)
    assert (reply.rate_limited, len(bodies)) == (40, 41)
    assert all(body["service_tier"] == "flex" for body in bodies)


def test_flex_without_room_never_becomes_the_full_price() -> None:
    with pytest.raises(InfrastructureError, match="HTTP 429") as failed:
        ask(refusing(1000), tier="flex", cache=False, max_retries=1)
    assert failed.value.rate_limited == 9


def test_flex_without_room_becomes_the_full_price_if_the_user_says_so() -> None:
    (reply,), bodies = ask(refusing(1000), tier="flex", tier_fallback="standard", cache=False, max_retries=1)
    assert reply.usage == Usage(4, 2)
    assert (reply.rate_limited, reply.retries, len(bodies)) == (9, 9, 10)


def test_an_attempt_in_flex_has_three_times_as_long() -> None:
    model = MODELS.build(MODELS.validate({"kind": "openai", "name": "m", "tier": "flex"}))
    assert isinstance(model, Remote)
    assert [model._policies[tier].attempt_s for tier in ("standard", "flex")] == [300, 900]


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("gpt-5", {}, "24h"),
        ("gpt-5", {"prompt_cache": "off"}, None),
        ("gpt-5-mini", {}, None),  # its provider keeps it for minutes
        ("another", {}, None),
        ("another", {"prompt_cache": "24h"}, "24h"),
    ],
)
def test_prompts_in_batches_are_to_be_kept_until_the_next_turn(
    name: str, options: dict[str, Any], said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tuple(each.model_copy(update={"hosts": ["127.0.0.1"]}) for each in prices.price_lists())
    monkeypatch.setattr(prices, "price_lists", lambda: here)
    monkeypatch.setattr(remote, "BATCH_AGE_S", 0.01)
    batched = {"tier": "batch", "batch_poll_s": 0.01, "cache": False}
    (_, first), bodies = ask(served(None), 2, BatchServer, name=name, **batched, **options)
    assert [body.get("prompt_cache_retention") for body in bodies] == [said, said]
    assert first.usage.tiers.keys() == {"batch"}
    _, (single,) = ask(served(None), name=name, cache=False, **options)
    assert "prompt_cache_retention" not in single  # the next turn comes within minutes


def test_a_provider_without_the_tier_is_refused() -> None:
    with pytest.raises(UserError, match=r"anthropic.* flex"):
        compose(["model=anthropic", "model.name=m", "model.tier=flex"])


def test_a_tier_is_no_part_of_the_identity() -> None:
    plain, flex = (
        compose(["model=openai", "model.name=m", *more]).config
        for more in ([], ["model.tier=flex", "model.tier_fallback=standard"])
    )
    assert plain.identity() == flex.identity()


def test_the_journal_prices_each_reply_by_its_tier(tmp_path: Path) -> None:
    usages = [Usage(100, 10), Usage(300, 30, 50, 20).served_as("flex")]

    async def record() -> dict[str, Usage]:
        journal = Journal(tmp_path / "journal.db")
        for number, usage in enumerate(usages):

            async def reply(usage: Usage = usage) -> Reply:
                return Reply("text", usage=usage)

            await journal.step("s", f"{number}/model", "d", Reply, reply, payer="model")
        await journal.finish("s", "{}", "{}", completed=True)
        await journal.settle()
        used = journal.used()
        journal.close()
        return used

    whole = Usage(400, 40, 50, 20, {"flex": Usage(300, 30, 50, 20)})
    assert asyncio.run(record()) == {"model": whole}
    again = Journal(tmp_path / "journal.db")
    assert again.ledger.spent == {"model": whole}
    assert (again.ledger.total("calls"), again.ledger.tokens) == (2, 440)
    again.close()
    tariff = tariff_of(MODELS.validate({"kind": "openai", "name": "m", "prices": PRICES}))
    assert spent_usd({"model": whole}, tariff)["model"] == pytest.approx((100 * 2 + 10 * 8 + 300 * 1 + 30 * 4) / 1e6)


def test_prices_of_written_and_read_cache_tokens() -> None:
    prices = {"input": 3, "output": 15, "cached_input": 0.3, "cache_write": 3.75}
    price = tariff_of(MODELS.validate({"kind": "openai", "name": "m", "prices": prices})).price("model")
    assert price is not None
    paid = price.cost(Usage(1000, 100, 600, 300))
    assert paid == pytest.approx((100 * 3 + 600 * 0.3 + 300 * 3.75 + 100 * 15) / 1e6)


def test_records_of_the_standard_tier_are_as_they_were() -> None:
    line = json.loads(TurnRecord(turn=0, usage=Usage(1, 2)).model_dump_json())
    assert line["usage"] == {"input_tokens": 1, "output_tokens": 2, "cached_input_tokens": 0}
    flex = json.loads(TurnRecord(turn=0, usage=Usage(1, 2, 0, 1).served_as("flex")).model_dump_json())
    assert flex["usage"]["tiers"]["flex"]["cache_write_tokens"] == 1
    assert TurnRecord.model_validate(flex).usage == Usage(1, 2, 0, 1).served_as("flex")


def test_usages_add_and_subtract_tier_by_tier() -> None:
    one, other = Usage(5, 1).served_as("flex"), Usage(7, 2) + Usage(1, 1).served_as("batch")
    both = one + other
    assert both == Usage(13, 4, tiers={"flex": Usage(5, 1), "batch": Usage(1, 1)})
    assert both - one == other
    assert Usage.of(both.fields()) == both
    assert dict(both.by_tier()) == {"standard": Usage(7, 2), "flex": Usage(5, 1), "batch": Usage(1, 1)}
    assert dataclasses.replace(both, tiers={}) == Usage(13, 4)
    assert Ledger().spent == {}
