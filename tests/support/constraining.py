"""A bench for protocols over tasks with constraints: tasks of several, and a judge that quotes the solution it saw."""

import asyncio
from collections.abc import Callable

from codechat.base.domain import Compliance, Target, Usage
from codechat.judging import ConstraintQuestion
from codechat.studies.multicodeif.constraints import Constraint, constraint_type
from codechat.studies.multicodeif.rows import ConstrainedTask, Level
from support.conversing import Judging

SNAKE = ("naming", "python;variable:snake_case")
SPACES = ("indentation", "python;spaces:4;spacing")
SOLUTION = "def solve(secret_helper):\n    return secret_helper + 41\n"


def constraint(kind: str, answer: str) -> Constraint:
    """A constraint by its type's name and its published answer."""
    return Constraint(kind, constraint_type(kind).read(answer))


def level(name: str, prompt: str, *constraints: tuple[str, str]) -> Level:
    """A level with such constraints."""
    return Level(name, prompt, tuple(constraint(*each) for each in constraints))


def constrained(*constraints: tuple[str, str], language: str = "python") -> ConstrainedTask:
    """A task of one level."""
    own = level("single", "Write it.", *constraints)
    return ConstrainedTask("t/1", own.prompt, Target(language), level=own.name, levels=(own,))


class Quoting(Judging):
    """Decides constraints by the code, and quotes the reference in its reason."""

    def __init__(self, kept: Callable[[ConstraintQuestion], bool | None] = lambda one: "good" in one.code) -> None:
        super().__init__()
        self.kept, self.questions = kept, list[ConstraintQuestion]()

    async def constraint(self, question: ConstraintQuestion) -> Compliance:
        self.questions.append(question)
        await asyncio.sleep(0)
        return Compliance(self.kept(question), "test", f"not as in {question.reference}", usage=Usage(11, 3))
