"""Rooms in bubblewrap: the system's programs, what is to be shown, and nothing else of the machine."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from codechat.sandbox.bubblewrap import programs
from codechat.sandbox.command import places
from codechat.sandbox.interpreters import libraries_at
from codechat.sandbox.process import another_user
from codechat.sandbox.rooms import CODE, HIDDEN, UNPRIVILEGED, boot
from codechat.sandbox.rooms.inside import furnish

FURTHER = "import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0"
SHOWN = ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/include")
LINKED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
ETC = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")


class Box:
    """Bubblewrap on this machine, for rooms of the user `owner`."""

    def __init__(self, program: str) -> None:
        self._program, self.owner, self.python = program, another_user(), _Interpreter()

    @classmethod
    def here(cls) -> "Box | None":
        """The box if bubblewrap works here."""
        program = next(filter(works, programs()), None)
        return None if program is None else cls(program)

    def options(self, *, overlay: bool, hides_python: bool = True) -> dict[str, Any]:
        """The resident process's options. `hides_python`: commands find only the system's own interpreter."""
        return {
            "lower": furnish.LOWER,
            "uid": self.owner,
            "overlay": overlay,
            "cover": [furnish.LOWER, "/harness", *(self.python.hidden if hides_python else ())],
            "root": furnish.REPOSITORY,
        }

    def command(self, lower: Path, shown: Iterable[str] = ()) -> list[str]:
        """The command of a resident process in a box with the folder `lower`, which the room then covers.

        The paths `shown` are visible, read-only.
        """
        python = self.python
        words = [self._program, "--unshare-ipc", "--unshare-net", "--unshare-pid", "--unshare-uts", "--clearenv"]
        words += ["--hostname", "room"]
        if self.owner is None:
            words += ["--unshare-user", "--uid", str(UNPRIVILEGED), "--gid", str(UNPRIVILEGED)]
        else:  # the process becomes another user, which its own namespaces then show as one of theirs
            words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        # the system's programs and libraries, without those in /usr/local
        there = [each for each in (*SHOWN, *LINKED, *ETC) if Path(each).exists()]
        binds = [(each, each) for each in there if each not in LINKED or not Path(each).is_symlink()]
        binds += [*python.binds, (str(lower), furnish.LOWER), *places(shown, (*SHOWN, *LINKED))]
        binds += [(str(folder / "inside"), f"/harness/{part}/inside") for part, folder in CODE.items()]
        own = CODE["sandbox/rooms"] / "etc"
        binds += [(str(own / name), f"/etc/{name}") for name in ("passwd", "group", "resolv.conf")]
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


def works(program: str) -> bool:
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
