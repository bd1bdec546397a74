"""SR-Eval's functions of Python repositories. Its rows hold no place: a second file joins them (docs/sreval.md)."""

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from codechat.config import original_option, place_option
from codechat.datasets import DATASETS, DatasetConfig, select
from codechat.datasets.reading.lines import read_tasks, read_values
from codechat.domain import Target
from codechat.errors import UserError, nearest
from codechat.files import content_hash
from codechat.languages.python.assembly import signature_of
from codechat.languages.python.syntax import parse
from codechat.studies.sreval.checkouts import folder_of, require_repositories
from codechat.studies.sreval.dataset import REMEDY, SREvalRow
from codechat.studies.sreval.tasks import Step, StepTask
from codechat.suites.inserted import Inserted
from codechat.suites.placing import names_of_tests
from codechat.tasks import Dataset, Task

NAME = "sreval_python_repository"
PLACES = "give the places of the tasks: one JSON object a line, with hash_id and DevEval's fields (docs/sreval.md)"
Span = Annotated[list[int], Field(min_length=2, max_length=2)]


class _Place(BaseModel):
    """Where a task's function stands, and the pytest ids of the repository's own tests of it, as DevEval has them."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    hash_id: str = Field(min_length=1)
    project_path: str = Field(min_length=1)
    completion_path: str
    signature_position: Span
    body_position: Span
    tests: list[str] = Field(min_length=1)

    @field_validator("project_path", "completion_path")
    @classmethod
    def _inside(cls, path: str) -> str:
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise ValueError("it must be a path inside the repositories")
        return path.rstrip("/")

    @model_validator(mode="after")
    def _in_its_project(self) -> Self:
        if not self.completion_path.startswith(self.project_path + "/"):
            raise ValueError(f"completion_path: {self.completion_path} does not lie in {self.project_path}")
        return self


class SREvalPythonRepositoryConfig(DatasetConfig):
    """Options of `sreval_python_repository`."""

    kind: Literal["sreval_python_repository"] = original_option(NAME, "which dataset")
    path: str = place_option(..., "the published task file, .jsonl or .jsonl.gz", min_length=1)
    places: str = place_option(..., "the places of its functions, .jsonl or .jsonl.gz", min_length=1)
    repos: str | None = place_option(None, "the folder of the repositories, by their project_path", min_length=1)
    environments: dict[str, str] = place_option(
        {}, "interpreters by the repository's name, {boltons: PATH}; the others use codechat's own packages"
    )


@DATASETS.register(NAME, SREvalPythonRepositoryConfig)
def sreval_python_repository(config: SREvalPythonRepositoryConfig) -> Dataset:
    """SR-Eval, functions of Python repositories: 89 tasks of 3 to 5 turns, in the published file (dataset.path)."""
    places = _read_places(Path(config.places).expanduser())
    repos, known = folder_of(config.repos), {_name(place) for place in places.values()}
    for name in config.environments:
        if name not in known:
            raise UserError(f"dataset.environments: no task is of a repository '{name}'", nearest(name, known))

    def parse_row(value: dict[str, Any]) -> tuple[SREvalRow, Task]:
        row = SREvalRow.model_validate(value)
        if row.hash_id not in places:
            raise ValueError(f"{config.places} holds no place of {row.hash_id}")
        place = places[row.hash_id]
        return row, _task(row, place, repos, config.environments.get(_name(place)))

    read = read_tasks(Path(config.path).expanduser(), parse_row, REMEDY)
    content = [[row.model_dump(), places[row.hash_id].model_dump()] for row in read.rows]
    dataset = read.dataset(NAME, content_hash(content))
    chosen = select(dataset, config)
    require_repositories(repos, [places[task.task_id].project_path for task in chosen])
    found = {task.task_id: _with_code_above(task) for task in chosen}
    return replace(dataset, tasks=tuple(found.get(task.task_id, task) for task in dataset.tasks))


def _read_places(path: Path) -> Mapping[str, _Place]:
    found: dict[str, _Place] = {}

    def keep(value: dict[str, Any]) -> None:
        place = _Place.model_validate(value)
        if place.hash_id in found:
            raise ValueError(f"the place of {place.hash_id} is there twice")
        found[place.hash_id] = place

    for _ in read_values(path, keep, PLACES, "dataset.places"):
        pass
    return found


def _name(place: _Place) -> str:
    """The repository's name, without the field that DevEval puts it in."""
    return place.project_path.rpartition("/")[2]


def _task(row: SREvalRow, place: _Place, repos: Path | None, python: str | None) -> StepTask:
    """The task of a row. Raises `ValueError` if a reference or a test does not parse."""
    name = row.hash_id.rpartition(".")[2]
    suite = Inserted(
        project=place.project_path,
        folder=None if repos is None else str(repos / place.project_path),
        file=place.completion_path.removeprefix(place.project_path + "/"),
        function=name,
        lines=(place.signature_position[0], place.body_position[1]),
        beside=place.tests[0],
        tests="",
        python=python,
    )
    steps = []
    for turn in row.turn_datas:
        solution = textwrap.dedent(turn.solution)
        if parse(solution) is None:
            raise ValueError(f"the solution of turn {turn.turn_num} does not parse")
        names_of_tests(turn.test)
        steps.append(Step(turn.instruction, replace(suite, tests=turn.test), solution))
    last = steps[-1].reference or ""
    target = Target("python", name, signature_of(last, name) or f"def {name}(...):")
    return StepTask(row.hash_id, steps[0].instruction, target, reference=last, steps=tuple(steps))


def _with_code_above(task: Task) -> Task:
    """The task with the code above its function. Raises `UserError` if the repository is not the task's."""
    assert isinstance(task, StepTask)
    places = [step.suite.place() for step in task.steps if isinstance(step.suite, Inserted)]
    return replace(task, above=places[0].above)
