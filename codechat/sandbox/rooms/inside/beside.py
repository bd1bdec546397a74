"""Commands of a worktree without namespaces: they run among the other processes of the machine.

Landlock and a supervisor confine them to a folder, which is shown as /workspace/repository.
"""

# No pathlib: every module loaded here is memory that each command's process copies.
# ruff: noqa: PTH102, PTH106, PTH115, PTH123, PTH208

import contextlib
import os
import re
import resource
import select
import shutil
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from codechat.sandbox.inside import isolate
from codechat.sandbox.inside.beside import Ruleset, allow_reading, clear, landlock_version, used
from codechat.sandbox.inside.supervise import INITS, Supervisor, descendants
from codechat.sandbox.rooms.inside.furnish import HOME, REPOSITORY

DISK_S, SHARE = 0.5, 10  # minimum time between two measurements of the files, also as a multiple of a measurement's
ASKER = 9  # the descriptor of the socket to the resident process, until the shell begins
QUEUE, PIPE = 2 * 212992, 2 << 12  # bytes that a socket may hold, and any other file, which may be a pipe
NO_END = 1 << 62


class HeadAndTail:
    """The first and the last `size` bytes of an output, and its `total` of bytes."""

    def __init__(self, size: int) -> None:
        self._size, self.total = size, 0
        self.head, self.tail = bytearray(), bytearray()

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total += len(data)
        free = self._size - len(self.head)
        self.head += data[:free]
        self.tail += data[max(free, len(data) - self._size) :] if free < len(data) else b""
        if len(self.tail) > self._size:
            del self.tail[: -self._size]


class Beside:
    """Confines the commands of one worktree, whose folder is `own`, and watches them."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Copy the commit `lower` there, and become its user. Raises `OSError`."""
        self._config, self._own = config, str(config["own"])
        self.limits = {resource.RLIMIT_FSIZE: config["disk"]}
        shutil.copytree(config["lower"], f"{self._own}/repository", symlinks=True)
        for name in ("home", "tmp"):
            os.mkdir(f"{self._own}/{name}")
        if config["uid"] is not None:
            for place, folders, files in os.walk(self._own):
                for name in (".", *folders, *files):
                    os.chown(f"{place}/{name}", config["uid"], config["uid"], follow_symlinks=False)
            isolate.drop_user(config["uid"])
        isolate.lock_down()
        isolate.open_more_files()
        own = [f"{self._own}/{name}" for name in ("repository", "home", "tmp")]
        self._ruleset = Ruleset(own, landlock_version())
        allow_reading([self._ruleset], config["visible"], config["cover"])
        self._supervisor: Supervisor | None = None
        self._before = used(self._own, NO_END)  # bytes that the commit's own files take
        self._disk_at = 0.0
        names = {REPOSITORY: "repository", HOME: "home", "/tmp": "tmp"}
        self._names = {shown.encode(): f"{self._own}/{name}".encode() for shown, name in names.items()}
        self._named = re.compile(rb"(?<![^\s\"'=:(<>|&;])(" + b"|".join(self._names) + rb")(?![\w.-])")
        isolate.filter_of("landlock")  # before any fork

    def begin(self) -> None:
        """Before a command's process is forked."""
        self._asker, self._asking = socket.socketpair()

    def forked(self) -> None:
        """After it was forked."""
        self._asking.close()

    def become_shell(self, shell: Callable[[int], tuple[str, list[Any]]], limits: Mapping[int, int]) -> NoReturn:
        """For the forked process: wait for the command, by `shell`, and become its shell. Raises `OSError`."""
        os.chdir(f"{self._own}/repository")
        self._ruleset.restrict()
        os.dup2(self._asking.detach(), ASKER, inheritable=False)
        program, arguments = shell(ASKER)
        own = dict(limits)
        open_files = own.pop(resource.RLIMIT_NOFILE)
        isolate.renounce(own, "landlock")
        environment = {**self._config["environment"], "HOME": f"{self._own}/home", "TMPDIR": f"{self._own}/tmp"}
        environment["GIT_CONFIG_NOSYSTEM"] = "1"  # git fails if it may not read /etc/gitconfig
        isolate.be_supervised("landlock", socket.socket(fileno=ASKER), b"L", open_files, reaps=False)
        os.execve(program, arguments, environment)

    def register(self, poll: "select.poll") -> None:
        """Add the command's listener to the poll."""
        self._poll = poll
        poll.register(self._asker, select.POLLIN)

    def handle(self, ready: int, event: int) -> bool:
        """Receive the listener, or answer a call. Returns whether the descriptor was for either."""
        if self._supervisor is not None and ready == self._supervisor.listener:
            if event & select.POLLIN:
                self._supervisor.answer()
            else:  # its last process is gone
                self._poll.unregister(ready)
            return True
        if ready != self._asker.fileno():
            return False
        self._poll.unregister(ready)
        handles = socket.recv_fds(self._asker, 1, 1)[1]
        if handles:  # else it ended before
            processes = self._config["processes"] + INITS
            self._supervisor = Supervisor(handles[0], None, [], processes, self._own)
            self._poll.register(handles[0], select.POLLIN)
        return True

    def over(self) -> str:
        """The limit that the command's processes exceed: "memory", "disk", or none."""
        if sum(memory_of(pid) + _held(pid) for pid in descendants()) > self._config["memory"]:
            return "memory"
        began = time.monotonic()
        if began < self._disk_at:
            return ""
        full = used(self._own, NO_END) - self._before > self._config["disk"]
        now = time.monotonic()
        self._disk_at = now + max(DISK_S, SHARE * (now - began))
        return "disk" if full else ""

    def end(self, status: int) -> int:
        """End all processes of the command. Returns its exit status, as an init process would."""
        self._asker.close()
        if self._supervisor is not None:
            os.close(self._supervisor.listener)
            self._supervisor = None
        isolate.sweep()
        return status if status >= 0 else 128 - status

    def leave(self) -> None:
        """End all remaining processes, and remove the worktree's files, since the parent is gone."""
        self.end(0)
        clear(self._own)
        with contextlib.suppress(OSError):  # the folder above belongs to the parent's user
            os.rmdir(self._own)

    def as_here(self, command: bytes) -> bytes:
        """A command with the real paths of the worktree."""
        return self._named.sub(lambda found: self._names[found[1]], command)

    def as_elsewhere(self, output: HeadAndTail) -> None:
        """Show the paths of an output as every worktree shows them."""
        missing = output.total - len(output.head) - len(output.tail)
        for shown, real in self._names.items():
            output.head, output.tail = output.head.replace(real, shown), output.tail.replace(real, shown)
        output.total = missing + len(output.head) + len(output.tail)


def memory_of(pid: int) -> int:
    """The bytes of a process with its page tables, without pages of files; 0 if it has ended."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/status", "rb") as stream:
        lines = (line for line in stream if line.startswith((b"RssAnon:", b"RssShmem:", b"VmPTE:")))
        return sum(int(line.split()[1]) << 10 for line in lines)
    return 0


def _held(pid: int) -> int:
    """The bytes that a process's descriptors may hold."""
    total = 0
    with contextlib.suppress(OSError):
        for handle in os.listdir(f"/proc/{pid}/fd"):
            total += QUEUE if os.readlink(f"/proc/{pid}/fd/{handle}").startswith("socket:") else PIPE
    return total
