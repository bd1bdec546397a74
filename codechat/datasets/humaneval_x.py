"""HumanEval-X: the tasks of HumanEval in other languages, with the inputs and results of HumanEval+.

Both are numbered alike. The results are those of HumanEval+'s references in Python, but for the inputs that the file
`humaneval_x.jsonl` lists: there HumanEval-X's own solution gives another result, and the file says what is done. Inputs
that a language cannot express are left out too. `benchmarks/humaneval_x.py` writes the file.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from codechat.config import original_option, place_option
from codechat.datasets import DATASETS, DatasetConfig, humaneval
from codechat.datasets.reading.lines import read_tasks
from codechat.domain import Target
from codechat.errors import UserError
from codechat.files import content_hash
from codechat.suites.calls import Calls, Driven
from codechat.tasks import Dataset, Task
from codechat.template import counted

DECISIONS = Path(__file__).with_name("humaneval_x.jsonl")
LEAST_KEPT = 0.95
"""The part of a task's inputs without which the task is left out."""
REMEDY = "give the file of HumanEval-X for the language: dataset.path=FILE, .jsonl or .jsonl.gz"
Language = Literal["javascript", "java"]
PREFIXES: Mapping[str, str] = {"javascript": "JavaScript", "java": "Java"}
HEADS: Mapping[str, re.Pattern[str]] = {
    "javascript": re.compile(r"(?m)^const (?P<name>\w+) = \([^)]*\) =>"),
    "java": re.compile(r"(?m)^    public (?:static )?[\w<>, ]+? (?P<name>\w+)\([^)]*\)"),
}


class HumanEvalXConfig(DatasetConfig):
    """Options of `humaneval_x`."""

    kind: Literal["humaneval_x"] = original_option("humaneval_x", "which dataset")
    language: Language = original_option(..., "the language of the programs: javascript or java")
    path: str = place_option(..., "HumanEval-X's file of that language, .jsonl or .jsonl.gz", min_length=1)
    plus: str | None = place_option(None, "a local HumanEvalPlus .jsonl or .jsonl.gz; null: its cache", min_length=1)


class Row(BaseModel):
    """A task of HumanEval-X; its further fields are not used."""

    model_config = ConfigDict(frozen=True)

    task_id: str
    prompt: str
    canonical_solution: str


class Decided(BaseModel):
    """Inputs of a task on which the two solutions differ in one way, and what is done with them.

    `inputs` are places among base and plus inputs together; `results` has, for the first of them, what the solutions in
    Python and in the language give. `decision`: these are left out (`drop`), or the language's `own` result counts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    language: Language
    task: str
    inputs: list[int]
    results: tuple[str, str]
    decision: Literal["drop", "own"]
    why: str


@dataclass(frozen=True)
class Kept:
    """A task's calls in a language, and how many inputs of how many were kept."""

    calls: Driven
    kept: int
    of: int

    @property
    def share(self) -> float:
        """The part that was kept."""
        return self.kept / self.of


@cache
def decisions() -> Mapping[tuple[str, str], tuple[Decided, ...]]:
    """The decisions by language and task."""
    found: dict[tuple[str, str], tuple[Decided, ...]] = {}
    for line in DECISIONS.read_text("utf-8").splitlines():
        decided = Decided.model_validate(json.loads(line))
        found[decided.language, decided.task] = (*found.get((decided.language, decided.task), ()), decided)
    return found


@DATASETS.register("humaneval_x", HumanEvalXConfig)
def humaneval_x(config: HumanEvalXConfig) -> Dataset:
    """HumanEval's 164 tasks in JavaScript or Java, with HumanEval+'s inputs and results (dataset.path)."""
    python = humaneval.humaneval(humaneval.HumanEvalConfig(path=config.plus))
    known = {task.task_id: task for task in python.tasks}
    language, left_out, shares = config.language, list[str](), list[str]()

    def parse(value: dict[str, Any]) -> tuple[Row, Task]:
        row = Row.model_validate(value)
        prefix, _, number = row.task_id.partition("/")
        if prefix != PREFIXES[language]:
            raise ValueError(f"task_id '{row.task_id}' is not of the form {PREFIXES[language]}/NUMBER")
        task = known.get(f"HumanEval/{number}")
        if task is None:
            raise ValueError(f"HumanEval+ has no task {number}")
        return row, task_of(row, task, language)

    read = read_tasks(Path(config.path).expanduser(), parse, REMEDY)
    tasks = []
    for task in read.tasks.values():
        assert isinstance(task.suite, Driven)
        kept = keep(task.suite, decisions().get((language, task.task_id), ()))
        if kept.share < LEAST_KEPT:
            left_out.append(f"{task.task_id} ({kept.kept} of {kept.of})")
            continue
        if kept.kept < kept.of:
            shares.append(f"{task.task_id} {kept.kept} of {kept.of}")
        tasks.append(replace(task, suite=kept.calls))
    if not tasks:
        raise UserError(f"{config.path} holds no task that {language} can express", REMEDY)
    content = content_hash([python.content_hash, [row.model_dump() for row in read.rows], DECISIONS.read_text("utf-8")])
    remark = f"{counted(len(left_out), 'task')} left out: {', '.join(left_out)}" if left_out else ""
    return Dataset(
        f"humaneval_x_{language}", tuple(tasks), content, read.places, remark=remark, departure=python.departure
    )


def task_of(row: Row, python: Task, language: Language) -> Task:
    """The task in the language, with all of HumanEval+'s inputs. Raises `ValueError` if its head cannot be found."""
    heads = list(HEADS[language].finditer(row.prompt))
    if not heads or not isinstance(python.suite, Calls):
        raise ValueError(f"prompt: it shows no head of a function in {language}")
    name, signature = heads[-1]["name"], heads[-1][0].strip()
    reference = row.prompt + row.canonical_solution
    model = python.suite
    calls = replace(model, entry_point=name, reference=reference, name=python.task_id)
    suite = replace(Driven.of(calls, language, signature), model=model)
    return Task(python.task_id, row.prompt, Target(language, name, signature), suite, reference)


def keep(calls: Driven, decided: Sequence[Decided]) -> Kept:
    """The calls with the inputs that the language can express and that no decision drops."""
    dropped = {place for each in decided if each.decision == "drop" for place in each.inputs}
    dropped |= calls.inexpressible().keys()
    own = {place for each in decided if each.decision == "own" for place in each.inputs}
    places = [place for place in range(len(calls.inputs)) if place not in dropped]
    kept = tuple(calls.inputs[place] for place in places)
    base = sum(place < len(calls.base) for place in places)
    model = calls.model and replace(calls.model, base=kept[:base], plus=kept[base:])
    own_places = frozenset(at for at, place in enumerate(places) if place in own)
    whole = replace(calls, base=kept[:base], plus=kept[base:], model=model, own=own_places)
    return Kept(whole, len(kept), len(calls.inputs))
