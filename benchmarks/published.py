"""MINT's published proposals: our verdict on each beside the published one, every difference with its cause.

    python benchmarks/published.py DATA [--first 0] [--last 9296] [--workers 2]

DATA holds `mint_tasks.jsonl.gz` and `mint_proposals.jsonl.gz` (a line: dataset, task, code, and how often it was
published as passed and as failed). Prints each difference with its cause, the time and the memory, and exits 1 if one
has no cause by `cause_of`.
"""

import argparse
import ast
import asyncio
import gzip
import json
import re
import resource
import time
from collections import Counter
from pathlib import Path
from typing import Any

from codechat.base.domain import Verdict
from codechat.datasets import DATASETS
from codechat.run.results.samples import Sample, check_samples
from codechat.sandbox import SANDBOXES

NEAR_S = 3.0
"""Seconds of CPU from which on the publisher's limit of 10 s of wall time may decide otherwise."""
_SUBSCRIPTED = frozenset(("dict", "frozenset", "list", "set", "tuple", "type"))
_MISSING = re.compile(r"No module named")
_ORDERED = re.compile(r"\b(?:list|tuple|join|enumerate|next|iter)\s*\(\s*set\(|\bset\([^()]*\)\s*\.pop\(")


def cause_of(row: dict[str, Any], verdict: Verdict) -> str:
    """Why a verdict differs; empty if no cause is known. A cause is what happened here, or what must have happened to
    the publisher, in the direction of the difference: what merely stands in a program excuses nothing."""
    if row["passed"] and row["failed"]:
        return "published with both verdicts"
    if verdict.cpu_s > NEAR_S:
        return "near the time limit"
    if verdict.passed:
        return "published with a Python before 3.9" if fails_before_39(row["code"]) else ""
    said = f"{verdict.failure.reason} {verdict.failure.exception}" if verdict.failure else ""
    if _MISSING.search(said):
        return "a package that the publisher had is not here"
    wrong_result = verdict.outcome == "fail" and not re.search(r"(?!Assertion)\b[A-Z]\w*Error\b", said)
    return "the order of a set" if wrong_result and _ORDERED.search(row["code"]) else ""


def fails_before_39(code: str) -> bool:
    """Whether a program evaluates `list[int]` and the like as it is loaded, which Pythons before 3.9 refuse."""
    tree = ast.parse(code)
    if any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body):
        return False
    signatures = [
        part
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for part in (node.returns, *(arg.annotation for arg in ast.walk(node.args) if isinstance(arg, ast.arg)))
        if part is not None
    ]
    return any(
        isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in _SUBSCRIPTED
        for part in signatures
        for node in ast.walk(part)
    )


async def verdicts(samples: list[Sample], workers: int) -> dict[int, Verdict]:
    sandbox: Any = SANDBOXES.build(SANDBOXES.validate({"kind": "auto"}), workers=workers)
    found: dict[int, Verdict] = {}
    try:
        await check_samples(samples, sandbox, {}, found.__setitem__)
    finally:
        await sandbox.aclose()
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    config = DATASETS.validate({"kind": "mint", "path": str(given.data / "mint_tasks.jsonl.gz")})
    tasks = {task.task_id: task for task in DATASETS.build(config).tasks}
    with gzip.open(given.data / "mint_proposals.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines][given.first : given.last]
    begun = time.monotonic()
    samples = [Sample(tasks[f"{row['dataset']}/{row['task']}"], row["code"], row) for row in rows]
    found = asyncio.run(verdicts(samples, given.workers))
    wall, kinds, unknown = time.monotonic() - begun, Counter[str](), 0
    for number, row in enumerate(rows):
        ours = found[number]
        if ours.passed != (row["passed"] > row["failed"]):
            cause = cause_of(row, ours)
            kinds[cause or "no cause known"] += 1
            unknown += not cause
            print(json.dumps({
                "row": given.first + number, "task": f"{row['dataset']}/{row['task']}", "passed": row["passed"],
                "cpu_s": round(ours.cpu_s, 1),
                "failed": row["failed"], "ours": ours.outcome, "cause": cause,
                "failure": ours.failure and ours.failure.reason, "exception": ours.failure and ours.failure.exception,
            }), flush=True)  # fmt: skip
    peak = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    inside = sum(verdict.decided == "inside" for verdict in found.values())
    print(f"{len(rows)} proposals in {wall:.0f} s, {peak:.0f} MiB at most in one process and one child together")
    print(f"{len(rows) - sum(kinds.values())} verdicts agree; {dict(kinds)}; {inside} decided inside")
    return 1 if unknown else 0


if __name__ == "__main__":
    raise SystemExit(main())
