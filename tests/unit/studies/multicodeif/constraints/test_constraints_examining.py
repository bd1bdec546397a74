"""Code is examined in a process that can be ended: whatever a code does to it, the answer is undecided in time."""

import asyncio
import os
import signal
import time
from collections.abc import Sequence

import pytest

from codechat.base.errors import InfrastructureError, UserError
from codechat.studies.multicodeif.constraints import Constraint, Finding, constraint_type
from codechat.studies.multicodeif.constraints.examining import Examination, Examiner, Inquiry, Parsing
from support.multicodeif import Ends, Fails, Hoards, Lacks, Spins


def ask(*inquiries: Inquiry, cpu_s: float = 10.0) -> list[Finding]:
    async def asked() -> list[Finding]:
        examiner = Examiner(1, cpu_s)
        try:
            return await examiner.find(inquiries)
        finally:
            await examiner.aclose()

    return asyncio.run(asked())


def naming(code: str) -> Examination:
    kind = constraint_type("naming")
    return Examination(Constraint("naming", kind.read("python;variable:snake_case")), code, "guarded")


def test_answers_come_in_order() -> None:
    found = ask(naming("good_name = 1"), naming("badName = 1"), Parsing("go", "package main"), Parsing("go", "func {"))
    assert [each.met for each in found] == [True, False, True, False]
    assert "badName" in found[1].reason


@pytest.mark.parametrize(
    ("hostile", "said"),
    [(Spins(), "within 0.5 s of CPU"), (Ends(), "ended the process"), (Hoards(), "MemoryError"), (Fails(), "KeyError")],
)
def test_what_no_process_is_done_with_is_undecided_and_the_next_is_examined(hostile: Inquiry, said: str) -> None:
    begun = time.monotonic()
    found = ask(naming("a_b = 1"), hostile, naming("aB = 1"), cpu_s=0.5)
    assert time.monotonic() - begun < 60
    assert [each.met for each in found] == [True, None, False]
    assert said in found[1].reason


def test_what_is_not_installed_is_the_users_mistake() -> None:
    with pytest.raises(UserError, match="not there") as raised:
        ask(Lacks())
    assert raised.value.remedy == "install it"


def test_what_no_rule_decides_needs_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.studies.multicodeif.constraints.examining._START", "raise SystemExit(3)  # {module}")
    judged = Constraint("code_quality", constraint_type("code_quality").read("a solution"))
    (found,) = ask(Examination(judged, "a = 1", "guarded"))
    assert found == Finding(None, "no rule decides it, but a judge")


def test_a_process_that_cannot_begin_is_infrastructure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.studies.multicodeif.constraints.examining._START", "raise SystemExit(3)  # {module}")
    with pytest.raises(InfrastructureError, match="ended when it began"):
        ask(naming("a = 1"))


HOSTILE: Sequence[str] = (
    "x = '" + "\\'" * 60_000,
    "(" * 100_000,
    "a" * 1_000_000,
    "/*" * 50_000,
    "<" * 100_000,
    'f"{' * 30_000,
    "\x00" * 100_000,
    "\ud800 = 1\n" * 1_000,
    "-" * 150_000,
    "#" * 150_000,
    "```" * 40_000,
)


@pytest.mark.long
@pytest.mark.parametrize("harness", ["official", "guarded"])
def test_hostile_code_is_examined_within_a_bound(harness: str) -> None:
    answers = {"comment": "java;javadoc", "naming": "rust;variable:snake_case",
               "invocation": "cpp;sort"}  # fmt: skip
    begun = time.monotonic()
    for name, raw in answers.items():
        constraint = Constraint(name, constraint_type(name).read(raw))
        found = ask(*(Examination(constraint, code, harness) for code in HOSTILE), cpu_s=1.0)  # type: ignore[arg-type]
        assert len(found) == len(HOSTILE)
        assert all(each.reason for each in found)
    assert time.monotonic() - begun < 240


def test_an_interruption_does_not_end_a_process() -> None:
    async def asked() -> bool | None:
        examiner = Examiner(1)
        await examiner.find([naming("a_b = 1")])
        os.kill(examiner._idle[0].pid, signal.SIGINT)
        found = await examiner.find([naming("a_b = 1")])
        await examiner.aclose()
        return found[0].met

    assert asyncio.run(asked()) is True
