"""References, and equal programs, differ on no fresh input: on the starter tasks, HumanEval+ and MBPP+."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from codechat.datasets import DATASETS
from codechat.datasets.tasks import Dataset, Task
from codechat.sandbox import SANDBOXES
from codechat.sandbox.suites.calls import Calls
from codechat.studies.refine.probe.inputs import is_probeable, make_inputs
from codechat.studies.refine.probe.probing import PassingTurn, TaskTurns, probed_turns
from codechat.studies.refine.probe.running import Runner

EVERY = {"humaneval": ("HumanEvalPlus", 20), "mbpp": ("MbppPlus", 40)}  # whole sets take minutes: every so many tasks
COUNT, LEAST = 40, 25


def probed(dataset: Dataset, tasks: list[Task]) -> dict[str, tuple[int, int]]:
    """By task, the number of inputs, and on how many the reference differs from itself or from its renamed copy."""

    async def work() -> dict[str, tuple[int, int]]:
        sandbox: Any = SANDBOXES.build(SANDBOXES.validate({"kind": "auto"}), workers=2)
        found = {}
        try:
            for task in tasks:
                assert isinstance(task.suite, Calls)
                runner = Runner(sandbox, task.suite)
                fresh = await make_inputs(task, runner, count=COUNT, seed=0, source="all")
                program = task.reference or ""
                again = PassingTurn("c", "s", "m", 1, f"{program}\n# the same\n", (0, program))
                turns = [PassingTurn("c", "s", "m", 0, program, None), again]
                records = await probed_turns(TaskTurns(dataset, task, turns), runner, fresh.arguments())
                compared = [each for turn in records for each in (turn.reference, turn.before) if each is not None]
                found[task.task_id] = len(fresh.inputs), sum(each.differs + each.undecided for each in compared)
        finally:
            await sandbox.aclose()
        return found

    return asyncio.run(work())


@pytest.mark.long
def test_references_of_the_starter_differ_on_none() -> None:
    dataset = DATASETS.build(DATASETS.validate({"kind": "starter"}))
    tasks = [task for task in dataset.tasks if is_probeable(task)]
    found = probed(dataset, tasks)
    assert len(found) == 50
    assert all(differs == 0 for _, differs in found.values())
    assert sum(count < LEAST for count, _ in found.values()) <= 3


@pytest.mark.data
@pytest.mark.parametrize("kind", list(EVERY))
def test_references_of_the_releases_differ_on_none(kind: str) -> None:
    folder = os.environ.get("CODECHAT_TEST_DATA")
    if not folder:
        pytest.skip("CODECHAT_TEST_DATA is not set")
    release, step = EVERY[kind]
    path = Path(folder) / f"{release}.jsonl.gz"
    dataset = DATASETS.build(DATASETS.validate({"kind": kind, "path": str(path)}))
    found = probed(dataset, [task for task in dataset.tasks[::step] if is_probeable(task)])
    assert len(found) >= 8
    assert all(differs == 0 for _, differs in found.values())
    assert sum(count >= LEAST for count, _ in found.values()) >= 0.8 * len(found)
