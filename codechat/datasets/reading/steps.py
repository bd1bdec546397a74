"""Tasks that grow by one requirement a turn, in a user's own file: `turns` of a row (docs/datasets.md)."""

from collections.abc import Collection
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from codechat.datasets.reading.given import GivenSuite, Snippets, make_suite
from codechat.suites.assertions import Assertions
from codechat.tasks import Step

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


def refuse_more(given: Collection[str]) -> None:
    """Raises `ValueError` if a row with turns has fields that only a task of one turn has."""
    more = sorted(set(given) - WITH_TURNS)
    if more:
        raise ValueError(f"turns: each has its own instruction, solution and tests; leave out {', '.join(more)}")


def step_of(row: StepRow, task_id: str) -> Step:
    """The step that a turn describes."""
    suite = Assertions(tuple(row.tests)) if row.suite is None else make_suite(row.suite, task_id)
    return Step(row.instruction, suite, row.solution)
