"""The model servers of a cell: places on the GPUs, entry in metrics.json, and the number of dialogues that they hold.

A vLLM keeps the conversations that it has read, and drops the least recently used. With more dialogues than it has
memory for, each drops the next one's, and every turn is read from its beginning again.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from codechat.base.domain import CHARS_PER_TOKEN, NO_USAGE
from codechat.models import UNDER_TEST, remote
from codechat.models.endpoints import AGENT, ARGUMENTS, LLAMA_CPP, VLLM
from codechat.models.roles import role_of
from codechat.models.serving import FLEET, CellServers, Fleet, Server, needs_in
from codechat.models.serving.planning import visible_gpus
from codechat.report.metrics.counts import SERVERS
from codechat.run.answering.endpoints import is_finished
from codechat.run.cell import Cell, endpoints_of
from codechat.run.cell.rescored import RescoredCell
from codechat.run.journal import Journal
from codechat.run.protocols import Ask
from codechat.run.settings.config import CellConfig

PROGRAMS = (VLLM, LLAMA_CPP, AGENT)
"""Servers that report a version, which metrics.json has under `SERVERS`."""
SERVERS_FOLDER = ".servers"


def servers_needed(config: CellConfig) -> frozenset[Server]:
    """The servers that codechat may have to start for a cell."""
    return frozenset(need.server for need in needs_in(endpoints_of(config)))


def use_servers(config: CellConfig, fleet: Fleet) -> None:
    """Keep only the servers of a cell, which other processes start, as long as the fleet lasts."""
    fleet.use(servers_needed(config), config.hardware, folder_of_servers(config))


def folder_of_servers(config: CellConfig) -> Path:
    """The folder of this machine's servers, or of a batch job's, which ends with them."""
    parts = [socket.gethostname(), os.environ.get("SLURM_JOB_ID", ""), *(visible_gpus() or ())]
    return Path(config.runs_dir) / SERVERS_FOLDER / "-".join(filter(None, parts))


@contextlib.contextmanager
def serving(cell: Cell, journal: Journal, note: Callable[[str], None]) -> Iterator[CellServers]:
    """The servers of a cell, none if it is finished. Outside of a sweep's `Fleet` they end with the cell.

    Raises `UserError` if the machine cannot hold them.
    """
    finished = is_finished(cell, journal)
    with contextlib.ExitStack() as stack:
        fleet = FLEET.get() or stack.enter_context(Fleet())
        yield _servers(cell, fleet, note, finished=finished)


def layout_of(cell: Cell) -> tuple[str, ...]:
    """The servers that the cell would start, a line each. Raises `UserError` if the machine cannot hold them."""
    servers = _servers(cell, Fleet(), lambda _: None)
    lines: list[str] = []
    for server, place in servers.plan.items():
        size = "weights of unknown size" if server.weights_gb is None else f"{server.weights_gb:g} GB of weights"
        gpus = ", ".join(map(str, place.gpus))
        where = f"on GPU {gpus}" if gpus else "without a GPU"
        room = "" if place.kv_gb is None else f", {place.kv_gb:.1f} GB for conversations on each GPU"
        lines.append(f"{server.described} {where}: {size}{room}")
    return tuple(lines)


def _servers(cell: Cell, fleet: Fleet, note: Callable[[str], None], *, finished: bool = False) -> CellServers:
    """The servers of the models that the cell asks: none if it is finished, none under test if it is rescored."""
    asked = {} if finished else dict(cell.endpoints)
    if isinstance(cell, RescoredCell):
        asked.pop(UNDER_TEST, None)
    return CellServers(fleet, needs_in(asked), cell.config.hardware, folder_of_servers(cell.config), note)


def described(cell: Cell, journal: Journal) -> dict[str, Any]:
    """The entry of metrics.json about the cell's servers and agent; empty without vLLM, llama.cpp and an agent.

    By place: versions, arguments and fingerprints, in order; `prefix_hit_rate` is the share of the prompts' tokens from
    the server's prefix cache, None if unknown: llama.cpp does not report it.
    """
    servers = dict[str, Any]()
    for place in cell.endpoints:
        met = [each for each in journal.endpoints() if each.place == place]
        for program in PROGRAMS:
            records = [each for each in met if program in each.facts]
            if not records:
                continue
            arguments = list(dict.fromkeys(each.facts[ARGUMENTS] for each in records if ARGUMENTS in each.facts))
            used = journal.ledger.spent.get(role_of(place), NO_USAGE)
            known = used.input_tokens and (used.cached_input_tokens or (arguments and program == VLLM))
            servers[place] = {
                program: list(dict.fromkeys(each.facts[program] for each in records)),
                ARGUMENTS: arguments,
                "fingerprints": list(dict.fromkeys(name for each in records for name in each.fingerprints)),
                "prefix_hit_rate": used.cached_input_tokens / used.input_tokens if known else None,
            }
    return {SERVERS: servers} if servers else {}


def tags_of_servers(metrics: Mapping[str, Any]) -> dict[str, str]:
    """The tags of a tracked run about its servers."""
    return {
        f"codechat.server.{place}.{name}": ", ".join(facts[name])
        for place, facts in metrics.get(SERVERS, {}).items()
        for name in (*PROGRAMS, ARGUMENTS, "fingerprints")
        if facts.get(name)
    }


FILLED = 0.8
"""The part of their full length that running dialogues need on average, as they are at different turns."""
KNOWN_FROM = 5
"""The number of finished dialogues from which on their mean length replaces the estimate."""


class ServerCapacity:
    """Lets sessions begin. `ask` returns the tokens that the server keeps, None if unknown: then any number may run.

    One session runs until the first turn has ended, when the server is up. `ask` is None for a model without a vLLM.
    `tokens` is the estimated length of a dialogue.
    """

    def __init__(self, tokens: float, ask: Callable[[], int | None] | None) -> None:
        self._tokens, self._ask = tokens, ask
        self._asking: asyncio.Task[None] | None = None
        self._size = None if ask is None else 0  # until it is asked
        self._inside, self._finished, self._sum = 0, 0, 0
        self._changed = asyncio.Condition()

    @property
    def allowed(self) -> float:
        """The sessions that may be under way now."""
        if self._size is None:
            return float("inf")
        mean = self._sum / self._finished if self._finished >= KNOWN_FROM else self._tokens
        return max(1, int(self._size / max(FILLED * mean, 1)))

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Surrounds a session."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._inside < self.allowed)
            if self._asking is not None and self._asking.done():
                self._asking.result()  # a bug there reaches the next session
            self._inside += 1
        try:
            yield
        finally:
            async with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def turn_ended(self) -> None:
        """A new turn has ended: the server is up, and is asked for its memory."""
        if self._asking is None:
            self._asking = asyncio.create_task(self.update())

    def session_ended(self, tokens: int) -> None:
        """A session has ended after a conversation of so many tokens."""
        self._finished += 1
        self._sum += tokens

    async def update(self) -> None:
        """Ask the server for its memory."""
        self._size = None if self._ask is None else await asyncio.to_thread(self._ask)
        async with self._changed:
            self._changed.notify_all()


def capacity_of(cell: Cell) -> ServerCapacity:
    """The capacity for a cell's sessions, if the model under test is on a vLLM."""
    model, servers = cell.config.model, remote.SERVERS.get()
    if servers is None or getattr(model, "served_by", None) != "vllm":
        return ServerCapacity(0.0, None)
    sizes = [_length(cell.protocol.asks(task)) for task in cell.tasks]
    return ServerCapacity(sum(sizes) / max(len(sizes), 1), lambda: servers.kv_tokens(model))


def _length(asks: Iterable[Ask]) -> float:
    """The tokens of the longest conversation with the model under test, its last reply included."""
    lengths = (ask.characters + (ask.replies + 1) * (ask.answer or 0) for ask in asks if ask.role == UNDER_TEST)
    return max(lengths, default=0.0) / CHARS_PER_TOKEN
