"""Compilers and interpreters of this machine, found for the version of a language that is to be checked."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codechat.base.config import place_option
from codechat.base.errors import UserError
from codechat.sandbox import PYTHON, AddedOptions, SandboxConfig
from codechat.sandbox.command import check_tools
from codechat.sandbox.languages.compiling import Compiler, Version, shown, version_of
from codechat.sandbox.suites.jdk import JavaOptions

THERE = ("/usr/lib", "/lib")  # in every box
ANSWERS_S = 30.0  # a compiler's own version
SYSTEM = Path("/usr")
_asked: dict[tuple[str, str], "Found | None"] = {}


class CompilerOptions(AddedOptions):
    """Options for checks of the versions of languages."""

    toolchains: list[str] | None = place_option(
        None, "folders of compilers and interpreters, each with a bin, that check the versions of languages"
    )


class Absent(Exception):
    """Raised if this machine has no compiler for a version; the text says what to do."""


@dataclass(frozen=True)
class Found:
    """A compiler: its program, the folder of all its files, its version, and the paths that a box must show it."""

    program: str
    home: str
    version: Version
    tools: tuple[str, ...] = ()


def find_compiler(compiler: Compiler, wanted: Version, config: SandboxConfig) -> Found:
    """The oldest compiler at hand that can check the version.

    The search covers `sandbox.toolchains`, `sandbox.java.home`, and the path. Raises `Absent` if there is none.
    """
    name = compiler.program.format(version=shown(wanted[:2]))
    own = config.libraries().minor
    if name == f"python{shown(own[: len(wanted)])}":
        return Found(PYTHON, "", own)
    jdk = JavaOptions.of(config).java.home
    folders = [*(CompilerOptions.of(config).toolchains or ()), *([jdk] if jdk else [])]
    given = [str(Path(folder).expanduser() / "bin" / name) for folder in folders]
    places = [place for place in (*given, shutil.which(name)) if place and os.access(place, os.X_OK)]
    known = [found for place in places if (found := _ask(compiler, name, place)) is not None]
    if compiler.exact:
        fitting = [found for found in known if found.version[: len(wanted[:2])] == wanted[:2]]
    else:
        fitting = [found for found in known if found.version >= wanted]
    remedy = "install one, or name its folder: sandbox.toolchains=[DIR]"
    if not fitting:
        seen = f" (there is {', '.join(shown(found.version) for found in known)})" if known else ""
        raise Absent(f"no {name} here can check version {shown(wanted)}{seen}; {remedy}")
    best = min(fitting, key=lambda found: found.version)
    try:
        check_tools(best.tools)
    except UserError as error:
        raise Absent(f"{error.message}; {remedy}") from None
    return best


def _ask(compiler: Compiler, name: str, place: str) -> Found | None:
    """The compiler's answer about its own version, once a process; None if it is of no use."""
    if (place, name) not in _asked:
        _asked[place, name] = _found(compiler, name, place)
    return _asked[place, name]


def _found(compiler: Compiler, name: str, place: str) -> Found | None:
    said = _output_of(place, compiler.asks_version)
    try:
        version = version_of(said)
    except ValueError:
        return None
    folder = _output_of(place, compiler.asks_home).strip() if compiler.asks_home else ""
    home = Path(folder).resolve() if folder else Path(place).resolve().parent.parent
    program = home / "bin" / name if (home / "bin" / name).exists() else Path(place)
    tools = [str(program)] if home == SYSTEM else list(seen_from(home))
    return Found(str(program), str(home), version, tuple(dict.fromkeys(tools)))


def _output_of(place: str, arguments: tuple[str, ...]) -> str:
    """The output of a trusted tool; empty if it fails."""
    try:
        done = subprocess.run(
            [place, *arguments], cwd="/", capture_output=True, text=True, timeout=ANSWERS_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""


def seen_from(folder: Path) -> Iterator[str]:
    """A folder and those that the links in it point to, without the folders that every box has."""
    yield str(folder)
    for place, folders, files in os.walk(folder):
        for path in (Path(place, name) for name in (*folders, *files)):
            if path.is_symlink() and path.exists():
                real = path.resolve()
                target = real if real.is_dir() else real.parent
                if not target.is_relative_to(folder) and not str(target).startswith(THERE):
                    yield str(target)
