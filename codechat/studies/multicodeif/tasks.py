"""Tasks whose answers must keep constraints."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from codechat.constraints import Constraint, constraint_type
from codechat.tasks import Task


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a task with constraints: its name, a prompt that states all, and all constraints so far."""

    name: str
    prompt: str
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class ConstrainedTask(Task):
    """A task whose answers must keep constraints: `prompt` is the first level's; most tasks have but one level.

    The target's language is empty if the task names none.
    """

    levels: tuple[Level, ...] = ()

    plural: ClassVar[str] = "tasks with constraints on the code"

    @property
    def asks_judge(self) -> bool:
        """Whether no rule decides one of its constraints."""
        kinds = {constraint.type for level in self.levels for constraint in level.constraints}
        return any(constraint_type(kind).by == "judge" for kind in kinds)

    def texts(self) -> Iterator[str]:
        """Those of any task, and of each level the prompt and the constraints in words."""
        yield from super(ConstrainedTask, self).texts()
        for level in self.levels:
            yield level.prompt
            yield from (constraint.words for constraint in level.constraints)
