"""Which instructions contradict each other by the data of their rules."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, get_args

import pytest

from codechat.base.domain import Change, Contradiction, Instruction
from codechat.studies.refine.conflicts import contradict
from codechat.studies.refine.instructions.pool import PoolConfig, load

POOL = load(PoolConfig())
CONFLICTS = """
cosmetic-add-comment cosmetic-remove-comments
cosmetic-add-todo cosmetic-remove-todos
cosmetic-attach-comment-to-loops cosmetic-move-comments-above
cosmetic-add-more-comments cosmetic-minimise-comments
cosmetic-include-doctest cosmetic-drop-doctests
cosmetic-include-args-section cosmetic-shorten-docstrings
cosmetic-delete-docstrings cosmetic-shorten-docstrings
cosmetic-annotate-parameters cosmetic-strip-parameter-hints
cosmetic-insert-blank-before-returns cosmetic-remove-blank-lines
cosmetic-put-returns-in-parentheses cosmetic-eliminate-redundant-parentheses
cosmetic-use-double-quotes cosmetic-convert-to-single-quotes
cosmetic-change-indent-to-two cosmetic-convert-indent-to-tabs
cosmetic-add-future-annotations semantic-avoid-imports
structural-use-guard-clause structural-ensure-single-return
structural-use-named-results structural-inline-passing-variables
structural-define-enum semantic-avoid-imports
structural-use-enumerate structural-convert-for-to-while
structural-convert-for-to-while structural-convert-while-to-for
structural-use-closure structural-eliminate-nested-functions
structural-replace-list-comprehensions-by-loops semantic-avoid-loops
semantic-use-break structural-avoid-jumps
semantic-use-counter semantic-avoid-dicts
semantic-use-frozenset semantic-avoid-sets
semantic-use-stack semantic-avoid-append
semantic-add-fast-path structural-reduce-returns
semantic-include-finally semantic-remove-try
semantic-replace-loops-by-recursion semantic-transform-loops-into-reduce
semantic-replace-recursion-by-loop semantic-replace-loops-by-recursion
"""
COMPATIBLE = """
cosmetic-add-comment cosmetic-add-docstrings
cosmetic-add-note cosmetic-remove-todos
cosmetic-add-comment cosmetic-remove-end-of-line-comments
cosmetic-add-docstrings cosmetic-shorten-docstrings
cosmetic-state-time-complexity cosmetic-remove-comments
cosmetic-use-double-quotes cosmetic-change-docstring-quotes
cosmetic-rename-single-letter-locals cosmetic-rename-to-camel-case
cosmetic-change-comments-to-capitals cosmetic-change-comments-to-sentences
cosmetic-avoid-long-lines cosmetic-reformat-to-60-columns
cosmetic-annotate-locals cosmetic-strip-parameter-hints
structural-use-any-or-all semantic-avoid-loops
structural-ensure-else-branches structural-reduce-ifs
structural-convert-one-for-to-while semantic-reduce-loops
structural-use-list-comprehension semantic-avoid-loops
structural-use-zip semantic-avoid-imports
semantic-use-recursion semantic-avoid-loops
semantic-add-assertion semantic-remove-try
semantic-replace-builtin-sort semantic-avoid-loops
semantic-avoid-sets semantic-avoid-dicts
"""


def decided(one: str, other: str) -> bool | None:
    known = {each.id: each for each in POOL.instructions}
    found = [contradict(known[a], known[b]) for a, b in ((one, other), (other, one))]
    assert all(found) and len({each.contradicts for each in found if each}) == 1, "the order does not matter"
    return found[0] and found[0].contradicts


@pytest.mark.parametrize("pair", CONFLICTS.split("\n")[1:-1])
def test_what_contradicts(pair: str) -> None:
    assert decided(*pair.split()) is True


@pytest.mark.parametrize("pair", COMPATIBLE.split("\n")[1:-1])
def test_what_can_be_done_at_once(pair: str) -> None:
    assert decided(*pair.split()) is False


@pytest.mark.parametrize(("language", "share"), [("python", 0.009), ("javascript", 0.013), ("java", 0.014)])
def test_few_pairs_of_the_pool_contradict(language: str, share: float) -> None:
    """The pairs were read one by one: other numbers need to be read again."""
    pairs = list(combinations(POOL.of(language), 2))
    found = [contradict(*pair) for pair in pairs]
    assert all(each is None or each.by == "rules" for each in found)
    count = sum(bool(each and each.contradicts) for each in found)
    assert count / len(pairs) == pytest.approx(share, abs=0.0006), count


def made(change: Change, rule: Mapping[str, Any] | None) -> Instruction:
    return Instruction(f"{change}-it", "Do it.", "cosmetic", change, rule)


def test_without_a_rule_nothing_is_decided() -> None:
    assert contradict(made("add", None), made("remove", {"pattern": "comment"})) is None


@pytest.mark.parametrize("change", get_args(Change))
def test_a_pool_of_ones_own_is_read_alike(change: Change) -> None:
    rule: dict[str, Any] = {"pattern": "comment", "matches": "Author"}
    more = {"into": {"pattern": "comment", "matches": "Authors"}} if change == "modify" else {}
    found = contradict(made(change, rule | more), made("remove", {"pattern": "comment"}))
    assert isinstance(found, Contradiction) and found.contradicts is (change != "remove")
