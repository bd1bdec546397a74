"""Scripts: one file, one interpreter, an exit status. What runs decides its own verdict; nothing is guarded."""

import os
from dataclasses import dataclass

from codechat.domain import Failure, Outcome, Verdict
from codechat.sandbox.follow import Ended
from codechat.sandbox.inside import wire
from codechat.sandbox.verdicts import ADDRESS, how_it_ended

SAID = 2000  # bytes of standard error that are kept, the last ones
SAID_LINES = 20


@dataclass(frozen=True)
class Script:
    """A file with its arguments for the interpreter, and what is unpacked beside it: the bytes of a tar archive.

    It runs in `folder`, below the working folder; `imports` are relative to that. `file_mb` bounds what it may write,
    the archive included. Where there is a `token`, which it finds as CODECHAT_TOKEN, it must also tell that.
    """

    source: str
    wall_s: float
    arguments: tuple[str, ...] = ("script.py",)
    archive: bytes = b""
    folder: str = "."
    imports: tuple[str, ...] = ()
    file_mb: int | None = None
    token: str = ""


class ScriptReader:
    """Reads one script's stream: the frame that it starts with, then its standard error."""

    def __init__(self) -> None:
        self._start = b""
        self._said = b""

    @property
    def started(self) -> bool:
        return self._start[:1] == wire.STARTED

    def read(self, data: bytes) -> tuple[bytes, bool]:
        missing = wire.HEADER.size - len(self._start)
        self._start += data[:missing]
        self._said = (self._said + data[missing:])[-SAID:]
        return b"", False

    def conclude(self, ended: Ended, script: Script, cpu_limit: int) -> Verdict:
        """Passed if the exit status is 0, and the token was told; the failure holds the end of standard error."""
        said = self._said.decode(errors="replace")
        told = script.token in said
        exception = "\n".join(ADDRESS.sub("0x…", said).strip().splitlines()[-SAID_LINES:]) or None
        if ended.why == "wall":
            return _verdict("timeout", f"it runs for longer than {script.wall_s:g} s", exception, ended)
        if ended.status == 0 and told:
            return Verdict("pass", True, None, round(ended.cpu_s, 4))
        if ended.status == 0:
            return _verdict("crash", "it ends before its tests do", exception, ended)
        if os.WIFEXITED(ended.status):
            return _verdict("fail", f"it ends with status {os.WEXITSTATUS(ended.status)}", exception, ended)
        return _verdict(*how_it_ended(ended, cpu_limit), exception, ended)


def _verdict(outcome: Outcome, reason: str, exception: str | None, ended: Ended) -> Verdict:
    return Verdict(outcome, False, Failure(reason, exception=exception), round(ended.cpu_s, 4))
