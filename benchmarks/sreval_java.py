"""CPU time, time and memory of verdicts on SR-Eval's Java references, beside a cold `javac` and `java` a turn.

    python benchmarks/sreval_java.py sreval_java_function.jsonl.gz [--turns 40] [--workers 2]

Both sides check the same turns in the same run: codechat by its suite, all turns at once; the other side by a `javac`
and a JUnit console of its own for every turn, `--cold` of them. It ends with 1 if a bar is missed: CPU a turn at most
1/3, median time of a verdict alone at most 1/4, memory at most 600 MB a worker.
"""

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tree import Peak

from codechat.base.domain import Program
from codechat.datasets import DATASETS
from codechat.sandbox import SANDBOXES, Sandbox
from codechat.sandbox.suites import Suite
from codechat.sandbox.suites.jdk import find_home
from codechat.sandbox.suites.junit import JUnit
from codechat.sandbox.suites.junit.toolchain import PARTS, find_jars
from codechat.studies.sreval.rows import StepTask

CPU_BAR, TIME_BAR, MEMORY_BAR_MB = 1 / 3, 1 / 4, 600
Turn = tuple[Program, JUnit]


def main() -> int:
    """Run both sides; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", help="the published file of Java functions")
    parser.add_argument("--turns", type=int, default=0, help="how many turns, evenly spread; all unless given")
    parser.add_argument("--cold", type=int, default=12, help="how many of them the cold side runs")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    turns = read(given.tasks)
    turns = turns[:: max(1, len(turns) // given.turns)] if given.turns else turns
    some = turns[:: max(1, len(turns) // given.cold)][: given.cold]
    cold_cpu, cold_s = run_cold(some)
    print(f"cold: {cold_cpu:.2f} CPU-s a turn, median {cold_s:.2f} s, {len(some)} turns")
    warm_cpu, warm_s, peak = asyncio.run(run_warm(turns, some, given.workers))
    print(f"codechat: {warm_cpu:.2f} CPU-s a turn, median {warm_s:.2f} s alone, {peak:.0f} MB a worker")
    ratios = warm_cpu / cold_cpu, warm_s / cold_s
    print(f"ratios: CPU 1/{1 / ratios[0]:.1f} (bar 1/3), time 1/{1 / ratios[1]:.1f} (bar 1/4)")
    return int(ratios[0] > CPU_BAR or ratios[1] > TIME_BAR or peak > MEMORY_BAR_MB)


def read(path: str) -> list[Turn]:
    """Every turn's reference and its tests."""
    dataset = DATASETS.build(DATASETS.validate({"kind": "sreval_java", "path": path}))
    parts: list[tuple[StepTask, str, Suite]] = [
        (task, step.reference or "", step.suite)
        for task in dataset.tasks
        if isinstance(task, StepTask)
        for step in task.steps
    ]
    return [(Program(code, task.target), suite) for task, code, suite in parts if isinstance(suite, JUnit)]


async def run_warm(turns: Sequence[Turn], some: Sequence[Turn], workers: int) -> tuple[float, float, float]:
    """CPU seconds a turn, the median seconds of a verdict alone, and the peak in MB of a worker with its programs."""
    sandbox: Sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "auto"}), workers=workers)
    turns[0][1].make_ready(sandbox.config, print)
    await turns[0][1].check(turns[0][0], sandbox)
    alone = [await _timed(turn, sandbox) for turn in some]
    before = _cpu_s()
    with Peak(os.getpid()) as peak:
        verdicts = await asyncio.gather(*(suite.check(program, sandbox) for program, suite in turns))
    await sandbox.aclose()
    cpu_s = sum(verdict.cpu_s for verdict in verdicts)
    print(f"{sum(verdict.passed for verdict in verdicts)} of {len(verdicts)} pass; own CPU {_cpu_s() - before:.1f} s")
    return cpu_s / len(verdicts), statistics.median(alone), peak.mb / workers


async def _timed(turn: Turn, sandbox: Sandbox) -> float:
    began = time.monotonic()
    await turn[1].check(turn[0], sandbox)
    return time.monotonic() - began


def run_cold(turns: Sequence[Turn]) -> tuple[float, float]:
    """CPU seconds a turn, and the median seconds, of `javac` and JUnit's console."""
    home, jars = find_home(None, PARTS), [*find_jars(None), *Path("/usr/share/java").glob("junit-platform-*.jar")]
    path = ":".join(map(str, [*jars, Path("/usr/share/java/picocli.jar")]))
    before, took = _children_s(), []
    for program, suite in turns:
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            imports = [line for line in program.source.splitlines() if line.startswith("import ")]
            rest = "\n".join(line for line in program.source.splitlines() if line not in imports)
            public = rest.replace("public class", "class").replace("public interface", "interface")
            Path(folder, "Unit.java").write_text(
                "\n".join([*imports, suite.tests, public.replace("public enum", "enum")])
            )
            compiled = subprocess.run(
                [f"{home}/bin/javac", "-cp", path, "-d", folder, f"{folder}/Unit.java"],
                capture_output=True,
                check=False,
            )
            console = ["org.junit.platform.console.ConsoleLauncher", "--scan-classpath", folder, "-cp", folder]
            ran = subprocess.run(
                [f"{home}/bin/java", "-cp", f"{path}:{folder}", *console], capture_output=True, check=False
            )
            took.append(time.monotonic() - began)
            if compiled.returncode or ran.returncode:
                print("cold side fails on a turn:", (compiled.stderr or ran.stderr).decode()[-300:])
    return (_children_s() - before) / len(turns), statistics.median(took)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
