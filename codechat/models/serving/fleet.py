"""The model servers on this machine, shared by processes, and one cell's view of them.

In a folder each server has a log, a file with its state (`Running`), and a folder with a file for each process that
uses the server. Its guard ends the server when none of these processes is left. Nothing is started for a cell whose
replies are all known, or before the sandbox and the tasks' references were checked.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextvars import ContextVar, Token
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from filelock import FileLock

from codechat.base.errors import UserError
from codechat.base.files import write_atomically
from codechat.models import ModelConfig
from codechat.models.calls.brake import BRAKE
from codechat.models.endpoints import VLLM
from codechat.models.hardware import HardwareConfig
from codechat.models.remote import SERVERS
from codechat.models.serving import server_guard, vllm
from codechat.models.serving.planning import DoesNotFit, Placement, lay_out, machine_of
from codechat.models.serving.programs import HOST, PORT_TAKEN, PROGRAMS, failure
from codechat.models.serving.server import (
    Need,
    Server,
    answers,
    free_port,
    kv_tokens,
    local_url,
    port_of,
    server_of,
)  # fmt: skip

GRACE_S = 5.0
"""Seconds between the request to end and the kill of a server."""
LOOK_S, START_LOOK_S, NOTE_EVERY_S = 0.02, 0.1, 30.0
_GUARDS: list["subprocess.Popen[bytes]"] = []
"""The running guards that this process started."""


@dataclass(frozen=True, slots=True)
class Running:
    """A started server. `guard_name` is the name (`server_guard.user_name`) of the process that watches it;
    `log_start` is the byte of its log where it begins."""

    log: Path
    log_start: int
    port: int
    place: Placement
    arguments: str
    guard_name: str
    began: float

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The server of a state file; None if it cannot be read."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            place = Placement(**values.pop("place"))
            place = replace(place, gpus=tuple(place.gpus))
            return cls(**values | {"place": place, "log": path.with_suffix(".log")})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    @property
    def base_url(self) -> str:
        """The address up to /v1."""
        return local_url(self.port)

    @property
    def users(self) -> Path:
        return self.log.with_suffix(".users")

    def alive(self) -> bool:
        """Whether the guard runs."""
        return server_guard.is_running(self.guard_name)

    def output(self) -> str:
        with contextlib.suppress(OSError), self.log.open("rb") as stream:
            stream.seek(self.log_start)
            return stream.read().decode("utf-8", "replace")
        return ""

    def stop(self) -> None:
        """End the server, used or not; returns when all its processes have ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(server_guard.process_of(self.guard_name), server_guard.END)
        self.wait(lambda: False)

    def wait(self, is_used: Callable[[], bool]) -> None:
        """Wait until the server has ended, or is used again."""
        while self.alive() and not is_used():
            time.sleep(LOOK_S)
        _GUARDS[:] = [each for each in _GUARDS if each.poll() is None]


def running_in(folder: Path) -> dict[str, Running]:
    """The running servers, by slug."""
    servers = {path.stem: Running.read(path) for path in sorted(folder.glob("*.json"))}
    return {slug: running for slug, running in servers.items() if running is not None and running.alive()}


class Fleet:
    """The servers of a run or a sweep, for the cells within this context; leaving it releases them."""

    def __init__(self) -> None:
        self._used: set[Path] = set()
        self._tokens: list[Token[Fleet | None]] = []

    def __enter__(self) -> Self:
        self._tokens.append(FLEET.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        FLEET.reset(self._tokens.pop())
        self._leave(self._used)

    def use(self, servers: Iterable[Server], hardware: HardwareConfig, folder: Path) -> None:
        """Use these servers alone; returns when unused servers have ended.

        If the missing servers do not fit next to the running ones, all are released and start again elsewhere.
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
        released = list(files)
        for path in released:
            path.unlink(missing_ok=True)
        self._used -= set(released)
        for path in released:
            running = Running.read(path.parent.with_suffix(".json"))
            if running is not None:
                running.wait(partial(server_guard.is_used, running.users))


def start(needs: Mapping[Server, Need], server: Server, hardware: HardwareConfig, folder: Path) -> Running | None:
    """Start one of a cell's servers, at the port of its address if that is free; None while its GPUs are not free.

    Returns the server of another process if that was faster. The server is not ready yet. Raises `UserError`.
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
            return None  # an unused server is about to end
        neighbours = (each for each in running.values() if {*each.place.gpus} & {*place.gpus})
        if not all(vllm.is_ready(each.port) for each in neighbours):
            return None  # vLLM measures the free memory as it starts
        need, program = needs[server], PROGRAMS[server.program]
        command, port = program.command(need), free_port(port_of(need.base_url))
        arguments = program.arguments_of(server, place, hardware)
        words = [*command, *arguments, "--host", HOST, "--port", str(port)]
        log = folder / f"{server.slug}.log"
        began, log_start = time.time(), log.stat().st_size if log.exists() else 0
        guard = spawn(words, program.environment_of(place), log)
        started = Running(log, log_start, port, place, " ".join(arguments), server_guard.user_name(guard.pid), began)
        values = {name: value for name, value in asdict(started).items() if name != "log"}
        write_atomically(log.with_suffix(".json"), json.dumps(values) + "\n")
        return started


def spawn(command: list[str], environment: Mapping[str, str], log: Path) -> "subprocess.Popen[bytes]":
    """Start a server's guard; the server's output goes to the log. Raises `UserError`."""
    users = str(log.with_suffix(".users"))
    words = [sys.executable, "-I", "-S", str(server_guard.__file__), str(GRACE_S), users, *command]
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
    """A lock on the folder: one process at a time starts servers. Raises `UserError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make {folder}: {error.strerror}", "runs_dir must be writable") from error
    return FileLock(folder / ".lock")


FLEET: ContextVar[Fleet | None] = ContextVar("fleet", default=None)
"""The running sweep's servers; None if each cell has a `Fleet`."""


class CellServers:
    """One cell's servers: `served` by codechat, or attached because a server answered when this object was made.

    Only a vLLM is attached: llama.cpp's server answers to any model's name.
    """

    def __init__(
        self, fleet: Fleet, needs: Iterable[Need], hardware: HardwareConfig, folder: Path, note: Callable[[str], None]
    ) -> None:
        """`folder` has the servers' files. Raises `DoesNotFit` if the machine is too small."""
        self._fleet, self._hardware, self._folder, self._note = fleet, hardware, folder, note
        self.needs = list(needs)
        running = running_in(folder)
        candidates = [] if hardware.serve == "never" else self.needs
        attachable = {need.base_url for need in candidates if need.server.program == VLLM}
        other_urls = attachable - {each.base_url for each in running.values()}
        attached = {url for url in other_urls if answers(url)}
        self.served = {
            need.server: need
            for need in reversed(candidates)
            if need.server.slug in running or need.base_url not in attached
        }
        self.plan: dict[Server, Placement] = lay_out(machine_of(hardware), [*self.served]) if self.served else {}
        self._running: dict[Server, Running] = {}
        self._starting: dict[Server, asyncio.Task[Running]] = {}
        self._using: asyncio.Task[None] | None = None

    def _server(self, config: ModelConfig) -> Server | None:
        server = server_of(config)
        return server if server in self.served else None

    def _running_server(self, config: ModelConfig) -> Running | None:
        server = self._server(config)
        return None if server is None else self._running.get(server)

    def known_as(self, config: ModelConfig) -> str | None:
        """The name in the cache's keys in place of the address; None if codechat does not start the server."""
        server = self._server(config)
        return None if server is None else server.known_as

    def arguments(self, config: ModelConfig) -> str | None:
        """The arguments of the model's server; None if codechat did not start it."""
        running = self._running_server(config)
        return None if running is None else running.arguments

    def kv_tokens(self, config: ModelConfig) -> int | None:
        """The tokens that the KV cache of the model's server keeps, once the server was reached; None if unknown."""
        running = self._running_server(config)
        return kv_tokens(str(getattr(config, "base_url", "")) if running is None else running.base_url)

    async def reach(self, config: ModelConfig) -> str | None:
        """The address, up to /v1, of the model's server once it is ready; None: the config's address.

        The first call starts all servers of the cell. Raises `UserError` if a start fails, or `Stopped`.
        """
        server = self._server(config)
        if server is None:
            return None
        for each in self.served.keys() - self._starting.keys():
            self._starting[each] = asyncio.create_task(self._ready(each))
        return (await asyncio.shield(self._starting[server])).base_url

    async def _ready(self, server: Server) -> Running:
        if self._using is None:
            use = asyncio.to_thread(self._fleet.use, self.served, self._hardware, self._folder)
            self._using = asyncio.create_task(use)
        await self._using
        before = running_in(self._folder).get(server.slug)
        while (running := await asyncio.to_thread(start, self.served, server, self._hardware, self._folder)) is None:
            await BRAKE.get().wait(asyncio.sleep(START_LOOK_S))
        name, log, place, noted = server.name, running.log, self.served[server].place, 0.0
        if running != before:
            self._note_start(server, running)
        while running.alive():
            seconds = time.time() - running.began
            if await asyncio.to_thread(PROGRAMS[server.program].is_ready, running.port):
                if running != before:
                    self._note(f"{name} is ready after {seconds:.1f} s")
                self._running[server] = running
                return running
            if seconds > self._hardware.start_s:
                await asyncio.to_thread(running.stop)
                late = f"was not ready in {self._hardware.start_s:g} s (hardware.start_s)"
                raise failure(server, place, running.output(), late, log)
            if seconds - noted >= NOTE_EVERY_S:
                noted = seconds
                self._note(f"{name} is still loading after {seconds:.0f} s (log: {log})")
            await BRAKE.get().wait(asyncio.sleep(START_LOOK_S))
        if running == before or PORT_TAKEN.search(running.output()):  # was ending, or lost the port to another program
            return await self._ready(server)
        raise failure(server, place, running.output(), "ended before it was ready", log)

    def _note_start(self, server: Server, running: Running) -> None:
        gpus, wanted = ", ".join(map(str, running.place.gpus)), port_of(self.served[server].base_url)
        where = f" on GPU {gpus}" if gpus else ""
        taken = "" if running.port == wanted else f" (port {wanted} is taken)"
        self._note(f"starting {server.described}{where} at {running.base_url}{taken} (log: {running.log})")

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """The context of the cell's calls: sets `SERVERS`."""
        token = SERVERS.set(self)
        try:
            yield
        finally:
            SERVERS.reset(token)
            for task in self._starting.values():
                task.cancel()
            await asyncio.gather(*self._starting.values(), return_exceptions=True)
