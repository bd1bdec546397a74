"""Library sets and what tests ask of the sandbox: commands, the loopback interface, a /proc, threads, one file."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from codechat.base.domain import Program, Target, Verdict
from codechat.sandbox import SANDBOXES, Preloading, Sandbox
from codechat.sandbox.inside.beside import landlock_version
from codechat.sandbox.suites.assertions import Assertions, Need
from support import machine
from support.machine import sandbox_here
from support.mistakes import mistake

F = "def f():\n    return 1\n"
ABACUS = "import time\nLOADED = time.monotonic_ns()\n"
SHARED_MEMORY = Path("/dev/shm").is_dir()


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of an environment with one small package, and a codechat that nobody may see."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (place,) = folder.glob("lib/python*/site-packages")
    (place / "abacus.py").write_text(ABACUS)
    (place / "codechat").mkdir()
    (place / "codechat" / "answers.py").write_text("ANSWER = 42\n")
    return str(folder / "bin" / "python")


def build(kind: str, **options: Any) -> Any:
    return sandbox_here(kind=kind, **{"idle_s": 2.0, **options})


@pytest.fixture(scope="module", params=["bubblewrap", "landlock", "process"])
def libraries(request: pytest.FixtureRequest, python: str) -> Iterator[Any]:
    sandbox = build(request.param, python=python)
    assert isinstance(sandbox, Preloading)
    sandbox.preload(["abacus", "no_such_module"])
    if sandbox.weak:
        sandbox.start()  # as the others have: it tells what the system grants
    yield sandbox
    asyncio.run(sandbox.aclose())


@pytest.fixture(scope="module", params=["bubblewrap", "process"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Any]:
    room = build(request.param)
    if room.weak:
        room.start()
    yield room
    asyncio.run(room.aclose())


async def check(sandbox: Any, test: str, program: str = F, *needs: Need, **fields: Any) -> Verdict:
    if needs and sandbox.weak and not sandbox.contained:
        pytest.skip("needs user namespaces")
    suite = Assertions((test,), frozenset(needs), **fields)
    return await suite.check(Program(program, Target(entry_point="f")), sandbox)


async def passes(sandbox: Any, test: str, program: str = F, *needs: Need, **fields: Any) -> None:
    verdict = await check(sandbox, test, program, *needs, **fields)
    assert verdict.passed, verdict


async def test_programs_and_tests_import_what_the_environment_holds(libraries: Any) -> None:
    program = "import abacus\ndef f():\n    return abacus.LOADED > 0\n"
    await passes(libraries, "assert f() is True", program)
    await passes(libraries, "import abacus, os\nassert f() is True and abacus.LOADED", program)
    hides = not libraries.weak or libraries.contained
    for name in ("numpy", "radon", *(["codechat.answers"] if hides else [])):
        verdict = await check(libraries, "assert f()", f"import {name}\n{F}")
        assert re.search("ModuleNotFoundError|No module named|PermissionError", str(verdict.failure)), name


async def test_modules_are_loaded_once_for_many_programs(libraries: Any) -> None:
    program = "import abacus\ndef f():\n    raise ValueError(abacus.LOADED)\n"
    said = set()
    for number in range(3):
        verdict = await check(libraries, f"assert f() == {number}", program)
        assert verdict.failure is not None and verdict.failure.exception is not None
        said.add(verdict.failure.exception.splitlines()[-1])
    assert len(said) == 1, said


async def test_commands(sandbox: Any) -> None:
    test = "import subprocess\nassert subprocess.run(['sh', '-c', 'echo $((6 * 7))'], capture_output=True).stdout == b'42\\n'\nassert f() == 1"
    await passes(sandbox, test, F, "commands")
    await passes(sandbox, "import os\nassert os.getuid() != 0 and f()", F, "commands")
    await passes(sandbox, "import shutil\nassert shutil.which('sh') and f()", F, "commands")


@pytest.mark.parametrize(("kind", "error"), [("bubblewrap", "FileNotFoundError"), ("landlock", "PermissionError")])
async def test_commands_are_not_there_for_others(kind: str, error: str) -> None:
    sandbox = build(kind)
    try:
        verdict = await check(sandbox, "import subprocess\nsubprocess.run(['sh', '-c', 'true'])\nassert f()")
        assert error in str(verdict.failure)
    finally:
        await sandbox.aclose()


async def test_landlock_has_what_needs_no_namespace_and_refuses_the_rest() -> None:
    sandbox = build("landlock")
    try:
        test = "import subprocess\nassert subprocess.run(['sh', '-c', 'echo 4'], capture_output=True).stdout == b'4\\n' and f()"
        await passes(sandbox, test, F, "commands", "threads", "native", "code")
        for need in ("network", "processes"):
            with mistake(need):
                await check(sandbox, "assert f()", F, need)
    finally:
        await sandbox.aclose()


SERVER = """
import socket, threading
server = socket.create_server(("localhost", 0))
threading.Thread(target=lambda: server.accept()[0].sendall(b"well"), daemon=True).start()
with socket.create_connection(("localhost", server.getsockname()[1])) as client:
    assert client.recv(9) == b"well"
assert f() == 1
"""


async def test_the_loopback_interface(sandbox: Any) -> None:
    await passes(sandbox, SERVER, F, "network", "threads")
    verdict = await check(sandbox, SERVER, F, "threads")
    assert "Operation not permitted" in str(verdict.failure)


async def test_there_is_no_other_network(sandbox: Any) -> None:
    out = "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), 1)\nexcept OSError as error:\n    assert error.errno == 101\nelse:\n    assert False\nassert f()"
    await passes(sandbox, out, F, "network")


async def test_ports_and_files_of_one_program_are_gone_for_the_next(sandbox: Any) -> None:
    if sandbox.weak and not SHARED_MEMORY:
        pytest.skip("needs /dev/shm")  # process mounts an empty one over that of the machine
    once = "import os, socket\nassert not os.listdir('/dev/shm')\nopen('/dev/shm/mark', 'w').close()\nserver = socket.create_server(('127.0.0.1', 4321))\nassert f()"
    await passes(sandbox, once, F, "network", "commands")
    await passes(sandbox, once + "\n", F, "network", "commands")


async def test_a_proc_shows_a_programs_own_processes_alone(sandbox: Any) -> None:
    test = "import os\nseen = [name for name in os.listdir('/proc') if name.isdigit()]\nassert seen == ['1'] and os.readlink('/proc/self') == '1' and f()"
    await passes(sandbox, test, F, "processes")
    await passes(sandbox, "import os\nassert os.listdir('/proc') == [] and f()")


async def test_threads_may_outlive_a_statement(sandbox: Any) -> None:
    program = "import threading, time\nthreading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n" + F
    test = "import os\nassert f() == 1\nassert f() == 1"
    await passes(sandbox, test, program, "threads")
    await passes(sandbox, "from unittest import mock\nassert f() == 1", program)


async def test_native_libraries_and_code_objects(sandbox: Any) -> None:
    program = "import ctypes\ndef f():\n    return ctypes.CDLL(None).getpid()\n"
    await passes(sandbox, "assert f() > 0", program, "native")
    program = "def g(): return 1\ndef f():\n    return type(g)(g.__code__.replace(co_name='h'), {})()\n"
    await passes(sandbox, "assert f() == 1", program, "code")


async def test_what_is_needed_is_said_and_had_inside(sandbox: Any) -> None:
    verdict = await check(sandbox, "assert f() == 1", F, "network", "commands")
    assert verdict.inside == "what the tests need (commands, network)"
    assert not (await check(sandbox, "assert f() == 2", F, "network", "commands")).passed


async def test_a_program_in_one_file_with_its_tests_finds_their_imports(sandbox: Any) -> None:
    program, test = "def f():\n    return math.floor(1.5)\n", "import math\nassert f() == 1"
    await passes(sandbox, test, program, one_file=True)
    assert not (await check(sandbox, test, program)).passed
    await passes(sandbox, "import math, os\nassert os.getcwd() and f() == 1", program, one_file=True)
    own = "math = None\ndef f():\n    return math\n"
    await passes(sandbox, "import math\nassert f() is None", own, one_file=True)


async def test_tests_in_one_file_may_set_the_programs_variables(sandbox: Any) -> None:
    program = "LIMIT = 1\ndef f():\n    return LIMIT\n"
    for setting in ("global LIMIT\n    LIMIT = 2", "globals()['LIMIT'] = 2"):
        test = f"def change():\n    {setting}\nchange()\nassert f() == 2"
        await passes(sandbox, test, program, one_file=True)
        assert not (await check(sandbox, test, program)).passed


async def test_tests_may_have_more_time_than_the_sandbox_gives() -> None:
    sandbox = build("auto", load_cpu_s=0.3, total_cpu_s=0.5)
    slow = "import time\ndef f():\n    while time.process_time() < 1.5: pass\n    return 1\n"
    try:
        assert (await check(sandbox, "assert f() == 1", slow)).outcome == "timeout"
        await passes(sandbox, "assert f() == 1", slow, cpu_s=5.0)
        endless = await check(sandbox, "assert f() == 1", "def f():\n    while True: pass\n", cpu_s=1.0)
        assert endless.outcome == "timeout"
    finally:
        await sandbox.aclose()


def test_the_key_is_as_it_was_unless_something_is_asked_for() -> None:
    plain = Assertions(("assert f()",))
    assert plain.key == "dfd954cc10f874e5fdd678c8136ffdb244d91047a8b0474bc4533636e7eed747"
    others = [replace(plain, needs=frozenset({"network"})), replace(plain, cpu_s=5.0), replace(plain, one_file=True)]
    assert len({plain.key, *(other.key for other in others)}) == 4


class NoNamespaces:
    """A sandbox on a system that grants none."""

    weak, notice, refused, config = True, None, "", SANDBOXES.validate({"kind": "process"})

    def parts_processes(self, needs: Any = ()) -> bool:
        return False

    async def lend(self, work: Any, tools: Any = ()) -> Any:
        return work(self)


async def test_without_namespaces_tests_that_need_something_are_refused() -> None:
    with mistake("network"):
        await Assertions(("assert f()",), frozenset({"network"})).check(Program(F), cast(Sandbox, NoNamespaces()))


@pytest.fixture(scope="module")
def linked_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter all of whose modules are links to another one's, as conda may make it."""
    real, folder = Path(os.__file__).resolve().parent, tmp_path_factory.mktemp("linked") / "own"
    shutil.copytree(
        real,
        folder / "lib" / real.name,
        copy_function=lambda source, target: Path(target).symlink_to(source),
        ignore=shutil.ignore_patterns("*-packages", "test", "__pycache__", "config-*"),
    )
    for library in real.parent.glob("libpython*"):
        (folder / "lib" / library.name).symlink_to(library)
    (folder / "bin").mkdir()
    program = folder / "bin" / real.name
    shutil.copy(Path(sys.executable).resolve(), program)
    return str(program)


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock", "process"])
async def test_an_interpreter_whose_files_are_links(kind: str, linked_python: str) -> None:
    if kind == "bubblewrap":
        machine.skip_without()
    if kind == "landlock" and not landlock_version():
        pytest.skip("needs Landlock")
    sandbox: Any = SANDBOXES.build(SANDBOXES.validate({"kind": kind, "python": linked_python}), workers=1)
    if sandbox.weak:
        sandbox.start()
    try:
        await passes(
            sandbox, "import colorsys, contextvars, _bisect\nassert f() and not colorsys.rgb_to_hsv(0, 0, 0)[2]", F
        )
    finally:
        await sandbox.aclose()
