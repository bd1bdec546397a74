"""Does every transformation of the refactorer keep the references working, and adhere?

    python benchmarks/refactorer_check.py starter|humaneval|mbpp [PATH] [every=1] [share=1.0] [heavy=SECONDS]
                                          [only=INSTRUCTION,...]

Every instruction that applies to a reference is carried out on it; what came out is tested in the sandbox (a change
of layout, comments or docstrings alone is the same program, and is not). A short run takes every n-th reference, and
tests a share of what was made, drawn at random; of references that take more CPU than `heavy` seconds it tests a
twentieth of that. Prints what is handled, per instruction and in all, and every failure;
exits 1 if there is any.
"""

import ast
import asyncio
import random
import sys
import time
from collections import Counter
from typing import Any, NamedTuple

from codechat.datasets import DATASETS
from codechat.domain import Instruction, Task
from codechat.extraction import extract
from codechat.hardware import HARDWARE
from codechat.instructions import INSTRUCTIONS
from codechat.patterns import applicable
from codechat.patterns.code import docstring
from codechat.refactoring import refactored, transformable
from codechat.sandbox import SANDBOXES

AT_ONCE = 8


def skeleton(text: str) -> str:
    """The program without its docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if docstring(node):
            node.body = node.body[1:]  # type: ignore[attr-defined]
    return ast.dump(tree)


def pairs(tasks: tuple[Task, ...], pool: Any, only: set[str]) -> list[tuple[Task, Instruction]]:
    """Every reference with every instruction that a rule says applies to it."""
    return [
        (task, one)
        for task in tasks
        for one in pool.instructions
        if task.reference and (not only or one.id in only) and applicable(task.reference, one).applicable
    ]


class Draw(NamedTuple):
    """Which references are taken, and which of the programs made from them are tested."""

    every: int
    share: float
    heavy: float


async def main(kind: str, path: str | None, draw: Draw, only: set[str]) -> int:
    dataset = DATASETS.validate({"kind": kind, **({"path": path} if path else {})})
    tasks = DATASETS.of(dataset).factory(dataset).tasks[:: draw.every]
    options = INSTRUCTIONS.validate({"kind": "default"})
    pool = INSTRUCTIONS.of(options).factory(options)
    every = pairs(tasks, pool, only)
    rng = random.Random(0)
    applies, handled, reasons, failures = Counter[str](), Counter[str](), Counter[str](), list[str]()
    began, spent, tested = time.perf_counter(), 0.0, 0
    settings = SANDBOXES.validate({"kind": "bubblewrap"})
    workers = HARDWARE.of(HARDWARE.validate({"kind": "local"})).factory(HARDWARE.validate({"kind": "local"})).workers
    sandbox: Any = SANDBOXES.of(settings).factory(settings, workers=workers)
    gate = asyncio.Semaphore(AT_ONCE)

    async def test(task: Task, one: Instruction, code: str) -> None:
        async with gate:
            found = extract(code, task.entry_point)
            verdict = await sandbox.verify(found.program, task) if found.program else None
        if verdict is None or not verdict.passed:
            failures.append(f"FAIL {task.task_id} {one.id}: {verdict.outcome if verdict else found.reason} "
                            f"{verdict.failure if verdict else ''}"[:500])  # fmt: skip

    try:
        waiting = []
        costly = {task.task_id for task in tasks if task.reference and await sandbox.reference_cpu_s(task) > draw.heavy}
        for task, one in every:
            assert task.reference is not None
            applies[one.id] += 1
            start = time.perf_counter()
            revision = refactored(task.reference, one, task.entry_point)
            spent += time.perf_counter() - start
            if not revision.changed:
                reasons[f"{one.id}: {revision.reason[:90]}"] += one.id in transformable()
                continue
            handled[one.id] += 1
            drawn = rng.random() < (draw.share / 20 if task.task_id in costly else draw.share)
            if drawn and skeleton(task.reference) != skeleton(revision.code):
                tested += 1
                waiting.append(asyncio.create_task(test(task, one, revision.code)))
                await asyncio.sleep(0)
        await asyncio.gather(*waiting)
    finally:
        await sandbox.aclose()
    for name in sorted(transformable()):
        print(f"{name:55} {handled[name]:5} of {applies[name]:5}")
    for reason, number in reasons.most_common(60 if not only else 200):
        print(f"  left unchanged {number:4} times: {reason}") if number else None
    print(*failures, sep="\n")
    unreachable = sorted(transformable() - {one.id for one in pool.instructions})
    print(f"{kind}: {len(transformable())} transformations, {len(tasks)} references")
    print(f"applicable pairs {len(every)}, handled {handled.total()} ({handled.total() / max(1, len(every)):.1%})")
    print(f"of {len(costly)} references that take over {draw.heavy:g} s of CPU a twentieth was tested")
    print(f"tested {tested} programs, {len(failures)} failures; not in the pool: {unreachable or 'none'}")
    print(f"{1000 * spent / max(1, len(every)):.1f} ms a request, {time.perf_counter() - began:.0f} s in all")
    return 1 if failures or unreachable else 0


if __name__ == "__main__":
    named = dict(word.split("=", 1) for word in sys.argv[2:] if "=" in word)
    places = [word for word in sys.argv[2:] if "=" not in word]
    chosen = {name for name in named.get("only", "").split(",") if name}
    place = places[0] if places else None
    drawn = Draw(int(named.get("every", "1")), float(named.get("share", "1")), float(named.get("heavy", "inf")))
    sys.exit(asyncio.run(main(sys.argv[1], place, drawn, chosen)))
