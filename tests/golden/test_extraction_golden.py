"""The golden table of extraction: cases as data, see `extraction/README.md`. Their programs are our own, so they are run."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Extraction, Target
from codechat.base.files import from_yaml
from codechat.sandbox.languages import extract, fence, without_thinking

KEYS = {"name", "reply", "language", "entry_point", "problem", "code", "program", "calls", "reason_has", "history"}
KEYS |= {"code_has", "code_lacks", "program_has", "program_lacks"}
CASES: list[Any] = [
    pytest.param(case, id=f"{path.stem}: {case['name']}")
    for path in sorted((Path(__file__).parent / "extraction").glob("*.yaml"))
    for case in from_yaml(path.read_text(encoding="utf-8"))
]


def test_the_table_is_large_enough() -> None:
    assert len(CASES) >= 100
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES)
def test_case(case: dict[str, Any]) -> None:
    assert set(case) <= KEYS
    target = Target(case.get("language", "python"), case.get("entry_point", "f"))
    found = extract(case["reply"], target)
    assert found.problem == case.get("problem"), found
    assert found.reason
    assert "\n" not in found.reason
    assert case.get("reason_has", "") in found.reason
    for kind, text in (("code", found.code), ("program", found.program)):
        if kind in case:
            assert text is not None
            assert text.rstrip("\n") == case[kind].rstrip("\n")
        assert all(piece in (text or "") for piece in case.get(f"{kind}_has", []))
        assert not any(piece in (text or "") for piece in case.get(f"{kind}_lacks", []))
    if case.get("problem") is None:
        check_again(found, target)
    if case.get("problem") is None and target.language == "python":
        check_program(found, target.entry_point, case.get("calls", {}))
    assert without_thinking(case["reply"]) == case.get("history", case["reply"])


def check_again(found: Extraction, target: Target) -> None:
    assert found.code is not None
    again = extract(found.code if target.language == "python" else fence(found.code, target.language), target)
    assert (again.code, again.program) == (found.code, found.program)


def check_program(found: Extraction, entry_point: str, calls: dict[str, Any]) -> None:
    assert found.program is not None
    names: dict[str, Any] = {"__name__": "candidate"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(found.program, "<program>", "exec")
    exec(code, names)
    assert not entry_point or callable(names[entry_point])
    for call, value in calls.items():
        assert eval(call, names) == value
