"""Landlock (landlock(7)): a process gives up all files but some, for good. It needs no right and no namespace.

What Landlock leaves open (attributes of files, sockets by their path, signals on older kernels) is closed by the filter
of system calls and by the supervisor.
"""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH118, PTH208

import os
import stat
import struct
from collections.abc import Iterable, Sequence

from codechat.sandbox.inside.isolate import checked, libc

CREATE, ADD_RULE, RESTRICT = 444, 445, 446  # the same numbers on every machine
VERSION, PATH_BENEATH = 1, 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
ALL_FILES = (1 << 13) - 1  # what the first version knows
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE  # the rights that a file can have, unlike a folder
READ = EXECUTE | READ_FILE | READ_DIR
REFER, IOCTL = 1 << 13, 1 << 15  # since versions 2 and 5
NETWORK, SCOPES = 0b11, 0b11  # TCP since version 4; abstract sockets and signals since version 6
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def version() -> int:
    """The version of Landlock's interface that the kernel offers; 0 if it offers none."""
    return max(0, int(libc.syscall(CREATE, None, 0, VERSION)))


def rights(known: int) -> int:
    """All rights on files that a version of the interface can take away."""
    return ALL_FILES | (REFER if known >= 2 else 0) | (TRUNCATE if known >= 3 else 0) | (IOCTL if known >= 5 else 0)


class Ruleset:
    """The rights of a process: all in the folders `own`, and allowed ones elsewhere. One ruleset serves many processes.
    A program that is `alone` executes nothing in `own`. Raises `OSError` if the kernel refuses."""

    def __init__(self, own: Sequence[str], known: int, *, alone: bool = False) -> None:
        self._all = rights(known)
        attributes = struct.pack("QQQ", self._all, NETWORK if known >= 4 else 0, SCOPES if known >= 6 else 0)
        size = 24 if known >= 6 else 16 if known >= 4 else 8
        self._handle = checked(libc.syscall(CREATE, attributes, size, 0), "Landlock")
        for place in own:
            handle = os.open(place, os.O_PATH | os.O_CLOEXEC)
            self.allow(handle, self._all & ~(IOCTL | (EXECUTE if alone else 0)))
            os.close(handle)

    def allow(self, place: int, granted: int) -> None:
        """Rights at a place and below it, by a descriptor. Raises `OSError`."""
        rule = struct.pack("=Qi", granted & self._all, place)
        checked(libc.syscall(ADD_RULE, self._handle, PATH_BENEATH, rule, 0), "Landlock")

    def restrict(self) -> None:
        """Bind this process, of one thread, and all that it starts. Needs no_new_privs. Raises `OSError`."""
        checked(libc.syscall(RESTRICT, self._handle, 0), "Landlock")
        os.close(self._handle)


def show(rulesets: Sequence[Ruleset], visible: Iterable[str], hidden: Sequence[str]) -> None:
    """Allow reading and executing below `visible` but not below `hidden`. Raises `OSError`. A folder with something
    hidden in it can be listed, and its entries have rights one by one. What this user cannot reach is left out."""
    covered = [os.path.realpath(one) for one in hidden]
    waiting = [(os.path.realpath(one), READ) for one in visible] + [(one, READ_FILE | WRITE_FILE) for one in DEVICES]
    while waiting:
        place, granted = waiting.pop()
        if any(place == one or place.startswith(one + "/") for one in covered):
            continue
        try:
            handle = os.open(place, os.O_PATH | os.O_CLOEXEC)
        except (FileNotFoundError, PermissionError):
            continue
        try:
            if not stat.S_ISDIR(os.fstat(handle).st_mode):
                granted &= OF_FILES
            elif any(one.startswith(place.rstrip("/") + "/") for one in covered):
                granted = READ_DIR
                waiting += [(os.path.join(place, name), READ) for name in os.listdir(place)]
            for ruleset in rulesets:
                ruleset.allow(handle, granted)
        finally:
            os.close(handle)
