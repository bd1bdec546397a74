"""The verdict on one file by calls, where codechat is not installed: with the standard library and `MODULES` alone.

`python3 -m codechat.sandbox.suites.calls.standalone PROGRAM FOLDER` runs in a folder with these modules and two files:
`job` is all that the program's process gets, `expected` the results and how they are compared. FOLDER gets Harbor's
`reward.json`. Root runs the program as another user, who reaches neither folder; a container is assumed around all.
"""

import contextlib
import json
import marshal
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
UNLOADED = {wire.MISSING: "no_code", wire.SYNTAX: "syntax_error"}


def judge(program: Path, job: dict[str, Any], expected: Path) -> tuple[str, str, bool]:
    """The outcome, its reason, and whether all base calls were right."""
    if not program.is_file():
        return "no_code", f"there is no {program.name}", False
    job["program"] = program.read_text(encoding="utf-8", errors="replace")
    ours, theirs = socket.socketpair()
    child = os.fork()  # before the expected results are read: it shares this memory
    if child == 0:
        _become_program(job, theirs)
    theirs.close()
    tests: dict[str, Any] = marshal.loads(expected.read_bytes())
    values = [Expected(*each) for each in tests["expected"]]
    inputs = marshal.loads(job["calls"])
    results = Results(values, inputs, tests["base"], lambda: Comparison(tests["oracle"], tests["atol"]))
    try:
        outcome, reason = _follow(ours, results, time.monotonic() + job["wall_s"])
    except (Malformed, ValueError, TypeError) as error:
        outcome, reason = "crash", f"the results cannot be read: {error}"
    except OSError:
        outcome, reason = "crash", "the process is gone"
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL if outcome else 0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    isolate.sweep()
    if not outcome:
        timed_out = -status in (signal.SIGPROF, signal.SIGXCPU)
        outcome, reason = "timeout" if timed_out else "crash", f"the process ended with status {status}"
    return outcome, reason, results.index >= tests["base"]


def _follow(ours: socket.socket, results: Results, deadline: float) -> tuple[str, str]:
    """The outcome and its reason by the program's frames (`candidate`); empty if they end before. Raises `OSError`, and
    `ValueError` and `TypeError` for frames that cannot be read."""
    frames = Frames()
    while select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
        if not (data := ours.recv(1 << 18)):
            return "", ""
        for kind, payload in frames.feed(data):
            left = len(results.expected) - results.index
            if kind in (wire.VALUE, wire.DIGEST, wire.CANONICAL) and left:
                if (answer := results.take(kind, payload)) is None:
                    return "fail", f"the result of call {results.index} is wrong"
                if answer:
                    ours.sendall(answer)
            elif kind == wire.DONE and not left:
                return "pass", ""
            elif kind in UNLOADED:
                return UNLOADED[kind], payload.decode(errors="replace")
            elif kind == wire.ERROR:
                name, text, _, ending = decode(payload)
                return "fail" if ending == "error" else "crash", f"{name}: {text}"
            elif kind not in (wire.STARTED, wire.LOADED):
                raise Malformed("a frame out of order")
    return "timeout", "it takes too long by the clock"


def _become_program(job: dict[str, Any], results: socket.socket) -> NoReturn:
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        os.dup2(results.detach(), 3, inheritable=False)
        os.closerange(4, 256)
        sys.path.remove(str(Path.cwd()))
        os.chdir("/tmp")
        if os.geteuid() == 0:
            isolate.drop_user(isolate.NO_USER)
        for limit, value in (("AS", job["memory"]), ("FSIZE", job["file"]), ("CPU", 2 * job["cpu"]), ("CORE", 0)):
            resource.setrlimit(getattr(resource, f"RLIMIT_{limit}"), (value, value))
        own: Any = bytearray(wire.SHARED_SIZE)  # frames that a kill leaves here are lost: no verdict needs them
        candidate.run(job, socket.socket(fileno=3), own)
    finally:
        os._exit(70)


def main(program: Path, folder: Path) -> None:
    """Judge the program by the tests in the working folder."""
    if os.geteuid() == 0:
        for closed in (Path.cwd(), folder.parent):
            closed.chmod(0o700)
    isolate.lock_down()
    outcome, reason, base = judge(program, marshal.loads(Path("job").read_bytes()), Path("expected"))
    rewards = {"reward": int(outcome == "pass"), "passed_base": int(base)}
    (folder / "reward.json").write_text(json.dumps(rewards), encoding="utf-8")
    sys.stdout.write(f"{outcome}: {reason[:400]}\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
