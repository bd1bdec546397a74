"""A session's steps: their names and numbers, who pays, when nothing begins, and what the records get of them."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codechat.base.domain import (
    Adherence,
    Applicabilities,
    Applicability,
    Build,
    Compliance,
    Instruction,
    Message,
    Output,
    Program,
    Reply,
    Usage,
    Verdict,
)
from codechat.base.errors import ContextOverflow, Stopped
from codechat.base.records import TurnRecord
from codechat.datasets.tasks import Task
from codechat.judging import ConstraintQuestion
from codechat.judging.deciding import Question
from codechat.models import UNDER_TEST
from codechat.models.calls import Brake
from codechat.models.scripted import Scripted
from codechat.run.journal import Journal
from codechat.run.protocols.kit import Kit
from codechat.run.protocols.services import Asked, CheckOnce, Player, Services
from codechat.sandbox import Command, Ran
from codechat.studies.cab.verbs import build, enter, environment_of, run_command
from codechat.studies.multicodeif.checking import comply, examine
from codechat.studies.multicodeif.constraints import Finding
from codechat.studies.refine.agdis import adherence, applicable, applicable_together

ONE, TWO = Message("user", "one"), Message("user", "two")
PASSED = Verdict("pass", True, None, inside="")


class Noting:
    """A journal that keeps nothing, and notes each step."""

    def __init__(self) -> None:
        self.steps = list[tuple[str, str | None, bool]]()
        self.digests = dict[str, str]()

    async def step(self, session: str, name: str, digest: str, kind: Any, begin: Any, *, payer: Any, free: bool) -> Any:
        self.steps.append((name, payer, free))
        self.digests[name] = digest
        return await begin()


class Gate:
    count = 0

    async def check(self) -> None:
        self.count += 1


class Checking:
    def __init__(self, keys: dict[str, str] | None = None) -> None:
        self.keys, self.checked, self.referenced = keys or {}, list[Program](), list[Program]()

    async def check(self, program: Program, suite: Any) -> Verdict:
        self.checked.append(program)
        return PASSED

    async def check_reference(self, program: Program, suite: Any) -> Verdict:
        self.referenced.append(program)
        return PASSED

    def remember(self, program: Program, suite: Any, verdict: Verdict) -> str:
        return self.keys.get(program.source, program.source)

    async def run(self, command: Command) -> Ran:
        return Ran(7)


SUITE: Any = SimpleNamespace(kind="own", key="key")
CALLS = "calls"


def kit(
    answers: dict[str, list[Any]] | None = None, *, brake: Brake | None = None, baseline: bool = False, **more: Any
) -> tuple[Kit, Noting, list[tuple[TurnRecord, bool]], list[Any]]:
    journal, turns, seen = Noting(), list[tuple[TurnRecord, bool]](), list[Any]()
    left = {role: list(each) for role, each in (answers or {}).items()}

    def player(role: str) -> Player:
        def answer(request: Any) -> Any:
            seen.append(request)
            said = left[role].pop(0)
            return Reply(said, usage=Usage(3, 1)) if isinstance(said, str) else said

        return Player(Scripted(answer), Gate(), baseline and role == UNDER_TEST)  # type: ignore[arg-type]

    found = Services(
        {role: player(role) for role in left}, journal, more.pop("tests", Checking()), brake=brake or Brake(), **more  # type: ignore[arg-type]
    )  # fmt: skip
    return Kit(Task("t", "p"), "s", 5, found, lambda turn, new: turns.append((turn, new))), journal, turns, seen


async def test_calls_are_numbered_by_role_and_turn_and_charged_to_the_role() -> None:
    one, journal, _, seen = kit({UNDER_TEST: ["a", "b", "c"], "user": ["d"]})
    said = [(await one.ask(role, turn, (ONE,), final=final)).text
            for role, turn, final in ((UNDER_TEST, 0, False), (UNDER_TEST, 0, True), (UNDER_TEST, 1, False), ("user", 0, False))]  # fmt: skip
    assert said == ["a", "b", "c", "d"]
    assert journal.steps == [("0/model", "model", False), ("0/model/1", "model", False), ("1/model", "model", False),
                             ("0/user", "user", False)]  # fmt: skip
    assert [(each.number, each.turn, each.role, each.final, each.view) for each in seen] == [
        (0, 0, "model", False, None), (1, 0, "model", True, None), (0, 1, "model", False, None), (0, 0, "user", False, None)
    ]  # fmt: skip
    assert all((each.task_id, each.sample, each.messages) == ("t", 5, (ONE,)) for each in seen)


async def test_a_baseline_alone_sees_behind_the_request() -> None:
    instruction = Instruction("i", "text", "cosmetic", "add")
    one, _, _, seen = kit({UNDER_TEST: ["a"], "user": ["b"]}, baseline=True)
    await one.ask(UNDER_TEST, 0, (ONE,), instruction=instruction, code="x", reference="r")
    await one.ask("user", 0, (ONE,), instruction=instruction, code="x", reference="r")
    view = seen[0].view
    assert view is not None and seen[1].view is None
    assert {"x", "r", 5} <= {view.code, view.reference, view.seed}


async def test_a_request_that_does_not_fit_is_recorded_and_raised() -> None:
    one, journal, _, _ = kit({UNDER_TEST: [ContextOverflow("too long")], "user": []})
    with pytest.raises(ContextOverflow, match="too long"):
        await one.ask(UNDER_TEST, 0, (ONE,))
    assert journal.steps == [("0/model", "model", False)]
    one.finish_turn(TurnRecord(turn=0))
    assert [call.response for call in one.log.turns[0].calls()] == [None]


async def test_the_calls_of_further_roles_stand_in_the_turns_record() -> None:
    one, _, turns, _ = kit({UNDER_TEST: ["a"], "user": ["b", "c"]})
    await one.ask("user", 0, (ONE,))
    await one.ask(UNDER_TEST, 0, (ONE,))
    await one.ask("user", 1, (ONE, TWO))
    one.finish_turn(TurnRecord(turn=0))
    one.finish_turn(TurnRecord(turn=1))
    one.finish_turn(TurnRecord(turn=2))
    first, second, third = (turn for turn, _ in turns)
    assert [call.role for call in first.calls()] == ["user", "model"] and not list(third.calls())
    (call,) = second.calls()
    assert (call.earlier, list(call.request)) == (1, [TWO])
    assert [new for _, new in turns] == [True, True, False]
    alone, _, turns, _ = kit({UNDER_TEST: ["a"]})
    await alone.ask(UNDER_TEST, 0, (ONE,))
    alone.finish_turn(TurnRecord(turn=0))
    assert CALLS not in (turns[0][0].model_extra or {}) and not [*turns[0][0].calls()][1:]


@pytest.mark.parametrize(("interrupted", "check", "ask"), [(False, True, False), (True, False, False)])
async def test_a_budget_stops_calls_and_an_interruption_every_step(interrupted: bool, check: bool, ask: bool) -> None:
    brake, tests = Brake(), Checking()
    one, _, _, seen = kit({UNDER_TEST: ["a"]}, brake=brake, tests=tests)
    brake.pull("why", interrupted=interrupted)
    if check:
        assert await one.check_program(0, "x", SUITE) == PASSED
    else:
        with pytest.raises(Stopped):
            await one.check_program(0, "x", SUITE)
    with pytest.raises(Stopped):
        await one.ask(UNDER_TEST, 0, (ONE,))
    with pytest.raises(Stopped):
        await one.decide(UNDER_TEST, 0, Question("q", "p", {"VERDICT": ("YES",)}, ""))
    assert seen == [] and len(tests.checked) == check


async def test_equal_programs_are_said_to_be_tested_as_the_earliest() -> None:
    one, journal, turns, _ = kit(tests=Checking({"a": "x", "b": "x", "c": "y"}))
    for turn, source in enumerate(("a", "c", "b", "other", "a")):
        await one.check_program(turn, source, SUITE)
        one.finish_turn(TurnRecord(turn=turn))
    assert [turn.tested_as for turn, _ in turns] == [None, None, 0, None, 0]
    assert journal.steps[0] == ("0/check/own", None, False)


async def test_a_reference_is_checked_apart_and_is_no_program_of_the_turn() -> None:
    tests = Checking({"a": "x"})
    one, _, turns, _ = kit(tests=tests)
    await one.check_reference(0, "a", SUITE)
    await one.check_program(1, "a", SUITE)
    one.finish_turn(TurnRecord(turn=1))
    assert len(tests.referenced) == len(tests.checked) == 1 and turns[0][0].tested_as is None
    assert await one.run(0, Command(argv=("x",), wall_s=1.0)) == Ran(7)


class Judge:
    """Decides everything."""

    async def applicable(self, code: str, instruction: Instruction) -> Applicability:
        return Applicability(True, "x")

    async def adherence(self, before: str, after: str, instruction: Instruction) -> Adherence:
        return Adherence("adhered", "x", f"{before}{after}")

    async def constraint(self, question: ConstraintQuestion) -> Compliance:
        return Compliance(True, "x")


class Together(Judge):
    async def applicable_together(self, code: str, instructions: Any) -> Applicabilities:
        return Applicabilities(tuple(Applicability(True, each.id) for each in instructions))


@pytest.mark.parametrize("offline", [True, False])
async def test_a_judges_decisions_are_steps_that_its_roles_pay(offline: bool) -> None:
    gate: Any = Gate()
    one, journal, _, _ = kit(judge=Asked(Together(), gate, offline))  # type: ignore[arg-type]
    several = [Instruction(name, name, "cosmetic", "add") for name in ("i", "j")]
    assert (await applicable(one, 0, "x", several[0])).applicable
    assert [each.by for each in (await applicable_together(one, 0, "x", several)).decisions] == ["i", "j"]
    assert (await adherence(one, 0, "x", "y", several[0])).reason == "xy"
    question = ConstraintQuestion("t", 0, 3, "p", "c", "x")
    assert (await comply(one, 0, question)).met
    assert journal.steps == [
        ("0/applicability/i", "applicability", offline), ("0/applicability/together/i", "applicability", False),
        ("0/adherence", "adherence", offline), ("0/constraint/3", "constraint", offline),
    ]  # fmt: skip
    assert gate.count == 4
    digest = journal.digests["0/constraint/3"]
    await comply(one, 0, ConstraintQuestion("t", 0, 3, "p", "c", "x", like_reference=True))
    assert journal.digests["0/constraint/3"] != digest
    with pytest.raises(TypeError, match="one instruction"):
        await applicable_together(kit(judge=Asked(Judge(), gate))[0], 0, "x", several)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="uses"):
        await applicable(kit()[0], 0, "x", several[0])


async def test_a_roles_decision_is_a_step_and_a_call_of_the_record() -> None:
    one, journal, _, _ = kit({UNDER_TEST: [], "reviewer": ["VERDICT: YES", "?"]})
    question = Question("right", "prompt", {"VERDICT": ("YES",)}, "", max_reasks=0)
    assert (await one.decide("reviewer", 0, question)).verdict == "YES"
    assert (await one.decide("reviewer", 0, question)).answers is None
    one.finish_turn(TurnRecord(turn=0))
    assert journal.steps == [("0/reviewer/right", "reviewer", False)] * 2
    assert [(call.response, [each.content for each in call.request]) for call in one.log.turns[0].calls()] == [
        ("VERDICT: YES", ["prompt"]), ("", ["prompt"])
    ]  # fmt: skip


@dataclass(frozen=True)
class Housed(Task):
    workspace: Any = "a repository"


class Rooms:
    def __init__(self) -> None:
        self.done = list[Any]()

    async def open(self, workspace: Any) -> Any:
        self.done.append("open")
        return self

    async def run(self, command: str) -> Any:
        self.done.append(command)
        return Output(command, 0)

    async def build(self, files: Any, dockerfile: Any) -> Any:
        self.done.append(dockerfile)
        return SimpleNamespace(spec=Build)

    async def aclose(self) -> None:
        self.done.append("closed")


async def test_commands_and_builds_are_numbered_steps_in_one_room() -> None:
    rooms: Any = Rooms()
    one, journal, _, _ = kit({UNDER_TEST: []}, serving={"environment": rooms})
    one.task = Housed("t", "p")
    await enter(one, 0)
    for word in ("ls", "pwd"):
        assert (await run_command(one, 0, word)).text == word
    await run_command(one, 1, "id")
    await build(one, 1, {}, "FROM x")
    await build(one, 1, {}, None)
    visit = one.opened.get("visit", SimpleNamespace)  # type: ignore[type-var]
    await one.aclose()
    assert journal.steps == [
        ("0/room", None, True), ("0/command/0", None, True), ("0/command/1", None, True), ("1/command/0", None, True),
        ("1/build/0", None, False), ("1/build/1", None, False),
    ]  # fmt: skip
    assert rooms.done == ["open", "ls", "pwd", "id", "FROM x", None, "closed"] and environment_of(one) is rooms
    assert visit._known == ["ls", "pwd", "id"]


async def test_rules_find_in_the_order_of_the_questions() -> None:
    class Examiner:
        closed = False

        async def aclose(self) -> None:
            self.closed = True

        async def find(self, inquiries: Any) -> list[Finding]:
            return [Finding(True, each.key) for each in inquiries]

    one, journal, _, _ = kit()
    examiner = one.services.opened.get("examiner", Examiner)
    asked: Any = [SimpleNamespace(key=key) for key in "ba"]
    assert [each.reason for each in await examine(one, 2, asked, free=True)] == ["b", "a"]
    assert journal.steps == [("2/examine", None, True)]
    await one.services.opened.aclose()
    assert examiner.closed


def test_random_numbers_are_the_tasks_own_and_the_purposes() -> None:
    one = kit()[0]
    drawn = [
        each.random() for each in (one.generator("a"), one.generator("a", 5), one.generator("a", 6), one.generator("b"))
    ]
    assert drawn[0] == drawn[1] and len(set(drawn)) == 3


async def test_components_are_checked_once_and_again_after_a_failure() -> None:
    class Fails(Gate):
        async def check(self) -> None:
            await super().check()
            if self.count == 1:
                raise ValueError("not yet")

    plain, failing = Gate(), Fails()
    gate = CheckOnce(plain, failing)
    with pytest.raises(ValueError, match="not yet"):
        await gate.check()
    await asyncio.gather(*(gate.check() for _ in range(3)))
    await gate.check()
    assert (plain.count, failing.count) == (2, 2)


async def test_what_was_recorded_is_not_new(tmp_path: Path) -> None:
    seen = list[bool]()
    for expected in (True, False):
        journal = Journal(tmp_path / "j.db")
        tests: Any = Checking()
        one = Kit(Task("t", "p"), "s", 0, Services({}, journal, tests), lambda turn, new: seen.append(new))
        await one.check_program(0, "x", SUITE)
        await journal.settle()
        one.finish_turn(TurnRecord(turn=0))
        journal.close()
        assert seen[-1] is expected and len(tests.checked) == expected
