"""Isolation by limits, an unprivileged user if run as root, and namespaces if the system grants them."""

import functools
import os
from pathlib import Path
from typing import Literal

from codechat.base.config import run_option
from codechat.base.environment import cache_root, home
from codechat.base.errors import UserError
from codechat.sandbox import SANDBOXES, Sandbox, SandboxConfig
from codechat.sandbox.command import PROC
from codechat.sandbox.inside.isolate import NO_USER
from codechat.sandbox.watch import WorkerDied
from codechat.sandbox.workers import Inside, Launch, ZygoteSandbox, variables_of

SCRATCH = ("/dev/shm", "/var/tmp", "/tmp")
REMEDY = (
    "run it as a plain user, or in a container whose root may become another user (setgroups, setresuid) and which "
    "allows user namespaces or Landlock"
)
NOTICE = "sandbox=process is weak: programs can read this user's files"


class ProcessConfig(SandboxConfig):
    """Options of `process`."""

    kind: Literal["process"] = run_option("process", "limits only; programs can read this user's files")


@SANDBOXES.register("process", ProcessConfig)
def process(config: ProcessConfig, workers: int = 1) -> Sandbox:
    """Limits only: weaker, since programs can read this user's files."""
    return limits_only(config, workers)


def limits_only(config: SandboxConfig, workers: int, refused: str = "") -> ZygoteSandbox:
    """The weak sandbox, whose first worker has started; if it takes the place of stronger kinds, `refused` says what
    they met. Raises `UserError` if not even that works."""
    uid = another_user()
    libraries = config.libraries()
    paths = list(libraries.path)
    read = [str(libraries.base), *libraries.linked, *(path for path in paths if "-packages" in path)]
    covered = [Path(folder) for folder in SCRATCH if not any(Path(path).is_relative_to(folder) for path in read)]

    @functools.cache
    def launch(proc: bool) -> Launch:
        inside = Inside(
            paths=paths,
            limits=limits_of(config),
            scratch=[str(folder) for folder in covered if folder.is_dir()],
            uid=uid,
            reach=read if uid else [],
            hide=list(dict.fromkeys([*secrets(), *libraries.hidden()])),
            proc=proc,
        )
        root, environment = str(Path(__file__).parent), variables_of(config)
        return Launch(lambda rest, _: [libraries.program, *rest], root, inside, place=None, environment=environment)

    notice = f"{NOTICE}; stronger kinds do not work here: {refused}" if refused else NOTICE
    sandbox = ZygoteSandbox(config, lambda tools: launch(PROC in tools), workers, weak=True, notice=notice)
    try:
        sandbox.start()
    except WorkerDied as error:
        met = f"; {refused}" if refused else ""
        raise UserError(f"no sandbox works here: process: {str(error).splitlines()[-1]}{met}", REMEDY) from error
    return sandbox


def another_user() -> int | None:
    """The user that root's programs become; None without root, or if root's namespace has no other user or group, or
    forbids to leave groups, as in many containers."""
    proc = Path("/proc/self")  # a kernel without user namespaces has none of these files
    groups = proc / "setgroups"
    if os.getuid() or (groups.exists() and groups.read_text().strip() == "deny"):
        return None
    for kind in filter(Path.exists, (proc / "uid_map", proc / "gid_map")):
        mapped = kind.read_text().split()
        ranges = zip(map(int, mapped[::3]), map(int, mapped[2::3]), strict=True)
        if not any(first <= NO_USER < first + count for first, count in ranges):
            return None
    return NO_USER


def limits_of(config: SandboxConfig) -> dict[str, int]:
    """The limits of a child in the system's units."""
    return {
        "memory": config.memory_mb << 20,
        "file": config.file_mb << 20,
        "open_files": config.open_files,
        "processes": config.processes,
    }


def secret_folder(name: str) -> Path:
    """A folder of the cache that only this user can read, hidden from programs. Raises `UserError`."""
    folder = cache_root() / name
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    except OSError as error:
        raise UserError(
            f"cannot write {folder}: {error.strerror}", "set hardware.scratch or CODECHAT_CACHE_DIR to a folder"
        ) from error
    return folder


def secrets() -> list[str]:
    """Folders with expected values or embedded datasets, hidden if namespaces can be had."""
    named = [secret_folder("expected"), Path(__file__).resolve().parent.parent, home() / ".cache"]
    # Path.is_dir() raises an error below a folder that is closed
    return [str(folder) for folder in named if os.path.isdir(folder)]  # noqa: PTH112
