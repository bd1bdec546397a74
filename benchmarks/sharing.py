"""The tests saved by testing programs of equal compiled code once, and a check that no verdict changes by it.

    python benchmarks/sharing.py humaneval|mbpp|starter [PATH] [every=1] [seeds=0,…] [weighed=0,…] [samples=FILE,…]

Runs a cell of the refactorer over ten turns for every seed, three times: every text tested (`sandbox.share=false`),
equal programs tested once, and once more in a folder of its own, with what the second run left on disk. Then the
published samples, if any, with and without. Compares all records but their times, and prints how many tests were run,
the CPU seconds of the tested programs, the turns saved by scope, and the milliseconds that a program's hash takes.
`weighed` runs no test: it holds the dialogues of its seeds, and takes a test to be as dear as that of the reference.
Exits 1 if a record differs. The verdicts lie in a temporary folder.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from instant import register

from codechat import compose, run
from codechat.base.domain import Program, Verdict
from codechat.base.records import SessionRecord
from codechat.datasets import DATASETS
from codechat.run.results.samples import check_samples, cost_s, read_samples
from codechat.sandbox import SANDBOXES, Sandbox
from codechat.sandbox.languages import extract
from codechat.sandbox.languages.python.code_key import code_key
from codechat.sandbox.suites.calls import Calls
from codechat.testing import dataset_tasks

NEVER = "0"
"""What the scope of a first turn is called."""


@dataclass
class Tests:
    """The tests that were run, and their CPU seconds."""

    run: int = 0
    cpu_s: float = 0.0


TESTS = Tests()
_check = Calls.check


async def counted(self: Calls, program: Program, sandbox: Sandbox) -> Verdict:
    """A check that is counted."""
    verdict = await _check(self, program, sandbox)
    TESTS.run, TESTS.cpu_s = TESTS.run + 1, TESTS.cpu_s + verdict.cpu_s
    return verdict


@dataclass
class Ran:
    """A cell's sessions, and its tests."""

    sessions: list[SessionRecord]
    tests: Tests


def without_times(value: Any) -> Any:
    """A record without its times, and without what tells which tests were shared."""
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if not key.endswith("_s") and key != "tested_as"}
        return {key: without_times(each) for key, each in kept.items()}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def cell(words: list[str], folder: Path, name: str) -> Ran:
    """Run a cell of the refactorer."""
    global TESTS
    TESTS = Tests()
    outcome = run(compose([*words, "model=refactorer", "tracking=none", f"runs_dir={folder / name}"]))
    sessions = list(outcome.sessions)
    print(f"{name}: {TESTS.run} tests, {TESTS.cpu_s:.1f} s of CPU in them", flush=True)
    return Ran(sessions, TESTS)


@dataclass
class Saved:
    """Follow-up turns by scope: all, those of a text that was tested before, and those of other texts of equal code."""

    turns: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    costs: dict[str, float] = field(default_factory=dict)
    fresh_s: float = 0.0
    saved_s: float = 0.0

    def count(self, session: SessionRecord, targets: dict[str, Any]) -> None:
        """Add a session's turns."""
        seen: set[str | None] = set()
        for turn in session.turns:
            if turn.skipped:
                continue
            program = extract(turn.response or "", targets[session.task_id]).program
            scope = turn.instruction.scope if turn.instruction else NEVER
            self.turns[scope] += 1
            self.texts[scope] += program in seen
            self.codes[scope] += program not in seen and turn.tested_as is not None
            cost = 0.0 if program in seen else self.costs.get(session.task_id, 0.0)
            self.fresh_s, self.saved_s = self.fresh_s + cost, self.saved_s + cost * (turn.tested_as is not None)
            seen.add(program)

    def print(self) -> None:
        """One line a scope."""
        for scope in (each for each in self.turns if each != NEVER):
            turns, texts, codes = self.turns[scope], self.texts[scope], self.codes[scope]
            fresh = turns - texts
            share = f"{codes / fresh:.1%} of these" if fresh else "none left"
            print(f"  {scope:10} {turns} turns, {fresh} of a new text: {codes} not tested again ({share})")


async def reference_costs(tasks: list[Any]) -> dict[str, float]:
    """The CPU seconds of every reference."""
    sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "auto"}), workers=len(os.sched_getaffinity(0)))
    try:
        return {task.task_id: await cost_s(task, sandbox) for task in tasks}
    finally:
        await sandbox.aclose()


def weighed(words: list[str], tasks: list[Any], seeds: list[str]) -> None:
    """Print what a cell of each seed would save."""
    register([])
    costs, targets = asyncio.run(reference_costs(tasks)), {task.task_id: task.target for task in tasks}
    whole = [0.0, 0.0]
    for seed in seeds:
        saved = Saved(costs=costs)
        with tempfile.TemporaryDirectory() as named:
            os.environ["CODECHAT_CACHE_DIR"] = named
            words_of = [
                *words,
                "model=refactorer",
                "sandbox=instant",
                "tracking=none",
                f"runs_dir={named}",
                f"seed={seed}",
            ]
            for session in run(compose(words_of)).sessions:
                saved.count(session, targets)
        spent = [saved.fresh_s, saved.fresh_s - saved.saved_s]
        whole = [one + other for one, other in zip(whole, spent, strict=True)]
        print(
            f"weighed, seed {seed}: {spent[0]:.1f} s → {spent[1]:.1f} s ({1 - spent[1] / spent[0]:.1%} less)",
            flush=True,
        )
    print(f"weighed, all: {whole[0]:.1f} s → {whole[1]:.1f} s ({1 - whole[1] / whole[0]:.1%} less)", flush=True)


async def samples_of(kind: str, path: str | None, files: list[str], share: bool) -> tuple[list[Any], Tests]:
    """The verdicts on published samples, all files together."""
    global TESTS
    TESTS = Tests()
    dataset = DATASETS.build(DATASETS.validate({"kind": kind, **({"path": path} if path else {})}))
    samples = [sample for file in files for sample in read_samples(Path(file), dataset)]
    sandbox = SANDBOXES.build(
        SANDBOXES.validate({"kind": "auto", "share": share}), workers=len(os.sched_getaffinity(0))
    )
    verdicts: dict[int, Verdict] = {}
    try:
        await check_samples(samples, sandbox, {}, verdicts.__setitem__)
    finally:
        await sandbox.aclose()
    print(f"{len(samples)} samples, share={share}: {TESTS.run} tests, {TESTS.cpu_s:.1f} s of CPU", flush=True)
    found = [verdicts[number] for number in range(len(samples))]
    told = [[each.outcome, each.passed_base, each.failure, each.inside] for each in found]
    return [[sample.task.task_id, *each] for sample, each in zip(samples, told, strict=True)], TESTS


def hashing(tasks: list[Any]) -> None:
    """Print what a program's hash takes."""
    times, known = [], 0
    for task in tasks:
        began = time.process_time()
        known += code_key(f"{task.reference}\n# timed\n") is not None
        times.append(1000 * (time.process_time() - began))
    print(f"{known} of {len(tasks)} references can share a verdict; a hash takes", end=" ")
    print(f"{statistics.mean(times):.2f} ms in the mean, {max(times):.2f} ms at most")


def dialogues(words: list[str], targets: dict[str, Any], saved: Saved) -> tuple[bool, float, float]:
    """Whether a cell's records are the same with and without, and the CPU seconds of its tests without and with."""
    with tempfile.TemporaryDirectory() as named:
        os.environ["CODECHAT_CACHE_DIR"] = named
        apart = cell([*words, "sandbox.share=false"], Path(named), "every text")
        shared = cell(words, Path(named), "equal programs once")
        later = cell(words, Path(named), "with the verdicts of that run")
    written = {json.dumps([without_times(each.model_dump(mode="json")) for each in ran.sessions])
               for ran in (apart, shared, later)}  # fmt: skip
    shares = {json.dumps([[turn.tested_as for turn in each.turns] for each in ran.sessions]) for ran in (shared, later)}
    same = len(written) == len(shares) == 1
    print("records are equal" if same else "records differ", flush=True)
    for session in shared.sessions:
        saved.count(session, targets)
    return same, apart.tests.cpu_s, shared.tests.cpu_s


def main(kind: str, path: str | None, every: int, given: dict[str, list[str]]) -> int:
    tasks = [task for task in dataset_tasks(kind, path)[::every] if task.reference]
    targets = {task.task_id: task.target for task in tasks}
    words = [f"dataset={kind}", *([f"dataset.path={path}"] if path else [])]
    if every > 1:
        words.append(f"dataset.tasks={json.dumps([task.task_id for task in tasks])}")
    Calls.check = counted  # type: ignore[method-assign]
    hashing(tasks)
    saved, same, before, after = Saved(), True, 0.0, 0.0
    for seed in given["seeds"]:
        equal, one, other = dialogues([*words, f"seed={seed}"], targets, saved)
        print(f"seed {seed}: test CPU {one:.1f} s → {other:.1f} s ({1 - other / one:.1%} less)", flush=True)
        same, before, after = same and equal, before + one, after + other
    if given["seeds"]:
        saved.print()
        print(f"test CPU {before:.1f} s → {after:.1f} s ({1 - after / before:.1%} less)", flush=True)
    if given["weighed"]:
        weighed(words, tasks, given["weighed"])
    if files := given["samples"]:
        one_by_one, _ = asyncio.run(samples_of(kind, path, files, share=False))
        together, _ = asyncio.run(samples_of(kind, path, files, share=True))
        differing = [pair for pair in zip(one_by_one, together, strict=True) if pair[0] != pair[1]]
        print(f"{len(differing)} of {len(together)} verdicts on published samples differ", *differing, sep="\n  ")
        same = same and not differing
    return 0 if same else 1


if __name__ == "__main__":
    named = dict(word.split("=", 1) for word in sys.argv[2:] if "=" in word)
    places = [word for word in sys.argv[2:] if "=" not in word]
    chosen = {
        name: [each for each in named.get(name, "").split(",") if each] for name in ("seeds", "weighed", "samples")
    }
    sys.exit(main(sys.argv[1], places[0] if places else None, int(named.get("every", "1")), chosen))
