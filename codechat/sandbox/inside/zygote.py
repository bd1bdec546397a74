"""The warm interpreter: forks one isolated child per candidate or command, and reports its end.

Read it from `main` down: `_serve` forks, `_watch` waits in the zygote, `_child` confines itself and becomes what the
job asks for: a program called on inputs (`candidate`), a program with its assertions in one process (`assertions`) or
in two (`tester` and `responder`), or any command, run as a user would: in a folder with its files, by its exit status.
"""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH101, PTH102, PTH103, PTH109, PTH110, PTH118, PTH120, PTH123

import array
import contextlib
import gc
import io
import json
import marshal
import mmap
import os
import select
import shutil
import signal
import socket
import sys
import tarfile
import traceback
from dataclasses import dataclass
from typing import Any, NoReturn

from codechat.sandbox.inside import assertions, candidate, isolate, responder, snapshot, tester, wire

# The most imported modules of programs; the child imports any other itself.
WARM = (
    "abc bisect calendar cmath collections contextlib copy datetime decimal enum fractions functools heapq itertools "
    "json math numbers operator random re statistics string textwrap time typing"
)

OWN_USERS = 2_100_000_000  # numbers from here on: no directory service and no container manager hands them out
GONE_S = 2.0  # seconds that a candidate may take to end after its last message
OF_THE_INTERPRETER = "LD_LIBRARY_PATH"  # the path of its own libraries, which tools must not load
NOT_RUN = 127


def main(text: str) -> NoReturn:
    """Run until the parent hangs up. `text` is the JSON that the parent made of its `Inside`."""
    config = json.loads(text)
    if config["meeting"]:
        control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        control.connect(config["meeting"])
    else:
        control = socket.socket(fileno=os.dup(0))
    nothing = os.open("/dev/null", os.O_RDWR)
    os.dup2(nothing, 0)
    sys.path[:] = [*(sys.path if config["own_path"] else ()), *config["paths"]]
    for name in [name for name in sys.modules if name.partition(".")[0] == "codechat"]:
        del sys.modules[name]  # a program that imports this name means another module
    for name in WARM.split():
        __import__(name)
    if config["uid"] is not None:
        isolate.reach(config["reach"], config["uid"])
        isolate.drop_user(_own_user() or config["uid"])
    handle, refusal = None, ""
    try:
        handle = isolate.enter_namespaces(config["hide"], config["uid"])
    except OSError as error:
        refusal = str(error)
    isolate.lock_down()
    blind = [path for path in config["paths"] if os.path.exists(path) and not os.access(path, os.R_OK)]
    hello = {"namespaces": handle is not None, "refusal": refusal, "seccomp": isolate.filter_works(), "blind": blind}
    hello["proc"] = bool(config["proc"] and handle is not None and isolate.proc_works(handle))
    control.send(json.dumps(hello).encode())
    _settle()
    gc.disable()
    _serve(control, handle, config)


def _own_user() -> int | None:
    """The number of a user that is this process's alone; None if the system has no such numbers.

    Without namespaces all processes of a user are counted together. Other zygotes' programs would use up the number
    that a program may have, and could end it.
    """
    number = OWN_USERS + os.getpid()
    for kind in ("uid", "gid"):
        with open(f"/proc/self/{kind}_map") as stream:
            ranges = [(int(first), int(count)) for first, _, count in map(str.split, stream)]
        if not any(first <= number < first + count for first, count in ranges):
            return None
    return number


def _settle() -> None:
    """Keep the collector off loaded objects: forks share their memory until something writes to it."""
    gc.collect()
    gc.freeze()


def _serve(control: socket.socket, handle: int | None, config: dict[str, Any]) -> NoReturn:
    remembered: snapshot.Snapshot | None = None
    while True:
        message, handles = _receive(control)
        if not message:
            os._exit(0)
        if message == wire.WARM:
            remembered = _warm(handles[0], config["scratch"], handle is not None)
            control.send(wire.WARM)
            continue
        if message not in (wire.RUN, wire.TESTED):
            continue  # a KILL that crossed the end of the last run
        ends: tuple[socket.socket | None, ...] = socket.socketpair() if message == wire.TESTED else (None,)
        children = []
        for part, peer in enumerate(ends):
            if handle is not None:
                isolate.new_pid_namespace()
            child = os.fork()
            if child == 0:
                _child(Part(handles, peer, candidate=part == 1), config, handle is not None, remembered)
            children.append(child)
            if handle is not None:
                isolate.back_to(handle)
        for number in (*handles, *(peer.detach() for peer in ends if peer is not None)):
            os.close(number)
        _watch(control, children, handle is not None)
        if handle is None:
            for child in children:
                _clear_folder(config["scratch"], child)


def _warm(listed: int, scratch: list[str], namespaces: bool) -> snapshot.Snapshot:
    """Load what assertion tests use, and the modules that the file `listed` names, which every fork then has."""
    remembered = snapshot.warm()
    names: list[str] = marshal.loads(_whole(listed))
    os.close(listed)
    if names:
        if namespaces:
            isolate.empty_folders(scratch)  # some libraries write a cache when they are loaded
        remembered = snapshot.preload(names, remembered)
    _settle()
    return remembered


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    handles = array.array("i")
    message, ancillary, _, _ = control.recvmsg(64, socket.CMSG_SPACE(wire.HANDLES * handles.itemsize))
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            handles.frombytes(data[: len(data) - len(data) % handles.itemsize])
    return message, list(handles)


def _watch(control: socket.socket, children: list[int], contained: bool) -> None:
    """Wait for the end of the first child, and of a second, its candidate; kill them on KILL; report."""
    pidfds = [os.pidfd_open(child) for child in children]
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(pidfds[0], select.POLLIN)
    ended = False
    while not ended:
        for ready, _ in poll.poll():
            if ready == pidfds[0]:
                ended = True
            elif control.recv(64) != wire.KILL:
                _kill(pidfds)
                os._exit(0)
            else:
                _kill(pidfds)
    first = os.wait4(children[0], 0)
    status, used = first[1], [first[2]]
    for child, pidfd in zip(children[1:], pidfds[1:], strict=True):
        gone = os.WIFEXITED(status) and os.WEXITSTATUS(status) == wire.GONE
        if not gone or not select.select([pidfd], [], [], GONE_S)[0]:
            _kill([pidfd])
        _, end, usage = os.wait4(child, 0)
        used.append(usage)
        status = end if gone else status
    for pidfd in pidfds:
        os.close(pidfd)
    if not contained:
        isolate.sweep(children[-1])
    times = sum(usage.ru_utime for usage in used), sum(usage.ru_stime for usage in used)
    control.send(wire.STATUS.pack(status, *times, max(usage.ru_maxrss for usage in used)))


def _kill(pidfds: list[int]) -> None:
    for pidfd in pidfds:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)


@dataclass
class Part:
    """A child's part in a run: its descriptors and, if two share the run, its end of the socket between them."""

    handles: list[int]
    peer: socket.socket | None
    candidate: bool

    def take(self) -> tuple[dict[str, Any], socket.socket, mmap.mmap | None, socket.socket | None]:
        """Read the job and close all descriptors but the results' socket, 3, and the other child's, 4."""
        job_file, shared_file, results_file, *others = self.handles
        job = marshal.loads(_whole(others[0] if self.candidate else job_file))
        shared = None if self.candidate else mmap.mmap(shared_file, wire.SHARED_SIZE)
        for number, output in enumerate(others if self.peer is None else (), 1):
            os.dup2(output, number)
        os.dup2(results_file, 3, inheritable=False)
        peer = None
        if self.peer is not None:
            os.dup2(self.peer.detach(), 4, inheritable=False)
            peer = socket.socket(fileno=4)
        os.closerange(4 if peer is None else 5, 1 << 16)
        return job, socket.socket(fileno=3), shared, peer


def _child(part: Part, config: dict[str, Any], namespaces: bool, remembered: snapshot.Snapshot | None) -> NoReturn:
    """Read the job, confine, run. Never returns; errors before the candidate's code go to stderr."""
    try:
        job, results, shared, peer = part.take()
        os.setsid()  # a signal to its group must not reach the zygote
        limits = {**config["limits"], "cpu": job["cpu"]}
        limits |= {name: job[name] for name in ("file", "processes") if name in job}
        needs, alone = job.get("needs", ()), job.get("alone", False)
        isolate.confine(limits, namespaces, config["scratch"], needs, alone=alone)
        if "calls" not in job:
            _own_folder(config["scratch"], namespaces)
        if "argv" in job:
            _write_files(job)
        results.sendall(wire.HEADER.pack(wire.STARTED, 0, 0))
        if "argv" in job:
            _become_program(job, config["paths"])
        os.dup2(0, 1)
        os.dup2(0, 2)
        assert remembered is not None or "snippets" not in job
    except BaseException:  # noqa: BLE001  nothing may run past this point
        traceback.print_exc()
        os._exit(70)
    if peer is not None and shared is None:
        results.close()
        responder.run(job, peer)
    assert shared is not None
    if peer is not None:
        tester.run(job, results, shared, peer)
    if remembered is not None and "snippets" in job:
        assertions.run(job, results, shared, remembered)
    candidate.run(job, results, shared)


def _whole(handle: int) -> bytes:
    """All of a file, without moving an offset that other processes share."""
    size = os.fstat(handle).st_size
    pieces, at = [], 0
    while at < size:
        pieces.append(os.pread(handle, size - at, at))
        at += len(pieces[-1])
    return b"".join(pieces)


def _own_folder(scratch: list[str], namespaces: bool) -> None:
    """Go to a writable folder: the program's own, else one made for it."""
    folder = scratch[-1] if scratch else "/tmp"
    if not namespaces:
        folder = _folder_of(folder, os.getpid())
        os.mkdir(folder, 0o700)
    os.chdir(folder)


def _clear_folder(scratch: list[str], process: int) -> None:
    """Without namespaces: remove the folder made for a process."""
    folder = _folder_of(scratch[-1] if scratch else "/tmp", process)
    if os.path.isdir(folder):  # noqa: PTH112
        shutil.rmtree(folder, ignore_errors=True)


def _folder_of(folder: str, process: int) -> str:
    return os.path.join(folder, f"codechat-{process}")


def _write_files(job: dict[str, Any]) -> None:
    """Write the command's files into the working folder, and go to the folder in which it runs."""
    for name, data in job["files"].items():
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "wb") as stream:
            stream.write(data)
        os.chmod(name, 0o755)
    if job["archive"]:
        with tarfile.open(fileobj=io.BytesIO(job["archive"])) as archive:
            archive.extractall(filter="data")
    os.chdir(job["folder"])


def _become_program(job: dict[str, Any], paths: list[str]) -> NoReturn:
    """Replace this process by the command of a job, or report that it cannot be run."""
    program, *arguments = job["argv"]
    given = job["environment"]
    own = {"TMPDIR": os.getcwd(), **given}
    if program == wire.PYTHON:
        own["PYTHONPATH"] = os.pathsep.join([*filter(None, [given.get("PYTHONPATH")]), *paths])
        os.execve(sys.executable, [sys.executable, "-s", "-B", *arguments], {**os.environ, **own})
    of_the_box = {name: value for name, value in os.environ.items() if name != OF_THE_INTERPRETER}
    try:
        os.execvpe(program, [program, *arguments], {"PATH": wire.PATH, **of_the_box, **own})
    except OSError as error:
        os.write(2, f"{program}: {os.strerror(error.errno or 0)}\n".encode())
        os.write(3, wire.HEADER.pack(wire.MISSING, 0, 0))
        os._exit(NOT_RUN)
