"""Depth first: as many sessions at once as the server's memory holds; and what tiers cost and take in estimates."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codechat.base.domain import CHARS_PER_TOKEN
from codechat.models import UNDER_TEST, remote
from codechat.models.serving.server import kv_tokens
from codechat.run.answering.servers import KNOWN_FROM, ServerCapacity, _length, capacity_of
from codechat.run.cell import build_cell
from codechat.run.cell.budget import Budget
from codechat.run.cell.estimate import ROUND_S, estimate_of
from codechat.run.protocols import Ask
from codechat.run.settings.compose import compose
from codechat.testing import Fault, OpenAIServer

CONFIG = 'vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="500"} 1.0\n'


def most_at_once(places: ServerCapacity, sessions: int) -> int:
    """The most of so many sessions of a turn each that were under way together."""
    inside, most = 0, 0

    async def session() -> None:
        nonlocal inside, most
        async with places.slot():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.005)
            places.turn_ended()
            inside -= 1

    async def main() -> None:
        await asyncio.gather(*(session() for _ in range(sessions)))

    asyncio.run(main())
    return most


@pytest.mark.parametrize(("capacity", "most"), [(8000, 10), (100, 1), (None, 19)])
def test_one_session_begins_and_then_as_many_as_fit(capacity: int | None, most: int) -> None:
    """Ten of 1,000 tokens, which need 0.8 of that on average; a server that says nothing takes all."""
    asked: list[bool] = []

    def look() -> int | None:
        asked.append(True)
        return capacity

    assert most_at_once(ServerCapacity(1000, look), 20) == most
    assert asked == [True]


def test_a_model_without_such_a_server_has_no_bound() -> None:
    assert most_at_once(ServerCapacity(0, None), 20) == 20
    assert capacity_of(build_cell(compose([]))).allowed == float("inf")


@pytest.mark.parametrize("tasks", [0, 1, 2])
def test_the_capacity_is_for_conversations_of_the_mean_length(tasks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = SimpleNamespace(served_by="vllm")
    servers = SimpleNamespace(kv_tokens=lambda asked: 8000 if asked is model else None)
    monkeypatch.setattr(remote, "SERVERS", SimpleNamespace(get=lambda: servers))
    asks = [Ask("model", turn, 400, 800, replies=turn) for turn in range(4)] + [Ask("judge", 0, 10_000)]
    cell: Any = SimpleNamespace(
        config=SimpleNamespace(model=model), protocol=SimpleNamespace(asks=lambda _: asks), tasks=range(tasks)
    )
    found = capacity_of(cell)
    asyncio.run(found.update())
    assert found.allowed == (int(8000 / (0.8 * (400 + 4 * 800) / CHARS_PER_TOKEN)) if tasks else 8000)


def test_lengths_that_were_seen_replace_the_estimate() -> None:
    known = ServerCapacity(1000, lambda: 8000)
    asyncio.run(known.update())
    for _ in range(KNOWN_FROM):
        assert known.allowed == 10
        known.session_ended(500)
    assert known.allowed == 20


@pytest.mark.parametrize(("page", "tokens"), [(CONFIG, 8000), ("vllm:other 1.0\n", None), (CONFIG[:40] + "\n", None)])
def test_the_servers_own_page_says_its_memory(page: str, tokens: int | None) -> None:
    class Server(OpenAIServer):
        def page(self, path: str) -> Fault | None:
            return Fault(200, page) if path == "/metrics" else None

    with Server(lambda _: "") as server:
        assert kv_tokens(server.base_url) == tokens


def test_estimates_know_the_tier(tmp_path: Path) -> None:
    prices = "model.prices={input: 2, output: 8, tiers: {batch: {input: 1, output: 4}}}"
    words = ["model=openai", "model.name=m", prices, f"runs_dir={tmp_path}", "agenda.turns=4"]
    found = {}
    for tier in ("standard", "batch"):
        cell = build_cell(compose([*words, f"model.tier={tier}"]))
        found[tier] = estimate_of(cell, Budget.of(cell.config).tariff)
    full, half = found["standard"].usd["model"], found["batch"].usd["model"]
    assert full is not None and half is not None and half == pytest.approx(full / 2)
    assert found["batch"].seconds["model"] == 4 * ROUND_S  # all dialogues together, a batch a turn
    assert found["standard"].seconds["model"] < 4 * ROUND_S


def test_the_longest_conversation_with_the_model_counts_its_last_reply() -> None:
    asks = [
        Ask(UNDER_TEST, 0, 40, 8),
        Ask(UNDER_TEST, 1, 40, 8, replies=1),
        Ask("judge", 1, 4000, 8),
        Ask(UNDER_TEST, 2, 44),
    ]
    assert _length(asks) == (40 + 2 * 8) / CHARS_PER_TOKEN
    assert _length(asks[2:3]) == _length([]) == 0.0
