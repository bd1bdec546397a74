"""Bubblewrap over a private copy of the repository: no engine, no network, no build."""

import asyncio
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from codechat.base.config import result_option
from codechat.base.domain import Build
from codechat.base.environment import cache_root
from codechat.base.errors import UserError
from codechat.datasets.tasks import Workspace
from codechat.sandbox import NAMESPACES
from codechat.sandbox.bubblewrap import programs
from codechat.sandbox.inside.beside import clear, landlock_version
from codechat.sandbox.interpreters import libraries_at
from codechat.sandbox.process import another_user
from codechat.studies.cab.environments import ENVIRONMENTS, Environment, Worktree
from codechat.studies.cab.environments.commits import hold_commit
from codechat.studies.cab.environments.inside import furnish
from codechat.studies.cab.environments.resident import (
    CODE,
    HIDDEN,
    UNPRIVILEGED,
    VARIABLES,
    Limits,
    Resident,
    ResidentWorktree,
    boot,
)

FURTHER = "import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0"
NO_BUILD = Build(False, "environment=checkout builds nothing; environment=docker does")
SHOWN = ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/include")
LINKED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
ETC = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")


class CheckoutConfig(Limits):
    kind: Literal["checkout"] = result_option("checkout", "a private copy of the repository, without an engine")


class Checkout:
    """Opens worktrees over unpacked commits. `overlay=False` copies a commit even if layers are available.

    `free` counts the worktrees that may still be opened, if they are counted together with another environment's.
    """

    commands, builds = True, False

    def __init__(self, limits: Limits, *, overlay: bool = True, free: asyncio.Semaphore | None = None) -> None:
        self._limits, self._overlay = limits, overlay
        self._free = free or asyncio.Semaphore(limits.max_rooms)
        self._owner = another_user()
        self._program = next(filter(_works, programs()), None)
        if self._program is None and landlock_version() < 1:
            raise UserError(
                "environment=checkout needs bubblewrap with user namespaces, or Landlock, and neither works here",
                f"{NAMESPACES} for bubblewrap, which has to be installed, or choose environment=none or docker",
            )
        self._python = _Interpreter()

    async def check(self) -> None:
        """The constructor has checked the program."""

    async def open(self, workspace: Workspace) -> Worktree:
        await self._free.acquire()
        with ExitStack() as held:
            held.callback(self._free.release)
            if self._program is None:
                lower = await hold_commit(held, workspace, None)
                command, config = [sys.executable, *boot("")], self._beside(lower, _own_folder(held))
            else:
                lower = await hold_commit(held, workspace, self._owner)
                command, config = self._command(lower), self._in_box()
            resident = await Resident.start(command, {**self._limits.inside(), **config, "environment": VARIABLES})
            return ResidentWorktree(self._limits, resident, held.pop_all(), lambda *_: NO_BUILD)

    async def aclose(self) -> None:
        """Nothing to close."""

    def _beside(self, lower: Path, own: Path) -> dict[str, Any]:
        """The options of a worktree in the folder `own`, confined by Landlock."""
        visible, cover = [*SHOWN, *LINKED, *ETC], [*HIDDEN, str(cache_root())]
        return {"lower": str(lower), "own": str(own), "uid": self._owner, "visible": visible, "cover": cover}

    def _in_box(self) -> dict[str, Any]:
        return {
            "lower": furnish.LOWER,
            "uid": self._owner,
            "overlay": self._overlay,
            "cover": [furnish.LOWER, "/harness", *self._python.hidden],
            "root": furnish.REPOSITORY,
        }

    def _command(self, lower: Path) -> list[str]:
        """The command of a resident process in a box with the commit `lower`, which the worktree then covers."""
        python = self._python
        words = [str(self._program), "--unshare-ipc", "--unshare-net", "--unshare-pid", "--unshare-uts", "--clearenv"]
        words += ["--hostname", "room"]
        if self._owner is None:
            words += ["--unshare-user", "--uid", str(UNPRIVILEGED), "--gid", str(UNPRIVILEGED)]
        else:  # the process becomes another user, which its own namespaces then show as one of theirs
            words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        # the system's programs and libraries, without those in /usr/local
        there = [each for each in (*SHOWN, *LINKED, *ETC) if Path(each).exists()]
        binds = [(each, each) for each in there if each not in LINKED or not Path(each).is_symlink()]
        binds += [*python.binds, (str(lower), furnish.LOWER)]
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
        words += ["--remount-ro", "/", "--chdir", "/", "--setenv", "LD_LIBRARY_PATH", f"{python.base}/lib"]
        return [*words, "--", python.program, *boot("", root="/harness")]


def _own_folder(held: ExitStack) -> Path:
    """An empty folder that ends with the worktree."""
    folder = Path(tempfile.mkdtemp(prefix="codechat-room-")).resolve()

    def remove() -> None:
        if folder.exists():
            clear(str(folder))
            folder.rmdir()

    held.callback(remove)
    return folder


def _works(program: str) -> bool:
    """Whether bubblewrap, and a process that it starts, may make namespaces: a worktree needs both."""
    words = [program, "--unshare-all", "--ro-bind", "/", "/", "--", sys.executable, "-S", "-c", FURTHER]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


class _Interpreter:
    """The interpreter of the resident process as its box shows it. Commands find only the system's own."""

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
