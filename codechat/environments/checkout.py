"""Bubblewrap over a private copy of the repository: no engine, no network, no build."""

import asyncio
import functools
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from codechat.config import result_option
from codechat.domain import Build, Output
from codechat.environment import PACKAGE
from codechat.environments import ENVIRONMENTS, Environment, Room
from codechat.environments.commits import unpacked
from codechat.environments.forked import Box
from codechat.environments.inside import furnish
from codechat.environments.limits import NOBODY, VARIABLES, Limits, Slot, Slots, Spent
from codechat.environments.resident import Resident
from codechat.errors import UserError
from codechat.tasks import Workspace

NO_BUILD = "environment=checkout builds nothing; environment=docker does"
SHOWN = ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/include")
LINKED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
ETC = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")


class CheckoutConfig(Limits):
    """Options of `checkout`."""

    kind: Literal["checkout"] = result_option("checkout", "a private copy of the repository, without an engine")


class Copy:
    """A room in a box of its own."""

    def __init__(self, limits: Limits, resident: Resident, slot: Slot) -> None:
        self._limits, self._resident, self._slot, self._spent = limits, resident, slot, Spent(limits)

    async def run(self, command: str) -> Output:
        output = await self._resident.run(command, self._limits, self._spent.next())
        self._spent.add(output.seconds)
        return output

    async def build(self, files: Mapping[str, str], dockerfile: str | None) -> Build:
        return Build(False, NO_BUILD)

    async def aclose(self) -> None:
        try:
            await self._resident.aclose()
        finally:
            self._slot.free()


class Checkout:
    """Opens rooms over unpacked commits. `overlay=False` copies a commit into its room even if layers can be had."""

    commands, builds = True, False

    def __init__(self, limits: Limits, *, overlay: bool = True) -> None:
        self._limits, self._slots, self._overlay = limits, Slots(limits.max_rooms), overlay
        self._owner = NOBODY if os.getuid() == 0 else None
        program = shutil.which("bwrap")
        if program is None:
            raise UserError(
                "environment=checkout needs the program bwrap, which is not installed",
                "install the package 'bubblewrap', or choose environment=none or docker",
            )
        self._program, self._python = program, _Interpreter()
        self._boxes: dict[Path, Box] = {}  # by the folder of the commits that they show

    async def check(self) -> None:
        """The program was looked for when this was made."""

    async def open(self, workspace: Workspace) -> Room:
        slot = await self._slots.take()
        try:
            lower = await slot.holding(unpacked, workspace, self._owner)
            resident = await self._box(lower.parent).open(self._config(lower))
        except BaseException:
            slot.free()
            raise
        return Copy(self._limits, resident, slot)

    async def aclose(self) -> None:
        for box in self._boxes.values():
            await asyncio.to_thread(box.close)

    def _box(self, commits: Path) -> Box:
        """The box of all rooms. It shows every unpacked commit; a room covers them once it has taken its own."""
        if commits not in self._boxes:
            if self._owner is not None:
                commits.chmod(0o755)  # for the user that rooms become
            self._boxes[commits] = Box(functools.partial(self._command, commits), "/harness")
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
        words = [self._program, "--unshare-ipc", "--unshare-net", "--unshare-pid", "--unshare-uts", "--clearenv"]
        words += ["--hostname", "room"]
        if self._owner is None:
            words += ["--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
        else:  # a room's process becomes another user, which its own namespaces then show as one of theirs
            words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        binds = [*_system(), *python.binds, (str(commits), furnish.LOWER)]
        binds += [(str(PACKAGE / room / "inside"), f"/harness/{room}/inside") for room in ("sandbox", "environments")]
        binds += [(str(PACKAGE / "environments" / "etc" / name), f"/etc/{name}") for name in ("passwd", "group")]
        binds += [(str(PACKAGE / "sandbox" / "etc" / name), f"/etc/{name}") for name in ("hosts", "nsswitch.conf")]
        parents = {str(parent) for _, place in binds for parent in Path(place).parents if str(parent) != "/"}
        made = (furnish.ROOM, furnish.PARENT, "/home", furnish.HOME, "/tmp", "/var", "/var/tmp")
        for folder in (*sorted(parents), *made):
            words += ["--perms", "0755", "--dir", folder]
        for source, place in binds:
            words += ["--ro-bind", source, place]
        for link in LINKED:
            if Path(link).is_symlink():
                words += ["--symlink", str(Path(link).readlink()), link]
        for source, place in binds:
            if PACKAGE.is_relative_to(source):  # the embedded datasets hold their own answers
                words += ["--tmpfs", str(Path(place) / PACKAGE.relative_to(source))]
        words += [
            "--bind",
            "/proc",
            "/proc",
            "--dev",
            "/dev",
            "--remount-ro",
            "/dev",
            "--remount-ro",
            "/",
            "--chdir",
            "/",
        ]
        words += ["--setenv", "LD_LIBRARY_PATH", f"{python.base}/lib", "--", python.program, *arguments]
        return words


class _Interpreter:
    """The interpreter of the resident process as its box shows it: commands find it only if it is the system's."""

    def __init__(self) -> None:
        base = Path(sys.base_prefix).resolve()
        real = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
        system = base == Path("/usr")
        self.base = "/usr" if system else "/python"
        self.binds = [] if system else [(str(base), self.base)]
        self.hidden = [] if system else [self.base]
        self.program = str(real) if system else f"{self.base}/{real.relative_to(base)}"


def _system() -> Iterator[tuple[str, str]]:
    """The system's programs and libraries, without what is installed beside them in /usr/local."""
    for folder in (*SHOWN, *LINKED, *ETC):
        if Path(folder).exists() and not (folder in LINKED and Path(folder).is_symlink()):
            yield folder, folder


@ENVIRONMENTS.register("checkout", CheckoutConfig)
def checkout(config: CheckoutConfig) -> Environment:
    """Bubblewrap over a private copy of the repository at its commit: no engine, no network, no build."""
    return Checkout(config)
