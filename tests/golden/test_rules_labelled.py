"""Decisions of the rules held to labels that were written by reading code (issue: no label from running the rules).

A case names an instruction, the programs it fits and those it does not, and revisions with their verdict. A revision is a
program's name followed by pairs (text to find, its replacement), `*` standing for the whole program.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from codechat.domain import Instruction
from codechat.instructions.pool import EMBEDDED, read_pool
from codechat.patterns import adherence, applicable

FOLDER = Path(__file__).with_name("rules")
POOL = {instruction.id: instruction for instruction in read_pool(EMBEDDED, {}).instructions}


class Revision(NamedTuple):
    """A labelled change."""

    instruction: str
    verdict: str
    before: str
    after: str


def _files() -> list[dict[str, Any]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [yaml.load(path.read_text(), Loader=loader) for path in sorted(FOLDER.glob("*.yaml"))]


def _revise(program: str, steps: list[str]) -> str:
    assert len(steps) % 2 == 0, steps
    for old, new in zip(steps[::2], steps[1::2], strict=True):
        assert old == "*" or old in program, f"{old!r} is not in the program"
        program = new if old == "*" else program.replace(old, new)
    return program


FILES = _files()
CASES = [(case["instruction"], file["programs"], case) for file in FILES for case in file["cases"]]


def _fits() -> Iterator[tuple[str, bool, str]]:
    for name, programs, case in CASES:
        for label, fits in (("fits", True), ("unfit", False)):
            yield from ((name, fits, programs[program]) for program in case.get(label, []))


def _revisions() -> Iterator[Revision]:
    for name, programs, case in CASES:
        for verdict in ("adhered", "violated"):
            for program, *steps in case.get(verdict, []):
                yield Revision(name, verdict, programs[program], _revise(programs[program], steps))


def test_every_instruction_has_labels_of_both_kinds() -> None:
    fits = {(name, fits) for name, fits, _ in _fits()}
    verdicts = {(revision.instruction, revision.verdict) for revision in _revisions()}
    for name in POOL:
        assert {(name, True), (name, False)} <= fits, name
        assert {(name, "adhered"), (name, "violated")} <= verdicts, name


def test_there_are_as_many_labels_as_promised() -> None:
    assert len(list(_revisions())) >= 400


@pytest.mark.parametrize("name", sorted({name for name, _, _ in CASES}))
def test_applicability(name: str) -> None:
    for instruction, fits, code in _fits():
        if instruction == name:
            decision = applicable(code, POOL[name])
            assert decision.applicable is fits, f"{decision.reason}\n{code}"
            assert decision.reason and "\n" not in decision.reason


@pytest.mark.parametrize("name", sorted({name for name, _, _ in CASES}))
def test_adherence(name: str) -> None:
    for revision in _revisions():
        if revision.instruction == name:
            decision = adherence(revision.before, revision.after, POOL[name])
            shown = f"{decision.reason}\n--- before\n{revision.before}\n--- after\n{revision.after}"
            assert decision.verdict == revision.verdict, shown
            assert decision.reason and "\n" not in decision.reason


@pytest.mark.parametrize("name", sorted(POOL))
def test_unchanged_and_broken_code_are_violated(name: str) -> None:
    instruction: Instruction = POOL[name]
    for program in {code for one, fits, code in _fits() if one == name and fits}:
        assert adherence(program, program, instruction).verdict == "violated"
        assert adherence(program, program.rstrip() + "\n\n\n", instruction).reason == "the code is unchanged"
        assert adherence(program, "", instruction).verdict == "violated"
        assert adherence(program, "def broken(:\n    return (1\n", instruction).verdict == "violated"
