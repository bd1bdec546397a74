"""Cells as tasks of a Ray cluster."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from codechat.base.config import run_option
from codechat.base.errors import UserError
from codechat.models.hardware import CELLS_AT_ONCE, cores
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
from codechat.run.run import BUG, INTERRUPTED

REMEDY = "start a cluster (`ray start --head`), or name one by launcher.address=HOST:PORT"


class RayConfig(LauncherConfig):
    kind: Literal["ray"] = run_option("ray", "where the cells of a sweep run")
    address: str = run_option(
        "auto", "HOST:PORT of a running cluster whose nodes see this folder; auto: this machine's cluster"
    )


@LAUNCHERS.register("ray", RayConfig, apart=True)
def ray_launcher(config: RayConfig) -> "Ray":
    """Every cell a task of a Ray cluster, with one of its cores; needs codechat[ray]."""
    import ray

    return Ray(config.address, ray)


@dataclass(frozen=True)
class Ray:
    """Runs cells on a cluster; `library` is Ray."""

    address: str
    library: Any

    def launch(self, sweep: Sweep, view: View) -> Mapping[int, Result]:
        """The results of the cells that ended. Raises `UserError` if the cluster cannot be reached."""
        ray = self.library
        try:
            ray.init(self.address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, OSError, ValueError, RuntimeError) as error:
            text = str(error).strip().partition("\n")[0]
            raise UserError(f"cannot use Ray at {self.address}: {text:.300}", REMEDY) from error
        try:
            return self._results(sweep, view)
        finally:
            ray.shutdown()

    def _results(self, sweep: Sweep, view: View) -> dict[int, Result]:
        ray, results = self.library, dict[int, Result]()
        task = ray.remote(_run).options(max_retries=0)
        under_way = {task.remote(sweep.run, job, str(Path.cwd())): job for job in sweep.jobs}
        stopping = False

        def stop() -> None:
            nonlocal stopping
            for reference in under_way:
                ray.cancel(reference, force=stopping)
            stopping = True

        with view.interruptible(stop), view.watching(TurnCounts):
            while under_way:
                ended, _ = ray.wait(list(under_way), timeout=1.0)
                for reference in ended:
                    job = under_way.pop(reference)
                    try:
                        results[job.number] = ray.get(reference)
                    except ray.exceptions.RayError as error:
                        status = INTERRUPTED if stopping else BUG
                        results[job.number] = Result(status, printed=(Printed(f"{error}\n", error=True),))
                    view.ended(job, results[job.number])
        return results


def _run(run: Run, job: Job, folder: str) -> Result:
    """Run a cell in one of Ray's processes, in the folder where codechat was called."""
    os.chdir(folder)
    os.environ[CELLS_AT_ONCE] = str(cores())  # the task was given one core
    return run_recorded(run, job)
