"""Anthropic's streams: the same replies as without, and no reply of a stream that fails."""

from typing import Any

import pytest

from codechat.base.domain import Message, Reply
from codechat.base.errors import InfrastructureError
from codechat.models import MODELS, Request
from codechat.testing import Answer, Call, Fault, Result
from codechat.testing.streams import EVENTS
from support.provider_servers import AnthropicServer

QUESTION = Request((Message("user", "Write x."),), "T/0", 0)
pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.models.calls.retry.FIRST_WAIT_S", 0.001)


async def ask(server: AnthropicServer, **options: Any) -> Reply:
    fixed = {"kind": "provider", "provider": "anthropic", "name": "small-1", "base_url": server.base_url}
    model = MODELS.build(MODELS.validate(fixed | {"max_retries": 1, "cache": False, "max_tokens": 100} | options))
    try:
        return await model.complete(QUESTION)
    finally:
        await model.aclose()


async def test_a_streamed_reply_is_the_same() -> None:
    with AnthropicServer(lambda call: Answer("some words of text", "length")) as server:
        plain, streamed = await ask(server), await ask(server, stream=True)
        assert [call.streamed for call in server.calls] == [False, True]
    assert (streamed.text, streamed.finish_reason, streamed.usage) == (plain.text, plain.finish_reason, plain.usage)
    assert streamed.fingerprint == plain.fingerprint


async def test_an_endpoint_that_only_streams_is_asked_for_streams() -> None:
    def answer(call: Call) -> Result:
        return "x" if call.streamed else server.error(400, "Streaming is required for this model")

    with AnthropicServer(answer) as server:
        assert (await ask(server)).text == "x"


CUTS = ["message_delta", "content_block_stop", "content_block_delta"]
ERROR = 'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n'


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("last", ["", ERROR])
async def test_a_stream_that_fails_is_infrastructure(cut: str, last: str) -> None:
    def answer(call: Call) -> Result:
        whole = server.streams(call, server.writes(call, Answer("some words of text")))
        return Fault(200, whole[: whole.index(f"event: {cut}")] + last, EVENTS)

    with AnthropicServer(answer) as server:
        with pytest.raises(InfrastructureError):
            await ask(server, stream=True)
        assert len(server.calls) == 2, "it was asked again"
