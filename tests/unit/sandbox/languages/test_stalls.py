"""No reply silences the event loop: the parser's steps and a reply's length are bounded.

Run with a number (`python …/test_stalls.py 500 [SEED]`), the file makes as many attempts and prints the longest silences.
"""

import asyncio
import random
import sys
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from codechat.base.domain import Target
from codechat.sandbox.languages import LONGEST_REPLY, extract, language_of, without_thinking
from codechat.sandbox.languages.grammar import Parsed
from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.studies.refine.judge_rules import RulesConfig, rules
from codechat.studies.refine.patterns import adherence, applicable

PARTS = (
    *"+-*/%<>=!&|^~?:.,;()[]{}@#\\'\"`\n a1$",
    *("->", "::", "=>", "==", "&&", "||", "++", "--", "<<", ">>", "/*", "*/", "//", "(a)", "[0]", "{a:", "${", "/a/"),
    *(
        "if",
        "for",
        "while",
        "def ",
        "class ",
        "lambda ",
        "return ",
        "new ",
        "not ",
        "else ",
        "try",
        "case ",
        "a<",
        "x=",
    ),
)
PROGRAMS = {
    "python": ("def f(x):\n    return x ", "\n"),
    "java": ("class A { int f(int x) { return x ", "; } }"),
    "javascript": ("function f(x) { return x ", "; }"),
}
LENGTHS = (5_000, 19_000, 60_000)
BEAT_S = 0.001


def attempts(seed: int, number: int) -> Iterator[tuple[str, str]]:
    """Languages with replies."""
    chosen = random.Random(seed)
    for _ in range(number):
        language, length = chosen.choice(list(PROGRAMS)), chosen.choice(LENGTHS)
        parts = chosen.sample(PARTS, chosen.randint(1, 5))
        mixed = chosen.random() < 0.5
        text = "".join(chosen.choices(parts, k=length) if mixed else parts * length)
        before, after = PROGRAMS[language] if chosen.random() < 0.7 else ("", "")
        code = before + text[: length - 100] + after
        yield language, f"```{language}\n{code}\n```" if chosen.random() < 0.8 else code


async def silence(language: str, reply: str) -> float:
    """The longest time in seconds without a beat of the loop, while the reply is read and judged by every rule."""
    beats = [time.perf_counter()]

    async def beat() -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            beats.append(time.perf_counter())

    beating = asyncio.create_task(beat())
    judge = rules(RulesConfig())
    good = "".join(PROGRAMS[language])
    found = extract(reply, Target(language, "f"))
    without_thinking(reply)
    await asyncio.sleep(2 * BEAT_S)
    for instruction in read_pool(EMBEDDED, {}).of(language):
        await judge.applicable(found.code or reply, instruction)
        await asyncio.sleep(0)  # as the protocol, which waits for the journal
        await judge.adherence(good, found.code or reply, instruction)
        await asyncio.sleep(2 * BEAT_S)
    beating.cancel()
    beats.append(time.perf_counter())
    return max(later - earlier for earlier, later in pairwise(beats))


SLOW = {"java": "- ->", "javascript": " &&!"}
LONGEST_S = 2.0


@pytest.mark.parametrize("language", sorted(SLOW))
def test_code_that_the_parser_does_not_finish_is_undecided(language: str) -> None:
    before, after = PROGRAMS[language]
    code = before + SLOW[language] * 4_700 + after
    start = time.process_time()
    for instruction in read_pool(EMBEDDED, {}).of(language)[:3]:
        assert applicable(code, instruction).applicable is None
        decided = adherence(before + after, code, instruction)
        assert (decided.verdict, "limit" in decided.reason) == ("undecided", True)
    assert time.process_time() - start < LONGEST_S


def test_the_parser_reads_the_next_code_anew_and_alike() -> None:
    java = language_of("java")
    assert isinstance(java, Parsed)
    before, after = PROGRAMS["java"]
    assert java.grammar.parse_within(before + "->--" * 4_000, 100) is None
    code = f'{before}+ "ä"{after}'
    tree = java.grammar.parse_within(code, 100)
    assert tree is not None
    assert str(tree.root) == str(java.grammar.parse(code).root)
    assert tree.root.text == code.encode()


@pytest.mark.parametrize("language", ["python", "java", "javascript", "rust", "elixir"])
def test_a_reply_beyond_the_longest_is_not_read(language: str) -> None:
    program = "".join(PROGRAMS.get(language, ("fn f(x)", "{}")))
    reply = f"```{language}\n{program}\n```\n"
    allowed, beyond = (reply + "x" * (number - len(reply)) for number in (LONGEST_REPLY, LONGEST_REPLY + 1))
    assert extract(allowed, Target(language, "f")).problem is None
    found = extract(beyond, Target(language, "f"))
    assert found.problem == "no_code"
    assert f"{LONGEST_REPLY:,}" in found.reason
    thought = "<think>a</think>" + beyond
    assert without_thinking(thought) == thought


@pytest.mark.parametrize("language", ["python", "java", "elixir"])
def test_a_margin_of_any_width_is_read_at_once(language: str) -> None:
    reply = " " * 500_000 + "".join(PROGRAMS.get(language, ("def f(x): x", "")))
    start = time.process_time()
    extract(reply, Target(language, "f"))
    assert time.process_time() - start < LONGEST_S / 2


@pytest.mark.parametrize(
    "thought",
    [
        "Thinking...\na\n...done thinking.\n",
        "Here is my thought process:\nHere is my response:\n",
        "<|think|>a<|end|>",
        "<reasoning>a</reasoning>\n",
    ],
)
def test_any_number_of_thoughts_is_read_at_once(thought: str) -> None:
    start = time.process_time()
    assert without_thinking(thought * (900_000 // len(thought)) + "b") == "b"
    assert time.process_time() - start < LONGEST_S


@pytest.mark.parametrize("language", ["java", "rust"])
@pytest.mark.parametrize("line", ["f(){f(", "f(\n"])
def test_definitions_are_looked_for_in_bounded_time(language: str, line: str) -> None:
    block = f"```{language}\n{line * 500}\n```\n"
    start = time.process_time()
    assert extract(block * (900_000 // len(block)), Target(language, "f")).code
    assert time.process_time() - start < LONGEST_S


@pytest.mark.parametrize("unit", ["// <think>", 'a "<think>', "x <python>", "[PYTHON] ", "<code>`"])
def test_a_line_of_many_marks_is_read_at_once(unit: str) -> None:
    start = time.process_time()
    extract(unit * (1_000_000 // len(unit)), Target("python", "f"))
    assert time.process_time() - start < LONGEST_S


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_the_event_loop_is_never_silent_for_long(seed: int) -> None:
    for language, reply in attempts(seed, 10):
        assert asyncio.run(silence(language, reply)) < LONGEST_S, reply[:80]


if __name__ == "__main__":
    longest: dict[str, float] = {}
    seconds = list[float]()
    for language, reply in attempts(int((sys.argv[2:] or ["0"])[0]), int(sys.argv[1])):
        seconds.append(asyncio.run(silence(language, reply)))
        longest[language] = max(longest.get(language, 0), seconds[-1])
        if seconds[-1] > 1:
            print(f"{seconds[-1]:.2f} s: {language} {reply[:80]!r}", flush=True)
    over = sum(each > 2 for each in seconds)
    print(f"{len(seconds)} attempts, {over} over 2 s; longest:", {key: round(each, 2) for key, each in longest.items()})
