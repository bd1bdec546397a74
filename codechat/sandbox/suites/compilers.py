"""Compilers and interpreters of this machine, found for the version of a language that is to be checked."""

import functools
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from codechat.base.config import Config, place_option, run_option
from codechat.base.errors import UserError
from codechat.sandbox import PYTHON, AddedOptions, SandboxConfig
from codechat.sandbox.command import check_tools
from codechat.sandbox.languages.grammar import Compiler, Version, shown, version_of

OLDEST = 17
REMEDY = "install one (Debian: openjdk-17-jdk-headless), or name its folder: sandbox.java.home=DIR"


class JavaConfig(Config):
    """Where Java is. A tool that is not named here is looked for where Debian's packages put it."""

    home: str | None = place_option(None, "the folder of a JDK, 17 or later", min_length=1)
    classpath: list[str] | None = place_option(None, "the jar files of JUnit 5, and of libraries that programs use")


class JavaOptions(AddedOptions):
    """Options for tests of Java programs."""

    java: JavaConfig = run_option(JavaConfig(), "where programs in Java find compiler, JUnit and libraries")


def find_home(given: str | None, parts: Iterable[str] = ()) -> Path:
    """The folder of the JDK: the `given` one, else of the `javac` on the path. Raises `UserError` if there is none, if
    it is too old, or if it lacks one of the `parts`, which are paths in it."""
    javac = shutil.which("javac")
    if given is None and javac is None:
        raise UserError("tests in Java need a JDK, and there is none", REMEDY)
    home = Path(given).expanduser() if given is not None else Path(str(javac)).resolve().parent.parent
    for part in ("bin/javac", "release", *parts):
        if not (home / part).exists():
            raise UserError(f"{home} is no JDK: it has no {part}", REMEDY)
    version = jdk_version(home)
    if version < OLDEST:
        raise UserError(f"{home} is a JDK {version}, and the tests need {OLDEST} or later", REMEDY)
    return home


def jdk_version(home: Path) -> int:
    """The JDK's major version."""
    for line in (home / "release").read_text("utf-8", "replace").splitlines():
        name, _, value = line.partition("=")
        number = value.strip('" ').split(".")
        if name == "JAVA_VERSION" and number[0].isdigit():
            return int(number[1] if number[0] == "1" and len(number) > 1 else number[0])
    raise UserError(f"{home}/release names no JAVA_VERSION", REMEDY)


THERE = ("/usr/lib", "/lib")  # in every box
ANSWERS_S = 30.0  # a compiler's own version
SYSTEM = Path("/usr")


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
    """The oldest compiler at hand that can check the version. The search covers `sandbox.toolchains`,
    `sandbox.java.home`, and the path. Raises `Absent` if there is none."""
    name = compiler.program.format(version=shown(wanted[:2]))
    version = config.libraries().minor
    if name == f"python{shown(version[: len(wanted)])}":
        return Found(PYTHON, "", version)
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


@functools.cache
def _ask(compiler: Compiler, name: str, place: str) -> Found | None:
    """A compiler with its version, asked once a process; None if the answer names none."""
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
    try:
        done = subprocess.run(
            [place, *arguments], cwd="/", capture_output=True, text=True, timeout=ANSWERS_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""


def seen_from(folder: Path) -> Iterator[str]:
    """A folder and the folders that its links point to, without the folders of every box."""
    yield str(folder)
    for place, folders, files in os.walk(folder):
        for path in (Path(place, name) for name in (*folders, *files)):
            if path.is_symlink() and path.exists():
                real = path.resolve()
                target = real if real.is_dir() else real.parent
                if not target.is_relative_to(folder) and not str(target).startswith(THERE):
                    yield str(target)
