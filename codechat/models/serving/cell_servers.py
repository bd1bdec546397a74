"""One cell's view of its servers: where each of its models is served, started when the first of them is asked.

Nothing is started for a cell whose replies are all known, and everything that is checked without a model (the sandbox,
the tasks' references) is checked before weights are loaded.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

from codechat.base.errors import EndpointDown, UserError
from codechat.models import ModelConfig
from codechat.models.calls.brake import BRAKE
from codechat.models.hardware import HardwareConfig
from codechat.models.remote.served import SERVERS
from codechat.models.serving.fleet import Fleet, Running, Shared, find, find_kept
from codechat.models.serving.planning import Placement
from codechat.models.serving.probing import PrefixCounts, answers, is_healthy, kv_tokens, prefix_counts, refuses
from codechat.models.serving.server import Need, Server, port_of, server_of
from codechat.models.serving.vllm import PORT_TAKEN, failure

LOOK_S = 0.1
NOTE_EVERY_S = 30.0
NOTICED_S = 5.0
"""In so many seconds a process notices that its server has ended, and begins to start it again."""
ENDING_S = 15.0
"""A server that takes no connection any more, and all that it started, have ended after so many seconds."""


def _shared_by_others(needs: Iterable[Need], fleet: Fleet, folder: Path) -> dict[Server, Shared]:
    """The servers that other processes started for their cells, also one that has just ended by itself."""
    wanted = {need.server for need in needs if fleet.running(need.server) is None}
    found = {server: find(folder, server) or find_kept(folder, server) for server in wanted}
    return {server: shared for server, shared in found.items() if shared is not None}


class CellServers:
    """Implements `Servers`. Whether a model's server is started or was there before is decided at once."""

    def __init__(
        self, fleet: Fleet, needs: Iterable[Need], hardware: HardwareConfig, folder: Path, note: Callable[[str], None]
    ) -> None:
        """`folder` gets the servers' logs. Raises `DoesNotFit` if the servers to start need more than there is."""
        self._fleet, self._hardware, self._folder, self._note = fleet, hardware, folder, note
        self.needs = list(needs)
        self._shared = _shared_by_others(self.needs, fleet, folder) if hardware.serve == "auto" else {}
        own = fleet.ports()
        attached = {
            url: hardware.serve == "never" or (port_of(url) not in own and answers(url))
            for url in {need.base_url for need in self.needs if need.server not in self._shared}
        }
        self.started = {need.server: need for need in reversed(self.needs) if not attached.get(need.base_url, True)}
        self.plan: dict[Server, Placement] = fleet.plan(self.started, hardware) if self.started else {}
        self._starts: dict[Server, int] = dict.fromkeys(self.started, 0) | dict.fromkeys(self._shared, 1)
        self._bringing: dict[Server, asyncio.Task[Running]] = {}
        self._gpus: dict[int, asyncio.Lock] = {}
        self._clearing = asyncio.Lock()
        self._before: dict[str, PrefixCounts] = {}

    def _server(self, config: ModelConfig) -> Server | None:
        """The model's server if codechat starts it."""
        server = server_of(config)
        return server if server in self.started else None

    def _shared_server(self, config: ModelConfig) -> Shared | None:
        server = server_of(config)
        return None if server is None else self._shared.get(server)

    def known_as(self, config: ModelConfig) -> str | None:
        server = server_of(config)
        return server.known_as if server in self.started or server in self._shared else None

    def arguments(self, config: ModelConfig) -> str | None:
        shared = self._shared_server(config)
        if shared is not None:
            return shared.arguments
        server = self._server(config)
        running = None if server is None else self._fleet.running(server)
        return None if running is None else " ".join(running.arguments)

    def starts(self, config: ModelConfig) -> int:
        server = server_of(config)
        return 0 if server is None else self._starts.get(server, 0)

    def is_down(self, config: ModelConfig) -> bool:
        shared, server = self._shared_server(config), self._server(config)
        if shared is not None or server is None:
            return shared is not None and not shared.runs()
        running = self._fleet.running(server)
        return self._starts[server] > 0 and (running is None or not running.alive())

    async def reach(self, config: ModelConfig) -> str | None:
        server = self._server(config)
        if server is None:
            return await self._reach_other(config)
        if server not in self._bringing:
            for each in self.plan.keys() - self._bringing.keys():
                self._bringing[each] = asyncio.create_task(self._bring_up(each))
        running = await self._brought_up(server)
        if not running.alive():  # since it was ready, another model of the cell shares it
            if not await self.revived(config, self._starts[server]):
                raise EndpointDown(f"the server of {server.name} ended again")
            running = await self._brought_up(server)
        await self._count_from_here(running.base_url)
        return running.base_url

    async def _reach_other(self, config: ModelConfig) -> str | None:
        """The address of a server that this process did not start: None for the one in the config."""
        shared, server = self._shared_server(config), server_of(config)
        if shared is None or server is None:
            await self._count_from_here(str(getattr(config, "base_url", "")))
            return None
        if not (shared.ready and shared.runs()) and not await self._regained(server):
            raise EndpointDown(f"the server of {server.name} that another process started has ended")
        running = self._shared.get(server) or await self._brought_up(server)
        await self._count_from_here(running.base_url)
        return running.base_url

    async def revived(self, config: ModelConfig, starts: int) -> bool:
        server = server_of(config)
        if server is None or server not in self._starts:
            return False
        await self._ended(config, server, starts)
        if server in self._shared:
            return self._starts[server] > starts or (self.is_down(config) and await self._regained(server))
        if self._starts[server] == starts == 1 and self.is_down(config):
            self._note(f"{server.name}: its server ended by itself: it is started again")
            self._starts[server] += 1
            self._bringing[server] = asyncio.create_task(self._bring_up(server))
        if self._starts[server] == starts:
            return False
        running = await self._brought_up(server)
        self._before[running.base_url] = PrefixCounts()
        return True

    async def _ended(self, config: ModelConfig, server: Server, starts: int) -> None:
        """Wait while a server takes no connection any more and has not ended yet."""
        latest = time.monotonic() + ENDING_S
        while self._starts[server] == starts and not self.is_down(config) and time.monotonic() < latest:
            at = self._shared.get(server) or self._fleet.running(server)
            if at is None or not await asyncio.to_thread(refuses, at.base_url):
                return
            await BRAKE.get().wait(asyncio.sleep(LOOK_S))

    async def _regained(self, server: Server) -> bool:
        """A server that another process started and that has ended: whether there is one again.

        That process starts it again once. If it ended the server because it needs it no more, this one starts its own.
        """
        lost, began = self._shared[server], time.monotonic()
        while self._shared.get(server) is lost:
            found = await asyncio.to_thread(find, self._folder, server)
            if self._shared.get(server) is not lost:
                break
            if found is not None and found.ready:
                self._shared[server] = found
                self._starts[server] += 1
                self._before[found.base_url] = PrefixCounts()
            elif found is not None:
                began = time.monotonic()  # it is loading
            elif find_kept(self._folder, server) is None:
                self._take_over(server)
            elif time.monotonic() - began > NOTICED_S:
                return False
            await BRAKE.get().wait(asyncio.sleep(LOOK_S))
        if server in self.started:
            self._before[(await self._brought_up(server)).base_url] = PrefixCounts()
        return True

    def _take_over(self, server: Server) -> None:
        """Start a server that another process ended."""
        del self._shared[server]
        self.started[server] = next(need for need in self.needs if need.server == server)
        try:
            self.plan = self._fleet.plan(self.started, self._hardware)
        except UserError as error:
            raise EndpointDown(str(error)) from None
        self._starts[server] += 1
        self._bringing[server] = asyncio.create_task(self._bring_up(server))

    async def _brought_up(self, server: Server) -> Running:
        """The server once it is ready. One that is started again is no user's mistake if it is not."""
        try:
            return await asyncio.shield(self._bringing[server])
        except UserError as error:
            if self._starts[server] > 1:
                raise EndpointDown(f"the server of {server.name} ended, and did not start again: {error}") from None
            raise

    # -- starting --------------------------------------------------------------------------------------------------

    async def _bring_up(self, server: Server) -> Running:
        """The server, ready. Servers that share a GPU start one after the other: each measures its free memory."""
        place = self.plan[server]
        async with contextlib.AsyncExitStack() as stack:
            async with self._clearing:
                await asyncio.to_thread(self._fleet.keep, self.plan)
            for gpu in sorted(place.gpus):
                await stack.enter_async_context(self._gpus.setdefault(gpu, asyncio.Lock()))
            running = self._fleet.running(server) or self._start(server, place)
            self._starts[server] = max(1, self._starts[server])
            if not running.ready:
                running = await self._wait(running)
        return running

    def _start(self, server: Server, place: Placement) -> Running:
        need = self.started[server]
        running = self._fleet.start(need, place, self._hardware, self._folder)
        where = "" if not place.gpus else f" on GPU {', '.join(map(str, place.gpus))}"
        taken = "" if running.port == port_of(need.base_url) else f" (port {port_of(need.base_url)} is taken)"
        self._note(f"starting {server.described}{where} at {running.base_url}{taken} (log: {running.process.log})")
        return running

    async def _wait(self, running: Running) -> Running:
        """Wait until a server is ready. Raises `UserError` if it ends or takes too long, `Stopped` if interrupted."""
        limit, noted = self._hardware.start_s, 0.0
        name, place = running.server.name, self.started[running.server].place
        while not await asyncio.to_thread(is_healthy, running.port):
            process = running.process
            seconds = time.monotonic() - process.began
            status = process.status()
            if status is not None and PORT_TAKEN.search(process.output()):  # somebody was faster
                running = self._start(running.server, running.place)
                continue
            if status is not None or seconds > limit:
                await asyncio.to_thread(process.stop)
                ended = f"ended with status {status} before it was ready"
                late = f"was not ready in {limit:g} s (hardware.start_s)"
                raise failure(name, place, process.output(), late if status is None else ended, process.log)
            if seconds - noted >= NOTE_EVERY_S:
                noted = seconds
                self._note(f"{name} is still loading after {seconds:.0f} s (log: {process.log})")
            await BRAKE.get().wait(asyncio.sleep(LOOK_S))
        running.is_ready()
        self._note(f"{name} is ready after {time.monotonic() - running.process.began:.1f} s")
        return running

    # -- the prefix cache ------------------------------------------------------------------------------------------

    async def _count_from_here(self, base_url: str) -> None:
        """Remember a server's counts before this cell."""
        if base_url not in self._before:
            self._before[base_url] = PrefixCounts()
            counts = await asyncio.to_thread(prefix_counts, base_url)
            self._before[base_url] = counts or PrefixCounts()

    def counted(self) -> dict[str, PrefixCounts]:
        """The counts of the servers for this cell, by the place of each model that was asked."""
        found: dict[str, PrefixCounts] = {}
        for need in self.needs:
            at = self._shared_server(need.config) or self._fleet.running(need.server)
            base_url = need.base_url if at is None else at.base_url
            now = prefix_counts(base_url) if base_url in self._before else None
            if now is not None:
                found[need.place] = now - self._before[base_url]
        return found

    def kv_tokens(self, config: ModelConfig) -> int | None:
        server = server_of(config)
        at = self._shared_server(config) or (None if server is None else self._fleet.running(server))
        base_url = str(getattr(config, "base_url", "")) if at is None else at.base_url
        return kv_tokens(base_url) if base_url in self._before else None

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Surrounds the cell's calls: its models ask these servers."""
        token = SERVERS.set(self)
        try:
            yield
        finally:
            SERVERS.reset(token)
            for task in self._bringing.values():
                task.cancel()
            await asyncio.gather(*self._bringing.values(), return_exceptions=True)
