"""Dialogues that an endpoint does not read as a whole, by its counts of input tokens; and counts that only look so."""

from collections.abc import Callable

import pytest

from codechat.base.domain import Message, Usage
from codechat.base.records import CallRecord, TurnRecord
from codechat.run.protocols.inputs import InputsRead

TASK = "Write a function that returns the longest of the given words, and the first of them if several are as long. "
CODE = "```python\ndef longest(words):\n    best = ''\n    for word in words:\n        if len(word) > len(best):\n"
CODE += "            best = word\n    return best\n```\n"
ASKED = ["Now take the last of them instead, please.", "Leave blanks around the words out of their lengths.", "Use max.",
         "Rename the function's argument to `texts`, and say in a docstring what it returns.", "Return None without words.",
         "Add annotations of types to all arguments."]  # fmt: skip
Count = Callable[[list[int], int], Usage]  # tokens of each message, and the turn


def requests(task: str = TASK * 3, code: str = CODE * 2) -> list[list[Message]]:
    told, found = [Message("user", task)], []
    for each in [*ASKED, ""]:
        found.append(list(told))
        told += [Message("assistant", code + f"# {len(told)}"), Message("user", each)]
    return found


def tokens(message: Message) -> int:
    """As usual tokenizers count: one for four ASCII characters, and nearly one for others."""
    plain = len(message.content.encode("ascii", "ignore"))
    return plain // 4 + round(0.8 * (len(message.content) - plain)) + 4


def found(count: Count, sent: list[list[Message]] | None = None, cached: int = 0) -> list[int]:
    """The turns whose request was not read."""
    inputs, turns = InputsRead(), []
    for turn, request in enumerate(sent or requests()):
        usage = count([tokens(each) for each in request], turn)
        if inputs.truncated(TurnRecord(turn=turn, request=request, response="x", usage=usage)):
            turns.append(turn)
    return turns


def limit(most: int) -> Count:
    return lambda sizes, _: Usage(min(sum(sizes), most))


def whole_messages(most: int) -> Count:
    """The newest messages that fit, as Ollama drops whole ones."""

    def count(sizes: list[int], _: int) -> Usage:
        while sum(sizes) > most and len(sizes) > 1:
            sizes = sizes[1:]
        return Usage(min(sum(sizes), most))

    return count


@pytest.mark.parametrize(
    ("count", "turns"),
    [
        (limit(80), [1, 2, 3, 4, 5, 6]),
        (limit(300), [4, 5, 6]),
        (whole_messages(450), [4, 5, 6]),
        (lambda sizes, _: Usage(sum(sizes[:1])), [1, 2, 3, 4, 5, 6]),
        (lambda sizes, _: Usage(min(sum(sizes), 300), 0, 290), [4, 5, 6]),
        (lambda sizes, _: Usage(sum(sizes[-2:])), [1, 2, 3, 4, 5, 6]),
        (lambda sizes, _: Usage(sizes[-1]), [1, 2, 3, 4, 5, 6]),
    ],
    ids=[
        "below the task",
        "later",
        "whole messages",
        "the task alone",
        "cached and cut",
        "two messages",
        "one message",
    ],
)
def test_what_is_not_read_is_found(count: Count, turns: list[int]) -> None:
    assert found(count) == turns


@pytest.mark.parametrize(
    "count",
    [
        lambda sizes, _: Usage(sum(sizes)),
        lambda sizes, _: Usage(sum(sizes) + 3000),
        lambda sizes, _: Usage(0),
        lambda sizes, _: Usage(sum(sizes), 0, sum(sizes[:-2])),
        lambda sizes, _: Usage(sum(sizes[-2:]), 0, sum(sizes[:-2])),
        lambda sizes, _: Usage(sum(sizes) * 2 // 3),
    ],
    ids=["all", "a hidden prompt", "no counts", "cached too", "uncached and cached", "few tokens"],
)  # fmt: skip
@pytest.mark.parametrize(
    "sent", [None, requests("返回给定单词中最长的一个。" * 9, CODE), requests(TASK, "x  =  1\n" * 40)]
)
def test_other_counts_are_no_alarm(count: Count, sent: list[list[Message]] | None) -> None:
    assert found(count, sent) == []


def test_a_template_may_leave_out_thoughts() -> None:
    sent = requests(code=f"<think>{TASK * 9}</think>{CODE}")
    plain = [[Message(each.role, each.content.rpartition("</think>")[2]) for each in request] for request in sent]
    counts = [sum(map(tokens, request)) for request in plain]
    assert found(lambda _, turn: Usage(counts[turn]), sent) == []


def test_requests_of_one_message_are_compared_with_their_own_words() -> None:
    sent = [[Message("user", TASK * n)] for n in (2, 9, 3, 30)]
    assert found(lambda sizes, _: Usage(sum(sizes)), sent) == []
    assert found(limit(100), sent) == [3]


def test_a_dialogue_of_several_calls_a_turn() -> None:
    told = requests()
    calls, before = [], 0
    for request in told:
        read = Usage(min(sum(map(tokens, request)), 300))
        calls.append(CallRecord(role="model", earlier=before, request=request[before:], response="x", usage=read))
        before = len(request)
    turns = [TurnRecord(turn=n, calls=[c.model_dump() for c in part]) for n, part in enumerate((calls[:2], calls[2:]))]
    inputs = InputsRead()
    assert [inputs.truncated(turn) for turn in turns] == [False, True]
