"""Streamed answers: read as the same answers without a stream, asked for where the endpoint gives no others."""

import json
import logging
import re
import time
from pathlib import Path
from typing import Any

import pytest

from codechat import compose, run
from codechat.base.domain import Message, Reply, Usage
from codechat.base.errors import InfrastructureError
from codechat.models import MODELS, Model, Request
from codechat.models.openai import Unreadable, reply_of
from codechat.models.remote.failures import Refusal
from codechat.testing import (
    Answer,
    Call,
    Fault,
    OpenAIServer,
    Result,
    dataset_tasks,
    only_streams,
    overflow,
    reference_solver,
)
from codechat.testing.cells import records
from support.mistakes import mistake

QUESTION = Request((Message("user", "Write x."),), "T/0", 0)
EVENTS = {"content-type": "text/event-stream"}


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.models.calls.retry.FIRST_WAIT_S", 0.001)


def model_at(server: OpenAIServer, **options: Any) -> Model:
    fixed = {"kind": "openai", "name": "test-model", "base_url": server.base_url, "max_retries": 1, "cache": False}
    return MODELS.build(MODELS.validate(fixed | options))


async def ask(server: OpenAIServer, **options: Any) -> Reply:
    model = model_at(server, **options)
    try:
        return await model.complete(QUESTION)
    finally:
        await model.aclose()


def chunk(content: Any = None, finish: str | None = None, **delta: Any) -> str:
    value = {"choices": [{"index": 0, "delta": {"content": content, **delta}, "finish_reason": finish}]}
    return f"data: {json.dumps(value)}\n\n"


DONE = "data: [DONE]\n\n"
STREAMS = {
    "comments": (": OPENROUTER PROCESSING\n\n" + chunk("a") + ":\n\n" + chunk("b", "stop") + DONE, "ab"),
    "carriage returns": ((chunk("a") + chunk("b", "stop") + DONE).replace("\n", "\r\n"), "ab"),
    "lone carriage returns": ((chunk("a") + chunk("b", "stop") + DONE).replace("\n", "\r"), "ab"),
    "no space": (re.sub("data: ", "data:", chunk("a") + chunk("b", "stop") + DONE), "ab"),
    "data in lines": ('data: {"choices": [{"delta":\ndata: {"content": "ab"}, "finish_reason": "stop"}]}\n\n', "ab"),
    "line separators in a text": (chunk("a\u2028\x85\x0b").replace("\\u2028", "\u2028") + chunk("b", "stop"), "a\u2028\x85\x0bb"),
    "no end mark": (chunk("a") + chunk("b", "stop"), "ab"),
    "no last empty line": ((chunk("a") + chunk("b", "stop")).rstrip(), "ab"),
    "no finish reason": (chunk("ab") + DONE, "ab"),
    "named events": (f"event: message\nid: 1\nretry: 5\n{chunk('ab', 'stop')}event: ping\ndata: {{\"type\": \"ping\"}}\n\n", "ab"),
    "a first mark of order": ("\ufeff" + chunk("ab", "stop"), "ab"),
    "parts": (chunk([{"type": "thinking", "thinking": []}]) + chunk([{"type": "text", "text": "a"}]) + chunk("b", "stop"), "ab"),
    "other choices": (chunk("ab").replace('"index": 0', '"index": 1') + chunk("ab", "stop"), "ab"),
    "a whole message": ('data: {"choices": [{"message": {"content": "ab"}, "finish_reason": "stop"}]}\n\n' + DONE, "ab"),
    "after the end": (chunk("ab", "stop") + DONE + "nonsense\n\n", "ab"),
    "a refusal": (chunk(refusal="a") + chunk("", "stop", refusal="b"), "ab"),
    "reasoning": (chunk(reasoning_content="hm ") + chunk(reasoning="hm") + chunk("ab", "stop"), "ab"),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_read(name: str) -> None:
    body, text = STREAMS[name]
    assert reply_of("chat", body.encode(), "text/event-stream; charset=utf-8").text == text
    assert reply_of("chat", body.encode(), "application/json").text == text, "some servers name another type"


def test_a_long_stream_takes_linear_time() -> None:
    one = chunk("a", reasoning_details=[{"type": "reasoning.text", "text": "b"}])
    body = (one * 60_000 + chunk("", "stop")).encode()
    began = time.process_time()
    reply = reply_of("chat", body)
    assert time.process_time() - began < 3, "it held the event loop"
    assert len(reply.text) == 60_000 and reply.reasoning.startswith("b\nb")


BROKEN = {
    "early": chunk("def f(): return 1"),
    "cut in an event": chunk("a") + chunk("b", "stop")[:-30],
    "an error": chunk("a") + 'data: {"error": {"message": "the engine died"}}\n\n' + DONE,
    "an error event": chunk("a", "stop") + 'event: error\ndata: {"type": "overloaded", "message": "busy"}\n\n',
    "an error without data": chunk("a", "stop") + "event: error\n\n",
    "an error of older servers": chunk("a") + 'data: {"object": "error", "message": "aborted", "code": 500}\n\n' + DONE,
    "a bare error": chunk("a") + 'data: {"code": 500, "message": "aborted"}\n\n' + DONE,
    "no choice": DONE,
    "nothing": "",
    "no json": "data: busy\n\n",
    "another shape": 'data: {"choices": 3}\n\n',
    "a list": "data: [1]\n\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_stream_without_a_whole_answer_is_no_answer(name: str) -> None:
    with pytest.raises(Unreadable) as caught:
        reply_of("chat", BROKEN[name].encode(), "text/event-stream")
    assert len(str(caught.value).splitlines()) == 1


def test_the_usage_comes_in_the_last_chunk_or_in_a_choice() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
    last = f"data: {json.dumps({'choices': [], 'usage': usage, 'system_fingerprint': 'fp'})}\n\n"
    null = chunk("a").replace('{"choices"', '{"usage": null, "choices"')
    reply = reply_of("chat", (null + chunk("b", "length") + last + DONE).encode())
    assert (reply.usage, reply.finish_reason, reply.fingerprint) == (Usage(7, 3, 2), "length", "fp")
    inside = json.dumps({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop", "usage": usage}]})
    assert reply_of("chat", f"data: {inside}\n\n".encode()).usage == Usage(7, 3, 2)


def test_a_message_has_its_first_and_its_last_counts() -> None:
    counts = {"input_tokens": 4, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1, "output_tokens": 1}
    start = {"type": "message_start", "message": {"content": [], "stop_reason": None, "usage": counts}}
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}
    tool = {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}}
    last = {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"input_tokens": 0, "output_tokens": 9},
    }
    stop = {"type": "message_stop"}

    def read(*each: dict[str, Any]) -> Reply:
        return reply_of("messages", "".join(f"event: x\ndata: {json.dumps(one)}\n\n" for one in each).encode())

    reply = read(start, {"type": "ping"}, text, tool, text, last, stop)
    assert (reply.text, reply.finish_reason, reply.usage) == ("aa", "tool_use", Usage(7, 9, 2, 1))
    assert read({**start, "message": {**start["message"], "usage": None}}, last, stop).usage == Usage(0, 9)
    for early in ((start, text, last), (stop,), (start, {"type": "error", "error": {"type": "overloaded_error"}})):
        with pytest.raises(Unreadable):
            read(*early)
    plain = {"content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn", "usage": counts}
    assert reply_of("messages", json.dumps(plain).encode()).usage == Usage(7, 1, 2, 1)


def test_a_response_is_in_its_last_event() -> None:
    item = {"type": "message", "content": [{"type": "output_text", "text": "ab"}]}
    response = {"status": "completed", "output": [item], "usage": {"input_tokens": 4, "output_tokens": 2}}
    begun = 'event: response.created\ndata: {"type": "response.created", "response": {"output": []}}\n\n'
    for name, whole, finish in (
        ("completed", response, "stop"),
        ("incomplete", {**response, "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
    ):
        last = f"data: {json.dumps({'type': f'response.{name}', 'response': whole})}\n\n"
        reply = reply_of("responses", (begun + last).encode())
        assert (reply.text, reply.finish_reason, reply.usage) == ("ab", finish, Usage(4, 2))
    moved = [{"type": "response.output_item.done", "item": item}, {"type": "response.completed", "response": {**response, "output": []}}]  # fmt: skip
    assert reply_of("responses", "".join(f"data: {json.dumps(each)}\n\n" for each in moved).encode()).text == "ab"
    failed = {"type": "response.failed", "response": {"status": "failed", "error": {"message": "died"}, "output": []}}
    for body in (begun, f"data: {json.dumps(failed)}\n\n", 'data: {"type": "error", "message": "no"}\n\n'):
        with pytest.raises(Unreadable):
            reply_of("responses", body.encode())


REFUSALS = [
    "parameter.enable_thinking must be set to false for non-streaming calls",
    "This model only support stream mode, please enable the stream parameter to access the model.",
    "Stream must be set to true",
    "stream=false is not supported by this deployment",
    "Only streaming responses are available for this model",
    "Non-stream requests are disabled",
    "Streaming is required for operations that may take longer than 10 minutes.",
    "body.stream: Input should be True",
    "当前模型仅支持流式输出",
]
OTHERS = [
    "The upstream server must be restarted",
    "max_tokens must be at most 4096",
    "stream disconnected before completion",
    "stream closed unexpectedly",
    "maximum context length is 10 tokens: use streaming",
]


@pytest.mark.parametrize("words", REFUSALS)
@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_an_endpoint_that_only_streams_is_asked_for_streams(
    words: str, api: str, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(call: Call) -> Result:
        return Answer("hello, " * 9, "length") if call.streamed else only_streams(words)

    with OpenAIServer(answer) as server, caplog.at_level(logging.WARNING):
        model = model_at(server, api=api)
        replies = [await model.complete(QUESTION) for _ in range(3)]
        await model.aclose()
        assert [call.streamed for call in server.calls] == [False, True, True, True], "it is remembered"
    with OpenAIServer(lambda call: Answer("hello, " * 9, "length")) as server:
        whole = await ask(server, api=api)
    said = [record.getMessage() for record in caplog.records if record.name.startswith("codechat")]
    assert len(said) == 1 and "as a stream" in said[0]
    for reply in replies:
        assert (reply.text, reply.finish_reason, reply.usage) == (whole.text, whole.finish_reason, whole.usage)


@pytest.mark.parametrize("words", OTHERS)
def test_other_refusals_ask_for_no_stream(words: str) -> None:
    assert not Refusal(400, words).asks_for_stream


async def test_what_is_asked_for_is_chosen() -> None:
    with OpenAIServer(lambda call: "x") as server:
        await ask(server)
        await ask(server, stream=True)
        await ask(server, extra_body={"stream": True})
        bodies = [call.body for call in server.calls]
    assert [body.get("stream") for body in bodies] == [None, True, True]
    assert [body.get("stream_options") for body in bodies] == [None, {"include_usage": True}, None]
    with OpenAIServer(lambda call: only_streams()) as server:
        with mistake("stream", "auto"):
            await ask(server, stream=False)
        assert len(server.calls) == 1


async def test_words_with_a_good_status_ask_for_a_stream_too() -> None:
    words = Fault(200, {"error": {"message": "only stream mode is supported", "code": 400}})
    with OpenAIServer(lambda call: "x" if call.streamed else words) as server:
        assert (await ask(server)).text == "x"


async def test_an_option_for_the_usage_is_left_out_where_it_is_refused() -> None:
    def answer(call: Call) -> Result:
        known = "stream_options" not in call.body
        return "x" if known else Fault(422, {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]})  # fmt: skip

    with OpenAIServer(answer) as server:
        reply = await ask(server, stream=True)
        assert (reply.text, reply.usage) == ("x", Usage())
        assert [call.streamed for call in server.calls] == [True, True]


@pytest.mark.parametrize("fault", [Fault(200, chunk("x"), EVENTS), Fault(200, chunk("x") * 9, EVENTS, cut=100)])
async def test_a_stream_that_ends_early_is_asked_again(fault: Fault) -> None:
    with OpenAIServer(lambda call: fault if call.number == 0 else "whole") as server:
        reply = await ask(server, stream=True)
        assert (reply.text, reply.retries) == ("whole", 1)
    with OpenAIServer(lambda call: fault) as server, pytest.raises(InfrastructureError):
        await ask(server, stream=True)


async def test_a_connection_that_stays_open_after_the_last_event_does_not_hold_the_answer() -> None:
    body = chunk("x", "stop") + DONE
    open_end = Fault(200, body, {**EVENTS, "content-length": str(len(body) + 10)})
    with OpenAIServer(lambda call: open_end) as server:
        assert (await ask(server, stream=True, timeout_s=5)).text == "x"


async def test_an_overflow_in_a_refusal_of_a_stream_is_an_overflow() -> None:
    with OpenAIServer(lambda call: overflow()) as server, pytest.raises(Exception, match="maximum context length"):
        await ask(server, stream=True)


def test_the_cell_its_records_and_its_cached_replies_are_the_same_with_streams(tmp_path: Path) -> None:
    with OpenAIServer(reference_solver(dataset_tasks("starter"))) as server:

        def folder_of(name: str, *more: str) -> Path:
            words = ["model=openai", f"model.base_url={server.base_url}", "model.name=m", "dataset.limit=1", *more]
            outcome = run(
                compose([*words, "agenda.turns=2", "judge=rules", "tracking=none", f"runs_dir={tmp_path / name}"])
            )
            assert outcome.status == 0
            return outcome.folder

        streamed = folder_of("streamed", "model.stream=true")
        asked = [call.streamed for call in server.calls]
        assert asked and all(asked)
        assert folder_of("cached").name == streamed.name, "the same id"
        assert len(server.calls) == len(asked), "found in the response cache"
        folder_of("plain", "model.cache=false")
        assert not any(call.streamed for call in server.calls[len(asked) :])
        assert records(tmp_path / "plain") == records(tmp_path / "streamed")
