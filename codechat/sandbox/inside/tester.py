"""The trusted side of assertions: runs the snippets in a process where no object of the program lives (`run`).

The program's functions are stubs here: a call goes to the candidate's process and comes back as plain data through a
decoder that executes nothing. Source, annotations and documentation of a function are read from the program's text. If
a snippet needs more, the tester reports it and ends: then program and snippets must share a process (`run_shared`).

Exceptions of the program are raised again by type and text, with an attribute that holds the program's own lines.
"""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH109, PTH118, PTH120

import builtins
import contextlib
import functools
import inspect
import linecache
import marshal
import mmap
import os
import signal
import socket
import sys
import typing
from collections.abc import Callable, Collection, Sequence
from types import ModuleType
from typing import Any, NoReturn

from codechat.sandbox.inside import snippets, wire
from codechat.sandbox.inside.candidate import Channel, cache_snippets, describe, load, prepare
from codechat.sandbox.inside.carry import NotCarried, Numbered, Reads, build, fill, flatten
from codechat.sandbox.inside.decode import decode
from codechat.sandbox.inside.responder import PROGRAM, Link, write_program
from codechat.sandbox.inside.text import SHARED, NotPlain, Text, split_lines

LINES = "lines_of_the_program"  # an attribute of such exceptions
Inside = Callable[[str], NoReturn]  # of one of the reasons in `wire`
Call = Callable[[str, tuple[Any, ...], dict[str, Any]], Any]
PROGRAM_OF = "function of the program"  # an attribute of stubs: the function's name
BUILTINS = dict(vars(builtins))


class Space(dict[str, Any]):
    """The names that snippets see: their own, and the program's from their first use on."""

    def __init__(self, find: Callable[[str], Any]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, name: str) -> Any:
        self[name] = self._find(name)
        return self[name]


def run(job: dict[str, Any], results: socket.socket, shared: mmap.mmap, peer: socket.socket) -> NoReturn:
    """Run every snippet on the program in the process behind `peer`, and end this process."""
    channel = prepare(results, shared)
    channel.start += wire.HEADER.size  # the candidate sent a frame, too
    labels = cache_snippets(job["snippets"])
    tester = Tester(job, channel, Link(peer, job["output_limit"]))
    try:
        tester.wait_for_program()
        if job["arrays"] != "none":
            tester.refuse_empty()
        for index, name in enumerate(labels):
            tester.run_snippet(index, name)
        tester.finish()
        channel.send(wire.DONE, job["token"])
    except BaseException as error:  # noqa: BLE001  anything an assertion raises is the program's failure
        channel.send(wire.ERROR, describe(error, labels, vars(error).get(LINES, ())))
    finally:
        channel.flush()
        os._exit(0)


def run_shared(job: dict[str, Any], results: socket.socket, shared: mmap.mmap) -> NoReturn:
    """Load the program from a file, run every snippet after it in this process, and end.

    The program can reach what decides here, so the verdict is marked (`decided: inside`): docs/sandbox.md lists the
    attacks that pass. The guards keep a program from passing by accident: an early exit, a skipped test, an empty
    NumPy array and a function with a builtin's name do not pass.
    """
    channel = prepare(results, shared)
    path = os.path.join(os.getcwd(), PROGRAM)
    labels = cache_snippets(job["snippets"])
    try:
        if "commands" in job["needs"]:
            os.environ["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), wire.PATH))
        write_program(path, job["program"])
        program = load(job["program"], path, job["load_cpu_s"], channel.send, lent=job["lent"])
        if program is not None and job["entry"] and job["entry"] not in program:
            channel.send(wire.MISSING)
        elif program is not None:
            channel.send(wire.LOADED)
            _run_snippets(job, program, path, list(labels), channel)
            channel.send(wire.DONE, job["token"])
    except BaseException as error:  # noqa: BLE001  anything that program or assertion raises is the program's failure
        channel.send(wire.ERROR, describe(error, {path: "", **labels}))
    finally:
        channel.flush()
        os._exit(0)


def _run_snippets(job: dict[str, Any], program: dict[str, Any], path: str, files: list[str], channel: Channel) -> None:
    space = program if job["shared"] else dict(program)
    space.update(
        __name__="candidate", __file__=path, __builtins__=builtins, **snippets.guarded_names(), **snippets.RUNNERS
    )
    hidden = {name: program[name] for name in job["hidden"] if name in program}
    for index, (file, snippet) in enumerate(zip(files, job["snippets"], strict=True)):
        channel.send(wire.AT, wire.INDEX.pack(index))
        signal.setitimer(signal.ITIMER_PROF, job["load_cpu_s"])
        for builtin, value in hidden.items():
            if not job["uses"][index]:
                space.setdefault(builtin, value)
            elif space.get(builtin) is value:
                del space[builtin]
        exec(snippets.compile_snippet(snippet, file, job["entry"], job["used"], snippets.Guarded()), space)


class Tester:
    """One run: what the snippets see of the program."""

    def __init__(self, job: dict[str, Any], channel: Channel, link: Link) -> None:
        self._job, self._channel, self._link = job, channel, link
        self._path = os.path.join(os.getcwd(), PROGRAM)
        self._index, self._waits, self._shadowed = 0, False, False
        self._text: Text | None = None
        self._entry, self._names = job["entry"], dict[str, bool]()
        self._reads = Reads(job["arrays"], lambda attribute: self._inside("object"))
        self._space = Space(self._find)
        self._guarded: snippets.Guarded | None = None

    def wait_for_program(self) -> None:
        """Wait until the program is loaded, or pass on why it was not."""
        kind, payload = self._receive()
        if kind in (wire.SYNTAX, wire.ERROR):
            self._channel.send(kind, payload)
            self._end()
        if kind != wire.LOADED:
            self._garbled("a message out of order")
        job, program = self._job, self._job["program"]
        self._ask({*job["read"], *filter(None, [self._entry])})
        if self._entry and self._entry not in self._names:
            self._channel.send(wire.MISSING)
            self._end()
        self._channel.send(wire.LOADED)
        if not self._entry:
            functions = [name for name in job["free"] if name in self._names and self._meant(name) is None]
            self._entry = functions[0] if len(functions) == 1 else ""
        write_program(self._path, program)
        linecache.cache[self._path] = (len(program), None, split_lines(program), self._path)
        module = ModuleType("candidate")
        module.__file__ = self._path
        sys.modules["candidate"] = module
        self._space.update(__name__="candidate", __file__=self._path, __builtins__=builtins, **snippets.RUNNERS)

    def refuse_empty(self) -> None:
        """Let tests that use NumPy fail if they compare an empty array with something that is not empty."""
        with contextlib.suppress(ImportError):
            refuse_empty()
            self._space.update(snippets.names_of_arrays())
            self._guarded = snippets.Guarded(differences=True)

    def run_snippet(self, index: int, name: str) -> None:
        """Run one snippet; raises what it raises."""
        self._index = index
        self._channel.send(wire.AT, wire.INDEX.pack(index))
        signal.setitimer(signal.ITIMER_PROF, self._job["load_cpu_s"])
        snippet = self._job["snippets"][index]
        for builtin in self._names:
            if builtin in BUILTINS and self._space.get(builtin) is BUILTINS[builtin]:
                del self._space[builtin]
        if "annotations" in self._job["reads"]:
            reading_hints(self._hints)
        for used in snippets.class_level_names(snippet):  # statements of a class look names up past `__missing__`
            with contextlib.suppress(KeyError):
                self._space[used]
        exec(snippets.compile_snippet(snippet, name, self._job["entry"], self._job["used"], self._guarded), self._space)

    def finish(self) -> None:
        """Ask for a second run if tests passed with builtins whose names the program binds: its own must pass too."""
        if self._shadowed:
            self._inside("builtins")

    def _find(self, name: str) -> Any:
        """A name that a snippet uses and does not bind: the function under test, a builtin, or an imported module. A
        program that defines `isclose` or `all` would decide itself: tests must pass with the builtin, too. Raises
        `KeyError` if there is no such name."""
        if name not in self._names:
            return BUILTINS[name]
        if name != self._entry and name in BUILTINS and not name.startswith("__"):
            if not self._job["uses"][self._index]:
                self._inside("builtins")
            self._shadowed = True
            return BUILTINS[name]
        if name != self._entry:
            value = self._meant(name)
            return self._inside("names") if value is None else value
        if not self._names[name]:
            self._inside("entry")
        if name in self._job["attributes"]:
            self._inside("attribute")
        stub = make_stub(name, self._path, self._call)
        if reads := self._job["reads"]:
            describe_stub(stub, self._read_text(), reads, self._inside)
        return stub

    def _meant(self, name: str) -> Any:
        """The module or type that the program's text imports by this name; None for anything else."""
        try:
            return self._read_text().meant(name)
        except NotPlain:
            return None

    def _read_text(self) -> Text:
        if self._text is None:
            try:
                self._text = Text(self._job["program"])
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._inside("text")
        return self._text

    def _hints(self, name: str) -> dict[str, Any]:
        text = self._read_text()
        try:
            return text.annotations(text.function(name), strings=True)
        except Exception:  # noqa: BLE001  not plain, or nested too deeply
            self._inside("text")

    def _call(self, name: str, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self._job["world"][self._index]:
            self._inside("world")
        numbered = Numbered(exhausts=False, reads=self._reads)
        try:
            trees = [
                [flatten(value, numbered, grow=True) for value in positional],
                [[key, flatten(value, numbered, grow=True)] for key, value in named.items()],
            ]
        except NotCarried:
            self._inside("argument")
        end, tree, changes = self._exchange(wire.CALL, marshal.dumps((self._index, name, trees), 2))
        if end == "inside":
            self._inside(tree)
        return self._build(lambda: self._conclude(end, tree, changes, numbered))()

    def _conclude(self, end: str, tree: Any, changes: Any, numbered: Numbered) -> Callable[[], Any]:
        for place, now in changes:
            if type(place) is not int or not 0 <= place < len(numbered.objects):
                raise ValueError("a change of no argument")
            fill(numbered.objects[place], now, numbered)
        if end == "value":
            value = build(tree, numbered, grow=True)
            return lambda: value
        if end != "error":
            raise ValueError("an unknown end of a call")
        error = as_called(make_exception(tree, lambda part: build(part, numbered), self._inside), self._job["stops"])

        def fail() -> Any:
            raise error

        return fail

    def _build(self, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except NotCarried as refused:
            return self._inside(str(refused))
        except Exception as error:  # noqa: BLE001  the candidate sent it
            return self._garbled(f"{type(error).__name__}: {error}")

    def _ask(self, names: Collection[str]) -> None:
        """Ask which of the names the program has, and which are functions."""
        _, found, _ = self._exchange(wire.NAMES, "\n".join(sorted(names)).encode("utf-8", "surrogatepass"))
        self._names = self._build(lambda: {name: function is True for name, function in found if name in names})

    def _exchange(self, kind: bytes, payload: bytes) -> tuple[Any, ...]:
        """Send a message and return the answer. After an interrupted exchange (e.g. RecursionError) the next one ends
        the run: it would read the stale answer."""
        if self._waits:
            self._garbled("a call while another one waits")
        self._waits = True
        self._send(kind, payload)
        answer, payload = self._receive()
        value = self._build(lambda: decode(payload)) if answer == wire.REPLY else None
        if type(value) is not tuple or len(value) != 3 or type(value[0]) is not str:
            self._garbled("a message out of order")
        self._waits = False
        return value

    def _send(self, kind: bytes, payload: bytes) -> None:
        try:
            self._link.send(kind, payload)
        except OSError:
            self._end(wire.GONE)

    def _receive(self) -> tuple[bytes, bytes]:
        """The next message that is no printed text; printed text is printed here."""
        while True:
            try:
                kind, payload = self._link.receive()
            except EOFError:
                self._end(wire.GONE)
            except (ValueError, MemoryError) as error:
                self._garbled(str(error))
            if kind != wire.PRINTED:
                return kind, payload
            sys.stdout.write(payload.decode("utf-8", "replace"))

    def _inside(self, reason: Any) -> NoReturn:
        """Report that the snippets need the program in their own process, and end."""
        if type(reason) is not str or reason not in wire.REASONS:
            self._garbled("an unknown reason")
        self._channel.send(wire.INSIDE, reason.encode())
        self._end()

    # A run ends at once: a snippet could catch an exception.

    def _garbled(self, reason: str) -> NoReturn:
        """Report that the candidate's messages are not what a candidate sends, and end."""
        self._channel.send(wire.GARBLED, reason.encode("utf-8", "replace")[:300])
        self._end()

    def _end(self, status: int = 0) -> NoReturn:
        self._channel.flush()
        os._exit(status)


def make_stub(name: str, path: str, call: Call) -> Any:
    """A function whose calls go to `call`, and whose source is in the file `path`."""

    def stub(*positional: Any, **named: Any) -> Any:
        return call(name, positional, named)

    stub.__name__ = stub.__qualname__ = name
    stub.__module__, stub.__annotations__, stub.__doc__ = "candidate", {}, None
    stub.__dict__[PROGRAM_OF] = name
    stub.__code__ = stub.__code__.replace(co_name=name, co_qualname=name, co_filename=path)
    return stub


def describe_stub(stub: Any, text: Text, reads: Sequence[str], inside: Callable[[str], NoReturn]) -> None:
    """Give a stub the place, documentation, annotations and signature in the program's text that snippets read.
    `inside` is called with the reason if the text is not plain."""
    try:
        name = stub.__name__
        node = text.plain_function(name) if "definition" in reads else text.function(name)
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        stub.__code__ = stub.__code__.replace(co_firstlineno=first)
        stub.__doc__ = text.documentation(node)
        if "annotations" in reads:
            stub.__annotations__ = text.annotations(node)
        if "signature" in reads:
            stub.__signature__ = text.signature(node)
    except Exception:  # noqa: BLE001  not plain, or nested too deeply
        inside("text")


def reading_hints(hints: Callable[[str], dict[str, Any]]) -> None:
    """Let `typing.get_type_hints` and `inspect.get_annotations` evaluate no string of the program's text."""
    if hasattr(typing.get_type_hints, "__wrapped__"):
        return
    by_typing, by_inspect = typing.get_type_hints, inspect.get_annotations

    def name_of(value: Any) -> str | None:
        return vars(value).get(PROGRAM_OF) if callable(value) and hasattr(value, "__dict__") else None

    @functools.wraps(by_typing)
    def get_type_hints(value: Any, *more: Any, **options: Any) -> Any:
        name = name_of(value)
        return by_typing(value, *more, **options) if name is None else hints(name)

    @functools.wraps(by_inspect)
    def get_annotations(value: Any, **options: Any) -> Any:
        name = name_of(value)
        return hints(name) if name is not None and options.get("eval_str") else by_inspect(value, **options)

    typing.get_type_hints = get_type_hints  # type: ignore[assignment]
    inspect.get_annotations = get_annotations  # type: ignore[assignment]


def refuse_empty() -> None:
    """Let NumPy's comparisons fail if exactly one side is empty. Raises `ImportError` without NumPy."""
    import numpy.testing

    def strict(function: Any) -> Any:
        @functools.wraps(function)
        def compare(*given: Any, **named: Any) -> Any:
            one, other = [*map(numpy.size, (*given, *named.values())), 1, 1][:2]
            if (one == 0) != (other == 0):
                raise AssertionError("an empty array is compared with another one")
            return function(*given, **named)

        return compare

    for module in (numpy, numpy.testing):
        for name, function in [*vars(module).items()]:
            if name in snippets.CLOSE or name.startswith("assert_a"):
                setattr(module, name, strict(function))


def make_exception(tree: Any, build: Callable[[Any], Any], inside: Inside) -> BaseException:
    """The exception of a tree: class, arguments, text and traceback lines. Raises `ValueError` and the like."""
    described, arguments, text, lines = tree
    if type(text) is not str or not all(type(line) is str for line in lines):
        raise ValueError("not an exception")
    kind = exception_class(described, inside)
    if issubclass(kind, BaseExceptionGroup):
        inside("exception")
    given = (text,) if arguments is None else build(arguments)
    if type(given) is not tuple:
        raise ValueError("not an exception's arguments")
    error = _instance(kind, given, text)
    vars(error)[LINES] = tuple(lines[:12])
    return error


def as_called(error: BaseException, expected: bool) -> BaseException:
    """The exception as a call raises it. If the snippets do not mention `StopIteration` (`expected` is false), it
    becomes a RuntimeError: otherwise `map` and other iterators would stop silently."""
    if expected or not isinstance(error, StopIteration | StopAsyncIteration):
        return error
    stopped = RuntimeError(f"the program raised {type(error).__name__}")
    vars(stopped)[LINES] = vars(error)[LINES]
    return stopped


def _instance(kind: type[BaseException], given: tuple[Any, ...], text: str) -> BaseException:
    try:
        error = kind(*given)
        if str(error) == text:
            return error
    except Exception:  # noqa: BLE001, S110  it needs other arguments than it kept
        pass
    same = type(kind.__name__, (kind,), {"__str__": lambda self: text, "__init__": lambda self, *rest: None})
    error = same.__new__(same, *given)
    error.args = given
    return error  # type: ignore[no-any-return]


def exception_class(described: Any, inside: Inside) -> type[BaseException]:
    """The class with these names of module, class and built-in bases: the real one, or a substitute."""
    module, name, bases = described
    if not all(type(text) is str for text in (module, name, *bases)):
        raise ValueError("not an exception's class")
    if module == "builtins" or module.partition(".")[0] in SHARED:
        real: Any = sys.modules.get(module)
        real = getattr(real, name, None)
        if isinstance(real, type) and issubclass(real, BaseException):
            return real
    known = [vars(builtins).get(base) for base in bases]
    classes = [kind for kind in known if isinstance(kind, type) and issubclass(kind, BaseException)] or [Exception]
    if not all(issubclass(classes[0], kind) for kind in classes):
        inside("exception")
    return _own_class(module, name, classes[0].__name__, inside)


@functools.cache
def _own_class(module: str, name: str, base: str, inside: Inside) -> type[BaseException]:
    def ask(error: BaseException, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        inside("exception")

    members = {"__getattr__": ask, "__module__": module}
    try:
        return type(name.rpartition(".")[2], (vars(builtins)[base],), members)
    except TypeError as error:
        raise ValueError("not an exception's class") from error
