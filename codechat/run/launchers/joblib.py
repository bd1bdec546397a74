"""Several cells at once on this machine, each in its process."""

import contextlib
import ctypes
import itertools
import multiprocessing
import os
import signal
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Literal

from codechat.base.config import run_option
from codechat.base.environment import collect_seldom
from codechat.models.hardware import CELLS_AT_ONCE, cores
from codechat.models.serving import FLEET
from codechat.run.answering.servers import use_servers
from codechat.run.launchers import (
    LAUNCHERS,
    Job,
    LauncherConfig,
    Printed,
    Result,
    Run,
    Sweep,
    TurnCounts,
    View,
    run_recorded,
)
from codechat.run.launchers.serial import Serial
from codechat.run.run import BUG, INTERRUPTED
from codechat.run.settings.compose import compose

KILLED = Printed("the process of this cell was killed twice, perhaps because memory ran out\n", error=True)
ATTEMPTS = 2
REPORT_EVERY_S = 0.5
PR_SET_PDEATHSIG = 1


class JoblibConfig(LauncherConfig):
    kind: Literal["joblib"] = run_option("joblib", "where the cells of a sweep run")
    jobs: int | None = run_option(None, "cells at once; null: one per core that this process may use", ge=1)


@LAUNCHERS.register("joblib", JoblibConfig, apart=True)
def joblib_launcher(config: JoblibConfig) -> "Joblib":
    """Several cells at once on this machine, each with its share of the cores."""
    return Joblib(config.jobs)


@dataclass(frozen=True)
class Joblib:
    """Runs at most so many cells at once."""

    jobs: int | None

    def launch(self, sweep: Sweep, view: View) -> Mapping[int, Result]:
        """The results of the cells that were begun."""
        at_once = min(len(sweep.jobs), self.jobs or cores())
        if at_once == 1:
            return Serial().launch(sweep, view)
        children = _Children(sweep, view, at_once)
        try:
            with view.interruptible(children.stop), view.watching(children.counts):
                for _, group in itertools.groupby(sweep.jobs, lambda job: job.servers):
                    children.run(list(group))
        finally:
            children.kill()
        return children.results


class _Children:
    """The processes of a sweep's cells, and the results of ended cells."""

    def __init__(self, sweep: Sweep, view: View, at_once: int) -> None:
        self.results: dict[int, Result] = {}
        self._sweep, self._view, self._at_once = sweep, view, at_once
        self._waiting, self._running = deque[Job](), dict[Connection, tuple[Job, BaseProcess]]()
        self._attempts, self._counts, self._stops = Counter[int](), dict[int, TurnCounts](), 0

    def counts(self) -> TurnCounts:
        """The sum over all cells so far."""
        return TurnCounts(*map(sum, zip(*map(astuple, self._counts.values()), strict=True)))

    def stop(self) -> None:
        """The cells finish the calls under way; the second time, they end at once."""
        self._stops += 1
        for _, process in self._running.values():
            self._signal(process)

    def _signal(self, process: BaseProcess) -> None:
        assert process.pid is not None
        # two equal signals in quick succession would count as one
        os.kill(process.pid, signal.SIGTERM if self._stops == 1 else signal.SIGINT)

    def kill(self) -> None:
        """End all processes."""
        for _, process in self._running.values():
            process.kill()
            process.join()

    def run(self, jobs: Sequence[Job]) -> None:
        """Run cells that need the same model servers, which stay until the last cell has ended."""
        fleet = FLEET.get()
        if fleet is not None and not self._stops:
            use_servers(jobs[0].composed.config, fleet)
        self._waiting.extend(jobs)
        while self._running or (self._waiting and not self._stops):
            while self._waiting and len(self._running) < self._at_once and not self._stops:
                self._start(self._waiting.popleft())
            for pipe in wait(list(self._running)):
                assert isinstance(pipe, Connection)
                job, process = self._running[pipe]
                try:
                    said: TurnCounts | Result | None = pipe.recv()
                except EOFError:  # it was killed
                    said = None
                if isinstance(said, TurnCounts):
                    self._counts[job.number] = said
                    continue
                del self._running[pipe]
                process.join()
                if said is None and not self._stops and self._attempts[job.number] < ATTEMPTS:
                    self._waiting.appendleft(job)
                    continue
                result = said or (Result(INTERRUPTED) if self._stops else Result(BUG, printed=(KILLED,)))
                self.results[job.number] = result
                self._view.ended(job, result)

    def _start(self, job: Job) -> None:
        self._attempts[job.number] += 1
        pipe, its_end = multiprocessing.Pipe(duplex=False)
        words = (job.number, job.composed.words, job.sweep, job.command)
        task = (os.getpid(), self._sweep.run, words, self._at_once, its_end)
        process = multiprocessing.get_context("spawn").Process(target=_run_cell, args=task)
        process.start()
        its_end.close()
        self._running[pipe] = (job, process)
        if self._stops:  # the user interrupted it as it was started
            self._signal(process)


def _run_cell(
    launcher: int, run: Run, job: tuple[int, Sequence[str], str, tuple[str, ...]], at_once: int, pipe: Connection
) -> None:
    """In a child process: run a cell, and send its counts and its result through the pipe.

    The process leaves the terminal's group, so that Ctrl-C reaches the launcher alone; SIGTERM ends it when the
    launcher is gone.
    """
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != launcher:
        return
    os.environ[CELLS_AT_ONCE] = str(at_once)
    number, words, sweep, command = job
    next_s = 0.0

    def report(counts: TurnCounts) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s or counts.turns == counts.planned:
            next_s = time.monotonic() + REPORT_EVERY_S
            send(counts)

    def send(message: TurnCounts | Result) -> None:
        with contextlib.suppress(BrokenPipeError):  # the launcher is gone
            pipe.send(message)

    with collect_seldom():
        send(run_recorded(run, Job(number, compose(words), sweep, command), report))
