"""The interpreter whose packages programs import: codechat's own, or the one that `sandbox.python` names."""

import functools
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from codechat.errors import UserError
from codechat.files import content_hash
from codechat.sandbox.interpreters import ask, interpreter_at

OLDEST = (3, 11)  # what runs inside the sandbox needs it
REMEDY = "give the interpreter of a virtual environment, such as sandbox.python=~/envs/sreval/bin/python"
FIND = """
import importlib.util, json, sys
given = json.load(sys.stdin)
sys.path[:] = [one for one in sys.path if not one.endswith("-packages")] + given["path"]
print(json.dumps([name for name in given["names"] if importlib.util.find_spec(name) is None]))
"""


@dataclass(frozen=True)
class Libraries:
    """An interpreter without its virtual environment (`program`), the folder it is installed in (`base`), and the
    module path of programs. `packages` are the versions of what is installed, by name."""

    program: str
    base: Path
    path: tuple[str, ...]
    version: str
    minor: tuple[int, int]
    packages: Mapping[str, str] = field(default_factory=dict)

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
        if not wanted:
            return []
        given = json.dumps({"path": self.path, "names": wanted})
        found: list[str] = json.loads(ask(self.program, ["-S", "-s", "-P", "-B", "-c", FIND], given))
        return found


def own_libraries() -> Libraries:
    """Codechat's own interpreter, with what is installed beside codechat."""
    base = Path(sys.base_prefix).resolve()
    program = getattr(sys, "_base_executable", "") or sys.executable
    version = ".".join(map(str, sys.version_info[:3]))
    return Libraries(str(Path(program).resolve()), base, _module_path(base, sys.path), version, sys.version_info[:2])


@functools.cache
def libraries_at(python: str | None) -> Libraries:
    """The libraries of an interpreter, read once a process; None: codechat's own.

    Raises `UserError` if there is none at that path, or if it is too old.
    """
    if python is None:
        return own_libraries()
    told = interpreter_at(python, REMEDY, "sandbox.python")
    if told.minor < OLDEST:
        raise UserError(
            f"sandbox.python: {told.path} is Python {told.version}, and the sandbox needs {'.'.join(map(str, OLDEST))}",
            "make the environment with a newer interpreter: python3.11 -m venv FOLDER",
        )
    base, packages = told.base.resolve(), dict(reversed(told.packages))  # of one name the first counts
    path = _module_path(base, told.entries)
    return Libraries(str(told.program.resolve()), base, path, told.version, told.minor, packages)


def _module_path(base: Path, entries: Iterable[str]) -> tuple[str, ...]:
    """The standard library and installed packages, never a project's own folder."""
    folders = [str(Path(entry).resolve()) for entry in entries if entry and Path(entry).exists()]
    packages = ("site-packages", "dist-packages")
    return tuple(dict.fromkeys(one for one in folders if one.startswith(str(base)) or one.endswith(packages)))
