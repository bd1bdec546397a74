"""Says in the store how a cell ended whose own process cannot: because it was killed, or the store did not answer it.

A shell waits at a pipe for the cell's end, which costs nothing. Only a cell that ends without a word makes it start
Python: this module, run as a command, which marks the run. The pipe closes however the process ends; what ends the
whole machine, or a scheduler's kill of everything in a job, ends the guard too, and the run is put right by the next
start of the cell.
"""

import contextlib
import json
import subprocess
import sys
import threading

from codechat.base.environment import collect_seldom
from codechat.base.errors import UserError
from codechat.report.tracking import TrackingError
from codechat.report.tracking.address import Address
from codechat.report.tracking.locks import lock
from codechat.report.tracking.runs import PROCESS_TAG, this_process
from codechat.report.tracking.store import client_of, failures, prepare

SAID = "ended"
KILLED = "KILLED"
WAIT = f"""
trap '' HUP INT TERM
read -r run
read -r status || status={KILLED}
[ "$status" = {SAID} ] || printf '%s\\n%s\\n' "$run" "$status" | "$@"
"""
"""The address comes by the pipe: it may hold a password, and what stands in a command is seen by all."""


class Guard:
    """The process that waits for the end of a cell which this process shows."""

    def __init__(self, address: Address, experiment_id: str) -> None:
        """Raises `OSError` if it cannot be started."""
        command = [sys.executable, "-m", __spec__.name]
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", WAIT, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )
        self._say(json.dumps({"uri": address.client_uri, "experiment": experiment_id, "process": this_process()}))

    def dismiss(self) -> None:
        """The store knows how the cell ended."""
        self._say(SAID)
        self._process.communicate()

    def leave(self, status: str) -> None:
        """Let the guard try to tell the store; this process does not wait for it."""
        self._say(status)
        threading.Thread(target=self._process.communicate, name="guard of a run", daemon=True).start()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()


def mark(uri: str, experiment: str, process: str, status: str) -> None:
    """Give the runs that a process showed as running their final status. Raises `TrackingError` and `UserError`.

    A run that another process shows by now, since the cell was resumed, is left alone.
    """
    address = Address.of(uri)
    with failures(address):
        prepare(address)
        client = client_of(address)
        with lock(address):
            for run in client.search_runs([experiment], f"tags.`{PROCESS_TAG}` = '{process}'"):
                if run.info.status == "RUNNING":
                    client.set_terminated(run.info.run_id, status)


def main() -> None:
    """Read which runs, and their status; a store that still does not answer is left as it is."""
    runs, status = sys.stdin.read().splitlines()
    with collect_seldom(), contextlib.suppress(TrackingError, UserError):
        mark(**json.loads(runs), status=status)


if __name__ == "__main__":
    main()
