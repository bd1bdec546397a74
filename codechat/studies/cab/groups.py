"""The group `environment`: where a model may run commands in a task's repository."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import SerializeAsAny

from codechat.base.config import result_option
from codechat.base.errors import UserError
from codechat.run.settings.config import Group, add_group
from codechat.studies.cab.environments import ENVIRONMENTS, EnvironmentConfig

if TYPE_CHECKING:
    from codechat.run.cell import Cell


def check_worktrees(cell: "Cell") -> Iterator[str]:
    """Raises `UserError` for tasks that can have no worktree, before anything is asked of a model."""
    environment: EnvironmentConfig = cell.config.part("environment")
    if cell.is_recorded:
        return
    lacking = next((task for task in cell.tasks if task.workspace is None), None)
    if environment.kind != "none" and lacking is not None:
        raise UserError(
            f"environment={environment.kind} runs commands in a task's repository, and {lacking.task_id} has none",
            "give the folder of the clones, dataset.repos=DIR, or let nothing be run: environment=none",
        )
    found = [(task, lacks) for task in cell.tasks if task.workspace and (lacks := environment.lacking(task.workspace))]
    if found:
        (first, (what, remedy)), count = found[0], f"{len(found)} of {len(cell.tasks)} tasks"
        raise UserError(f"environment={environment.kind}: {count} have no {what}, such as {first.task_id}", remedy)
    yield from ()


add_group(
    Group(
        ENVIRONMENTS,
        SerializeAsAny[EnvironmentConfig],
        result_option(..., "where a model may run commands in a repository"),
        behind="sandbox",
        before={"kind": "none"},
        check=check_worktrees,
        serves=True,
    )
)
