"""The servers that codechat started: they belong to a run or a sweep, and end with it.

Other processes of codechat find them by a file beside their logs (`Shared`) and use them as their own, so that the
processes of one sweep load weights once. The process that started a server ends it.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from codechat.base.errors import UserError
from codechat.base.files import content_hash, write_atomically
from codechat.models.hardware import HardwareConfig
from codechat.models.serving import server_guard
from codechat.models.serving.planning import DoesNotFit, Placement, lay_out, machine_of
from codechat.models.serving.probing import answers, free_port, local_url
from codechat.models.serving.server import Need, Server, port_of
from codechat.models.serving.vllm import HOST, arguments_of, environment_of, program

GRACE_S = 5.0
"""A server that is asked to end may take so long before it is killed."""


class ServerProcess:
    """A started server. `log` gets its output, after that of earlier ones under the same name."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        """Start it. Raises `UserError` if the log cannot be written or the program not run."""
        self.log, self.began = log, time.monotonic()
        words = [sys.executable, "-I", "-S", str(server_guard.__file__), str(GRACE_S), *command]
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as stream:
                self._start = stream.tell()
                self._guard = subprocess.Popen(
                    words, stdin=subprocess.PIPE, stdout=stream, stderr=stream, env=environment, start_new_session=True
                )
        except OSError as error:
            raise UserError(f"cannot start {command[0]}: {error}", "runs_dir must be writable") from error

    @property
    def guard(self) -> int:
        """The process that watches the server."""
        return self._guard.pid

    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._guard.poll()

    def output(self) -> str:
        """The output of this process so far."""
        with contextlib.suppress(OSError), self.log.open("rb") as stream:
            stream.seek(self._start)
            return stream.read().decode("utf-8", "replace")
        return ""

    def ask_to_end(self) -> None:
        """Ask the guard to end the server; `stop` waits for it."""
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        if self.status() is None:
            self._guard.send_signal(server_guard.END)

    def stop(self) -> None:
        """End the server and all that it started; returns once they are gone."""
        self.ask_to_end()
        try:
            self._guard.wait(2 * GRACE_S)
        except subprocess.TimeoutExpired:
            self._guard.kill()  # the server goes with its guard
            self._guard.wait()


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
        """Remember that it is, and let other processes know."""
        self.ready = True
        self.publish()

    def publish(self) -> None:
        """Let other processes find it as it is now."""
        me = os.getpid()
        shared = Shared(
            serves=_hash_of(self.server),
            base_url=self.base_url,
            arguments=" ".join(self.arguments),
            host=socket.gethostname(),
            guard=self.process.guard,
            keeper=me,
            since=_beginning_of(me) or 0,
            ready=self.ready,
        )
        with contextlib.suppress(UserError):  # the others will start their own
            write_atomically(self.published, json.dumps(asdict(shared)) + "\n")

    @property
    def base_url(self) -> str:
        """Its address up to /v1."""
        return local_url(self.port)

    @property
    def arguments(self) -> list[str]:
        """The arguments it was started with, without host and port."""
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
        self._published: dict[Server, Path] = {}
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

        Other processes still find one in the plan: it is about to be started again.
        """
        for server in self._published.keys() - plan.keys():
            self._published.pop(server).unlink(missing_ok=True)
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
        if self._published.get(server, running.published) != running.published:
            self._published[server].unlink(missing_ok=True)
        self._published[server] = running.published
        return running

    def ended(self) -> list[Running]:
        """The servers that ended by themselves."""
        return [each for each in self._running.values() if not each.alive()]


FLEET: ContextVar[Fleet | None] = ContextVar("fleet", default=None)
"""The servers of the sweep that runs; None if each cell has its own."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A server that was started. `serves` is the hash of its model and weights, `guard` the process that watches it.

    `keeper` is the process that started it, and starts it again if it ends by itself; `since` says when that process
    began, so that no other is taken for it.
    """

    serves: str
    base_url: str
    arguments: str
    host: str
    guard: int
    keeper: int
    since: int
    ready: bool

    def runs(self) -> bool:
        """Whether it has not ended; another program may have got the number of its guard since."""
        try:
            command = Path(f"/proc/{self.guard}/cmdline").read_bytes()
        except OSError:
            return False
        return os.fsencode(str(server_guard.__file__)) in command

    def is_kept(self) -> bool:
        """Whether the process that started it has not ended."""
        return _beginning_of(self.keeper) == self.since


def find(folder: Path, server: Server) -> Shared | None:
    """A server that another process of this machine started for the same; None if there is none.

    It may still be loading: then it is not `ready`.
    """
    running = [each for each in _published(folder, server) if each.runs()]
    ready = (each for each in running if each.ready and answers(each.base_url))
    return next(ready, None) or next((each for each in running if not each.ready), None)


def find_kept(folder: Path, server: Server) -> Shared | None:
    """A server that another process keeps for the same; it may have ended by itself. None if that process ended it."""
    return next((each for each in _published(folder, server) if each.keeper != os.getpid() and each.is_kept()), None)


def _published(folder: Path, server: Server) -> Iterator[Shared]:
    for path in sorted(folder.glob("*.json")):
        try:
            shared = Shared(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            continue
        if shared.serves == _hash_of(server) and shared.host == socket.gethostname():
            yield shared


def _hash_of(server: Server) -> str:
    return content_hash([server.name, server.weights.identity()])


def _beginning_of(process: int) -> int | None:
    """When a process began, in clock ticks since the machine did; None if there is none under this number."""
    try:
        return int(Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except OSError:
        return None
