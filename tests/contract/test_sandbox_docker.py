"""`docker` against a stand-in engine, which understands the options that are used and runs them by bubblewrap."""

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Program
from codechat.base.errors import UserError
from codechat.sandbox import SANDBOXES, Command
from codechat.sandbox.bubblewrap import programs
from codechat.sandbox.suites.calls import Calls

ENGINE = """#!{python}
import os, sys
words, binds, variables = sys.argv[1:], [], {{}}
assert words[:4] == ["run", "--rm", "--pull", "never"], words
single = {{"--rm", "--read-only"}}
at = 1
while words[at].startswith("--"):
    if words[at] in single:
        at += 1
        continue
    option, value = words[at], words[at + 1]
    if option == "--volume":
        binds.append(value.split(":"))
    elif option == "--env":
        variables.update([value.split("=", 1)])
    at += 2
image, program, *arguments = words[at:]
if image == "missing":
    sys.exit("Error: no such image: missing")
assert program == "python3"
command = ["bwrap", "--unshare-net", "--unshare-pid", "--tmpfs", "/", "--clearenv"]
for name in os.listdir("/"):
    if name not in ("proc", "dev", "tmp", "sys"):
        command += ["--ro-bind", "/" + name, "/" + name]
command += ["--dev", "/dev", "--proc", "/proc", "--dir", "/tmp", "--perms", "0755", "--dir", "/packages"]
for source, place, *mode in binds:
    command += ["--ro-bind" if mode else "--bind", source, place]
for name, value in variables.items():
    command += ["--setenv", name, value]
os.execvp("bwrap", [*command, "--", {base!r}, *arguments])
"""
CALLS = Calls("f", "def f(x):\n    return x + 1\n", ((1,),), ((2.5,),))


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = programs()
    if not found:
        pytest.skip("the stand-in engine needs bubblewrap")
    folder = tmp_path / "bin"
    folder.mkdir()
    base = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
    (folder / "docker").write_text(ENGINE.format(python=sys.executable, base=base))
    (folder / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{Path(found[0]).parent}:/usr/bin:/bin")
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path / "cache"))
    return folder


def build(**options: Any) -> Any:
    config = SANDBOXES.validate({"kind": "docker", "idle_s": 1.0, "min_cpu_s": 0.5, **options})
    return SANDBOXES.build(config, workers=1)


async def test_programs_are_tested_in_a_container(engine: Path) -> None:
    room = build()
    try:
        assert not room.weak
        for program, outcome in (
            ("def f(x): return x + 1", "pass"),
            ("def f(x): return 2", "fail"),
            ("import numpy\ndef f(x): return numpy.float64(x) + 1", "pass"),
            ("def f(x):\n    while True: pass", "timeout"),
            ("import time\ndef f(x): time.sleep(30)", "timeout"),
            ("import os\ndef f(x): os._exit(0)", "crash"),
            ("import codechat.datasets\ndef f(x): return x + 1", "fail"),
        ):
            assert (await CALLS.check(Program(program), room)).outcome == outcome, program
    finally:
        await room.aclose()


async def test_a_tool_of_the_host_is_mounted(engine: Path) -> None:
    perl = shutil.which("perl")
    if perl is None:
        pytest.skip("there is no perl")
    room = build()
    try:
        ran = await room.run(Command(argv=(perl, "-e", "print 6 * 7"), tools=(perl,)))
        assert (ran.status, ran.stdout) == (0, "42")
    finally:
        await room.aclose()


def test_an_engine_that_does_not_start_is_told_with_the_remedy(engine: Path) -> None:
    with pytest.raises(UserError, match="no such image") as caught:
        build(image="missing")
    assert "docker pull missing" in str(caught.value)


def test_a_missing_engine_is_the_users_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(UserError, match="needs the program podman"):
        build(program="podman")


def test_closing_twice_is_fine(engine: Path) -> None:
    room = build()
    asyncio.run(room.aclose())
    asyncio.run(room.aclose())
