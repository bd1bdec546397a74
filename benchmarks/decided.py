"""How many verdicts of assertions are decided out of the program's reach, and what each costs.

    python benchmarks/decided.py DATA [SAMPLES]

DATA holds `MbppPlus.jsonl.gz`, `mbpp_samples_*.jsonl` and `sreval_python_function.jsonl.gz`; SAMPLES bounds the cases
of a set. MBPP: the assertions of its tasks on the reference and on published solutions. SR-Eval: the reference of every
turn with its tests, as far as both need only the standard library; what the others need is not installed here. Prints
the shares, the constructs that forced a shared process, and the CPU time of a check; every check decided outside is
repeated inside, and a difference of the outcome is printed and ends in exit status 1.
"""

import ast
import asyncio
import gzip
import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from codechat.base.domain import Program, Target, Verdict
from codechat.sandbox import SANDBOXES, Sandbox
from codechat.sandbox.languages.python.assembly import assemble
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.assertions.constructs import Constructs


@dataclass(frozen=True)
class Shared(Assertions):
    """The same assertions in the program's own process."""

    @cached_property
    def constructs(self) -> tuple[Constructs, ...]:
        return tuple(Constructs(inside="repeated") for _ in self.snippets)


Case = tuple[str, Program, Assertions]


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, plain or gzip."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    yield from map(json.loads, text.decode().splitlines())


def mbpp(data: Path, most: int) -> Iterator[Case]:
    """MBPP's assertions on references and published solutions."""
    tasks = {row["task_id"]: row for row in rows(data / "MbppPlus.jsonl.gz")}
    found: list[tuple[str, str, str]] = [
        ("reference", name, assemble(task["prompt"], task["canonical_solution"], task["entry_point"]))
        for name, task in tasks.items()
    ]
    for path in sorted(data.glob("mbpp_samples_*.jsonl")):
        found += [(path.stem, row["task_id"], row["solution"]) for row in rows(path)]
    for kind, name, source in found[:: max(1, len(found) // most)]:
        entry = tasks[name]["entry_point"]
        snippets = tuple(ast.unparse(node) for node in ast.parse(tasks[name]["assertion"]).body)
        yield f"{kind} {name}", Program(source, Target(entry_point=entry)), Assertions(snippets)


def sreval(data: Path, most: int) -> Iterator[Case]:
    """SR-Eval's references with their tests, where both need only the standard library."""
    for row in list(rows(data / "sreval_python_function.jsonl.gz"))[:most]:
        for turn in row["turn_datas"]:
            if all(name in sys.stdlib_module_names for name in imported(turn["solution"] + "\n" + turn["test"])):
                name = f"{row['hash_id']} turn {turn['turn_num']}"
                target = Target(entry_point="task_func")
                yield name, Program(turn["solution"], target), Assertions((turn["test"],))


def imported(source: str) -> set[str]:
    """The roots of all imported modules."""
    found = set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


async def measure(title: str, cases: list[Case], sandbox: Sandbox) -> int:
    """Check every case outside, if it can be, and inside; print what came out; the number of differences."""
    found: list[Verdict] = []
    again: list[Verdict] = []
    different = 0
    for name, program, suite in cases:
        verdict = await suite.check(program, sandbox)
        found.append(verdict)
        if verdict.decided == "outside":
            inside = await Shared(suite.snippets).check(program, sandbox)
            again.append(inside)
            if inside.outcome != verdict.outcome:
                different += 1
                print(f"  {name}: {verdict.outcome} outside, {inside.outcome} inside")
                print(f"    {verdict.failure}\n    {inside.failure}")
    outside = [verdict for verdict in found if verdict.decided == "outside"]
    print(f"{title}: {len(outside)} of {len(found)} checks decided outside ({len(outside) / len(found):.1%})")
    for reason, count in Counter(verdict.inside for verdict in found if verdict.inside).most_common(12):
        print(f"  {count:5d}  {reason}")
    print(f"  CPU at the median: {cpu(outside):.1f} ms outside, {cpu(again):.1f} ms for the same checks inside")
    print(f"  outcomes that differ: {different}", flush=True)
    return different


def cpu(verdicts: list[Verdict]) -> float:
    """Milliseconds at the median."""
    return statistics.median(verdict.cpu_s for verdict in verdicts) * 1000 if verdicts else 0.0


async def main(data: Path, most: int) -> int:
    sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "auto"}), workers=2)
    try:
        different = await measure("MBPP", list(mbpp(data, most)), sandbox)
        different += await measure("SR-Eval, Python, standard library", list(sreval(data, most)), sandbox)
    finally:
        await sandbox.aclose()
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10**9)))
