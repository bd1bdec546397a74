"""Thoughts apart from the reply: where endpoints put them, how they are counted and kept, and marks of one's own."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Extraction, Message, Reply, Usage, Verdict
from codechat.base.records import ONLY_REASONING, SessionRecord, TurnRecord
from codechat.models import Request
from codechat.models.calls import cache
from codechat.models.openai import reply_of
from codechat.models.openai.streams import whole_answer
from codechat.models.reasoning import LONGEST, bounded, parted
from codechat.models.replay import Replay, ReplayConfig
from codechat.run.journal.ledger import charges_of
from codechat.run.protocols.services import reply_of as recorded_reply
from codechat.run.settings.compose import compose
from support.mistakes import mistake


def chat(message: dict[str, Any], **usage: Any) -> Reply:
    choices = [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}]
    return reply_of("chat", json.dumps({"choices": choices, "usage": usage}).encode())


@pytest.mark.parametrize(
    "message",
    [
        {"content": "a", "reasoning_content": "hm"},
        {"content": "a", "reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"content": "a", "reasoning_details": [{"type": "reasoning.summary", "summary": "hm"}]},
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "a"},
            ]
        },
        {"content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "a"}]},
        {"content": "a", "reasoning_content": None, "reasoning": {"content": "hm"}},
    ],
)
def test_fields_of_a_chat(message: dict[str, Any]) -> None:
    found = chat(message, prompt_tokens=3, completion_tokens=9, completion_tokens_details={"reasoning_tokens": 7})
    assert (found.text, found.reasoning) == ("a", "hm")
    assert found.usage == Usage(3, 9, reasoning_tokens=7)


def test_a_stream_has_it_too() -> None:
    deltas = [{"role": "assistant", "reasoning_content": "h"}, {"reasoning_content": "m"}, {"content": "a"}]
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    found = reply_of("chat", json.dumps(whole_answer("chat", body.encode())).encode())
    assert (found.text, found.reasoning) == ("a", "hm")


@pytest.mark.parametrize("odd", [None, 3, [], {}, [[[[[["deep"]]]]]], "", " ", {"signature": "x"}])
def test_a_field_without_a_text(odd: Any) -> None:
    found = chat({"content": "a", "reasoning_content": odd}, completion_tokens_details={"reasoning_tokens": -5})
    assert (found.text, found.reasoning, found.usage) == ("a", "", Usage())


def test_items_of_responses() -> None:
    output = [
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
        },
        {"type": "message", "content": [{"type": "output_text", "text": "a"}]},
    ]
    usage = {"input_tokens": 2, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 4}}
    found = reply_of("responses", json.dumps({"status": "completed", "output": output, "usage": usage}).encode())
    assert (found.text, found.reasoning, found.usage) == ("a", "one\ntwo", Usage(2, 5, reasoning_tokens=4))


def test_a_long_thought_keeps_its_ends_and_can_be_written() -> None:
    found = bounded("begin" + "\ud800" * (2 * LONGEST) + "end")
    assert LONGEST <= len(found) < LONGEST + 100 and found.startswith("begin") and found.endswith("end")
    found.encode()


def test_the_response_cache_keeps_it() -> None:
    reply = Reply("a", reasoning="hm", usage=Usage(1, 2, reasoning_tokens=1))
    known = cache._reply(cache._text(reply))
    assert (known.reasoning, known.usage) == ("hm", reply.usage)
    assert json.loads(cache._text(replace(reply, reasoning="", usage=Usage(1, 2)))) == ["a", "stop", [1, 2, 0], 0.0]


def test_its_tokens_are_paid_once_as_output() -> None:
    usage = Usage(1, 9, reasoning_tokens=7)
    assert [each.usage for each in charges_of("model", Reply("a", usage=usage))] == [Usage(1, 9)]
    flex = charges_of("model", Reply("a", usage=usage.served_as("flex")))
    assert [each.usage for each in flex] == [Usage(), Usage(1, 9).served_as("flex")]
    assert usage + usage - usage == usage and Usage.of(usage.fields()) == usage


def turn(reply: Reply) -> TurnRecord:
    verdict = Verdict.without_run("no_code", "the reply is empty")
    return TurnRecord.of(0, [Message("user", "q")], (reply, Extraction(None, None, "no_code", "empty")), verdict)


def session(*turns: TurnRecord) -> SessionRecord:
    fields = {"cell_id": "c", "session_id": "s", "task_id": "t", "dataset": "d", "model": "m", "protocol": "p"}
    return SessionRecord(**fields, agenda=[], seed=0, status="completed", turns=list(turns))  # type: ignore[arg-type]


def test_records_have_it_where_there_is_one() -> None:
    thought, plain = turn(Reply("", "length", reasoning="hm")), turn(Reply(""))
    line = json.loads(session(thought, plain).line())
    assert [each.get("reasoning") for each in line["turns"]] == ["hm", None] and "reasoning" not in line["turns"][1]
    assert [each["failure"]["reason"] for each in line["turns"]] == [ONLY_REASONING, "the reply is empty"]
    slim = SessionRecord.model_validate_json(session(thought, plain, turn(Reply("x", reasoning="hm"))).slim().line())
    assert [each.only_reasoning for each in slim.turns] == [True, False, False] and "hm" not in slim.line()
    assert recorded_reply(thought).reasoning == "hm"


async def test_a_replay_has_it_and_reads_marks_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "sessions.jsonl"
    said = turn(Reply("<plan>a draft</plan>\nx = 1", reasoning="hm"))
    path.write_text(session(said).line() + "\n")
    request = Request((Message("user", "q"),), "t", 0)
    plain = await Replay(ReplayConfig(path=str(path))).complete(request)
    assert (plain.text, plain.reasoning) == (said.response, "hm")
    marked = ReplayConfig(path=str(path), thoughts=(("<plan>", "</plan>"),))
    parts = await Replay(marked).complete(request)
    assert (parts.text, parts.reasoning) == ("x = 1", "hm\na draft")
    assert marked.identity() != ReplayConfig(path=str(path)).identity()


@pytest.mark.parametrize(
    ("text", "answer", "thoughts"),
    [
        ("((a)) x = 1", " x = 1", "a"),
        ("a )) x = 1", " x = 1", "a"),
        ("((cut off ```python\nx = 1\n```", "", "cut off ```python\nx = 1\n```"),
        ("((a))((b))x", "x", "a\nb"),
        ("```python\ny = ((1))\n```", "```python\ny = ((1))\n```", ""),
        ("<think>a</think>x", "<think>a</think>x", ""),
    ],
)
def test_marks_of_ones_own_part_a_reply(text: str, answer: str, thoughts: str) -> None:
    found = parted(Reply(text), (("((", "))"),))
    assert (found.text, found.reasoning) == (answer, thoughts)


WORDS = ("model=openai", "model.name=m", "tracking=none")


def test_one_pair_or_several_can_be_given_and_the_default_is_no_part_of_the_id() -> None:
    one = compose([*WORDS, "model.thoughts=['<plan>','</plan>']"]).config.model
    two = compose([*WORDS, "model.thoughts=[['<plan>','</plan>'],['<a>','<b>']]"]).config.model
    assert getattr(one, "thoughts", None) == (("<plan>", "</plan>"),) and len(getattr(two, "thoughts", ())) == 2
    assert "thoughts" in one.identity()
    assert "thoughts" not in compose([*WORDS, "model.thoughts=null"]).config.model.identity()


@pytest.mark.parametrize("wrong", ["['<plan>']", "[['<plan>','']]", "[['<plan>',' ']]", "plan"])
def test_other_marks_are_a_mistake(wrong: str) -> None:
    with mistake("model.thoughts"):
        compose([*WORDS, f"model.thoughts={wrong}"])
