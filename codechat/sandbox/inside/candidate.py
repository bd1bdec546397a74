"""Runs one program on its inputs, in its forked child, and writes the results.

The frames that it sends, in this order (`wire` has their form):

    STARTED                      by the zygote's child, before any of the program's code
    SYNTAX | ERROR | MISSING     the program did not compile, raised, or has no entry point: the end
    LOADED                       else its code has run
    [CPU] VALUE                  a result, for each input in turn; CPU: what it took, if the job asks for it
    [CPU] DIGEST                 or, of a big result, its digest; the parent answers NEXT,
      CANONICAL                    or asks for a second digest, which is blind to types
    ERROR                        or the exception that an input raised: the end
    DONE                         every input has a result

Nothing of this is believed because of who sent it: the program runs in this process and can write any frame itself.
A forged result only claims a value, which the parent compares with one that never enters this process.
"""

import contextlib
import gc
import io
import linecache
import marshal
import mmap
import os
import random
import signal
import socket
import sys
import time
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from codechat.sandbox.inside import isolate, wire
from codechat.sandbox.inside.encode import canonical, encode
from codechat.sandbox.inside.text import split_lines

NAME = "<candidate>"
TEXT_LIMIT = 1000
TRACE_LINES = 12
FLUSH_AFTER = 0.02  # seconds
Send = Callable[[bytes, bytes], None]  # a frame, by its kind and payload


class Channel:
    """Writes frames into shared memory; sends them when it is full, after 20 ms, or on `flush`. Most programs end
    within 20 ms: their results cost no system call, since the parent reads the memory at the end."""

    def __init__(self, results: socket.socket, shared: mmap.mmap, head: "Head") -> None:
        self.results, self.shared, self.head = results, shared, head
        self.waiting = 0  # bytes in the memory that are not sent
        self.start = wire.HEADER.size  # position of these bytes in the stream: the frame STARTED went before
        self.flushed = time.monotonic()

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """Write a frame."""
        frame = wire.HEADER.pack(kind, len(payload), self.head.used) + payload
        if self.waiting + len(frame) > wire.FRAMES_SIZE:
            self.flush()
        at = wire.FRAMES_AT + self.waiting
        self.shared[at : at + len(frame)] = frame
        self.waiting += len(frame)
        # The cursor comes after the bytes it counts: a child that is killed between the two loses its last frame, and
        # never shows half of one.
        wire.CURSOR.pack_into(self.shared, 0, self.waiting, self.start)
        if time.monotonic() - self.flushed > FLUSH_AFTER:
            self.flush()

    def flush(self) -> None:
        """Send all written frames over the socket."""
        # If the child is killed before the cursor moves, the parent has these bytes twice: it knows by the position.
        self.results.sendall(self.shared[wire.FRAMES_AT : wire.FRAMES_AT + self.waiting])
        self.start += self.waiting
        self.waiting = 0
        wire.CURSOR.pack_into(self.shared, 0, 0, self.start)
        self.flushed = time.monotonic()

    def ask(self, kind: bytes, payload: bytes) -> bytes:
        """Send a frame and wait for the parent's answer, one byte."""
        self.send(kind, payload)
        self.flush()
        return self.results.recv(1)


class Head(io.BufferedIOBase):
    """The bytes below a standard stream of text: the first `limit` go to `keep`, with the position of each, and the
    rest is dropped. Writing never fails. `number` is the descriptor that the stream says it has."""

    mode = "wb"

    def __init__(self, number: int, limit: int, keep: Callable[[bytes, int], object]) -> None:
        self.name = ("<stdin>", "<stdout>", "<stderr>")[number]
        self.used, self._number, self._limit, self._keep = 0, number, limit, keep

    @property
    def raw(self) -> "Head":
        return self

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def write(self, data: Any) -> int:
        given = memoryview(data)
        left = self._limit - self.used
        if left > 0 and given.nbytes:
            text = isolate.as_everywhere(bytes(given).decode("utf-8", "surrogateescape"))
            head = text[:left].encode("utf-8", "surrogateescape")[:left]
            at = self.used
            self.used += len(head)
            self._keep(head, at)
        return given.nbytes


def set_streams(head: Head) -> None:
    """The standard streams of a program, as any interpreter has them: an empty input, and an output kept by `head`. By
    their descriptors, programs read and write nothing."""
    stdin: Any = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  it stays open
    stdin.buffer.raw.name = "<stdin>"
    sys.stdin = sys.__stdin__ = stdin  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _text(head, "replace")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _text(Head(2, 0, lambda data, at: None), "backslashreplace")  # type: ignore[misc]
    sys.argv = [""]


def _text(head: Head, errors: str) -> Any:
    stream: Any = io.TextIOWrapper(head, encoding="utf-8", errors=errors, write_through=True)
    stream.mode = "w"
    return stream


def run(job: dict[str, Any], results: socket.socket, shared: mmap.mmap) -> NoReturn:
    """Load the program, call its entry point on every input, and end the process."""
    channel = prepare(results, shared)
    calls = marshal.loads(job.pop("calls"))
    try:
        space = load(job["program"], NAME, job["load_cpu_s"], channel.send)
        function = space and space.get(job["entry"])
        if function is not None:
            channel.send(wire.LOADED)
            _call(function, calls, job, channel)
        elif space is not None:
            channel.send(wire.MISSING)
        signal.setitimer(signal.ITIMER_PROF, 0)  # what is left to do is no time of the program's
        channel.flush()
    finally:
        os._exit(0)  # at once: the program may have left threads, exit handlers and objects with destructors


def prepare(results: socket.socket, shared: mmap.mmap) -> Channel:
    """Set up what every program finds: seeded random numbers, an empty input, a bounded output, the collector."""

    def keep(data: bytes, at: int) -> None:
        shared[wire.STDOUT_AT + at : wire.STDOUT_AT + at + len(data)] = data

    head = Head(1, wire.STDOUT_SIZE, keep)
    seed_numbers()
    set_streams(head)
    gc.enable()
    return Channel(results, shared, head)


def seed_numbers() -> None:
    """Seed the random numbers of this process; NumPy's only if it was loaded beforehand: all forks share those."""
    random.seed(0)
    loaded: Any = sys.modules.get("numpy.random")
    if loaded is not None:
        loaded.seed(0)


def cache_snippets(snippets: Sequence[str]) -> dict[str, str]:
    """Have tracebacks show the lines of test snippets; the files' names, each with its label in failures."""
    names = [f"<assertion {number}>" for number in range(1, len(snippets) + 1)]
    for name, snippet in zip(names, snippets, strict=True):
        linecache.cache[name] = (len(snippet), None, snippet.splitlines(keepends=True), name)
    return {name: f"assertion {number}, " for number, name in enumerate(names, 1)}


def load(program: str, name: str, limit: float, send: Send, *, lent: str = "") -> dict[str, Any] | None:
    """The program's names, after its code ran as file `name`; None after reporting why it failed. It also finds what
    the lines `lent` import, unless it has such names itself."""
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        code = compile(program, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        send(wire.SYNTAX, text_of(error).encode("utf-8", "replace"))
        return None
    module = types.ModuleType("candidate")
    module.__file__ = name
    sys.modules["candidate"] = module
    linecache.cache[name] = (len(program), None, split_lines(program), name)
    given: dict[str, Any] = {}
    try:
        for line in lent.splitlines():
            with contextlib.suppress(ImportError):  # then the tests do not run either
                exec(line, given)
        exec(code, module.__dict__)
        for imported, value in given.items():
            module.__dict__.setdefault(imported, value)
    except BaseException as error:  # noqa: BLE001  anything the program raises is its own failure
        send(wire.ERROR, describe(error, {name: ""}))
        return None
    return module.__dict__


def _call(function: Any, calls: Any, job: dict[str, Any], channel: Channel) -> None:
    # Bound beforehand: it runs for every input, and the program may have replaced what it would look up.
    timed, elements, send, timer = job["timed"], job["elements"], channel.send, signal.setitimer
    limits, flush_after = job["limits"], job["flush_after"]
    for index, arguments in enumerate(calls):
        if index == flush_after:
            channel.flush()  # the parent can decide on the first inputs while the others run
        timer(signal.ITIMER_PROF, limits[index])
        began = time.process_time() if timed else 0.0
        try:
            value = function(*arguments)
            data, size, value = encode(value, elements)
            if timed:  # with the encoding, which a candidate's limit covers too
                send(wire.CPU, wire.DOUBLE.pack(time.process_time() - began))
            if not size:
                send(wire.VALUE, data)
                continue
            # The parent first compares the digest of the exact bytes. If they differ, the values may still be equal,
            # as 1 and 1.0 are: then it asks for the digest that such values share.
            answer = channel.ask(wire.DIGEST, data + size.to_bytes(8, "little"))
            if answer == wire.ASK_CANONICAL:
                send(wire.CANONICAL, canonical(value))
        except BaseException as error:  # noqa: BLE001  anything the program raises is its own failure
            send(wire.ERROR, describe(error, {NAME: ""}))
            return
    send(wire.DONE)


def describe(error: BaseException, files: dict[str, str], inner: Sequence[str] = ()) -> bytes:
    """Type, text, traceback lines in `files` (name: its label) and the outcome, bounded, as plain data. `inner` are the
    lines of another process, in which the exception was raised."""
    kind = "memory" if isinstance(error, MemoryError) else "exit" if isinstance(error, SystemExit) else "error"
    lines = [*trace_lines(error, files), *inner][-TRACE_LINES:]
    return marshal.dumps((type(error).__name__[:TEXT_LIMIT], text_of(error), lines, kind), 2)


def trace_lines(error: BaseException, files: dict[str, str]) -> list[str]:
    """The last lines of an exception's traceback in `files`."""
    lines: list[str] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename in files:
            source = linecache.getline(code.co_filename, trace.tb_lineno).strip()
            place = f"{files[code.co_filename]}line {trace.tb_lineno}, in {code.co_name}"
            lines.append(f"{place}: {source}"[:TEXT_LIMIT])
        trace = trace.tb_next
    return lines[-TRACE_LINES:]


def text_of(error: BaseException) -> str:
    """An exception's text, bounded."""
    try:
        return isolate.as_everywhere(str.__str__(str(error)))[:TEXT_LIMIT]
    except BaseException:  # noqa: BLE001  its own __str__ may raise anything
        return "(no text)"
