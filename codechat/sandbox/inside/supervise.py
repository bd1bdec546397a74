"""Decides what a program without a PID namespace may do to processes: the zygote answers for the kernel.

The kernel stops a supervised call and asks the zygote (seccomp_unotify(2)). Limits and signals then work as in a PID
namespace whose init is the program's first process. Sockets connect below the program's folder alone.
"""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH115, PTH118, PTH123, PTH208

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
from collections.abc import Iterator

from codechat.sandbox.inside import seccomp
from codechat.sandbox.inside.isolate import checked, libc

RECEIVE, SEND, VALID = 0xC0502100, 0xC0182101, 0x40082102  # ioctls of the listener
REQUEST = struct.Struct("<QIIiIQ6Q")  # id, thread, flags, and the call: number, machine, place, arguments
ANSWER = struct.Struct("<QqiI")  # id, result, error, flags
CONTINUE = 1
PIDFD_GETFD, OPENAT2 = 438, 437  # the same numbers on every machine
BENEATH = 0x08 | 0x04 | 0x02  # RESOLVE_BENEATH, and no links
LONGEST_ADDRESS = 110
INITS = 2  # processes that namespaces add, which the limit of a program includes
UNCAUGHT = frozenset((signal.SIGKILL, signal.SIGSTOP))
_SYSTEM = b"".join(  # struct new_utsname, without the host's name
    text.encode()[:64].ljust(65, b"\0") for text in (os.uname().sysname, "sandbox", *os.uname()[2:], "(none)")
)
_calls = {number: name for name, number in seccomp.supervised_calls().items()}


class Supervisor:
    """Answers for the program with the first process `main` and the folder `folder`. `mains` are the first processes of
    all programs of the run, and `processes` bounds all their processes and threads. Without a `main`, all processes
    below this one are the program's, and none is init."""

    def __init__(self, listener: int, main: int | None, mains: list[int], processes: int, folder: str) -> None:
        self.listener, self._main, self._mains, self._folder = listener, main, mains, folder
        self._most = processes - INITS
        self._free = 0  # how many more may start before they are counted again

    def answer(self) -> None:
        """Answer one call, unless it is over."""
        request = bytearray(REQUEST.size)
        try:
            fcntl.ioctl(self.listener, RECEIVE, request, True)
        except OSError:
            return
        number, thread, _, call, _, _, *arguments = REQUEST.unpack(request)
        try:
            forward = self._decide(_calls[call], thread, number, arguments)
            answer = ANSWER.pack(number, 0, 0, CONTINUE if forward else 0)
        except OSError as error:
            answer = ANSWER.pack(number, 0, -(error.errno or errno.EPERM), 0)
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.listener, SEND, answer)

    def _decide(self, call: str, thread: int, number: int, arguments: list[int]) -> bool:
        """Whether the kernel makes the call; False if it was made here. Raises `OSError` for the caller."""
        if call == "kill":
            return self._kill(_process_of(thread), _signed(arguments[0]), _signed(arguments[1]))
        if call == "tgkill":
            caller = _process_of(thread)
            if _signed(arguments[0]) != caller:
                raise OSError(errno.ESRCH, "another process")
            return self._kill(caller, caller, _signed(arguments[2]))
        if call == "connect":
            self._connect(_process_of(thread), number, *arguments[:3])
            return False
        if call == "uname":
            with open(f"/proc/{_process_of(thread)}/mem", "r+b", buffering=0) as memory:
                memory.seek(arguments[0])
                memory.write(_SYSTEM)
            return False
        if self._free <= 0:
            self._free = self._most - sum(map(_threads, descendants()))
        if self._free <= 0:
            raise OSError(errno.EAGAIN, "too many processes")
        self._free -= 1
        return True

    def _kill(self, caller: int, target: int, number: int) -> bool:
        """Signals reach the program's processes, as in a namespace; the first process dies of none."""
        if target == caller and (caller != self._main or self._catches(number)):
            return True
        processes = self._processes()
        if target > 0:
            reached = {target} & processes
        elif target == -1:
            reached = processes - {caller, self._main}
        else:
            group = os.getpgid(caller) if target == 0 else -target
            reached = {process for process in processes if _group(process) == group}
        if not reached:
            raise OSError(errno.ESRCH, "no such process")
        for process in reached:
            if process != self._main or number == 0 or self._catches(number):
                self._send(process, number)
        return False

    def _send(self, target: int, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(target)
            try:
                if target in self._processes():  # still: the number may belong to a new process
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)

    def _catches(self, number: int) -> bool:
        """Whether the program's first process has a handler: without one, an init process ignores the signal."""
        if self._main is None or number in UNCAUGHT or number < 1:
            return False
        return bool(int(_status(self._main, b"SigCgt:"), 16) >> (number - 1) & 1)

    def _processes(self) -> set[int]:
        """The processes of the program: the first, its descendants, and orphans."""
        if self._main is None:
            return set(descendants())
        return set(descendants(self._main)) | {self._main} | set(descendants(but=self._mains))

    def _connect(self, process: int, number: int, handle: int, address: int, length: int) -> None:
        """Connect a program's socket to one below its folder. The path is read once: the program may change it."""
        if not 2 < length <= LONGEST_ADDRESS:
            raise OSError(errno.EINVAL, "no address")
        with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            data = memory.read(length)
        family, path = int.from_bytes(data[:2], "little"), data[2:].partition(b"\0")[0].decode("utf-8", "replace")
        if family != socket.AF_UNIX or not path:
            raise OSError(errno.ECONNREFUSED, "no listener")
        absolute = os.path.normpath(os.path.join(os.readlink(f"/proc/{process}/cwd"), path))
        if not absolute.startswith(self._folder + "/"):
            raise OSError(errno.EACCES, "outside of the program's folder")
        pidfd = os.pidfd_open(process)
        try:
            fcntl.ioctl(self.listener, VALID, struct.pack("<Q", number))  # still: the number may be reused
            with socket.socket(fileno=checked(libc.syscall(PIDFD_GETFD, pidfd, handle, 0), "the socket")) as client:
                self._reach(client, absolute[len(self._folder) + 1 :])
        finally:
            os.close(pidfd)

    def _reach(self, client: socket.socket, relative: str) -> None:
        how = struct.pack("<QQQ", os.O_PATH | os.O_CLOEXEC, 0, BENEATH)
        folder = os.open(self._folder, os.O_PATH | os.O_CLOEXEC)
        try:
            place = checked(libc.syscall(OPENAT2, folder, relative.encode(), how, len(how)), relative)
        finally:
            os.close(folder)
        blocking = os.get_blocking(client.fileno())
        try:
            client.setblocking(False)  # a full queue must not hold up the zygote
            if problem := client.connect_ex(f"/proc/self/fd/{place}"):
                raise OSError(problem, os.strerror(problem))
        finally:
            os.set_blocking(client.fileno(), blocking)
            os.close(place)


def descendants(root: int | None = None, but: list[int] | None = None) -> Iterator[int]:
    """The processes below `root`, by default below this one, without `but` and their descendants."""
    waiting = [os.getpid() if root is None else root]
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError):  # it has ended
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", "rb") as stream:
                    children = [child for child in map(int, stream.read().split()) if child not in (but or ())]
                waiting += children
                yield from children


def _threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def _process_of(thread: int) -> int:
    return int(_status(thread, b"Tgid:"))


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def _status(pid: int, name: bytes) -> bytes:
    try:
        with open(f"/proc/{pid}/status", "rb") as stream:
            return next(line for line in stream if line.startswith(name)).split()[1]
    except FileNotFoundError:
        raise OSError(errno.ESRCH, "it has ended") from None


def _signed(value: int) -> int:
    return ctypes.c_int(value & 0xFFFFFFFF).value
