"""Interpreters of Python on this machine, each asked for its version and packages, and the one whose packages programs
import: codechat's own, or the one that `sandbox.python` names."""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from codechat.base.errors import UserError
from codechat.base.files import content_hash

ASK_S = 60.0
# Run by the interpreter itself: only it knows what it is and where its packages lie. Plain enough for old ones.
DESCRIBE = """
import importlib.metadata, json, platform, sys
print(json.dumps({
    "version": platform.python_version(), "minor": sys.version_info[:2], "prefix": sys.prefix, "base": sys.base_prefix,
    "path": sys.path, "program": getattr(sys, "_base_executable", "") or sys.executable,
    "packages": [(str(each.metadata["Name"]), str(each.version)) for each in importlib.metadata.distributions()],
}))
"""


@dataclass(frozen=True)
class Interpreter:
    """An interpreter at a `path`, as it describes itself. `prefix` is the folder of the environment, `base` the folder
    of the interpreter `program` behind it; `entries` is the module path. `packages` are names and versions in the order
    of search: of two with one name it imports the first."""

    path: str
    version: str
    minor: tuple[int, int]
    prefix: Path
    base: Path
    program: Path
    entries: tuple[str, ...]
    packages: tuple[tuple[str, str], ...]


def interpreter_at(python: str, remedy: str, option: str = "") -> Interpreter:
    """The interpreter at a path. Raises `UserError`, which names the `option` if there is one."""
    path = os.path.abspath(Path(python).expanduser())  # noqa: PTH100  a link is what makes a virtual environment
    where = f"{option}: " if option else ""
    if not os.access(path, os.X_OK) or Path(path).is_dir():
        raise UserError(f"{where}there is no interpreter {path}", remedy)
    try:
        answer = json.loads(ask(path, ["-I", "-c", DESCRIBE]))
        return TypeAdapter(Interpreter).validate_python({**answer, "entries": answer["path"], "path": path})
    except (OSError, ValueError, TypeError, KeyError, subprocess.SubprocessError) as error:
        raise UserError(f"{where}{path} does not run as a Python interpreter", remedy) from error


def ask(program: str, arguments: list[str], given: str = "") -> str:
    """The output of an interpreter run with some arguments. Raises `OSError` or `subprocess.SubprocessError`."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    return subprocess.run(
        [program, *arguments], input=given, capture_output=True, text=True, timeout=ASK_S, check=True, env=environment
    ).stdout


OLDEST = (3, 11)  # what runs inside the sandbox needs it
REMEDY = "give the interpreter of a virtual environment, such as sandbox.python=~/envs/NAME/bin/python"
FIND = """
import importlib.util, json, sys
given = json.load(sys.stdin)
sys.path[:] = [entry for entry in sys.path if not entry.endswith("-packages")] + given["path"]
print(json.dumps([name for name in given["names"] if importlib.util.find_spec(name) is None]))
"""


@dataclass(frozen=True)
class Libraries:
    """An interpreter without its virtual environment (`program`), the folder it is installed in (`base`), and the
    module path of programs. `linked` are folders elsewhere whose files stand in `base` as links, as conda may make it.
    `packages` are the versions of what is installed, by name."""

    program: str
    base: Path
    path: tuple[str, ...]
    version: str
    minor: tuple[int, int]
    packages: Mapping[str, str] = field(default_factory=dict)
    linked: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """A hash of what can decide a verdict: the versions of the interpreter and of its packages."""
        return content_hash([self.version, sorted((name.lower(), at) for name, at in self.packages.items())])

    def hidden(self) -> list[str]:
        """Folders of codechat among the packages: the embedded dataset holds its own answers."""
        return [str(folder) for folder in (Path(entry, "codechat") for entry in self.path) if folder.is_dir()]

    def missing(self, modules: Iterable[str]) -> list[str]:
        """The modules, without dots, that a program could not import, in order."""
        wanted = [name for name in modules if name not in sys.stdlib_module_names]
        given = json.dumps({"path": self.path, "names": wanted})
        return list(json.loads(ask(self.program, ["-S", "-s", "-P", "-B", "-c", FIND], given))) if wanted else []


@functools.cache
def libraries_at(python: str | None) -> Libraries:
    """The libraries of an interpreter, read once a process; None: codechat's own. Raises `UserError` if there is none
    at that path, or if it is too old."""
    if python is None:
        base, version = Path(sys.base_prefix).resolve(), ".".join(map(str, sys.version_info[:3]))
        program = str(Path(getattr(sys, "_base_executable", "") or sys.executable).resolve())
        path = _module_path(base, sys.path)
        return Libraries(program, base, path, version, sys.version_info[:2], linked=_linked_into(base, path))
    found = interpreter_at(python, REMEDY, "sandbox.python")
    if found.minor < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise UserError(
            f"sandbox.python: {found.path} is Python {found.version}, and the sandbox needs {oldest}",
            "make the environment with a newer interpreter: python3.11 -m venv FOLDER",
        )
    base, packages = found.base.resolve(), dict(reversed(found.packages))  # of one name the first counts
    path = _module_path(base, found.entries)
    program = str(found.program.resolve())
    return Libraries(program, base, path, found.version, found.minor, packages, _linked_into(base, path))


def _linked_into(base: Path, path: Iterable[str]) -> tuple[str, ...]:
    """The folder with the real files of the standard library and its libraries, if `base` has links to them."""
    modules = (Path(entry, "os.py") for entry in path)
    real = next((module.resolve() for module in modules if module.is_symlink()), None)
    return () if real is None or real.is_relative_to(base) else (str(real.parent.parent),)


def _module_path(base: Path, entries: Iterable[str]) -> tuple[str, ...]:
    folders = [str(Path(entry).resolve()) for entry in entries if entry and Path(entry).exists()]
    packages = ("site-packages", "dist-packages")
    return tuple(
        dict.fromkeys(folder for folder in folders if folder.startswith(str(base)) or folder.endswith(packages))
    )
