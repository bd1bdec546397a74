"""Runs a server in a process group of its own, and ends all of it once codechat is gone, however that ended.

Started as a script: `python -I -S server_guard.py GRACE_S COMMAND...`, with a pipe from codechat as standard input.
The pipe closes when codechat dies, also by SIGKILL; SIGUSR2 asks to end too, since another process may hold a copy of
the pipe. Imports nothing but the standard library.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LOOK_S = 0.5
"""Between two looks at whether codechat is still the parent, for the same reason."""
END = signal.SIGUSR2


def main(grace_s: float, command: list[str]) -> int:
    """Run the command until it ends or codechat does; returns its exit status."""
    owner = os.getppid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # codechat decides when the server ends
    signalled, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(END, lambda *_: None)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what leaves the group comes back here when its parent ends
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: prepare(libc),  # noqa: PLW1509  there is one thread
    )
    ended = os.pidfd_open(server.pid)
    while os.getppid() == owner:
        ready, _, _ = select.select([0, ended, signalled], [], [], LOOK_S)
        if ready:
            break
    end(server, grace_s)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def prepare(libc: ctypes.CDLL) -> None:
    """In the server's process: signals as usual, and an end with the guard."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def end(server: "subprocess.Popen[bytes]", grace_s: float) -> None:
    """End the server and everything that it started: asked at first, then by force."""
    deadline = time.monotonic() + grace_s
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, signal.SIGTERM)
    asked: set[int] = {server.pid}
    while server.poll() is None or running_children():
        reap(server.pid)
        late = time.monotonic() > deadline
        if late:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(server.pid, signal.SIGKILL)
        # also those that come here as their parents end
        for process in set(running_children()) - (set() if late else asked):
            asked.add(process)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL if late else signal.SIGTERM)
        time.sleep(0.02)


def running_children() -> list[int]:
    """The children of this process that have not ended."""
    me = os.getpid()
    children = Path(f"/proc/{me}/task/{me}/children").read_text(encoding="ascii").split()
    return [int(child) for child in children if not is_zombie(int(child))]


def is_zombie(process: int) -> bool:
    """Whether a process has ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
    except OSError:
        return True
    return state.split()[0] == "Z"


def reap(server: int) -> None:
    """Take notice of ended processes that came here; the server itself is left to its `Popen`."""
    me = os.getpid()
    for child in Path(f"/proc/{me}/task/{me}/children").read_text(encoding="ascii").split():
        if int(child) != server and is_zombie(int(child)):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(int(child), os.WNOHANG)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
