"""Servers that another process of codechat started: found by a file beside their logs, and used as one's own.

So the processes of one sweep load weights once. The process that started a server ends it.
"""

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from codechat.errors import UserError
from codechat.files import content_hash, write_atomically
from codechat.serving import guard
from codechat.serving.probing import answers
from codechat.serving.server import Server


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
        """Whether it has not ended."""
        return _is_guard(self.guard)

    def is_kept(self) -> bool:
        """Whether the process that started it has not ended."""
        return _beginning_of(self.keeper) == self.since


def record_of(server: Server, base_url: str, arguments: str, guard_process: int, *, ready: bool) -> Shared:
    """What other processes are told of a server of this one."""
    me = os.getpid()
    since = _beginning_of(me) or 0
    return Shared(_hash_of(server), base_url, arguments, socket.gethostname(), guard_process, me, since, ready)


def publish(path: Path, shared: Shared) -> None:
    """Tell other processes of a server."""
    try:
        write_atomically(path, json.dumps(asdict(shared)) + "\n")
    except UserError:
        return  # they will start their own


def find(folder: Path, server: Server) -> Shared | None:
    """A server that another process of this machine started for the same; None if there is none.

    It may still be loading: then it is not `ready`.
    """
    told = [each for each in _told(folder, server) if each.runs()]
    ready = (each for each in told if each.ready and answers(each.base_url))
    return next(ready, None) or next((each for each in told if not each.ready), None)


def kept(folder: Path, server: Server) -> Shared | None:
    """A server that another process keeps for the same; it may have ended by itself. None if that process ended it."""
    return next((each for each in _told(folder, server) if each.keeper != os.getpid() and each.is_kept()), None)


def _told(folder: Path, server: Server) -> Iterator[Shared]:
    for path in sorted(folder.glob("*.json")):
        try:
            shared = Shared(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            continue
        if shared.serves == _hash_of(server) and shared.host == socket.gethostname():
            yield shared


def _hash_of(server: Server) -> str:
    return content_hash([server.name, server.weights.identity()])


def _is_guard(process: int) -> bool:
    """Whether a process watches a server, and not another program under the number of one that has ended."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
    return os.fsencode(str(guard.__file__)) in command


def _beginning_of(process: int) -> int | None:
    """When a process began, in clock ticks since the machine did; None if there is none under this number."""
    try:
        return int(Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except OSError:
        return None
