"""The `rules` judge: what a rule means, what it says, and that it never fails on a program."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codechat.base.domain import Change, Instruction
from codechat.base.files import from_yaml
from codechat.judging import JUDGES, JudgeConfig
from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.studies.refine.patterns import adherence, applicable, read
from support.mistakes import mistake

GOLDEN = Path(__file__).parents[3] / "golden" / "rules"
POOL = {one.id: one for one in read_pool(EMBEDDED, {}).instructions}
CODE = "def f(values):\n    # all\n    for v in values:\n        print(v)  # one\n    return values\n"


def instruction(change: Change, **rule: object) -> Instruction:
    return Instruction("mine", "Do it.", "cosmetic", change, rule or None)


async def test_judge_is_registered_and_decides_by_rules() -> None:
    config = JUDGES.validate({"kind": "rules"})
    judge = JUDGES.build(config)
    await judge.check()
    assert isinstance(config, JudgeConfig) and not config.asks(POOL["cosmetic-remove-comments"])
    fits = await judge.applicable(CODE, POOL["cosmetic-remove-comments"])
    done = await judge.adherence(CODE, CODE.replace("    # all\n", ""), POOL["cosmetic-remove-comments"])
    await judge.aclose()
    assert (fits.applicable, fits.by, fits.reason) == (True, "rules", "2 comments: lines 2, 4")
    assert (done.verdict, done.by, done.reason) == ("violated", "rules", "1 comment left: line 3")


async def test_without_a_rule_nothing_is_decided() -> None:
    config = JUDGES.validate({"kind": "rules"})
    judge = JUDGES.build(config)
    fits = await judge.applicable(CODE, instruction("add"))
    done = await judge.adherence(CODE, "", instruction("add"))
    assert (fits.applicable, fits.by) == (None, "rules")
    assert (done.verdict, done.by) == ("undecided", "rules")


REASONS = [
    ("cosmetic-remove-comments", CODE, "x = 1\n", "violated", "the function f is gone"),
    ("cosmetic-remove-comments", CODE, "", "violated", "there is no code"),
    ("cosmetic-remove-comments", CODE, CODE + "\n", "violated", "the code is unchanged"),
    (
        "structural-avoid-lambda",
        "f = lambda: 1\n",
        "f = (\n",
        "violated",
        "the code does not parse: '(' was never closed",
    ),
    ("cosmetic-avoid-single-letter-locals", CODE, CODE.replace("values", "items"), "violated", "the parameters of f"),
    ("cosmetic-avoid-single-letter-locals", CODE, CODE.replace("v in", "w in"), "violated", "1 local variable with"),
    ("semantic-remove-prints", CODE, CODE.replace("print", "len"), "adhered", "no call of print left of 1"),
    ("semantic-reduce-loops", CODE, CODE.replace("for", "async for"), "violated", "no fewer than before: 1 loop"),
    ("structural-use-lambda", CODE, CODE.replace("(v)", "(1)"), "violated", "nothing was added: no lambda before"),
    ("structural-convert-for-to-while", CODE, "def f(values): pass\n", "violated", "nothing took its place: no while"),
    (
        "cosmetic-annotate-parameters",
        CODE,
        CODE.replace("(values)", "(values: list, n)"),
        "violated",
        "1 parameter without a type hint left: 'n' (line 1)",
    ),
]


@pytest.mark.parametrize(("name", "before", "after", "verdict", "reason"), REASONS)
def test_reasons(name: str, before: str, after: str, verdict: str, reason: str) -> None:
    decision = adherence(before, after, POOL[name])
    assert decision.verdict == verdict
    assert decision.reason.startswith(reason)


def test_rules_on_tokens_decide_code_that_does_not_parse() -> None:
    broken = "def f(x):\n    return x +  # oops\n"
    assert applicable(broken, POOL["cosmetic-remove-comments"]).applicable is True
    assert adherence(broken, broken.replace("  # oops", ""), POOL["cosmetic-remove-comments"]).verdict == "adhered"
    refused = applicable(broken, POOL["structural-use-lambda"])
    assert refused.applicable is False
    assert "does not parse" in refused.reason


@pytest.mark.parametrize("code", ["", "\n\n", "   \n\t\n"])
def test_nothing_applies_to_empty_code(code: str) -> None:
    for one in POOL.values():
        assert applicable(code, one).applicable is False, one.id


def test_many_places_are_told_in_one_short_line() -> None:
    code = "\n".join(f"# {number}" for number in range(100)) + "\nx = 1\n"
    assert applicable(code, POOL["cosmetic-remove-comments"]).reason == "100 comments: lines 1, 2, 3, 4, 5, …"


def test_what_was_never_there_cannot_be_removed() -> None:
    decision = adherence("x = 1\n", "x = 2\n", POOL["semantic-remove-prints"])
    assert (decision.verdict, decision.reason) == ("violated", "there was no call of print to begin with")
    assert adherence("x = (\n", "x = 2\n", POOL["semantic-remove-prints"]).verdict == "adhered"


def test_before_that_does_not_parse_counts_as_having_nothing() -> None:
    assert (
        adherence(
            "def f(:\n", "def f(a):\n    g = lambda: a + 1\n    return g()\n", POOL["structural-use-lambda"]
        ).verdict
        == "adhered"
    )


WRONG: list[tuple[Change, dict[str, object], str]] = [
    ("add", {"pattern": "coment"}, "no pattern is called 'coment'\ndid you mean 'comment'"),
    ("add", {"pattern": "comment", "quantifier": "fewer"}, "'fewer' does not fit 'add'"),
    ("add", {"pattern": "comment", "quantifier": "all"}, "needs 'where'"),
    ("remove", {"pattern": "comment", "quantifier": "some"}, "'some' does not fit 'remove'"),
    ("remove", {"pattern": "comment", "keeps": "names"}, "keeps 'names' is unknown"),
    ("remove", {"pattern": "comment", "mine": 1}, "has no option 'mine'"),
    ("remove", {"pattern": "comment", "at_least": "two"}, "at_least"),
    ("modify", {"pattern": "comment", "into": []}, "no pattern is called 'None'"),
    ("modify", {"pattern": "comment", "into": {"pattern": "quoted"}}, "needs 'quote'"),
]


@pytest.mark.parametrize(("change", "rule", "message"), WRONG)
def test_a_rule_that_makes_no_sense_is_a_users_mistake(change: Change, rule: dict[str, object], message: str) -> None:
    with mistake("instruction 'mine'") as raised:
        applicable(CODE, instruction(change, **rule))
    assert message in str(raised.value)


FRAGMENTS = st.sampled_from(
    [
        "def f(a, b=1):",
        "class A:",
        "async def g():",
        "@f",
        "    ",
        "        ",
        "\t",
        "return a",
        "if a:",
        "elif b:",
        "else:",
        "for i in range(len(a)):",
        "while (x := 1):",
        "match a:",
        "case [b, *c]:",
        "lambda: 0",
        "f'{a!r:>{b}}'",
        "'''",
        '"""',
        "# c",
        "# TODO",
        "\\\n",
        ";",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "=",
        "==",
        "\n",
        "\r\n",
        "\x0c",
        "\x00",
        "é",
        "�",
        "import os, sys",
        "from x import *",
        "global a",
        "x: int = 1",
        "yield",
        "await a",
        "try:",
        "except* E:",
        "finally:",
        "with a as b:",
        "*a, b = c",
        "a.append(1)",
        "{**a}",
        "1_000",
        "0x",
        "type X = int",
    ]
)


PROGRAMS = [code for file in sorted(GOLDEN.glob("*.yaml")) for code in from_yaml(file.read_text())["programs"].values()]


@st.composite
def _mutated(draw: st.DrawFn) -> str:
    """A real program with lines dropped, repeated or replaced: most of these parse."""
    lines = draw(st.sampled_from(PROGRAMS)).split("\n")
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(lines) - 1))
        lines[place : place + 1] = draw(
            st.sampled_from([[], [lines[place]] * 2, [lines[place] + "  # c"], ["", lines[place]]])
        )
        lines = lines or [""]
    return "\n".join(lines)


def _programs() -> st.SearchStrategy[str]:
    return st.one_of(_mutated(), _mutated(), st.text(max_size=80), st.lists(FRAGMENTS, max_size=30).map("".join))


@settings(max_examples=120)
@given(_programs(), _programs())
def test_decisions_never_raise_and_are_always_made(before: str, after: str) -> None:
    for one in POOL.values():
        assert applicable(before, one).applicable in (True, False)
        decision = adherence(before, after, one)
        assert decision.verdict in ("adhered", "violated", "undecided")
        assert decision.reason
        assert adherence(before, before, one).verdict == "violated"


def _nested(depth: int) -> Iterator[str]:
    yield "".join(" " * level + "if a:\n" for level in range(depth)) + " " * depth + "pass\n"
    yield "x = " + "(" * depth + "1" + ")" * depth + "\n"
    yield "x = a" + ".b" * depth + "\n"
    yield "x = " + "1 + " * depth + "1\n"
    yield "x = " + "not " * depth + "1\n"
    yield "x = " + "lambda: " * depth + "1\n"
    yield "x = " + "[" * depth + "]" * depth + "\n"


@pytest.mark.parametrize("depth", [50, 99, 190, 1500])
def test_deep_programs_are_decided(depth: int) -> None:
    for program in _nested(depth):
        for one in POOL.values():
            assert applicable(program, one).applicable is not None
            assert adherence(program, program + "y = 1\n", one).reason


def test_a_decision_takes_less_than_two_milliseconds_at_the_median() -> None:
    program = "\n".join(CODE.replace("def f", f"def f{number}") for number in range(4))
    taken = []
    for number, one in enumerate(POOL.values()):
        text = f"{program}\nx = {number}\n"  # a program not seen before: parsing counts
        start = time.perf_counter()
        applicable(text, one)
        taken.append(time.perf_counter() - start)
    assert statistics.median(taken) < 0.002


def test_programs_are_parsed_once() -> None:
    assert read(CODE) is read(CODE)
