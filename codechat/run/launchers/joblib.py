"""Several cells at once on this machine, in processes that are reused from cell to cell."""

import contextlib
import itertools
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from codechat.base.config import run_option
from codechat.base.errors import Stopped, UserError
from codechat.models.hardware import cores
from codechat.models.serving import FLEET
from codechat.models.serving.vllm import NotInstalled
from codechat.run.answering.servers import bring_up, tended
from codechat.run.launchers import LAUNCHERS, Job, LauncherConfig, Printed, Result, Run, Sweep, View
from codechat.run.launchers.exchange import Exchange, run_apart
from codechat.run.launchers.serial import Serial
from codechat.run.run import BUG, INTERRUPTED, MISTAKE

KILLED = "a process of this sweep was killed, perhaps because memory ran out, while this cell ran in it or in another\n"
ATTEMPTS = 2  # if a process is killed, loky ends the others too: their cells are resumed once


class JoblibConfig(LauncherConfig):
    """Options of the `joblib` launcher."""

    kind: Literal["joblib"] = run_option("joblib", "where the cells of a sweep run")
    jobs: int | None = run_option(None, "cells at once; null: one per core that this process may use", ge=1)


@LAUNCHERS.register("joblib", JoblibConfig, apart=True)
def joblib_launcher(config: JoblibConfig) -> "Joblib":
    """Several cells at once on this machine, each with its share of the cores."""
    return Joblib(config.jobs)


@dataclass(frozen=True)
class Joblib:
    """Runs cells in at most so many processes."""

    jobs: int | None

    def launch(self, sweep: Sweep, view: View) -> Mapping[int, Result]:
        """The results of the cells that were begun."""
        at_once = min(len(sweep.jobs), self.jobs or cores())
        if at_once == 1:  # joblib would start no process
            return Serial().launch(sweep, view)
        results: dict[int, Result] = {}
        with tempfile.TemporaryDirectory(prefix="codechat-sweep-") as folder, _ended_processes():
            exchange = Exchange(Path(folder), os.getpid())
            with view.interruptible(exchange.stop), view.watching(exchange.tally):
                for _ in range(ATTEMPTS):
                    left = [job for job in sweep.jobs if job.number not in results]
                    for job, result in _run_by_servers(sweep, left, exchange, at_once, view.note):
                        results[job.number] = result
                        view.ended(job, result)
            for job in sweep.jobs:
                if job.number in exchange.begun() - results.keys():  # its process ended in the midst of it
                    killed = Result(BUG, printed=(Printed(KILLED, error=True),))
                    results[job.number] = Result(INTERRUPTED) if exchange.wishes() else killed
                    view.ended(job, results[job.number])
        return results


def _run_by_servers(
    sweep: Sweep, jobs: Sequence[Job], exchange: Exchange, at_once: int, note: Callable[[str], None]
) -> Iterator[tuple[Job, Result]]:
    """The results as they come. Cells that need the same model servers run together, and use those of this process."""
    for servers, group in itertools.groupby(jobs, lambda job: job.servers):
        together = list(group)
        try:
            waiting = next((job for job in together if servers and sweep.recall(job) is None), None)
            fleet = FLEET.get()
            served: AbstractContextManager[None] = contextlib.nullcontext()
            if waiting is not None and fleet is not None and not exchange.wishes():
                with contextlib.suppress(NotInstalled):  # a cell tells it once it asks: a hybrid judge may never
                    bring_up(waiting.composed.config, fleet, note, exchange.wishes)
                    served = tended(waiting.composed.config, fleet, note)
        except UserError as mistake:
            message = Printed(f"error: {mistake}\n", error=True)
            yield from ((job, Result(MISTAKE, printed=(message,))) for job in together)
        except Stopped:
            return
        else:
            with served:
                yield from _run(sweep, together, exchange, at_once)


def _run(sweep: Sweep, jobs: Sequence[Job], exchange: Exchange, at_once: int) -> Iterator[tuple[Job, Result]]:
    """The results as they come, until all are there or a process is killed."""
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    if not jobs or exchange.wishes():
        return
    by_number = {job.number: job for job in jobs}
    parallel = Parallel(
        at_once, backend="loky", return_as="generator_unordered", batch_size=1, pre_dispatch="all", max_nbytes=None
    )
    work = (delayed(_numbered)(sweep.run, job, exchange, at_once) for job in jobs)
    with warnings.catch_warnings(), contextlib.suppress(BrokenProcessPool):
        # of a process that is replaced because it has grown: nothing is lost
        warnings.filterwarnings("ignore", "A worker stopped", UserWarning)
        for number, result in parallel(work):
            if result is not None:
                yield by_number[number], result


def _numbered(run: Run, job: Job, exchange: Exchange, at_once: int) -> tuple[int, Result | None]:
    return job.number, run_apart(run, job, exchange, at_once)


@contextlib.contextmanager
def _ended_processes() -> Iterator[None]:
    """End the processes at the end of the sweep, instead of after minutes without work."""
    from joblib.externals.loky import get_reusable_executor

    try:
        yield
    finally:
        get_reusable_executor().shutdown(wait=True, kill_workers=True)
