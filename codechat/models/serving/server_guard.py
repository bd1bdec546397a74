"""Runs a server in a process group of its own, and ends all of it once no process of codechat uses it any more.

Started as a script: `python -I -S server_guard.py GRACE_S USERS COMMAND...`. The folder USERS has a file for each
process that uses the server, named after the process and its beginning, so that one that was killed does not count.
SIGUSR2 asks to end too. Imports nothing but the standard library.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LOOK_S = 0.1
END = signal.SIGUSR2


def main(grace_s: float, users: Path, command: list[str]) -> int:
    """Run the command until it ends or has no user; returns its exit status."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # codechat decides when the server ends
    asked: list[int] = []
    signal.signal(END, lambda number, _: asked.append(number))
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what leaves the group comes back here when its parent ends
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: prepare(libc),  # noqa: PLW1509  there is one thread
    )
    while server.poll() is None and not asked and is_used(users):
        time.sleep(LOOK_S)
    end(server, grace_s)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def prepare(libc: ctypes.CDLL) -> None:
    """In the server's process: signals as usual, and an end with the guard."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def user_name(process: int) -> str:
    """The name of a process among the users of a server: its number and beginning, since numbers are given again.

    Empty if there is none under this number, or it has ended.
    """
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else f"{process}-{fields[19]}"


def is_used(users: Path) -> bool:
    """Whether a process that has not ended uses a server."""
    names = [path.name for path in users.iterdir()] if users.is_dir() else []
    return any(user_name(int(name.partition("-")[0])) == name for name in names)


def end(server: "subprocess.Popen[bytes]", grace_s: float) -> None:
    """End the server and everything that it started: asked at first, then by force."""
    deadline = time.monotonic() + grace_s
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, signal.SIGTERM)
    asked: set[int] = {server.pid}
    while server.poll() is None or children():
        for process in children():  # also of those that come here as their parents end
            if process != server.pid and not user_name(process):  # it has ended; the server is left to its `Popen`
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process, os.WNOHANG)
        late = time.monotonic() > deadline
        if late:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(server.pid, signal.SIGKILL)
        for process in set(children()) - (set() if late else asked):
            asked.add(process)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL if late else signal.SIGTERM)
        time.sleep(0.02)


def children() -> list[int]:
    """The children of this process."""
    me = os.getpid()
    return [int(child) for child in Path(f"/proc/{me}/task/{me}/children").read_text(encoding="ascii").split()]


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
