"""The servers that codechat started on this machine: found by files, shared by processes, ended with their last user.

In a folder each server has a log, a file that tells where it is (`Running`), and a folder with a file for each process
that uses it. The server's guard ends it once none of these processes is left, however they ended.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar, Token
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock

from codechat.base.errors import UserError
from codechat.base.files import write_atomically
from codechat.models.hardware import HardwareConfig
from codechat.models.serving import server_guard
from codechat.models.serving.planning import DoesNotFit, Placement, lay_out, machine_of
from codechat.models.serving.probing import free_port, is_healthy, local_url
from codechat.models.serving.server import Need, Server, port_of
from codechat.models.serving.vllm import HOST, arguments_of, environment_of, program

GRACE_S = 5.0
"""A server that is asked to end may take so long before it is killed."""
LOOK_S = 0.02
_GUARDS: list["subprocess.Popen[bytes]"] = []
"""Those that this process started: kept until they have ended."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server that was started. `guard` is the process that watches it; its output begins at a byte of its log."""

    log: Path
    log_start: int
    port: int
    place: Placement
    arguments: str
    guard: int
    began: float

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The server of a file; None if it cannot be read."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            place = Placement(**values.pop("place"))
            place = replace(place, gpus=tuple(place.gpus))
            return cls(**values | {"place": place, "log": path.with_suffix(".log")})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    @property
    def base_url(self) -> str:
        """Its address up to /v1."""
        return local_url(self.port)

    @property
    def users(self) -> Path:
        """The folder of its users."""
        return self.log.with_suffix(".users")

    def alive(self) -> bool:
        """Whether it runs, or is about to end; another program may have got the number of its guard since."""
        try:
            return os.fsencode(self.users.absolute()) in Path(f"/proc/{self.guard}/cmdline").read_bytes()
        except OSError:
            return False

    def output(self) -> str:
        """Its output so far."""
        with contextlib.suppress(OSError), self.log.open("rb") as stream:
            stream.seek(self.log_start)
            return stream.read().decode("utf-8", "replace")
        return ""

    def stop(self) -> None:
        """End the server, whoever uses it; returns once it and all that it started are gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.guard, server_guard.END)
        self.wait(lambda: False)

    def wait(self, is_used: Callable[[], bool]) -> None:
        """Wait until the server has ended, as long as nobody uses it."""
        while self.alive() and not is_used():
            time.sleep(LOOK_S)
        _GUARDS[:] = [each for each in _GUARDS if each.poll() is None]


def running_in(folder: Path) -> dict[str, Running]:
    """The servers that run, by their slugs."""
    found = {path.stem: Running.read(path) for path in sorted(folder.glob("*.json"))}
    return {slug: running for slug, running in found.items() if running is not None and running.alive()}


class Fleet:
    """The servers that a run or a sweep uses: a context manager that leaves them, within which cells use `FLEET`."""

    def __init__(self) -> None:
        self._used: set[Path] = set()
        self._tokens: list[Token[Fleet | None]] = []

    def __enter__(self) -> Self:
        self._tokens.append(FLEET.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        FLEET.reset(self._tokens.pop())
        self._leave(self._used)

    def use(self, servers: Iterable[Server], hardware: HardwareConfig, folder: Path) -> None:
        """Use these servers and no other; returns once those that nobody uses any more have ended.

        Servers beside which the others do not fit are left too: they are started again at other places.
        """
        wanted = {server: folder / f"{server.slug}.users" / server_guard.user_name(os.getpid()) for server in servers}
        self._leave(self._used - set(wanted.values()))
        if not wanted:
            return
        running = running_in(folder)
        try:
            missing = [server for server in wanted if server.slug not in running]
            lay_out(machine_of(hardware), missing, [each.place for each in running.values()])
        except DoesNotFit:
            self._leave(self._used)
        with _lock(folder):
            for path in wanted.values():
                path.parent.mkdir(exist_ok=True)
                path.touch()
                self._used.add(path)

    def _leave(self, files: Iterable[Path]) -> None:
        left = list(files)
        for path in left:
            path.unlink(missing_ok=True)
        self._used -= set(left)
        for path in left:
            running = Running.read(path.parent.with_suffix(".json"))
            if running is not None:
                running.wait(partial(server_guard.is_used, running.users))


def start(needs: Mapping[Server, Need], server: Server, hardware: HardwareConfig, folder: Path) -> Running | None:
    """Start one of a cell's servers, at its address's port if that is free; None while its GPUs are not free yet.

    The server is not ready yet; if another process was faster, it is that one's. Raises `UserError`.
    """
    with _lock(folder):
        running = running_in(folder)
        if server.slug in running:
            return running[server.slug]
        try:
            missing = [each for each in needs if each.slug not in running]
            place = lay_out(machine_of(hardware), missing, [each.place for each in running.values()])[server]
        except DoesNotFit:
            if all(server_guard.is_used(each.users) for each in running.values()):
                raise
            return None  # one is about to end
        beside = (each for each in running.values() if {*each.place.gpus} & {*place.gpus})
        if not all(is_healthy(each.port) for each in beside):
            return None  # each measures the free memory as it starts
        need = needs[server]
        path, port = program(need), free_port(port_of(need.base_url))
        arguments = arguments_of(server, place, hardware)
        words = [path, "serve", *arguments, "--host", HOST, "--port", str(port)]
        log = folder / f"{server.slug}.log"
        began, log_start = time.time(), log.stat().st_size if log.exists() else 0
        guard = spawn(words, environment_of(place), log)
        started = Running(log, log_start, port, place, " ".join(arguments), guard.pid, began)
        values = {name: value for name, value in asdict(started).items() if name != "log"}
        write_atomically(log.with_suffix(".json"), json.dumps(values) + "\n")
        return started


def spawn(command: list[str], environment: Mapping[str, str], log: Path) -> "subprocess.Popen[bytes]":
    """Start a server's guard; the server's output goes to the log. Raises `UserError`."""
    users = log.with_suffix(".users").absolute()  # every process names it so, whatever its working folder
    words = [sys.executable, "-I", "-S", str(server_guard.__file__), str(GRACE_S), str(users), *command]
    try:
        with log.open("ab") as stream:
            guard = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=environment, start_new_session=True
            )
    except OSError as error:
        raise UserError(f"cannot start {command[0]}: {error}", "runs_dir must be writable") from error
    _GUARDS.append(guard)
    return guard


def _lock(folder: Path) -> FileLock:
    """Only one process at a time starts servers. Raises `UserError` if there can be no such folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make {folder}: {error.strerror}", "runs_dir must be writable") from error
    return FileLock(folder / ".lock")


FLEET: ContextVar[Fleet | None] = ContextVar("fleet", default=None)
"""The servers of the sweep that runs; None if each cell has its own."""
