"""One server's process, under a guard that ends it with codechat."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from codechat.errors import UserError
from codechat.serving import guard

GRACE_S = 5.0
"""A server that is asked to end may take so long before it is killed."""


class ServerProcess:
    """A started server. `log` has what it writes, after what earlier ones under the same name wrote."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        """Start it. Raises `UserError` if the log cannot be written or the program not run."""
        self.log, self.began = log, time.monotonic()
        words = [sys.executable, "-I", "-S", str(guard.__file__), str(GRACE_S), *command]
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as stream:
                self._start = stream.tell()
                self._guard = subprocess.Popen(
                    words, stdin=subprocess.PIPE, stdout=stream, stderr=stream, env=environment, start_new_session=True
                )
        except OSError as error:
            raise UserError(f"cannot start {command[0]}: {error}", "runs_dir must be writable") from error

    @property
    def guard(self) -> int:
        """The process that watches the server."""
        return self._guard.pid

    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._guard.poll()

    def said(self) -> str:
        """What this process wrote so far."""
        with contextlib.suppress(OSError), self.log.open("rb") as stream:
            stream.seek(self._start)
            return stream.read().decode("utf-8", "replace")
        return ""

    def ask_to_end(self) -> None:
        """Tell the guard to end the server; `stop` waits for it."""
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        if self.status() is None:
            self._guard.send_signal(guard.END)

    def stop(self) -> None:
        """End the server and all that it started; returns once they are gone."""
        self.ask_to_end()
        try:
            self._guard.wait(2 * GRACE_S)
        except subprocess.TimeoutExpired:
            self._guard.kill()  # the server goes with its guard
            self._guard.wait()
