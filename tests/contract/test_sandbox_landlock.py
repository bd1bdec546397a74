"""`landlock` on older kernels, and what only it has to keep: other processes, their sockets, and what files are about."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Program
from codechat.sandbox import SANDBOXES, landlock
from codechat.sandbox.inside.beside import landlock_version
from codechat.sandbox.suites.calls import Calls
from support.processes import below

if not landlock_version():
    pytest.skip("needs Landlock", allow_module_level=True)
LIMITS = {"idle_s": 3.0, "load_cpu_s": 5.0, "total_cpu_s": 10.0}
NUMBER = Calls("f", "def f(n):\n    return n + 1\n", base=((1,), (5,)), name="landlock/0")


@pytest.fixture(scope="module", params=sorted({1, 3, 5, landlock_version()}))
def sandbox(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The kind, by a version of Landlock's interface that a kernel may have."""
    launch = landlock._launch

    def older(*given: Any) -> Any:
        made = launch(*given)
        return replace(made, inside=replace(made.inside, version=request.param))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landlock, "_launch", older)
        room: Any = SANDBOXES.build(SANDBOXES.validate({"kind": "landlock", **LIMITS}), workers=1)
    assert {worker.hello["version"] for worker in room._workers} == {request.param} and not room.weak
    yield room
    asyncio.run(room.aclose())


async def told(sandbox: Any, body: str, helpers: str = "") -> str:
    """What a program finds: the text of the exception that it raises with it."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    program = (
        f"import os, signal, socket, subprocess, sys, time\n{helpers}\ndef f(n):\n{lines}    raise ValueError(found)\n"
    )
    failure = (await NUMBER.check(Program(program), sandbox)).failure
    return str(failure.exception).splitlines()[-1].removeprefix("ValueError: ")


def left_in(folder: Path) -> list[Path]:
    return [*folder.glob("*/*")]


async def test_own_files_and_no_others(sandbox: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    os.chmod(tmp_path, 0o755)  # noqa: PTH101  an async test
    for action in ("open({0!r}).read()", "open({0!r}, 'a')", "os.listdir({1!r})", "os.unlink({0!r})",
                   "os.truncate({0!r}, 0)", "os.rename({0!r}, 'x')", "os.link({0!r}, 'x')",
                   "os.open({1!r}, os.O_TMPFILE | os.O_RDWR)"):  # fmt: skip
        body = f"try:\n    {action.format(str(secret), str(tmp_path))}\n    found = 'REACHED'\nexcept OSError:\n    found = 'refused'"
        assert await told(sandbox, body) == "refused", action
    assert secret.read_text() == "secret"
    own = "os.mkdir('a')\nopen('a/b', 'w').write('1')\nos.rename('a/b', 'a/c')\nos.symlink('a/c', 'l')\nfound = open('l').read()"
    assert await told(sandbox, own) == "1"


async def test_attributes_of_files_stay(sandbox: Any, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    before = mine.stat()
    body = f"""
for act in (os.chmod, lambda p, m: os.utime(p, (0, 0)), lambda p, m: os.chown(p, 1, 1), lambda p, m: os.setxattr(p, 'user.x', b'1')):
    try: act({str(mine)!r}, 0)
    except OSError: pass
found = 'done'"""
    assert await told(sandbox, body) == "done"
    assert mine.stat() == before and not os.listxattr(mine)


async def test_signals_reach_own_processes_alone(sandbox: Any) -> None:
    body = f"""
found = []
for target in ({os.getpid()}, os.getppid(), 1, -{os.getpgid(0)}):
    try: os.kill(target, 0); found.append('REACHED')
    except OSError as error: found.append(type(error).__name__)
child = os.fork()
if not child: signal.pause()
os.kill(child, signal.SIGTERM)
found.append(os.waitpid(child, 0)[1])
other = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(99)'], start_new_session=True)
os.killpg(other.pid, signal.SIGKILL)
found.append(other.wait())
os.kill(os.getpid(), signal.SIGTERM)  # as an init process, it ignores what it does not handle
signal.signal(signal.SIGUSR1, lambda *_: found.append('handled'))
os.kill(os.getpid(), signal.SIGUSR1)"""
    wanted = (
        "['ProcessLookupError', 'ProcessLookupError', 'ProcessLookupError', 'ProcessLookupError', 15, -9, 'handled']"
    )
    assert await told(sandbox, body) == wanted


async def test_limits_and_tracing_of_others_are_out_of_reach(sandbox: Any) -> None:
    helpers = "import ctypes, resource\nlibc = ctypes.CDLL(None, use_errno=True)"
    body = f"""
found = []
try: resource.prlimit({os.getpid()}, resource.RLIMIT_NOFILE)
except OSError as error: found.append(type(error).__name__)
for call in ((101, 16, {os.getpid()}, 0, 0), (310, {os.getpid()}, 0, 0, 0, 0, 0), (438, os.pidfd_open({os.getpid()}), 0, 0)):
    found.append(libc.syscall(*call))"""
    if os.uname().machine == "x86_64":
        assert await told(sandbox, body, helpers) == "['PermissionError', -1, -1, -1]"


async def test_sockets_below_the_own_folder_alone(sandbox: Any, tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)  # noqa: PTH101  an async test
    with socket.socket(socket.AF_UNIX) as outside, socket.socket(socket.AF_UNIX) as abstract:
        outside.bind(str(tmp_path / "s"))
        (tmp_path / "s").chmod(0o777)
        abstract.bind(f"\0codechat-{os.getpid()}")
        for one in (outside, abstract):
            one.listen()
            one.setblocking(False)
        body = f"""
found = []
own = socket.socket(socket.AF_UNIX); own.bind('own'); own.listen()
for place in ({str(tmp_path / "s")!r}, '../../..' + {str(tmp_path / "s")!r}, '\\0codechat-{os.getpid()}', 'own', os.path.abspath('own')):
    try: socket.socket(socket.AF_UNIX).connect(place); found.append(True)
    except OSError: found.append(False)
os.symlink({str(tmp_path / "s")!r}, 'link')
try: socket.socket(socket.AF_UNIX).connect('link'); found.append(True)
except OSError: found.append(False)
try: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); found.append(True)
except OSError: found.append(False)
try: socket.socket(); found.append(True)
except OSError: found.append(False)"""
        assert await told(sandbox, body) == "[False, False, False, True, True, False, False, False]"
        for one in (outside, abstract):
            with pytest.raises(BlockingIOError):
                one.accept()


async def test_a_second_supervisor_cannot_take_the_place_of_the_first(sandbox: Any) -> None:
    """A filter of the program's own that asks another listener would answer before ours."""
    helpers = """
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
class Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))
code = struct.pack("<HBBI", 0x06, 0, 0, 0x7FC00000)"""
    body = """
made = Filter(1, code)
libc.prctl(38, 1, 0, 0, 0)
found = (libc.syscall(317, 1, 8, ctypes.byref(made)), ctypes.get_errno())"""
    if os.uname().machine == "x86_64":
        assert await told(sandbox, body, helpers) == "(-1, 16)"


@pytest.mark.parametrize("depth", [1500, 4000])  # the second is more than a path can name, and ends the program
async def test_a_folder_is_emptied_however_deep_and_closed_it_is(sandbox: Any, depth: int) -> None:
    deep = f"for n in range({depth}):\n    os.mkdir('d'); os.chdir('d')\nos.mkdir('closed', 0)\nfound = 'deep'"
    folder = next(Path(worker._folder) for worker in sandbox._workers)
    assert await told(sandbox, deep) in ("deep", "None")
    assert await told(sandbox, "found = os.listdir()") == "[]"
    assert left_in(folder) == []


async def test_processes_are_counted_for_each_program_alone(sandbox: Any) -> None:
    helpers = "import threading"
    body = """
ended, found = threading.Event(), 0
try:
    while True:
        threading.Thread(target=ended.wait).start(); found += 1
except RuntimeError: pass
ended.set()"""
    assert await told(sandbox, body, helpers) == "29"


def test_a_file_that_was_removed_still_counts(sandbox: Any) -> None:
    body = "import os\ndef f(n):\n    for one in range(60):\n        h = os.open(str(one), os.O_RDWR | os.O_CREAT)\n        os.write(h, b'x' * 10**6); os.unlink(str(one))\n    import time; time.sleep(1)\n    return n + 1\n"
    verdict = asyncio.run(NUMBER.check(Program(body), sandbox))
    assert verdict.outcome == "crash", verdict


def test_the_folders_go_with_the_sandbox() -> None:
    room: Any = SANDBOXES.build(SANDBOXES.validate({"kind": "landlock", **LIMITS}), workers=1)
    folders = [Path(worker._folder) for worker in room._workers]
    assert folders and all(folder.is_dir() for folder in folders)
    asyncio.run(room.aclose())
    assert not any(folder.exists() for folder in folders)


def test_a_killed_codechat_leaves_no_folder_and_no_process(tmp_path: Path) -> None:
    script = """
import asyncio
from codechat.base.domain import Program
from codechat.sandbox import SANDBOXES
from codechat.sandbox.suites.calls import Calls
program = "import os, time\\nos.mkdir('left')\\nif not os.fork(): os.setsid()\\ntime.sleep(600)\\n"
room = SANDBOXES.build(SANDBOXES.validate({"kind": "landlock"}), workers=1)
reference = Calls("f", None, base=((1,),), expected_base=(1,))
async def main():
    running = asyncio.create_task(reference.check(Program(program), room))
    await asyncio.sleep(1)
    print("runs", flush=True)
    await running
asyncio.run(main())
"""
    environment = os.environ | {"TMPDIR": str(tmp_path), "CODECHAT_MARK": (mark := f"mark-{os.getpid()}")}
    tmp_path.chmod(0o777)
    with subprocess.Popen([sys.executable, "-c", script, mark], stdout=subprocess.PIPE, env=environment) as running:
        assert running.stdout is not None and running.stdout.readline() == b"runs\n"
        started = below(running.pid)
        assert started and [*tmp_path.glob("codechat-*/0/left")]
        running.kill()
    until = time.monotonic() + 20
    while time.monotonic() < until and ([*tmp_path.iterdir()] or any(Path(f"/proc/{pid}").exists() for pid in started)):
        time.sleep(0.05)
    assert [*tmp_path.iterdir()] == [] and not any(Path(f"/proc/{pid}").exists() for pid in started)
