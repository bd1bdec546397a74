"""Compare the rules of constraints with the verdicts that MultiCodeIF's validators gave on published replies.

    python benchmarks/multicodeif.py DATA

DATA is a folder with `multicodeif_tasks.jsonl.gz` and the outputs beside it. For each type it prints how many verdicts
of `official` agree with the published ones, of how many, and how many `guarded` changes; then what disagreed.
"""

import gzip
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codechat.constraints import Constraint, constraint_types
from codechat.constraints.published import extracted
from codechat.domain import Target
from codechat.languages import extract


def main(folder: Path) -> int:
    """Print the table; the status is 0 if 99 % of every type and 99.9 % of all agree."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    differing: list[str] = []
    started = time.process_time()
    for place, kind, constraint, reply, published in verdicts(folder):
        official = constraint.check(extracted(reply), "official")
        code = extract(reply, Target(constraint.answer.language)).code
        guarded = constraint.check(code)
        counts[kind]["all"] += 1
        counts[kind]["agree"] += official.met is published
        counts[kind]["stricter"] += published and guarded.met is False
        counts[kind]["milder"] += not published and guarded.met is True
        counts[kind]["undecided"] += guarded.met is None
        if official.met is not published:
            differing.append(f"{place} {kind} {constraint.answer.raw}: published {published}, {official.reason}")
    seconds = time.process_time() - started
    print(f"{'type':26} {'agree':>6} {'all':>6} {'%':>7}   guarded: stricter, milder, undecided")
    total: Counter[str] = Counter()
    for kind in sorted(counts):
        print(line(kind, counts[kind]))
        total += counts[kind]
    print(line("all", total))
    print(*differing, sep="\n")
    print(f"{seconds:.1f} s of CPU")
    right = all(count["agree"] >= 0.99 * count["all"] for count in counts.values())
    return 0 if right and total["agree"] >= 0.999 * total["all"] else 1


def line(kind: str, count: Counter[str]) -> str:
    """One line of the table."""
    share = 100 * count["agree"] / max(1, count["all"])
    return (
        f"{kind:26} {count['agree']:6} {count['all']:6} {share:7.2f}   "
        f"{count['stricter']:6} {count['milder']:6} {count['undecided']:6}"
    )


def verdicts(folder: Path) -> Iterator[tuple[str, str, Constraint, str, bool]]:
    """Every published verdict of a rule: its place, its type, the constraint, the reply and the verdict."""
    tasks = {row["task_id"]: row for row in rows(folder / "multicodeif_tasks.jsonl.gz")}
    types = {kind.published: kind for kind in constraint_types()}
    for path in sorted(folder.glob("multicodeif_*.jsonl.gz")):
        for row in rows(path) if path.name != "multicodeif_tasks.jsonl.gz" else ():
            task, place = tasks[row["task_id"]], f"{path.name} {row['task_id']} {row.get('round', '')}"
            if "reference_verdicts" in row:
                for answer, verdict in zip(task["answers_cumulative"], row["reference_verdicts"], strict=True):
                    kind = types["data_structure", structure_type(answer)]
                    yield place, kind.name, Constraint(kind.name, kind.read(answer)), row["response_raw"], verdict
            elif row["reference_verdict"] is not None:
                kind = types[task["category"], task["constraint_type"]]
                constraint = Constraint(kind.name, kind.read(task["answer"]))
                yield place, kind.name, constraint, row["response_raw"], row["reference_verdict"]


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The objects in a file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def structure_type(answer: str) -> str:
    """The published type of an answer in a chain, by its form."""
    if answer.strip(";").count(";") < 2:
        return "type"
    return "operation" if "[" in answer else "size"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
