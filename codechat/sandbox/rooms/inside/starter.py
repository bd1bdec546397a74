"""The resident process of a worktree: starts its commands, one after the other, until its parent hangs up.

Every command gets its own PID namespace. All its processes end with the namespace.
"""

# No pathlib: every module loaded here is memory that each command's process copies.
# ruff: noqa: PTH116, PTH123, PTH208

import contextlib
import fcntl
import functools
import marshal
import os
import resource
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from codechat.sandbox.inside import isolate
from codechat.sandbox.rooms.inside import archive, furnish
from codechat.sandbox.rooms.inside.beside import PIPE, Beside, HeadAndTail, memory_of

LENGTH = struct.Struct("<I")
BLOCK = 1 << 20
PIPE_SIZE = 1031  # F_SETPIPE_SZ
WATCH_S = 0.05  # between two measurements of a command's memory
SHELLS = ("/bin/bash", "/bin/sh")
NOT_STARTED = 126
LONGEST = 1000  # bytes of a problem
OWN = 2  # processes of the worktree that belong to no command: this one, and the init process


def main(meeting: str) -> NoReturn:
    """Furnish a worktree and run commands until the parent hangs up.

    The parent waits at the socket `meeting`, or at standard input if that is empty. The first message has the options;
    the answer has the `problem`, empty if there is none.
    """
    if meeting:
        control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        control.connect(meeting)
    else:
        control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open("/dev/null", os.O_RDWR), 0)
    try:
        starter = Starter(control, receive(control))
    except OSError as error:
        send(control, {"problem": str(error)})
        os._exit(1)
    except EOFError:
        os._exit(0)
    send(control, {"problem": ""})
    with contextlib.suppress(EOFError):
        starter.serve()
    starter.leave()


def send(control: socket.socket, message: dict[str, Any]) -> None:
    """Send a message to the parent."""
    data = marshal.dumps(message, 2)
    control.sendall(LENGTH.pack(len(data)) + data)


def receive(control: socket.socket) -> dict[str, Any]:
    """The parent's next message. Raises `EOFError` if the parent is gone."""
    data = b""
    while len(data) < LENGTH.size or len(data) < LENGTH.size + LENGTH.unpack_from(data)[0]:
        block = control.recv(BLOCK)
        if not block:
            raise EOFError
        data += block
    message: dict[str, Any] = marshal.loads(data[LENGTH.size :])
    return message


class Prepared(NamedTuple):
    """A process that waits for its command: the pipes for the command and for its output."""

    child: int
    pidfd: int
    command: int
    output: int


class Starter:
    """The resident process, once its worktree is furnished."""

    def __init__(self, control: socket.socket, config: dict[str, Any]) -> None:
        self._control, self._config = control, config
        self._place = Beside(config) if "own" in config else Parted(config)
        self._limits = {
            resource.RLIMIT_DATA: config["memory"],
            resource.RLIMIT_NOFILE: config["open_files"],
            resource.RLIMIT_CORE: 0,
            **self._place.limits,
        }

    def serve(self) -> NoReturn:
        """Run each command that the parent sends, and answer with its end. Raises `EOFError` if the parent is gone."""
        while True:
            prepared = self._prepare()  # before the command comes
            while "command" not in (order := receive(self._control)):
                if "end" not in order:  # else it ended meanwhile
                    self._hand_over(order)
            send(self._control, self._run(prepared, order["command"], order["seconds"]))

    def _hand_over(self, order: dict[str, Any]) -> None:
        """Send the descriptor that an order asks for: a listening socket, or a pipe of the archive of all files."""
        if "listen" in order:
            with socket.create_server(("127.0.0.1", order["listen"])) as listener:
                socket.send_fds(self._control, [b"F"], [listener.fileno()])
            return
        reader, writer = os.pipe2(os.O_CLOEXEC)
        ours, theirs = (reader, writer) if "load" in order else (writer, reader)
        answer, answering = os.pipe2(os.O_CLOEXEC)
        child = os.fork()
        if child == 0:
            os.close(theirs)
            os.write(answering, b"." + archive.transfer(ours, order, self._limits).encode()[:LONGEST])
            os._exit(0)
        socket.send_fds(self._control, [b"F"], [theirs])
        for handle in (reader, writer, answering):
            os.close(handle)
        said = os.read(answer, 2 * LONGEST).decode(errors="replace")
        os.close(answer)
        os.waitpid(child, 0)
        send(self._control, {"problem": said[1:] if said else "its process was killed"})

    def leave(self) -> NoReturn:
        """End this process and all remaining ones."""
        self._place.leave()
        os._exit(0)

    def _prepare(self) -> Prepared:
        (command_reader, command), (output, output_writer) = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
        with contextlib.suppress(OSError):
            fcntl.fcntl(output, PIPE_SIZE, BLOCK)
        self._place.begin()
        child = os.fork()
        if child == 0:
            self._child(command_reader, output_writer)
        self._place.forked()
        os.close(command_reader)
        os.close(output_writer)
        os.set_blocking(output, False)
        return Prepared(child, os.pidfd_open(child), command, output)

    def _run(self, prepared: Prepared, command: bytes, seconds: float) -> dict[str, Any]:
        began = time.monotonic()
        with contextlib.suppress(BrokenPipeError), open(prepared.command, "wb") as stream:
            stream.write(self._place.as_here(command))
        output = HeadAndTail(self._config["output"] // 2)
        why = self._follow(prepared, output, began + seconds)
        os.close(prepared.pidfd)
        status = self._place.end(os.waitstatus_to_exitcode(os.waitpid(prepared.child, 0)[1]))
        with contextlib.suppress(BlockingIOError):
            while data := os.read(prepared.output, BLOCK):
                output.add(data)
        os.close(prepared.output)
        self._place.as_elsewhere(output)
        return {
            "status": None if why or status < 0 else status,
            "ended": why or ("exit" if status >= 0 else "killed"),
            "head": bytes(output.head),
            "tail": bytes(output.tail),
            "total": output.total,
            "seconds": time.monotonic() - began,
        }

    def _follow(self, prepared: Prepared, output: HeadAndTail, until: float) -> str:
        """Read the output until the command's first process ends. Returns the limit it was killed for, or empty."""
        reader, pidfd = prepared.output, prepared.pidfd
        poll = select.poll()
        for number in (reader, pidfd, self._control.fileno()):
            poll.register(number, select.POLLIN)
        why, next_check = "", time.monotonic() + WATCH_S
        self._place.register(poll)
        while True:
            now = time.monotonic()
            if not why and now >= until:
                why = "timeout"
            elif not why and now >= next_check:
                next_check = now + WATCH_S
                why = self._place.over()
            if why:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            for ready, event in poll.poll(max(0, min(next_check, until) - now) * 1000 + 1 if not why else 1000):
                if ready == pidfd:
                    return why
                if self._place.handle(ready, event):
                    continue
                if ready == reader:
                    data = os.read(reader, BLOCK)
                    output.add(data)
                    if not data:
                        poll.unregister(reader)
                else:  # the parent ends the command, or is gone
                    why = receive(self._control)["end"]

    def _child(self, command: int, writer: int) -> NoReturn:
        """Become the first process of a command."""
        try:
            os.setsid()
            for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):  # Python has changed them
                signal.signal(number, signal.SIG_DFL)
            os.dup2(writer, 1)
            os.dup2(1, 2)
            os.umask(0o022)
            self._place.become_shell(functools.partial(shell_of, command), self._limits)
        except BaseException as error:  # noqa: BLE001  nothing may run past this point
            os.write(2, f"the command did not start: {type(error).__name__}: {error}\n".encode())
            os._exit(NOT_STARTED)


class Parted:
    """Confines the commands of one worktree by namespaces. The other class of `_place` has the same methods."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Furnish the worktree. Raises `OSError`."""
        self._config, self._handle = config, furnish.box(config)
        self.limits = {resource.RLIMIT_NPROC: config["processes"] + OWN}

    def begin(self) -> None:
        """Before a command's process is forked."""
        isolate.new_pid_namespace()

    def forked(self) -> None:
        """After it was forked."""
        isolate.back_to(self._handle)

    def become_shell(self, shell: Callable[[], tuple[str, list[str | bytes]]], limits: Mapping[int, int]) -> NoReturn:
        """For the forked process, which is the init process of a namespace: start the shell, and wait for its end.

        The shell is spawned, not forked: a fork would copy this interpreter once more.
        """
        isolate.own_mounts()
        isolate.own_proc()
        os.chdir(self._config["root"])  # before rights are dropped: a command may have changed the folder's
        isolate.renounce(limits)
        program, arguments = shell()
        started = os.posix_spawn(program, arguments, self._config["environment"], setsid=True)
        os.closerange(0, 1 << 8)
        _reap(started)

    def register(self, poll: "select.poll") -> None:
        """No process sends requests."""

    def handle(self, ready: int, event: int) -> bool:
        """Whether the descriptor was handled: never."""
        return False

    def over(self) -> str:
        """The limit that the command's processes exceed; empty if none."""
        return "memory" if memory_used() > self._config["memory"] else ""

    def end(self, status: int) -> int:
        """The command's exit status. All its processes ended with its first one."""
        return status

    def as_here(self, command: bytes) -> bytes:
        """The command with the worktree's real paths, which are the shown ones."""
        return command

    def as_elsewhere(self, output: HeadAndTail) -> None:
        """Outputs stay as they are."""

    def leave(self) -> None:
        """All that is left ends with this process."""


def shell_of(command: int, keep: int = 3) -> tuple[str, list[str | bytes]]:
    """The shell and its arguments, once `command` has delivered the command. Closes all descriptors but `keep`."""
    program = next(path for path in SHELLS if os.access(path, os.X_OK))
    os.dup2(command, 3)
    os.closerange(4, keep)
    os.closerange(keep + 1, 1 << 8)
    with open(3, "rb") as stream:
        return program, [program, "-c", stream.read()]


def _reap(shell: int) -> NoReturn:
    """The init process of a command's namespace: when the shell ends, all ends."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == shell:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def memory_used() -> int:
    """The bytes that the other processes of this namespace use, with their page tables, without pages of files.

    Memory that several processes share counts for each of them. The queues of sockets, which belong to no process,
    count as full, and an open file as a small pipe.
    """
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1")
    return queues() + sum(memory_of(pid) + _files(pid) * PIPE for pid in pids)


def queues() -> int:
    """The bytes that the sockets of this network may hold, also sockets that no process has open any more."""
    total = 0
    with contextlib.suppress(OSError, ValueError), open("/proc/net/protocols", "rb") as stream:
        for name, _, sockets, *_ in (line.split() for line in stream.readlines()[1:]):
            total += int(sockets) * (_most("tcp") if b"TCP" in name else _most("unix"))
    return total


@functools.cache
def _most(family: str) -> int:
    """The bytes that both queues of a socket may hold."""
    if family == "unix":
        with socket.socket(socket.AF_UNIX) as probe:
            return 2 * probe.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    total = 0
    for name in ("tcp_rmem", "tcp_wmem"):
        with contextlib.suppress(OSError), open(f"/proc/sys/net/ipv4/{name}", "rb") as stream:
            total += int(stream.read().split()[2])
    return total


def _files(pid: int) -> int:
    """The number of open files of a process; 0 before Linux 6.2."""
    try:
        return os.stat(f"/proc/{pid}/fd").st_size
    except OSError:
        return 0
