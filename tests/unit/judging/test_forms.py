"""Forms that a model fills in, and the votes and questions of judges: what is read, asked again, summed and left out."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, Field

from codechat.base.domain import Adherence, Applicabilities, Applicability, Instruction, Reply, Usage
from codechat.base.errors import ContextOverflow
from codechat.judging import JudgeConfig
from codechat.judging.deciding import (
    CONTEXT_FULL,
    MAX_LINE,
    MAX_REASON,
    Decision,
    Form,
    fill_in,
    lines_of,
    only_word,
    read_answer,
    read_object,
    whole_of,
)
from codechat.judging.llm import majority
from codechat.models import Request
from codechat.models.scripted import Scripted
from codechat.studies.refine.judge_hybrid import HybridJudge

PLACE = Request((), "t", 0)
WORDS = ("YES", "NO")


class Pair(BaseModel):
    left: int
    right: int = Field(ge=1)


def model(*answers: str | Exception | Reply) -> tuple[Any, list[Request]]:
    seen, left = list[Request](), list(answers)

    def answer(request: Request) -> Any:
        seen.append(request)
        said = left.pop(0)
        return Reply(said, usage=Usage(5, 1), retries=1) if isinstance(said, str) else said

    return Scripted(answer), seen


@pytest.mark.parametrize(
    ("answer", "whole"),
    [
        ("plain", "plain"),
        ("a\n```json\nb\n```\nc", "b\n"),
        ("```\nb\n```\n```\nc\n```", None),
        ("   ```\nb\n   ```", "b\n"),
        ("    ```\nb\n    ```", "    ```\nb\n    ```"),
    ],
)
def test_an_answer_is_its_only_fence_or_all_of_it(answer: str, whole: str | None) -> None:
    assert whole_of(answer) == whole


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ('{"left": 1, "right": 0}', "right: "),
        ('{"right": 1}', "left: "),
        ("[]", "the object: "),
        ("{", "no JSON object: "),
        ("```\n{}\n```\n```\n{}\n```", "several fences"),
    ],
)
def test_what_does_not_fit_is_told(answer: str, told: str) -> None:
    found = read_object(answer, Pair)
    assert isinstance(found, str) and found.startswith(told)


async def test_a_form_is_asked_for_until_it_fits() -> None:
    asked, seen = model("no", '{"left": 1, "right": 2}')
    found = await fill_in(asked, Form("fill", Pair, "again: {{problem}}"), PLACE)
    assert found.value == Pair(left=1, right=2) and found.problem == "" and not found.cached
    assert (found.usage, found.retries) == (Usage(10, 2), 2)
    first, second = (each.messages for each in seen)
    assert [each.content for each in first] == ["fill"] and second[:1] == first
    assert second[1].content == "no" and second[2].content.startswith("again: no JSON object")


@pytest.mark.parametrize(("most", "asks"), [(0, 1), (1, 2), (2, 3)])
async def test_a_form_that_never_fits_is_given_up(most: int, asks: int) -> None:
    asked, seen = model("no", "not", "never")
    found = await fill_in(asked, Form("fill", Pair, "{{problem}}", most), PLACE)
    assert found.value is None and found.problem.startswith("no JSON object") and len(seen) == asks


async def test_a_reply_that_repeats_the_one_before_is_the_last() -> None:
    asked, seen = model("no", "not", "not", '{"left": 1, "right": 2}')
    found = await fill_in(asked, Form("fill", Pair, "{{problem}}", 9), PLACE)
    assert found.value is None and found.usage == Usage(15, 3) and len(seen) == 3


async def test_a_reply_that_was_cut_off_or_is_empty_is_asked_again() -> None:
    cut = Reply('{"left": 1, "right": 2}', finish_reason="length")
    asked, seen = model(cut, "", '{"left": 1, "right": 3}')
    found = await fill_in(asked, Form("fill", Pair, "{{problem}}"), PLACE)
    assert found.value == Pair(left=1, right=3)
    assert "cut off" in seen[1].messages[2].content and seen[2].messages[3].content == "(no text)"


async def test_a_form_that_does_not_fit_the_context_is_undecided() -> None:
    asked, _ = model("no", ContextOverflow("long"))
    found = await fill_in(asked, Form("fill", Pair, "{{problem}}"), PLACE)
    assert (found.value, found.problem, found.usage, found.cached) == (None, CONTEXT_FULL, Usage(5, 1), False)


async def test_a_form_may_read_another_kind_of_answer() -> None:
    asked, _ = model("1 2")
    read: Any = lambda text: Pair(left=int(text[0]), right=int(text[2]))  # noqa: E731
    found = await fill_in(asked, Form("fill", Pair, "", read=read), PLACE)
    assert found.value == Pair(left=1, right=2)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\r\n\r\n  b\rc", ["a", "b", "c"]),
        ("```\nVERDICT: YES\n```", ["VERDICT: YES"]),
        ("a\n```\nb\n```\nc", ["a", "> b", "c"]),
        ("a\n````\nb\n```\nc\n````\nd", ["a", "> b", "> ```", "> c", "d"]),
        ("a\n```\nb\n~~~\nc", ["a", "> b", "> ~~~", "> c"]),
        ("a\n    b\n\tc\n   d", ["a", "> b", "> c", "d"]),
        ("a\n```\nb\n    ```\nc", ["a", "> b", "> ```", "> c"]),
        ("a\n```\nb\n   ```\nc", ["a", "> b", "c"]),
        ("```", []),
    ],
)
def test_what_is_quoted_is_marked(text: str, lines: list[str]) -> None:
    assert lines_of(text) == lines


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("VERDICT: YES", "YES"), ("verdict: yes.", "YES"), ("**Verdict**: **no**", "NO"), ("## VERDICT: NO", "NO"),
        ("# VERDICT: NO", None), ("VERDICT: MAYBE", None), ("> VERDICT: YES", None), ("'VERDICT: YES'", None),
        ("VERDICT: YES, surely", None), ("VERDICT YES", None), ("THE VERDICT: YES", None),
        ("VERDICT: YES" + " " * (MAX_LINE - 12), "YES"), ("VERDICT: YES" + " " * (MAX_LINE - 11), None),
    ],
)  # fmt: skip
def test_a_line_is_an_answer_if_it_has_nothing_else(line: str, word: str | None) -> None:
    assert only_word("VERDICT", WORDS, [line]) == word


def test_another_line_with_the_label_takes_the_answer_away() -> None:
    for other in ("VERDICT: NO", "the VERDICT is out", "my verdict: no", "> VERDICT: YES"):
        assert only_word("VERDICT", WORDS, ["VERDICT: YES", other]) is None
    for other in ("a verdict", "SUBVERDICT: NO", "VERDICTS"):
        assert only_word("VERDICT", WORDS, ["VERDICT: YES", other]) == "YES"
    assert only_word("VERDICT", WORDS, ["VERDICT: YES", "VERDICT 2: NO"], ("VERDICT", "VERDICT 2")) == "YES"
    assert only_word("VERDICT", WORDS, []) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("one\ntwo\nVERDICT: YES", "two"),
        ("REASON: one\ntwo\nVERDICT: YES", "one"),
        ("REASON: one\n**Reason**: two\nVERDICT: YES", "two"),
        ("VERDICT: YES", ""),
        ("x" * MAX_REASON + "\nVERDICT: YES", "x" * MAX_REASON),
        ("x" * (MAX_REASON + 1) + "\nVERDICT: YES", "x" * (MAX_REASON - 1) + "…"),
    ],
)
def test_the_reason_is_the_marked_line_or_the_last_one(text: str, reason: str) -> None:
    found = read_answer(text, {"VERDICT": WORDS})
    assert found is not None and found.answers == {"VERDICT": "YES"} and found.reason == reason


def vote(word: str | None, reason: str) -> Decision:
    return Decision(None if word is None else {"VERDICT": word}, reason, usage=Usage(2, 1), cached=True)


@pytest.mark.parametrize(
    ("words", "met", "reason"),
    [
        (["YES"], True, "0"), (["NO"], False, "0"), ([None], None, "0"),
        (["NO", "YES", "YES"], True, "2 of 3 votes for, 1 against: 1"),
        (["YES", "NO", "NO"], False, "1 of 3 votes for, 2 against: 1"),
        (["YES", "NO"], None, "1 of 2 votes for, 1 against: 0"),
        ([None, "YES"], True, "1 of 2 votes for, 0 against: 1"),
        (["OTHER", "NO"], False, "0 of 2 votes for, 1 against: 1"),
    ],
)  # fmt: skip
def test_the_majority_of_readable_votes_decides(words: list[str | None], met: bool | None, reason: str) -> None:
    found = majority([vote(each, str(at)) for at, each in enumerate(words)], WORDS)
    assert (found.met, found.by, found.reason) == (met, "llm", reason)
    assert found.usage == Usage(2 * len(words), len(words)) and found.cached


def instruction(name: str) -> Instruction:
    return Instruction(name, name, "cosmetic", "add")


class Ruled:
    """Rules that decide by an instruction's name."""

    async def applicable(self, code: str, one: Instruction) -> Applicability:
        return Applicability({"y": True, "n": False}.get(one.id[0]), "rules", one.id)

    async def adherence(self, before: str, after: str, one: Instruction) -> Adherence:
        return Adherence({"y": "adhered", "n": "violated"}.get(one.id[0], "undecided"), "rules", one.id)  # type: ignore[arg-type]


class Asked:
    """A language model that finds everything applicable, and notes what it is asked."""

    def __init__(self) -> None:
        self.seen, self.checked = list[list[str]](), 0

    async def check(self) -> None:
        self.checked += 1

    async def applicable_together(self, code: str, several: Any) -> Applicabilities:
        self.seen.append([each.id for each in several])
        return Applicabilities(tuple(Applicability(True, "llm", each.id) for each in several), usage=Usage(7, 1))


@pytest.mark.parametrize(
    ("names", "asked", "by"),
    [
        (["y1", "u1"], None, "rr"),
        (["n1", "n2"], None, "rr"),
        (["u1", "n1", "u2"], ["u1", "u2"], "lrl"),
        (["n1", "u1", "y1", "u2"], ["u1"], "rlrr"),
        (["u1", "y1", "u2"], ["u1"], "lrr"),
        (["u1"], ["u1"], "l"),
    ],
)
async def test_what_rules_leave_open_before_the_first_that_applies_is_asked_together(
    names: list[str], asked: list[str] | None, by: str
) -> None:
    judge: Any = HybridJudge.__new__(HybridJudge)

    judge._rules_first, judge._rules, judge._llm = True, Ruled(), Asked()
    judge._checking, judge._checked = asyncio.Lock(), False
    found = await judge.applicable_together("code", [instruction(name) for name in names])
    assert [each.reason for each in found.decisions] == names
    assert "".join(each.by[0] for each in found.decisions) == by
    assert judge._llm.seen == ([] if asked is None else [asked]) and judge._llm.checked == len(judge._llm.seen)
    assert found.usage == (Usage() if asked is None else Usage(7, 1))
    await judge.applicable_together("code", [instruction("u")])
    assert judge._llm.checked == 1


def test_a_plain_judge_asks_nothing() -> None:
    config: Any = SimpleNamespace()
    one = instruction("x")
    assert JudgeConfig.asks(config, one) is False and JudgeConfig.asked_together(config) == 1
    assert JudgeConfig.votes_on_constraint(config) == 0
    assert JudgeConfig.question_length(config, "x") == JudgeConfig.head_length(config, "x") == 0
