"""Isolation by bubblewrap: an empty root with the interpreter and its libraries read-only, and nothing of the host."""

import functools
import os
import shutil
import sys
from pathlib import Path
from typing import Literal

from codechat.config import run_option
from codechat.errors import UserError
from codechat.sandbox import SANDBOXES, Sandbox, SandboxConfig
from codechat.sandbox.engine import ZygoteSandbox
from codechat.sandbox.follow import WorkerDied
from codechat.sandbox.process import NOBODY, interpreter, limits_of, limits_only, module_path
from codechat.sandbox.tools import places
from codechat.sandbox.worker import Inside, Launch

# What the interpreter and compiled packages load; programs of the host stay outside.
LIBRARIES = ("/lib", "/lib64", "/lib32", "/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/share/zoneinfo")
LOADER = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
REMEDY = "install the package 'bubblewrap', or choose another kind: sandbox=docker or sandbox=process"


class BubblewrapConfig(SandboxConfig):
    """Options of `bubblewrap`."""

    kind: Literal["bubblewrap"] = run_option("bubblewrap", "a minimal read-only root without network")


class AutoConfig(SandboxConfig):
    """Options of `auto`."""

    kind: Literal["auto"] = run_option("auto", "bubblewrap if it works, else process")


@SANDBOXES.register("bubblewrap", BubblewrapConfig)
def bubblewrap(config: BubblewrapConfig, workers: int = 1) -> Sandbox:
    """A minimal read-only root, no network, own namespaces, no rights: the default if it works."""
    return start_confined(config, workers)


@SANDBOXES.register("auto", AutoConfig)
def auto(config: AutoConfig, workers: int = 1) -> Sandbox:
    """Bubblewrap if it works, else process, which warns that it is weaker."""
    try:
        return start_confined(config, workers)
    except UserError as error:
        return limits_only(config, workers, f"{error.message}; using sandbox=process. ")


def start_confined(config: SandboxConfig, workers: int) -> ZygoteSandbox:
    """A sandbox whose first worker has started; raises `UserError` if bubblewrap is missing or refused."""
    program = shutil.which("bwrap")
    if program is None:
        raise UserError("sandbox=bubblewrap needs the program bwrap, which is not installed", REMEDY)
    launch = functools.cache(functools.partial(_launch, program, config))
    sandbox = ZygoteSandbox(
        config, lambda tools: launch(places(tools, (*LIBRARIES, *LOADER))), workers, weak=False, notice=None
    )
    try:
        sandbox.start()
    except WorkerDied as error:
        raise UserError(f"bubblewrap does not work here: {str(error).splitlines()[-1]}", REMEDY) from error
    return sandbox


def _launch(program: str, config: SandboxConfig, tools: tuple[tuple[str, str], ...]) -> Launch:
    root = os.getuid() == 0
    binds, paths, python = _interpreter(Path(sys.base_prefix).resolve())
    package = Path(__file__).resolve().parent.parent
    arguments = [program, "--unshare-ipc", "--unshare-net", "--unshare-pid", "--unshare-uts", "--hostname", "sandbox"]
    if root:
        # The zygote itself becomes an unprivileged user: limits on processes do not bind root.
        arguments += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        arguments += ["--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
    parents = {str(parent) for _, place in (*binds, *tools) for parent in Path(place).parents if str(parent) != "/"}
    for parent in sorted(parents):  # made before the binds need them, else only root could enter them
        arguments += ["--perms", "0755", "--dir", parent]
    for source, place in binds:
        link = source == place and Path(source).is_symlink()
        arguments += ["--symlink", str(Path(source).readlink()), place] if link else ["--ro-bind", source, place]
    for source, place in tools:
        arguments += ["--ro-bind" if source == place else "--symlink", source, place]
    for source, place in binds:
        if package.is_relative_to(source):  # the embedded dataset holds its own answers
            arguments += ["--tmpfs", str(place / package.relative_to(source))]
    arguments += ["--ro-bind", str(package / "sandbox" / "inside"), "/harness/inside"]
    arguments += ["--dev", "/dev", "--remount-ro", "/dev", "--proc", "/proc", "--dir", "/tmp", "--remount-ro", "/"]
    arguments += ["--chdir", "/", "--setenv", "LD_LIBRARY_PATH", str(Path(python).parent.parent / "lib")]
    inside = Inside(paths=paths, limits=limits_of(config), scratch=["/tmp"], uid=NOBODY if root else None)
    return Launch(lambda rest, _: [*arguments, "--", python, *rest], "/harness", inside, strict=True)


def _interpreter(base: Path) -> tuple[list[tuple[str, str]], list[str], str]:
    """The binds (from, to), the module path inside, and the interpreter inside.

    A system's interpreter keeps its path; any other is put into /python, so that no path of the host is visible.
    """
    program = Path(interpreter())
    binds = [(folder, folder) for folder in (*LIBRARIES, *LOADER) if Path(folder).exists()]
    if base == Path("/usr"):
        inside, python = base, str(program)
        binds.append((str(program), str(program)))
    else:
        inside, python = Path("/python"), f"/python/{program.relative_to(base)}"
        binds.append((str(base), "/python"))
    paths = []
    for number, path in enumerate(module_path()):
        if Path(path).is_relative_to(base):
            paths.append(str(inside / Path(path).relative_to(base)))
        else:
            binds.append((path, f"/packages/{number}"))
            paths.append(f"/packages/{number}")
    return binds, paths, python
