"""Published solutions: our verdicts against EvalPlus's stored ones.

    python benchmarks/parity.py DATA [workers]

DATA holds the releases and `{humaneval,mbpp}_samples_*.jsonl` with `evalplus_base` and `evalplus_plus`. Prints each
difference with its cause, and exits 1 if one is neither timing-sensitive nor a documented deviation.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from codechat.base.domain import Verdict
from codechat.datasets import DATASETS
from codechat.run.results.samples import Sample, check_samples
from codechat.sandbox import SANDBOXES
from codechat.sandbox.suites.calls.oracle import EVALPLUS_FAILS

RELEASES = {"humaneval": "HumanEvalPlus.jsonl.gz", "mbpp": "MbppPlus.jsonl.gz"}


async def verdicts(samples: list[Sample], workers: int) -> dict[int, Verdict]:
    config = SANDBOXES.validate({"kind": os.environ.get("SANDBOX", "auto")})
    sandbox: Any = SANDBOXES.build(config, workers=workers)
    found: dict[int, Verdict] = {}
    try:
        await check_samples(samples, sandbox, {}, found.__setitem__)
    finally:
        await sandbox.aclose()
    return found


def main() -> int:
    data = Path(sys.argv[1])
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else len(os.sched_getaffinity(0))
    unexplained = 0
    for name, release in RELEASES.items():
        config = DATASETS.validate({"kind": name, "path": str(data / release)})
        tasks = {task.task_id: task for task in DATASETS.build(config).tasks}
        for path in sorted(data.glob(f"{name}_samples_*.jsonl")):
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            samples = [Sample(tasks[row["task_id"]], row["solution"], row) for row in rows]
            found = asyncio.run(verdicts(samples, workers))
            differences = 0
            for number, row in enumerate(rows):
                ours, theirs = found[number], (row["evalplus_base"], row["evalplus_plus"])
                if (ours.passed_base, ours.passed) != theirs:
                    differences += 1
                    known = row["timing_sensitive"] or row["task_id"] in EVALPLUS_FAILS
                    unexplained += not known
                    print(f"  {row['task_id']}: EvalPlus {theirs}, ours {ours.outcome}, known {known}: {ours.failure}")
            print(f"{path.name}: {len(rows) - differences} of {len(rows)} verdicts agree", flush=True)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
