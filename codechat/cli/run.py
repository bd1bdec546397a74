"""Run one cell at a terminal; and the words that say how cells run: launcher, shards, samples."""

import shlex
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from rich.markup import escape

from codechat.base.config import Config
from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, TurnRecord, read_sessions
from codechat.base.seal import SEAL, edited
from codechat.base.template import counted
from codechat.base.texts import read_json
from codechat.cli.cell_view import (
    inside_line,
    show_assumptions,
    show_estimate,
    show_layout,
    show_tracking,
    summary,
)
from codechat.cli.progress import Counted, WorkView, termination_as_interrupt
from codechat.cli.terminal import err, out
from codechat.judging import JUDGES
from codechat.models import MODELS
from codechat.models.roles import models_in
from codechat.run.cell import Cell, build_cell
from codechat.run.cell.budget import Budget, is_free
from codechat.run.cell.estimate import assumptions_of
from codechat.run.cell.stopping import measures_of
from codechat.run.journal import Ledger
from codechat.run.launchers import LAUNCHERS, Job, Report, Result, TurnCounts
from codechat.run.run import BUG, DONE, INTERRUPTED, MISTAKE, TOO_MANY_ERRORS, Outcome, run, run_built
from codechat.run.running.observer import Counts, Silent
from codechat.run.running.sessions import is_batched
from codechat.run.running.shards import Shard, ShardResult, errors_in, without_shard
from codechat.run.settings.compose import SAMPLES, Composed, key_of, parse_word

GROUP = LAUNCHERS.group
DEFAULT = "serial"
FIRST_SEED = 0  # of a cell whose words name none


class Terminal(WorkView, Silent):
    """Prints a cell's name and size, a progress bar while it runs, and its summary. `report` gets the counts."""

    def __init__(self, report: Report | None = None) -> None:
        super().__init__(lines=report is None)
        self._report = report
        self._counts: Counts | None = None
        self._finished = ""

    def finished(self, cell: Cell, words: str) -> None:
        self._finished = f" · {words}"

    def begin(self, cell: Cell, turns: int, budget: Budget) -> None:
        facts = f"{counted(len(cell.tasks), 'task')}, {counted(turns, 'turn')} · {cell.folder}"
        self._show_head(cell.name, f"{self._finished} · {facts}", len(cell.tasks), budget)

    def watching(self, counts: Counted, ledger: Ledger) -> AbstractContextManager[object]:
        self._counts = counts if isinstance(counts, Counts) else None
        return super().watching(counts, ledger)

    def turn(self, turn: TurnRecord, *, new: bool) -> None:
        self._report_counts()

    def session(self, session: SessionRecord, planned: int) -> None:
        self._report_counts()

    def recalled(self, session: SessionRecord, planned: int) -> None:
        self._report_counts()

    def _report_counts(self) -> None:
        if self._report is not None and (counts := self._counts) is not None:
            self._report(TurnCounts(counts.turns, counts.planned, counts.passed, counts.scored))

    def measured(self, cell: Cell, metrics: Mapping[str, Any], seconds: float) -> None:
        title = f"\n{escape(cell.name)} ({seconds:.1f} s)"
        out.print(summary(measures_of(cell), metrics, title, cell.dataset.departure))
        if inside := inside_line(metrics, read_sessions(cell.folder / "sessions.jsonl")):
            out.print(f"\n{inside}", markup=False)
        _print_identity(cell)


def run_cell(composed: Composed, command: Sequence[str], sweep: str | None, report: Report | None = None) -> Outcome:
    """Build a cell and run it, or only estimate its cost. `command` resumes it. Raises `UserError`."""
    with termination_as_interrupt():
        outcome = run(composed, Terminal(report), sweep=sweep, command=command)
    if outcome.estimate is None:
        return _report(outcome, command)
    show_estimate(outcome.cell, outcome.estimate)
    show_layout(outcome.layout)
    if sweep is None:
        show_assumptions(assumptions_of([outcome.cell.config]))
    return outcome


def run_built_cell(cell: Cell, command: Sequence[str]) -> Outcome:
    """Run a cell that is already built."""
    with termination_as_interrupt():
        return _report(run_built(cell, command, Terminal()), command)


def _report(outcome: Outcome, command: Sequence[str]) -> Outcome:
    """Print the tracked run, and why the cell ended early if it did."""
    if outcome.status == INTERRUPTED:
        kept = "everything finished is kept" + ", and batches go on at their provider" * is_batched(outcome.cell)
        err.print(f"interrupted; {kept}. Resume: {shlex.join(command)}", markup=False)
        return outcome
    show_tracking(outcome.tracking, outcome.cell.config.tracking, outcome.folder)
    if outcome.part is not None:
        _show_shard(outcome.part, command)
    if outcome.unfinished:
        err.print(outcome.unfinished, markup=False)
    elif outcome.status == TOO_MANY_ERRORS and outcome.metrics is not None:
        errored, allowed = outcome.metrics["errored"], outcome.cell.config.max_errors
        first = next(each for each in outcome.sessions if each.status == "errored")
        err.print(
            f"{counted(errored, 'session')} errored, {allowed} are allowed (max_errors); the first:\n"
            f"  {first.task_id}: {first.error or '':.300}\nRun the same command again to retry only these.",
            markup=False,
        )
    return outcome


def _show_shard(result: ShardResult, command: Sequence[str]) -> None:
    """Print what a shard recorded, and the command that merges all of them."""
    completed = counted(result.completed, "session")
    out.print(f"shard {result.shard.name}: {completed} completed, {result.errored} errored", markup=False)
    if result.errored:
        err.print(f"the first error: {result.error:.400}\nRun the same command again to retry.", markup=False)
    merging = shlex.join(without_shard(command))
    out.print(f"when all shards have ended, this merges and measures them: {merging}", markup=False)


def _print_identity(cell: Cell) -> None:
    component = MODELS.of(cell.config.model)
    if component.traits.baseline:
        further = (model for _, model in models_in(cell.config.protocol, "protocol"))
        offline = JUDGES.of(cell.config.judge).traits.offline and all(map(is_free, further))
        part = "involved" if offline else "tested"
        out.print(f"\nNo language model was {part}: model={component.name} is a baseline. {component.summary}.")
    out.print(f"\nrun folder  {cell.folder}", markup=False)


def split_samples(words: Sequence[str]) -> tuple[int, list[str]]:
    """The number of seeds that the words ask for, and the other words. Raises `UserError`."""
    given = [word for word in words if key_of(word) == SAMPLES]
    numbers = {word.partition("=")[2] for word in given}
    if not given:
        return 1, list(words)
    if len(numbers) > 1 or not all(number.isdecimal() and int(number) > 0 for number in numbers):
        raise UserError(f"cannot read {' '.join(given)}", f"{SAMPLES} is one whole number from 1 on: {SAMPLES}=3")
    return int(numbers.pop()), [word for word in words if word not in given]


def with_seeds(combination: tuple[str, ...], samples: int) -> Iterator[tuple[str, ...]]:
    """The combination with its seed and with each of the `samples` - 1 that follow it."""
    seed = next((word.partition("=")[2] for word in reversed(combination) if key_of(word) == "seed"), str(FIRST_SEED))
    if samples == 1 or not seed.lstrip("-").isdecimal():  # a seed that is no number is refused in composing
        yield combination
        return
    others = tuple(word for word in combination if key_of(word) != "seed")
    yield from ((*others, f"seed={int(seed) + number}") for number in range(samples))


def split_running(words: Sequence[str], *, several: bool) -> tuple[Config, int, list[str]]:
    """The launcher, the shards of every cell (1: none), and the words that describe cells. Raises `UserError`.

    A single cell (not `several`) has shards only under a launcher that runs cells apart from this process. Only
    `shard.count=N` alone asks for shards; with `shard.index` the words choose shards by themselves.
    """
    launcher, others = split_launcher(words)
    counts = [word for word in others if key_of(word) == "shard.count"]
    number = counts[-1].partition("=")[2] if counts else ""
    chosen = any(key_of(word) == "shard.index" for word in others)
    if not (several or runs_apart(launcher)) or chosen or not number.isdecimal() or int(number) < 1:
        return launcher, 1, others
    return launcher, int(number), [word for word in others if word not in counts]


def runs_apart(launcher: Config) -> bool:
    """Whether the launcher runs cells apart from this process."""
    return LAUNCHERS.of(launcher).traits.apart


def split_launcher(words: Sequence[str]) -> tuple[Config, list[str]]:
    """The launcher that the words choose, and the words that describe cells. Raises `UserError`.

    The last word for a key counts. Values are texts: commas and colons of SLURM's options need no quotes.
    """
    given = [word for word in words if key_of(word).partition(".")[0] == GROUP]
    values: dict[str, Any] = {}
    for word in given:
        if "=" not in word or word.startswith("~"):
            raise UserError(f"cannot read '{word}'", f"write {GROUP}=NAME or {GROUP}.KEY=VALUE")
        values[key_of(word).removeprefix(GROUP).lstrip(".") or LAUNCHERS.key] = _text(word)
    component = LAUNCHERS[values.setdefault(LAUNCHERS.key, DEFAULT)]
    for key in values:
        able = [each.name for each in LAUNCHERS if key in each.config.model_fields]
        if key not in component.config.model_fields and able:
            remedy = f"{', '.join(f'{GROUP}={name}' for name in able)} {'has' if len(able) == 1 else 'have'} it"
            raise UserError(f"{GROUP}={component.name} has no option {GROUP}.{key}", remedy)
    return LAUNCHERS.validate(values), [word for word in words if word not in given]


def _text(word: str) -> str | None:
    """The value as a text: without the quotes of Hydra's grammar, and None for its null."""
    override, written = parse_word(word), word.partition("=")[2]
    value = written if override is None or override.is_sweep_override() else override.value()
    return value if value is None or isinstance(value, str) else written


def run_job(job: Job, report: Report | None = None) -> Result:
    """Run a cell, printing its messages. A mistake, a bug and an interruption are printed and become its status."""
    try:
        with termination_as_interrupt():
            outcome = run_cell(job.composed, job.command, job.sweep, report)
    except UserError as mistake:
        err.print(f"error: {mistake}", markup=False)
        return Result(MISTAKE)
    except KeyboardInterrupt:
        err.print(f"interrupted. Resume: {shlex.join(job.command)}", markup=False)
        return Result(INTERRUPTED)
    except Exception:  # noqa: BLE001  a bug in one cell is shown with its traceback, and the other cells still run
        err.print(traceback.format_exc(), markup=False)
        return Result(BUG)
    return Result(outcome.status, "", outcome.folder, outcome.metrics, outcome.estimate, outcome.tracking.failure)


class Recalling:
    """Finds the results of cells that have finished. Each cell is built once, since that reads its data."""

    def __init__(self) -> None:
        self._cells: dict[int, Cell] = {}

    def __call__(self, job: Job) -> Result | None:
        """The result, read from the cell's folder; None if something is missing in it. Raises `UserError`."""
        cell = self._cells[job.number] = self._cells.get(job.number) or build_cell(job.composed)
        shard = Shard.of(cell.config.shard)
        if shard is not None:
            errors = errors_in(cell, shard)
            ended = errors is not None and errors <= cell.config.max_errors
            return Result(DONE, folder=shard.part_of(cell).folder) if ended else None
        path = cell.folder / "metrics.json"
        # the journal stays closed: the cell may be running on another machine
        if not (cell.folder / SEAL).is_file() or edited(cell.folder) or not path.is_file():
            return None
        metrics = read_json(path.read_bytes())
        finished = metrics["errored"] <= cell.config.max_errors and metrics["sessions"] >= (cell.config.stop.until or 0)
        return Result(DONE, folder=cell.folder, metrics=metrics) if finished else None
