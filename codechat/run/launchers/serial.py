"""One cell after the other, in this process."""

from collections.abc import Mapping
from typing import Literal

from codechat.base.config import run_option
from codechat.run.launchers import LAUNCHERS, LauncherConfig, Result, Sweep, View
from codechat.run.run import INTERRUPTED


class SerialConfig(LauncherConfig):
    kind: Literal["serial"] = run_option("serial", "where the cells of a sweep run")


@LAUNCHERS.register("serial", SerialConfig)
def serial(config: SerialConfig) -> "Serial":
    """One cell after the other, in this process."""
    return Serial()


class Serial:
    """Runs cells until one is interrupted."""

    def launch(self, sweep: Sweep, view: View) -> Mapping[int, Result]:
        """The results of the cells that were begun."""
        results: dict[int, Result] = {}
        for job in sweep.jobs:
            view.begins(job)
            results[job.number] = sweep.run(job)
            if results[job.number].status == INTERRUPTED:
                break
        return results
