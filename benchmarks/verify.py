"""EvalPlus and `verify` on the same samples, in one go, as ratios.

    python benchmarks/verify.py humaneval|mbpp PATH [SAMPLES.jsonl]

PATH is the release's JSONL (.gz); without SAMPLES the reference solutions are the samples. EvalPlus's expected values
and ours are made before anything is timed; each side gets one worker per core. Set EVALPLUS=0 to leave it out.
"""

import asyncio
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tree import Peak

from codechat.base.domain import Program, Verdict
from codechat.datasets import DATASETS
from codechat.datasets.tasks import Task
from codechat.run.results.samples import Sample, check_samples, read_samples
from codechat.sandbox import SANDBOXES
from codechat.sandbox.suites.calls import Calls
from codechat.sandbox.suites.checker import Checker

WORKERS = len(os.sched_getaffinity(0))
HEAVY_MEMORY = "Mbpp/255"  # its results alone take gigabytes


def calls(task: Task) -> Calls:
    """The calls of a task of EvalPlus."""
    assert isinstance(task.suite, Calls)
    return task.suite


def children_cpu_s() -> float:
    """CPU seconds of the children that have ended and of theirs: a busy machine does not change them much."""
    return sum(os.times()[2:4])


def sandbox(workers: int) -> Any:
    config = SANDBOXES.validate({"kind": os.environ.get("SANDBOX", "auto")})
    return SANDBOXES.build(config, workers=workers)


async def ours(samples: list[Sample]) -> tuple[float, float, dict[str, float]]:
    """Wall seconds of testing the samples, CPU seconds of this process and the programs, and the references'."""
    room: Any = sandbox(WORKERS)
    costs: dict[str, float] = {}
    try:
        for task in {sample.task.task_id: sample.task for sample in samples}.values():
            costs[task.task_id] = await calls(task).cost_s(room)
        began, used, programs = time.perf_counter(), time.process_time(), [0.0]
        await check_samples(samples, room, {}, lambda number, verdict: programs.append(verdict.cpu_s))
        return time.perf_counter() - began, time.process_time() - used + sum(programs), costs
    finally:
        await room.aclose()


def theirs(name: str, path: Path, samples: list[Sample]) -> tuple[float, float]:
    """EvalPlus's checking phase in seconds, and its tree's peak memory in MB."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.jsonl"
        data.write_bytes(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
        environment = {**os.environ, f"{name.upper()}_OVERRIDE_PATH": str(data)}
        lines = [{"task_id": sample.task.task_id, "solution": sample.program} for sample in samples]
        file = Path(folder) / "samples.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        command = [sys.executable, str(Path(__file__).parent / "evalplus_phase.py"), name, str(file), str(WORKERS)]
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        with Peak(process.pid) as peak:
            output = process.communicate()[0]
        phase = next(json.loads(line[6:]) for line in output.splitlines() if line.startswith("PHASE "))
        return float(phase["checking_s"]), peak.mb


async def small() -> dict[str, float]:
    """Median milliseconds from submission to verdict with one worker: a trivial function, and light real work."""
    room = sandbox(1)
    trivial = Calls("f", "def f(x):\n    return x\n", ((1,),), name="trivial")
    body = "def f(n):\n    return sorted({x * x % 97 for x in range(n)})\n"
    light = Calls("f", body, tuple((n,) for n in range(50)), tuple((n,) for n in range(200, 400)), name="light")
    figures = {}
    try:
        for suite in (trivial, light):
            times = []
            for number in range(200):
                began = time.perf_counter()
                await suite.check(Program(f"# {number}\n{suite.reference}"), room)
                times.append((time.perf_counter() - began) * 1000)
            figures[suite.name] = statistics.median(times[5:])
    finally:
        await room.aclose()
    return figures


async def sessions(samples: list[Sample]) -> tuple[float, float]:
    """Wall seconds of ten turns over fifty tasks, the code new at every turn and the code new at every third."""
    walls = []
    for every in (1, 3):
        room = sandbox(WORKERS)
        try:
            chosen = samples[:50]
            checker = Checker(room)
            await asyncio.gather(*(calls(sample.task).cost_s(room) for sample in chosen))
            began = time.perf_counter()
            for turn in range(10):
                number = turn // every
                programs = [Program(f"{sample.program}\n# {number}\n", sample.task.target) for sample in chosen]
                runs = [
                    checker.check(program, calls(sample.task)) for program, sample in zip(programs, chosen, strict=True)
                ]
                verdicts: list[Verdict] = await asyncio.gather(*runs)
                assert verdicts
            walls.append(time.perf_counter() - began)
        finally:
            await room.aclose()
    return walls[0], walls[1]


def main() -> None:
    name, path = sys.argv[1], Path(sys.argv[2])
    config = DATASETS.validate({"kind": name, "path": str(path)})
    dataset = DATASETS.build(config)
    if len(sys.argv) > 3:
        samples = read_samples(Path(sys.argv[3]), dataset)
    else:
        samples = [Sample(task, task.reference or "", {}) for task in dataset.tasks]
    asyncio.run(ours(samples))  # expected values of this machine, and a warm disk
    wall, spent, costs = asyncio.run(ours(samples))
    with Peak(os.getpid()) as peak:
        asyncio.run(ours([sample for sample in samples if sample.task.task_id != HEAVY_MEMORY]))
    print(f"verify: {len(samples)} samples in {wall:.1f} s with {WORKERS} workers, {spent:.1f} s of CPU in all")
    print(f"peak memory of the whole tree {peak.mb:.0f} MB (without {HEAVY_MEMORY})")
    if len(sys.argv) <= 3:
        bound = max(*costs.values(), sum(costs.values()) / WORKERS)
        print(f"lower bound max(longest, sum / workers) {bound:.1f} s: {wall / bound:.2f} × it (at most 1.3)")
        print(f"lower bound in CPU time {sum(costs.values()):.1f} s: {spent / sum(costs.values()):.2f} × it")
    if os.environ.get("EVALPLUS") != "0":
        began = children_cpu_s()
        checking, memory = theirs(name, path, samples)
        their_cpu = children_cpu_s() - began
        print(f"EvalPlus: checking {checking:.1f} s, peak {memory:.0f} MB; verify is {checking / wall:.1f} × as fast")
        print(
            f"EvalPlus takes {their_cpu:.1f} s of CPU in all, expected values included: {their_cpu / spent:.1f} × ours"
        )
    for task, median in asyncio.run(small()).items():
        print(f"{task} program, one worker: {median:.1f} ms at the median")
    fresh, repeated = asyncio.run(sessions(samples))
    print(
        f"ten turns over 50 tasks: {fresh:.1f} s with new code every turn, {repeated:.1f} s with new code every third"
    )


if __name__ == "__main__":
    main()
