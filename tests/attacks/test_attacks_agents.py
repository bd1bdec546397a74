"""Hostile coding agents: nothing is seen, nothing is left, and the record has what it was."""

import io
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attack_agents import NETWORK, OTHERS, READS, Attack

from codechat.base.domain import Message, Reply, Trajectory
from codechat.datasets.tasks import Start
from codechat.models import Desk, Request
from codechat.models.agent import Agent, AgentConfig
from codechat.sandbox.rooms.box import Box
from codechat.testing import OpenAIServer

pytestmark = pytest.mark.skipif(Box.here() is None, reason="needs user namespaces")
MARKER, KEY = "MARKER-OF-THE-REFERENCE-4711", "sk-key-of-the-model-0815"


class Session:
    """A session of an agent whose command is a script, with things of others around it."""

    def __init__(self, folder: Path, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KEY_OF_AGENTS", KEY)
        monkeypatch.setenv("REFERENCE", MARKER)
        self.secret, self.folder = folder / "dataset" / "tasks.jsonl", folder / "run" / "agents" / "own"
        self.other = folder / "run" / "agents" / "other"
        for place in (self.secret.parent, self.other, self.folder):
            place.mkdir(parents=True)
        self.secret.write_text(f'{{"reference": "{MARKER}"}}\n')
        with tarfile.open(self.other / "0001-0000.tar", "w") as archive:
            entry = tarfile.TarInfo("workspace/solution.py")
            entry.size = len(MARKER)
            archive.addfile(entry, io.BytesIO(MARKER.encode()))
        self._server, self._turn = server, 0
        self._kept: dict[str, Any] = {}

    async def turn(self, script: str, port: int = 0, **limits: float) -> Reply:
        words = f"SECRET={self.secret}\nOTHER={self.other}\nPORT={port}\n{script}"
        config = AgentConfig(
            name="attacker", base_url=self._server.base_url, api_key_env="KEY_OF_AGENTS",
            command=("bash", "-c", words), limits_of_turn={"seconds": 30, "disk_mb": 64, "memory_mb": 1024, **limits},
        )  # fmt: skip
        agent = Agent(config)
        await agent.check()
        desk = Desk("session", lambda: Start("solution.py"), self.folder, self._opened)
        request = Request((Message("user", "Do it."),), "task/0", self._turn, desk=desk)
        self._turn += 1
        try:
            return await agent.complete(request)
        finally:
            await self._kept.pop("agent").aclose()
            await agent.aclose()

    def _opened(self, name: str, make: Any) -> Any:
        return self._kept.setdefault(name, make())

    def all_bytes(self) -> bytes:
        """All that the session keeps."""
        return b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    with OpenAIServer(lambda call: f"hello {call.headers}") as server:
        yield Session(tmp_path, server, monkeypatch)


def told(reply: Reply) -> Trajectory:
    assert reply.trajectory is not None
    return reply.trajectory


def commands() -> list[str]:
    """The command lines of this machine's processes."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("name", READS)
async def test_nothing_of_the_tests_the_key_or_others_is_seen(name: str, session: Session) -> None:
    reply = await session.turn(f"({READS[name]}\n) 2>&1 | tee -a found\ncat solution.py found; exit 0")
    shown = reply.text.encode() + repr(reply).encode() + session.all_bytes()
    assert MARKER.encode() not in shown
    assert KEY.encode() not in shown
    assert MARKER in session.secret.read_text()


@contextmanager
def stranger() -> Iterator[tuple[int, list[bytes]]]:
    """A server of this machine, on loopback and as an abstract socket, which notes what it is told."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as one, socket.socket(socket.AF_UNIX) as other:
        other.bind(f"\0codechat-attack:{one.getsockname()[1]}")
        other.listen()

        def serve(listener: socket.socket) -> None:
            while True:
                try:
                    link, _ = listener.accept()
                except OSError:
                    return
                heard.append(b"connected")
                link.sendall(b"REACHED")
                link.close()

        for each in (one, other):
            threading.Thread(target=serve, args=(each,), daemon=True).start()
        yield one.getsockname()[1], heard
        for each in (one, other):
            each.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("name", NETWORK)
async def test_nothing_but_the_endpoint_is_reached(name: str, session: Session) -> None:
    with stranger() as (port, heard):
        reply = await session.turn(f"({NETWORK[name]}\n) 2>&1; exit 0".replace(":PORT", f":{port}"), port)
    assert heard == []
    assert "REACHED" not in reply.text
    assert KEY not in repr(reply)


@pytest.mark.parametrize("name", OTHERS)
async def test_it_ends_as_it_should_with_nothing_left(name: str, session: Session) -> None:
    attack: Attack = OTHERS[name]
    before = {path: path.stat().st_mtime_ns for path in (Path("/etc/passwd"), Path("/usr/bin"), session.secret)}
    began = time.monotonic()
    reply = await session.turn(attack.script, **attack.limits)
    trajectory = told(reply)
    assert trajectory.ended in attack.ended, (trajectory.ended, reply.text[-500:], trajectory.steps)
    if attack.file != "":
        assert trajectory.file == attack.file
    assert time.monotonic() - began < 150
    assert len(repr(reply)) < 40 << 20
    assert not any("sleep 4242" in each or "echo forged" in each for each in commands())
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert sum(path.stat().st_size for path in session.folder.rglob("*")) < 200 << 20
    again = await session.turn("cat solution.py; exit 0")
    assert told(again).file == trajectory.file  # nothing changed it meanwhile
    assert told(again).elsewhere == 0
    assert told(again).attempts == 1
