"""SR-Eval's Python turns in a library set: forks of a warm interpreter against a fresh interpreter a turn.

    python benchmarks/sreval_python.py FILE PYTHON [EVERY]

FILE is `python_function.jsonl(.gz)`, PYTHON the interpreter of an environment with what `codechat requirements
dataset=sreval_python` prints, EVERY takes every so many turns. Both sides run each turn's reference with its tests, one
after the other, in the same isolation and with the same limits: as a fork of the worker that has loaded the set, and as
a file run by an interpreter of its own. Turns that only one side passes are counted and left out; fresh interpreters
have neither network nor /proc. Prints CPU seconds a turn and their ratio, what loading the set costs a worker, and the
memory of a worker without a program. Exit status 1 if the ratio at the median is over 1/5 or the memory over 400 MB.
"""

import asyncio
import os
import statistics
import sys
from pathlib import Path

from tree import tree

from codechat.base.domain import Program, Target
from codechat.datasets import DATASETS
from codechat.datasets.tasks import Task
from codechat.run.cell.libraries import preload
from codechat.sandbox import PYTHON, SANDBOXES, Command, Sandbox
from codechat.sandbox.suites.assertions import TOOLS, Assertions
from codechat.studies.sreval.rows import StepTask

MOST_RATIO, MOST_MB = 1 / 5, 400.0
TICKS = os.sysconf("SC_CLK_TCK")
NOTHING = Assertions(("assert f() == 1",))


def turns(tasks: tuple[Task, ...]) -> list[tuple[str, Program, Assertions]]:
    """Every turn's name, reference and suite."""
    return [
        (f"{task.task_id}/{number}", Program(step.reference, task.target), step.suite)
        for task in tasks
        if isinstance(task, StepTask)
        for number, step in enumerate(task.steps, 1)
        if step.reference is not None and isinstance(step.suite, Assertions)
    ]


async def fresh(program: Program, suite: Assertions, sandbox: Sandbox) -> tuple[bool, float]:
    """Whether a turn passes as a file run by a new interpreter, and its CPU seconds."""
    text = "\n\n".join([program.source, *suite.snippets, "if __name__ == '__main__':\n    unittest.main()\n"])
    tools = tuple(tool for need, several in TOOLS.items() if need in suite.needs for tool in several)
    files = {"test.py": text.encode()}
    ran = await sandbox.run(Command(argv=(PYTHON, "test.py"), files=files, wall_s=600.0, cpu_s=240.0, tools=tools))
    return ran.status == 0, ran.cpu_s


def zygotes() -> list[int]:
    """The interpreters that this process has warm, each with nothing below it."""
    below = tree(os.getpid()) - {os.getpid()}
    return [pid for pid in below if len(tree(pid)) == 1]


def cpu_s(pid: int) -> float:
    """CPU seconds of a process, without its children's."""
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return sum(map(int, fields[11:13])) / TICKS


def resident_mb(pid: int) -> float:
    """The memory of a process, with what it shares."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def warm(sandbox: Sandbox) -> tuple[float, float]:
    """CPU seconds by which the first program made the worker load the set, and the worker's memory after it, in MB."""
    (worker,) = zygotes()
    before = cpu_s(worker)
    verdict = await NOTHING.check(Program("def f():\n    return 1\n", Target(entry_point="f")), sandbox)
    assert verdict.passed, verdict
    return cpu_s(worker) - before, resident_mb(worker)


async def main(path: str, python: str, every: int) -> int:
    dataset = DATASETS.build(DATASETS.validate({"kind": "sreval_python", "path": path}))
    sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "auto", "python": python}), workers=1)
    preload(sandbox, dataset.tasks)
    pairs: list[tuple[float, float]] = []
    left: list[str] = []
    try:
        loading, memory = await warm(sandbox)
        for name, program, suite in turns(dataset.tasks)[::every]:
            verdict = await suite.check(program, sandbox)
            passed, used = await fresh(program, suite, sandbox)
            if verdict.passed and passed:
                pairs.append((verdict.cpu_s, used))
            else:
                left.append(f"{name} ({'a fork' if verdict.passed else 'a fresh one' if passed else 'none'} passes)")
    finally:
        await sandbox.aclose()
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    print(f"{len(pairs)} turns, left out: {len(left)} {', '.join(left)}")
    for title, column in (("fork", 0), ("fresh interpreter", 1)):
        used_s = [pair[column] for pair in pairs]
        print(f"{title}: {statistics.median(used_s):.3f} CPU-s at the median turn, {sum(used_s):.1f} in all")
    total = sum(ours for ours, _ in pairs) / sum(theirs for _, theirs in pairs)
    print(f"ratio: 1/{1 / ratio:.1f} at the median turn, 1/{1 / total:.1f} over all, their own computing included")
    print(f"a worker: {loading:.1f} CPU-s to load the set once, {memory:.0f} MB without a program", flush=True)
    return 0 if ratio <= MOST_RATIO and memory <= MOST_MB else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1)))
