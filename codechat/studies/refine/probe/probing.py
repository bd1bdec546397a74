"""The passing turns of recorded cells, compared on fresh inputs with the reference and with the session's code before.

A task is the unit of work: its inputs are made, its programs run once each, and its turns written down, so that a
killed probe resumes at the next task. Nothing is kept of a task but its records.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from codechat.base.errors import UserError
from codechat.base.files import append_line, canonical_json, content_hash, from_yaml, read_lines
from codechat.base.records import SessionRecord, TurnRecord, read_sessions
from codechat.base.texts import read_json
from codechat.datasets import DATASETS, DatasetConfig, load
from codechat.datasets.tasks import Dataset, Task
from codechat.report.loading import cell_folders
from codechat.run.cell.references import sandbox_for
from codechat.run.extensions import Probing, View
from codechat.sandbox import Sandbox
from codechat.sandbox.languages import extract, fence
from codechat.sandbox.suites.calls import Calls
from codechat.studies.refine.probe.comparing import compared, differing, tolerance
from codechat.studies.refine.probe.inputs import (
    FreshInputs,
    file_of,
    is_probeable,
    make_inputs,
    read_inputs,
    write_inputs,
)
from codechat.studies.refine.probe.mutating import Arguments
from codechat.studies.refine.probe.records import TURNS, Comparison, ProbedTurn, write_probed
from codechat.studies.refine.probe.running import Result, Runner

PROTOCOLS = ("refine", "refined", "recorded")
PUBLISHED = ("refined", "recorded")  # protocols whose code may be taken as it was published, without extraction


@dataclass(frozen=True)
class PassingTurn:
    """A turn whose code passes, and the program that was tested. `before` is the turn and the program of the code
    that stood before it in the session, if that passes too and stands in another turn."""

    cell_id: str
    session_id: str
    model: str
    turn: int
    program: str
    before: tuple[int, str] | None


@dataclass
class TaskTurns:
    """A task with its passing turns in all cells."""

    dataset: Dataset
    task: Task
    turns: list[PassingTurn] = field(default_factory=list)


async def probe(asked: Probing, view: View) -> None:
    """Write `turns.jsonl` and the inputs into a folder. The same call resumes.

    Raises `UserError` for the user's mistakes and `InfrastructureError` if the sandbox fails.
    """
    work, remarks = _gather(asked.cells)
    for remark in remarks:
        view.notice(remark)
    if not work:
        raise UserError("no turn of these cells can be probed", "give cells of refine whose tests are calls of Python")
    async with sandbox_for([each.task for each in work], asked.sandbox, asked.workers, view.notice) as sandbox:
        every = _Probe(asked, sandbox, view.notice)
        done = 0

        async def one(each: TaskTurns, slots: asyncio.Semaphore) -> None:
            nonlocal done
            async with slots:
                await every.task(each)
            done += 1
            view.progress(done, len(work))

        view.progress(0, len(work))
        slots = asyncio.Semaphore(asked.workers)
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(one(each, slots))
    every.finish(work)


def cells_in(folders: Sequence[Path]) -> dict[str, Path]:
    """The finished cells of folders by their ids; a folder given twice counts once.

    Raises `UserError` if two folders hold the same cell, whose turns would count twice.
    """
    cells: dict[str, Path] = {}
    for folder in {path.resolve(): path for each in folders for path in cell_folders(each)[0]}.values():
        first = next(read_sessions(folder / "sessions.jsonl"), None)
        if first is not None and (other := cells.setdefault(first.cell_id, folder)) is not folder:
            raise UserError(f"{other} and {folder} hold the same cell", "leave one of them out")
    return cells


def _gather(folders: Sequence[Path]) -> tuple[list[TaskTurns], list[str]]:
    """The tasks with their passing turns, and remarks on what is left out. Raises `UserError`."""
    datasets: dict[str, Dataset] = {}
    work: dict[tuple[str, str], TaskTurns] = {}
    left: Counter[str] = Counter()
    for folder in cells_in(folders).values():
        config = from_yaml((folder / "config.yaml").read_text(encoding="utf-8"))
        protocol = (config.get("protocol") or {}).get("kind")
        if protocol not in PROTOCOLS:
            left[f"protocol={protocol} is not probed"] += 1
            continue
        key = canonical_json(config["dataset"])
        if key not in datasets:
            datasets[key] = load(cast(DatasetConfig, DATASETS.validate(config["dataset"], "dataset")))
        dataset = datasets[key]
        tasks = {task.task_id: task for task in dataset.tasks}
        published = protocol in PUBLISHED and config["protocol"].get("code", "published") == "published"
        for session in read_sessions(folder / "sessions.jsonl"):
            task = tasks.get(session.task_id)
            if task is None:
                left[f"{session.task_id} is no task of {dataset.name} any more"] += 1
            elif not is_probeable(task):
                kind = task.suite.kind if task.suite is not None else "none"
                left[
                    f"tests of kind {kind} for {task.target.language} without a reference's results are not probed"
                ] += 1
            elif session.status == "completed":
                own = work.setdefault((dataset.content_hash, task.task_id), TaskTurns(dataset, task))
                own.turns += _passing(session, task, published=published)
    return [each for each in work.values() if each.turns], [
        f"{words}: {count} left out" for words, count in left.items()
    ]


def _passing(session: SessionRecord, task: Task, *, published: bool) -> Iterator[PassingTurn]:
    before: tuple[int, str] | None = None
    for turn in session.turns:
        program = _program(turn, task, published=published) if turn.passed else None
        if turn.skipped and before is not None:
            yield PassingTurn(session.cell_id, session.session_id, session.model, turn.turn, before[1], None)
            continue
        if program is not None:
            yield PassingTurn(session.cell_id, session.session_id, session.model, turn.turn, program, before)
        if not turn.rolled_back:
            before = None if program is None else (turn.turn, program)


def _program(turn: TurnRecord, task: Task, *, published: bool) -> str | None:
    """The program that was tested at a turn."""
    if turn.code is None or published:
        return turn.code
    return extract(fence(turn.code, task.target.language), task.target).program


class _Probe:
    """The probe of one call: its inputs and what it wrote so far."""

    def __init__(self, asked: Probing, sandbox: Sandbox, note: Callable[[str], None]) -> None:
        self._asked, self._sandbox, self._note = asked, sandbox, note
        self._partial = asked.out / f"{TURNS}.partial"
        self._known = {entry["key"]: entry["turns"] for entry in map(read_json, read_lines(self._partial))}
        self._inputs: dict[Path, dict[str, FreshInputs]] = {}
        self._probed: dict[tuple[str, str], list[ProbedTurn]] = {}

    async def task(self, each: TaskTurns) -> None:
        """Probe a task's turns, unless the partial file has them."""
        runner = Runner(self._sandbox, cast(Calls, each.task.suite))
        fresh = await self._fresh(each, runner)
        config = self._sandbox.config.identity()
        key = content_hash(
            canonical_json([each.dataset.content_hash, fresh.model_dump(), config, list(map(vars, each.turns))])
        )
        if key not in self._known:
            turns = await probed_turns(each, runner, fresh.arguments())
            self._known[key] = [turn.model_dump() for turn in turns]
            append_line(self._partial, canonical_json({"key": key, "turns": self._known[key]}))
        place = each.dataset.content_hash, each.task.task_id
        self._probed[place] = [ProbedTurn.model_validate(turn) for turn in self._known[key]]

    async def _fresh(self, each: TaskTurns, runner: Runner) -> FreshInputs:
        asked, task_id = self._asked, each.task.task_id
        path = file_of(asked.out / "inputs", each.dataset)
        if path not in self._inputs:
            own = read_inputs(path)
            same = {name: one for name, one in own.items() if (one.count, one.seed, one.source) == asked.making}
            given = read_inputs(file_of(asked.inputs, each.dataset)) if asked.inputs else {}
            self._inputs[path] = {**same, **given}
        known = self._inputs[path]
        if task_id not in known:
            count, seed, source = asked.making
            known[task_id] = await make_inputs(each.task, runner, count=count, seed=seed, source=source)
            append_line(path, known[task_id].model_dump_json())
        return known[task_id]

    def finish(self, work: Sequence[TaskTurns]) -> None:
        """Write the files as a whole, in the order of the tasks."""
        for path, known in self._inputs.items():
            tasks = next(
                each.dataset for each in work if file_of(self._asked.out / "inputs", each.dataset) == path
            ).tasks
            write_inputs(path, (known[task.task_id] for task in tasks if task.task_id in known))
        turns = [turn for each in work for turn in self._probed[each.dataset.content_hash, each.task.task_id]]
        write_probed(self._asked.out, turns)
        self._partial.unlink(missing_ok=True)


async def probed_turns(each: TaskTurns, runner: Runner, inputs: Sequence[Arguments]) -> list[ProbedTurn]:
    """The records of a task's turns. Every program runs once, and once more on inputs on which it differs from the
    reference, in a new process: what differs by its earlier calls alone does not count."""
    limit_s = runner.sandbox.config.min_cpu_s
    expected = await runner.run(runner.calls.reference or "", inputs, limit_s)
    atol = tolerance(runner.calls, expected)
    found: dict[str, list[Result]] = {}

    def against(one: Sequence[Result], other: Sequence[Result]) -> Comparison:
        return compared(inputs, one, other, differing(runner.calls, atol, inputs, one, other))

    for program in dict.fromkeys(turn.program for turn in each.turns):
        results = found[program] = await runner.run(program, inputs, limit_s)
        numbers = differing(runner.calls, atol, inputs, expected, results)
        again = await runner.run(program, [inputs[number] for number in numbers], limit_s) if numbers else []
        for number, result in zip(numbers, again, strict=True):
            results[number] = result
    return [
        ProbedTurn(
            cell_id=turn.cell_id,
            session_id=turn.session_id,
            task_id=each.task.task_id,
            turn=turn.turn,
            reference=against(expected, found[turn.program]),
            before=against(found[turn.before[1]], found[turn.program]) if turn.before else None,
            of_turn=turn.before[0] if turn.before else None,
        )
        for turn in each.turns
    ]
