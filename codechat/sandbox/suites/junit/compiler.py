"""A warm compiler: a trusted process that compiles programs with their tests, and runs nothing of them."""

import contextlib
import os
import select
import struct
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from codechat.base.errors import InfrastructureError

SIZE = struct.Struct(">i")
POLL_S = 0.1
TICKS = os.sysconf("SC_CLK_TCK")
CEILING_FACTOR, CEILING_S = 10.0, 30.0  # by the clock, over the CPU time: no busy machine needs it
LARGEST = 256 << 20  # bytes of an answer
START_CPU_S = 60.0
RENEWED_AFTER = 2000  # units: a compiler that works for hours must not grow


class Kind(IntEnum):
    """The kinds of answers, in the order of `Compiler.java`; `TOO_LONG` and `ENDED` are made on this side."""

    COMPILED = 0
    PROGRAM_DOES_NOT_PARSE = 1
    PROGRAM_FAILS = 2
    TESTS_DO_NOT_FIT = 3
    TESTS_DO_NOT_PARSE = 4
    GIVES_UP = 5
    SHADOWS = 6
    TOO_LONG = 7
    ENDED = 8


@dataclass(frozen=True, slots=True)
class Compiled:
    """The compiler's answer.

    `text` holds the test classes if the unit was compiled, else a message. `unit` holds the classes: their number,
    then each one's name and content, preceded by their sizes.
    """

    kind: Kind
    text: str
    unit: bytes = b""
    cpu_s: float = 0.0


class Compiler:
    """One compiler process, started at the first unit, and anew after it ended. Used by one thread at a time."""

    def __init__(self, argv: Sequence[str], sample: tuple[str, str]) -> None:
        """`argv` starts it. The `sample`, a program and its tests, is compiled first: no unit pays for the start."""
        self._argv, self._sample = list(argv), _request(*sample)
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped, self._units = False, 0
        self._lock = threading.Lock()  # held while a unit is compiled

    def compile(self, program: str, tests: str, declares: Sequence[str], *, limit_s: float) -> Compiled:
        """Compile a unit within `limit_s` CPU seconds. A unit that ends two compilers is at fault itself.

        `declares` names types that the program may declare although a library of the tests has them.

        Raises `InfrastructureError` if the compiler cannot be started, or was stopped.
        """
        request = _request(program, tests, declares)
        with self._lock:
            answer = self._try(request, limit_s)
            return answer if answer.kind is not Kind.ENDED else self._try(request, limit_s)

    def stop(self) -> None:
        """End it for good, from any thread."""
        self._stopped = True
        process = self._process
        if process is not None:
            process.kill()  # whoever waits for it goes on
        with self._lock:
            self._end()

    def _end(self) -> None:
        process = self._process
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):  # what was not sent is not wanted
                        stream.close()
        self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._stopped:
            raise InfrastructureError("the compiler was stopped")
        if self._process is None or self._units >= RENEWED_AFTER:
            self._end()
            self._units = 0
            try:
                self._process = subprocess.Popen(
                    self._argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    cwd="/",
                    env={"LANG": "C.UTF-8"},
                    start_new_session=True,
                )
            except OSError as error:
                raise InfrastructureError(f"the Java compiler does not start: {error.strerror}") from error
            if self._ask(self._process, self._sample, START_CPU_S).kind is not Kind.COMPILED:
                raise InfrastructureError("the Java compiler does not compile a sample")
        self._units += 1
        return self._process

    def _try(self, request: bytes, limit_s: float) -> Compiled:
        return self._ask(self._started(), request, limit_s)

    def _ask(self, process: subprocess.Popen[bytes], request: bytes, limit_s: float) -> Compiled:
        before = _cpu_s(process.pid)
        try:
            assert process.stdin is not None
            while request:
                request = request[process.stdin.write(request) :]
            meter = _Meter(process, before + limit_s)
            size = SIZE.unpack(meter.read(SIZE.size))[0]
            if not 0 < size <= LARGEST:
                raise EOFError
            answer = meter.read(size)
        except TimeoutError:
            self._end()
            return Compiled(Kind.TOO_LONG, "", cpu_s=limit_s)
        except (OSError, EOFError):
            self._end()
            if self._stopped:
                raise InfrastructureError("the compiler was stopped") from None
            return Compiled(Kind.ENDED, "")
        return _read(answer, max(0.0, _cpu_s(process.pid) - before))


class _Meter:
    """Reads a process's answer, until it has used its CPU time or far more by the clock."""

    def __init__(self, process: subprocess.Popen[bytes], cpu_s: float) -> None:
        assert process.stdout is not None
        self._pid, self._stream, self._cpu_s = process.pid, process.stdout.fileno(), cpu_s
        self._until = time.monotonic() + CEILING_S + CEILING_FACTOR * cpu_s

    def read(self, size: int) -> bytes:
        """The next `size` bytes. Raises `EOFError` at the end of the stream, and `TimeoutError`."""
        pieces: list[bytes] = []
        while size:
            if not select.select([self._stream], [], [], POLL_S)[0]:
                if _cpu_s(self._pid) > self._cpu_s or time.monotonic() > self._until:
                    raise TimeoutError
                continue
            piece = os.read(self._stream, size)
            if not piece:
                raise EOFError
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


def _read(answer: bytes, cpu_s: float) -> Compiled:
    kind, size = Kind(answer[0]), SIZE.unpack_from(answer, 1)[0]
    end = 1 + SIZE.size + size
    return Compiled(kind, answer[1 + SIZE.size : end].decode(errors="replace"), answer[end:], cpu_s)


def _request(program: str, tests: str, declares: Sequence[str] = ()) -> bytes:
    texts = [text.encode("utf-8", "replace") for text in (program, tests, " ".join(declares))]
    return b"".join(SIZE.pack(len(data)) + data for data in texts)


def _cpu_s(pid: int) -> float:
    """The CPU seconds of a process; 0 if it is gone, which the end of its stream shows too."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:  # noqa: PTH123  called ten times a second
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS
