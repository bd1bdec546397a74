"""How much of what the plus tests find does a probe find that has the base tests alone?

    python benchmarks/probe.py humaneval|mbpp PATH SAMPLES.jsonl [SAMPLES.jsonl …] [--n 200] [--source base|all]

PATH is the release's JSONL (.gz), SAMPLES is what `codechat verify` wrote. Samples that pass the base tests are run on
fresh inputs made from them: of samples that the plus tests fail, the share that differs is printed; of samples that
pass all tests too. `--out FILE` gets each with the smallest differing input, one JSON object a line.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from codechat.datasets import DATASETS
from codechat.run.results.samples import Sample, read_samples
from codechat.sandbox import SANDBOXES
from codechat.studies.refine.probe.inputs import is_probeable, make_inputs, write_inputs
from codechat.studies.refine.probe.probing import PassingTurn, TaskTurns, probed_turns
from codechat.studies.refine.probe.running import Runner

WORKERS = 2


def arguments() -> Any:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("path")
    parser.add_argument("samples", nargs="+")
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--source", default="base")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


async def main(asked: Any) -> None:
    dataset = DATASETS.build(DATASETS.validate({"kind": asked.dataset, "path": asked.path}))
    samples = [each for name in asked.samples for each in read_samples(Path(name), dataset)]
    sandbox: Any = SANDBOXES.build(SANDBOXES.validate({"kind": "auto"}), workers=WORKERS)
    try:
        await probe(asked, dataset, samples, sandbox)
    finally:
        await sandbox.aclose()


async def probe(asked: Any, dataset: Any, samples: list[Sample], sandbox: Any) -> None:
    by_task = defaultdict(list)
    for number, sample in enumerate(samples):
        if sample.row["passed_base"] and is_probeable(sample.task):
            by_task[sample.task.task_id].append(number)
    found: dict[int, Any] = {}
    made: list[Any] = []

    async def one(task: Any) -> None:
        async with slots:
            runner = Runner(sandbox, task.suite)
            fresh = await make_inputs(task, runner, count=asked.n, seed=asked.seed, source=asked.source)
            made.append(fresh)
            turns = [PassingTurn("", "", "", number, samples[number].program, None) for number in by_task[task.task_id]]
            began = time.monotonic()
            for turn in await probed_turns(TaskTurns(dataset, task, turns), runner, fresh.arguments()):
                found[turn.turn] = turn.reference
            seconds = time.monotonic() - began
            print(
                f"{len(made)}/{len(dataset.tasks)} {task.task_id} {len(turns)} programs {seconds:.1f} s",
                file=sys.stderr,
            )

    slots = asyncio.Semaphore(WORKERS + 1)
    async with asyncio.TaskGroup() as group:
        for task in (task for task in dataset.tasks if by_task[task.task_id]):
            group.create_task(one(task))
    kept = sum(len(each.inputs) for each in made)
    counts = {name: sum(getattr(each, name) for each in made) for name in ("made", "refused", "undefined")}
    few = sorted((len(each.inputs), each.task_id) for each in made)
    print(f"{kept} inputs of {len(made)} tasks, {counts}; fewest: {few[:12]}")
    for words, wanted in (("fail the plus tests", False), ("pass all tests", True)):
        own = [number for number in found if samples[number].row["passed"] is wanted]
        differ = [number for number in own if found[number].differs]
        tasks = {samples[number].task.task_id for number in own}
        print(
            f"{len(own)} samples of {len(tasks)} tasks pass the base tests and {words}: "
            f"{len(differ)} differ on fresh inputs ({100 * len(differ) / max(1, len(own)):.1f} %)"
        )
    if asked.out:
        rows = [
            {
                "task_id": samples[n].task.task_id,
                "passed": samples[n].row["passed"],
                "solution": samples[n].program,
                **found[n].model_dump(),
            }
            for n in sorted(found)
        ]
        asked.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
        write_inputs(asked.out.with_suffix(".inputs.jsonl"), made)


if __name__ == "__main__":
    asyncio.run(main(arguments()))
