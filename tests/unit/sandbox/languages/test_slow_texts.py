"""Replies that are made to be slow: whatever reads them takes about a second at most, and never raises."""

import time
from collections.abc import Callable

import pytest

from codechat.base.domain import Target
from codechat.sandbox.languages import extract
from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.studies.refine.patterns import adherence, applicable
from support.slow_texts import MEGABYTE, SLOW_TEXTS, WRAPPED

pytestmark = pytest.mark.long

LONGEST_S = 4.0  # about a second on an idle machine
RULES = [one for one in read_pool(EMBEDDED, {}).instructions if one.rule is not None]


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.mark.parametrize("name", sorted(WRAPPED)[::7])
def test_a_megabyte_is_read_in_bounded_time(name: str) -> None:
    text = WRAPPED[name](MEGABYTE)
    assert seconds(lambda: extract(text, Target(entry_point="f"))) < LONGEST_S


@pytest.mark.parametrize("name", ["f-strings", "parameters", "semicolons", "dotted import", "alternatives"])
def test_so_is_as_much_as_is_parsed(name: str) -> None:
    text = SLOW_TEXTS[name](49_000)
    assert seconds(lambda: extract(f"def f(x):\n    return x\n\n\n{text}", Target(entry_point="f"))) < LONGEST_S


@pytest.mark.parametrize("name", ["functions of two names", "unicode names", "a large hexadecimal", "passes", "nul"])
def test_rules_read_it_too(name: str) -> None:
    text = f"def f(x):\n    return x\n\n\n{SLOW_TEXTS[name](10_000)}"
    for rule in RULES:
        assert seconds(lambda rule=rule: (applicable(text, rule), adherence("x = 1\n", text, rule))) < LONGEST_S
