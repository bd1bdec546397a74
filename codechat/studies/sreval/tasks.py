"""Tasks whose requirements come step by step."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from codechat.suites import Suite
from codechat.tasks import Task


@dataclass(frozen=True, slots=True)
class Step:
    """A requirement of a task that grows: its text, the suite of it alone, and a right program for it.

    A later step may contradict an earlier one, so the suites need not hold together.
    """

    instruction: str
    suite: Suite
    reference: str | None


@dataclass(frozen=True, slots=True)
class StepTask(Task):
    """A task whose requirements come step by step: `prompt` is the first one, `reference` the last right program.

    `above` is the code above the function in a repository's file, empty if the program stands alone.
    """

    steps: tuple[Step, ...] = ()
    above: str = ""

    needs_libraries: ClassVar[bool] = True

    plural: ClassVar[str] = "tasks whose requirements come step by step"

    @property
    def suites(self) -> tuple[Suite, ...]:
        """The suites of the steps."""
        return tuple(step.suite for step in self.steps)

    def solutions(self) -> Iterator[tuple[str, str | None, Suite]]:
        """The steps' suites, each with its own program."""
        for number, step in enumerate(self.steps, 1):
            yield f"turn {number}", step.reference, step.suite

    def reference_at(self, turn: int) -> str | None:
        """The program of the turn's step."""
        return self.steps[turn].reference

    def texts(self) -> Iterator[str]:
        """Those of any task, the code above the function, and the steps' instructions."""
        yield from super(StepTask, self).texts()
        yield self.above
        yield from (step.instruction for step in self.steps)
