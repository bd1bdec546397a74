"""Algorithm 1 of SR-Eval: for each requirement code, and tests that tell the step and ask for nothing else."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from codechat.base.template import counted
from codechat.run.construct import Dropped
from codechat.studies.sreval.construct.checking import Checked, Draft, Found

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
    """A finished step. `attempts` counts the coder's replies; `told_by` is how the tests end with the previous program.

    `told_by` is None at the first step, and if distinctiveness is not checked.
    """

    requirement: str
    draft: Draft
    attempts: int
    told_by: Found | None


@dataclass(frozen=True, slots=True)
class Round:
    """What the coder is asked: the step's requirement, the steps before it, and its last draft with feedback on it."""

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
    """What the algorithm asks for; a call is identified by turn and attempt."""

    async def write(self, asked: Round) -> Draft | None:
        """The coder's program and tests; None if the reply has no two blocks of code."""

    async def check(self, code: str | None, draft: Draft, order: int = 0) -> Checked:
        """Algorithm 2: a draft's tests, in one of their orders, on a program; None: one that has nothing yet."""

    async def align(self, asked: Round, draft: Draft) -> Judged | None:
        """Whether tests and requirement fit each other; None if no decision could be read."""

    async def settle(self, asked: Round, judged: Judged) -> str | None:
        """The requirement that people want, None if it stays. Raises `Settled` if the task waits, or is dropped."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`attempts` of a turn, runs of tests in different `orders`, and which earlier solutions tests must not pass."""

    attempts: int = 10
    orders: int = 3
    earlier: Literal["all", "previous"] = "all"
    skip: Collection[Skippable] = ()


async def make_turns(requirements: Sequence[str], team: Team, limits: Limits) -> tuple[Turn, ...] | Dropped:
    """A finished turn for each requirement, or the reason why there is none (Algorithm 1).

    Beyond the paper: attempts are counted anew for each turn from 1, a draft of the turn before is no defect of the
    next, tests are run in several orders, and no earlier solution may pass them.
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
        checked = await _in_every_order(team, draft, limits)
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


async def _in_every_order(team: Team, draft: Draft, limits: Limits) -> Checked:
    """The first run of the draft's tests on its own program that does not pass, else one that does."""
    for order in range(limits.orders):
        checked = await team.check(draft.code, draft, order)
        if not checked.correct:
            if order:
                feedback = f"The tests pass as they stand, and not always, or not in another order: {checked.feedback}"
                return Checked(checked.found, feedback)
            return checked
    return checked


async def _distinctive(
    team: Team, draft: Draft, trajectory: Sequence[Turn], limits: Limits
) -> tuple[Found | None, str]:
    """How the draft's tests end with the previous solution, and what is wrong with that; empty if they tell the step.

    The first turn's previous solution is a program that has nothing yet. Of solutions before the previous one it only
    matters that they do not pass.
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
