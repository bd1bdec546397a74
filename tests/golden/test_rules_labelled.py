"""Decisions of the rules held to labels that were written by reading code (issue: no label from running the rules).

The files are in the YAML format of `benchmarks/rules.py`. A triple that is hard to judge says why: the change is
`partial`, made `elsewhere` than asked, `over` what was asked, or there is none (`unchanged`); the code after is `broken`;
the pattern stands only in a `string` or comment; it is there, but `unused`, or only `carries` a value through, or has
the `form` alone; it is there in an `other-form`; what was to go has only `moved`, or has another name; the `wrong-rename`; something similar that is not it (`lookalike`);
`nested`, `decorator`, `async`, `match`: it turns on such code; `formatting`: on an unusual layout.
"""

from collections import Counter

import pytest

from codechat.base.domain import CHANGES, SCOPES, Instruction
from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.studies.refine.patterns import adherence, applicable
from support.triples import Triple, read_triples

POOL = {instruction.id: instruction for instruction in read_pool(EMBEDDED, {}).instructions}
TRIPLES = read_triples(POOL)
KINDS = {
    "partial", "elsewhere", "over", "unchanged", "broken", "string", "wrong-rename", "lookalike", "nested", "decorator",
    "async", "match", "formatting", "unused", "carries", "form", "other-form", "moved",
}  # fmt: skip

DECEIVING = {"form", "carries", "moved", "unused", "partial"}
"""What was written to look like what was asked for: rules that read form are undecided on some of it, wrong on some."""


def _of(name: str) -> list[Triple]:
    return [one for one in TRIPLES if one.instruction.id == name]


def _complete() -> list[Triple]:
    """The triples with both labels, each once."""
    whole = [one for one in TRIPLES if one.adherence is not None and one.applicable is not None]
    return list({(one.instruction.id, one.before, one.after): one for one in whole}.values())


def test_every_instruction_has_labels_of_both_kinds() -> None:
    for name in POOL:
        assert {one.applicable for one in _of(name)} >= {True, False}, name
        assert {one.adherence for one in _of(name)} >= {"adhered", "violated"}, name


def test_every_change_is_of_a_program_that_is_labelled_too() -> None:
    assert [one.place for one in TRIPLES if one.adherence is not None and one.applicable is None] == []


def test_there_are_as_many_labels_as_promised_half_of_them_hard() -> None:
    whole = _complete()
    hard = [one for one in whole if one.hard is not None]
    assert len(whole) >= 1000
    assert 2 * len([one for one in hard if one.hard != "lookalike"]) >= len(whole)


def test_every_kind_of_difficulty_is_there_in_every_scope_and_change() -> None:
    hard = [one for one in _complete() if one.hard is not None]
    kinds = Counter(one.hard for one in hard)
    assert kinds.keys() == KINDS
    assert min(kinds.values()) >= 10, kinds
    cells = Counter(one.instruction.kind for one in hard)
    assert cells.keys() == {f"{scope}/{change}" for scope in SCOPES for change in CHANGES}
    assert min(cells.values()) >= 25, cells
    assert {one.adherence for one in hard} == {"adhered", "violated"}
    assert sum(one.applicable is False for one in hard) >= 25


def test_applicability() -> None:
    decisions = [(one, applicable(one.before, one.instruction)) for one in TRIPLES if one.applicable is not None]
    assert all(decision.reason and "\n" not in decision.reason for _, decision in decisions)
    right = sum(decision.applicable is one.applicable for one, decision in decisions)
    assert right >= 0.99 * len(decisions), f"{right} of {len(decisions)}"


@pytest.mark.parametrize(("deceiving", "decided", "right"), [(False, 0.98, 0.99), (True, 0.75, 0.65)])
def test_adherence(deceiving: bool, decided: float, right: float) -> None:
    """The share that is decided, and of these the share that is right; `DECEIVING` kinds are held apart."""
    triples = [one for one in TRIPLES if one.after is not None and (one.hard in DECEIVING) is deceiving]
    decisions = [(one, adherence(one.before, one.after or "", one.instruction)) for one in triples if one.adherence]
    assert all(decision.reason and "\n" not in decision.reason for _, decision in decisions)
    sure = [(one.adherence, decision.verdict) for one, decision in decisions if decision.verdict != "undecided"]
    agreed = sum(label == verdict for label, verdict in sure)
    assert len(sure) >= decided * len(decisions), f"{len(sure)} of {len(decisions)}"
    assert agreed >= right * len(sure), f"{agreed} of {len(sure)}"


@pytest.mark.parametrize("name", sorted(POOL))
def test_unchanged_and_broken_code_are_violated(name: str) -> None:
    instruction: Instruction = POOL[name]
    for program in {one.before for one in _of(name) if one.applicable}:
        assert adherence(program, program, instruction).verdict == "violated"
        assert adherence(program, program.rstrip() + "\n\n\n", instruction).reason == "the code is unchanged"
        assert adherence(program, "", instruction).verdict == "violated"
        assert adherence(program, "def broken(:\n    return (1\n", instruction).verdict == "violated"
