"""A user's own tasks with constraints: `constraints` of a row (docs/datasets.md)."""

from collections.abc import Collection, Sequence

from pydantic import BaseModel, ConfigDict, Field

from codechat.constraints import Constraint, constraint_type
from codechat.domain import Target
from codechat.errors import UserError
from codechat.languages import is_registered, language_of
from codechat.tasks import ConstrainedTask, Level

WITH_CONSTRAINTS = frozenset({"task_id", "prompt", "language", "canonical_solution", "constraints"})
ONLY_LEVEL = "single"


class ConstraintRow(BaseModel):
    """One constraint: its type by name, and the answer in the type's own form."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    type: str = Field(min_length=1)
    answer: str = Field(min_length=1)


def refuse_tests(given: Collection[str]) -> None:
    """Raises `ValueError` if a row with constraints has fields that only a task with tests has."""
    more = sorted(set(given) - WITH_CONSTRAINTS)
    if more:
        raise ValueError(f"constraints take the place of tests; leave out {', '.join(more)}")


def constrained_task(
    task_id: str, prompt: str, language: str | None, reference: str | None, rows: Sequence[ConstraintRow]
) -> ConstrainedTask:
    """The task of one level with these constraints. Its language is, if not given, that of the constraints.

    Raises `ValueError` that names the task if its language or a type is not known, an answer is malformed, or two of
    its languages differ.
    """
    try:
        constraints = tuple(map(_constraint, rows))
        if language is not None and not is_registered(language):
            raise ValueError(f"no language is called '{language:.60}'")
        named = {each.answer.language for each in constraints if each.answer.language}
        if language is not None:
            named.add(language_of(language).names[0])
        if len(named) > 1:
            raise ValueError(f"it has several languages: {', '.join(sorted(named))}")
    except ValueError as error:
        raise ValueError(f"the task {task_id}: {error}") from None
    level = Level(ONLY_LEVEL, prompt, constraints)
    return ConstrainedTask(
        task_id, prompt, Target(next(iter(named), "")), reference=reference, level=ONLY_LEVEL, levels=(level,)
    )


def _constraint(row: ConstraintRow) -> Constraint:
    try:
        kind = constraint_type(row.type)
    except UserError as error:
        raise ValueError(", ".join(str(error).splitlines())) from None
    try:
        return Constraint(kind.name, kind.read(row.answer))
    except ValueError as error:
        raise ValueError(f"the constraint {row.type}: {error}") from None
