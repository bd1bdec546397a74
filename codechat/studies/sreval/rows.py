"""Tasks that grow by one requirement a turn, in a user's own file: `turns` of a row (docs/datasets.md)."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from codechat.datasets.reading.rows import PYTHON, Adapt, GivenSuite, Snippets, TaskRow, make_suite, register_form
from codechat.domain import Target
from codechat.languages.python.assembly import signature_of
from codechat.studies.sreval.tasks import Step, StepTask
from codechat.suites.assertions import Assertions
from codechat.tasks import Task

WITH_TURNS = frozenset({"task_id", "turns", "language", "entry_point"})


class StepRow(BaseModel):
    """One turn: what is asked, a right program for it, and its own tests, as snippets or as a suite of any kind."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    instruction: str = Field(min_length=1)
    solution: str | None = None
    suite: GivenSuite = None
    tests: Snippets = []

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if bool(self.tests) == (self.suite is not None):
            raise ValueError("give tests or suite, one of them and not both")
        return self


@register_form("turns")
class TurnsRow(TaskRow):
    """A task that grows by one requirement a turn.

    task_id and turns
    """

    turns: list[StepRow]

    def check(self) -> None:
        """Raises `ValueError` if the row has fields that only a task of one turn has."""
        more = sorted(self.filled_fields() - WITH_TURNS)
        if more:
            raise ValueError(f"turns: each has its own instruction, solution and tests; leave out {', '.join(more)}")

    def task(self, adapt: Adapt) -> Task:
        """The task, whose reference is the last turn's solution."""
        reference = self.turns[-1].solution
        signature = ""
        if self.language == PYTHON and self.entry_point:
            signature = signature_of(reference or self.prompt, self.entry_point) or ""
        target = Target(self.language, self.entry_point, signature)
        steps = tuple(step_of(turn, self.task_id) for turn in self.turns)
        return StepTask(self.task_id, self.turns[0].instruction, target, None, reference, steps=steps)


def step_of(row: StepRow, task_id: str) -> Step:
    """The step that a turn describes."""
    suite = Assertions(tuple(row.tests)) if row.suite is None else make_suite(row.suite, task_id)
    return Step(row.instruction, suite, row.solution)
