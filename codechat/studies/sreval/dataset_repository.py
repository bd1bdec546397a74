"""SR-Eval's functions of repositories, in folders of the user (docs/sreval.md).

Rows of Java have everything but the commit. Rows of Python have no place, which a second file adds.
"""

import shlex
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from codechat.base.config import original_option, place_option
from codechat.base.domain import Target
from codechat.base.errors import MAX_WIDTH, UserError, nearest
from codechat.base.files import content_hash
from codechat.base.template import counted
from codechat.datasets import DATASETS, DatasetConfig, select
from codechat.datasets.reading.lines import read_tasks, read_values
from codechat.datasets.tasks import Dataset, Task
from codechat.sandbox.languages.python.syntax import parse, signature_of
from codechat.studies.sreval.dataset import REMEDY, SREvalRow, published
from codechat.studies.sreval.rows import Step, StepTask
from codechat.studies.sreval.suite_inserted import Inserted, names_of_tests
from codechat.studies.sreval.suite_maven import Maven, Part

CLONE = "clone them there, each at the commit that the tasks were made from (docs/sreval.md), or choose dataset.tasks"
NAME_IT = "set dataset.repos=DIR to the folder that holds them, or choose others with dataset.tasks"


def folder_of(repos: str | None) -> Path | None:
    """The folder of `dataset.repos`."""
    return None if repos is None else Path(repos).expanduser().resolve()


def require_repositories(repos: Path | None, needed: Iterable[str]) -> None:
    """Raises `UserError` that names every missing repository; `needed` has the repository of each chosen task."""
    missing = Counter(name for name in needed if repos is None or not (repos / name).is_dir())
    if not missing:
        return
    tasks = f"{counted(missing.total(), 'chosen task')} need{'s' if missing.total() == 1 else ''}"
    where = f" that {'is' if len(missing) == 1 else 'are'} not in {repos}" if repos is not None else ""
    head = f"{tasks} {counted(len(missing), 'repository', 'repositories')}{where} (tasks of each in brackets):"
    listed = ", ".join(f"{name} ({count})" for name, count in sorted(missing.items()))
    lines = textwrap.wrap(listed, MAX_WIDTH, break_on_hyphens=False)
    raise UserError("\n".join([head, *lines]), NAME_IT if repos is None else CLONE)


PYTHON = "sreval_python_repository"
PLACES = "give the places of the tasks: one JSON object a line, with hash_id and DevEval's fields (docs/sreval.md)"


def _check_inside(path: str) -> str:
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise ValueError("it must be a path inside the repositories")
    return path


_Inside = Annotated[str, Field(min_length=1), AfterValidator(_check_inside)]
_Folder = Annotated[_Inside, AfterValidator(lambda path: path.rstrip("/"))]
Span = Annotated[list[int], Field(min_length=2, max_length=2)]


class _Place(BaseModel):
    """The place of a task's function, and the pytest ids of the repository's own tests of it, from DevEval."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    hash_id: str = Field(min_length=1)
    project_path: _Folder
    completion_path: _Folder
    signature_position: Span
    body_position: Span
    tests: list[str] = Field(min_length=1)

    @model_validator(mode="after")
    def _in_its_project(self) -> Self:
        if not self.completion_path.startswith(self.project_path + "/"):
            raise ValueError(f"completion_path: {self.completion_path} does not lie in {self.project_path}")
        return self


class SREvalPythonRepositoryConfig(DatasetConfig):
    kind: Literal["sreval_python_repository"] = original_option(PYTHON, "which dataset")
    path: str = place_option(..., "the published task file, .jsonl or .jsonl.gz", min_length=1)
    places: str = place_option(..., "the places of its functions, .jsonl or .jsonl.gz", min_length=1)
    repos: str | None = place_option(None, "the folder of the repositories, by their project_path", min_length=1)
    environments: dict[str, str] = place_option(
        {}, "interpreters by the repository's name, {boltons: PATH}; the others use codechat's own packages"
    )


@DATASETS.register(PYTHON, SREvalPythonRepositoryConfig)
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
        return row, _task_of_python(row, place, repos, config.environments.get(_name(place)))

    read = read_tasks(Path(config.path).expanduser(), parse_row, REMEDY)
    content = [[row.model_dump(), places[row.hash_id].model_dump()] for row in read.rows]
    dataset = published(read.dataset(PYTHON, content_hash(content)))
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
    """The repository's name, without DevEval's folder of its field."""
    return place.project_path.rpartition("/")[2]


def _task_of_python(row: SREvalRow, place: _Place, repos: Path | None, python: str | None) -> StepTask:
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
        steps.append(Step(turn.instruction, replace(suite, tests=turn.test), solution, turn.test))
    last = steps[-1].reference or ""
    target = Target("python", name, signature_of(last, name) or f"def {name}(...):")
    return StepTask(row.hash_id, steps[0].instruction, target, reference=last, steps=tuple(steps))


def _with_code_above(task: Task) -> Task:
    """The task with the code above its function. Raises `UserError` if the repository is not the task's."""
    assert isinstance(task, StepTask)
    places = [step.suite.place() for step in task.steps if isinstance(step.suite, Inserted)]  # checks every one
    return replace(task, above=places[0].above)


JAVA = "sreval_java_repository"


class _Metadata(BaseModel):
    """The place and the code of the method and of the repository's own test, and the command that runs the test."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    repo: _Inside
    context: str
    func: str = Field(min_length=1)
    file_path: _Inside
    func_start: int = Field(ge=1)
    func_end: int = Field(ge=1)
    test_file: _Inside
    test_code: str = Field(min_length=1)
    test_start: int = Field(ge=1)
    test_end: int = Field(ge=1)
    test_instruction: str

    @field_validator("test_instruction")
    @classmethod
    def _maven(cls, command: str) -> str:
        words = shlex.split(command)
        if words[:1] != ["mvn"] or not words[1:]:
            raise ValueError("it is no command that begins with mvn")
        return command


class _Row(SREvalRow):
    metadata: _Metadata


class SREvalJavaRepositoryConfig(DatasetConfig):
    kind: Literal["sreval_java_repository"] = original_option(JAVA, "which dataset")
    path: str = place_option(..., "the published task file, .jsonl or .jsonl.gz", min_length=1)
    repos: str | None = place_option(None, "the folder of the repositories, by their names", min_length=1)


@DATASETS.register(JAVA, SREvalJavaRepositoryConfig)
def sreval_java_repository(config: SREvalJavaRepositoryConfig) -> Dataset:
    """SR-Eval, methods of Java repositories: 40 tasks of 2 to 5 turns, in the published file (dataset.path)."""
    repos = folder_of(config.repos)
    projects: dict[str, str] = {}

    def parse(value: dict[str, Any]) -> tuple[_Row, Task]:
        row = _Row.model_validate(value)
        projects[row.hash_id] = row.metadata.repo
        return row, _task_of_java(row, repos)

    read = read_tasks(Path(config.path).expanduser(), parse, REMEDY)
    dataset = published(read.dataset(JAVA, content_hash([row.model_dump() for row in read.rows])))
    chosen = select(dataset, config)
    require_repositories(repos, [projects[task.task_id] for task in chosen])
    for suite in (each for task in chosen for each in task.suites):
        if isinstance(suite, Maven):
            suite.place()
    return dataset


def _task_of_java(row: _Row, repos: Path | None) -> StepTask:
    about = row.metadata
    suite = Maven(
        project=about.repo,
        folder=None if repos is None else str(repos / about.repo),
        method=Part(about.file_path, (about.func_start, about.func_end), about.func),
        test=Part(about.test_file, (about.test_start, about.test_end), about.test_code),
        tests="",
        words=tuple(shlex.split(about.test_instruction)[1:]),
    )
    steps = tuple(
        Step(turn.instruction, replace(suite, tests=turn.test), turn.solution, turn.test) for turn in row.turn_datas
    )
    first, last = steps[0].instruction, steps[-1].reference
    return StepTask(row.hash_id, first, Target("java"), reference=last, steps=steps, above=about.context)
