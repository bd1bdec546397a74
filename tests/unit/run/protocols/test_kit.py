"""The verbs of a protocol: what they give without the component that they ask for, and for an answer without code."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Compliance, Extraction, Instruction, Message, Program, Verdict
from codechat.base.records import TurnRecord
from codechat.datasets.tasks import Task
from codechat.judging import ConstraintQuestion
from codechat.run.journal import Journal
from codechat.run.protocols.kit import Kit
from codechat.run.protocols.services import Asked, CheckOnce, Services
from codechat.studies.multicodeif.checking import comply
from codechat.studies.refine.agdis import applicable

ASKED = ConstraintQuestion("t", 0, 2, "prompt", "no loops", "x = 1")
PASSED = Verdict("pass", True, None, inside="")


class Passing:
    """Passes every program, and notes it."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def check(self, program: Program, suite: Any) -> Verdict:
        self.seen.append(program.source)
        return PASSED

    def remember(self, program: Program, suite: Any, verdict: Verdict) -> None:
        return None


class Deciding:
    """A judge that decides constraints."""

    async def constraint(self, question: ConstraintQuestion) -> Compliance:
        return Compliance(question.index == 2, "asked")


class Suite:
    kind, key = "own", "key"

    async def check(self, program: Program, sandbox: Any) -> Verdict:
        return PASSED


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "j.db")
    yield journal
    journal.close()


def kit(journal: Journal, tests: Passing | None = None, **services: Any) -> Kit:
    held: Any = tests or Passing()
    return Kit(Task("t", "p"), "session", 0, Services({}, journal, held, **services), lambda *_: None)


async def test_who_is_not_named_cannot_be_asked(journal: Journal) -> None:
    one = kit(journal)
    instruction: Any = Instruction
    for asked, told in (
        (applicable(one, 0, "x", instruction), "does not name in `uses`"),
        (comply(one, 0, ASKED), "does not name in `uses`"),
        (one.ask("user", 0, (Message("user", "x"),)), "the role 'user' is asked"),
    ):
        with pytest.raises(ValueError, match=told):
            await asked


async def test_a_constraint_is_the_judges_to_decide_if_it_can(journal: Journal) -> None:
    found = await comply(kit(journal, judge=Asked(object(), CheckOnce())), 0, ASKED)  # type: ignore[arg-type]
    assert found.met is None and "judge=llm does" in found.reason
    able: Any = Deciding()
    assert await comply(kit(journal, judge=Asked(able, CheckOnce())), 0, ASKED) == Compliance(True, "asked")


async def test_an_answer_without_a_program_is_not_tested(journal: Journal) -> None:
    tests, whole = Passing(), Suite()
    one = kit(journal, tests)
    assert await one.check(0, Extraction("x", "x = 1", None, ""), whole) == PASSED
    for problem, outcome in (("no_code", "no_code"), ("syntax_error", "syntax_error"), (None, "no_code")):
        verdict = await one.check(1, Extraction(None, None if problem is None else "y", problem, "why"), whole)  # type: ignore[arg-type]
        assert verdict.outcome == outcome and verdict.failure is not None and verdict.failure.reason == "why"
    assert tests.seen == ["x = 1"]


async def test_recorded_calls_stay_but_those_of_roles_that_are_asked_anew(journal: Journal) -> None:
    players: Any = {"model": None, "user": None, "judge": None}
    one = kit(journal)
    one.services = replace(one.services, players=players)
    calls: list[dict[str, Any]] = [
        {"role": role, "request": [], "response": role} for role in ("model", "user", "judge")
    ]
    one.anew = ("judge",)
    one.recall(TurnRecord.model_validate({"turn": 0, "calls": calls}))
    one.finish_turn(TurnRecord(turn=0))
    assert [call.response for call in one.log.turns[0].calls()] == ["model", "user"]
