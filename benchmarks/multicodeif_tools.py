"""Compare compilers and the classifier with the verdicts that MultiCodeIF's harness gave on gpt-4o's replies.

    python benchmarks/multicodeif_tools.py DATA [FOLDER ...]

DATA is a folder with `multicodeif_tasks.jsonl.gz` and the outputs beside it, FOLDER further `sandbox.toolchains`. It
prints for each language how many replies were accepted in the published rounds, and how many each harness accepts,
refuses and leaves undecided: versions of languages first, then their types; and how often the classifier agrees with
the tag of a reply's first fence.
"""

import asyncio
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from multicodeif import rows

from codechat.base.domain import Program, Target
from codechat.sandbox import SANDBOXES, Sandbox
from codechat.sandbox.languages import extract, is_registered, language_of
from codechat.sandbox.languages.classifier import guess, labels_of
from codechat.studies.multicodeif.constraints import Constraint, Finding, Harness, constraint_type
from codechat.studies.multicodeif.constraints.published import extracted
from codechat.studies.multicodeif.versions import finding_of, suite_of

ROUNDS = ("single_gpt-4o", "selfrepair_gpt-4o")
MODELS = ("single_gpt-4o", "single_Qwen3-1.7B", "single_deepseek-v3-0324")
FENCE = re.compile(r"```([^\n`]*)\n(.*?)```", re.DOTALL)
HARNESSES: tuple[Harness, ...] = ("official", "guarded")


async def main(folder: Path, toolchains: list[str]) -> None:
    """Print the tables."""
    sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "auto", "toolchains": toolchains or None}))
    try:
        await compare(folder, "language_version", sandbox)
    finally:
        await sandbox.aclose()
    await compare(folder, "language_type", sandbox)
    agreement(folder)


async def compare(folder: Path, name: str, sandbox: Sandbox) -> None:
    """The table of a type, and where the official harness differs from what was published."""
    kind = constraint_type(name)
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    known: dict[tuple[str, str, Harness], Finding] = {}
    for row, task in published(folder, kind.published):
        constraint = Constraint(name, kind.read(task["answer"]))
        count = counts[row["round"], constraint.answer.language]
        count["published " + ("accepted" if row["official_verdict"] else "refused")] += 1
        for harness in HARNESSES:
            key = (task["answer"], row["response_raw"], harness)
            if key not in known:
                known[key] = await find(constraint, row["response_raw"], harness, sandbox)
            found = known[key]
            count[f"{harness} " + {True: "accepts", False: "refuses", None: "undecided"}[found.met]] += 1
            if harness == "official" and found.met is not row["official_verdict"]:
                print(f"differs: {row['task_id']} {row['round']} {task['answer']}: {found.reason}")
    print(name)
    for (number, language), count in sorted(counts.items()):
        print(f"  {number} {language:13}", ", ".join(f"{what} {count[what]}" for what in sorted(count)))


def published(folder: Path, kind: tuple[str, str]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The replies of gpt-4o with a published verdict on a constraint of a type, each with its task."""
    tasks = {row["task_id"]: row for row in rows(folder / "multicodeif_tasks.jsonl.gz")}
    for name in ROUNDS:
        for row in rows(folder / f"multicodeif_{name}.jsonl.gz"):
            task = tasks[row["task_id"]]
            if (task["category"], task["constraint_type"]) == kind and row["official_verdict"] is not None:
                yield row, task


async def find(constraint: Constraint, reply: str, harness: Harness, sandbox: Sandbox) -> Finding:
    """What a harness says of a reply."""
    target = Target(constraint.answer.language)
    code = extracted(reply) if harness == "official" else extract(reply, target).code
    if constraint.type == "language_type":
        return constraint.check(code, harness)
    return finding_of(await suite_of(constraint, harness).check(Program(code or "", target), sandbox))


def agreement(folder: Path) -> None:
    """How often the classifier agrees with the tag of the first fence."""
    agreed: Counter[bool] = Counter()
    differing: Counter[tuple[str, str]] = Counter()
    for name in MODELS:
        for row in rows(folder / f"multicodeif_{name}.jsonl.gz"):
            fence = FENCE.search(row["response_raw"])
            if fence is None or not is_registered(fence[1]):
                continue
            label = labels_of(language_of(fence[1]))[0]
            guessed = guess(fence[2]).label
            agreed[guessed == label] += 1
            if guessed != label:
                differing[label, guessed] += 1
    print(f"the tag and the classifier: {agreed[True]} of {agreed.total()} agree; differing, tag first:")
    print("  " + ", ".join(f"{tag} {guessed or '-'} {count}" for (tag, guessed), count in differing.most_common(12)))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
