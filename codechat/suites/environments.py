"""Interpreters other than the sandbox's, each with the packages of one repository."""

import functools
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codechat.errors import UserError
from codechat.files import content_hash

ASK_S = 60.0
SYSTEM = Path("/usr")
REMEDY = "give the interpreter of a virtual environment: dataset.environments={NAME: FOLDER/bin/python}"
# Run by the interpreter itself: only it knows what it is and where its packages lie. Plain enough for old ones.
DESCRIBE = """
import importlib.metadata, json, platform, sys
found = sorted({(str(one.metadata["Name"]).lower(), str(one.version)) for one in importlib.metadata.distributions()})
print(json.dumps({
    "version": platform.python_version(), "prefix": sys.prefix, "base": sys.base_prefix, "path": sys.path,
    "packages": found,
}))
"""


@dataclass(frozen=True)
class Environment:
    """An interpreter: its path, what it needs to see of this machine (`tools`), and its packages' names in lower case.

    `digest` is a hash of the versions of the interpreter and its packages.
    """

    program: str
    tools: tuple[str, ...]
    packages: frozenset[str]
    digest: str


@functools.cache
def environment_at(python: str) -> Environment:
    """The environment of an interpreter, asked once a process. Raises `UserError` if there is none at that path."""
    program = os.path.abspath(Path(python).expanduser())  # noqa: PTH100  a link is what makes a virtual environment
    if not os.access(program, os.X_OK) or Path(program).is_dir():
        raise UserError(f"there is no interpreter {program}", REMEDY)
    try:
        told: dict[str, Any] = json.loads(_ask(program))
        packages = [(str(name), str(version)) for name, version in told["packages"]]
        tools = tuple(dict.fromkeys(_tools(program, told)))
        digest = content_hash([told["version"], packages])
    except (OSError, ValueError, TypeError, KeyError, subprocess.SubprocessError) as error:
        raise UserError(f"{program} does not run as a Python interpreter", REMEDY) from error
    return Environment(program, tools, frozenset(name for name, _ in packages), digest)


def _tools(program: str, told: dict[str, Any]) -> Iterator[str]:
    """The folders of the environment, of the interpreter behind it and of its packages; the system's own are there."""
    for folder in (Path(told["prefix"]), Path(told["base"])):
        yield program if folder.resolve() == SYSTEM else str(folder)
    for entry in map(Path, told["path"]):
        if entry.name.endswith("-packages") and entry.is_dir():
            yield str(entry)


def _ask(program: str) -> str:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    asked = [program, "-I", "-c", DESCRIBE]
    return subprocess.run(asked, capture_output=True, text=True, timeout=ASK_S, check=True, env=environment).stdout
