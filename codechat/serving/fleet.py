"""The servers that codechat started. They belong to a run or a sweep, and end with it."""

import contextlib
from collections.abc import Iterable, Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from codechat.hardware import HardwareConfig
from codechat.serving.command import HOST, arguments_of, environment_of, program
from codechat.serving.planning import DoesNotFit, Placement, lay_out, machine_of
from codechat.serving.probing import free_port, local_url
from codechat.serving.process import ServerProcess
from codechat.serving.server import Need, Server, port_of
from codechat.serving.sharing import publish, record_of


@dataclass(slots=True)
class Running:
    """A server that was started. `hardware` has the options that it was started with."""

    server: Server
    place: Placement
    hardware: HardwareConfig
    port: int
    process: ServerProcess
    ready: bool = False

    @property
    def published(self) -> Path:
        """The file by which other processes find it."""
        return self.process.log.with_suffix(".json")

    def is_ready(self) -> None:
        """Remember that it is, and tell other processes."""
        self.ready = True
        self.publish()

    def publish(self) -> None:
        """Tell other processes of it as it is now."""
        arguments = " ".join(self.arguments)
        told = record_of(self.server, self.base_url, arguments, self.process.guard, ready=self.ready)
        publish(self.published, told)

    @property
    def base_url(self) -> str:
        """Its address up to /v1."""
        return local_url(self.port)

    @property
    def arguments(self) -> list[str]:
        """What it was told, without host and port."""
        return arguments_of(self.server, self.place, self.hardware)

    def alive(self) -> bool:
        """Whether it still runs."""
        return self.process.status() is None


class Fleet:
    """All servers of a run or a sweep: a context manager that ends them, and within which cells use `FLEET`.

    A cell keeps those that it needs too, and `keep` ends the others. Belongs to one thread.
    """

    def __init__(self) -> None:
        self._running: dict[Server, Running] = {}
        self._told: dict[Server, Path] = {}
        self._tokens: list[Token[Fleet | None]] = []

    def __enter__(self) -> Self:
        self._tokens.append(FLEET.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        FLEET.reset(self._tokens.pop())
        self.keep({})

    def running(self, server: Server) -> Running | None:
        """The server if it was started, whether or not it has ended."""
        return self._running.get(server)

    def ports(self) -> set[int]:
        """The ports of the servers that run."""
        return {each.port for each in self._running.values() if each.alive()}

    def keep(self, plan: Mapping[Server, Placement]) -> None:
        """End the servers that are not in the plan, or have another place there; forget those that have ended.

        Other processes are told of one in the plan as before: it is about to be started again.
        """
        for server in self._told.keys() - plan.keys():
            self._told.pop(server).unlink(missing_ok=True)
        ending = [each for each in self._running.values() if plan.get(each.server) != each.place or not each.alive()]
        for each in ending:
            del self._running[each.server]
            each.process.ask_to_end()
        for each in ending:
            each.process.stop()

    def plan(self, servers: Iterable[Server], hardware: HardwareConfig) -> dict[Server, Placement]:
        """A place for each server. Those that run keep theirs, unless the others would not fit beside them.

        Raises `DoesNotFit`.
        """
        needed, machine = list(servers), machine_of(hardware)
        kept = {server: each.place for server, each in self._running.items() if server in needed and each.alive()}
        with contextlib.suppress(DoesNotFit):
            return lay_out(machine, needed, kept)
        return lay_out(machine, needed)

    def start(self, need: Need, place: Placement, hardware: HardwareConfig, folder: Path) -> Running:
        """Start a model's server, at the address's port if it is free; it is not ready yet. Raises `UserError`.

        `folder` gets its log.
        """
        server = need.server
        before = self._running.pop(server, None)
        if before is not None:
            before.process.stop()
        path, port = program(need), free_port(port_of(need.base_url))
        words = [path, "serve", *arguments_of(server, place, hardware), "--host", HOST, "--port", str(port)]
        process = ServerProcess(words, environment_of(place, hardware), folder / f"{server.slug}-{port}.log")
        running = self._running[server] = Running(server, place, hardware, port, process)
        running.publish()
        if self._told.get(server, running.published) != running.published:
            self._told[server].unlink(missing_ok=True)
        self._told[server] = running.published
        return running

    def ended(self) -> list[Running]:
        """The servers that ended by themselves."""
        return [each for each in self._running.values() if not each.alive()]


FLEET: ContextVar[Fleet | None] = ContextVar("fleet", default=None)
"""The servers of the sweep that runs; None if each cell has its own."""
