"""The verdict on one file by calls, where codechat is not installed: with the standard library and `MODULES` alone.

`python3 -m codechat.sandbox.suites.calls.standalone PROGRAM FOLDER` runs in a folder that holds the modules and two
files: `job` is all that the program's process gets, `expected` the results and how they are compared. The verdict goes
into FOLDER as Harbor's `reward.json`, and with its outcome and reason as `verdict.json`. As root, the program runs as
another user, who reaches neither these files nor FOLDER; a container is assumed around both.
"""

import contextlib
import json
import marshal
import mmap
import os
import resource
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from codechat.sandbox.inside import candidate, isolate, wire
from codechat.sandbox.inside.decode import decode
from codechat.sandbox.suites.calls.oracle import Comparison
from codechat.sandbox.suites.calls.results import Expected, Results
from codechat.sandbox.watch import Frames, Malformed

MODULES = (
    *("base.errors", "sandbox.watch", "sandbox.suites.values"),
    *(f"sandbox.inside.{name}" for name in ("candidate", "decode", "encode", "isolate", "seccomp", "text", "wire")),
    *(f"sandbox.suites.calls.{name}" for name in ("conform", "oracle", "results", "standalone")),
)
"""The modules of codechat that the folder needs; their packages are empty."""
SHOWN = 400  # characters of a reason
Ruling = tuple[str, str]  # outcome and reason


class Stream:
    """The frames of one program, and what they decide: `ruling`, None as long as nothing is decided."""

    def __init__(self, results: Results, wanted: int) -> None:
        self._frames, self.results, self._wanted = Frames(), results, wanted
        self.loaded, self.ruling = False, None if wanted else ("crash", "there are no tests")

    def read(self, data: bytes) -> bytes:
        """Take bytes; return the answer to send back."""
        answer: bytes | None = b""
        try:
            for kind, payload in self._frames.feed(data):
                if kind == wire.LOADED:
                    self.loaded = True
                elif kind in (wire.VALUE, wire.DIGEST, wire.CANONICAL) and self.loaded and not self._whole:
                    answer = self.results.take(kind, payload)
                    self.ruling = ("fail", f"wrong result of call {self.results.index}") if answer is None else None
                elif kind != wire.STARTED:
                    self.ruling = self._last(kind, payload)
                if self.ruling is not None:
                    break
        except (Malformed, ValueError, TypeError) as error:
            self.ruling = ("crash", f"the results cannot be read: {error}")
        return answer or b""

    @property
    def _whole(self) -> bool:
        return self.results.index == self._wanted

    def _last(self, kind: bytes, payload: bytes) -> Ruling:
        if kind == wire.DONE and self.loaded and self._whole:
            return "pass", ""
        if kind == wire.MISSING:
            return "no_code", "the file does not define the function"
        if kind == wire.SYNTAX:
            return "syntax_error", payload.decode(errors="replace")
        if kind == wire.ERROR:
            name, text, _, ending = decode(payload)
            return "fail" if ending == "error" else "crash", f"{name}: {text}"
        raise Malformed("a frame out of order")


def judge(program: Path, job: dict[str, Any], expected: Path) -> tuple[Ruling, bool]:
    """The ruling on a program, and whether all base calls were right."""
    if not program.is_file():
        return ("no_code", f"there is no {program.name}"), False
    job["program"] = program.read_text(encoding="utf-8", errors="replace")
    ours, theirs = socket.socketpair()
    shared = mmap.mmap(-1, wire.SHARED_SIZE)
    child = os.fork()  # before the expected results are read: it shares this memory
    if child == 0:
        ours.close()
        _become_program(job, theirs, shared)
    theirs.close()
    tests: dict[str, Any] = marshal.loads(expected.read_bytes())
    results = Results(
        [Expected(*each) for each in tests["expected"]],
        marshal.loads(job["calls"]),
        tests["base"],
        lambda: Comparison(tests["oracle"], tests["atol"]),
    )
    stream = Stream(results, len(tests["expected"]))
    received, deadline = 0, time.monotonic() + job["wall_s"]
    while stream.ruling is None:
        if not select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
            stream.ruling = ("timeout", "it takes too long by the clock")
        elif data := _received(ours):
            received += len(data)
            if answer := stream.read(data):
                with contextlib.suppress(OSError):  # a program that is gone waits for nothing
                    ours.send(answer)
        else:
            break
    if stream.ruling is not None:
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    isolate.sweep()
    waiting, start = wire.CURSOR.unpack_from(shared, 0)
    if stream.ruling is None and received >= start:
        stream.read(shared[wire.FRAMES_AT + received - start : wire.FRAMES_AT + min(waiting, wire.FRAMES_SIZE)])
    ended = os.waitstatus_to_exitcode(status)
    by_timer = -ended in (signal.SIGPROF, signal.SIGXCPU)
    last = ("timeout", "its CPU time is used up") if by_timer else ("crash", f"the process ended with status {ended}")
    return stream.ruling or last, stream.loaded and results.index >= tests["base"]


def _received(results: socket.socket) -> bytes:
    try:
        return results.recv(1 << 18)
    except OSError:
        return b""


def _become_program(job: dict[str, Any], results: socket.socket, shared: mmap.mmap) -> NoReturn:
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        sys.path.remove(str(Path.cwd()))
        os.chdir("/tmp")
        if os.geteuid() == 0:
            isolate.drop_user(isolate.NO_USER)
        for limit, value in (("AS", job["memory"]), ("FSIZE", job["file"]), ("CPU", 2 * job["cpu"]), ("CORE", 0)):
            resource.setrlimit(getattr(resource, f"RLIMIT_{limit}"), (value, value))
        results.sendall(wire.HEADER.pack(wire.STARTED, 0, 0))
        candidate.run(job, results, shared)
    finally:
        os._exit(70)


def main(program: Path, folder: Path) -> None:
    """Judge the program by the tests in the working folder."""
    if os.geteuid() == 0:
        for closed in (Path.cwd(), folder.parent):
            closed.chmod(0o700)
    isolate.lock_down()
    (outcome, reason), base = judge(program, marshal.loads(Path("job").read_bytes()), Path("expected"))
    passed = outcome == "pass"
    verdict = {"outcome": outcome, "passed_base": base, "reason": reason[:SHOWN]}
    (folder / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    (folder / "reward.json").write_text(json.dumps({"reward": int(passed), "passed_base": int(base)}), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
