"""What the filter of redundant prompts drops among MultiCodeIF's published tasks, and what a pair costs.

    python benchmarks/redundancy.py DATA

DATA is the folder with `multicodeif_tasks.jsonl.gz`. Prints what would be dropped within each file and level, across
the files in their order, and the CPU time of that and of all pairs; and, if `rouge_score` is installed, the largest
difference from its scores and its time, over 1,000 random pairs of the prompts.
"""

import argparse
import random
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from codechat.base.template import counted
from codechat.datasets.reading.lines import read_values
from codechat.studies.multicodeif.construct.redundancy import Kept, rouge_l


def dropped(prompts: Sequence[tuple[str, str]]) -> list[str]:
    """The ids of the prompts that are redundant beside earlier ones."""
    kept, found = Kept(), list[str]()
    for name, prompt in prompts:
        if kept.nearest(prompt):
            found.append(name)
        else:
            kept.add(name, prompt)
    return found


def compare(prompts: Sequence[str]) -> str:
    """The largest difference from the reference library, and both times."""
    try:
        from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-not-found]
    except ModuleNotFoundError as error:
        return f"not compared with rouge_score: {error.name} is not installed"
    dice, scorer = random.Random(0), RougeScorer(["rougeL"])
    pairs = [(dice.choice(prompts), dice.choice(prompts)) for _ in range(1000)]
    start = time.process_time()
    theirs = [scorer.score(*pair)["rougeL"].fmeasure for pair in pairs]
    between = time.process_time()
    ours = [rouge_l(*pair) for pair in pairs]
    spent = time.process_time() - between
    most = max(abs(one - other) for one, other in zip(ours, theirs, strict=True))
    return f"1,000 pairs: at most {most:.1e} from rouge_score, {spent:.3f} ms a pair beside {between - start:.3f}"


def main(words: Sequence[str] | None = None) -> int:
    """Print the figures; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder of the published data")
    rows = [row for _, row in read_values(parser.parse_args(words).data / "multicodeif_tasks.jsonl.gz", dict, "")]
    places = defaultdict[tuple[str, str], list[tuple[str, str]]](list)
    for row in rows:
        places[row["file"], row["level"]].append((row["task_id"], row["prompt"]))
    within = sum(len(dropped(prompts)) for prompts in places.values())
    print(f"{within} dropped within {counted(len(places), 'file and level', 'files and levels')}")
    single = [(row["task_id"], row["prompt"]) for row in rows if row["level"] == "single"]
    start = time.process_time()
    across = dropped(single)
    print(f"{len(across)} of {len(single):,} dropped across files, {time.process_time() - start:.1f} s")
    every, start = Kept(), time.process_time()
    for name, prompt in single:
        every.neighbours(prompt, len(single))
        every.add(name, prompt)
    spent, pairs = time.process_time() - start, len(single) * (len(single) - 1) // 2
    print(f"all {pairs:,} pairs scored: {spent:.1f} s, {spent / pairs * 1e3:.4f} ms a pair")
    print(compare([prompt for _, prompt in single]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
