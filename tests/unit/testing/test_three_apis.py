"""The test server's three APIs, read by the clients of OpenAI and Anthropic."""

import json
from typing import Any

import anthropic
import httpx
import openai
import pytest

from codechat.base.domain import Usage
from codechat.testing import Answer, Call, OpenAIServer, ToolCall

ANSWER = Answer(
    "Some words.",
    usage=Usage(100, 20, 30, 10, reasoning_tokens=5),
    tools=(ToolCall("Bash", {"command": "echo 'a longer command'"}), ToolCall("Read", {}, "mine")),
)
SAID = ("Some words.", "Bash", {"command": "echo 'a longer command'"}, "call_0_0", "Read", {}, "mine")
ASKED: Any = [{"role": "user", "content": "Write x."}]


def by_chat(server: OpenAIServer, streamed: bool) -> tuple[Any, ...]:
    client = openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0).chat.completions
    if streamed:
        with client.stream(model="m", messages=ASKED, stream_options={"include_usage": True}) as stream:
            answer: Any = stream.get_final_completion()
    else:
        answer = client.create(model="m", messages=ASKED)
    (choice,), usage = answer.choices, answer.usage
    assert choice.finish_reason == "tool_calls"
    calls = [(each.function.name, each.function.arguments, each.id) for each in choice.message.tool_calls]
    counted = usage.prompt_tokens_details.cached_tokens, usage.completion_tokens_details.reasoning_tokens
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens, *counted) == (100, 20, 120, 30, 5)
    return choice.message.content, *told(calls)


def by_responses(server: OpenAIServer, streamed: bool) -> tuple[Any, ...]:
    client = openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0).responses
    if streamed:
        with client.stream(model="m", input=ASKED) as stream:
            answer: Any = stream.get_final_response()
    else:
        answer = client.create(model="m", input=ASKED)
    calls = [(each.name, each.arguments, each.call_id) for each in answer.output if each.type == "function_call"]
    usage = answer.usage
    counted = usage.input_tokens_details.cached_tokens, usage.output_tokens_details.reasoning_tokens
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens, *counted) == (100, 20, 120, 30, 5)
    return answer.output_text, *told(calls)


def by_messages(server: OpenAIServer, streamed: bool) -> tuple[Any, ...]:
    client = anthropic.Anthropic(base_url=server.base_url.removesuffix("/v1"), api_key="k", max_retries=0).messages
    if streamed:
        with client.stream(model="m", messages=ASKED, max_tokens=9) as stream:
            answer: Any = stream.get_final_message()
    else:
        answer = client.create(model="m", messages=ASKED, max_tokens=9)
    assert answer.stop_reason == "tool_use"
    text, *calls = answer.content
    usage = answer.usage
    cached = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    assert (usage.input_tokens, usage.output_tokens, *cached) == (60, 20, 30, 10)
    return text.text, *(part for each in calls for part in (each.name, each.input, each.id))


def told(calls: list[tuple[str, str, str]]) -> list[Any]:
    return [part for name, arguments, number in calls for part in (name, json.loads(arguments), number)]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("ask", [by_chat, by_responses, by_messages])
def test_its_makers_client_reads_an_answer_with_tools(ask: Any, streamed: bool) -> None:
    with OpenAIServer(lambda call: ANSWER) as server:
        assert ask(server, streamed) == SAID
        assert server.usage == ANSWER.usage
        assert server.calls[0].streamed is streamed


def test_tokens_are_counted_in_words() -> None:
    with OpenAIServer(lambda call: Answer("one two", tools=(ToolCall("run", {"command": "three"}),))) as server:
        client = anthropic.Anthropic(base_url=server.base_url.removesuffix("/v1"), api_key="k", max_retries=0)
        counted = client.messages.count_tokens(model="m", system="Be kind.", messages=ASKED)
        assert (counted.input_tokens, server.usage) == (4, Usage())
        client.messages.create(model="m", system="Be kind.", messages=ASKED, max_tokens=9)
        assert server.usage == Usage(4, 4)
        assert httpx.head(server.base_url).status_code == 200


PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": PARTS},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "tool_call_id": "1", "content": "seen"},
    ]},
    "/v1/responses": {"instructions": "be kind", "input": [
        {"type": "message", "role": "user", "content": PARTS},
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "assistant", "content": []},
        {"type": "function_call", "call_id": "1", "name": "run", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "seen"},
    ]},
    "/v1/messages?beta=true": {"system": [{"type": "text", "text": "be kind"}], "messages": [
        {"role": "user", "content": PARTS},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "run", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "seen"}]},
    ]},
}  # fmt: skip


@pytest.mark.parametrize("path", BODIES)
def test_a_conversation_reads_the_same_in_each_api(path: str) -> None:
    read = [(each["role"], each["content"]) for each in Call(0, path, {}, BODIES[path]).messages]
    assert read == [("system", "be kind"), ("user", "a\nb"), ("assistant", ""), ("tool", "seen")]


def test_a_text_alone_is_a_message_of_the_user() -> None:
    assert Call(0, "/v1/responses", {}, {"input": "x"}).messages == [{"role": "user", "content": "x"}]


def test_tools_are_named_in_each_api() -> None:
    offered = [{"type": "function", "function": {"name": "a"}}, {"type": "function", "name": "b"}, {"type": "web"}]
    assert Call(0, "/v1/responses", {}, {"tools": offered}).tools == {"a", "b"}
