"""SR-Eval: a core requirement and those that refine it, each with a reference and tests of its own (docs/sreval.md).

A line of its files is a task: `hash_id`, `total_turn` and `turn_datas`, whose entries hold `turn_num`, `instruction`,
`solution` and `test`.
"""

import ast
import json
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from codechat.config import original_option, place_option
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.rows import lines_of, problem_of
from codechat.datasets.unit_tests import unit_tests
from codechat.domain import Target
from codechat.errors import UserError
from codechat.files import content_hash
from codechat.languages.python.assembly import signature_of
from codechat.languages.python.syntax import parse
from codechat.suites.assertions import Assertions
from codechat.tasks import Dataset, Step, StepTask

REMEDY = "give a task file of SR-Eval: one JSON object a line, with hash_id, total_turn and turn_datas"
ENTRY_POINT = "task_func"
"""The name that every function-level task of the Python part asks for."""


class _Turn(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    turn_num: int
    instruction: str = Field(min_length=1)
    solution: str = Field(min_length=1)
    test: str = Field(min_length=1)


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    hash_id: str = Field(min_length=1)
    total_turn: int
    turn_datas: list[_Turn] = Field(min_length=1)

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
    path = Path(config.path).expanduser()
    rows: list[_Row] = []
    tasks: dict[str, StepTask] = {}
    places: dict[str, str] = {}
    for number, text in lines_of(path):
        try:
            row = _row(text)
            if row.hash_id in tasks:
                raise ValueError(f"the task {row.hash_id} is there twice")
            tasks[row.hash_id] = _task(row)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}:{number}: {problem_of(error)}", REMEDY) from error
        rows.append(row)
        places[row.hash_id] = f"{path}:{number}"
    if not tasks:
        raise UserError(f"{path} holds no task", REMEDY)
    digest = content_hash([row.model_dump() for row in rows])
    return Dataset("sreval_python", tuple(tasks.values()), digest, places)


def _row(text: bytes) -> _Row:
    value = json.loads(text.decode("utf-8-sig"))
    if not isinstance(value, dict):
        raise ValueError("the line is not a JSON object")
    return _Row.model_validate(value)


def _task(row: _Row) -> StepTask:
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
