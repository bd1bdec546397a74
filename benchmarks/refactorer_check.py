"""Does every transformation of the refactorer keep the references working, and adhere?

    python benchmarks/refactorer_check.py starter|humaneval|mbpp [PATH] [every=1] [only=INSTRUCTION,...]

Every instruction that applies to a reference is carried out on it, and what came out is tested on all inputs in the
sandbox, cheap references first. A program is tested once per reference: those that differ in layout, comments and
docstrings alone are the same program, and one that is the reference's own is not tested. A short run takes every n-th
reference. Prints what is handled, per instruction and in all, and every failure (also at once, on stderr, with the
progress); exits 1 if there is any.
"""

import ast
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence

from codechat.base.domain import Instruction, Program
from codechat.datasets.tasks import Task
from codechat.models.hardware import HARDWARE
from codechat.run.results.samples import cost_s
from codechat.sandbox import SANDBOXES
from codechat.sandbox.languages import extract
from codechat.sandbox.suites.checker import Checker
from codechat.studies.refine.baselines.refactoring import refactor, transformable
from codechat.studies.refine.instructions import INSTRUCTIONS
from codechat.studies.refine.patterns import applicable
from codechat.studies.refine.patterns.reading.tree import docstring
from codechat.testing import dataset_tasks


def skeleton(text: str) -> str:
    """The program without its docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if docstring(node):
            node.body = node.body[1:]  # type: ignore[attr-defined]
    return ast.dump(tree)


class Tally:
    """What was asked, done and tested."""

    def __init__(self) -> None:
        self.applies, self.handled, self.reasons = Counter[str](), Counter[str](), Counter[str]()
        self.programs, self.distinct, self.spent = 0, 0, 0.0
        self.failures: list[str] = []

    def revisions(self, task: Task, pool: Sequence[Instruction]) -> dict[str, list[tuple[str, str]]]:
        """The task's new programs: by skeleton, the instructions that make it, each with its text."""
        assert task.reference is not None
        made: dict[str, list[tuple[str, str]]] = {}
        for one in pool:
            if not applicable(task.reference, one).applicable:
                continue
            self.applies[one.id] += 1
            start = time.perf_counter()
            revision = refactor(task.reference, one, task.target.entry_point)
            self.spent += time.perf_counter() - start
            if revision.changed:
                self.handled[one.id] += 1
                made.setdefault(skeleton(revision.code), []).append((one.id, revision.code))
            else:
                self.reasons[f"{one.id}: {revision.reason[:90]}"] += one.id in transformable()
        made.pop(skeleton(task.reference), None)
        self.programs += sum(map(len, made.values()))
        return made

    async def test(self, task: Task, made: dict[str, list[tuple[str, str]]], checker: Checker) -> None:
        """Test each program once."""
        for makers in made.values():
            self.distinct += 1
            found = extract(makers[0][1], task.target)
            verdict = None
            if found.program is not None and task.suite is not None:
                verdict = await checker.check(Program(found.program, task.target), task.suite)
            if verdict is None or not verdict.passed:
                outcome = f"{verdict.outcome} {verdict.failure}" if verdict else found.reason
                self.failures.append(f"FAIL {task.task_id} {', '.join(name for name, _ in makers)}: {outcome}"[:600])
                print(self.failures[-1], file=sys.stderr, flush=True)


async def check(tasks: Sequence[Task], pool: Sequence[Instruction]) -> Tally:
    settings = SANDBOXES.validate({"kind": "bubblewrap"})
    workers = HARDWARE.build(HARDWARE.validate({"kind": "local"})).workers
    sandbox = SANDBOXES.build(settings, workers=workers)
    checker = Checker(sandbox)
    tally, gate = Tally(), asyncio.Semaphore(workers)

    async def one(task: Task, place: str) -> None:
        async with gate:
            await tally.test(task, tally.revisions(task, pool), checker)
        print(f"{place} {task.task_id}: {tally.distinct} programs so far", file=sys.stderr, flush=True)

    try:
        costs = {task.task_id: await cost_s(task, sandbox) for task in tasks}
        print(f"{len(tasks)} references take {sum(costs.values()):.1f} s of CPU", file=sys.stderr, flush=True)
        ordered = sorted(tasks, key=lambda task: costs[task.task_id])
        await asyncio.gather(*(one(task, f"{number}/{len(tasks)}") for number, task in enumerate(ordered, 1)))
    finally:
        await sandbox.aclose()
    return tally


def main(kind: str, path: str | None, every: int, only: set[str]) -> int:
    tasks = [task for task in dataset_tasks(kind, path)[::every] if task.reference]
    options = INSTRUCTIONS.validate({"kind": "default"})
    pool = INSTRUCTIONS.build(options).instructions
    began = time.perf_counter()
    tally = asyncio.run(check(tasks, [one for one in pool if not only or one.id in only]))
    for name in sorted(transformable()):
        print(f"{name:55} {tally.handled[name]:5} of {tally.applies[name]:5}")
    for reason, number in tally.reasons.most_common(200 if only else 60):
        print(f"  left unchanged {number:4} times: {reason}") if number else None
    print(*tally.failures, sep="\n")
    unreachable = sorted(transformable() - {one.id for one in pool})
    applies, handled = tally.applies.total(), tally.handled.total()
    print(f"{kind}: {len(transformable())} transformations, {len(tasks)} references")
    print(f"applicable pairs {applies}, handled {handled} ({handled / max(1, applies):.1%})")
    print(f"tested {tally.programs} programs, {tally.distinct} of them distinct: {len(tally.failures)} distinct fail")
    print(f"not in the pool: {unreachable or 'none'}")
    print(f"{1000 * tally.spent / max(1, applies):.1f} ms a request, {time.perf_counter() - began:.0f} s in all")
    return 1 if tally.failures or unreachable else 0


if __name__ == "__main__":
    named = dict(word.split("=", 1) for word in sys.argv[2:] if "=" in word)
    places = [word for word in sys.argv[2:] if "=" not in word]
    chosen = {name for name in named.get("only", "").split(",") if name}
    sys.exit(main(sys.argv[1], places[0] if places else None, int(named.get("every", "1")), chosen))
