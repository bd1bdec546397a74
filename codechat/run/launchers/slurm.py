"""An array of jobs on a SLURM cluster; codechat may end once it is submitted."""

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from codechat.base.config import run_option
from codechat.base.errors import UserError
from codechat.base.files import write_atomically
from codechat.base.template import counted
from codechat.run.launchers import LAUNCHERS, Job, LauncherConfig, Result, Sweep, View
from codechat.run.run import BUG

Words = tuple[str, ...]
"""The words of a cell."""
STOP_S = 120
"""Seconds before the time limit at which an element is asked to end; SLURM may do it a minute earlier."""

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --chdir={folder}
#SBATCH --output={log}
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:TERM@{stop_s}
# Element N of the array runs the cells in line N of cells.txt.
cd {here} || exit 1
{setup}
exec {command} cells file={cells} element="$SLURM_ARRAY_TASK_ID"  # exec: SLURM signals the process of the script alone
"""

LOCK_TIMEOUT_S = 60
POLL_S = 5.0
ATTEMPTS = 3  # a busy cluster may not answer at once
STATES = {"RUNNING": "runs", "SIGNALING": "runs", "COMPLETING": "runs", "PENDING": "waits"}
"""SLURM's states of a job in words; others are shown as they are."""


class Array:
    """The files in a sweep's folder: `cells` of all elements ever submitted, and `logs`, the folder of their output.

    Line N of cells.txt holds the cells of element N. Lines are only added: an element in the queue keeps its cells.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.cells, self.logs = folder, folder / "cells.txt", folder / "logs"

    def elements(self) -> list[list[Words]]:
        """The cells of every element; the first one has the number 1."""
        lines = self.cells.read_text(encoding="utf-8").splitlines() if self.cells.exists() else []
        return [[tuple(words) for words in json.loads(line)] for line in lines]

    def add(self, groups: Sequence[list[Words]]) -> list[int]:
        """Write the cells of new elements; elements that were submitted before keep their numbers."""
        elements = self.elements()
        elements += [group for group in groups if group not in elements]
        write_atomically(self.cells, (json.dumps(cells, ensure_ascii=False) + "\n" for cells in elements))
        numbers = sorted(elements.index(group) + 1 for group in groups)
        for number in numbers:
            self._status(number).unlink(missing_ok=True)
        return numbers

    def leave(self, number: int, statuses: Sequence[int]) -> None:
        """Write the exit statuses of the cells of an element that ran."""
        write_atomically(self._status(number), json.dumps(list(statuses)) + "\n")

    def status_of(self, words: Words) -> int | None:
        """The exit status of a cell's last run; None if it left none."""
        status: int | None = None
        for number, cells in enumerate(self.elements(), 1):
            if words in cells and self._status(number).exists():
                statuses: list[int] = json.loads(self._status(number).read_text())
                status = dict(zip(cells, statuses, strict=False)).get(words)
        return status

    def _status(self, number: int) -> Path:
        return self.folder / "ended" / str(number)


def grouped(jobs: Sequence[Job]) -> list[list[Job]]:
    """The cells by array element: cells with the same servers together, each cell without servers by itself."""
    groups: dict[Hashable, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.servers or job.number, []).append(job)
    return list(groups.values())


def script(array: Array, name: str, setup: str | None) -> str:
    """The job's script, for the folder where codechat was called and the same Python."""
    return SCRIPT.format(
        name=shlex.quote(f"codechat-{name}"),
        folder=shlex.quote(str(array.folder)),
        log=shlex.quote(str(array.logs).replace("%", "%%") + "/%a.log"),
        stop_s=STOP_S,
        here=shlex.quote(str(Path.cwd())),
        setup=setup or "",
        command=shlex.join([sys.executable, "-m", "codechat"]),
        cells=shlex.quote(str(array.cells)),
    )


def requeue() -> None:
    """Put this element, which was interrupted, back into the queue, unless its job was cancelled.

    SLURM signals both: the state of a cancelled job is CANCELLED or COMPLETING, of others RUNNING or SIGNALING.
    """
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    if array is None:
        return
    number = os.environ["SLURM_ARRAY_TASK_ID"]
    element, state = f"{array}_{number}", ""  # the last element's SLURM_JOB_ID is also the whole array's
    for _ in range(ATTEMPTS):
        with contextlib.suppress(UserError):
            state = state or _ask(["squeue", "--noheader", f"--jobs={element}", "--format=%T"]).strip()
            if state in ("RUNNING", "SIGNALING"):
                _ask(["scontrol", "requeue", element])
                return
            if state:
                break
        time.sleep(1)
    print(f"element {number} is not put back into the queue: its state is {state or 'unknown'}")


class SlurmConfig(LauncherConfig):
    kind: Literal["slurm"] = run_option("slurm", "where the cells of a sweep run")
    sbatch: str = run_option("", "options of sbatch for an element: --partition=gpu --gres=gpu:h100:2 --time=4:00:00")
    parallel: int | None = run_option(None, "elements that run at once; null: as many as the cluster lets", ge=1)
    setup: str | None = run_option(None, "shell command that each element runs first, such as: module load cuda")
    wait: bool = run_option(False, "wait until all cells are over, and show the table")


@LAUNCHERS.register("slurm", SlurmConfig, apart=True)
def slurm(config: SlurmConfig) -> "Slurm":
    """An array of jobs on a SLURM cluster, resumed after each time limit."""
    return Slurm(config)


@dataclass(frozen=True)
class Slurm:
    """Submits the cells that are missing and not in the queue."""

    config: SlurmConfig

    def launch(self, sweep: Sweep, view: View) -> Mapping[int, Result]:
        """The results of finished cells, and the states of others. Raises `UserError`."""
        for program in ("sbatch", "squeue"):
            if shutil.which(program) is None:
                problem = f"launcher=slurm needs SLURM's `{program}`, which is not on this machine"
                raise UserError(problem, "run the command on a login node of the cluster, or choose launcher=joblib")
        array = Array(sweep.folder.resolve())
        with _hold(array.folder):
            queue = _queue(array)  # first: what leaves it has finished by then
            results = _finished(sweep)
            missing = [job for job in sweep.jobs if job.number not in results]
            waiting = [job for job in missing if _state(job, queue) is None]
            if waiting:
                view.note(self._submit(array, sweep.name, waiting))
                queue = _queue(array)
        if self.config.wait:
            return _wait(sweep, array, view)
        return results | {job.number: Result(None, _state(job, queue) or "submitted") for job in missing}

    def _submit(self, array: Array, name: str, jobs: Sequence[Job]) -> str:
        """Submit the cells as an array; returns a note for the user. Raises `UserError` if SLURM refuses them."""
        elements = array.add([[job.composed.words for job in group] for group in grouped(jobs)])
        array.logs.mkdir(parents=True, exist_ok=True)
        path = array.folder / "job.sh"
        write_atomically(path, script(array, name, self.config.setup))
        numbers = ",".join(map(str, elements)) + (f"%{self.config.parallel}" if self.config.parallel else "")
        options = [f"--array={numbers}", *shlex.split(self.config.sbatch)]
        job_id = _ask(["sbatch", "--parsable", *options, str(path)]).strip().partition(";")[0]
        return (
            f"submitted {counted(len(jobs), 'cell')} as job {job_id}, {counted(len(elements), 'element')}; "
            f"what they print is in {array.logs}\nThe same command shows where they stand, and submits what is missing."
        )


def _finished(sweep: Sweep) -> dict[int, Result]:
    return {job.number: result for job in sweep.jobs if (result := sweep.recall(job)) is not None}


def _queue(array: Array) -> dict[Words, str]:
    """The states of the cells in SLURM's queue, by their words."""
    states: dict[Words, str] = {}
    elements = array.elements()
    for line in _ask(["squeue", "--me", "--array", "--noheader", "--format=%K %T %Z"]).splitlines():
        number, state, folder = line.split(maxsplit=2)
        if Path(folder) == array.folder and number.isdecimal():
            states |= dict.fromkeys(elements[int(number) - 1], state)
    return states


def _state(job: Job, queue: Mapping[Words, str]) -> str | None:
    state = queue.get(job.composed.words)
    return None if state is None else STATES.get(state, state.lower())


def _wait(sweep: Sweep, array: Array, view: View) -> dict[int, Result]:
    """The results, once no cell is in the queue. An interruption ends the waiting, not the cells."""
    view.note("waiting for the cluster; Ctrl-C ends the waiting, not the cells")
    while any(_state(job, _queue(array)) for job in sweep.jobs):
        time.sleep(POLL_S)
    results = _finished(sweep)
    for job in sweep.jobs:
        if job.number not in results:
            results[job.number] = Result(array.status_of(job.composed.words) or BUG)
    return results


@contextlib.contextmanager
def _hold(folder: Path) -> Iterator[None]:
    """Lock the sweep's folder, so that no cell is submitted twice. Raises `UserError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock", timeout=LOCK_TIMEOUT_S):
            yield
    except Timeout:
        raise UserError(f"another process is submitting the sweep of {folder}", "wait for it") from None
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}", "set runs_dir to a writable folder") from error


def _ask(words: Sequence[str]) -> str:
    """The output of a SLURM command. Raises `UserError` with its errors if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout
    errors = [line.removeprefix(f"{words[0]}: ").removeprefix("error: ") for line in done.stderr.strip().splitlines()]
    problem = f"{words[0]} fails: {'; '.join(errors[:2]) or f'exit status {done.returncode}'}"
    raise UserError(problem, "launcher.sbatch must suit the cluster: `sinfo` lists its partitions")
