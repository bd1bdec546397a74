"""The reference solution's results and CPU times, computed once per machine and kept on disk.

None of this is ever sent to a candidate. A file holds one task: a JSON line with the kinds, sizes and CPU times, then
the values' bytes as the child wrote them. The key covers reference, inputs, interpreter, machine and the code that
makes the bytes, so that a change of any of them computes them again.
"""

import functools
import hashlib
import json
import platform
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from codechat.base.errors import BrokenTask
from codechat.base.files import write_atomically
from codechat.sandbox import inside
from codechat.sandbox.inside import wire
from codechat.sandbox.inside.encode import canonical, encode
from codechat.sandbox.process import secret_folder
from codechat.sandbox.suites.calls.oracle import is_floats
from codechat.sandbox.suites.calls.results import FLOATS, OPAQUE, UNEQUAL, Expected
from codechat.sandbox.suites.endings import exception_parts
from codechat.sandbox.suites.values import equals_itself, opaque_in, read_or_opaque
from codechat.sandbox.watch import Frames, Malformed


@dataclass(frozen=True)
class ReferenceResults:
    """A task's expected values and the reference's CPU seconds, base inputs first."""

    expected: tuple[Expected, ...]
    cpu_s: tuple[float, ...]

    @property
    def size_in_memory(self) -> int:
        """The rough number of bytes in memory."""
        return sum(len(value.data) + 200 for value in self.expected)


def encode_expected(value: object, *, elements: bool) -> Expected:
    """An expected value from the dataset itself; `elements`: the oracle compares elements."""
    data, size, value = encode(value, elements)
    return Expected(data, size, canonical(value) if size else None, 0 if size else _flags(data))


def cache_path(reference: str, entry_point: str, oracle: str, inputs: bytes, libraries: str = "") -> Path:
    """The file with a reference's results. `libraries`: the versions of libraries that are not codechat's own."""
    parts = [reference, entry_point, str(oracle == "set_equal"), machine(), *([libraries] if libraries else [])]
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass"))
    digest.update(inputs)
    return secret_folder("expected") / f"{digest.hexdigest()}.bin"


@functools.cache
def machine() -> str:
    """The things that CPU times and bytes depend on: host, processor, interpreter, and the code inside the sandbox."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    model = next((line for line in lines if line.startswith("model name")), "")
    sources = sorted(Path(inside.__path__[0]).glob("*.py"))
    code = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    return "\x1f".join([platform.node(), model, sys.version, sys.executable, code])


class Recorder:
    """Reads the stream of a reference's run."""

    def __init__(self) -> None:
        self._frames = Frames()
        self.values: list[Expected] = []
        self.cpu_s: list[float] = []
        self.done = False
        self.problem: str | None = None

    def read(self, data: bytes) -> tuple[bytes, bool]:
        """Take bytes; return the answer to send back, and whether the run has failed."""
        try:
            for kind, payload in self._frames.feed(data):
                if answer := self._frame(kind, payload):
                    return answer, False
        except (Malformed, struct.error, IndexError):
            self.problem = "it writes into the sandbox's own channel"
        return b"", self.problem is not None

    def _frame(self, kind: bytes, payload: bytes) -> bytes:
        if kind == wire.CPU:
            self.cpu_s.append(wire.DOUBLE.unpack(payload)[0])
        elif kind == wire.VALUE:
            self.values.append(Expected(payload, 0, None, _flags(payload)))
        elif kind == wire.DIGEST:
            size = int.from_bytes(payload[32:], "little")
            self.values.append(Expected(payload[:32], size, None, 0))
            return wire.ASK_CANONICAL if size <= wire.CANONICAL_UP_TO else wire.NEXT
        elif kind == wire.CANONICAL:
            last = self.values[-1]
            self.values[-1] = Expected(last.data, last.size, payload, 0)
        elif kind == wire.DONE:
            self.done = True
        elif kind not in (wire.STARTED, wire.LOADED):
            self.problem = _problem(kind, payload)
        return b""


def _problem(kind: bytes, payload: bytes) -> str:
    if kind == wire.MISSING:
        return "it does not define the entry point"
    if kind == wire.SYNTAX:
        return "it does not parse: " + payload.decode(errors="replace")
    name, text, *_ = exception_parts(payload)
    return f"it raises {name}: {text}"


def _flags(data: bytes) -> int:
    value = read_or_opaque(data)
    unequal, opaque = not equals_itself(value), opaque_in(value) is not None
    return UNEQUAL * unequal | FLOATS * is_floats(value) | OPAQUE * opaque


def require_comparable(name: str, results: ReferenceResults) -> None:
    """Raise `UserError` if an expected value is not plain data: it equals nothing, so that no program could pass."""
    for index, expected in enumerate(results.expected):
        if expected.flags & OPAQUE:
            what = opaque_in(read_or_opaque(expected.data))
            message = f"the reference of {name} returns what cannot be compared, on input {index}: {what}"
            raise BrokenTask(message, "have it return numbers, texts, lists and the like")


def save(path: Path, results: ReferenceResults) -> None:
    """Write results, with a checksum, readable only for this user."""
    head = {
        "sizes": [value.size for value in results.expected],
        "flags": [value.flags for value in results.expected],
        "lengths": [len(value.data) for value in results.expected],
        "canonical": [value.canonical.hex() if value.canonical else None for value in results.expected],
        "cpu_s": results.cpu_s,
    }
    blob = b"".join(value.data for value in results.expected)
    check = hashlib.sha256(blob).hexdigest()
    write_atomically(path, json.dumps({**head, "check": check}).encode() + b"\n" + blob)
    path.chmod(0o600)


def load(path: Path) -> ReferenceResults | None:
    """The results that `save` wrote, or None if the file is missing or damaged."""
    try:
        line, _, blob = path.read_bytes().partition(b"\n")
        head = json.loads(line)
        if hashlib.sha256(blob).hexdigest() != head["check"]:
            return None
        values, at = [], 0
        columns = (head["lengths"], head["sizes"], head["canonical"], head["flags"])
        for length, size, canonical, flags in zip(*columns, strict=True):
            data = blob[at : at + length]
            values.append(Expected(data, size, bytes.fromhex(canonical) if canonical else None, flags))
            at += length
        return ReferenceResults(tuple(values), tuple(head["cpu_s"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def compute(name: str, wanted: int, run: Callable[[Recorder], str | None]) -> ReferenceResults:
    """The results of a reference, by running it with `run`, which returns the reason if the child failed. `wanted` is
    the number of results. Raises `UserError`."""
    recorder = Recorder()
    ended = run(recorder)
    if not recorder.done or len(recorder.values) != wanted or len(recorder.cpu_s) != wanted:
        place = f"on input {len(recorder.values)}" if recorder.problem is None else f"({len(recorder.values)} done)"
        cause = recorder.problem or ended or "it ended early"
        raise BrokenTask(f"the reference of {name} fails {place}: {cause}", "mend the task or leave it out")
    return ReferenceResults(tuple(recorder.values), tuple(recorder.cpu_s))
