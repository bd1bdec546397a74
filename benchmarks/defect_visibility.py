"""How many of the drifter's defects do a dataset's tests see?

    python benchmarks/defect_visibility.py starter|humaneval|mbpp [PATH] [defects=4]

Puts that many defects, one at a time, into every reference and tests each in the sandbox. The drifter's expected
regression rate is its configured probability times the share printed here.
"""

import asyncio
import random
import sys
import time
from collections import Counter

from codechat.base.domain import Program
from codechat.datasets.tasks import Task
from codechat.sandbox import SANDBOXES
from codechat.sandbox.languages import extract
from codechat.sandbox.suites.checker import Checker
from codechat.studies.refine.baselines.refactoring import add_defect
from codechat.testing import dataset_tasks


async def main(kind: str, path: str | None, defects: int) -> None:
    tasks = dataset_tasks(kind, path)
    settings = SANDBOXES.validate({"kind": "bubblewrap"})
    sandbox = SANDBOXES.build(settings, workers=2)
    checker = Checker(sandbox)
    outcomes, unseen, began = Counter[str](), list[str](), time.perf_counter()
    gate = asyncio.Semaphore(8)

    async def test(task: Task, number: int) -> None:
        assert task.reference is not None
        broken = add_defect(task.reference, random.Random(f"{task.task_id} {number}"))
        if broken is None:
            outcomes["no place for a defect"] += 1
            return
        async with gate:
            program, verdict = extract(broken, task.target).program, None
            if program is not None and task.suite is not None:
                verdict = await checker.check(Program(program, task.target), task.suite)
        outcome = verdict.outcome if verdict else "no_code"
        outcomes[outcome] += 1
        if outcome == "pass":
            lines = set(broken.splitlines()) - set(task.reference.splitlines())
            unseen.append(f"{task.task_id}: {' | '.join(line.strip() for line in lines)[:150]}")

    try:
        await asyncio.gather(*(test(task, number) for task in tasks for number in range(defects)))
    finally:
        await sandbox.aclose()
    print(*sorted(unseen), sep="\n")
    total = outcomes.total()
    seen = total - outcomes["pass"] - outcomes["no place for a defect"]
    print(f"{kind}: {dict(outcomes)}")
    print(f"{kind}: {seen} of {total} defects seen ({seen / total:.1%}), {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    named = dict(word.split("=", 1) for word in sys.argv[2:] if "=" in word)
    places = [word for word in sys.argv[2:] if "=" not in word]
    asyncio.run(main(sys.argv[1], places[0] if places else None, int(named.get("defects", "4"))))
