"""The candidate's side of assertions that another process decides: loads the program, and calls functions on request.
No name, file or memory of this process leads to the tester. Every answer is only a claim: the tester decides.
"""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH109, PTH118, PTH123

import gc
import marshal
import os
import signal
import socket
import sys
from typing import Any, NoReturn

from codechat.sandbox.inside import wire
from codechat.sandbox.inside.candidate import Head, load, seed_numbers, set_streams, text_of, trace_lines
from codechat.sandbox.inside.carry import NotCarried, Numbered, build, contents, flatten
from codechat.sandbox.inside.text import SHARED

PROGRAM = "program.py"


class Link:
    """Messages between a tester and its candidate. `limit`: the most bytes taken from the other side."""

    def __init__(self, peer: socket.socket, limit: int = 1 << 40) -> None:
        self._peer, self._bytes_left = peer, limit

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """Send a message; raises `OSError` if the other side is gone."""
        self._peer.sendall(wire.MESSAGE.pack(kind, len(payload)) + payload)

    def receive(self) -> tuple[bytes, bytes]:
        """The next message; raises `EOFError` if the other side is gone, `ValueError` if it sends too much."""
        kind, size = wire.MESSAGE.unpack(self._take(wire.MESSAGE.size))
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise ValueError("more results than are read")
        return kind, self._take(size)

    def _take(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                piece = self._peer.recv(min(count - len(data), 1 << 18))
            except OSError:
                piece = b""
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)


def run(job: dict[str, Any], peer: socket.socket) -> NoReturn:
    """Load the program from a file, answer the tester, and end the process."""
    link = Link(peer)
    seed_numbers()
    set_streams(Head(1, wire.STDOUT_SIZE, lambda data, at: link.send(wire.PRINTED, data)))
    gc.enable()
    path = os.path.join(os.getcwd(), PROGRAM)
    try:
        write_program(path, job["program"])
        space = load(job["program"], path, job["load_cpu_s"], link.send, lent=job["lent"])
        if space is not None:
            link.send(wire.LOADED)
            _serve(space, path, job["load_cpu_s"], link)
    finally:
        os._exit(0)


def write_program(path: str, program: str) -> None:
    """Write the program's text into its file."""
    with open(path, "w", encoding="utf-8", errors="surrogatepass", newline="") as stream:
        stream.write(program)


def _serve(space: dict[str, Any], path: str, limit: float, link: Link) -> None:
    before, missing = -1, set[str]()
    while True:
        kind, payload = link.receive()
        if kind == wire.NAMES:
            names = payload.decode("utf-8", "surrogatepass").split("\n")
            missing.update(name for name in names if name not in space)
            values = [(name, space[name]) for name in names if name in space]
            functions = [[name, callable(value) and not isinstance(value, type)] for name, value in values]
            answer: tuple[Any, ...] = "names", functions, []
        else:
            index, name, arguments = marshal.loads(payload)
            if index != before:  # the next snippet
                signal.setitimer(signal.ITIMER_PROF, limit)
                before = index
            call = Called(arguments)
            answer = call.answer(space[name], path)
            if call.keeps():
                answer = "inside", "kept", []
            if not missing.isdisjoint(space):  # the call bound a builtin's name
                answer = "inside", "builtins", []
        link.send(wire.REPLY, marshal.dumps(answer, 2))


class Called:
    """One call of a function of the program."""

    def __init__(self, trees: Any) -> None:
        self._numbered = numbered = Numbered()
        self._positional = [build(tree, numbered, grow=True) for tree in trees[0]]
        self._named = {name: build(tree, numbered, grow=True) for name, tree in trees[1]}
        self._given = list(numbered.objects)
        self._before = [marshal.dumps(now, 2) for now in self._contents()]
        self._apart = self._references()

    def answer(self, function: Any, path: str) -> tuple[str, Any, Any]:
        """How the call ended, the value or error, and the new contents of changed arguments."""
        numbered, error = self._numbered, None
        try:
            self._value = function(*self._positional, **self._named)
        except BaseException as raised:  # noqa: BLE001  anything the program raises is its own
            error, self._value = raised, None
        try:
            changes = [
                (place, now)
                for place, (now, before) in enumerate(zip(self._contents(), self._before, strict=True))
                if marshal.dumps(now, 2) != before
            ]
            if error is not None:
                return "error", _raised(error, numbered, path), changes
            return "value", flatten(self._value, numbered, grow=True), changes
        except NotCarried as refused:
            return "inside", str(refused), []
        except (MemoryError, RecursionError, RuntimeError):
            return "inside", "plain", []

    def keeps(self) -> bool:
        """Whether the program keeps an argument or a part of the result, which may then change later."""
        if not self._numbered.objects or not self._referred():
            return False
        gc.collect()  # a cycle, such as a function in a function, keeps nothing
        return self._referred()

    def _contents(self) -> list[Any]:
        self._numbered.met = [0] * len(self._numbered.objects)
        return [contents(value, self._numbered) for value in self._given]

    def _references(self) -> list[int]:
        """The number of references to each numbered object, except from numbered objects."""
        counted = [sys.getrefcount(value) for value in self._numbered.objects]
        return [count - met for count, met in zip(counted, self._numbered.met, strict=True)]

    def _referred(self) -> bool:
        now = self._references()
        before = self._apart + [ALONE] * (len(now) - len(self._apart))
        return any(more > less for more, less in zip(now, before, strict=True))


NOTHING: list[list[Any]] = [[]]
ALONE = next(sys.getrefcount(item) for item in NOTHING)  # references to an object that only a list holds


def _raised(error: BaseException, numbered: Numbered, path: str) -> Any:
    kind = type(error)
    if vars(error) and _is_shared(kind):
        raise NotCarried("exception")
    try:
        arguments = flatten(error.args, numbered)
    except NotCarried:
        arguments = None
    bases = [base for base in kind.__mro__ if base.__module__ == "builtins"]
    if not _is_shared(kind) and not set(kind.__mro__[1:]) <= set(bases):
        raise NotCarried("exception")
    described = str(kind.__module__), kind.__qualname__, [base.__name__ for base in bases]
    return described, arguments, text_of(error), trace_lines(error, {path: ""})


def _is_shared(kind: type) -> bool:
    return str(kind.__module__).partition(".")[0] in ("builtins", *SHARED)
