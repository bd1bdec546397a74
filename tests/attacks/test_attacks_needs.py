"""Hostile programs under tests that need commands, a network, a /proc and threads: none passes, none harms the next."""

import asyncio
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from codechat.base.domain import Program, Target, Verdict
from codechat.base.errors import UserError
from codechat.sandbox import SANDBOXES
from codechat.sandbox.suites.assertions import Assertions, Need
from support.processes import descendants

NEEDS: frozenset[Need] = frozenset({"commands", "native", "network", "processes", "threads"})
TEST = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(f(), 'the right answer of a long run')\n"
RIGHT = "def f():\n    return 'the right answer of a long run'\n"
HOSTILE = {
    "exits": "import os\nos._exit(0)\n",
    "exits later": "import os\ndef f():\n    os._exit(0)\n",
    "is gone by a command": "import os, subprocess\ndef f():\n    subprocess.run(['sh', '-c', 'kill -9 $PPID'])\n",
    "kills everything": "import os\ndef f():\n    os.kill(-1, 9)\n",
    "kills by a command": "import subprocess\ndef f():\n    subprocess.run(['sh', '-c', 'kill -9 -1'])\n",
    "signals all it sees": (
        "import os\ndef f():\n    for name in os.listdir('/proc'):\n        if name.isdigit():\n            os.kill(int(name), 9)\n"
    ),
    "leaves a daemon": "import subprocess\ndef f():\n    subprocess.Popen(['sh', '-c', 'while :; do :; done'], start_new_session=True)\n",
    "forks without end": "import os\ndef f():\n    while True:\n        try:\n            os.fork()\n        except OSError:\n            pass\n",
    "starts threads without end": (
        "import threading, time\ndef f():\n    while True:\n        try:\n            threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "        except RuntimeError:\n            return\n"
    ),
    "writes into the harness's socket": "import os\ndef f():\n    for handle in range(3, 9):\n        try:\n            os.write(handle, b'Z' * 40)\n        except OSError:\n            pass\n",
    "fills the shared memory": "def f():\n    with open('/dev/shm/x', 'wb') as s:\n        while True:\n            s.write(b'0' * (1 << 20))\n",
    "waits for a call that never comes": "import socket\ndef f():\n    socket.create_server(('localhost', 0)).accept()\n",
    "floods a connection": (
        "import socket, threading\ndef f():\n    server = socket.create_server(('localhost', 0))\n"
        "    client = socket.create_connection(server.getsockname())\n    other = server.accept()[0]\n"
        "    threading.Thread(target=lambda: [other.recv(1 << 16) for _ in iter(int, 1)], daemon=True).start()\n    while True:\n        client.sendall(b'x' * (1 << 16))\n"
    ),
    "makes namespaces by a command": "import subprocess\ndef f():\n    assert subprocess.run(['unshare', '-r', 'true']).returncode\n    raise ValueError\n",
    "mounts by a command": "import subprocess\ndef f():\n    assert subprocess.run(['mount', '-t', 'tmpfs', 'x', '/mnt']).returncode\n    raise ValueError\n",
    "reads what others hold": (
        "import glob\ndef f():\n    for path in glob.glob('/proc/[0-9]*/environ'):\n        if b'CODECHAT' in open(path, 'rb').read():\n            return 'the right answer of a long run'\n"
    ),
    "writes to the system": "def f():\n    for path in ('/usr/bin/x', '/proc/sys/kernel/hostname', '/etc/hosts', '/etc/network/hosts'):\n        open(path, 'w')\n",
    "skips": "import unittest\ndef f():\n    raise unittest.SkipTest('no')\n",
    "raises a thread's end": "import threading\ndef f():\n    threading.Thread(target=lambda: 1 / 0).start()\n",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Any]:
    config = SANDBOXES.validate(
        {"kind": "bubblewrap", "idle_s": 1.0, "load_cpu_s": 1.0, "total_cpu_s": 2.0, "memory_mb": 1024}
    )
    try:
        room = SANDBOXES.build(config, workers=1)
    except UserError as error:
        pytest.skip(str(error))
    yield room
    asyncio.run(room.aclose())


async def verdict_on(sandbox: Any, source: str) -> Verdict:
    return await Assertions((TEST,), NEEDS).check(Program(source, Target(entry_point="f")), sandbox)


@pytest.mark.parametrize("name", HOSTILE)
async def test_none_passes_and_the_next_verdict_is_right(sandbox: Any, name: str) -> None:
    began = time.monotonic()
    verdict = await verdict_on(sandbox, HOSTILE[name])
    assert not verdict.passed, verdict
    assert time.monotonic() - began < 60
    right = await verdict_on(sandbox, RIGHT)
    assert right.passed and right.decided == "inside", right
    assert not (await verdict_on(sandbox, "def f():\n    return 2\n")).passed
    assert len(descendants()) < 12, "something goes on"


async def test_the_hosts_loopback_interface_is_another_one(sandbox: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        source = f"import socket\ndef f():\n    socket.create_connection(('127.0.0.1', {port}), 2)\n    return 'the right answer of a long run'\n"
        verdict = await verdict_on(sandbox, source)
        assert not verdict.passed and "ConnectionRefusedError" in str(verdict.failure)
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()
