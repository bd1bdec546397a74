"""Runs a program and then assertions on it in one interpreter, hiding from the program as much as possible.

The parent gives a token that the program must not learn. While the candidate's code runs, the token is only on the
interpreter's evaluation stack, where no name refers to it; it is sent once the last snippet has run to its end.
"""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH108, PTH109, PTH118, PTH120

import ast
import builtins
import contextlib
import linecache
import mmap
import os
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from types import ModuleType
from typing import Any, NoReturn

from codechat.sandbox.inside import comparing, snapshot, wire
from codechat.sandbox.inside.candidate import Channel, describe, load, prepare
from codechat.sandbox.inside.responder import PROGRAM, write_program
from codechat.sandbox.inside.snippets import compile_pieces, runners
from codechat.sandbox.inside.text import split_lines

BUILTINS = frozenset(name for name in vars(builtins) if not name.startswith("__"))
STYLE_FILES = ("setup.cfg", "tox.ini", ".pep8")  # style checkers read them: a program could excuse itself there


class NotLoaded(Exception):
    """The program did not load; this has been reported."""


@dataclass
class Scene:
    """One run: the file's path, the program as a module, the names that the snippets see, its own or copies, and those
    of its names that are also builtins'."""

    job: dict[str, Any]
    channel: Channel
    remembered: snapshot.Snapshot
    path: str
    module: ModuleType = field(default_factory=lambda: ModuleType("candidate"))
    builtins: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.space: dict[str, Any] = vars(self.module) if self.job["shared"] else {}


def run(job: dict[str, Any], results: socket.socket, shared: mmap.mmap, remembered: snapshot.Snapshot) -> NoReturn:
    """Load the program from a file, run every snippet after it, and end the process."""
    channel = prepare(results, shared)
    snippets: list[str] = job.pop("snippets")
    path = os.path.join(os.getcwd(), PROGRAM)
    files = {path: ""} | {_name(number): f"assertion {number}, " for number in range(1, len(snippets) + 1)}
    try:
        for number, snippet in enumerate(snippets, 1):
            linecache.cache[_name(number)] = (len(snippet), None, snippet.splitlines(keepends=True), _name(number))
        scene = Scene(job, channel, _import_for(snippets, remembered), path)
        channel.send(wire.DONE, _passed(scene, snippets))
    except NotLoaded:
        pass
    except BaseException as error:  # noqa: BLE001  anything that program or assertion raises is the program's failure
        channel.send(wire.ERROR, describe(error, files))
    finally:
        channel.flush()
        os._exit(0)


def _passed(scene: Scene, snippets: list[str]) -> bytes:
    """The token, once everything has run to its end; before that no name refers to it, or to the running snippets."""
    entry, used = scene.job["entry"], scene.job["used"]
    pieces = [
        (index, code)
        for index, snippet in enumerate(snippets)
        for code in compile_pieces(snippet, _name(index + 1), entry, used, comparing.Guarded())
    ]
    held: tuple[bytes, bool] = (
        scene.job.pop("token"),
        _exhaust(
            zip(
                map(_preparation(scene, "".join(snippets)), [index for index, _ in pieces]),
                map(exec, [code for _, code in pieces], repeat(scene.space)),
                strict=True,
            ),
            _load(scene),
        ),
    )
    return held[0]


def _exhaust(steps: Iterator[Any], loaded: bool) -> bool:
    for _ in steps:
        pass
    return loaded


def _load(scene: Scene) -> bool:
    """Run the program's own code, from its file, and take over its names; True. Raises `NotLoaded`."""
    job, channel = scene.job, scene.channel
    if "commands" in job["needs"]:
        os.environ["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), wire.PATH))
    _write(scene.path, job["program"])
    snapshot.forbid(scene.remembered, job["needs"])
    names = load(job["program"], scene.path, job["load_cpu_s"], channel, lent=job["lent"], module=scene.module)
    if names is None:
        raise NotLoaded
    entry = job["entry"]
    if entry and entry not in names:
        channel.send(wire.MISSING)
        raise NotLoaded
    channel.send(wire.LOADED)
    scene.builtins = {name: value for name, value in names.items() if name in BUILTINS and name != entry}
    scene.space.update((name, value) for name, value in names.items() if name not in scene.builtins)
    scene.space.update(__name__="candidate", __file__=scene.path, __builtins__=builtins)
    return True


def _preparation(scene: Scene, tests: str) -> Callable[[int], None]:
    """A function to call before every piece of a snippet: undoes all changes. `tests`: the text of all snippets."""
    job, path, program = scene.job, scene.path, scene.job["program"]
    restore = snapshot.restorer(scene.remembered, job["load_cpu_s"], threads="threads" in job["needs"])
    cached, exists, unlink, write = linecache.cache, os.path.lexists, os.unlink, _write
    source = (path, (len(program), None, split_lines(program), path))
    lines, files = [*cached.items(), source], STYLE_FILES
    send, at, pack = scene.channel.send, wire.AT, wire.INDEX.pack
    space, compared = scene.space, comparing.names(path, "mock" in tests) | runners()
    change, folder, moves = os.chdir, os.path.dirname(path), "chdir" in tests

    before, uses, shadows = -1, job["uses"], job["shadows"]

    def prepare_snippet(index: int) -> None:
        nonlocal before
        restore()
        if index != before:
            for name, value in scene.builtins.items():
                if shadows or not uses[index]:
                    space.setdefault(name, value)
                elif space.get(name) is value:
                    del space[name]
        space.update(compared)
        cached.update(lines)
        if not moves:
            change(folder)
        for name in files:
            if exists(name):
                unlink(name)
        write(path, program)
        if index != before:
            send(at, pack(index))
            before = index

    return prepare_snippet


def _write(path: str, program: str) -> None:
    """Write the program's text into its file again, if it is changed."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    write_program(path, program)


def _name(number: int) -> str:
    return f"<assertion {number}>"


def _import_for(snippets: list[str], remembered: snapshot.Snapshot) -> snapshot.Snapshot:
    """Import the modules that the snippets import; the snapshot with those added."""
    names: list[str] = []
    for snippet in snippets:
        if "import" in snippet:
            with contextlib.suppress(SyntaxError, ValueError):
                names += _imports(ast.parse(snippet))
    for root in dict.fromkeys(name.partition(".")[0] for name in names):
        if root in remembered.packages:
            remembered |= remembered.packages[root]
    names = [name for name in names if name not in remembered.modules]
    for name in names:
        snapshot.try_import(name)
    return remembered | snapshot.remember(names, remembered.modules)


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)  # one may be a module, too
