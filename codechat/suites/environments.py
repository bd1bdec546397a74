"""Interpreters other than the sandbox's, each with the packages of one repository."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codechat.files import content_hash
from codechat.sandbox.interpreters import Interpreter, interpreter_at

SYSTEM = Path("/usr")
REMEDY = "give the interpreter of a virtual environment: dataset.environments={NAME: FOLDER/bin/python}"


@dataclass(frozen=True)
class Environment:
    """An interpreter: its path, paths of this machine that it needs (`tools`), and its packages' names in lower case.

    `digest` is a hash of the versions of the interpreter and its packages.
    """

    program: str
    tools: tuple[str, ...]
    packages: frozenset[str]
    digest: str


@functools.cache
def environment_at(python: str) -> Environment:
    """The environment of an interpreter, examined once a process. Raises `UserError` if there is none at that path."""
    told = interpreter_at(python, REMEDY)
    packages = sorted({(name.lower(), version) for name, version in told.packages})
    tools = tuple(dict.fromkeys(_tools(told)))
    return Environment(
        told.path, tools, frozenset(name for name, _ in packages), content_hash([told.version, packages])
    )


def _tools(told: Interpreter) -> Iterator[str]:
    """The folders of the environment, of the interpreter behind it and of its packages, except the system's own."""
    for folder in (told.prefix, told.base):
        yield told.path if folder.resolve() == SYSTEM else str(folder)
    for entry in map(Path, told.entries):
        if entry.name.endswith("-packages") and entry.is_dir():
            yield str(entry)
