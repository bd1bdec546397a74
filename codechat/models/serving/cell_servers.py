"""One cell's view of its servers: where each of its models is served, started when the first of them is asked.

Nothing is started for a cell whose replies are all known, and everything that is checked without a model (the sandbox,
the tasks' references) is checked before weights are loaded.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

from codechat.base.errors import EndpointDown, UserError
from codechat.models import ModelConfig
from codechat.models.calls.brake import BRAKE
from codechat.models.hardware import HardwareConfig
from codechat.models.remote.served import SERVERS
from codechat.models.serving.fleet import Fleet, Running, running_in, start
from codechat.models.serving.planning import Placement, lay_out, machine_of
from codechat.models.serving.probing import answers, is_healthy, kv_tokens, refuses
from codechat.models.serving.server import Need, Server, port_of, server_of
from codechat.models.serving.vllm import PORT_TAKEN, failure

LOOK_S = 0.1
NOTE_EVERY_S = 30.0


class CellServers:
    """Implements `Servers`. Whether codechat serves a model, or a server was there before, is decided at once."""

    def __init__(
        self, fleet: Fleet, needs: Iterable[Need], hardware: HardwareConfig, folder: Path, note: Callable[[str], None]
    ) -> None:
        """`folder` is that of the servers. Raises `DoesNotFit` if the cell's servers need more than there is."""
        self._fleet, self._hardware, self._folder, self._note = fleet, hardware, folder, note
        self.needs = list(needs)
        running = running_in(folder)
        ours = {each.base_url for each in running.values()}
        attached = {
            url: hardware.serve == "never" or (url not in ours and answers(url))
            for url in {need.base_url for need in self.needs}
        }
        self.served = {
            need.server: need
            for need in reversed(self.needs)
            if hardware.serve == "auto" and (need.server.slug in running or not attached[need.base_url])
        }
        self.plan: dict[Server, Placement] = lay_out(machine_of(hardware), [*self.served]) if self.served else {}
        self._running: dict[Server, Running] = {}
        self._starts = Counter[Server]()
        self._starting: dict[Server, asyncio.Task[Running]] = {}
        self._using: asyncio.Task[None] | None = None

    def _server(self, config: ModelConfig) -> Server | None:
        """The model's server if codechat serves it."""
        server = server_of(config)
        return server if server in self.served else None

    def _found(self, config: ModelConfig) -> Running | None:
        server = self._server(config)
        return None if server is None else self._running.get(server)

    def known_as(self, config: ModelConfig) -> str | None:
        server = self._server(config)
        return None if server is None else server.known_as

    def arguments(self, config: ModelConfig) -> str | None:
        running = self._found(config)
        return None if running is None else running.arguments

    def starts(self, config: ModelConfig) -> int:
        server = self._server(config)
        return 0 if server is None else self._starts[server]

    def is_down(self, config: ModelConfig) -> bool:
        running = self._found(config)
        return running is not None and not running.alive()

    async def reach(self, config: ModelConfig) -> str | None:
        server = self._server(config)
        if server is None:
            return None
        for each in self.served.keys() - self._starting.keys():
            self._bring_up(each)
        running = await self._brought_up(server)
        if not running.alive():  # since it was ready, another model of the cell shares it
            if not await self.revived(config, self._starts[server]):
                raise EndpointDown(f"the server of {server.name} ended again")
            running = await self._brought_up(server)
        return running.base_url

    async def revived(self, config: ModelConfig, starts: int) -> bool:
        server = self._server(config)
        if server is None or server not in self._running:
            return False
        ending = await asyncio.to_thread(refuses, self._running[server].base_url)
        if self._starts[server] == starts == 1 and (ending or self.is_down(config)):
            self._note(f"{server.name}: its server ended by itself: it is started again")
            self._bring_up(server)
        if self._starts[server] == starts:
            return False
        await self._brought_up(server)
        return True

    # -- starting --------------------------------------------------------------------------------------------------

    def _bring_up(self, server: Server) -> None:
        self._starts[server] += 1
        self._starting[server] = asyncio.create_task(self._ready(server))

    async def _brought_up(self, server: Server) -> Running:
        """The server once it is ready. One that is started again is no user's mistake if it is not."""
        try:
            return await asyncio.shield(self._starting[server])
        except UserError as error:
            if self._starts[server] > 1:
                raise EndpointDown(f"the server of {server.name} ended, and did not start again: {error}") from None
            raise

    async def _ready(self, server: Server) -> Running:
        """The server, ready. Raises `UserError` if it ends or takes too long, `Stopped` if interrupted."""
        if self._using is None:
            use = asyncio.to_thread(self._fleet.use, self.served, self._hardware, self._folder)
            self._using = asyncio.create_task(use)
        await self._using
        before = running_in(self._folder).get(server.slug)
        while (running := await asyncio.to_thread(start, self.served, server, self._hardware, self._folder)) is None:
            await BRAKE.get().wait(asyncio.sleep(LOOK_S))
        name, log, place, noted = server.name, running.log, self.served[server].place, 0.0
        if running != before:
            self._note_start(server, running)
        while running.alive():
            seconds = time.time() - running.began
            if await asyncio.to_thread(is_healthy, running.port):
                if running != before:
                    self._note(f"{name} is ready after {seconds:.1f} s")
                self._running[server] = running
                return running
            if seconds > self._hardware.start_s:
                await asyncio.to_thread(running.stop)
                late = f"was not ready in {self._hardware.start_s:g} s (hardware.start_s)"
                raise failure(name, place, running.output(), late, log)
            if seconds - noted >= NOTE_EVERY_S:
                noted = seconds
                self._note(f"{name} is still loading after {seconds:.0f} s (log: {log})")
            await BRAKE.get().wait(asyncio.sleep(LOOK_S))
        if running == before or PORT_TAKEN.search(running.output()):  # it was ending, or another program was faster
            return await self._ready(server)
        raise failure(name, place, running.output(), "ended before it was ready", log)

    def _note_start(self, server: Server, running: Running) -> None:
        gpus, wanted = ", ".join(map(str, running.place.gpus)), port_of(self.served[server].base_url)
        where = f" on GPU {gpus}" if gpus else ""
        taken = "" if running.port == wanted else f" (port {wanted} is taken)"
        self._note(f"starting {server.described}{where} at {running.base_url}{taken} (log: {running.log})")

    def kv_tokens(self, config: ModelConfig) -> int | None:
        running = self._found(config)
        return kv_tokens(str(getattr(config, "base_url", "")) if running is None else running.base_url)

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Surrounds the cell's calls: its models ask these servers."""
        token = SERVERS.set(self)
        try:
            yield
        finally:
            SERVERS.reset(token)
            for task in self._starting.values():
                task.cancel()
            await asyncio.gather(*self._starting.values(), return_exceptions=True)
