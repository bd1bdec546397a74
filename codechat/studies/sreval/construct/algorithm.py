"""The order of a task's steps, and Algorithms 1 and 2 of SR-Eval: a program and tests for every step.

The analyzer's graph of dependencies is checked, not trusted (3.1.2). Algorithm 1 demands tests that detect their step
and ask for nothing else; Algorithm 2 runs programs against tests in the sandbox.
"""

import ast
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from codechat.base.domain import Program, Target, Verdict
from codechat.base.errors import BrokenTask, UserError
from codechat.base.template import counted
from codechat.datasets.reading.rows import make_suite
from codechat.run.construct import Dropped
from codechat.sandbox.languages import language_of
from codechat.sandbox.languages.python.syntax import parse
from codechat.sandbox.languages.python.target import is_python
from codechat.sandbox.suites import SUITES, Suite
from codechat.studies.sreval.dataset import CPU_S, needs_of

Edge = tuple[int, int]  # a step, counted from 1, and one that needs it


def graph_problem(steps: int, edges: Iterable[Edge]) -> str:
    """The reason why edges are no dependencies of steps that all grow from the first; empty if they are.

    They name steps that exist, form no cycle, and lead from the first step, which needs none, to every other.
    """
    edges = list(edges)
    unknown = sorted({step for edge in edges for step in edge if not 1 <= step <= steps})
    if unknown:
        return f"an edge names the step {unknown[0]}, and there are steps 1 to {steps}"
    if any(after == 1 for _, after in edges):
        return "an edge leads to step 1, which must need no other"
    depths = _depths(steps, edges)
    if len(depths) < steps:
        return f"the edges form a cycle over {_listed(set(range(1, steps + 1)) - set(depths))}, or lead from one there"
    roots = set(range(2, steps + 1)) - {after for _, after in edges}  # without a cycle, unreached steps have one
    return f"no edge leads to {_listed(roots)}: every step but the first needs another" if roots else ""


def order_steps(steps: int, edges: Iterable[Edge], proposed: Sequence[int] = ()) -> tuple[int, ...]:
    """The proposed order if it is a topological order of a valid graph, else the steps by depth, then by number.

    The depth of a step is the length of the longest path from the first step.
    """
    edges = list(edges)
    place = {step: index for index, step in enumerate(proposed)}
    if sorted(proposed) == list(range(1, steps + 1)) and all(place[before] < place[after] for before, after in edges):
        return tuple(proposed)
    depths = _depths(steps, edges)
    return tuple(sorted(depths, key=lambda step: (depths[step], step)))


def _depths(steps: int, edges: Sequence[Edge]) -> dict[int, int]:
    """The longest path to each step; steps on a cycle, and after one, have none."""
    left, depths = set(range(1, steps + 1)), dict[int, int]()
    for depth in range(steps):
        free = left - {after for before, after in edges if before in left}
        depths |= dict.fromkeys(free, depth)
        left -= free
    return depths


def _listed(steps: Iterable[int]) -> str:
    numbers = [str(step) for step in sorted(steps)]
    return f"step{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


Found = Literal["passes", "fails", "unfit", "not_run", "timeout", "crash", "broken"]
Check = Callable[[Program, Suite], Awaitable[Verdict]]


@dataclass(frozen=True, slots=True)
class Draft:
    """A program and its tests, as the coder wrote them."""

    code: str
    test: str


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a program: its language, the name it must define (empty if none), and its surroundings.

    `suite` has the fields of a repository's kind of tests (`inserted` or `maven`) without `tests`; None for a program
    that stands alone.
    """

    language: str
    entry_point: str = ""
    suite: Mapping[str, Any] | None = None

    @property
    def target(self) -> Target:
        return Target(self.language, self.entry_point)

    @property
    def stub(self) -> str:
        """A program without any function: tests that pass with it check nothing."""
        if self.language == "python":
            head = f"def {self.entry_point}(*args, **kwargs):" if self.entry_point else "def nothing_yet():"
            return f"{head}\n    raise NotImplementedError\n"
        return "final class NothingYet { }\n" if self.suite is None else ""

    def suite_fields(self, tests: str, solution: str) -> dict[str, Any]:
        """The fields of a suite in a row of `dataset=jsonl`."""
        if self.suite is not None:
            return {**self.suite, "tests": tests}
        if self.language == "java":
            return {"kind": "junit", "tests": tests, "declares": sorted(language_of("java").defines(solution) or ())}
        if self.language == "python":
            needs = sorted(needs_of(tests, solution))
            asked = {"needs": needs, "cpu_s": CPU_S} if needs else {}
            return {"kind": "assertions", "tests": [tests], "one_file": True, **asked}
        raise UserError(f"steps are made for Python and Java, not {self.language}", "leave these seeds out")

    def suite_of(self, tests: str, solution: str) -> Suite:
        """The suite of some tests. Raises `ValueError` or `UserError` if they are none."""
        return make_suite(SUITES.validate(self.suite_fields(tests, solution), "suite"), "a step")


@dataclass(frozen=True, slots=True)
class Checked:
    """The end of a run of tests on a program, and feedback on it in words.

    `unfit`: the tests do not compile with the program, which compiles by itself. `not_run`: there is no test, or not
    every one ran. `broken`: the program does not compile or parse. Ends other than `passes`, `fails` and `unfit` are no
    evidence on the tests' power to discriminate.
    """

    found: Found
    feedback: str = ""

    @property
    def correct(self) -> bool:
        """The check `correctness`: all tests pass."""
        return self.found == "passes"

    @property
    def discriminating(self) -> bool:
        """The check `distinctiveness`: the tests fail a previous program, or use a name that it does not declare."""
        return self.found in ("fails", "unfit")


async def unified_check(check: Check, place: Place, program: str, draft: Draft) -> Checked:
    """The end of a draft's tests on a program (Algorithm 2). Raises `InfrastructureError` if the sandbox fails."""
    if place.language == "python" and not is_python(program):
        return Checked("broken", "The program is not valid Python.")
    if place.language == "python" and (why := unusable(draft.test, place)):
        return Checked("not_run", why)
    try:
        suite = place.suite_of(draft.test, draft.code)
    except (UserError, ValueError) as error:  # of the tests: they come from a model
        return Checked("not_run", str(error).splitlines()[0])
    try:
        verdict = await check(Program(program, place.target), suite)
    except BrokenTask as error:
        return Checked("not_run", str(error).splitlines()[0])
    return read_verdict(verdict)


def unusable(tests: str, place: Place) -> str:
    """The reason why tests in Python cannot be run as they are; empty if they can."""
    tree = parse(tests)
    if tree is None:
        return "The tests are not valid Python."
    names = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    if place.suite is None and not any(name.startswith("test") for name in names):
        return "The tests define no method whose name begins with test."
    return ""


def read_verdict(verdict: Verdict) -> Checked:
    """A verdict as an end, with the failure in words."""
    if verdict.passed:
        return Checked("passes")
    failure = verdict.failure
    parts = [] if failure is None else [failure.reason, failure.exception, failure.stdout]
    feedback = "\n".join(part for part in parts if part)
    if verdict.unrun is not None:
        return Checked("unfit" if verdict.unrun == "unfit" else "not_run", feedback)
    found: Mapping[str, Found] = {"fail": "fails", "timeout": "timeout", "crash": "crash"}
    return Checked(found.get(verdict.outcome, "broken"), feedback)


Skippable = Literal["alignment", "distinctiveness"]
Decision = Literal["RETAIN", "TEST_REFINE", "QUESTION_REFINE"]
ALIGNMENT: Skippable = "alignment"
DISTINCTIVENESS: Skippable = "distinctiveness"
UNREADABLE = "The answer could not be read: give the whole program in one code block, and its tests in a second one."
UNJUDGED = "Nobody could judge if the tests fit the requirement: let each check one thing that the requirement says."
KEPT = "The requirement stays as it is, so the tests must ask for nothing that it does not say. "
ALL_PASS = "The tests also pass with {which}, which lacks what is new. Test what this requirement changes, only that."
NOTHING_SAID = "The tests do not simply fail with {which}: {feedback}"


@dataclass(frozen=True, slots=True)
class Turn:
    """A finished step. `attempts` counts the coder's replies; `told_by` is the tests' end with the previous program.

    `told_by` is None at the first step, and if distinctiveness is not checked.
    """

    requirement: str
    draft: Draft
    attempts: int
    told_by: Found | None


@dataclass(frozen=True, slots=True)
class Round:
    """A request to the coder: the step's requirement, the steps before, and the last draft with feedback on it."""

    turn: int
    attempt: int
    requirement: str
    trajectory: Sequence[Turn]
    defect: Draft | None
    feedback: str


@dataclass(frozen=True, slots=True)
class Judged:
    """The alignment's decision on a draft, feedback for the coder, and a better requirement if that is at fault."""

    decision: Decision
    feedback: str = ""
    requirement: str = ""


class Team(Protocol):
    """The agents of the algorithm. A call is identified by turn and attempt."""

    async def write(self, asked: Round) -> Draft | None:
        """The coder's program and tests; None if the reply has no two blocks of code."""

    async def check(self, code: str | None, draft: Draft) -> Checked:
        """Algorithm 2: a draft's tests on a program; None: on `Place.stub`."""

    async def align(self, asked: Round, draft: Draft) -> Judged | None:
        """Whether tests and requirement fit each other; None if no decision could be read."""

    async def settle(self, asked: Round, judged: Judged) -> str | None:
        """People's requirement, None if it stays. Raises `Settled` if the task waits, or is dropped."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`attempts` of a turn, and the earlier solutions that tests must not pass."""

    attempts: int = 10
    earlier: Literal["all", "previous"] = "all"
    skip: Collection[Skippable] = ()


async def make_turns(requirements: Sequence[str], team: Team, limits: Limits) -> tuple[Turn, ...] | Dropped:
    """A finished turn for each requirement, or the reason for none (Algorithm 1).

    Beyond the paper: attempts are counted anew for each turn from 1, a draft of the turn before is no defect of the
    next, and no earlier solution may pass the tests.
    """
    wanted, trajectory = list(requirements), list[Turn]()
    attempt, defect, feedback = 1, None, ""
    while len(trajectory) < len(wanted) and attempt <= limits.attempts:
        turn = len(trajectory)
        asked = Round(turn + 1, attempt, wanted[turn], tuple(trajectory), defect, feedback)
        attempt += 1
        draft = await team.write(asked)
        if draft is None:
            feedback = UNREADABLE
            continue
        defect = draft
        # stage 1: correctness
        checked = await team.check(draft.code, draft)
        if not checked.correct:
            feedback = checked.feedback
            continue
        # stage 2: distinctiveness
        told_by = None
        if DISTINCTIVENESS not in limits.skip:
            told_by, feedback = await _distinctive(team, draft, trajectory, limits)
            if feedback:
                continue
        # stage 3: semantic alignment
        judged = Judged("RETAIN") if ALIGNMENT in limits.skip else await team.align(asked, draft)
        if judged is None:
            feedback = UNJUDGED
        elif judged.decision == "RETAIN":
            trajectory.append(Turn(wanted[turn], draft, asked.attempt, told_by))
            attempt, defect, feedback = 1, None, ""
        elif judged.decision == "TEST_REFINE":
            feedback = judged.feedback
        else:
            answer = await team.settle(asked, judged)
            wanted[turn] = answer or wanted[turn]
            feedback = judged.feedback if answer else KEPT + judged.feedback
    if len(trajectory) < len(wanted):
        end = f"turn {len(trajectory) + 1} of {len(wanted)} is not made in {counted(limits.attempts, 'attempt')}"
        return Dropped("attempts used up", f"{end}; at last: {feedback}")
    return tuple(trajectory)


async def _distinctive(
    team: Team, draft: Draft, trajectory: Sequence[Turn], limits: Limits
) -> tuple[Found | None, str]:
    """The end of the draft's tests with the previous solution, and a problem with it; empty if they detect the step.

    The first turn's previous solution is `Place.stub`. Solutions before the previous one must only not pass.
    """
    if not trajectory:
        if limits.earlier == "all" and (await team.check(None, draft)).correct:
            return None, ALL_PASS.format(which="a program that has nothing yet")
        return None, ""
    previous = await team.check(trajectory[-1].draft.code, draft)
    if previous.correct:
        return previous.found, ALL_PASS.format(which="the previous solution")
    if not previous.discriminating:
        return previous.found, NOTHING_SAID.format(which="the previous solution", feedback=previous.feedback)
    for turn in range(len(trajectory) - 1) if limits.earlier == "all" else ():
        if (await team.check(trajectory[turn].draft.code, draft)).correct:
            return previous.found, ALL_PASS.format(which=f"the solution of turn {turn + 1}")
    return previous.found, ""
