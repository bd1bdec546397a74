"""Do all reference solutions pass, time after time, also on a busy machine?

    python benchmarks/references.py humaneval PATH [runs] [busy]

`busy` processes keep the cores occupied meanwhile. Prints one line per run and exits 1 if anything fails.
"""

import asyncio
import multiprocessing
import os
import sys
import time
from typing import Any

from codechat.base.domain import Program
from codechat.datasets import DATASETS
from codechat.sandbox import SANDBOXES


def spin() -> None:
    while True:
        pass


async def once(tasks: Any, kind: str, workers: int) -> tuple[float, float, list[str]]:
    """Wall seconds, the programs' CPU seconds, and the tasks whose reference fails, with why."""
    config = SANDBOXES.validate({"kind": kind})
    sandbox: Any = SANDBOXES.build(config, workers=workers)
    try:
        costs = await asyncio.gather(*(task.suite.cost_s(sandbox) for task in tasks))
        order = [task for _, task in sorted(zip(costs, tasks, strict=True), key=lambda pair: -pair[0])]
        began = time.perf_counter()
        verdicts = await asyncio.gather(*(task.suite.check(Program(task.reference), sandbox) for task in order))
        wall = time.perf_counter() - began
    finally:
        await sandbox.aclose()
    failed = [f"{task.task_id}: {v.failure}" for task, v in zip(order, verdicts, strict=True) if not v.passed]
    return wall, sum(verdict.cpu_s for verdict in verdicts), failed


def main() -> int:
    name, path = sys.argv[1:3]
    runs, busy = (int(word) for word in (sys.argv[3:] + ["5", "0"][len(sys.argv) - 3 :]))
    config = DATASETS.validate({"kind": name, "path": path})
    tasks = DATASETS.build(config).tasks
    workers = len(os.sched_getaffinity(0))
    load = [multiprocessing.Process(target=spin, daemon=True) for _ in range(busy)]
    for process in load:
        process.start()
    bad = False
    for run in range(runs):
        wall, cpu, failed = asyncio.run(once(tasks, os.environ.get("SANDBOX", "auto"), workers))
        bad = bad or bool(failed)
        print(
            f"run {run + 1}: {len(tasks) - len(failed)}/{len(tasks)} pass, wall {wall:.1f} s, CPU {cpu:.1f} s",
            flush=True,
        )
        print("".join(f"  {line}\n" for line in failed), end="")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
