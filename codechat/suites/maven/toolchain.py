"""Maven and the JDK of this machine, with every folder that they need to see, as tools of a box."""

import functools
import shutil
from dataclasses import dataclass
from pathlib import Path

from codechat.errors import UserError
from codechat.suites.compilers import seen_from
from codechat.suites.jdk import find_home

COMMANDS = ("/usr/bin", "/bin")  # Maven's own script, and the shell that starts a JVM for tests


@dataclass(frozen=True)
class Toolchain:
    """Maven's program, the JDK's folder, and the paths of this machine that both need."""

    maven: str
    java_home: str
    tools: tuple[str, ...]


@functools.cache
def toolchain(jdk: str | None) -> Toolchain:
    """The tools installed here, found once a process; `jdk` is the folder of a JDK, None to look for one.

    Raises `UserError` if Maven or a JDK is missing.
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise UserError("tests of Java repositories need mvn, which is not installed", "install Maven")
    home, java_home = Path(maven).resolve().parent.parent, find_home(jdk)
    tools = [*COMMANDS, *seen_from(home), *seen_from(java_home)]
    return Toolchain(str(home / "bin" / "mvn"), str(java_home), tuple(dict.fromkeys(tools)))
