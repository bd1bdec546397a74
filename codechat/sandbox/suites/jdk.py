"""The JDK of this machine, for every kind of tests that needs one."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from codechat.base.config import Config, place_option, run_option
from codechat.base.errors import UserError
from codechat.sandbox import AddedOptions

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
    """The folder of the JDK: the `given` one, else that of the `javac` on the path.

    Raises `UserError` if there is none, if it is too old, or if it lacks one of the `parts`, which are paths in its
    folder.
    """
    javac = shutil.which("javac")
    if given is None and javac is None:
        raise UserError("tests in Java need a JDK, and there is none", REMEDY)
    home = Path(given).expanduser() if given is not None else Path(str(javac)).resolve().parent.parent
    for part in ("bin/javac", "release", *parts):
        if not (home / part).exists():
            raise UserError(f"{home} is no JDK: it has no {part}", REMEDY)
    version = version_of(home)
    if version < OLDEST:
        raise UserError(f"{home} is a JDK {version}, and the tests need {OLDEST} or later", REMEDY)
    return home


def version_of(home: Path) -> int:
    """The JDK's major version."""
    for line in (home / "release").read_text("utf-8", "replace").splitlines():
        name, _, value = line.partition("=")
        number = value.strip('" ').split(".")
        if name == "JAVA_VERSION" and number[0].isdigit():
            return int(number[1] if number[0] == "1" and len(number) > 1 else number[0])
    raise UserError(f"{home}/release names no JAVA_VERSION", REMEDY)
