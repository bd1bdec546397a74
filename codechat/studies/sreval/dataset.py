"""SR-Eval: a core requirement and those that refine it, each with a reference and tests of its own (docs/sreval.md).

A line of its files is a task: `hash_id`, `total_turn` and `turn_datas`, whose entries hold `turn_num`, `instruction`,
`solution` and `test`.
"""

import ast
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from codechat.config import original_option, place_option
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.reading.lines import read_tasks
from codechat.domain import Target
from codechat.files import content_hash
from codechat.languages.python.assembly import signature_of
from codechat.languages.python.syntax import parse
from codechat.studies.sreval.tasks import Step, StepTask
from codechat.studies.sreval.unit_tests import unit_tests
from codechat.suites.assertions import Assertions
from codechat.tasks import Dataset

REMEDY = "give a task file of SR-Eval: one JSON object a line, with hash_id, total_turn and turn_datas"
ENTRY_POINT = "task_func"
"""The name that every function-level task of the Python part asks for."""


class SREvalTurn(BaseModel):
    """A requirement, a right program for it, and its tests as a text."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    turn_num: int
    instruction: str  # empty at one turn of the Java functions
    solution: str = Field(min_length=1)
    test: str = Field(min_length=1)


class SREvalRow(BaseModel):
    """One task, the fields that all of SR-Eval's files have."""

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


class SREvalPythonConfig(DatasetConfig):
    """Options of `sreval_python`."""

    kind: Literal["sreval_python"] = original_option("sreval_python", "which dataset")
    path: str = place_option(..., "the published task file, .jsonl or .jsonl.gz", min_length=1)


@DATASETS.register("sreval_python", SREvalPythonConfig)
def sreval_python(config: SREvalPythonConfig) -> Dataset:
    """SR-Eval, Python functions: 142 tasks of 3 to 5 turns, in the published file (dataset.path)."""
    read = read_tasks(Path(config.path).expanduser(), _parse, REMEDY)
    return read.dataset("sreval_python", content_hash([row.model_dump() for row in read.rows]))


def _parse(value: dict[str, Any]) -> tuple[SREvalRow, StepTask]:
    row = SREvalRow.model_validate(value)
    return row, _task(row)


def _task(row: SREvalRow) -> StepTask:
    """The task of a row. Raises `ValueError` if a reference does not parse, or nothing would run one of its tests."""
    steps = tuple(
        Step(turn.instruction, unit_tests(turn.test, turn.solution), turn.solution) for turn in row.turn_datas
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
