"""The provider model against servers that speak Anthropic's, Google's and Bedrock's protocols: every fate of a call."""

import asyncio
import builtins
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from codechat.base.domain import Message, Reply
from codechat.base.errors import ContextOverflow, EndpointDown, InfrastructureError, UserError
from codechat.models import MODELS, Model, Request
from codechat.models.calls import cache
from codechat.testing import CUT_SHORT, RESET, Answer, Behaviour, Call, Fault, Result, drip, stall
from support.mistakes import mistake
from support.provider_servers import AWS, SERVERS, Server

KEY = "sk-very-secret-0123456789"
QUESTION = Request(
    (Message("system", "Be brief."), Message("user", "Write x."), Message("assistant", "x"), Message("user", "Again.")),
    "T/0",
    0,
)
GARBAGE = [Fault(200, "not json"), Fault(200, "{}"), Fault(200, "[]"), Fault(200, '{"content": 3, "candidates": 3}')]

pytestmark = [pytest.mark.long, pytest.mark.parametrize("provider", sorted(SERVERS))]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.models.calls.retry.FIRST_WAIT_S", 0.001)
    for name, value in {**AWS, "TEST_KEY": KEY}.items():
        monkeypatch.setenv(name, value)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "of-the-environment")


@asynccontextmanager
async def model_at(provider: str, base_url: str, **options: Any) -> AsyncIterator[Model]:
    fixed = {"kind": "provider", "provider": provider, "name": "small-1", "base_url": base_url, "max_retries": 2}
    key = {} if provider == "bedrock" else {"api_key_env": "TEST_KEY"}
    model = MODELS.build(MODELS.validate(fixed | key | {"cache": False} | options))
    try:
        yield model
    finally:
        await model.aclose()


async def ask(server: Server, **options: Any) -> Reply:
    async with model_at(server.provider, server.base_url, **options) as model:
        return await model.complete(QUESTION)


def script(*results: Result) -> Behaviour:
    """Answer call n with entry n; the last entry repeats."""
    return lambda call: results[min(call.number, len(results) - 1)]


@pytest.fixture
def served(provider: str) -> Iterator[Server]:
    """A server of the provider; a test sets its behaviour."""
    with SERVERS[provider](script("x")) as server:
        yield server


def error(served: Server, status: int, message: str, kind: str = "", **headers: str) -> Fault:
    return served.error(status, message, kind, **headers)


# -- requests and replies ----------------------------------------------------------------------------------------


async def test_the_conversation_is_sent_and_the_text_alone_is_read(served: Server) -> None:
    served.behaviour, served.fingerprint = script(Answer("x = 1", "length")), "small-1-20250929"
    reply = await ask(served, max_tokens=50, settings={"top_p": 0.5})
    assert (reply.text, reply.finish_reason, reply.retries) == ("x = 1", "length", 0)
    assert reply.usage.output_tokens == 3
    assert reply.usage.cached_input_tokens == 3
    assert reply.reasoning == "Let me think."
    assert reply.fingerprint == ("small-1" if served.provider == "bedrock" else "small-1-20250929")
    (call,) = served.calls
    assert call.body["model"] == "small-1"
    assert call.messages == [{"role": each.role, "content": each.content} for each in QUESTION.messages]
    sent = str(call.body["sent"])
    assert "50" in sent
    assert "0.5" in sent
    assert "'temperature': 0.0" in sent


async def test_an_empty_or_filtered_reply_is_still_one(served: Server) -> None:
    for answer in (Answer("", "length"), Answer(None, "content_filter"), Answer("", "stop")):
        served.behaviour = script(answer)
        reply = await ask(served)
        assert (reply.text, reply.finish_reason) == ("", answer.finish_reason)


async def test_nothing_but_the_named_key_is_sent(served: Server) -> None:
    await ask(served)
    if served.provider != "bedrock":
        assert KEY in str(served.calls[0].headers)
        await ask(served, api_key_env=None)
    for call in served.calls:
        assert "of-the-environment" not in str(call.headers)
        assert not [name for name in call.headers if "stainless" in name]
    assert KEY not in str(served.calls[-1].headers)


async def test_greedy_replies_are_kept_for_another_model(served: Server) -> None:
    first, again = [await ask(served, cache=None) for _ in range(2)]
    assert (again.cached, again.text, len(served.calls)) == (True, first.text, 1)
    await ask(served, cache=None, settings={"top_p": 0.5})
    assert len(served.calls) == 2


async def test_calls_share_the_limit_and_a_closed_model_connects_again(served: Server) -> None:
    async def slow(call: object) -> str:
        await asyncio.sleep(0.005)
        return "x"

    served.behaviour = slow
    async with model_at(served.provider, served.base_url, max_concurrency=3) as model:
        await asyncio.gather(*(model.complete(QUESTION) for _ in range(9)))
        await model.aclose()
        assert (await model.complete(QUESTION)).text == "x"
    assert served.most_in_flight == 3


# -- what passes -------------------------------------------------------------------------------------------------


async def test_a_passing_fault_is_retried_by_codechat_alone(served: Server) -> None:
    passing = [error(served, status, "later") for status in (408, 429, 500, 503, 529)] + [RESET, CUT_SHORT, *GARBAGE]
    async with model_at(served.provider, served.base_url, max_retries=20) as model:
        served.behaviour = script(*passing, "x")
        reply = await model.complete(QUESTION)
    assert (reply.text, reply.retries, reply.rate_limited) == ("x", len(passing), 1)
    assert len(served.calls) == len(passing) + 1


async def test_the_wait_that_the_provider_asks_for_is_kept(served: Server) -> None:
    limited = error(served, 429, "slow down", **{"retry-after": "3600"})
    served.behaviour = script(limited)
    with pytest.raises(InfrastructureError, match=r"HTTP 429: slow down.* 3600 s.* 600 s"):
        await ask(served)
    assert len(served.calls) == 1


@pytest.mark.parametrize("number", range(len(GARBAGE)))
async def test_a_body_that_is_no_answer_is_infrastructure(served: Server, number: int) -> None:
    served.behaviour = script(GARBAGE[number])
    with pytest.raises(InfrastructureError) as caught:
        await ask(served, max_retries=1)
    assert (caught.value.retries, len(served.calls)) == (1, 2)


@pytest.mark.parametrize("fault", [stall(60), drip(10)], ids=["stall", "drip"])
async def test_an_attempt_without_end_is_cut_and_repeated(served: Server, fault: Fault) -> None:
    served.behaviour = script(fault, "x")
    reply = await ask(served, timeout_s=2)
    assert (reply.text, reply.retries, len(served.calls)) == ("x", 1, 2)


FAULTS = {
    "anthropic": ("pause_turn", "error", "timeout"),
    "google": ("OTHER", "MALFORMED_FUNCTION_CALL", "LANGUAGE", "UNEXPECTED_TOOL_CALL", "FINISH_REASON_UNSPECIFIED"),
    "bedrock": ("malformed_model_output", "malformed_tool_use", "error"),
}
DEEP = "[" * 90_000 + "]" * 90_000


@pytest.mark.filterwarnings("ignore:.*is not a valid:UserWarning")
async def test_an_answer_that_the_provider_ended_is_asked_for_again(served: Server) -> None:
    for word in FAULTS[served.provider]:
        for text in ("def ", ""):
            before = len(served.calls)
            served.behaviour = script(*[Answer(text, word)] * (before + 2), "x")
            reply = await ask(served, cache=None)
            assert (reply.text, reply.retries, len(served.calls) - before) == ("x", 2, 3), word
            await cache.settle()
            cache.clear()
    served.behaviour = script(Answer("def ", FAULTS[served.provider][0]))
    with pytest.raises(InfrastructureError, match=FAULTS[served.provider][0]):
        await ask(served)


async def test_an_answer_that_met_the_end_of_the_context_is_an_overflow(served: Server) -> None:
    if served.provider == "google":  # says so by a status alone
        return
    served.behaviour = script(Answer("", "model_context_window_exceeded"))
    with pytest.raises(ContextOverflow, match="model_context_window_exceeded"):
        await ask(served)


async def test_a_body_that_breaks_parsers_is_infrastructure(served: Server) -> None:
    no_bug = (InfrastructureError, UserError)  # as far as the library reads such a refusal
    for text in (DEEP, f'{{"error": {DEEP}}}', '{"error": {"code": ' + "9" * 5000 + "}}"):
        for status, kind in ((200, InfrastructureError), (503, InfrastructureError), (400, no_bug)):
            served.behaviour = script(Fault(status, text))
            with pytest.raises(kind):
                await ask(served, max_retries=0)


@pytest.mark.filterwarnings("ignore:Failed to extract usage")
@pytest.mark.parametrize("count", [-5, 2**63, "many", 1.5, None])
async def test_a_count_that_is_none_never_lowers_a_sum(served: Server, count: Any) -> None:
    """A library may refuse such a body: then the call is repeated, and never counted."""
    body = served.writes(Call(0, "", {}, {"model": "m", "messages": []}), Answer("x"))
    name = {"anthropic": "usage", "google": "usageMetadata", "bedrock": "usage"}[served.provider]
    body[name] = dict.fromkeys(body[name], count)
    served.behaviour = script(Fault(200, body))
    try:
        usage = (await ask(served, max_retries=0)).usage
    except InfrastructureError:
        return
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens, usage.cache_write_tokens)
    assert all(0 <= each < 10**9 for each in counts) and usage.cached_input_tokens <= usage.input_tokens


async def test_the_query_of_an_address_goes_with_every_request(served: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()
    monkeypatch.setattr(served, "serves", lambda method, path, headers, body: asked.append(path))
    async with model_at(served.provider, f"{served.base_url}/?api-version=7") as model:
        if served.provider == "bedrock":
            with mistake("base_url"):
                await model.complete(QUESTION)
            return
        assert (await model.complete(QUESTION)).text == "x"
    assert asked and all("?" in path and path.endswith("api-version=7") for path in asked)


# -- what ends a call --------------------------------------------------------------------------------------------


async def test_a_conversation_too_long(served: Server) -> None:
    served.behaviour = script(error(served, 400, served.overflow))
    with pytest.raises(ContextOverflow, match="HTTP 400"):
        await ask(served)
    assert len(served.calls) == 1


async def test_an_account_without_money_is_down(served: Server) -> None:
    served.behaviour = script(error(served, *served.no_money))
    with pytest.raises(EndpointDown):
        await ask(served)
    assert len(served.calls) == 1


async def test_a_refusal_is_a_mistake_until_one_call_was_good(served: Server) -> None:
    remedies = {
        served.unknown: "check name",
        served.wrong_key: "key|credentials",
        (400, "no", ""): "change the model's",
    }
    for refusal, remedy in remedies.items():
        fault = error(served, *refusal)
        served.behaviour = script(fault)
        with pytest.raises(UserError, match=remedy):
            await ask(served)
        async with model_at(served.provider, served.base_url) as model:
            served.behaviour = script("x")
            await model.complete(QUESTION)
            served.behaviour = script(fault)
            with pytest.raises(InfrastructureError):
                await model.complete(QUESTION)


async def test_a_redirect_is_not_followed(served: Server) -> None:
    served.behaviour = script(Fault(307, "", {"location": "http://127.0.0.1:1/"}))
    with pytest.raises(UserError, match="redirect"):
        await ask(served)


async def test_a_refused_temperature_is_dropped_once_and_told(served: Server, caplog: pytest.LogCaptureFixture) -> None:
    refusal = error(served, 400, "`temperature` is deprecated for this model.")
    served.behaviour = lambda call: refusal if "'temperature'" in str(call.body["sent"]) else "x"
    async with model_at(served.provider, served.base_url, cache=True) as model:
        for number in range(3):
            asked = replace(QUESTION, messages=(*QUESTION.messages[:-1], Message("user", str(number))))
            assert (await model.complete(asked)).text == "x"
    assert len(served.calls) == 4
    assert [record.levelno for record in caplog.records].count(logging.WARNING) == 1
    assert not (await ask(served, cache=True)).cached


async def test_nobody_there_is_a_mistake_at_first_and_down_later(served: Server) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{probe.getsockname()[1]}"
    async with model_at(served.provider, nowhere) as model:
        with pytest.raises(UserError, match=f"nothing answers at {nowhere}"):
            await model.complete(QUESTION)
    with SERVERS[served.provider](script("x")) as gone:
        model = MODELS.build(
            MODELS.validate(
                {"kind": "provider", "provider": gone.provider, "name": "m", "base_url": gone.base_url}
                | {"max_retries": 1, "cache": False}
            )
        )
        await model.complete(QUESTION)
    with pytest.raises(EndpointDown, match="nothing answers at") as caught:
        await model.complete(QUESTION)
    await model.aclose()
    assert caught.value.retries == 1


@pytest.mark.parametrize("status", [307, 400, 401, 403, 404, 429, 500])
async def test_no_error_holds_the_key(served: Server, status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "codechat")
    secret = "aws-secret" if served.provider == "bedrock" else KEY
    served.behaviour = script(
        error(served, status, "" if served.provider == "bedrock" else f"Incorrect key: {secret}.")
    )
    with pytest.raises((UserError, InfrastructureError)) as caught:
        await ask(served)
    shown: BaseException | None = caught.value
    while shown is not None:
        assert secret not in f"{shown} {shown!r} {getattr(shown, 'remedy', '')}"
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)
    assert secret not in caplog.text


async def test_a_missing_extra_is_told_with_its_remedy(served: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name.partition(".")[0] == "pydantic_ai":
            raise ModuleNotFoundError(f"No module named {name!r}", name="pydantic_ai")
        return found(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with mistake("pydantic_ai", "pip install 'codechat[providers]'"):
        await ask(served)
    assert served.calls == []
