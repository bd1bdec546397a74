"""Decides what a program without a PID namespace may do to processes: the zygote answers for the kernel.

The kernel stops a supervised call and asks the zygote (seccomp_unotify(2)). A program then has as many processes as in
a namespace of its own, and reaches the same ones by signals; its first process is init there. Sockets are connected
below its own folder alone.
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
INITS = 2  # processes that namespaces add to those of a program, and its limit counts
UNCAUGHT = frozenset((signal.SIGKILL, signal.SIGSTOP))


_SYSTEM = b"".join(  # struct new_utsname, without the host's name
    text.encode()[:64].ljust(65, b"\0") for text in (os.uname().sysname, "sandbox", *os.uname()[2:], "(none)")
)
_calls = {number: name for name, number in seccomp.supervised_calls().items()}


class Supervisor:
    """Answers for the program whose first process is `main`, and whose own folder is `folder`.

    `mains` are the first processes of all programs of the run. `processes` bounds processes and threads of all of them.
    Without a `main`, all processes below this one are the program's, and none is its init.
    """

    def __init__(self, listener: int, main: int | None, mains: list[int], processes: int, folder: str) -> None:
        self.listener, self._main, self._mains, self._folder = listener, main, mains, folder
        self._most = processes - INITS
        self._free = 0  # how many more may start before they are counted again

    def answer(self) -> None:
        """Answer one call. One that is over before that needs none."""
        request = bytearray(REQUEST.size)
        try:
            fcntl.ioctl(self.listener, RECEIVE, request, True)
        except OSError:
            return
        number, thread, _, call, _, _, *arguments = REQUEST.unpack(request)
        try:
            goes_on = self._decide(_calls[call], thread, number, arguments)
            answer = ANSWER.pack(number, 0, 0, CONTINUE if goes_on else 0)
        except OSError as error:
            answer = ANSWER.pack(number, 0, -(error.errno or errno.EPERM), 0)
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.listener, SEND, answer)

    def _decide(self, call: str, thread: int, number: int, arguments: list[int]) -> bool:
        """Whether the kernel goes on with a call; False if it was made here. Raises `OSError` for the caller."""
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
        """Signals reach the program's own processes, as in a namespace; its first process dies of none of them."""
        if target == caller and (caller != self._main or self._catches(number)):
            return True
        own = self._own()
        if target > 0:
            reached = [target] if target in own else []
        elif target == -1:
            reached = [each for each in own if each not in (caller, self._main)]
        else:
            group = os.getpgid(caller) if target == 0 else -target
            reached = [each for each in own if _group(each) == group]
        if not reached:
            raise OSError(errno.ESRCH, "no such process")
        for each in reached:
            if each != self._main or number == 0 or self._catches(number):
                self._send(each, number)
        return False

    def _send(self, target: int, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(target)
            try:
                if target in self._own():  # still: its number may have become another process's
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)

    def _catches(self, number: int) -> bool:
        """Whether the program's first process has a handler: without one, an init process ignores the signal."""
        if self._main is None or number in UNCAUGHT or number < 1:
            return False
        return bool(int(_status(self._main, b"SigCgt:"), 16) >> (number - 1) & 1)

    def _own(self) -> set[int]:
        """The program's processes: those of its first one, and orphans."""
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
            raise OSError(errno.ECONNREFUSED, "nobody listens")
        absolute = os.path.normpath(os.path.join(os.readlink(f"/proc/{process}/cwd"), path))
        if not absolute.startswith(self._folder + "/"):
            raise OSError(errno.EACCES, "outside of the program's folder")
        pidfd = os.pidfd_open(process)
        try:
            fcntl.ioctl(self.listener, VALID, struct.pack("<Q", number))  # still: else the number is another's
            with socket.socket(fileno=checked(libc.syscall(PIDFD_GETFD, pidfd, handle, 0), "the socket")) as one:
                self._reach(one, absolute[len(self._folder) + 1 :])
        finally:
            os.close(pidfd)

    def _reach(self, one: socket.socket, relative: str) -> None:
        how = struct.pack("<QQQ", os.O_PATH | os.O_CLOEXEC, 0, BENEATH)
        folder = os.open(self._folder, os.O_PATH | os.O_CLOEXEC)
        try:
            place = checked(libc.syscall(OPENAT2, folder, relative.encode(), how, len(how)), relative)
        finally:
            os.close(folder)
        blocking = os.get_blocking(one.fileno())
        try:
            one.setblocking(False)  # a full queue must not hold up the zygote
            if problem := one.connect_ex(f"/proc/self/fd/{place}"):
                raise OSError(problem, os.strerror(problem))
        finally:
            os.set_blocking(one.fileno(), blocking)
            os.close(place)


def descendants(root: int | None = None, but: list[int] | None = None) -> Iterator[int]:
    """The processes below `root`, or else below this one; not those of `but` and what is below them."""
    waiting = [os.getpid() if root is None else root]
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError):  # it has ended
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", "rb") as stream:
                    found = [int(word) for word in stream.read().split()]
                for each in found:
                    if but is None or each not in but:
                        waiting.append(each)
                        yield each


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
