"""The warm interpreter: forks one isolated child per candidate or command, and reports its end.

Read it from `main` down: `Zygote` forks and waits; `_child` confines itself and runs the job: a program called on
inputs (`candidate`), a program with assertions in one process (`tester.run_shared`) or in two (`tester` and
`responder`), or any command in a folder with its files.
"""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH101, PTH102, PTH103, PTH109, PTH110, PTH120, PTH123

import array
import contextlib
import gc
import io
import json
import marshal
import mmap
import os
import select
import signal
import site
import socket
import sys
import tarfile
import traceback
from dataclasses import dataclass
from typing import Any, NoReturn

from codechat.sandbox.inside import beside, candidate, isolate, responder, tester, wire
from codechat.sandbox.inside.beside import Beside, Watched

# The most imported modules of programs; the child imports any other itself.
WARM = (
    "abc bisect calendar cmath collections contextlib copy datetime decimal enum fractions functools heapq itertools "
    "json math numbers operator random re statistics string textwrap time typing"
)
# Modules that the tests of many tasks import. Missing modules are left out.
OF_TESTS = "radon.complexity radon.metrics radon.raw mccabe pycodestyle dis inspect tokenize unittest"

OWN_USERS = 2_100_000_000  # numbers from here on: no directory service and no container manager hands them out
GONE_S = 2.0  # seconds that a candidate may take to end after its last message
OF_THE_INTERPRETER = "LD_LIBRARY_PATH"  # the path of the interpreter's libraries, which tools must not load
NOT_RUN = 127
OF_DATA: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # not before Python 3.11.4
LOOK_MS = 100  # between two looks at what programs without namespaces wrote
MOST_MS = 3  # most programs have ended by then, and asked their supervisor nothing; others wait so long for it, once


def main(text: str) -> NoReturn:
    """Run until the parent hangs up. `text` is the JSON that the parent made of its `Inside`."""
    config = json.loads(text)
    config["scratch"] = list(filter(os.path.isdir, config["scratch"]))  # images may lack one
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
    for add in (site.setquit, site.setcopyright, site.sethelper):  # as every interpreter that does not skip `site`
        add()
    user = None
    if config["uid"] is not None:
        isolate.reach(config["reach"], config["uid"])
        user = _own_user() or config["uid"]
    if config["folder"]:
        beside.make_folders(config["folder"], user)
    if user is not None:
        isolate.drop_user(user)
    handle, around, refusal = _isolated(config)
    place = around.place if around is not None else "namespaces"
    blind = [path for path in config["paths"] if os.path.exists(path) and not os.access(path, os.R_OK)]
    hello: dict[str, Any] = {"place": place, "refusal": refusal, "blind": blind}
    hello["seccomp"] = place in ("landlock", "supervised") or isolate.filter_works()
    hello["version"] = around.version if around else 0
    hello["proc"] = bool(config["proc"] and handle is not None and isolate.proc_works(handle))
    for each in (place, *(("network",) if place == "namespaces" else ())):
        isolate.filter_of(each, True)
        isolate.filter_of(each, False)
    control.send(json.dumps(hello).encode())
    _settle()
    gc.disable()
    Zygote(control, handle, around, config).serve()


def _isolated(config: dict[str, Any]) -> tuple[int | None, Beside | None, str]:
    """Enter namespaces, or make ready what replaces them. Returns the handle of the PID namespace or else what confines
    programs, and why anything is not granted."""
    handle, refusal = None, ""
    if config["landlock"] is None:
        try:
            handle = isolate.enter_namespaces(config["hide"], config["uid"])
        except OSError as error:
            refusal = str(error)
    isolate.lock_down()
    if handle is not None:
        if config["scratch"]:  # where programs begin: not /tmp if the interpreter lies in it
            os.environ |= dict.fromkeys(("HOME", "TMPDIR"), config["scratch"][-1])
        return handle, None, refusal
    with contextlib.suppress(OSError):
        isolate.die_first()
    folder = config["folder"]
    if not folder:  # a container has no other
        folder = f"{config['scratch'][-1]}/codechat"
        os.mkdir(folder)
        beside.make_folders(folder, None)
    around = Beside(folder, config["landlock"], config["hide"], config["version"])
    return None, around, around.refusal or refusal


def _own_user() -> int | None:
    """The number of a user that is this process's alone; None if the system has no such numbers. Without namespaces all
    processes of a user are counted together. Other zygotes' programs would use up the number that a program may have,
    and could end it."""
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


class Zygote:
    """Serves runs until the parent hangs up. `handle`: its PID namespace; without it, `around` confines programs."""

    def __init__(
        self, control: socket.socket, handle: int | None, around: Beside | None, config: dict[str, Any]
    ) -> None:
        self._control, self._handle, self._around, self._config = control, handle, around, config

    def serve(self) -> NoReturn:
        """Run each job that comes, and report its end."""
        while True:
            message, handles = _receive(self._control)
            if not message:
                self._end()
            if message == wire.WARM:
                _warm(handles[0], self._config["scratch"], self._handle is not None)
                self._control.send(wire.WARM)
            elif message in (wire.RUN, wire.TESTED):  # else a KILL that crossed the end of the last run
                self._run(handles, tested=message == wire.TESTED)

    def _run(self, handles: list[int], *, tested: bool) -> None:
        ends: tuple[socket.socket | None, ...] = socket.socketpair() if tested else (None,)
        supervised = self._around is not None and self._around.place != "bare"
        asking = [socket.socketpair() for _ in ends] if supervised else []
        children = []
        for number, peer in enumerate(ends):
            if self._handle is not None:
                isolate.new_pid_namespace()
            child = os.fork()
            if child == 0:
                part = Part(handles, peer, number, asking[number][1] if asking else None)
                _child(part, self._config, self._around)
            children.append(child)
            if self._handle is not None:
                isolate.back_to(self._handle)
        for handle in (*handles, *(peer.detach() for peer in ends if peer is not None)):
            os.close(handle)
        watched = None
        if self._around is not None:
            for _, theirs in asking:
                theirs.close()
            watched = Watched(self._around, children, [ours for ours, _ in asking])
        self._watch(children, watched)
        if self._around is not None:
            self._around.clear()

    def _watch(self, children: list[int], watched: Watched | None) -> None:
        pidfds = [os.pidfd_open(child) for child in children]
        self._wait(pidfds, watched)
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
        if watched is not None:
            watched.close()
            isolate.sweep()
        times = sum(usage.ru_utime for usage in used), sum(usage.ru_stime for usage in used)
        self._control.send(wire.STATUS.pack(status, *times, max(usage.ru_maxrss for usage in used)))

    def _wait(self, pidfds: list[int], watched: Watched | None) -> None:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(pidfds[0], select.POLLIN)
        wait = None if watched is None else MOST_MS
        while True:
            ready = dict(poll.poll(wait))
            if watched is not None and wait == MOST_MS:
                wait = LOOK_MS
                watched.register(poll)
            if ready.pop(self._control.fileno(), 0):
                _kill(pidfds)
                if self._control.recv(64) != wire.KILL:
                    self._end()
            if pidfds[0] in ready:
                return
            if watched is not None:
                for handle, event in ready.items():
                    watched.handle(handle, event)
                if watched.overfull():
                    _kill(pidfds)

    def _end(self) -> NoReturn:
        """The parent is gone: so is all that programs started, and what they wrote."""
        if self._around is not None:
            isolate.sweep()
            self._around.remove()
        os._exit(0)


def _warm(listed: int, scratch: list[str], namespaces: bool) -> None:
    """Load what assertion tests use, and the modules that the file `listed` names, which every fork then has."""
    names: list[str] = marshal.loads(_whole(listed))
    os.close(listed)
    if names and namespaces:
        isolate.empty_folders(scratch)  # some libraries write a cache when they are loaded
    for name in (*OF_TESTS.split(), *names):
        with contextlib.suppress(Exception):  # a program or a test that needs it raises the error again
            __import__(name)
    _settle()


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    handles = array.array("i")
    message, ancillary, _, _ = control.recvmsg(64, socket.CMSG_SPACE(wire.HANDLES * handles.itemsize))
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            handles.frombytes(data[: len(data) - len(data) % handles.itemsize])
    return message, list(handles)


def _kill(pidfds: list[int]) -> None:
    for pidfd in pidfds:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)


@dataclass
class Part:
    """A child's part in a run: the run's descriptors, its end of the socket between two children that share the run,
    its number among them, and where a supervisor waits for it."""

    handles: list[int]
    peer: socket.socket | None
    number: int
    asker: socket.socket | None

    def take(self) -> tuple[socket.socket, mmap.mmap | None, socket.socket | None]:
        """Close all descriptors but the results' socket, 3, the other child's, 4, and for now the supervisor's, 5."""
        _, shared_file, results_file, *others = self.handles
        shared = None if self.number else mmap.mmap(shared_file, wire.SHARED_SIZE)
        for number, output in enumerate(others if self.peer is None else (), 1):
            os.dup2(output, number)
        os.dup2(results_file, 3, inheritable=False)
        peer = None
        if self.peer is not None:
            os.dup2(self.peer.detach(), 4, inheritable=False)
            peer = socket.socket(fileno=4)
        if self.asker is not None:
            os.dup2(self.asker.detach(), 5, inheritable=False)
            self.asker = socket.socket(fileno=5)
        os.closerange(4, 4 if peer is not None else 5)
        os.closerange(5 if self.asker is None else 6, 1 << 16)
        return socket.socket(fileno=3), shared, peer


def _child(part: Part, config: dict[str, Any], around: Beside | None) -> NoReturn:
    """Read the job, confine, run. Never returns; errors before the candidate's code go to stderr."""
    try:
        job: dict[str, Any] = marshal.loads(_whole(part.handles[3 if part.number else 0]))
        os.setsid()  # a signal to its group must not reach the zygote
        needs, alone = job.get("needs", ()), job.get("alone", False)
        limits = {**config["limits"], "cpu": job["cpu"]}
        limits |= {name: job[name] for name in ("file", "processes") if name in job}
        if around is not None:
            around.enter(part.number, alone)
        results, shared, peer = part.take()
        place = around.place if around is not None else "namespaces"
        isolate.confine(limits, place, config["scratch"], needs, alone=alone, reaps="argv" not in job)
        if "argv" in job:
            _write_files(job)
        if around is not None and part.asker is not None:  # last, since it keeps modes of files from being set
            around.be_supervised(part.asker, limits, "argv" not in job)
        results.sendall(wire.HEADER.pack(wire.STARTED, 0, 0))
        if "argv" in job:
            _become_program(job, config["paths"])
        os.dup2(0, 1)
        os.dup2(0, 2)
    except BaseException:  # noqa: BLE001  nothing may run past this point
        traceback.print_exc()
        os._exit(70)
    if peer is not None and shared is None:
        results.close()
        responder.run(job, peer)
    assert shared is not None
    if peer is not None:
        tester.run(job, results, shared, peer)
    if "snippets" in job:
        tester.run_shared(job, results, shared)
    candidate.run(job, results, shared)


def _whole(handle: int) -> bytes:
    """All of a file, without moving an offset that other processes share."""
    size = os.fstat(handle).st_size
    pieces, at = [], 0
    while at < size:
        pieces.append(os.pread(handle, size - at, at))
        at += len(pieces[-1])
    return b"".join(pieces)


def _write_files(job: dict[str, Any]) -> None:
    for name, data in job["files"].items():
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "wb") as stream:
            stream.write(data)
        os.chmod(name, 0o755)
    if job["archive"]:
        with tarfile.open(fileobj=io.BytesIO(job["archive"])) as archive:
            archive.extractall(**OF_DATA)
    os.chdir(job["folder"])


def _become_program(job: dict[str, Any], paths: list[str]) -> NoReturn:
    """Replace this process by the command of a job, or report that it cannot be run."""
    program, *arguments = job["argv"]
    given = job["environment"]
    variables = {"TMPDIR": os.getcwd(), **given}
    if program == wire.PYTHON:
        variables["PYTHONPATH"] = os.pathsep.join([*filter(None, [given.get("PYTHONPATH")]), *paths])
        os.execve(sys.executable, [sys.executable, "-s", "-B", *arguments], {**os.environ, **variables})
    of_the_box = {name: value for name, value in os.environ.items() if name != OF_THE_INTERPRETER}
    try:
        os.execvpe(program, [program, *arguments], {"PATH": wire.PATH, **of_the_box, **variables})
    except OSError as error:
        os.write(2, f"{program}: {os.strerror(error.errno or 0)}\n".encode())
        os.write(3, wire.HEADER.pack(wire.MISSING, 0, 0))
        os._exit(NOT_RUN)
