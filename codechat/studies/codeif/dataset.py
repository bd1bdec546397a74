"""CodeIF-Bench: tasks with verifiable instructions in a conversation's order (docs/codeif.md).

Its files hold two kinds of lines: standalone functions (from MBPP, level L-1), and functions of a repository (from
DevEval, levels L-1 to L-3), whose tests run in a copy of that repository. The fields are the published ones.
"""

import ast
import textwrap
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, model_validator

from codechat.base.config import original_option, place_option
from codechat.base.domain import Target
from codechat.base.errors import UserError, nearest
from codechat.base.files import content_hash
from codechat.datasets import DATASETS, DatasetConfig, select
from codechat.datasets.reading.lines import read_tasks
from codechat.datasets.reading.rows import Snippets
from codechat.datasets.tasks import Dataset, Requirement, Task
from codechat.sandbox.languages.python.syntax import parse, signature_of
from codechat.sandbox.suites import Suite
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.repository import Repository

REMEDY = "dataset.path names a task file of CodeIF-Bench, .jsonl or .jsonl.gz (docs/codeif.md)"


class Strategy(StrEnum):
    """The types of verifiable instructions (paper, Table 1); the last two only for functions of a repository."""

    CONDITIONS = "Input-Output Conditions"
    EXCEPTIONS = "Exception Handling"
    EDGE_CASES = "Edge Case Handling"
    EXTENSION = "Functionality Extension"
    ANNOTATIONS = "Annotation Coverage"
    COMPLEXITY = "Code Complexity"
    STANDARD = "Code Standard"
    CONTEXT_USED = "Context Usage Verification"
    CONTEXT_CORRECT = "Context Usage Correctness"


class CodeIFConfig(DatasetConfig):
    """Options of `codeif_bench`."""

    kind: Literal["codeif_bench"] = original_option("codeif_bench", "which dataset")
    path: str = place_option(..., "a task file of CodeIF-Bench, .jsonl or .jsonl.gz", min_length=1)
    repos: str | None = place_option(
        None, "the folder of the repositories (its Source_Code), for tasks that need theirs", min_length=1
    )


def _strategy(name: str) -> str:
    if name == "Context Usage Correctness Verification":  # as published
        return Strategy.CONTEXT_CORRECT
    if name not in tuple(Strategy):
        raise ValueError(f"there is no instruction strategy '{name}': {nearest(name, tuple(Strategy))}")
    return str(Strategy(name))


StrategyName = Annotated[str, AfterValidator(_strategy)]
Span = Annotated[list[int], Field(min_length=2, max_length=2)]


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class CodeIFRequirement(_Row):
    """One verifiable instruction: source snippets as tests, or (`test`) pytest ids in the repository."""

    requirement: str = Field(min_length=1)
    unit_test: Snippets = []
    test: Snippets = []


class _Conversation(_Row):
    """The fields of both kinds of lines."""

    prompt: str = ""
    code: str
    requirements: dict[StrategyName, CodeIFRequirement]
    order: list[StrategyName] = Field(alias="multi-turn")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in self.order:
            if name not in self.requirements:
                raise ValueError(f"multi-turn names '{name}', which is not among the requirements")
        if len(set(self.order)) < len(self.order):
            raise ValueError("multi-turn names a requirement twice")
        return self

    def conversation(self, suites: Mapping[str, Suite]) -> tuple[Requirement, ...]:
        """The requirements in the order of the conversation; requirements only asked alone come last.

        An extension contradicts the other instructions, so it ends the conversation (paper 4.2) unless `multi-turn`
        places it, as in the published runs.
        """
        placed = [*self.order]
        if Strategy.EXTENSION in self.requirements and Strategy.EXTENSION not in placed:
            placed.append(str(Strategy.EXTENSION))
        alone = [name for name in self.requirements if name not in placed]
        return tuple(
            Requirement(
                id=name, strategy=name, text=self.requirements[name].requirement, suite=suites[name],
                accumulates=name != Strategy.EXTENSION, asked=name in placed,
            )
            for name in (*placed, *alone)
        )  # fmt: skip


class FunctionRow(_Conversation):
    """A standalone function."""

    task_id: int | str
    prompt: str = Field(min_length=1)
    test: Snippets = Field(min_length=1)

    def task(self) -> Task:
        """The task; raises `ValueError` if the reference does not define the function that the tests call."""
        reference = _unix(self.code)
        tree = parse(reference)
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)] if tree else []
        called = [name for name in names if any(f"{name}(" in test for test in self.test)]
        if not called:
            raise ValueError("code: it defines no function that the tests call")
        tests = {name: row.unit_test for name, row in self.requirements.items()}
        suites = {name: Assertions(tuple(each), reference=reference) for name, each in tests.items()}
        return Task(
            task_id=f"CodeIF/{self.task_id}", prompt=self.prompt, target=_target(reference, called[-1]),
            suite=Assertions(tuple(self.test), reference=reference), reference=reference,
            requirements=self.conversation(suites), level="L-1",
        )  # fmt: skip


class Functionality(_Row):
    """The behaviour and the arguments of a repository's function."""

    functionality: str = Field(alias="Functionality")
    arguments: str = Field(alias="Arguments")


class Dependency(_Row):
    """The repository's names that the reference uses, by their distance."""

    intra_class: list[str] = []
    intra_file: list[str] = []
    cross_file: list[str] = []


class RepositoryRow(_Conversation):
    """A function or method of a repository (DevEval's fields, and the requirements)."""

    namespace: str = Field(min_length=1)
    project_path: str = Field(min_length=1)
    completion_path: str
    signature_position: Span
    body_position: Span
    dependency: Dependency
    requirement: Functionality
    tests: Snippets = Field(validation_alias=AliasChoices("tests", "test"))
    context: str = ""

    @model_validator(mode="after")
    def _in_its_project(self) -> Self:
        if not self.completion_path.startswith(self.project_path.rstrip("/") + "/"):
            raise ValueError(f"completion_path: {self.completion_path} does not lie in {self.project_path}")
        if ".." in Path(self.completion_path).parts or Path(self.completion_path).is_absolute():
            raise ValueError("completion_path: it must be a path inside the repositories")
        return self

    def task(self, repos: Path | None) -> Task:
        """The task, with a level by the reference's dependencies (paper 3.3.2). Its tests need `repos` to run."""
        reference = textwrap.dedent(_unix(self.code))
        entry_point = self.namespace.rpartition(".")[2]
        suites = {name: self._locate(row.test, repos) for name, row in self.requirements.items()}
        near = "L-2" if self.dependency.intra_file or self.dependency.intra_class else "L-1"
        return Task(
            task_id=self.namespace, prompt=self._prompt(entry_point), target=_target(reference, entry_point),
            suite=self._locate(self.tests, repos), reference=reference, requirements=self.conversation(suites),
            level="L-3" if self.dependency.cross_file else near,
        )  # fmt: skip

    def _locate(self, nodes: Iterable[str], repos: Path | None) -> Repository:
        first_line = next((line for line in _unix(self.code).split("\n") if line.strip()), "")
        project = self.project_path.rstrip("/")
        return Repository(
            project=project,
            folder=None if repos is None else str(repos / self.project_path),
            file=self.completion_path.removeprefix(f"{project}/"),
            lines=(self.signature_position[0], self.body_position[1]),
            indent=len(first_line) - len(first_line.lstrip()),
            nodes=tuple(nodes),
        )

    def _prompt(self, entry_point: str) -> str:
        what = self.requirement
        text = self.prompt or f"Write the Python function '{entry_point}'. {what.functionality}\n{what.arguments}"
        if self.context and self.context not in text:
            text += f"\n\nThe code around it:\n\n{self.context}"
        return text


@DATASETS.register("codeif_bench", CodeIFConfig)
def codeif_bench(config: CodeIFConfig) -> Dataset:
    """CodeIF-Bench: tasks with verifiable instructions, in a published task file (dataset.path)."""
    repos = None if config.repos is None else Path(config.repos).expanduser().resolve()

    def parse(value: dict[str, Any]) -> tuple[_Conversation, Task]:
        if "namespace" in value:
            row = RepositoryRow.model_validate(value)
            return row, row.task(repos)
        function = FunctionRow.model_validate(value)
        return function, function.task()

    read = read_tasks(Path(config.path).expanduser(), parse, REMEDY)
    dataset = read.dataset("codeif_bench", content_hash([row.model_dump() for row in read.rows]))
    _check_repositories(select(dataset, config))
    return dataset


def _check_repositories(tasks: Iterable[Task]) -> None:
    """Raises `UserError` if a chosen task's repository is missing, before any model is asked."""
    needing = [(task, task.suite) for task in tasks if isinstance(task.suite, Repository)]
    homeless = [task.task_id for task, suite in needing if suite.folder is None]
    if homeless:
        raise UserError(
            f"{len(homeless)} of the chosen tasks need their repositories, the first of them {homeless[0]}",
            "set dataset.repos=DIR to the folder of the repositories, or choose others with dataset.tasks",
        )
    for task, suite in needing:
        if not (Path(suite.folder or "") / suite.file).is_file():
            raise UserError(
                f"{task.task_id} needs {suite.file} in {suite.folder}, which is not there",
                "dataset.repos names the folder whose subfolders are the projects, by their project_path",
            )


def _target(reference: str, entry_point: str) -> Target:
    signature = signature_of(reference, entry_point) or f"def {entry_point}(...):"
    return Target(entry_point=entry_point, signature=signature)


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip() + "\n"
