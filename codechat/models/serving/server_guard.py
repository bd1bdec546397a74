"""Runs a server in a new process group, and ends all its processes when no process of codechat uses it any more.

Started as a script: `python -I -S server_guard.py GRACE_S USERS COMMAND...`. The folder USERS has a file for each
process that uses the server, named by process id and start time, so that a killed process does not count. SIGUSR2 ends
the server too. Imports the standard library alone.
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
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans that left the group become children of this process
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
    """In the server's process: restore signals, and end together with the guard."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def user_name(process: int) -> str:
    """A process's file name in USERS: id and start time, since ids are reused. Empty if the process has ended.

    Both are known from the fork on; the command line of a new process is empty for a while.
    """
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else f"{process}-{fields[19]}"


def process_of(name: str) -> int:
    """The process id in a name of `user_name`."""
    return int(name.partition("-")[0])


def is_running(name: str) -> bool:
    """Whether the process of a name (`user_name`) runs; another process may have its id by now."""
    return bool(name) and user_name(process_of(name)) == name


def is_used(users: Path) -> bool:
    """Whether a running process uses the server."""
    return users.is_dir() and any(is_running(path.name) for path in users.iterdir())


def end(server: "subprocess.Popen[bytes]", grace_s: float) -> None:
    """End the server and all its processes: by SIGTERM, after `grace_s` by SIGKILL."""
    deadline = time.monotonic() + grace_s
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, signal.SIGTERM)
    asked: set[int] = {server.pid}
    while server.poll() is None or children():
        for process in children():  # orphans included
            if process != server.pid and not user_name(process):  # has ended; `Popen` reaps the server
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
    me = os.getpid()
    return [int(child) for child in Path(f"/proc/{me}/task/{me}/children").read_text(encoding="ascii").split()]


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
