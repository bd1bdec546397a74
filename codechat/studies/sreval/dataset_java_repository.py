"""SR-Eval's methods of Java repositories: rows that hold everything but the commit (docs/sreval.md)."""

import shlex
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from codechat.config import original_option, place_option
from codechat.datasets import DATASETS, DatasetConfig, select
from codechat.datasets.reading.lines import read_tasks
from codechat.domain import Target
from codechat.files import content_hash
from codechat.studies.sreval.checkouts import folder_of, require_repositories
from codechat.studies.sreval.dataset import REMEDY, SREvalRow
from codechat.studies.sreval.tasks import Step, StepTask
from codechat.suites.maven import Maven, Part
from codechat.tasks import Dataset, Task

NAME = "sreval_java_repository"


class _Metadata(BaseModel):
    """Where the method and the repository's own test of it stand, what they are, and the command that runs the test."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    repo: str = Field(min_length=1)
    context: str
    func: str = Field(min_length=1)
    file_path: str = Field(min_length=1)
    func_start: int = Field(ge=1)
    func_end: int = Field(ge=1)
    test_file: str = Field(min_length=1)
    test_code: str = Field(min_length=1)
    test_start: int = Field(ge=1)
    test_end: int = Field(ge=1)
    test_instruction: str

    @field_validator("repo", "file_path", "test_file")
    @classmethod
    def _inside(cls, path: str) -> str:
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise ValueError("it must be a path inside the repositories")
        return path

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
    """Options of `sreval_java_repository`."""

    kind: Literal["sreval_java_repository"] = original_option(NAME, "which dataset")
    path: str = place_option(..., "the published task file, .jsonl or .jsonl.gz", min_length=1)
    repos: str | None = place_option(None, "the folder of the repositories, by their names", min_length=1)


@DATASETS.register(NAME, SREvalJavaRepositoryConfig)
def sreval_java_repository(config: SREvalJavaRepositoryConfig) -> Dataset:
    """SR-Eval, methods of Java repositories: 40 tasks of 2 to 5 turns, in the published file (dataset.path)."""
    repos = folder_of(config.repos)
    projects: dict[str, str] = {}

    def parse(value: dict[str, Any]) -> tuple[_Row, Task]:
        row = _Row.model_validate(value)
        projects[row.hash_id] = row.metadata.repo
        return row, _task(row, repos)

    read = read_tasks(Path(config.path).expanduser(), parse, REMEDY)
    dataset = read.dataset(NAME, content_hash([row.model_dump() for row in read.rows]))
    chosen = select(dataset, config)
    require_repositories(repos, [projects[task.task_id] for task in chosen])
    for suite in (each for task in chosen for each in task.suites):
        if isinstance(suite, Maven):
            suite.place()
    return dataset


def _task(row: _Row, repos: Path | None) -> StepTask:
    about = row.metadata
    suite = Maven(
        project=about.repo,
        folder=None if repos is None else str(repos / about.repo),
        method=Part(about.file_path, (about.func_start, about.func_end), about.func),
        test=Part(about.test_file, (about.test_start, about.test_end), about.test_code),
        tests="",
        words=tuple(shlex.split(about.test_instruction)[1:]),
    )
    steps = tuple(Step(turn.instruction, replace(suite, tests=turn.test), turn.solution) for turn in row.turn_datas)
    first, last = steps[0].instruction, steps[-1].reference
    return StepTask(row.hash_id, first, Target("java"), reference=last, steps=steps, above=about.context)
