"""MINT's tasks: functions of HumanEval and MBPP, with assertions that follow the program in its namespace."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from codechat.base.config import original_option, place_option
from codechat.base.domain import Target
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.reading.lines import problem_of, rows_of
from codechat.datasets.tasks import Dataset, Task
from codechat.sandbox.languages.python.syntax import signature_of
from codechat.sandbox.suites.assertions import Assertions

CPU_S = 10.0
"""Seconds that MINT gives a proposal and its assertions together."""
REMEDY = "a test_prompts.json, or a results.jsonl, of MINT (docs/published.md)"


class MintConfig(DatasetConfig):
    """Options of `mint`."""

    kind: Literal["mint"] = original_option("mint", "which dataset")
    path: str = place_option(..., "MINT's tasks, or results that hold them, .jsonl or .jsonl.gz", min_length=1)


class MintTask(BaseModel):
    """A task, as a result holds it (`task_name`, `task_id`) or a task file (`dataset`, `id`)."""

    model_config = ConfigDict(frozen=True)

    prompt: str = ""
    reference: Any = None
    task_name: str | None = None
    task_id: int | str | None = None
    dataset: str | None = None
    id: int | str | None = None
    entry_point: str = ""

    def name(self, otherwise: str = "") -> str:
        """The id of the task here: `humaneval/0`. `otherwise` is the data set of a row without one."""
        return f"{self.task_name or self.dataset or otherwise}/{self.task_id if self.id is None else self.id}"


def mint_tasks(path: Path) -> list[tuple[str, MintTask]]:
    """The tasks of a `test_prompts.json` or of results, with places. Raises `UserError` for a wrong row. Rows without a
    data set get the name of the file's folder."""
    found = []
    for place, row in rows_of(path):
        try:
            task = MintTask.model_validate(row.get("task", row) if isinstance(row, dict) else row)
        except ValidationError as error:
            raise UserError(f"{place}: not a task of MINT: {problem_of(error)}", REMEDY) from error
        if not (task.task_name or task.dataset):
            task = task.model_copy(update={"dataset": path.resolve().parent.name})
        found.append((place, task))
    return found


def dataset_name(tasks: Iterable[str]) -> str:
    """The data set's name in records: `mint_mbpp` if all tasks are of one data set, else `mint`."""
    parts = {task.partition("/")[0] for task in tasks}
    return f"mint_{parts.pop()}" if len(parts) == 1 else "mint"


@DATASETS.register("mint", MintConfig)
def mint(config: MintConfig) -> Dataset:
    """MINT's code tasks, from its test_prompts.json or a results.jsonl (dataset.path)."""
    tasks: dict[str, Task] = {}
    places: dict[str, str] = {}
    for place, row in mint_tasks(Path(config.path).expanduser()):
        name, prompt = row.name(), row.prompt.removeprefix("Complete the following code:\n\n")
        if not isinstance(row.reference, str):
            raise UserError(f"{place}: {name} has no assertions as its reference", REMEDY)
        if name in tasks:
            raise UserError(f"{place}: the task {name} is there twice", REMEDY)
        signature = signature_of(prompt, row.entry_point) if row.entry_point else None
        target = Target("python", row.entry_point, signature or "")
        suite = Assertions((row.reference,), cpu_s=CPU_S, one_file=True)
        tasks[name], places[name] = Task(name, row.prompt, target, suite), place
    if not tasks:
        raise UserError(f"{config.path} holds no task", REMEDY)
    content = content_hash([[task.task_id, task.prompt, task.suite and task.suite.key] for task in tasks.values()])
    return Dataset(dataset_name(tasks), tuple(tasks.values()), content, places)
