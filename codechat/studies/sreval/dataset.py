"""SR-Eval: a core requirement and its refinements, each with a reference and tests (docs/sreval.md).

A line of its files is a task: `hash_id`, `total_turn` and `turn_datas`, whose entries have `turn_num`, `instruction`,
`solution` and `test`. Python functions have tests of unittest, Java functions of JUnit.
"""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from codechat.base.config import original_option, place_option
from codechat.base.domain import Target
from codechat.base.files import content_hash
from codechat.datasets import DATASETS, DatasetConfig, compared
from codechat.datasets.reading.lines import read_tasks
from codechat.datasets.tasks import Dataset
from codechat.sandbox.languages import language_of
from codechat.sandbox.languages.python.syntax import imported_modules, parse, signature_of
from codechat.sandbox.suites.assertions import Assertions, Need
from codechat.sandbox.suites.junit import JUnit
from codechat.studies.sreval.rows import Step, StepTask

CPU_S = 240.0  # over three times the longest time of SR-Eval's references
MODULES: dict[Need, tuple[str, ...]] = {
    "code": ("keras", "nltk", "tensorflow"),
    "commands": ("multiprocessing", "subprocess"),
    "native": ("keras", "librosa", "sklearn", "soundfile", "tensorflow"),
    "network": ("ftplib", "http.server", "smtplib", "socket", "socketserver", "ssl"),
    "processes": ("keras", "psutil", "tensorflow"),
    "threads": ("concurrent.futures", "http.server", "keras", "tensorflow", "threading"),
}
"""The modules with each need of the sandbox. Their submodules have it too."""


def unit_tests(test: str, reference: str) -> Assertions:
    """The suite of a unit test that its reference passes."""
    return Assertions((test,), needs_of(test, reference), CPU_S, one_file=True, reference=reference)


def needs_of(*sources: str) -> frozenset[Need]:
    """The needs of texts that run together."""
    names = [f"{name}." for source in sources for name in imported_modules(source)]
    prefixes = {need: tuple(f"{module}." for module in modules) for need, modules in MODULES.items()}
    return frozenset(need for need, begins in prefixes.items() if any(name.startswith(begins) for name in names))


REMEDY = "give a task file of SR-Eval: one JSON object a line, with hash_id, total_turn and turn_datas"
ENTRY_POINT = "task_func"  # the function's name in every function-level task in Python


class SREvalTurn(BaseModel):
    """A requirement, a right program for it, and its tests as a text."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    turn_num: int
    instruction: str  # empty at one turn of the Java functions
    solution: str = Field(min_length=1)
    test: str = Field(min_length=1)


class SREvalRow(BaseModel):
    """One task, with the fields of all of SR-Eval's files."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    hash_id: str = Field(min_length=1)
    total_turn: int
    turn_datas: list[SREvalTurn] = Field(min_length=1)

    @model_validator(mode="after")
    def _counts(self) -> Self:
        numbers = [turn.turn_num for turn in self.turn_datas]
        if numbers != list(range(1, len(numbers) + 1)):
            raise ValueError(f"turn_datas: the turns are numbered {numbers}, and not from 1 without a gap")
        if self.total_turn != len(numbers):
            raise ValueError(f"total_turn is {self.total_turn}, and there are {len(numbers)} turns")
        return self


PUBLISHED = frozenset(
    {
        "e7b7c00cc28a190ea8f76c2f0e40d00ad55d84e64c6acb93c9bd108466192fa2",  # functions, Python
        "8010099c673fe265648d53dc12ca86abc09101a9cb2a7d3bb18473b3e7ffdc4b",  # functions, Java
        "34ef903a60aed9020810a32ece7c8c57b6467521f44a0f5a930fad9ea8f99c32",  # repositories, Python, with its places
        "9ad23f2b34018ef8d6e6fa6b6efd788934c9be7ee2d58aeea315a9c70b1ae2f6",  # repositories, Java
    }
)
"""The contents of the published files. The paper's figures are shown for these alone."""


def published(dataset: Dataset) -> Dataset:
    """The dataset, marked as a departure if it is none of the published files."""
    return compared(dataset, "SR-Eval's as published", PUBLISHED)


class SREvalPythonConfig(DatasetConfig):
    kind: Literal["sreval_python"] = original_option("sreval_python", "which dataset")
    path: str = place_option(..., "the published task file, .jsonl or .jsonl.gz", min_length=1)


@DATASETS.register("sreval_python", SREvalPythonConfig)
def sreval_python(config: SREvalPythonConfig) -> Dataset:
    """SR-Eval, Python functions: 142 tasks of 3 to 5 turns, in the published file (dataset.path)."""
    return _functions(config.kind, config.path, _python_task)


def _functions(name: str, path: str, task_of: Callable[[SREvalRow], StepTask]) -> Dataset:
    def parse_row(value: dict[str, Any]) -> tuple[SREvalRow, StepTask]:
        row = SREvalRow.model_validate(value)
        return row, task_of(row)

    read = read_tasks(Path(path).expanduser(), parse_row, REMEDY)
    return published(read.dataset(name, content_hash([row.model_dump() for row in read.rows])))


def _python_task(row: SREvalRow) -> StepTask:
    """The task of a row. Raises `ValueError` if a reference does not parse, or one of its tests would never run."""
    steps = tuple(
        Step(turn.instruction, unit_tests(turn.test, turn.solution), turn.solution, turn.test)
        for turn in row.turn_datas
    )
    entry_point = ENTRY_POINT if all(_defines(turn.solution) for turn in row.turn_datas) else ""
    for turn in row.turn_datas:
        Assertions((turn.test,)).names_used(entry_point)
    last = row.turn_datas[-1].solution
    signature = signature_of(last, entry_point) or "" if entry_point else ""
    target = Target("python", entry_point, signature)
    return StepTask(row.hash_id, row.turn_datas[0].instruction, target, reference=last, steps=steps)


def _defines(source: str) -> bool:
    tree = parse(source)
    if tree is None:
        raise ValueError(f"a solution does not parse: {source:.60}")
    return any(isinstance(node, ast.FunctionDef) and node.name == ENTRY_POINT for node in tree.body)


class SREvalJavaConfig(DatasetConfig):
    kind: Literal["sreval_java"] = original_option("sreval_java", "which dataset")
    path: str = place_option(..., "the published task file, .jsonl or .jsonl.gz", min_length=1)


@DATASETS.register("sreval_java", SREvalJavaConfig)
def sreval_java(config: SREvalJavaConfig) -> Dataset:
    """SR-Eval, Java functions: 172 tasks of 3 to 5 turns, in the published file (dataset.path)."""
    return _functions(config.kind, config.path, _java_task)


def _java_task(row: SREvalRow) -> StepTask:
    """The task of a row, without an entry point: only the instruction names the class."""
    first, last = row.turn_datas[0], row.turn_datas[-1]
    steps = tuple(Step(turn.instruction, _junit(turn), turn.solution, turn.test) for turn in row.turn_datas)
    return StepTask(row.hash_id, first.instruction, Target("java"), reference=last.solution, steps=steps)


def _junit(turn: SREvalTurn) -> JUnit:
    """The tests of a turn. Raises `ValueError` if they are no Java: the braces of either source do not match."""
    java = language_of("java")
    declared, tests = java.defines(turn.solution), java.defines(turn.test)
    for name, types in (("solution", declared), ("test", tests)):
        if not types:
            raise ValueError(f"turn {turn.turn_num}: the {name} declares no type in Java")
    return JUnit(turn.test, tuple(sorted(declared or ())))
