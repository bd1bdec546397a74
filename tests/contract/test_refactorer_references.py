"""What the refactorer makes of references passes their tests: a sample."""

import ast
import asyncio
import os
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from codechat.base.domain import Instruction, Program
from codechat.datasets.tasks import Task
from codechat.sandbox import SANDBOXES, Sandbox
from codechat.sandbox.languages import extract
from codechat.sandbox.suites.checker import Checker
from codechat.studies.refine.baselines.refactoring import refactor, transformable
from codechat.studies.refine.instructions import INSTRUCTIONS
from codechat.studies.refine.patterns import applicable
from codechat.studies.refine.patterns.reading.tree import docstring
from codechat.testing import dataset_tasks

pytestmark = pytest.mark.long

DATA = os.environ.get("CODECHAT_TEST_DATA")
FILES = {"humaneval": "HumanEvalPlus.jsonl.gz", "mbpp": "MbppPlus.jsonl.gz"}
PER_INSTRUCTION = {"starter": 8, "humaneval": 2, "mbpp": 2}
PROGRAMS = {"starter": 204, "humaneval": 63, "mbpp": 52}  # that the sample holds


def pool() -> tuple[Instruction, ...]:
    config = INSTRUCTIONS.validate({"kind": "default"})
    return INSTRUCTIONS.build(config).instructions


def tasks_of(kind: str) -> tuple[Task, ...]:
    if kind in FILES and DATA is None:
        pytest.skip("CODECHAT_TEST_DATA is not set")
    tasks = dataset_tasks(kind, str(Path(DATA or "") / FILES[kind]) if kind in FILES else None)
    return tasks[:: {"starter": 1, "humaneval": 8, "mbpp": 12}[kind]]


def sample(kind: str) -> Iterator[tuple[Task, Instruction, str]]:
    """Programs that a transformation made, a few for every instruction, spread over the tasks."""
    tasks = tasks_of(kind)
    for number, one in enumerate(one for one in pool() if one.id in transformable()):
        left = PER_INSTRUCTION[kind]
        start = number * 7 % len(tasks)
        for task in (tasks[start:] + tasks[:start])[:15]:
            if left == 0:
                break
            if task.reference is None or not applicable(task.reference, one).applicable:
                continue
            revision = refactor(task.reference, one, task.target.entry_point)
            left -= revision.changed
            if revision.changed and skeleton(revision.code) != skeleton(task.reference):
                yield task, one, revision.code


def skeleton(text: str) -> str:
    """The program without layout, comments and docstrings: a change of these is the same program."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the references' own escapes
        tree = ast.parse(text)
    for node in ast.walk(tree):
        if docstring(node):
            node.body = node.body[1:]  # type: ignore[attr-defined]
    return ast.dump(tree)


@pytest_asyncio.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    config = SANDBOXES.validate({"kind": "auto"})
    made = SANDBOXES.build(config, workers=2)
    yield made
    await made.aclose()


@pytest.mark.parametrize("kind", ["starter", "humaneval", "mbpp"])
async def test_what_a_transformation_makes_passes_the_tests(kind: str, sandbox: Sandbox) -> None:
    gate, checker = asyncio.Semaphore(8), Checker(sandbox)

    async def fault(task: Task, one: Instruction, code: str) -> str | None:
        async with gate:
            program, verdict = extract(code, task.target).program, None
            if program is not None and task.suite is not None:
                verdict = await checker.check(Program(program, task.target), task.suite)
        return None if verdict and verdict.passed else f"{task.task_id} {one.id}: {verdict}\n{code}"

    made = list(sample(kind))
    assert len(made) == PROGRAMS[kind]
    faults = [found for found in await asyncio.gather(*(fault(*one) for one in made)) if found]
    assert not faults, "\n\n".join(faults)
