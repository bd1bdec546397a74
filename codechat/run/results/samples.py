"""Check samples in EvalPlus's format, or references, by suites, without a model: the command `codechat verify`.

Each result is appended to `OUT.partial` at once, so that an interrupted run can resume; OUT is written at the end.
"""

import asyncio
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codechat.base.domain import Program, Verdict
from codechat.base.errors import UserError, nearest
from codechat.base.files import canonical_json, content_hash, write_atomically
from codechat.base.records import BY_PROGRAM, INSIDE
from codechat.base.template import counted
from codechat.base.texts import read_json, writable
from codechat.datasets import DatasetConfig, load
from codechat.datasets.tasks import Dataset, Task
from codechat.report.metrics.counts import INSIDE_MEANS, moved_words
from codechat.run.cell.references import Defect, References, now_and_then, sandbox_for, select_here
from codechat.run.extensions import View
from codechat.run.running.sessions import unwrap_group
from codechat.sandbox import Sandbox, SandboxConfig
from codechat.sandbox.suites import HasCost
from codechat.sandbox.suites.calls.oracle import EVALPLUS_FAILS
from codechat.sandbox.suites.checker import Checker

REMEDY = 'a line is one JSON object with "task_id" and "solution" (or "completion", which follows the prompt)'


@dataclass(frozen=True)
class Sample:
    """One line of the samples file: the program, and the whole line to carry over."""

    task: Task
    program: str
    row: dict[str, Any]


@dataclass(frozen=True)
class Summary:
    """Numbers over the samples. Pass@1 is the mean over tasks of the share of their samples that pass."""

    samples: int
    tasks: int
    dataset_tasks: int
    outcomes: dict[str, int]
    pass_at_1: float
    pass_at_1_base: float
    differs: dict[str, int]
    inside: int = 0
    moved: int = 0

    def lines(self) -> Iterator[str]:
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        yield f"{counted(self.samples, 'sample')} of {self.tasks} of {counted(self.dataset_tasks, 'task')}: {outcomes}"
        yield f"pass@1 {self.pass_at_1:.3f} (base tests alone {self.pass_at_1_base:.3f})"
        if self.inside:
            words = moved_words(self.moved)
            yield f"{self.inside} of {self.samples} verdicts were decided inside ({INSIDE_MEANS}){words}"
        for task_id, count in self.differs.items():
            yield f"{task_id}: {count} passed that EvalPlus 0.3.1 fails ({EVALPLUS_FAILS[task_id]})"


def read_samples(path: Path, dataset: Dataset) -> list[Sample]:
    """The samples in a file, which may be a sessions.jsonl: every turn with code is a sample.

    Raises `UserError` with the number of the first malformed line.
    """
    tasks = {task.task_id: task for task in dataset.tasks}
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "samples=FILE names a JSONL file") from error
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    samples = [sample for number, line in numbered for sample in _samples(f"{path}:{number}", line, tasks)]
    if not samples:
        raise UserError(f"{path} holds no sample", REMEDY)
    return samples


def _samples(place: str, line: bytes, tasks: dict[str, Task]) -> Iterator[Sample]:
    try:
        row = read_json(line)
    except ValueError as error:
        raise UserError(f"{place}: not JSON: {error}", REMEDY) from error
    turns = row.get("turns") if isinstance(row, dict) else None
    if not isinstance(turns, list):
        yield _sample(place, row, tasks)
        return
    for turn in turns:
        if not isinstance(turn, dict):
            raise UserError(f"{place}: a turn is no JSON object", REMEDY)
        if isinstance(turn.get("code"), str):
            about = {name: turn[name] for name in ("turn", "official") if name in turn}
            sample = {"task_id": row.get("task_id"), "model": row.get("model"), **about, "solution": turn["code"]}
            yield _sample(place, sample, tasks)


def _sample(place: str, row: Any, tasks: dict[str, Task]) -> Sample:
    if not isinstance(row, dict) or not isinstance(row.get("task_id"), str):
        raise UserError(f"{place}: no task_id", REMEDY)
    task = tasks.get(row["task_id"])
    if task is None:
        raise UserError(f"{place}: the dataset has no task '{row['task_id']}'", nearest(row["task_id"], tasks))
    if isinstance(row.get("solution"), str):
        return Sample(task, row["solution"], row)
    if isinstance(row.get("completion"), str):
        return Sample(task, task.prompt + row["completion"], row)
    raise UserError(f"{place}: no solution", REMEDY)


async def check_samples(
    samples: Sequence[Sample], sandbox: Sandbox, known: dict[int, dict[str, Any]], done: Callable[[int, Verdict], None]
) -> None:
    """Check every sample whose number is not in `known`, the longest first; calls `done` with each verdict.

    Raises `InfrastructureError` if the sandbox fails, and `UserError` if a task has no tests or they cannot be run.
    """
    missing = [number for number in range(len(samples)) if number not in known]
    tasks = {samples[number].task.task_id: samples[number].task for number in missing}
    costs = dict(zip(tasks, await asyncio.gather(*(cost_s(task, sandbox) for task in tasks.values())), strict=True))
    checker = Checker(sandbox)

    async def one(number: int) -> None:
        task = samples[number].task
        assert task.suite is not None
        done(number, await checker.check(Program(samples[number].program, task.target), task.suite))

    async with asyncio.TaskGroup() as group:
        for number in sorted(missing, key=lambda number: -costs[samples[number].task.task_id]):
            group.create_task(one(number))


async def cost_s(task: Task, sandbox: Sandbox) -> float:
    """The rough CPU seconds of a right program; 0 if unknown. Raises `UserError` for a task without tests."""
    if task.suite is None:
        raise UserError(f"{task.task_id} has no tests: every program would pass", "add tests to it or leave it out")
    return await task.suite.cost_s(sandbox) if isinstance(task.suite, HasCost) else 0.0


class Partial:
    """The results so far, on disk; `key` is a hash of samples, dataset and limits: other runs' results are dropped."""

    def __init__(self, out: Path, key: str) -> None:
        self._path, self._key = out.with_name(out.name + ".partial"), key
        self.results: dict[int, dict[str, Any]] = {}
        self._read()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self._path.open("a" if self.results else "w", encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot write {self._path}: {error.strerror}", "out=FILE names the results") from error
        if not self.results:
            self._append({"key": key})

    def _read(self) -> None:
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except OSError:
            return
        for number, line in enumerate(lines):
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # cut when the last run ended
            if number == 0 and entry.get("key") != self._key:
                return
            if "number" in entry:
                self.results[entry["number"]] = entry["result"]

    def _append(self, entry: dict[str, Any]) -> None:
        self._stream.write(json.dumps(entry) + "\n")
        self._stream.flush()

    def add(self, number: int, verdict: Verdict) -> None:
        """Write a verdict to disk."""
        self.results[number] = {
            "outcome": verdict.outcome,
            "passed": verdict.passed,
            "passed_base": verdict.passed_base,
            "decided": verdict.decided,
            "failure": writable(asdict(verdict.failure)) if verdict.failure else None,
            "cpu_s": verdict.cpu_s,
            **({INSIDE: verdict.inside} if verdict.inside else {}),
            **({BY_PROGRAM: True} if verdict.by_program else {}),
        }
        self._append({"number": number, "result": self.results[number]})

    def close(self, finished: bool) -> None:
        """Close the file; remove it if the run has finished."""
        self._stream.close()
        if finished:
            self._path.unlink()


def check_file(
    dataset_config: DatasetConfig, sandbox_config: SandboxConfig, samples: Path, out: Path, *, workers: int, view: View
) -> Summary:
    """Check the samples of the chosen tasks in the file `samples`, and write `out`. The same call resumes.

    Raises `UserError` for the user's mistakes and `InfrastructureError` if the sandbox fails.
    """
    dataset = load(dataset_config)
    chosen = {task.task_id for task in select_here(dataset, dataset_config, sandbox_config)[0]}
    rows = [row for row in read_samples(samples, dataset) if row.task.task_id in chosen]
    if not rows:
        raise UserError(f"{samples} has no sample of the chosen tasks", "choose others: dataset.tasks, dataset.limit")
    partial = Partial(out, _key(samples, dataset, rows, sandbox_config))
    tasks = [*{row.task.task_id: row.task for row in rows}.values()]
    finished = False

    def done(number: int, verdict: Verdict) -> None:
        partial.add(number, verdict)
        view.progress(len(partial.results), len(rows))

    async def check() -> None:
        async with sandbox_for(tasks, sandbox_config, workers, view.notice) as sandbox:
            for notice in filter(None, (dataset.departure, dataset.remark)):
                view.notice(notice)
            view.progress(len(partial.results), len(rows))
            slowly = now_and_then(view.notice)
            await References(dataset, Checker(sandbox), sandbox_config, view.notice, slowly).refuse(tasks)
            await check_samples(rows, sandbox, dict(partial.results), done)

    try:
        asyncio.run(unwrap_group(check()))
        lines = [json.dumps({**row.row, **partial.results[number]}) for number, row in enumerate(rows)]
        write_atomically(out, "".join(line + "\n" for line in lines))
        finished = True
    finally:
        partial.close(finished)
    return summarise(rows, [partial.results[number] for number in range(len(rows))], len(dataset.tasks))


def _key(samples: Path, dataset: Dataset, rows: Sequence[Sample], config: SandboxConfig) -> str:
    """A hash of the samples, the dataset, content outside of it, and the limits."""
    parts = [hashlib.sha256(samples.read_bytes()).hexdigest(), dataset.content_hash, canonical_json(config.identity())]
    outside = {name: value for row in rows if row.task.suite for name, value in row.task.suite.outside.items()}
    numbered = [row.task.task_id for row in rows]  # results are kept by the sample's number among the chosen
    return content_hash("\x1f".join([*parts, canonical_json([outside, numbered])]))


def check_references(
    dataset_config: DatasetConfig, config: SandboxConfig, *, workers: int, view: View
) -> tuple[list[Defect], bool, str]:
    """Check all references of the chosen tasks.

    Returns the defects, whether the tasks are the user's own, and a summary. Raises `UserError` for the user's mistakes
    and `InfrastructureError` if the sandbox fails.
    """
    dataset = load(dataset_config)
    (tasks, left_out), defects = select_here(dataset, dataset_config, config), list[Defect]()
    for line in (*dataset.details, *filter(None, [left_out])):
        view.notice(line)

    async def check() -> None:
        async with sandbox_for(tasks, config, workers, view.notice, trusted=True) as sandbox:
            references = References(dataset, Checker(sandbox), config, view.notice, view.progress, anew=True)
            await references.make_ready(tasks)
            defects.extend(await references.defects(tasks))

    asyncio.run(unwrap_group(check()))
    run = sum(any(reference is not None for _, reference, _ in task.solutions()) for task in tasks)
    wrong = len({defect.task_id for defect in defects})
    right = "every reference passes" if run else "nothing to check"
    found = f"{counted(len(defects), 'problem')} in {counted(wrong, 'task')}" if wrong else right
    checked = f"{counted(len(tasks), 'task')} of {dataset.name}, {run} with a reference and tests: {found}"
    return defects, dataset.own, checked


def summarise(samples: Sequence[Sample], results: Sequence[dict[str, Any]], dataset_tasks: int) -> Summary:
    """The numbers of a finished run."""
    by_task: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for sample, result in zip(samples, results, strict=True):
        by_task[sample.task.task_id].append(result)

    def pass_at_1(name: str) -> float:
        shares = [sum(bool(result[name]) for result in group) / len(group) for group in by_task.values()]
        return sum(shares) / len(shares)

    differs = {name: sum(result["passed"] for result in by_task.get(name, ())) for name in EVALPLUS_FAILS}
    return Summary(
        samples=len(samples),
        tasks=len(by_task),
        dataset_tasks=dataset_tasks,
        outcomes=dict(Counter(result["outcome"] for result in results)),
        pass_at_1=pass_at_1("passed"),
        pass_at_1_base=pass_at_1("passed_base"),
        differs={name: count for name, count in differs.items() if count},
        inside=sum(result.get("decided") == "inside" for result in results),
        moved=sum(BY_PROGRAM in result for result in results),
    )
