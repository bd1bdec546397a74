"""HumanEval-X: the tasks of HumanEval in other languages, with the inputs and results of HumanEval+.

Both have the same numbers. The results are from HumanEval+'s references in Python, except for the inputs in the file
`dataset_humaneval_x.jsonl`: there HumanEval-X's solution gives another result, and the file has a decision. Inputs that
a language cannot express are left out too.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from codechat.base.config import original_option, place_option
from codechat.base.domain import Target
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.template import counted
from codechat.datasets import DATASETS, DatasetConfig, humaneval
from codechat.datasets.reading.lines import read_tasks
from codechat.datasets.tasks import Dataset, Task
from codechat.sandbox.suites.calls import Calls, Driven

DECISIONS = Path(__file__).with_suffix(".jsonl")
LEAST_KEPT = 0.95
"""The least kept part of a task's expressible inputs; below it the task is left out."""
REMEDY = "give the file of HumanEval-X for the language: dataset.path=FILE, .jsonl or .jsonl.gz"
PLUS = "give HumanEval+'s file, HumanEvalPlus.jsonl.gz as EvalPlus releases it: dataset.plus=FILE"
Language = Literal["javascript", "java"]
PREFIXES: Mapping[str, str] = {"javascript": "JavaScript", "java": "Java"}
HEADS: Mapping[str, re.Pattern[str]] = {
    "javascript": re.compile(r"(?m)^const (?P<name>\w+) = \([^)]*\) =>"),
    "java": re.compile(r"(?m)^    public (?:static )?[\w<>, ]+? (?P<name>\w+)\([^)]*\)"),
}


class HumanEvalXConfig(DatasetConfig):
    """Options of `humaneval_x`."""

    kind: Literal["humaneval_x"] = original_option("humaneval_x", "which dataset")
    language: Language = place_option(..., "the language of the programs and of the file: javascript or java")
    path: str = place_option(..., "HumanEval-X's file of that language, .jsonl or .jsonl.gz", min_length=1)
    plus: str | None = place_option(None, "a local HumanEvalPlus .jsonl or .jsonl.gz; null: its cache", min_length=1)


class Row(BaseModel):
    """A task of HumanEval-X; its further fields are not used."""

    model_config = ConfigDict(frozen=True)

    task_id: str
    prompt: str
    canonical_solution: str


class Decided(BaseModel):
    """Inputs of a task on which the solutions in Python and in the language differ in one way, and the decision.

    `inputs` are places among base and plus inputs together; `results` has the two results for the first place.
    `decision`: inputs are left out, because the language's types `cannot` hold Python's values, or because the
    solutions differ otherwise (`drop`); or the language's `own` result counts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    language: Language
    task: str
    decision: Literal["cannot", "drop", "own"]
    why: str
    inputs: list[int]
    results: tuple[str, str]


class Mended(BaseModel):
    """A mistake in HumanEval-X's solution, and the text that mends it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    language: Language
    task: str
    why: str
    replace: tuple[str, str]


LINE: TypeAdapter[Decided | Mended] = TypeAdapter(Decided | Mended)


@dataclass(frozen=True)
class Kept:
    """A task's calls in a language: the numbers of kept, of expressible and of all inputs."""

    calls: Driven
    kept: int
    expressible: int
    of: int

    @property
    def share(self) -> float:
        """The kept part of the expressible inputs."""
        return self.kept / max(1, self.expressible)


@cache
def decisions() -> Mapping[tuple[str, str], tuple[Decided | Mended, ...]]:
    """The decisions by language and task."""
    found: dict[tuple[str, str], tuple[Decided | Mended, ...]] = {}
    for line in DECISIONS.read_text("utf-8").splitlines():
        one = LINE.validate_json(line)
        found[one.language, one.task] = (*found.get((one.language, one.task), ()), one)
    return found


@DATASETS.register("humaneval_x", HumanEvalXConfig)
def humaneval_x(config: HumanEvalXConfig) -> Dataset:
    """HumanEval's 164 tasks in JavaScript or Java, with HumanEval+'s inputs and results (dataset.path)."""
    try:
        python = humaneval.humaneval(humaneval.HumanEvalConfig(path=config.plus))
    except UserError as error:
        raise UserError(error.message.replace("dataset.path", "dataset.plus"), PLUS) from error
    known = {task.task_id: task for task in python.tasks}
    language = config.language

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
    kept = {
        name: keep(task.suite, decided_on(language, name))
        for name, task in read.tasks.items()
        if isinstance(task.suite, Driven)
    }
    used = {name: one for name, one in kept.items() if one.share >= LEAST_KEPT}
    if not used:
        raise UserError(f"{config.path} holds no task of which enough is left in {language}", REMEDY)
    tasks = tuple(replace(read.tasks[name], suite=one.calls) for name, one in used.items())
    content = content_hash([python.content_hash, [row.model_dump() for row in read.rows], DECISIONS.read_text("utf-8")])
    details = tuple(
        f"{name}: {one.kept} of {counted(one.of, 'input')}, {one.expressible} of which {language} can express"
        + ("" if name in used else ": left out")
        for name, one in kept.items()
        if one.kept < one.of
    )
    inputs = sum(one.kept for one in used.values()), sum(one.expressible for one in used.values())
    remark = (
        f"{len(used)} of {counted(len(kept), 'task')} in {language}, with {inputs[0]:,} of the {inputs[1]:,} inputs "
        "that it can express; `codechat verify` lists them by task"
    )
    name = f"humaneval_x_{language}"
    return Dataset(name, tasks, content, read.places, remark=remark, details=details, departure=python.departure)


def decided_on(language: Language, task: str) -> tuple[Decided | Mended, ...]:
    """The decisions about a task."""
    return decisions().get((language, task), ())


def task_of(row: Row, python: Task, language: Language) -> Task:
    """The task in the language, with all of HumanEval+'s inputs. Raises `ValueError` if the function has no head."""
    heads = list(HEADS[language].finditer(row.prompt))
    if not heads or not isinstance(python.suite, Calls):
        raise ValueError(f"prompt: it shows no head of a function in {language}")
    name, signature = heads[-1]["name"], heads[-1][0].strip()
    reference = row.prompt + row.canonical_solution
    for one in decided_on(language, python.task_id):
        reference = reference.replace(*one.replace) if isinstance(one, Mended) else reference
    calls = replace(python.suite, entry_point=name, reference=reference, name=python.task_id)
    suite = replace(Driven.of(calls, language, signature), model=python.suite)
    return Task(python.task_id, row.prompt, Target(language, name, signature), suite, reference)


def keep(calls: Driven, decided: Sequence[Decided | Mended]) -> Kept:
    """The calls with the inputs that the language can express and that no decision drops."""
    by: dict[str, set[int]] = {"cannot": set(calls.inexpressible()), "drop": set(), "own": set()}
    for one in decided:
        if isinstance(one, Decided):
            by[one.decision].update(one.inputs)
    able = [place for place in range(len(calls.inputs)) if place not in by["cannot"]]
    places = [place for place in able if place not in by["drop"]]
    kept = tuple(calls.inputs[place] for place in places)
    base = sum(place < len(calls.base) for place in places)
    model = calls.model and replace(calls.model, base=kept[:base], plus=kept[base:])
    own = frozenset(at for at, place in enumerate(places) if place in by["own"])
    whole = replace(calls, base=kept[:base], plus=kept[base:], model=model, own=own)
    return Kept(whole, len(kept), len(able), len(calls.inputs))
