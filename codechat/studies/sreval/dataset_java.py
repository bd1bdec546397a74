"""SR-Eval's Java functions: as the Python ones (`sreval`), with JUnit tests (docs/sreval.md)."""

from pathlib import Path
from typing import Any, Literal

from codechat.config import original_option, place_option
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.reading.lines import read_tasks
from codechat.domain import Target
from codechat.files import content_hash
from codechat.languages import language_of
from codechat.studies.sreval.dataset import REMEDY, SREvalRow, SREvalTurn
from codechat.studies.sreval.tasks import Step, StepTask
from codechat.suites.junit import JUnit
from codechat.tasks import Dataset


class SREvalJavaConfig(DatasetConfig):
    """Options of `sreval_java`."""

    kind: Literal["sreval_java"] = original_option("sreval_java", "which dataset")
    path: str = place_option(..., "the published task file, .jsonl or .jsonl.gz", min_length=1)


@DATASETS.register("sreval_java", SREvalJavaConfig)
def sreval_java(config: SREvalJavaConfig) -> Dataset:
    """SR-Eval, Java functions: 172 tasks of 3 to 5 turns, in the published file (dataset.path)."""
    read = read_tasks(Path(config.path).expanduser(), _parse, REMEDY)
    return read.dataset("sreval_java", content_hash([row.model_dump() for row in read.rows]))


def _parse(value: dict[str, Any]) -> tuple[SREvalRow, StepTask]:
    """A row and its task: which class is asked for, only its instruction says."""
    row = SREvalRow.model_validate(value)
    first, last = row.turn_datas[0], row.turn_datas[-1]
    steps = tuple(Step(turn.instruction, _suite(turn), turn.solution) for turn in row.turn_datas)
    return row, StepTask(row.hash_id, first.instruction, Target("java"), reference=last.solution, steps=steps)


def _suite(turn: SREvalTurn) -> JUnit:
    """The tests of a turn. Raises `ValueError` if they are not Java's: the braces of either source do not match."""
    java = language_of("java")
    declared, tests = java.defines(turn.solution), java.defines(turn.test)
    for name, types in (("solution", declared), ("test", tests)):
        if not types:
            raise ValueError(f"turn {turn.turn_num}: the {name} declares no type in Java")
    return JUnit(turn.test, tuple(sorted(declared or ())))
