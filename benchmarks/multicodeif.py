"""Compare the rules of constraints with the verdicts that MultiCodeIF's validators gave on published replies.

    python benchmarks/multicodeif.py [--processes N] DATA

DATA is a folder with `multicodeif_tasks.jsonl.gz` and the outputs beside it. For each type it prints how many verdicts
of `official` agree with the published ones, of how many, and how many `guarded` changes; why it changes them; what
disagreed; and the CPU time that a check takes, by harness. N processes share the work (1).
"""

import argparse
import gzip
import json
import multiprocessing
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from multicodeif_changes import Change, why

from codechat.base.domain import Target
from codechat.sandbox.languages import extract
from codechat.studies.multicodeif.constraints import Constraint, constraint_types
from codechat.studies.multicodeif.constraints.published import extracted

Verdict = tuple[str, str, Constraint, str, bool]


class Compared(NamedTuple):
    """One verdict, checked by both harnesses: the seconds of CPU that each took, extraction left out."""

    kind: str
    published: bool
    official: bool | None
    guarded: bool | None
    seconds: tuple[float, float]
    change: Change | None
    differs: str


def main(folder: Path, processes: int) -> int:
    """Print the tables; the status is 0 if 99 % of every type and 99.9 % of all agree."""
    started = time.perf_counter()
    found = compared(list(verdicts(folder)), processes)
    wall = time.perf_counter() - started
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in found:
        counts[one.kind]["all"] += 1
        counts[one.kind]["agree"] += one.official is one.published
        counts[one.kind]["stricter"] += one.published and one.guarded is False
        counts[one.kind]["milder"] += not one.published and one.guarded is True
        counts[one.kind]["undecided"] += one.guarded is None
    print(f"{'type':26} {'agree':>6} {'all':>6} {'%':>7}   guarded: stricter, milder, undecided")
    total: Counter[str] = Counter()
    for kind in sorted(counts):
        print(line(kind, counts[kind]))
        total += counts[kind]
    print(line("all", total))
    for change, number in sorted(Counter(one.change for one in found if one.change).items()):
        print(f"{change[0]:26} {change[1]:9} {number:5}  {change[2]}")
    print(*(one.differs for one in found if one.differs), sep="\n")
    for place, harness in enumerate(("official", "guarded")):
        spent = sorted(one.seconds[place] for one in found)
        median, high = 1000 * spent[len(spent) // 2], 1000 * spent[int(0.95 * len(spent))]
        print(f"{harness}: {median:.2f} ms of CPU a check at the median, {high:.2f} at p95, {sum(spent):.1f} s in all")
    print(f"{wall:.1f} s with {processes} processes")
    right = all(count["agree"] >= 0.99 * count["all"] for count in counts.values())
    return 0 if right and total["agree"] >= 0.999 * total["all"] else 1


def compared(all_of_them: list[Verdict], processes: int) -> list[Compared]:
    """Every verdict compared, in order, by so many processes."""
    if processes == 1:
        return [compare(each) for each in all_of_them]
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return pool.map(compare, all_of_them, chunksize=100)


def compare(verdict: Verdict) -> Compared:
    """One verdict, checked by both harnesses."""
    place, kind, constraint, reply, published = verdict
    answer, begun = constraint.answer, time.process_time()
    official = constraint.check(extracted(reply), "official")
    between = time.process_time()
    code = extract(reply, Target(answer.language)).code
    extraction = time.process_time() - between
    guarded = constraint.check(code)
    seconds = (between - begun, time.process_time() - between - extraction)
    change = None
    if guarded.met is not published:
        direction = "undecided" if guarded.met is None else "stricter" if published else "milder"
        change = why(kind, direction, " ".join((answer.language, *answer.values)), official.reason, guarded.reason)
    wrong = f"{place} {kind} {answer.raw.strip()}: published {published}, {official.reason}"
    differs = wrong if official.met is not published else ""
    return Compared(kind, published, official.met, guarded.met, seconds, change, differs)


def line(kind: str, count: Counter[str]) -> str:
    """One line of the table."""
    share = 100 * count["agree"] / max(1, count["all"])
    return (
        f"{kind:26} {count['agree']:6} {count['all']:6} {share:7.2f}   "
        f"{count['stricter']:6} {count['milder']:6} {count['undecided']:6}"
    )


def verdicts(folder: Path) -> Iterator[Verdict]:
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    raise SystemExit(main(options.data, options.processes))
