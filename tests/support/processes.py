"""Commands and cells in this process and in processes of their own, and what these leave."""

import asyncio
import contextlib
import io
import json
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from codechat.cli.app import entry, main
from codechat.testing import Call, dataset_tasks, fading_solver
from codechat.testing.cells import without_times
from support.stores import client_of


def codechat(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """What `codechat` with these words prints in the folder, and its status."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(words))
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


def in_process(words: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """The same of a whole command line, `python -m codechat …`: what a process takes to load is most of a small cell."""
    return codechat(folder, *words[words.index("codechat") + 1 :])


class Slow:
    """Answers after some seconds; a test may change them at any time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._answer = fading_solver(dataset_tasks("starter"))

    async def __call__(self, call: Call) -> Any:
        asked = time.monotonic()
        while (left := asked + self.seconds - time.monotonic()) > 0:  # noqa: ASYNC110  `seconds` may change
            await asyncio.sleep(min(left, 0.1))
        return self._answer(call)


def cells_in(runs: Path) -> list[Path]:
    """The folders of the cells, without those of launchers."""
    return [path for path in runs.iterdir() if not path.name.startswith(".")]


def records_of(runs: Path) -> dict[str, list[Any]]:
    """The sessions of every cell, without times."""
    return {
        cell.name: [without_times(json.loads(line)) for line in (cell / "sessions.jsonl").read_text().splitlines()]
        for cell in cells_in(runs)
    }


def metrics_of(runs: Path) -> dict[str, Any]:
    """The metrics of every cell, without times."""
    return {cell.name: without_times(json.loads((cell / "metrics.json").read_text())) for cell in cells_in(runs)}


def sweeps_of(folder: Path, cells: int) -> set[str]:
    """The sweep tags in a folder's store, which has a finished run with metrics for each of so many cells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's own, of SQLAlchemy
        client = client_of(folder)
        runs = client.search_runs([client.get_experiment_by_name("codechat").experiment_id])
    assert [run.info.status for run in runs] == ["FINISHED"] * cells
    assert all("final/mst" in run.data.metrics for run in runs)
    return {run.data.tags["codechat.sweep"] for run in runs}


def wait_until(what: Callable[[], object], seconds: float = 120) -> None:
    """Wait for something that comes true."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        threading.Event().wait(0.05)


_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(
    [
        *("numpy", "codechat.cli.app", "codechat.cli.run", "codechat.cli.run", "codechat.run.run"),
        *("codechat.run.construct.run", "codechat.studies.multicodeif.construct", "composed"),
    ]
)


def start(folder: Path, *words: str) -> BaseProcess:
    """`codechat` with these words in the folder. What it prints is not kept."""
    process = _FORKED.Process(target=_command, args=(words, str(folder), dict(os.environ)))
    process.start()
    return process


def ended(process: BaseProcess) -> int | None:
    """The exit status, once there is one."""
    process.join(300)
    return process.exitcode


def _command(words: tuple[str, ...], folder: str, environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.argv[1:] = words
    entry()


def below(root: int) -> set[int]:
    """The processes that `root` started, at any depth and whatever namespace they are in."""
    parents: dict[int, int] = {}
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                stat = (process / "stat").read_bytes()  # a program may call itself what it likes, in any bytes
            except OSError:
                continue
            parents[int(process.name)] = int(stat.rpartition(b")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


def descendants() -> set[int]:
    """The processes that the tests' own one started."""
    return below(os.getpid())


EAGER = (
    "import sys; from codechat.report.tracking import live; live.FIRST_S, live.PAUSE_S = 0.0, 0.2;"
    "from codechat.cli.app import entry; entry()"
)
"""The command line of a codechat that shows its cells at once, and more often than people need."""


class Seen(NamedTuple):
    """A run as it is in the store now."""

    run_id: str
    status: str
    sessions: tuple[tuple[int, float], ...]


def seen(store: Path) -> list[Seen]:
    """The runs in an SQLite store; none as long as it is being made. It is read without MLflow, which would make it."""
    try:
        with contextlib.closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True, timeout=30)) as db:
            runs = db.execute("SELECT run_uuid, status FROM runs WHERE lifecycle_stage = 'active'").fetchall()
            query = "SELECT step, value FROM metrics WHERE key = 'progress/sessions' AND run_uuid = ? ORDER BY step"
            return [Seen(run, status, tuple(db.execute(query, (run,)).fetchall())) for run, status in runs]
    except sqlite3.OperationalError:
        return []


@contextlib.contextmanager
def started(folder: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """A codechat in a working folder; what is left of it at the end of the block is killed."""
    command: list[Any] = [sys.executable, "-c", EAGER, *words]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


# Each line of the input is a command, run by a fork of a process that has imported everything. With a number, the answers
# of batches after so many reach nobody, and the process dies once those before have had time to be written down.
FORKING = f"""
import asyncio, itertools, json, os, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import codechat.models.calls.transport, openai, pydantic_ai.direct, pydantic_ai.models.anthropic, pydantic_ai.providers.anthropic
from codechat.models.calls import batch_queue
from codechat.cli.app import main
from codechat.testing.cells import register_instant
from support.processes import words
register_instant()
import numpy, codechat.cli.run, codechat.cli.run, codechat.run.run
from codechat import compose
compose([*words("http://nowhere", "."), "sandbox=instant"])  # each fork would load all of this anew
def give_no_more_than(most, give=batch_queue._give):
    given = itertools.count(1)
    def giving(answer, result):
        number = next(given)
        if number <= most:
            give(answer, result)
        if number == most:
            asyncio.get_running_loop().call_later(0.3, os.kill, os.getpid(), 9)
    batch_queue._give = giving
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            command, most = json.loads(line)
            if most is not None:
                give_no_more_than(most)
            status = main(command)
        finally:
            sys.stdout.flush()
            os._exit(status)
    print("child", child, flush=True)
    print("ended", os.waitpid(child, 0)[1], flush=True)
"""


def words(url: str, runs: Path, *more: str) -> list[str]:
    """A cell of three starter tasks and three turns in batches."""
    return [
        "tracking=none", "model=openai", f"model.base_url={url}", "model.name=fading-20", f"runs_dir={runs}",
        "dataset.limit=3", "agenda.turns=3", "model.cache=false", "model.tier=batch", "model.batch_poll_s=0.01", *more,
    ]  # fmt: skip


class Runner:
    """Runs commands in forks, one at a time."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._child = 0

    def run(self, command: list[str], *, answers: int | None = None) -> int:
        """The exit status of a command; -9 if it was killed, or after so many answers from batches."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([command, answers]) + "\n")
        self._process.stdin.flush()
        self._child = int(self._read("child"))
        return os.waitstatus_to_exitcode(int(self._read("ended")))

    def kill(self, by: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the command that runs."""
        os.kill(self._child, by)

    def _read(self, what: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(f"{what} "):
                return line.split()[1]
        raise AssertionError("the runner has ended")


@contextmanager
def runner() -> Iterator[Runner]:
    """A process that runs commands."""
    command = [sys.executable, "-c", FORKING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Runner(process)
        finally:
            process.kill()


def records(runs: Path) -> list[Any]:
    """The sessions of the one cell in a folder, without times and tiers."""
    (cell,) = runs.iterdir()
    lines = (cell / "sessions.jsonl").read_text().splitlines()
    return [_without_tiers(without_times(json.loads(line))) for line in lines]


def _without_tiers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_tiers(each) for key, each in value.items() if key != "tiers"}
    return [_without_tiers(each) for each in value] if isinstance(value, list) else value


def open_files(folder: Path) -> set[str]:
    """The names of the open files in a folder."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = link.readlink()
        except FileNotFoundError:  # the listing itself is one of them
            continue
        if target.parent == folder:
            found.add(target.name)
    return found


def open_handles() -> list[str]:
    """The numbers of all open files, that of the listing itself included."""
    return sorted(link.name for link in Path("/proc/self/fd").iterdir())
