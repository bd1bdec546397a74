"""Bubblewrap over a private copy of the repository: no engine, no network, no build."""

import asyncio
import functools
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Literal

from codechat.base.config import result_option
from codechat.base.domain import Build
from codechat.base.environment import cache_root
from codechat.base.errors import InfrastructureError, UserError
from codechat.datasets.tasks import Workspace
from codechat.sandbox.bubblewrap import programs
from codechat.sandbox.inside.beside import landlock_version
from codechat.sandbox.interpreters import libraries_at
from codechat.sandbox.process import another_user
from codechat.studies.cab.environments import ENVIRONMENTS, Environment, Worktree
from codechat.studies.cab.environments.inside import furnish
from codechat.studies.cab.environments.limits import NOBODY, VARIABLES, Limits, Slot, Slots
from codechat.studies.cab.environments.resident import (
    CODE,
    HIDDEN,
    START_S,
    STOP_S,
    Resident,
    ResidentWorktree,
    boot,
    errors_tail,
    popen,
)

GONE = -1


class Forked:
    """A worktree's process, which is no child of this one. When it has ended, so has everything in its worktree."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; its status is not known here. Raises `subprocess.TimeoutExpired`."""
        if self._handle != GONE:
            poll = select.poll()
            poll.register(self._handle, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("a room", timeout or 0)
            os.close(self._handle)
            self._handle = GONE
        return 0

    def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)


class ForkingBox:
    """A process in a box, out of which worktrees are forked: started for the first one, and again if it is gone."""

    def __init__(self, command: Callable[[list[str]], list[str]], root: str) -> None:
        self._command, self._root = command, root
        self._asking = threading.Lock()
        self._started: tuple[subprocess.Popen[bytes], socket.socket, IO[bytes]] | None = None

    async def open(self, config: Mapping[str, Any]) -> Resident:
        """A worktree, furnished. Raises `InfrastructureError` with its error output."""
        errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the worktree
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            with theirs:
                process = await asyncio.to_thread(self._fork, theirs.fileno(), errors.fileno())
        except BaseException:
            ours.close()
            errors.close()
            raise
        return await Resident.furnished(process, ours, errors, config)

    def _fork(self, control: int, errors: int) -> Forked:
        """Ask for a worktree; ask another process if the one that was started is gone."""
        with self._asking:
            for _ in range(2):
                self._started = self._started or self._start()
                if (worktree := self._ask(control, errors)) is not None:
                    return worktree
                last_words = self._end()
        raise InfrastructureError(f"no room can be started: {last_words}")

    def _ask(self, control: int, errors: int) -> Forked | None:
        """A worktree, None if the process is gone: bubblewrap then ends, but keeps the socket for open worktrees."""
        assert self._started is not None
        process, asking, _ = self._started
        with suppress(OSError):
            socket.send_fds(asking, [b"r"], [control, errors])
            for _ in range(int(START_S)):
                if process.poll() is not None:
                    return None
                with suppress(TimeoutError):
                    handles = socket.recv_fds(asking, 1, 1)[1]
                    return Forked(handles[0]) if handles else None
        return None

    def _start(self) -> tuple["subprocess.Popen[bytes]", socket.socket, IO[bytes]]:
        errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `_end`
        ours, theirs = socket.socketpair()
        ours.settimeout(1)
        with theirs:
            return popen(self._command(boot("fork", root=self._root)), theirs.fileno(), errors), ours, errors

    def _end(self) -> str:
        """End the process, without which open worktrees go on; the end of its error output."""
        if self._started is None:
            return ""
        (process, control, errors), self._started = self._started, None
        control.close()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with errors:
            return errors_tail(errors)

    def close(self) -> None:
        """End the process; worktrees are closed by their sessions."""
        with self._asking:
            self._end()


FURTHER = "import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0"
NO_BUILD = "environment=checkout builds nothing; environment=docker does"
SHOWN = ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/include")
LINKED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
ETC = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")


class CheckoutConfig(Limits):
    """Options of `checkout`."""

    kind: Literal["checkout"] = result_option("checkout", "a private copy of the repository, without an engine")


class Checkout:
    """Opens worktrees over unpacked commits. `overlay=False` copies a commit even if layers can be had.

    `slots` are those of another environment, if the worktrees of both are counted together.
    """

    commands, builds = True, False

    def __init__(self, limits: Limits, *, overlay: bool = True, slots: Slots | None = None) -> None:
        self._limits, self._slots, self._overlay = limits, slots or Slots(limits.max_rooms), overlay
        self._owner = another_user()
        self._program = next(filter(_works, programs()), None)
        if self._program is None and landlock_version() < 1:
            raise UserError(
                "environment=checkout needs bubblewrap with user namespaces, or Landlock, and neither works here",
                "install the package 'bubblewrap', or choose environment=none or docker",
            )
        self._python = _Interpreter()
        self._boxes: dict[Path, ForkingBox] = {}  # by the folder of the commits that they show

    async def check(self) -> None:
        """The program was looked for when this was made."""

    async def open(self, workspace: Workspace) -> Worktree:
        slot = await self._slots.take()
        try:
            if self._program is None:
                return await self._open_beside(workspace, slot)
            lower = await slot.hold(workspace, self._owner)
            resident = await self._box(lower.parent).open(self._config(lower))
        except BaseException:
            slot.free()
            raise
        return ResidentWorktree(self._limits, resident, slot, lambda *_: Build(False, NO_BUILD))

    async def _open_beside(self, workspace: Workspace, slot: Slot) -> Worktree:
        """A worktree in a folder of its own, confined by Landlock."""
        lower = await slot.hold(workspace, None)
        config = {
            **self._limits.inside(),
            "lower": str(lower),
            "own": str(slot.make_folder()),
            "uid": self._owner,
            "visible": [*SHOWN, *LINKED, *ETC],
            "cover": [*HIDDEN, str(cache_root())],
            "environment": VARIABLES,
        }
        arguments = [sys.executable, *boot("main", "''")]
        errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the worktree
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            process = await asyncio.to_thread(popen, arguments, theirs.fileno(), errors)
        resident = await Resident.furnished(process, ours, errors, config)
        return ResidentWorktree(self._limits, resident, slot, lambda *_: Build(False, NO_BUILD))

    async def aclose(self) -> None:
        for box in self._boxes.values():
            await asyncio.to_thread(box.close)

    def _box(self, commits: Path) -> ForkingBox:
        """The box of all worktrees. It shows every unpacked commit; a worktree covers them once it has its own."""
        if commits not in self._boxes:
            if self._owner is not None:
                commits.chmod(0o755)  # for the user that worktrees become
            self._boxes[commits] = ForkingBox(functools.partial(self._command, commits), "/harness")
        return self._boxes[commits]

    def _config(self, lower: Path) -> dict[str, Any]:
        return {
            **self._limits.inside(),
            "lower": f"{furnish.LOWER}/{lower.name}",
            "uid": self._owner,
            "overlay": self._overlay,
            "shares_devices": True,
            "cover": [furnish.LOWER, "/harness", *self._python.hidden],
            "root": furnish.REPOSITORY,
            "environment": VARIABLES,
        }

    def _command(self, commits: Path, arguments: list[str]) -> list[str]:
        python = self._python
        words = [str(self._program), "--unshare-ipc", "--unshare-net", "--unshare-pid", "--unshare-uts", "--clearenv"]
        words += ["--hostname", "room"]
        if self._owner is None:
            words += ["--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
        else:  # a worktree's process becomes another user, which its own namespaces then show as one of theirs
            words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        # the system's programs and libraries, without what is installed beside them in /usr/local
        there = [each for each in (*SHOWN, *LINKED, *ETC) if Path(each).exists()]
        binds = [(each, each) for each in there if each not in LINKED or not Path(each).is_symlink()]
        binds += [*python.binds, (str(commits), furnish.LOWER)]
        binds += [(str(folder / "inside"), f"/harness/{part}/inside") for part, folder in CODE.items()]
        binds += [(str(CODE["environments"] / "etc" / name), f"/etc/{name}") for name in ("passwd", "group")]
        binds += [(str(CODE["sandbox"] / "etc" / name), f"/etc/{name}") for name in ("hosts", "nsswitch.conf")]
        parents = {str(parent) for _, place in binds for parent in Path(place).parents if str(parent) != "/"}
        made = (furnish.WRITABLE, furnish.PARENT, "/home", furnish.HOME, "/tmp", "/var", "/var/tmp")
        for folder in (*sorted(parents), *made):
            words += ["--perms", "0755", "--dir", folder]
        for source, place in binds:
            words += ["--ro-bind", source, place]
        for link in LINKED:
            if Path(link).is_symlink():
                words += ["--symlink", str(Path(link).readlink()), link]
        for source, place in binds:
            for hidden in map(Path, HIDDEN):
                if hidden.is_relative_to(source):
                    words += ["--tmpfs", str(Path(place) / hidden.relative_to(source))]
        words += ["--bind", "/proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
        words += ["--remount-ro", "/", "--chdir", "/"]
        words += ["--setenv", "LD_LIBRARY_PATH", f"{python.base}/lib", "--", python.program, *arguments]
        return words


def _works(program: str) -> bool:
    """Whether bubblewrap is granted namespaces, and what it starts a further one, as a worktree needs."""
    words = [program, "--unshare-all", "--ro-bind", "/", "/", "--", sys.executable, "-S", "-c", FURTHER]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


class _Interpreter:
    """The interpreter of the resident process as its box shows it: commands find it only if it is the system's."""

    def __init__(self) -> None:
        own = libraries_at(None)
        system = own.base == Path("/usr")
        self.base = "/usr" if system else "/python"
        self.binds = [] if system else [(str(own.base), self.base), *((folder, folder) for folder in own.linked)]
        self.hidden = [] if system else [self.base, *own.linked]
        self.program = own.program if system else f"{self.base}/{Path(own.program).relative_to(own.base)}"


@ENVIRONMENTS.register("checkout", CheckoutConfig)
def checkout(config: CheckoutConfig) -> Environment:
    """Bubblewrap over a private copy of the repository at its commit: no engine, no network, no build."""
    return Checkout(config)
