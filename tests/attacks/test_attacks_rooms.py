"""Hostile commands in rooms: none reaches out, outlives its limit or leaves anything, and the next command is right."""

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from attacks.attack_rooms import CLEAN, PYTHON, SHELL
from codechat.base.domain import Output
from support.benches import BESIDE, Driven, DrivenRoom, in_kind, lacking
from support.repositories import Repository, make_repository

LIMITS = {"command_s": 4, "room_s": 100_000, "memory_mb": 256, "processes": 40, "disk_mb": 48, "output_kb": 8}
NEXT = "echo right; pwd; set -- /proc/[0-9]*; echo $#"
TOKEN = f"token-{secrets.token_hex(8)}"


@dataclass
class Outside:
    """What a command might reach: a server, a socket, a file, all with a token."""

    port: int
    socket: Path
    secret: Path
    mark: str
    reached: list[str]

    def filled(self, command: str) -> str:
        return command.format(mark=self.mark, port=self.port, socket=self.socket, secret=self.secret)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    folder = tmp_path_factory.mktemp("outside")
    folder.chmod(0o755)
    secret = folder / "secret"
    secret.write_text(TOKEN)
    secret.chmod(0o644)
    mark, reached = f"mark-{secrets.token_hex(8)}", list[str]()
    servers = [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
    servers[1].bind(str(folder / "socket"))
    servers[2].bind(f"\0{mark}")
    (folder / "socket").chmod(0o666)

    def serve(server: socket.socket) -> None:
        server.listen()
        with contextlib.suppress(OSError):
            while True:
                peer = server.accept()[0]
                reached.append(str(server))
                with peer:
                    peer.sendall(TOKEN.encode())

    threads = [threading.Thread(target=serve, args=(server,)) for server in servers]
    for thread in threads:
        thread.start()
    yield Outside(servers[0].getsockname()[1], folder / "socket", secret, mark, reached)
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
    for thread in threads:
        thread.join()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return make_repository(tmp_path_factory.mktemp("hostile") / "repository")


@contextlib.contextmanager
def opened(kind: str, repository: Repository) -> Iterator[DrivenRoom]:
    """A room whose process has a secret in its environment."""
    os.environ["CODECHAT_TEST_SECRET"] = TOKEN
    driven = Driven(kind, **LIMITS)
    try:
        room = driven.open(in_kind(repository.workspace, kind))
        yield room
        room.close()
    finally:
        driven.close()
        os.environ.pop("CODECHAT_TEST_SECRET", None)  # of both kinds


@pytest.fixture(scope="module", params=["checkout", BESIDE])
def kind(request: pytest.FixtureRequest) -> str:
    if why := lacking(request.param):
        pytest.skip(why)
    return str(request.param)


@pytest.fixture(scope="module")
def checkout(kind: str, repository: Repository) -> Iterator[DrivenRoom]:
    with opened(kind, repository) as room:
        yield room


@pytest.fixture(scope="module")
def docker(engine: None, repository: Repository) -> Iterator[DrivenRoom]:
    with opened("docker", repository) as room:
        yield room


def attack(room: DrivenRoom, outside: Outside, command: str) -> Output:
    """Run a hostile command and check that it changed nothing but files of the room."""
    before = room.text(NEXT)
    began = time.monotonic()
    output = room.run(outside.filled(command))
    took = time.monotonic() - began
    assert took < LIMITS["command_s"] + 15
    assert TOKEN not in output.text and not outside.reached
    assert len(output.text.encode()) < (LIMITS["output_kb"] << 10) * 4 + 1000
    assert not any(ord(character) < 32 and character not in "\n\t" for character in output.text)
    assert output.ended != "exit" or output.status is not None
    assert alive(outside.mark) == []
    for folder in ("/", "/etc", "/usr", "/usr/bin", "/tmp", "/root", "/dev/shm"):
        assert not Path(folder, outside.mark).exists()
    room.run(CLEAN)
    assert room.text(NEXT) == before
    assert before.startswith("right\n/")
    return output


def alive(mark: str) -> list[str]:
    """The command lines of processes of this machine that have the mark."""
    found = []
    for place in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            line = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if mark in line and place.name != str(os.getpid()):
                found.append(line)
    return found


@pytest.mark.parametrize("name", SHELL)
def test_no_command_harms_a_checkout(name: str, kind: str, checkout: DrivenRoom, outside: Outside) -> None:
    expect(name, attack(checkout, outside, SHELL[name]), BESIDE_TEXTS if kind == BESIDE else {})


@pytest.mark.parametrize("name", SHELL)
def test_no_command_harms_a_container(name: str, docker: DrivenRoom, outside: Outside) -> None:
    expect(name, attack(docker, outside, SHELL[name]))


@pytest.mark.parametrize("name", PYTHON)
def test_no_program_harms_a_checkout(name: str, kind: str, checkout: DrivenRoom, outside: Outside) -> None:
    if not Path("/usr/bin/python3").exists():
        pytest.skip("needs the system's Python")
    output = attack(checkout, outside, f"cat > /tmp/p.py <<'EOF'\n{PYTHON[name]}EOF\npython3 /tmp/p.py")
    assert "REACHED" not in output.text
    if name.startswith("takes memory in") or name in ("takes memory by forks", "takes shared memory"):
        # Beside other processes no connection comes about, and a program that tries on and on ends by its time.
        assert output.ended == "memory" or "MemoryError" in output.text or (kind, output.ended) == (BESIDE, "timeout")


TEXTS = {
    "waits for input": "got ''",
    "sleeps": "[killed: a command may take 4 s",
    "prints without end": "bytes left out: of an output the first and the last 4 KiB are kept]",
    "prints ten gigabytes": "bytes left out: of an output the first and the last 4 KiB are kept]",
    "escapes": "\\x1b[2J\\x1b]0;title\\x07\\x07\\x08\\x1b[31mred\\x0d over\n",
    "no text": "a\\x00b\\xff\\xfec\\xc3(\n",
    "turns the text around": "abc\\u202edef\n",
    "fills the disk": "No space left",
    "fills the temporary folder": "No space left",
    "fills the shared memory": "No space left",
}
BESIDE_TEXTS = {
    "fills the disk": "File size limit exceeded",
    "fills the temporary folder": "File size limit exceeded",
    "fills the shared memory": "Permission denied",
}
NOT_TEXTS = {"takes namespaces": "TAKEN", "names the machine": "SET", "becomes root": "uid=0"}
ENDS = {
    "sleeps": (None, "timeout"),
    "counts for ever": (None, "timeout"),
    "prints without end": (None, "timeout"),
    "waits for input": (0, "exit"),
    "kills itself": (137, "exit"),
    "keeps the output open": (3, "exit"),
}


def expect(name: str, output: Output, texts: dict[str, str] = {}) -> None:  # noqa: B006  it is not changed
    """What must be told of an attack, where one thing only would be right."""
    assert (TEXTS | texts).get(name, "") in output.text
    assert name not in NOT_TEXTS or NOT_TEXTS[name] not in output.text
    assert (output.status, output.ended) == ENDS.get(name, (output.status, output.ended)), output
    assert output.cut == ("bytes left out" in output.text)


def test_there_are_enough() -> None:
    assert len(PYTHON) >= 20
    assert len(SHELL) >= 40 and len(set(SHELL.values())) == len(SHELL)


def test_a_room_ends_with_its_process(kind: str, repository: Repository, tmp_path: Path) -> None:
    """A killed codechat leaves no room behind."""
    before = set(Path(tempfile.gettempdir()).glob("codechat-room-*"))
    without = "checkout.programs = list" if kind == BESIDE else ""
    mark = f"mark-{secrets.token_hex(8)}"
    script = tmp_path / "opens.py"
    script.write_text(
        "import asyncio, sys\nfrom codechat.studies.cab.environments import ENVIRONMENTS, checkout\n"
        f"from codechat.datasets.tasks import Workspace\n\n{without}\n\n"
        "async def main():\n    environment = ENVIRONMENTS.build(ENVIRONMENTS.validate({'kind': 'checkout'}))\n"
        "    room = await environment.open(Workspace(sys.argv[1], sys.argv[2]))\n    print('open', flush=True)\n"
        f"    await room.run(\"sh -c 'while :; do sleep 1; done' {mark}\")\n\n\nasyncio.run(main())\n"
    )
    words = [sys.executable, str(script), str(repository.folder), repository.commit]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stdout.readline() == b"open\n"
        until = time.monotonic() + 20
        while not alive(mark) and time.monotonic() < until:
            time.sleep(0.05)
        assert alive(mark)
        running.kill()
    until = time.monotonic() + 20
    while alive(mark) and time.monotonic() < until:
        time.sleep(0.05)
    assert alive(mark) == []
    while set(Path(tempfile.gettempdir()).glob("codechat-room-*")) != before and time.monotonic() < until:
        time.sleep(0.05)
    assert set(Path(tempfile.gettempdir()).glob("codechat-room-*")) == before
