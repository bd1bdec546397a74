"""List prices by name and address, and estimates that rest on them: floors of caching, writing and tiers."""

from typing import Any

import pytest

from codechat.base.domain import CHARS_PER_TOKEN, Usage
from codechat.cli.app import main
from codechat.models import MODELS, ModelTraits
from codechat.models.agent.config import AgentConfig, ExpectedTurn
from codechat.models.prices import listed_prices, price_lists, prices_of
from codechat.report.metrics.spending import Tariff
from codechat.run.cell import build_cell
from codechat.run.cell.budget import tariff_of_roles
from codechat.run.cell.estimate import STEP, Need, Sizes, assumptions_of, estimate_of
from codechat.run.protocols import Ask
from codechat.run.settings.compose import compose


def model(name: str, url: str, **more: Any) -> Any:
    return MODELS.validate({"kind": "openai", "name": name, "base_url": url, **more})


OPENAI = "https://api.openai.com/v1"


def test_a_list_says_where_and_when_it_was_read() -> None:
    for each in price_lists():
        assert each.source.startswith("https://")
        assert each.day.year >= 2026
        for listed in each.models.values():
            for tier in listed.tiers.values():
                assert (tier.input, tier.output) == (listed.input / 2, listed.output / 2)


def test_a_model_has_the_prices_of_its_name_at_its_provider() -> None:
    known = listed_prices(model("gpt-4.1-mini-2025-04-14", OPENAI))
    assert known is not None
    assert (known.prices.input, known.caches_from) == (0.4, 1024)
    assert known.source == "https://developers.openai.com/api/docs/pricing, 2026-11-05"
    assert listed_prices(model("gpt-5", "http://127.0.0.1:8000/v1")) is None, "who serves the name decides"
    assert listed_prices(model("gpt-5-unheard-of", OPENAI)) is None
    own = model("gpt-5", OPENAI, prices={"input": 7, "output": 8})
    assert prices_of(own) == own.prices
    sonnet = compose(["model=claude_sonnet4"]).config.model
    tariff = tariff_of_roles({"model": sonnet})
    assert tariff.unpriced == ()
    price = tariff.prices["model"]
    assert price is not None
    assert price.cost(Usage(1_000_000, 0, 0, 1_000_000)) == pytest.approx(3.75)
    assert price.cost(Usage(1_000_000, 0).served_as("batch")) == pytest.approx(1.5)


def session(sizes: Sizes) -> Need:
    """Three calls: of 500, 1,000 and 1,500 tokens, the last 500 of each new."""
    size = 500 * CHARS_PER_TOKEN
    asks = [Ask("model", turn, size * (turn + 1), 400, shared=size * turn) for turn in range(3)]
    return sizes.session(asks, 0)["model"]


def test_nothing_below_the_least_length_is_cached_or_written() -> None:
    plain = Sizes({}, {}, frozenset())
    assert (session(plain).sent, session(plain).cached, session(plain).written) == (3_000, 1_500, 0)
    floor = Sizes({}, {}, frozenset(), {}, {"model": 800}, frozenset({"model"}))
    assert (session(floor).cached, session(floor).written) == (1_000, 1_000 + 500)


def test_the_tier_that_is_asked_for_has_its_price() -> None:
    words = ["model=gpt5", "dataset.limit=2", "agenda.turns=2"]
    usd = []
    for tier in ("standard", "batch"):
        cell = build_cell(compose([*words, f"model.tier={tier}"]))
        price = tariff_of_roles({"model": cell.config.model})
        found = estimate_of(cell, Tariff({"model": price.prices["model"]}), [])
        usd.append(found.usd["model"] or 0)
        assert found.tokens["model"].input_tokens > 0
    assert usd[1] == pytest.approx(usd[0] / 2)


def test_the_dry_run_says_what_it_rests_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model=gpt5", "model.tier=flex", "judge=llm", "dataset.limit=1", "dry_run=true"]) == 0
    said = capsys.readouterr().out
    assert "prices  model gpt-5: https://developers.openai.com/api/docs/pricing, 2026-11-05, tier flex" in said
    assert "judge.applicability openai/gpt-oss-20b: none" in said


@pytest.mark.parametrize(("prices", "written"), [({"cache_write": 3}, True), ({}, False), (None, False)])
def test_an_endpoint_that_charges_for_its_cache_writes_it(prices: dict[str, float] | None, written: bool) -> None:
    own = None if prices is None else {"input": 1, "output": 2, **prices}
    sizes = Sizes.of({"model": model("m", "http://127.0.0.1:9/v1", prices=own)}, {})
    assert (sizes.written == {"model"}) is written and sizes.caches_from == {} and sizes.free == frozenset()
    assert sizes.at_once["model"] == model("m", OPENAI).max_concurrency and sizes.tiers == {"model": "standard"}


def test_needs_of_sessions_are_summed_and_the_longest_kept() -> None:
    both = Need()
    both.add(Need(1, 2, 3, 4, 5, written=6))
    both.add(Need(1, 2, 3, 4, 7, written=6))
    assert both == Need(2, 4, 6, 8, 12, 7, 12)
    assert both.seconds(1) == 12 and both.seconds(2) == 7 and both.seconds(12) == 7
    calls = Need()
    calls.add(Need(1, 2, 3, 4, 5, 9, 6), 2.5)
    assert calls == Need(2.5, 5, 7.5, 10, 12.5, 12.5, 15)
    assert Need(1, 2.4, 3.6, 4.6, 5, written=6.4).usage == Usage(2, 5, 4, 6)


def test_a_call_is_as_long_as_its_parts() -> None:
    sizes = Sizes({"model": 10.0}, {}, frozenset({"free"}))
    asks = [Ask("model", 0, 400, 4_000), Ask("free", 0, 400, 4), Ask("model", 1, 400, 4_000, times=0.5, replies=2)]
    found = sizes.session(asks, 0)
    assert {*found} == {"model"} and (found["model"].calls, found["model"].said) == (1.5, 15.0)
    assert found["model"].sent == pytest.approx(1.5 * 400 / CHARS_PER_TOKEN + 0.5 * 2 * 10)
    assert sizes.session(asks, 1)["model"].calls == 0.5 and sizes.session(asks, 2) == {}


def agent(*, remembers: bool, requests: int = 3, overhead_tokens: int = 10_000) -> AgentConfig:
    expected = ExpectedTurn(requests=requests, overhead_tokens=overhead_tokens)
    return AgentConfig(
        base_url="http://127.0.0.1:9/v1",
        name="m",
        command=("x", "{continued}"),
        continued=("x",) if remembers else (),
        expected=expected,
    )


MESSAGE, REPLY = 500, 300  # tokens
ADDED = 2 * (REPLY / 3 + STEP)  # by a request: what it writes, and as much that it reads


def two_turns(model: AgentConfig, **more: Any) -> Need:
    size = MESSAGE * CHARS_PER_TOKEN
    asks = [
        Ask("model", turn, size * (turn + 1), REPLY * CHARS_PER_TOKEN, replies=turn, shared=size * turn)
        for turn in range(2)
    ]
    return Sizes({}, {}, frozenset(), agents={"model": model}, **more).session(asks, 0)["model"]


def test_an_agent_asks_several_times_a_turn_each_time_with_all_that_it_sends() -> None:
    found = two_turns(agent(remembers=False))
    turn = 3 * (10_000 + MESSAGE) + 3 * ADDED  # each request has what half a turn adds, on average
    assert (found.calls, found.said) == (6, pytest.approx(2 * (REPLY + 3 * STEP)))
    assert found.sent == pytest.approx(2 * turn)
    begun = 2 * (10_000 + MESSAGE) + 3 * ADDED - ADDED / 2 * 2
    assert found.cached == pytest.approx(2 * begun + 10_000), "all but the news; its instructions at a later turn"
    remembered = two_turns(agent(remembers=True))
    earlier = MESSAGE + 3 * ADDED
    assert remembered.sent == pytest.approx(found.sent + 3 * earlier)
    assert remembered.cached == pytest.approx(found.cached + 3 * earlier)
    assert two_turns(agent(remembers=True), written=frozenset({"model"})).written == pytest.approx(
        remembered.sent - remembered.cached
    )


def test_a_resumed_session_of_an_agent_sends_the_dialogue_that_it_remembers() -> None:
    size = MESSAGE * CHARS_PER_TOKEN
    ask = Ask("model", 4, 5 * size, REPLY * CHARS_PER_TOKEN, replies=4, shared=4 * size, shared_replies=4)
    sizes = Sizes({}, {}, frozenset(), agents={"model": agent(remembers=True, requests=1, overhead_tokens=0)})
    found = sizes.session([ask], 4)["model"]
    assert (found.calls, found.cached) == (1, 0)
    assert found.sent == pytest.approx(5 * MESSAGE + 4 * 2 * (REPLY + STEP))


def test_the_dry_run_says_what_it_assumes_of_agents(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stand_in(config: AgentConfig) -> Any:
        """Is never asked."""

    known = MODELS["echo"]
    component = type(known)("agent", AgentConfig, stand_in, ModelTraits(has_desk=True), MODELS.key)
    monkeypatch.setitem(MODELS._components, "agent", component)
    chosen = ["model=agent", "model.name=m", "model.command=[x]", "model.base_url=http://127.0.0.1:9/v1"]
    words = [*chosen, "dataset.limit=1", "agenda.turns=2", "judge=rules"]
    cells = [build_cell(compose([*words, f"model.expected.requests={count}"])) for count in (1, 5)]
    assert cells[0].id == cells[1].id
    few, many = (estimate_of(cell, Tariff({"model": None}), []) for cell in cells)
    assert (few.calls["model"], many.calls["model"]) == (2, 10)
    assert main([*words, "dry_run=true"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "a turn of a coding agent takes model.expected.requests requests" in said
    assert len(assumptions_of([cells[0].config])) > len(assumptions_of([compose(["model=echo"]).config]))
