"""A cell's run while the cell runs: a thread that logs its progress every few seconds, and never holds it up.

The same run gets the final figures at the end. A store that does not answer is asked again, more and more seldom.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping

from codechat.base.errors import UserError
from codechat.report.tracking import Ending, FinishedCell, TrackingError
from codechat.report.tracking.address import Address
from codechat.report.tracking.guard import Guard
from codechat.report.tracking.locks import lock
from codechat.report.tracking.runs import (
    PROCESS_TAG,
    PROGRESS,
    inherited_tags,
    log_params,
    runs_of,
    set_tags,
    tags_for,
    this_process,
)
from codechat.report.tracking.store import Store, configure, failures

FIRST_S = 1.0
"""A cell that has ended by then is not shown as running: loading MLflow would take longer than the cell."""
PAUSE_S, LONGEST_PAUSE_S, POINTS = 5.0, 60.0, 120
"""Between two points of a series. It grows after the first `POINTS`, so that a day leaves some 1,500."""
LONGEST_RETRY_S = 300.0
PATIENCE_S = 2.0
"""So long the end of a cell waits for a store that answers slowly; not at all for one that failed before."""


class LiveRun:
    """The run of a cell that runs. Its methods wait `PATIENCE_S` for the store at most, and raise nothing of it."""

    def __init__(
        self,
        address: Address,
        open_store: Callable[[FinishedCell], Store],
        cell: Callable[[], FinishedCell],
        progress: Callable[[], Mapping[str, float]],
        tell: Callable[[str], None],
    ) -> None:
        """Begin. All functions are called in the thread; `tell` gets a remark for the user, once if at all."""
        self._address, self._open_store, self._cell = address, open_store, cell
        self._progress, self._tell, self._told = progress, tell, False
        self._stopping, self._loaded = threading.Event(), threading.Event()
        self._failing = self._alone = False
        self._store: Store | None = None
        self._guard: Guard | None = None
        self._run_id = ""
        self._began, self._first_step = time.monotonic(), 0
        self._thread = threading.Thread(target=self._work, name="live run", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """The sessions have ended: log a last point, and no further one."""
        self._stopping.set()
        self._loaded.wait()  # two threads that import one library at once can get half of it
        self._thread.join(0 if self._failing or self._alone else PATIENCE_S)
        self._alone = self._thread.is_alive()

    def end(self, ending: Ending, *, known: bool = False) -> None:
        """The cell has ended so; `known` if the store knows it. If the store does not answer, the guard tries."""
        self.stop()
        if self._guard is None:
            return
        if known or not self._run_id or self._set(ending):
            self._guard.dismiss()
        else:
            self._guard.leave(ending)

    def leave(self, ending: Ending) -> None:
        """The cell has ended so, and the store just failed: the guard tries to tell it."""
        if self._guard is not None:
            self._guard.leave(ending)

    def _work(self) -> None:
        try:
            if self._stopping.wait(FIRST_S):
                return
            configure(self._address)
            import mlflow  # noqa: F401
        finally:
            self._loaded.set()
        retry = PAUSE_S
        while not self._alone:
            last = self._stopping.is_set()
            try:
                if self._run_id or (not last and self._begin()):
                    self._log()
                self._failing, retry = False, PAUSE_S
                pause = min(LONGEST_PAUSE_S, max(PAUSE_S, (time.monotonic() - self._began) / POINTS))
            except (TrackingError, UserError) as error:
                if not self._told:
                    self._told = True
                    self._tell(f"the cell goes on, but is not shown while it runs: {error}")
                if isinstance(error, UserError):
                    return
                self._failing = True
                pause = retry = min(LONGEST_RETRY_S, 2 * retry)
            if last or (self._stopping.wait(pause) and self._failing):
                return

    def _begin(self) -> bool:
        """Make the cell's run, or take it up again; whether there is one: the cell may end meanwhile."""
        with failures(self._address):
            cell = self._cell()
            self._store = self._store or self._open_store(cell)
            if self._stopping.is_set():
                return False
            self._guard = self._guard or Guard(self._address, self._store.experiment_id)
            with lock(self._address):
                self._run_id = self._take(self._store, cell)
        return True

    def _take(self, store: Store, cell: FinishedCell) -> str:
        found = runs_of(store, cell)
        inherited = inherited_tags(found)
        tags = {**tags_for(cell, inherited), PROCESS_TAG: this_process()}
        if found:
            run_id = str(found[0].info.run_id)
            if self._alone:
                return ""
            set_tags(store, run_id, tags, inherited)
            store.client.update_run(run_id, "RUNNING")
            key = f"{PROGRESS}sessions"
            if key in found[0].data.metrics:  # the run goes on after the progress that it has already
                self._first_step = 1 + max(int(point.step) for point in store.client.get_metric_history(run_id, key))
        else:
            run_id = str(store.client.create_run(store.experiment_id, tags=tags, run_name=cell.name).info.run_id)
            if self._alone:  # the cell has ended, and made its run itself
                store.client.delete_run(run_id)
                return ""
        log_params(store, run_id, found[0].data.params if found else {}, cell)
        return run_id

    def _log(self) -> None:
        from mlflow.entities import Metric

        assert self._store is not None
        now, step = int(time.time() * 1000), self._first_step + int(time.monotonic() - self._began)
        points = [Metric(PROGRESS + name, value, now, step) for name, value in self._progress().items()]
        with failures(self._address):
            self._store.client.log_batch(self._run_id, metrics=points)

    def _set(self, ending: Ending) -> bool:
        """Set the run's status; whether the store did so in time."""
        if self._alone or self._store is None:
            return False
        done, client = threading.Event(), self._store.client

        def work() -> None:
            with contextlib.suppress(TrackingError, UserError), failures(self._address):
                client.set_terminated(self._run_id, ending)
                done.set()

        thread = threading.Thread(target=work, name="end of a run", daemon=True)
        thread.start()
        thread.join(PATIENCE_S)
        return done.is_set()
