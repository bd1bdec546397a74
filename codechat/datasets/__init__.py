"""Datasets: programming tasks with their tests. One file per source."""

from collections import Counter

from codechat.config import Config, original_option, run_option
from codechat.errors import UserError, nearest
from codechat.registry import NoTraits, Registry
from codechat.tasks import Dataset, Task
from codechat.template import counted


class DatasetConfig(Config):
    """Options every dataset has."""

    kind: str = original_option(..., "which dataset")
    limit: int | None = run_option(None, "take the first n tasks only", ge=1)
    tasks: list[str] | None = run_option(None, "take these task ids only, e.g. [HumanEval/0,HumanEval/7]", min_length=1)


DATASETS: Registry[Dataset, NoTraits] = Registry("dataset", "codechat.datasets", NoTraits, Dataset, DatasetConfig)


def select(dataset: Dataset, config: DatasetConfig) -> tuple[Task, ...]:
    """The tasks that the config names, in dataset order.

    Raises `UserError` for an unknown task id, and if two tasks have one id: a session is known by it.
    """
    tasks = dataset.tasks
    name, count = next(iter(Counter(task.task_id for task in tasks).most_common(1)), ("", 0))
    if count > 1:
        raise UserError(
            f"{counted(count, 'task')} of the dataset {dataset.name} have the id '{name}'", "give each an id of its own"
        )
    if config.tasks is not None:
        known = {task.task_id for task in tasks}
        for name in config.tasks:
            if name not in known:
                raise UserError(f"dataset.tasks: {dataset.name} has no task '{name}'", nearest(name, known))
        wanted = set(config.tasks)
        tasks = tuple(task for task in tasks if task.task_id in wanted)
    return tasks[: config.limit]


__all__ = ["DATASETS", "DatasetConfig", "select"]
