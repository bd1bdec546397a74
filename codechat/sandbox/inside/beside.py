"""Programs among the other processes of the machine: their folders, and what replaces namespaces."""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH101, PTH102, PTH120, PTH104, PTH106, PTH108, PTH116, PTH118, PTH123, PTH208
import contextlib
import ctypes
import mmap
import os
import select
import socket
import stat
import struct
import sys
import time
from collections.abc import Iterable, Sequence
from importlib.machinery import PathFinder
from typing import Any

from codechat.sandbox.inside import isolate, seccomp
from codechat.sandbox.inside.isolate import checked, libc
from codechat.sandbox.inside.supervise import Supervisor, descendants

CREATE, ADD_RULE, RESTRICT = 444, 445, 446  # the same numbers on every machine
VERSION, PATH_BENEATH = 1, 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
ALL_FILES = (1 << 13) - 1  # what the first version knows
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE  # the rights that a file can have, unlike a folder
READ = EXECUTE | READ_FILE | READ_DIR
REFER, IOCTL = 1 << 13, 1 << 15  # since versions 2 and 5
NETWORK, SCOPES = 0b11, 0b11  # TCP since version 4; abstract sockets and signals since version 6
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def landlock_version() -> int:
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


def allow_reading(rulesets: Sequence[Ruleset], visible: Iterable[str], hidden: Sequence[str]) -> None:
    """Allow reading and executing below `visible` but not below `hidden`. Raises `OSError`. A folder with something
    hidden in it can be listed, and its entries have rights one by one. What this user cannot reach is left out."""
    covered = [os.path.realpath(path) for path in hidden]
    waiting = [(os.path.realpath(path), READ) for path in visible] + [
        (path, READ_FILE | WRITE_FILE) for path in DEVICES
    ]
    while waiting:
        place, granted = waiting.pop()
        if any(place == path or place.startswith(path + "/") for path in covered):
            continue
        try:
            handle = os.open(place, os.O_PATH | os.O_CLOEXEC)
        except (FileNotFoundError, PermissionError):
            continue
        try:
            if not stat.S_ISDIR(os.fstat(handle).st_mode):
                granted &= OF_FILES
            elif any(path.startswith(place.rstrip("/") + "/") for path in covered):
                granted = READ_DIR
                waiting += [(os.path.join(place, name), READ) for name in os.listdir(place)]
            for ruleset in rulesets:
                ruleset.allow(handle, granted)
        finally:
            os.close(handle)


LOOK_S = 0.1  # between two looks at what a program's folder holds
BLOCK = 512  # bytes, the unit of st_blocks
BYTES_PER_FILE = 1 << 13  # a folder in memory has an inode for so many bytes
LIMITS = struct.Struct("<QQ")  # of a program: processes, and bytes in its folder
SEMAPHORE = 64  # bytes, more than any C library's sem_t has


class Beside:
    """The folders of a zygote's programs, one for each of two in a run, and how programs are confined to them. `place`
    is what the system grants. The zygote makes it as the user of programs."""

    def __init__(self, folder: str, visible: list[str] | None, hidden: list[str], version: int | None) -> None:
        """`visible` and `hidden` are for Landlock; no `visible`: it is not used. `version` limits its interface."""
        isolate.open_more_files()
        self.folders = [os.path.realpath(f"{folder}/{part}") for part in (0, 1)]
        self.version = landlock_version() if version is None else version
        self._rulesets: list[Ruleset] = []  # by part of a run
        self._shown = visible or [], hidden
        self._where: list[str] = []  # the program's folder, of the first of two
        _share_memory(self._where)
        self._set_folder(self.folders[0])
        self.refusal = ""
        if visible is not None:
            try:
                if self.version < 1:
                    raise OSError("this kernel has no Landlock")
                self._rulesets = [Ruleset([folder], self.version) for folder in self.folders]
                allow_reading(self._rulesets, *self._shown)
            except OSError as error:
                self._rulesets.clear()
                self.refusal = str(error)
        wanted: list[seccomp.Place] = ["landlock", "supervised"] if self._rulesets else ["supervised"]
        self.place: seccomp.Place = next(filter(self._works, wanted), "bare")
        if self.place == "bare":
            self.refusal = self.refusal or "the system lets the sandbox supervise no system calls"

    def _works(self, place: seccomp.Place) -> bool:
        """Whether a place confines programs, tried in a child."""

        def confine() -> None:
            if place == "landlock":
                self._rulesets[0].restrict()
            isolate.filter_of(place).listen(isolate.libc)

        return isolate.works(confine)

    def enter(self, part: int, alone: bool) -> None:
        """For a child, before the candidate's first line: its own folder, and no other. Raises `OSError`."""
        folder = self.folders[part]
        os.chdir(folder)
        if part:
            self._set_folder(folder)
        if "tempfile" in sys.modules:
            sys.modules["tempfile"].tempdir = None  # type: ignore[attr-defined]  # a loaded module may have set it
        if self.place == "landlock":
            isolate.libc.prctl(isolate.PR_SET_DUMPABLE, 1, 0, 0, 0)  # the supervisor reads addresses of sockets
            if alone:  # seldom, so it is made here
                ruleset = Ruleset([folder], self.version, alone=True)
                allow_reading([ruleset], *self._shown)
                ruleset.restrict()
            else:
                self._rulesets[part].restrict()

    def be_supervised(self, asker: socket.socket, limits: dict[str, int], reaps: bool) -> None:
        """For a child, last: bind it to the filter, and hand the listener to the zygote. Raises `OSError`."""
        message = LIMITS.pack(limits["processes"], limits["file"])
        isolate.be_supervised(self.place, asker, message, limits["open_files"], reaps=reaps)

    def _set_folder(self, folder: str) -> None:
        # Node ends, as other programs may, if it cannot look for the system's OpenSSL configuration.
        os.environ |= {"HOME": folder, "TMPDIR": folder, "OPENSSL_CONF": "/dev/null"}
        isolate.name_folder(folder)
        self._where[:] = [folder]

    def clear(self) -> None:
        """Remove what ended programs left."""
        for folder in self.folders:
            clear(folder)

    def remove(self) -> None:
        """Remove the folders, which the parent can't any more."""
        self.clear()
        with contextlib.suppress(OSError):
            for folder in (*self.folders, os.path.dirname(self.folders[0])):
                os.rmdir(folder)


class Watched:
    """The zygote's answers and measurements during a run."""

    def __init__(self, beside: Beside, children: list[int], askers: list[socket.socket]) -> None:
        self._beside, self._children = beside, children
        self._askers = {asker.fileno(): (part, asker) for part, asker in enumerate(askers)}
        self._most: dict[str, int] = {}  # bytes, by folder
        self._supervisors: dict[int, Supervisor] = {}
        self._looked = time.monotonic()

    def register(self, poll: "select.poll") -> None:
        """Have the poll wait for the programs' listeners."""
        self._poll = poll
        for handle in self._askers:
            poll.register(handle, select.POLLIN)

    def handle(self, ready: int, event: int) -> None:
        """Accept a listener, or answer a call."""
        if ready in self._supervisors:
            if event & select.POLLIN:
                self._supervisors[ready].answer()
            else:  # its last process is gone
                self._poll.unregister(ready)
                os.close(self._supervisors.pop(ready).listener)
            return
        part, asker = self._askers[ready]
        self._poll.unregister(ready)
        message, handles, _, _ = socket.recv_fds(asker, LIMITS.size, 1)
        for listener in handles:  # none if it ended before
            folder = self._beside.folders[part]
            processes, self._most[folder] = LIMITS.unpack(message)
            supervisor = Supervisor(listener, self._children[part], self._children, processes, folder)
            self._supervisors[listener] = supervisor
            self._poll.register(listener, select.POLLIN)

    def overfull(self) -> bool:
        """Whether a program's folder holds more than it may, looked at ten times a second."""
        if time.monotonic() - self._looked < LOOK_S:
            return False
        full = any(used(folder, most) > most for folder, most in self._most.items())
        self._looked = time.monotonic()
        return full

    def close(self) -> None:
        """Answer no more: from here on no program can start a process."""
        for _, asker in self._askers.values():
            asker.close()
        for supervisor in self._supervisors.values():
            os.close(supervisor.listener)
        self._supervisors.clear()


def make_folders(folder: str, user: int | None) -> None:
    """The folders of programs, in one that the parent made. As root, all belong to the `user` that programs become."""
    for part in (0, 1):
        os.mkdir(f"{folder}/{part}", 0o700)
    for place in (f"{folder}/0", f"{folder}/1", folder) if user is not None else ():
        os.chown(place, user or 0, user or 0)


def clear(folder: str) -> None:
    """Empty a folder of any depth and with any modes. Inner folders are moved up, then removed."""
    try:
        names = os.listdir(folder)
    except PermissionError:
        names = [""]
    if not names:
        return
    os.chmod(folder, 0o700)
    number, unique = 0, os.urandom(8).hex()
    while names := os.listdir(folder):
        for name in names:
            place = os.path.join(folder, name)
            if not stat.S_ISDIR(os.lstat(place).st_mode):
                os.unlink(place)
                continue
            os.chmod(place, 0o700)
            for inner in os.listdir(place):
                below = os.path.join(place, inner)
                if stat.S_ISDIR(os.lstat(below).st_mode):
                    os.chmod(below, 0o700)
                    os.rename(below, os.path.join(folder, f"{unique}-{number}"))
                    number += 1
                else:
                    os.unlink(below)
            os.rmdir(place)


def used(folder: str, most: int) -> int:
    """The bytes of a folder as a file system in memory would count them, removed files that are still open or mapped
    included; more than `most` if that is unknown."""
    used = files = 0
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    information = entry.stat(follow_symlinks=False)
                    used, files = used + information.st_blocks * BLOCK, files + 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError:  # too deep, or a mode that keeps it from being listed
            return most + 1
        if files * BYTES_PER_FILE > most:
            return most + 1
    return used + _removed(os.stat(folder).st_dev)


def _removed(device: int) -> int:
    """The bytes of removed files on a device that programs still hold, of the processes that can be read."""
    open_files: dict[int, int] = {}
    mapped, name = 0, f"{os.major(device):02x}:{os.minor(device):02x}"
    for pid in descendants():
        with contextlib.suppress(OSError):
            for handle in os.listdir(f"/proc/{pid}/fd"):
                information = os.stat(f"/proc/{pid}/fd/{handle}")
                if information.st_dev == device and not information.st_nlink:
                    open_files[information.st_ino] = information.st_blocks * BLOCK
            with open(f"/proc/{pid}/maps") as stream:
                for line in stream:
                    addresses, _, _, where, _, *path = line.split(maxsplit=5)
                    if where == name and path and path[0].rstrip().endswith("(deleted)"):
                        start, end = addresses.split("-")
                        mapped += int(end, 16) - int(start, 16)
    return sum(open_files.values()) + mapped


class _Heap:
    """Finds the module `multiprocessing.heap`, and has it keep shared values in a program's folder (item of `where`).
    Loading it with the zygote would add a tenth to the start."""

    def __init__(self, where: list[str]) -> None:
        self._where = where

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "multiprocessing.heap":
            return None
        found: Any = PathFinder.find_spec(name, path)
        load = found.loader.exec_module

        def exec_module(module: Any) -> None:
            load(module)
            module.Arena._dir_candidates = self._where

        found.loader.exec_module = exec_module
        return found


def _share_memory(where: list[str]) -> None:
    """Replace the parts of `multiprocessing` that need /dev/shm: named memory is in the program's folder, the only item
    of `where`, and semaphores in memory that only its forks share."""
    import _multiprocessing  # type: ignore[import-not-found]
    import _posixshmem  # type: ignore[import-not-found]

    real: Any = _multiprocessing.SemLock

    class SemLock(real):  # type: ignore[misc]
        def __new__(cls, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> Any:
            memory = mmap.mmap(-1, SEMAPHORE)
            address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            isolate.checked(isolate.libc.sem_init(ctypes.c_void_p(address), 1, value), "semaphore")
            _kept.append(memory)
            return real._rebuild(address, kind, maxvalue, None)

    def shm_open(path: str, flags: int, mode: int = 0o777) -> int:
        return os.open(f"{where[0]}/{path.lstrip('/')}", flags | os.O_CLOEXEC, mode)

    def shm_unlink(path: str) -> None:
        os.unlink(f"{where[0]}/{path.lstrip('/')}")

    SemLock.__name__ = SemLock.__qualname__ = real.__name__
    _multiprocessing.SemLock = SemLock
    _posixshmem.shm_open, _posixshmem.shm_unlink = shm_open, shm_unlink
    sys.meta_path.insert(0, _Heap(where))


_kept: list[mmap.mmap] = []
