"""Do the kinds of sandboxes give the same verdicts, and what does each cost?

    python benchmarks/kinds.py DATA [references|samples|proposals ...] [kinds=bubblewrap,landlock] [limit=N]

`references` are HumanEval+'s and MBPP+'s own solutions, `samples` the published ones of models, and `proposals` 1,000
of MINT's; without names all. `limit` takes so many of each, spread evenly. Every kind checks every program; those whose
verdicts differ are checked once more by each, so that chance shows. A kind that does not start here is left out. CPU
time is that of all processes. Exits 1 if outcomes differ both times.
"""

import asyncio
import gzip
import json
import os
import random
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tree import tree

from codechat.base.domain import Verdict
from codechat.base.errors import UserError
from codechat.datasets import DATASETS
from codechat.datasets.tasks import Task
from codechat.run.cell.libraries import preload
from codechat.run.results.samples import Sample, check_samples, cost_s
from codechat.sandbox import SANDBOXES

WORKERS = len(os.sched_getaffinity(0))
RELEASES = {"humaneval": "HumanEvalPlus.jsonl.gz", "mbpp": "MbppPlus.jsonl.gz"}
PROPOSALS, SEED, SHOWN = 1000, 20261127, 40


@dataclass
class Result:
    """What one kind found, by the names of the programs."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    wall_s: float = 0.0
    cpu_s: float = 0.0


def tasks_of(kind: str, path: Path) -> dict[str, Task]:
    return {task.task_id: task for task in DATASETS.build(DATASETS.validate({"kind": kind, "path": str(path)})).tasks}


def corpus_of(name: str, data: Path) -> dict[str, Sample]:
    """The programs of a corpus, by name."""
    if name == "proposals":
        tasks = tasks_of("mint", data / "mint_tasks.jsonl.gz")
        lines = gzip.decompress((data / "mint_proposals.jsonl.gz").read_bytes()).splitlines()
        rows = random.Random(SEED).sample([*enumerate(map(json.loads, lines))], PROPOSALS)
        named = [(f"{row['dataset']}/{row['task']}", number, row["code"]) for number, row in rows]
        return {f"{task} row {number}": Sample(tasks[task], code, {}) for task, number, code in named}
    found: dict[str, Sample] = {}
    for kind, release in RELEASES.items():
        tasks = tasks_of(kind, data / release)
        if name == "references":
            found |= {task_id: Sample(task, task.reference or "", {}) for task_id, task in tasks.items()}
            continue
        for path in sorted(data.glob(f"{kind}_samples_*.jsonl")):
            for row in map(json.loads, path.read_text().splitlines()):
                task = tasks[row["task_id"]]
                found[f"{task.task_id} {path.stem.split('_')[-1]}"] = Sample(task, row["solution"], {})
    return found


def stats(pids: Iterable[int]) -> dict[int, list[bytes]]:
    """What /proc says of living processes: the state, the parent and so on."""
    found = {}
    for pid in pids:
        with suppress(OSError):
            found[pid] = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return {pid: words for pid, words in found.items() if words[0] != b"Z"}


def cpu_s() -> float:
    """CPU seconds of this process and all below it, and of those that they waited for."""
    ticks = sum(int(word) for words in stats(tree(os.getpid())).values() for word in words[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def room(kind: str, result: Result) -> AsyncIterator[Any]:
    began, used = time.perf_counter(), cpu_s()
    sandbox: Any = SANDBOXES.build(SANDBOXES.validate({"kind": kind, "allow_weak": True}), workers=WORKERS)
    try:
        yield sandbox
    finally:
        result.cpu_s, result.wall_s = cpu_s() - used, time.perf_counter() - began
        await sandbox.aclose()


async def expect(kind: str, programs: dict[str, Sample]) -> None:
    """Have the expected values of this machine, so that no kind pays for them."""
    async with room(kind, Result()) as sandbox:
        tasks = {sample.task.task_id: sample.task for sample in programs.values()}
        await asyncio.gather(*(cost_s(task, sandbox) for task in tasks.values()))


async def check(kind: str, programs: dict[str, Sample], result: Result) -> None:
    """As `codechat verify` does."""
    names, samples = [*programs], [*programs.values()]
    async with room(kind, result) as sandbox:
        preload(sandbox, [*{sample.task.task_id: sample.task for sample in samples}.values()])
        await check_samples(samples, sandbox, {}, lambda n, verdict: result.verdicts.__setitem__(names[n], verdict))


def reason(verdict: Verdict) -> str:
    """Why it did not pass, without ports and other large numbers, which differ from run to run."""
    failure = verdict.failure
    said = [failure.reason, (failure.exception or "").partition("\n")[0]] if failure else []
    return re.sub(r"\d{5,}", "N", " | ".join(filter(None, [*said, verdict.inside])).replace("\n", " "))[:160]


def parts(verdict: Verdict) -> tuple[object, ...]:
    return verdict.outcome, verdict.passed_base, reason(verdict), verdict.decided


def differing(names: list[str], found: dict[str, Result], part: Callable[[Verdict], object]) -> list[str]:
    return [name for name in names if len({part(result.verdicts[name]) for result in found.values()}) > 1]


def compare(corpus: str, programs: dict[str, Sample], kinds: list[str]) -> bool:
    """Print the table and the differences; whether outcomes are alike."""

    def by_kind(names: Iterable[str]) -> dict[str, Result]:
        found = {kind: Result() for kind in kinds}
        for kind, result in found.items():
            asyncio.run(check(kind, {name: programs[name] for name in names}, result))
        return found

    first = by_kind(programs)
    shared = [name for name in programs if all(name in result.verdicts for result in first.values())]
    outcomes = differing(shared, first, lambda verdict: verdict.outcome)
    others = [name for name in differing(shared, first, parts) if name not in outcomes]
    print(f"{corpus}: {len(programs)} programs, {len(outcomes)} outcomes and {len(others)} other parts differ")
    for kind, result in first.items():
        words = f"{sum(verdict.passed for verdict in result.verdicts.values())} pass"
        took = f"CPU {result.cpu_s:.1f} s, wall {result.wall_s:.1f} s"
        print(f"  {kind:10} {len(result.verdicts):5} checked, {words}, {took}")
    shown = [*outcomes, *others][:SHOWN]
    again = by_kind(shown) if shown else {}
    for name in shown:
        print(f"  {name}:")
        for kind in kinds:
            one, two = first[kind].verdicts[name], again[kind].verdicts[name]
            words = "the same" if parts(one) == parts(two) else f"{two.outcome} ({reason(two)})"
            base = "base passed" if one.passed_base else "base failed"
            print(f"    {kind:10} {one.outcome} ({reason(one)}), {base}, {one.cpu_s:.2f} s; again {words}")
    stay = differing([name for name in shown if name in outcomes], again, lambda verdict: verdict.outcome)
    print(f"  {len(stay)} of {len(outcomes)} outcomes differ again", flush=True)
    return not stay


def main() -> int:
    data, *words = sys.argv[1:]
    options = dict(word.split("=", 1) for word in words if "=" in word)
    kinds, alike, limit = [], True, int(options.get("limit", 10**9))
    for kind in options.get("kinds", "bubblewrap,landlock,process").split(","):
        try:
            asyncio.run(expect(kind, {}))
            kinds.append(kind)
        except UserError as error:
            print(f"{kind} is left out: {error}")
    for corpus in [word for word in words if "=" not in word] or ["references", "samples", "proposals"]:
        found = corpus_of(corpus, Path(data))
        programs = dict([*found.items()][:: max(1, len(found) // limit)][:limit])
        asyncio.run(expect(kinds[0], programs))
        alike &= compare(corpus, programs, kinds)
    return 0 if alike else 1


if __name__ == "__main__":
    sys.exit(main())
