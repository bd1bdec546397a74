"""SR-Eval's published turns through Algorithms 1 and 2: which are correct, and which tests tell their step.

    python benchmarks/sreval_construct.py FILE python|java [--python PYTHON] [--workers 2] [--every 1]

FILE is a published file of functions; PYTHON the interpreter of an environment with what `codechat requirements
dataset=sreval_python` prints; `--every` takes every so many tasks. The coder of every task answers with the published
solutions and tests. Prints how many turns are correct, a table of how the tests of later turns end with the solution
before, with the offenders by name, and how many tasks Algorithm 1 makes with one attempt a turn, as in the paper (the
previous solution alone, one order).
"""

import argparse
import asyncio
import itertools
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from codechat.base.domain import Program, Verdict
from codechat.datasets import DATASETS
from codechat.run.cell.libraries import preload
from codechat.run.construct import Dropped
from codechat.sandbox import SANDBOXES
from codechat.sandbox.suites import Suite
from codechat.sandbox.suites.checker import Checker
from codechat.studies.sreval.construct.algorithm import Judged, Limits, Round, make_turns
from codechat.studies.sreval.construct.checking import Checked, Draft, Place, unified_check
from codechat.studies.sreval.rows import StepTask

AS_PUBLISHED = Limits(attempts=1, orders=1, earlier="previous", skip=["alignment"])


@dataclass(frozen=True)
class Published:
    """The team of one task: a coder that answers with what was published."""

    task: StepTask
    checker: Checker
    slots: asyncio.Semaphore

    @property
    def drafts(self) -> list[Draft]:
        """The published solution and tests of every turn."""
        return [Draft(step.reference or "", step.tests) for step in self.task.steps]

    async def write(self, asked: Round) -> Draft:
        """The published draft of the turn."""
        return self.drafts[asked.turn - 1]

    async def check(self, code: str | None, draft: Draft, order: int = 0) -> Checked:
        """Algorithm 2, each pair once."""
        assert code is not None
        place = Place(self.task.target.language, self.task.target.entry_point)

        async def verdict(program: Program, suite: Suite) -> Verdict:
            async with self.slots:
                return await self.checker.check(program, suite)

        return await unified_check(verdict, place, code, draft, order)

    async def align(self, asked: Round, draft: Draft) -> Judged:
        """Nobody is asked."""
        raise AssertionError

    async def settle(self, asked: Round, judged: Judged) -> None:
        """Nobody is asked."""
        raise AssertionError

    async def turns(self) -> tuple[list[Checked], list[Checked], bool]:
        """Every turn's tests on its own solution, those of later ones on the solution before, and if it is made."""
        drafts = self.drafts
        own = await asyncio.gather(*(self.check(draft.code, draft) for draft in drafts))
        pairs = itertools.pairwise(drafts)
        before = await asyncio.gather(*(self.check(one.code, other) for one, other in pairs))
        made = await make_turns([step.instruction for step in self.task.steps], self, AS_PUBLISHED)
        print(".", end="", file=sys.stderr, flush=True)
        return list(own), list(before), not isinstance(made, Dropped)


async def main(words: Sequence[str] | None = None) -> int:
    """Check all turns; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="a published file of functions")
    parser.add_argument("language", choices=["python", "java"])
    parser.add_argument("--python", help="the interpreter with the libraries")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="every so many tasks")
    given = parser.parse_args(words)
    dataset = DATASETS.build(DATASETS.validate({"kind": f"sreval_{given.language}", "path": given.file}))
    tasks = [task for task in dataset.tasks if isinstance(task, StepTask)][:: given.every]
    config = {"kind": "auto", "share": False, **({"python": given.python} if given.python else {})}
    sandbox = SANDBOXES.build(SANDBOXES.validate(config), workers=given.workers)
    preload(sandbox, tasks)
    checker, slots = Checker(sandbox), asyncio.Semaphore(2 * given.workers)
    try:
        found = await asyncio.gather(*(Published(task, checker, slots).turns() for task in tasks))
    finally:
        await sandbox.aclose()
    wrong, ends, made = list[str](), defaultdict[str, list[str]](list), 0
    for task, (own, before, complete) in zip(tasks, found, strict=True):
        made += complete
        wrong += [f"{task.task_id}/{n} ({one.found})" for n, one in enumerate(own, 1) if not one.correct]
        for number, one in enumerate(before, 2):
            ends[one.found].append(f"{task.task_id}/{number}")
    turns = sum(len(task.steps) for task in tasks)
    print(
        f"\n{len(tasks)} tasks, {turns} turns: {turns - len(wrong)} correct; not correct: {', '.join(wrong) or 'none'}"
    )
    counts = Counter({end: len(names) for end, names in ends.items()})
    discriminating = counts["fails"] + counts["unfit"]
    print(f"of {counts.total()} later turns the tests of {discriminating} tell the step:")
    for end, count in counts.most_common():
        names = f": {', '.join(ends[end])}" if end not in ("fails", "unfit") else ""
        print(f"  {end:8} {count:4}{names}")
    print(f"Algorithm 1 makes {made} of {len(tasks)} tasks with one attempt a turn")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
