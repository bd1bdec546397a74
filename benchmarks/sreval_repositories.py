"""SR-Eval's references in their repositories: each turn's tests on a copy, isolated, held to published gold checks.

    python benchmarks/sreval_repositories.py DATA REPOS [PYTHON]

DATA holds `sreval_python_repository*.jsonl.gz`, `sreval_java_repository.jsonl.gz` and the gold check
`sreval_gold_python_repo.jsonl.gz`. REPOS holds repositories by their project_path (`Utilities/boltons`), Java ones by
their names. PYTHON is the interpreter whose packages the Python ones need. Prints each repository's turns that pass,
with the median and the longest time of a turn, and how many Java methods stand at their lines; exits 1 if a turn
differs from its gold check.
"""

import asyncio
import gzip
import json
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from codechat.base.domain import Program
from codechat.datasets import DATASETS
from codechat.datasets.tasks import Dataset, Task
from codechat.sandbox import SANDBOXES
from codechat.studies.sreval.suite_inserted import Inserted

Key = tuple[str, int]  # task and turn


def rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as stream:
        return [json.loads(line) for line in stream]


def build(kind: str, tasks: list[str], **options: Any) -> Dataset:
    return DATASETS.build(DATASETS.validate({"kind": kind, "tasks": tasks, **options}))


def python_tasks(data: Path, repos: Path, python: str | None) -> list[Task]:
    path, places = (data / f"sreval_python_repository{end}.jsonl.gz" for end in ("", "_places"))
    here = [row for row in rows(places) if (repos / row["project_path"]).is_dir()]
    names = [row["hash_id"] for row in here]
    known = {row["project_path"].rpartition("/")[2] for row in here}
    environments = dict.fromkeys(known, python) if python else {}
    files = {"path": str(path), "places": str(places), "repos": str(repos)}
    dataset = build("sreval_python_repository", names, environments=environments, **files)
    return [task for task in dataset.tasks if task.task_id in names]


async def check(tasks: list[Task]) -> dict[Key, tuple[str, bool, float]]:
    """The repository of each turn, whether its reference passes, and the seconds by the clock, one at a time."""
    sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "auto"}), workers=1)
    found: dict[Key, tuple[str, bool, float]] = {}
    for task in tasks:
        for number, (_, reference, suite) in enumerate(task.solutions(), 1):
            assert isinstance(suite, Inserted) and reference is not None
            began = time.monotonic()
            verdict = await suite.check(Program(reference, task.target), sandbox)
            found[task.task_id, number] = suite.project, verdict.passed, time.monotonic() - began
    await sandbox.aclose()
    return found


def java(data: Path, repos: Path) -> None:
    path = data / "sreval_java_repository.jsonl.gz"
    here = [row for row in rows(path) if (repos / row["metadata"]["repo"]).is_dir()]
    if here:
        build("sreval_java_repository", [row["hash_id"] for row in here], path=str(path), repos=str(repos))
        print(f"Java: {len(here)} of {len(here)} methods and tests stand at their lines")


def main(data: Path, repos: Path, python: str | None) -> int:
    found = asyncio.run(check(python_tasks(data, repos, python)))
    gold = {(row["task_id"], row["turn"]): row["passed"] for row in rows(data / "sreval_gold_python_repo.jsonl.gz")}
    by_project: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for project, passed, seconds in found.values():
        by_project[project].append((passed, seconds))
    for project, turns in sorted(by_project.items()):
        times = [seconds for _, seconds in turns]
        took = f"{statistics.median(times):.2f} s a turn in the median, {max(times):.2f} s at most"
        print(f"{project}: {sum(passed for passed, _ in turns)} of {len(turns)} turns pass, {took}")
    different = [key for key, (_, passed, _) in found.items() if gold.get(key, passed) != passed]
    print(f"{len(different)} of {len(gold.keys() & found.keys())} turns differ from the gold check: {different[:5]}")
    java(data, repos)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None))
