"""Datasets: programming tasks with their tests. One file per source."""

from collections import Counter
from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

from codechat.base.config import Config, Within, original_option, place_option, result_option, run_option
from codechat.base.errors import UserError, nearest
from codechat.base.registry import NoTraits, Registry
from codechat.base.template import counted
from codechat.datasets.reading.lines import lines_of, object_of
from codechat.datasets.tasks import Dataset, Task
from codechat.datasets.twins import renamed_twin, reworded_twin


class DatasetConfig(Config):
    """Options every dataset has."""

    within: ClassVar[Within] = {"twin_seed": ("twin", ("renamed",))}

    kind: str = original_option(..., "which dataset")
    name: str | None = place_option(None, "what tasks of your own are called in records and reports", min_length=1)
    limit: int | None = run_option(None, "take the first n tasks only", ge=1)
    tasks: list[str] | None = run_option(None, "take these task ids only, e.g. [HumanEval/0,HumanEval/7]", min_length=1)
    runnable: bool = run_option(
        False,
        "leave out tasks whose libraries sandbox.python's interpreter lacks, before dataset.limit counts",
    )
    exclude: str | None = place_option(
        None, "leave out the tasks that a file lists: an id a line, or JSON with task_id or id", min_length=1
    )
    twin: Literal["renamed", "reworded"] | None = result_option(
        None, "the same tasks with other names and examples, or in the words of dataset.rewordings"
    )
    twin_seed: int = result_option(0, "seed of the names and examples of dataset.twin=renamed", ge=0)
    rewordings: str | None = place_option(
        None, "the statements of dataset.twin=reworded, JSONL of task_id and prompt", min_length=1
    )


DATASETS: Registry[Dataset, NoTraits] = Registry("dataset", "codechat.datasets", NoTraits, Dataset, DatasetConfig)


def load(config: DatasetConfig) -> Dataset:
    """The dataset of a config, or its twin. With `dataset.name` the tasks count as the user's own. The name of another
    dataset is a departure."""
    dataset = _named(DATASETS.build(config), config)
    if config.twin == "renamed":
        return renamed_twin(dataset, config.twin_seed)
    if config.twin == "reworded":
        return reworded_twin(dataset, config.rewordings, {task.task_id for task in select(dataset, config)})
    return dataset


def _named(dataset: Dataset, config: DatasetConfig) -> Dataset:
    if config.name is None:
        return dataset
    departure = dataset.departure if config.name == dataset.name else ""
    if config.name in {each.name for each in DATASETS} - {DATASETS.of(config).name}:
        departure = (
            f"tasks of your own have the name of dataset={config.name}: compare no figure with those of its tasks"
        )
    return replace(dataset, name=config.name, own=True, departure=departure)


def compared(dataset: Dataset, published: str, contents: Container[str]) -> Dataset:
    """The dataset, with a departure if its content differs from all published contents."""
    if dataset.content_hash in contents:
        return dataset
    found = f"{counted(len(dataset.tasks), 'task')} with the content {dataset.content_hash[:8]}"
    departure = f"{found} are not {published}: compare no figure with those of the release"
    return replace(dataset, departure=departure)


def select(dataset: Dataset, config: DatasetConfig) -> tuple[Task, ...]:
    """The tasks that the config names, in dataset order, without excluded tasks.

    Raises `UserError` for an unknown task id, and if two tasks have one id, which identifies a session. The list of
    excluded tasks may have further ids, for example of another part.
    """
    tasks = dataset.tasks
    name, count = next(iter(Counter(task.task_id for task in tasks).most_common(1)), ("", 0))
    if count > 1:
        raise UserError(
            f"{counted(count, 'task')} of the dataset {dataset.name} have the id '{name}'", "change the ids"
        )
    if config.tasks is not None:
        known = {task.task_id for task in tasks}
        for name in config.tasks:
            if name not in known:
                raise UserError(f"dataset.tasks: {dataset.name} has no task '{name}'", nearest(name, known))
        wanted = set(config.tasks)
        tasks = tuple(task for task in tasks if task.task_id in wanted)
    if config.exclude is not None:
        excluded = _listed(Path(config.exclude).expanduser())
        tasks = tuple(task for task in tasks if task.task_id not in excluded)
    return tasks[: config.limit]


def _listed(path: Path) -> set[str]:
    """The ids in a list. Raises `UserError` for a line of JSON that has none."""
    found = set[str]()
    for number, text in lines_of(path, "dataset.exclude"):
        remedy = "a line is a task's id, or a JSON object with task_id or id"
        try:
            row = object_of(text) if text.lstrip().startswith(b"{") else {"id": text.decode("utf-8-sig").strip()}
        except ValueError as error:
            raise UserError(f"{path}:{number}: {error}", remedy) from error
        name = row.get("task_id") or row.get("id")
        if not isinstance(name, str):
            raise UserError(f"{path}:{number} names no task", remedy)
        found.add(name)
    return found


__all__ = ["DATASETS", "DatasetConfig", "compared", "load", "select"]
