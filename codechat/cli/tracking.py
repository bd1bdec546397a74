"""The terminal's lines on a tracked cell."""

import shlex

from codechat.cli.terminal import err, out
from codechat.engine.run import Outcome
from codechat.environment import shell_command
from codechat.tracking import TrackedRun


def show_tracking(outcome: Outcome) -> None:
    """Print where a cell is tracked; if the store failed, a warning with the command that sends the cell later."""
    if outcome.tracking.failure:
        later = shlex.join([shell_command("codechat"), "upload", f"run={outcome.folder}"])
        err.print(
            f"warning: not tracked: {outcome.tracking.failure}\nThe records are safe. Later: {later}", markup=False
        )
    elif outcome.tracking.run is not None:
        show_tracked(outcome.tracking.run)


def show_tracked(tracked: TrackedRun) -> None:
    """Print where the run is and how to open it."""
    if tracked.notice:
        err.print(f"notice: {tracked.notice}", markup=False)
    out.print(f"MLflow run  {tracked.run_id}", markup=False)
    out.print(f"compare     {tracked.open_with}", markup=False)
    out.print(f"            then open {tracked.charts}", markup=False)
