"""Markers for Anthropic's prompt caches: where a dialogue's prefix ends, if it is long enough to be kept."""

import asyncio
import contextlib
from typing import Any

import pytest

from codechat.base.domain import Message
from codechat.models import MODELS, Request
from codechat.models.provider import least_cached
from support.provider_servers import AnthropicServer

LONG = "word " * 1000


def markers(
    messages: list[Message], name: str = "claude-sonnet-9", *, final: bool = False, **options: Any
) -> list[tuple[int, Any]]:
    """The markers in what is sent: the message that each ends, and what it says."""
    with AnthropicServer(lambda _: "well") as server:
        values = {"kind": "provider", "provider": "anthropic", "name": name, "base_url": server.base_url, **options}

        async def call() -> None:
            async with contextlib.aclosing(MODELS.build(MODELS.validate({"max_tokens": 9, **values}))) as model:
                await model.complete(Request(tuple(messages), "t", 1, final=final))

        asyncio.run(call())
        sent = server.calls[0].body["sent"]
    return [
        (number, block["cache_control"])
        for number, message in enumerate(sent["messages"])
        for block in (message["content"] if isinstance(message["content"], list) else [])
        if "cache_control" in block
    ]


GONE_ON = [Message("user", LONG), Message("assistant", "code"), Message("user", "change it")]


def test_the_end_of_a_dialogue_that_goes_on_is_marked() -> None:
    ((place, marker),) = markers(GONE_ON)
    assert place == 2 and marker["type"] == "ephemeral" and marker.get("ttl", "5m") == "5m"


@pytest.mark.parametrize(
    ("messages", "options"),
    [
        (GONE_ON[:1], {}),  # a question that nobody may ever come back to
        ([Message("user", "short"), *GONE_ON[1:]], {}),
        (GONE_ON, {"name": "claude-haiku-4-5-x"}),  # its least length is four times as long
        (GONE_ON, {"prompt_cache": "off"}),
    ],
)
def test_nothing_is_marked_that_would_not_be_kept(messages: list[Message], options: dict[str, Any]) -> None:
    assert markers(messages, **options) == []


def test_what_is_never_read_again_is_not_written() -> None:
    """The last turn finds what the turn before it had marked, and a first reply's only follow-up found nothing."""
    longer = [*GONE_ON, Message("assistant", "more code"), Message("user", "the last change")]
    ((place, marker),) = markers(longer, final=True)
    assert place == 2 and marker["type"] == "ephemeral"
    assert markers(GONE_ON, final=True) == []


def test_an_hour_if_asked_for() -> None:
    ((_, marker),) = markers(GONE_ON, prompt_cache="1h")
    assert marker["ttl"] == "1h"


def test_least_lengths_are_data() -> None:
    known = {"claude-opus-4-6": 4096, "claude-haiku-4-5-20251001": 4096, "claude-3-5-haiku-latest": 2048}
    assert {name: least_cached(name) for name in known} == known
    assert least_cached("claude-sonnet-4-20250514") == 1024
    assert least_cached("another") == 4096
