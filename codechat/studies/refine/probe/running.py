"""A program's results on many inputs, in the sandbox: each exception, exit and limit concerns one input alone."""

import marshal
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from codechat.base.files import content_hash
from codechat.sandbox import PYTHON, Box, Command, Job, Sandbox, TakenDown, WorkerDied
from codechat.sandbox.inside import wire
from codechat.sandbox.suites.calls import Calls
from codechat.sandbox.suites.endings import exception_parts, explain_end
from codechat.sandbox.suites.values import decode_value
from codechat.sandbox.watch import Frames, Malformed
from codechat.studies.refine.probe.mutating import Arguments

TOTAL_S, IDLE_S = 5.0, 10.0  # CPU seconds, and seconds of waiting, of a program over all inputs
MOST_STARTS = 8  # processes of a program: an input that ends one is left out of the next
OUTPUT = 16 << 20  # bytes of results
LIMITS = frozenset(("MemoryError", "RecursionError"))  # exceptions that depend on limits
OTHER_SEED = "1"  # of string hashes: the sandbox has 0
Kind = Literal["value", "long", "raised", "limit"]


@dataclass(frozen=True)
class Result:
    """The result of one call: an encoded `value`, the digest of a `long` one, the name of what it `raised`, or nothing
    because of a `limit`. `cpu_s` is 0 unless it was measured."""

    kind: Kind
    data: bytes = b""
    cpu_s: float = 0.0


LIMIT = Result("limit")


def _caught(source: str, entry_point: str) -> tuple[str, str]:
    """The program with a further function, which calls the entry point and returns exceptions; and its name."""
    name = f"_caught_{content_hash(source)[:16]}"
    return (
        f"{source}\n\n\ndef {name}(*arguments):\n"
        f"    try:\n        return {entry_point}(*arguments)\n"
        f"    except (Exception, SystemExit) as error:\n        return ('{name}', type(error).__name__)\n"
    ), name


class _Claims:
    """Reads the results that a process claims."""

    def __init__(self, name: str, wanted: int) -> None:
        self._raised = marshal.dumps((name, ""), 2)[:-4]  # how such a result begins, up to the length of the last text
        self._frames, self._room, self._wanted, self._cpu_s = Frames(), OUTPUT, wanted, 0.0
        self.started = self.loaded = self.ended = False
        self.results: list[Result] = []

    def read(self, data: bytes) -> tuple[bytes, bool]:
        """Take bytes; return the answer to send back, and whether the process is to be ended."""
        self._room -= len(data)
        answer = b""
        try:
            for kind, payload in self._frames.feed(data):
                answer = self._frame(kind, payload)
        except (Malformed, ValueError):
            return b"", True
        return answer, self._room < 0

    def _frame(self, kind: bytes, payload: bytes) -> bytes:
        if kind == wire.STARTED:
            self.started = True
        elif kind == wire.LOADED:
            self.loaded = True
        elif not self.loaded or len(self.results) == self._wanted:
            if kind != wire.DONE:
                raise Malformed("nothing more is expected")
        elif kind == wire.CPU:
            self._cpu_s = wire.DOUBLE.unpack(payload)[0]
        elif kind == wire.DIGEST:
            self.results.append(Result("long", payload))
            return wire.NEXT
        elif kind == wire.ERROR:
            self.results.append(_exception(exception_parts(payload)[0]))
            self.ended = True
        elif kind == wire.VALUE and payload.startswith(self._raised):
            self.results.append(_exception(str(decode_value(payload)[1])))
        elif kind == wire.VALUE:
            self.results.append(Result("value", payload, self._cpu_s))
        else:
            raise Malformed("a frame out of order")
        return b""


def _exception(name: str) -> Result:
    return LIMIT if name in LIMITS else Result("raised", name.encode(errors="replace"))


@dataclass(frozen=True)
class Runner:
    """Runs programs of a task on inputs. A program may take `limit_s` CPU seconds for each."""

    sandbox: Sandbox
    calls: Calls

    async def run(
        self, source: str, inputs: Sequence[Arguments], limit_s: float, *, timed: bool = False
    ) -> list[Result]:
        """A result for each input. Raises `InfrastructureError` if the sandbox fails."""
        program, name = _caught(source, self.calls.entry_point)
        job = {
            "program": program,
            "entry": name,
            "elements": self.calls.oracle == "set_equal",
            "load_cpu_s": self.sandbox.config.load_cpu_s,
            "timed": timed,
            "flush_after": -1,
        }
        try:
            return await self.sandbox.lend(lambda box: self._run(box, job, name, inputs, limit_s))
        except TakenDown:
            return [LIMIT] * len(inputs)

    def _run(
        self, box: Box, job: dict[str, object], name: str, inputs: Sequence[Arguments], limit_s: float
    ) -> list[Result]:
        results: list[Result] = []
        left_s, config = TOTAL_S, self.sandbox.config
        for _ in range(MOST_STARTS):
            rest = [tuple(arguments) for arguments in inputs[len(results) :]]
            if not rest or left_s <= 0:
                break
            cpu = math.ceil(left_s) + 1
            own = {"calls": marshal.dumps(rest, 2), "limits": (limit_s,) * len(rest), "cpu": cpu}
            claims = _Claims(name, len(rest))
            ended = box.python(
                Job(marshal.dumps(job | own, 2), min(config.idle_s, IDLE_S), IDLE_S, float(cpu)), claims.read
            )
            if not claims.started:
                raise WorkerDied("the program could not be confined")
            left_s -= ended.cpu_s
            results += claims.results
            if not claims.loaded:
                break
            if len(claims.results) < len(rest) and not claims.ended:
                outcome, reason = explain_end(ended, cpu)
                exits = outcome == "crash" and not reason.startswith("killed")
                results.append(Result("raised", b"exit") if exits else LIMIT)
        return [*results, *[LIMIT] * (len(inputs) - len(results))]

    async def run_again(self, source: str, inputs: Sequence[Arguments]) -> list[Result]:
        """As `run`, in a process with other hashes of strings; what is no plain data counts as a limit."""
        program, name = _caught(source, self.calls.entry_point)
        given = {"candidate.py": program.encode(), "calls": marshal.dumps([tuple(each) for each in inputs], 2)}
        again = _AGAIN.replace("NAME", name).replace("ELEMENTS", str(self.calls.oracle == "set_equal"))
        given |= {"again.py": again.encode(), **_encoder()}
        ran = await self.sandbox.run(
            Command(
                argv=(PYTHON, "again.py"),
                files=given,
                environment={"PYTHONHASHSEED": OTHER_SEED},
                wall_s=10 * TOTAL_S,
                cpu_s=2 * TOTAL_S,
                tail=OUTPUT,
            )
        )
        claims = _Claims(name, len(inputs))
        claims.loaded = True
        for line in ran.stdout.split("\n"):
            mark, _, data = line.partition(" ")
            if mark == name and len(claims.results) < len(inputs):
                payload = bytes.fromhex(data)
                claims.read(wire.HEADER.pack(wire.VALUE, len(payload), 0) + payload)
        return [*claims.results, *[LIMIT] * (len(inputs) - len(claims.results))]


_AGAIN = """
import marshal, sys
from candidate import NAME as call
from codechat.sandbox.inside.encode import encode
for arguments in marshal.loads(open("calls", "rb").read()):
    try:
        data, size, _ = encode(call(*arguments), ELEMENTS)
    except Exception:
        size = 1
    sys.stdout.write("\\nNAME " + (b"" if size else data).hex() + "\\n")
"""


def _encoder() -> dict[str, bytes]:
    """The modules that encode results, as files: a box does not see codechat."""
    packages = ("codechat", "codechat/sandbox", "codechat/sandbox/inside")
    inside = files("codechat.sandbox.inside")
    return {
        **{f"{package}/__init__.py": b"" for package in packages},
        **{f"codechat/sandbox/inside/{name}.py": (inside / f"{name}.py").read_bytes() for name in ("encode", "wire")},
    }
