"""Tasks whose answers must keep constraints, also in a user's own file: `constraints` of a row (docs/datasets.md)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from codechat.base.domain import Target
from codechat.datasets.reading.rows import Adapt, TaskRow, register_form
from codechat.datasets.tasks import Task
from codechat.sandbox.languages import is_registered, language_of
from codechat.studies.multicodeif.constraints import Constraint, constraint_type


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a task: the name, a prompt that states all, and all constraints so far."""

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

    def undecidable(self) -> Iterator[str]:
        """The constraints in languages that no guarded rule knows, and why."""
        for constraint in {each for level in self.levels for each in level.constraints}:
            if constraint.unknown:
                yield f"a constraint {constraint.type} that the guarded rules leave undecided: {constraint.unknown}"

    def texts(self) -> Iterator[str]:
        """The texts of any task, and the prompt and constraints of each level in words."""
        yield from super(ConstrainedTask, self).texts()
        for level in self.levels:
            yield level.prompt
            yield from (constraint.words for constraint in level.constraints)


WITH_CONSTRAINTS = frozenset({"task_id", "prompt", "language", "canonical_solution", "constraints"})
ONLY_LEVEL = "single"


class ConstraintRow(BaseModel):
    """One constraint: its type by name, and the answer in the type's own form."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    type: str = Field(min_length=1)
    answer: str = Field(min_length=1)


@register_form("constraints")
class ConstrainedRow(TaskRow):
    """A task whose answers must keep constraints, which take the place of tests.

    task_id, prompt and constraints
    """

    constraints: list[ConstraintRow]

    def check(self) -> None:
        """Raises `ValueError` if the row has fields that only a task with tests has, or no prompt."""
        if "prompt" not in self.model_fields_set:
            raise ValueError("prompt: Field required")
        more = sorted(self.filled_fields() - WITH_CONSTRAINTS)
        if more:
            raise ValueError(f"constraints take the place of tests; leave out {', '.join(more)}")

    def task(self, adapt: Adapt) -> Task:
        """The task of one level with these constraints, whose language it has if none is given.

        Raises `ValueError` that names the task for an unknown language or type, a malformed answer, and for several
        languages.
        """
        given = self.language if "language" in self.model_fields_set else None
        try:
            constraints = _constraints(self.constraints)
            named = {each.answer.language for each in constraints if each.answer.language}
            if given is not None:
                if not is_registered(given):
                    raise ValueError(f"no language is called '{given:.60}'")
                named.add(language_of(given).names[0])
            if len(named) > 1:
                raise ValueError(f"it has several languages: {', '.join(sorted(named))}")
        except ValueError as error:
            raise ValueError(f"the task {self.task_id}: {error}") from None
        return ConstrainedTask(
            self.task_id,
            self.prompt,
            Target(next(iter(named), "")),
            reference=self.canonical_solution,
            level=ONLY_LEVEL,
            levels=(Level(ONLY_LEVEL, self.prompt, constraints),),
        )


def _constraints(rows: list[ConstraintRow]) -> tuple[Constraint, ...]:
    """The constraints of all rows. Raises `ValueError` with what is wrong in each."""
    made, wrong = [], []
    for row in rows:
        try:
            made.append(Constraint.of(row.type, row.answer))
        except ValueError as error:
            wrong.append(f"the constraint {row.type}: {error}")
    if wrong:
        raise ValueError("; ".join(wrong))
    return tuple(made)
