"""No reply silences the event loop: the parser's steps and a reply's length are bounded."""

import asyncio
import time

import pytest

from codechat.base.domain import Target
from codechat.sandbox.languages import LONGEST_REPLY, extract, language_of, without_thinking
from codechat.sandbox.languages.grammar import Parsed
from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.studies.refine.patterns import adherence, applicable
from support.stalling import PROGRAMS, attempts, silence

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


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_the_event_loop_is_never_silent_for_long(seed: int) -> None:
    for language, reply in attempts(seed, 10):
        assert asyncio.run(silence(language, reply)) < LONGEST_S, reply[:80]
