"""What a sandbox refuses, passes on to its children in the system's units, and says of a command that ended."""

import marshal
import signal
import stat
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from codechat.base.domain import Failure
from codechat.base.errors import InfrastructureError, UserError
from codechat.run.cell.references import describe
from codechat.sandbox import SANDBOXES, AddedOptions, Ended, Sandbox, SandboxConfig, admit, interpreters
from codechat.sandbox.command import PROC, Command, Outputs, places
from codechat.sandbox.inside import wire
from codechat.sandbox.process import secret_folder
from codechat.studies.sreval.suite_maven import MavenOptions

STARTED = wire.HEADER.pack(wire.STARTED, 0, 0)


def config(**options: Any) -> SandboxConfig:
    return cast(SandboxConfig, SANDBOXES.validate({"kind": "process", **options}))


@pytest.mark.parametrize("notice", ["bwrap: no", None])
@pytest.mark.parametrize(
    ("weak", "allowed", "refused"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_only_a_weak_sandbox_has_to_be_allowed(weak: bool, allowed: bool, refused: bool, notice: str | None) -> None:
    sandbox = cast(Sandbox, SimpleNamespace(weak=weak, notice=notice))
    if not refused:
        admit(sandbox, config(allow_weak=allowed))
        return
    with pytest.raises(UserError, match=notice or "sandbox=process is weak"):
        admit(sandbox, config(allow_weak=allowed))


def test_options_of_a_kind_of_tests_are_the_sandboxs_or_their_defaults() -> None:
    given = config(maven_repository="/mine")
    assert MavenOptions.of(given) is given
    assert MavenOptions.of(cast(SandboxConfig, AddedOptions())) == MavenOptions()


def test_a_commands_limits_are_in_the_systems_units() -> None:
    job = marshal.loads(Command(argv=("true",), file_mb=3, cpu_s=1.5).job().data)
    assert (job["file"], job["cpu"]) == (3 * 1024 * 1024, 3)
    assert "file" not in marshal.loads(Command(argv=("true",)).job().data)


@pytest.mark.parametrize(
    ("status", "cpu_s", "why", "said"),
    [
        (0, 4.9, None, None), (signal.SIGXCPU, 4.6, None, "cpu"), (signal.SIGSEGV, 4.4, None, None),
        (signal.SIGKILL, 1.0, "idle", "idle"), (256, 0.1, None, None),
    ],
)  # fmt: skip
def test_a_command_that_ended_says_why(status: int, cpu_s: float, why: Any, said: str | None) -> None:
    outputs = Outputs(tail=4, limit=100)
    outputs.start(STARTED)
    outputs.stdout(b"long text")
    ran = outputs.conclude(Ended(status, cpu_s, 1000, why), cpu_limit=5)
    assert (ran.why, ran.stdout, ran.stderr) == (said, "text", "")


def test_a_command_that_never_began_or_says_too_much() -> None:
    outputs = Outputs(tail=4, limit=5)
    with pytest.raises(InfrastructureError, match="files"):
        outputs.conclude(Ended(0, 0.0, 0), cpu_limit=5)
    outputs.start(STARTED + wire.HEADER.pack(wire.MISSING, 0, 0))
    assert outputs.conclude(Ended(256, 0.0, 0), cpu_limit=5).why == "missing"
    assert outputs.stderr(b"12345") == (b"", False) and outputs.stderr(b"6") == (b"", True)
    assert outputs.conclude(Ended(signal.SIGKILL, 0.0, 0), cpu_limit=5).why == "output"


def test_a_folder_of_secrets_is_made_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path / "new" / "caches"))
    assert stat.S_IMODE(secret_folder("expected").stat().st_mode) == 0o700


def test_an_interpreter_is_new_enough_from_the_oldest_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters, "OLDEST", sys.version_info[:2])
    assert interpreters.libraries_at.__wrapped__(sys.executable).minor == sys.version_info[:2]
    monkeypatch.setattr(interpreters, "OLDEST", (sys.version_info[0], sys.version_info[1] + 1))
    with pytest.raises(UserError, match="the sandbox needs"):
        interpreters.libraries_at.__wrapped__(sys.executable)


def test_a_container_has_the_python_of_its_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docker").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    docker = {"kind": "docker"}
    other = replace(interpreters.libraries_at(None), minor=(3, 99), version="3.99.1")
    monkeypatch.setattr(SandboxConfig, "libraries", lambda self: other)
    with pytest.raises(UserError, match=r"Python 3\.99\.1[\s\S]*image=python:3\.99"):
        SANDBOXES.build(SANDBOXES.validate(docker), workers=1)


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Failure("wrong result", "plus", 3, "f(1)", "2", "3"), "fails plus_input[3] (f(1)): expected 2, got 3"),
        (Failure("an exception", exception="Trace\nKeyError: 1"), "fails its own tests: KeyError: 1"),
        (Failure("it does not compile", exception="a\nb"), "fails its own tests: it does not compile: b"),
        (
            Failure("an assertion does not hold", index=2, exception="a\nb"),
            "fails tests[2]: an assertion does not hold",
        ),
    ],
)
def test_a_references_failure_in_one_line(failure: Failure, said: str) -> None:
    assert describe(failure) == f"its reference {said}"


def test_a_tool_in_a_folder_that_a_box_shows_needs_no_place_of_its_own(tmp_path: Path) -> None:
    for name in ("jdk/bin", "seen/bin", "node"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "node")
    tools = [str(tmp_path / name) for name in ("jdk", "jdk/bin", "seen/bin", "link", "jdk")]
    jdk, node, link = (str(tmp_path / name) for name in ("jdk", "node", "link"))
    assert places([*tools, PROC], [str(tmp_path / "seen")]) == ((jdk, jdk), (node, node), (node, link))
