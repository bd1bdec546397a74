"""A cell's run while the cell runs: a thread that logs the progress every few seconds, without delaying the cell.

The same run gets the final figures at the end. A store that fails is asked again at growing intervals. The run of a
killed process stays RUNNING until the next start of the cell, which continues this run.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from codechat.base.errors import UserError
from codechat.report.tracking import Ending, FinishedCell, TrackingError
from codechat.report.tracking.address import Address
from codechat.report.tracking.runs import PROGRESS, missing_params, run_for
from codechat.report.tracking.store import Store, configure, failures

FIRST_S = 1.0
"""A cell that ends earlier is not shown as running: loading MLflow would take longer than the cell."""
PAUSE_S, LONGEST_PAUSE_S, POINTS = 5.0, 60.0, 120
"""The pause between two points of a series. It grows after the first `POINTS`, so that a day has some 1,500 points."""
PATIENCE_S = 2.0
"""How long the end of a cell waits for a slow store; a store that failed before is not waited for."""
PROCESS_TAG = "codechat.process"
"""The host and the id of the process that shows a run: without this process, a RUNNING run was killed."""


class LiveRun:
    """The run of a cell that runs. Its methods raise no error of the store."""

    def __init__(
        self,
        address: Address,
        open_store: Callable[[Path], Store],
        cell: Callable[[], FinishedCell],
        progress: Callable[[], Mapping[str, float]],
        warn: Callable[[str], None],
    ) -> None:
        """Begin. All functions are called in the thread; `open_store` takes the folder of runs."""
        self._address, self._open_store, self._cell = address, open_store, cell
        self._progress, self._warn = progress, warn
        self._stopping, self._loaded = threading.Event(), threading.Event()
        self._store: Store | None = None
        self._failing, self._run_id = False, ""
        self._began = time.monotonic()
        self._first_step = self._counted_to = 0
        self._thread = threading.Thread(target=self._work, name="live run", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """The sessions have ended: log a last point."""
        self._stopping.set()
        self._loaded.wait()  # two threads that import one library at once can see it half loaded
        self._thread.join(0 if self._failing else PATIENCE_S)

    def end(self, ending: Ending) -> None:
        """The cell has ended without final figures: set the run's status."""
        self.stop()
        if self._store is not None and self._run_id and not self._failing and not self._thread.is_alive():
            with contextlib.suppress(TrackingError, UserError), failures(self._address):
                elapsed = int(1000 * (time.monotonic() - self._began))
                self._store.client.set_terminated(self._run_id, ending, self._counted_to + elapsed)

    def _work(self) -> None:
        try:
            if self._stopping.wait(FIRST_S):
                return
            configure(self._address)
            import mlflow  # noqa: F401
        finally:
            self._loaded.set()
        pause, warned, last = PAUSE_S, False, False
        while not last:
            last = self._stopping.is_set()
            try:
                with failures(self._address):
                    if self._run_id or (not last and self._begin()):
                        self._log()
                self._failing = False
                pause = min(LONGEST_PAUSE_S, max(PAUSE_S, (time.monotonic() - self._began) / POINTS))
            except (TrackingError, UserError) as error:
                if not warned:
                    self._warn(f"the cell continues, but is not shown while it runs: {error}")
                warned = self._failing = True
                pause = min(LONGEST_PAUSE_S, 2 * pause)
            last = last or (self._stopping.wait(pause) and self._failing)

    def _begin(self) -> bool:
        """Make the cell's run, or continue an older one; False if the sessions end meanwhile."""
        cell = self._cell()
        self._store = self._open_store(Path(cell.runs_dir))
        if self._stopping.is_set():
            return False
        run, _ = run_for(self._store, cell, "RUNNING")
        self._store.client.set_tag(run.info.run_id, PROCESS_TAG, f"{socket.gethostname()} {os.getpid()}")
        history = self._store.client.get_metric_history(run.info.run_id, f"{PROGRESS}tokens")
        self._first_step = 1 + max((point.step for point in history), default=-1)
        self._store.client.log_batch(run.info.run_id, params=missing_params(run, cell))
        self._counted_to = run.info.end_time or run.info.start_time  # where earlier processes ended, without pauses
        self._run_id = run.info.run_id
        return True

    def _log(self) -> None:
        from mlflow.entities import Metric

        assert self._store is not None
        now, step = int(time.time() * 1000), self._first_step + int(time.monotonic() - self._began)
        points = [Metric(PROGRESS + name, value, now, step) for name, value in self._progress().items()]
        self._store.client.log_batch(self._run_id, metrics=points)
