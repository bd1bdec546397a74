"""The openai model against a real HTTP server: everything here crosses a socket."""

import asyncio
import gzip
import logging
import math
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Message, Reply, Usage
from codechat.base.errors import ContextOverflow, ConversationRefused, EndpointDown, InfrastructureError, UserError
from codechat.models import MODELS, Model, Request
from codechat.models.endpoints import Describable
from codechat.testing import (
    CUT_SHORT,
    EMPTY_CHOICES,
    RESET,
    TRUNCATED_JSON,
    Answer,
    Behaviour,
    Call,
    Fault,
    OpenAIServer,
    Result,
    drip,
    error,
    overflow,
    rate_limited,
    refuses_temperature,
    stall,
)
from support.mistakes import mistake

KEY = "sk-very-secret-0123456789"
QUESTION = Request((Message("system", "Be brief."), Message("user", "Write x.")), "T/0", 0)
Serve = Callable[[Behaviour], OpenAIServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda behaviour: stack.enter_context(OpenAIServer(behaviour))


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.models.calls.retry.FIRST_WAIT_S", 0.001)


@asynccontextmanager
async def model_at(base_url: str, **options: Any) -> AsyncIterator[Model]:
    fixed = {"kind": "openai", "name": "test-model", "base_url": base_url, "max_retries": 2, "cache": False}
    config = MODELS.validate(fixed | options)
    model = MODELS.build(config)
    try:
        yield model
    finally:
        await model.aclose()


async def ask(server: OpenAIServer, **options: Any) -> Reply:
    async with model_at(server.base_url, **options) as model:
        return await model.complete(QUESTION)


def script(*results: Result) -> Behaviour:
    """Answer call n with entry n; the last entry repeats."""
    return lambda call: results[min(call.number, len(results) - 1)]


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# -- requests and replies ----------------------------------------------------------------------------------------


async def test_chat_sends_the_conversation_and_reads_the_reply(serve: Serve) -> None:
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}
    server = serve(script(Answer("x = 1", "length", usage, {"reasoning_content": "hmm"})))
    reply = await ask(server, max_tokens=50, reasoning_effort="low", extra_body={"top_p": 0.5})
    assert (reply.text, reply.finish_reason, reply.usage, reply.retries) == ("x = 1", "length", Usage(11, 7, 4), 0)
    assert reply.latency_s > 0
    assert server.calls[0].path == "/v1/chat/completions"
    assert server.calls[0].body == {
        "model": "test-model",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Write x."}],
        "temperature": 0.0,
        "max_tokens": 50,
        "reasoning_effort": "low",
        "top_p": 0.5,
    }


async def test_responses_sends_the_conversation_and_reads_the_reply(serve: Serve) -> None:
    usage = {"input_tokens": 11, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 4}}
    server = serve(script(Answer("x = 1", "length", usage)))
    reply = await ask(server, api="responses", temperature=None, max_tokens=50, reasoning_effort="high")
    assert (reply.text, reply.finish_reason, reply.usage) == ("x = 1", "length", Usage(11, 7, 4))
    assert server.calls[0].path == "/v1/responses"
    assert server.calls[0].body == {
        "model": "test-model",
        "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Write x."}],
        "store": False,
        "max_output_tokens": 50,
        "reasoning": {"effort": "high"},
    }


@pytest.mark.parametrize(
    ("answer", "text", "finish"),
    [
        (Answer(None, "content_filter"), "", "content_filter"),
        (Answer(None, message={"refusal": "I can't."}), "I can't.", "stop"),
        (Answer(None, "tool_calls", message={"tool_calls": []}), "", "tool_calls"),
        (Answer("a\ud800b\x00\u00e9"), "a\ufffdb\x00\u00e9", "stop"),
    ],
)
async def test_an_odd_answer_is_still_an_answer(serve: Serve, answer: Result, text: str, finish: str) -> None:
    reply = await ask(serve(script(answer)))
    assert (reply.text, reply.finish_reason) == (text, finish)


async def test_calls_in_flight_never_pass_the_limit(serve: Serve) -> None:
    async def slow(call: Call) -> str:
        await asyncio.sleep(0.005)
        return "x"

    server = serve(slow)
    async with model_at(server.base_url, max_concurrency=3) as model:
        await asyncio.gather(*(model.complete(QUESTION) for _ in range(12)))
    assert (len(server.calls), server.most_in_flight) == (12, 3)


async def test_sixty_four_connections_at_once(serve: Serve) -> None:
    crowd = asyncio.Barrier(64)

    async def wait_for_the_others(call: Call) -> str:
        await crowd.wait()
        return call.messages[-1]["content"]

    server = serve(wait_for_the_others)
    async with model_at(server.base_url, max_concurrency=64) as model:
        requests = [Request((Message("user", str(n)),), "T", 0) for n in range(128)]
        replies = await asyncio.gather(*(model.complete(request) for request in requests))
    assert [reply.text for reply in replies] == [str(n) for n in range(128)]
    assert server.most_in_flight == 64


async def test_a_closed_model_connects_again(serve: Serve) -> None:
    server = serve(script("x"))
    async with model_at(server.base_url) as model:
        await model.complete(QUESTION)
        await model.aclose()
        assert (await model.complete(QUESTION)).text == "x"


# -- retries -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        *(
            rate_limited(),
            rate_limited(0.001),
            rate_limited("Wed, 21 Oct 2015 07:28:00 GMT"),
            rate_limited("in a while"),
        ),
        *(error(408, "late"), error(409, "locked"), error(500, "oops"), error(503, "busy"), error(529, "overloaded")),
        *(RESET, CUT_SHORT, TRUNCATED_JSON, EMPTY_CHOICES),
    ],
    ids=["429", "429-after", "429-date", "429-odd", "408", "409", "500", "503", "529", "reset", "cut", "json", "empty"],
)
@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_passing_fault_is_retried_and_counted(serve: Serve, fault: Fault, api: str) -> None:
    server = serve(script(fault, fault, "x"))
    reply = await ask(server, api=api)
    assert (reply.text, reply.retries, len(server.calls)) == ("x", 2, 3)
    assert reply.rate_limited == (2 if fault.status == 429 else 0)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (rate_limited(), "HTTP 429: Rate limit reached"),
        (error(502, "bad gateway"), "HTTP 502"),
        (RESET, "the connection broke"),
        (CUT_SHORT, "the connection broke"),
        (TRUNCATED_JSON, "not JSON"),
        (EMPTY_CHOICES, "no choice"),
        (Fault(200, "[]"), "not a JSON object"),
        (Fault(200, {"choices": [{"text": "x"}]}), "another shape"),
        (Fault(200, {"error": {"message": "upstream is gone"}}), "upstream is gone"),
    ],
)
async def test_a_lasting_fault_is_infrastructure(serve: Serve, fault: Fault, told: str) -> None:
    server = serve(script(fault))
    with pytest.raises(InfrastructureError, match=told) as caught:
        await ask(server)
    assert len(server.calls) == 3
    assert not isinstance(caught.value, EndpointDown)
    assert (caught.value.retries, caught.value.rate_limited) == (2, 3 if fault.status == 429 else 0)


@pytest.mark.parametrize("fault", [stall(60), drip(10)], ids=["stall", "drip"])
async def test_an_attempt_without_end_is_cut_and_repeated(serve: Serve, fault: Fault) -> None:
    server = serve(script(fault, "x"))
    reply = await ask(server, timeout_s=2)
    assert (reply.text, reply.retries, len(server.calls)) == ("x", 1, 2)


async def test_an_answer_that_drips_in_time_is_an_answer(serve: Serve) -> None:
    assert (await ask(serve(script(drip(0.0001))))).text == "slowly"


async def test_more_patience_than_a_call_has_is_not_shown(serve: Serve) -> None:
    server = serve(script(rate_limited(3600)))
    with pytest.raises(InfrastructureError, match=r"HTTP 429.* 3600 s.* 600 s"):
        await ask(server)
    assert len(server.calls) == 1


async def test_every_attempt_counts_against_the_limits(serve: Serve) -> None:
    async def fail(call: Call) -> Result:
        await asyncio.sleep(0.002)
        return error(500, "oops") if call.number < 20 else "x"

    server = serve(fail)
    async with model_at(server.base_url, max_concurrency=2, max_retries=20) as model:
        replies = await asyncio.gather(*(model.complete(QUESTION) for _ in range(10)))
    assert server.most_in_flight == 2
    assert sum(reply.retries for reply in replies) == 20


async def test_models_of_one_address_share_its_limits(serve: Serve) -> None:
    async def slow(call: Call) -> str:
        await asyncio.sleep(0.005)
        return "x"

    server = serve(slow)
    async with (
        model_at(server.base_url, name="tested", max_concurrency=3) as tested,
        model_at(server.base_url, name="judge", max_concurrency=9) as judge,
    ):
        await tested.complete(QUESTION)
        await asyncio.gather(*(model.complete(QUESTION) for model in (tested, judge) for _ in range(10)))
    assert server.most_in_flight == 3


async def test_requests_and_tokens_per_minute_hold_calls_back(serve: Serve) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 500}
    tokens = {"tokens_per_minute": 1_800_000, "max_tokens": 1500}
    for limit in ({"requests_per_minute": 1200}, tokens):  # 50 ms a call
        server = serve(script(Answer("x", usage=usage)))
        async with model_at(server.base_url, **limit) as model:
            await model.complete(QUESTION)
            started = asyncio.get_running_loop().time()
            await asyncio.gather(*(model.complete(QUESTION) for _ in range(4)))
            assert asyncio.get_running_loop().time() - started > 0.1


async def test_adaptive_calls_find_what_the_endpoint_takes(serve: Serve) -> None:
    refused = 0

    async def up_to_six(call: Call) -> Result:
        nonlocal refused
        if server.in_flight > 6:
            refused += 1
            return rate_limited()
        await asyncio.sleep(0.005)
        return "x"

    server = serve(up_to_six)
    async with model_at(server.base_url, max_concurrency=64, adaptive_concurrency=True, max_retries=20) as model:
        replies = await asyncio.gather(*(model.complete(QUESTION) for _ in range(200)))
    assert {reply.text for reply in replies} == {"x"}
    assert server.most_in_flight < 16
    assert sum(reply.rate_limited for reply in replies) == refused > 0


async def test_no_answer_in_time(serve: Serve) -> None:
    server = serve(script(stall(5)))
    with pytest.raises(InfrastructureError, match=r"gave no answer in 0\.1 s"):
        await ask(server, timeout_s=0.1, max_retries=0)
    with pytest.raises(InfrastructureError, match=r"no answer in .* 0\.2 s"):
        await ask(server, timeout_s=0.1, max_retries=20)


async def test_an_endpoint_that_went_away_is_down() -> None:
    with OpenAIServer(script("x")) as server:
        model = MODELS.build(
            MODELS.validate({"kind": "openai", "name": "m", "base_url": server.base_url, "max_retries": 2})
        )
        await model.complete(QUESTION)
    with pytest.raises(EndpointDown, match="nothing answers at") as caught:
        await model.complete(replace(QUESTION, messages=(Message("user", "And now?"),)))
    await model.aclose()
    assert caught.value.retries == 2


async def test_a_prompt_stopped_by_a_filter_is_never_scored(serve: Serve) -> None:
    server = serve(script(error(400, "flagged as possibly violating our policy", "invalid_prompt")))
    with pytest.raises(InfrastructureError, match="flagged"):
        await ask(server)


async def test_an_account_without_quota_is_down(serve: Serve) -> None:
    for refusal in (
        error(429, "You exceeded your current quota", "insufficient_quota"),
        error(402, "Insufficient Balance: your current quota is exceeded"),
    ):
        server = serve(script(refusal))
        with pytest.raises(EndpointDown, match="current quota"):
            await ask(server)
        assert len(server.calls) == 1


# -- ends that are not the model's -------------------------------------------------------------------------------


def of_upstream(words: str, code: object) -> Fault:
    """A good status with an error inside of the choice, as gateways pass one on."""
    choice = {"message": {"role": "assistant", "content": "def "}, "finish_reason": "error"}
    return Fault(200, {"choices": [{**choice, "error": {"message": words, "code": code}}]})


def response(status: str, reason: str | None = None, text: str = "def ") -> Fault:
    """An answer of the responses API."""
    output = [{"type": "message", "content": [{"type": "output_text", "text": text}]}] if text else []
    details = {"reason": reason} if reason else None
    return Fault(200, {"status": status, "incomplete_details": details, "output": output, "error": None})


@pytest.mark.parametrize(
    "fault",
    [
        *(Answer("def ", word) for word in ("error", "abort", "timeout", "engine_overloaded", "OTHER")),
        *(Answer(None, word) for word in ("weird", "insufficient_system_resource", "load")),
        Fault(200, {"choices": [{"message": {"content": ""}, "finish_reason": None}]}),
        Fault(200, {"choices": [{"message": {"content": "x"}, "finish_reason": {"type": "abort"}}]}),
        *(of_upstream("Upstream error", code) for code in (502, "server_error", None)),
        Fault(200, {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}}),
    ],
)  # fmt: skip
async def test_an_answer_that_the_endpoint_ended_is_asked_for_again(serve: Serve, fault: Result) -> None:
    server = serve(script(fault, fault, "x"))
    reply = await ask(server, cache=None)
    assert (reply.text, reply.retries, len(server.calls)) == ("x", 2, 3)
    with pytest.raises(InfrastructureError) as caught:
        await ask(serve(script(fault)), cache=None)
    assert caught.value.retries == 2
    assert (await ask(server, cache=None)).cached


@pytest.mark.parametrize(
    "fault",
    [
        *(response(status) for status in ("failed", "cancelled", "incomplete", "in_progress", "queued")),
        *(response("incomplete", reason) for reason in ("interrupted", "weird")),
        response("failed", text=""),
    ],
)  # fmt: skip
async def test_a_response_that_is_not_whole_is_asked_for_again(serve: Serve, fault: Fault) -> None:
    reply = await ask(serve(script(fault, fault, "x")), api="responses")
    assert (reply.text, reply.retries) == ("x", 2)


async def test_limits_and_filters_of_a_response_are_answers(serve: Serve) -> None:
    for reason, finish in (("max_output_tokens", "length"), ("content_filter", "content_filter")):
        reply = await ask(serve(script(response("incomplete", reason))), api="responses")
        assert (reply.text, reply.finish_reason, reply.retries) == ("def ", finish, 0)


@pytest.mark.parametrize(
    "fault",
    [
        *(Answer(text, word) for text in ("", "def ") for word in ("model_context_window_exceeded", "context_length")),
        of_upstream("This endpoint's maximum context length is 8192 tokens", 400),
        Fault(200, {"error": {"message": "Prompt too long", "code": 400}}),
        Fault(200, {"choices": None, "base_resp": {"status_code": 1039, "status_msg": "token limit"}}),
    ],
)  # fmt: skip
async def test_an_overflow_with_a_good_status_ends_the_dialogue(serve: Serve, fault: Result) -> None:
    server = serve(script(fault))
    with pytest.raises(ContextOverflow):
        await ask(server)
    assert len(server.calls) == 1


DEEP = '{"error": {"message": "no", "code": ' + "[" * 90_000 + "]" * 90_000 + "}}"


@pytest.mark.parametrize("body", [DEEP, '{"error": {"code": ' + "9" * 5000 + "}}"], ids=["deep", "a long number"])
async def test_a_body_that_breaks_parsers_is_infrastructure(serve: Serve, body: str) -> None:
    for status, kind in ((200, InfrastructureError), (500, InfrastructureError), (400, UserError)):
        with pytest.raises(kind):
            await ask(serve(script(Fault(status, body))))
    server = serve(script("x"))
    server.models_fault = Fault(200, body)
    assert (await ask(server)).text == "x"


async def test_a_body_without_end_is_infrastructure(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.models.calls.transport.MOST_BYTES", 100_000)
    bomb = gzip.compress(b" " * 200_000)
    for fault in (Fault(200, "x" * 200_000), Fault(200, bomb, {"content-encoding": "gzip"})):
        with pytest.raises(InfrastructureError, match="more than 100000 bytes"):
            await ask(serve(script(fault)))


@pytest.mark.parametrize("usage", [-5, 2**63, 1e308, math.nan, "many", True, None, [3], {"n": 3}])
async def test_a_count_that_is_none_counts_nothing(serve: Serve, usage: Any) -> None:
    counts = {"prompt_tokens": usage, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": usage}}
    assert (await ask(serve(script(Answer("x", usage=counts))))).usage == Usage(0, 7)
    for odd in (usage, {"prompt_tokens_details": usage, "prompt_tokens": 3}):
        body = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": odd}
        assert (await ask(serve(script(Fault(200, body))))).usage.output_tokens == 0


async def test_a_list_of_models_of_any_kind_gives_facts_that_can_be_kept(serve: Serve) -> None:
    server = serve(script("x"))
    entry = '{"id": "test-model", "root": "\\ud800", "created": 1' + "0" * 400 + ', "n": NaN, "max_model_len": 9}'
    server.models_fault = Fault(200, '{"data": [' + entry + ", 3, null]}")
    async with model_at(server.base_url) as model:
        assert isinstance(model, Describable)
        info = await model.describe()
    assert info is not None and info.facts == {"id": "test-model", "root": "\ufffd", "max_model_len": 9}
    info.text().encode()


# -- the response cache ------------------------------------------------------------------------------------------


async def asked_twice(server: OpenAIServer, **options: Any) -> int:
    """How many calls it takes to ask the same twice, by two models one after the other."""
    before = len(server.calls)
    first, again = [await ask(server, **{"cache": None, **options}) for _ in range(2)]
    assert replace(again, cached=False) == replace(first, retries=0) or not again.cached
    return len(server.calls) - before


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        ({}, 1),
        ({"cache": True}, 1),
        ({"cache": False}, 2),
        ({"api": "responses"}, 1),
        ({"max_tokens": 5, "reasoning_effort": "low", "extra_body": {"top_p": 0.5}}, 1),
        ({"temperature": 0.5}, 2),
        ({"temperature": None}, 2),
        ({"extra_body": {"temperature": 0.5}}, 2),
        ({"temperature": 0.5, "cache": True}, 1),
        ({"temperature": None, "cache": True}, 1),
        ({"temperature": None, "extra_body": {"temperature": 0}}, 1),
    ],
)
async def test_greedy_replies_are_kept_and_sampled_ones_where_asked_for(
    serve: Serve, options: dict[str, Any], calls: int
) -> None:
    assert await asked_twice(serve(script("x")), **options) == calls


async def test_what_changes_the_answer_is_another_question(serve: Serve) -> None:
    server = serve(script("x"))
    changes: list[dict[str, Any]] = [
        *({}, {"name": "other"}, {"api": "responses"}, {"max_tokens": 5}, {"reasoning_effort": "low"}),
        *({"extra_body": {"top_p": 0.5}}, {"extra_body": {"seed": 1}}),
    ]
    for options in changes:
        await ask(server, cache=None, **options)
    assert len(server.calls) == len(changes)
    where_and_how_fast = {"max_concurrency": 2, "timeout_s": 9, "max_retries": 1, "requests_per_minute": 6000}
    await ask(server, cache=None, **where_and_how_fast)
    assert len(server.calls) == len(changes)


async def test_samples_are_told_apart_where_decoding_is_not_greedy(serve: Serve) -> None:
    server = serve(script("x"))
    for options, calls in (({"temperature": 0.5}, 3), ({}, 1)):
        before = len(server.calls)
        for sample in (0, 1, 2, 1):
            async with model_at(server.base_url, cache=True, **options) as model:
                await model.complete(replace(QUESTION, sample=sample))
        assert len(server.calls) - before == calls


@pytest.mark.parametrize(
    ("fault", "raised"),
    [(error(500, "oops"), InfrastructureError), (overflow(), ContextOverflow), (EMPTY_CHOICES, InfrastructureError)],
)
async def test_no_failure_is_kept(serve: Serve, fault: Fault, raised: type[Exception]) -> None:
    server = serve(script(fault, "x", "y"))
    with pytest.raises(raised):
        await ask(server, cache=None, max_retries=0)
    assert (await ask(server, cache=None)).text == "x"
    assert (await ask(server, cache=None)).text == "x"


async def test_a_cut_reply_is_kept_and_a_filtered_one_is_not(serve: Serve) -> None:
    assert await asked_twice(serve(script(Answer("x", "length")))) == 1
    assert await asked_twice(serve(script(Answer("", "content_filter")))) == 2


async def test_an_answer_without_the_temperature_that_was_asked_for_is_not_kept(serve: Serve) -> None:
    server = serve(lambda call: refuses_temperature() if "temperature" in call.body else "x")
    assert await asked_twice(server, cache=True) == 4


async def test_a_renamed_token_field_does_not_hide_what_is_kept(serve: Serve) -> None:
    text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    fault = error(400, text, "unsupported_parameter", "max_tokens")
    server = serve(lambda call: fault if "max_tokens" in call.body else "x")
    assert await asked_twice(server, max_tokens=9) == 2


async def test_what_is_kept_needs_neither_key_nor_endpoint(
    serve: Serve, key: str, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer(script("x")) as server:
        await ask(server, cache=None, api_key_env=key)
    monkeypatch.delenv("TEST_KEY")
    assert (await ask(server, cache=None, api_key_env=key)).cached
    for file in (cache_folder / "replies").iterdir():
        assert KEY.encode() not in file.read_bytes()


# -- what the model cannot take ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        overflow(),
        overflow(wording="vllm"),
        error(400, "Your input exceeds the context window of this model.", "context_length_exceeded"),
        error(400, "prompt is too long: 200001 tokens > 200000 maximum"),
        error(400, "the request exceeds the available context size"),
        error(400, "The input token count (9000) exceeds the maximum number of tokens allowed (8192)."),
        error(422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 and 512"),
    ],
)
@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_conversation_too_long(serve: Serve, fault: Fault, api: str) -> None:
    server = serve(script(fault))
    with pytest.raises(ContextOverflow, match="HTTP 4"):
        await ask(server, api=api)
    assert len(server.calls) == 1


async def test_a_token_cap_beyond_the_context_is_a_mistake(serve: Serve) -> None:
    with mistake("max_tokens=4096", "2048"):
        await ask(serve(script(overflow(2048, "vllm"))), max_tokens=4096)


async def test_a_refused_temperature_is_dropped_once_and_told(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    server = serve(lambda call: refuses_temperature() if "temperature" in call.body else "x")
    async with model_at(server.base_url) as model:
        assert [(await model.complete(QUESTION)).text for _ in range(3)] == ["x"] * 3
    assert ["temperature" in call.body for call in server.calls] == [True, False, False, False]
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "'temperature' does not support 0" in warnings[0].getMessage()


async def test_a_temperature_of_zero_gives_way_to_the_least_one(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    positive = error(422, "Input validation error: `temperature` must be strictly positive")
    server = serve(lambda call: positive if call.body.get("temperature") == 0 else "x")
    assert await asked_twice(server, cache=True) == 4
    assert [call.body["temperature"] for call in server.calls] == [0, 0.01, 0, 0.01]
    assert "strictly positive" in caplog.text


async def test_a_refusal_that_is_not_mended_teaches_nothing(serve: Serve) -> None:
    """A text that only mentions the temperature must not change how the replies after it are decoded."""
    odd = error(400, "unknown field 'seed'; known fields are: messages, temperature")
    server = serve(lambda call: odd if call.number in (1, 2) else "x")
    async with model_at(server.base_url) as model:
        await model.complete(QUESTION)
        with pytest.raises(ConversationRefused):
            await model.complete(QUESTION)
        await model.complete(QUESTION)
    assert ["temperature" in call.body for call in server.calls] == [True, True, False, True]


async def test_calls_under_way_together_all_learn_what_is_refused(serve: Serve) -> None:
    tokens = error(400, "'max_tokens' is not supported with this model", "unsupported_parameter", "max_tokens")

    async def behave(call: Call) -> Result:
        await asyncio.sleep(0.01)
        wrong = [refuses_temperature()] * ("temperature" in call.body) + [tokens] * ("max_tokens" in call.body)
        return wrong[call.number % len(wrong)] if wrong else "x"

    server = serve(behave)
    async with model_at(server.base_url, max_tokens=9) as model:
        replies = await asyncio.gather(*(model.complete(QUESTION) for _ in range(8)))
    assert {reply.text for reply in replies} == {"x"}


async def test_what_the_user_insists_on_is_not_dropped(serve: Serve) -> None:
    server = serve(script(refuses_temperature()))
    with pytest.raises(UserError, match="'temperature' does not support 0"):
        await ask(server, extra_body={"temperature": 0})
    assert len(server.calls) == 2


async def test_a_refused_token_field_is_renamed(serve: Serve) -> None:
    text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    fault = error(400, text, "unsupported_parameter", "max_tokens")
    server = serve(lambda call: fault if "max_tokens" in call.body else "x")
    assert (await ask(server, max_tokens=9)).text == "x"
    assert server.calls[1].body["max_completion_tokens"] == 9


async def test_a_temperature_out_of_range_is_not_dropped(serve: Serve) -> None:
    text = "Invalid 'temperature': decimal above maximum value. Expected a value <= 1."
    server = serve(script(error(400, text, "decimal_above_max_value", "temperature")))
    with pytest.raises(UserError, match="decimal above maximum"):
        await ask(server, temperature=2)
    assert len(server.calls) == 1


# -- mistakes of the user ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [None, error(404, "no such page"), Fault(200, "not json"), error(500, "oops")])
async def test_the_first_call_tries_the_endpoint_once_and_takes_any_answer(serve: Serve, fault: Fault | None) -> None:
    server = serve(script("x"))
    server.models_fault = fault
    async with model_at(server.base_url) as model:
        await model.check()
        assert server.probes == 0
        await asyncio.gather(*(model.complete(QUESTION) for _ in range(5)))
        await model.complete(QUESTION)
    assert (server.probes, len(server.calls)) == (1, 6)


async def test_the_first_call_finds_nobody_there() -> None:
    base_url = f"http://127.0.0.1:{closed_port()}/v1"
    async with model_at(base_url) as model:
        calls = [model.complete(QUESTION) for _ in range(3)]
        problems = await asyncio.gather(*calls, return_exceptions=True)
    for problem in problems:
        assert isinstance(problem, UserError)
        assert f"nothing answers at {base_url}" in str(problem)
        assert "set base_url" in str(problem)


async def test_an_unknown_model_is_answered_with_the_served_ones(serve: Serve) -> None:
    server = serve(script(error(404, "The model `test-modell` does not exist.", "model_not_found")))
    async with model_at(server.base_url, name="test-modell") as model:
        with mistake("'test-model'"):
            await model.complete(QUESTION)


@pytest.mark.parametrize("status", [307, 400, 401, 403, 404, 422])
async def test_a_refusal_is_a_mistake_until_one_call_was_good(serve: Serve, status: int) -> None:
    bad = error(status, "no, not that")
    with pytest.raises(UserError):
        await ask(serve(script(bad)))
    async with model_at(serve(script("x", bad)).base_url) as model:
        await model.complete(QUESTION)
        with pytest.raises(InfrastructureError, match=f"HTTP {status}"):
            await model.complete(QUESTION)


async def test_a_refused_conversation_is_no_sign_of_a_dead_endpoint(serve: Serve) -> None:
    kinds = {400: ConversationRefused, 413: ConversationRefused, 422: ConversationRefused, 403: InfrastructureError,
             404: InfrastructureError, 405: InfrastructureError}  # fmt: skip
    for status, kind in kinds.items():
        async with model_at(serve(script("x", error(status, "no, not that"))).base_url) as model:
            await model.complete(QUESTION)
            with pytest.raises(InfrastructureError) as caught:
                await model.complete(QUESTION)
        assert type(caught.value) is kind


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_the_query_of_an_address_goes_with_every_request(
    serve: Serve, api: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(script("x"))
    asked = list[tuple[str, str]]()
    monkeypatch.setattr(server, "serves", lambda method, path, headers, body: asked.append((method, path)))
    async with model_at(f"{server.base_url}/?api-version=2024-10-21&a=b", api=api, stream=stream) as model:
        reply = await model.complete(QUESTION)
    page = "responses" if api == "responses" else "chat/completions"
    query = "?api-version=2024-10-21&a=b"
    assert asked == [("GET", f"/v1/models{query}"), ("POST", f"/v1/{page}{query}")]
    assert reply.text == "x"


async def test_a_redirect_is_not_followed(serve: Serve) -> None:
    server = serve(script(Fault(307, "", {"location": "http://127.0.0.1:1/v1/chat/completions"})))
    with pytest.raises(UserError, match="redirect"):
        await ask(server)


# -- keys --------------------------------------------------------------------------------------------------------


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TEST_KEY", KEY + "\n")
    return "TEST_KEY"


async def test_the_key_is_sent_as_a_bearer(serve: Serve, key: str) -> None:
    server = serve(script("x"))
    await ask(server, api_key_env=key)
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"


async def test_every_call_has_the_same_headers_and_its_own_body(serve: Serve, key: str) -> None:
    server, texts = serve(script("x")), ["short", "länger" * 9000, "s"]
    async with model_at(server.base_url, api_key_env=key) as model:
        for text in texts:
            await model.complete(replace(QUESTION, messages=(Message("user", text),)))
    assert [call.body["messages"][0]["content"] for call in server.calls] == texts
    first, *others = [{**call.headers, "content-length": ""} for call in server.calls]
    assert first["authorization"] == f"Bearer {KEY}" and others == [first] * 2


async def test_nothing_is_told_of_this_machine(serve: Serve) -> None:
    server = serve(script("x"))
    await ask(server)
    assert not [name for name in server.calls[0].headers if "stainless" in name]


async def test_no_key_of_the_environment_reaches_an_endpoint_without_keys(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(variable, KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    server = serve(script("x"))
    await ask(server)
    assert KEY not in str(server.calls[0].headers)


async def test_a_missing_key_is_told_by_its_variable(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_KEY", raising=False)
    server = serve(script("x"))
    async with model_at(server.base_url, api_key_env="TEST_KEY") as model:
        with mistake("TEST_KEY"):
            await model.complete(QUESTION)
    assert server.probes == len(server.calls) == 0


def leaks(problem: BaseException) -> bool:
    """Whether the key is in a message of the exception or of one that a traceback would show."""
    shown: BaseException | None = problem
    while shown is not None:
        if KEY in f"{shown} {shown!r} {getattr(shown, 'remedy', '')}":
            return True
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)
    return False


@pytest.mark.parametrize("status", [307, 400, 401, 403, 404, 429, 500])
async def test_no_error_holds_the_key(serve: Serve, key: str, status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = serve(script(error(status, f"Incorrect API key provided: {KEY}. 'temperature' is what you sent.")))
    server.models_fault = error(status, f"Incorrect API key provided: {KEY}.")
    async with model_at(server.base_url, api_key_env=key) as model:
        with pytest.raises((UserError, InfrastructureError)) as caught:
            await model.complete(QUESTION)
    assert not leaks(caught.value)
    assert KEY not in caplog.text
    if status in (401, 403):
        assert "TEST_KEY" in str(caught.value)


async def test_an_unusable_key_is_not_shown(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY + "\n" + KEY)
    async with model_at(serve(script("x")).base_url, api_key_env="TEST_KEY") as model:
        with pytest.raises(UserError, match="TEST_KEY") as caught:
            await model.complete(QUESTION)
    assert not leaks(caught.value)


async def test_a_server_that_asks_for_a_key(serve: Serve) -> None:
    with pytest.raises(UserError, match="set api_key_env"):
        await ask(serve(script(error(401, "no key"))))


def test_a_model_serves_one_event_loop_after_another() -> None:
    config = {"kind": "openai", "name": "test-model", "max_concurrency": 1, "cache": False}
    with OpenAIServer(script("x")) as server:
        model = MODELS.build(MODELS.validate(config | {"base_url": server.base_url}))

        async def use() -> None:
            await asyncio.gather(*(model.complete(QUESTION) for _ in range(3)))
            await model.aclose()

        asyncio.run(use())
        asyncio.run(use())
        assert len(server.calls) == 6
