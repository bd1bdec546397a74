"""Interpreters of Python on this machine: each is asked what it is, and which packages it has."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codechat.errors import UserError

ASK_S = 60.0
# Run by the interpreter itself: only it knows what it is and where its packages lie. Plain enough for old ones.
DESCRIBE = """
import importlib.metadata, json, platform, sys
print(json.dumps({
    "version": platform.python_version(), "minor": sys.version_info[:2], "prefix": sys.prefix, "base": sys.base_prefix,
    "path": sys.path, "program": getattr(sys, "_base_executable", "") or sys.executable,
    "packages": [(str(one.metadata["Name"]), str(one.version)) for one in importlib.metadata.distributions()],
}))
"""


@dataclass(frozen=True)
class Interpreter:
    """What an interpreter at a `path` says of itself.

    `prefix` is the folder of its environment, `base` that of the interpreter behind it and `program` that one itself;
    `entries` are its module path. `packages` are names and versions in the order in which it finds them; of two of one
    name it imports the first.
    """

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
        told: dict[str, Any] = json.loads(ask(path, ["-I", "-c", DESCRIBE]))
        return Interpreter(
            path=path,
            version=str(told["version"]),
            minor=(int(told["minor"][0]), int(told["minor"][1])),
            prefix=Path(told["prefix"]),
            base=Path(told["base"]),
            program=Path(told["program"]),
            entries=tuple(told["path"]),
            packages=tuple((str(name), str(version)) for name, version in told["packages"]),
        )
    except (OSError, ValueError, TypeError, KeyError, subprocess.SubprocessError) as error:
        raise UserError(f"{where}{path} does not run as a Python interpreter", remedy) from error


def ask(program: str, arguments: list[str], given: str = "") -> str:
    """What an interpreter prints. Raises `OSError` or `subprocess.SubprocessError`."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    return subprocess.run(
        [program, *arguments], input=given, capture_output=True, text=True, timeout=ASK_S, check=True, env=environment
    ).stdout
