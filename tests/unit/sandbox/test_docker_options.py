"""What a container is started with, without an engine."""

import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.sandbox import SANDBOXES
from codechat.sandbox import docker as room
from codechat.sandbox.command import COMMANDS, PROC
from codechat.sandbox.docker import SPARE_PROCESSES, _installed, _options
from codechat.sandbox.inside.isolate import NO_USER
from codechat.sandbox.watch import WorkerDied


def config(**options: Any) -> Any:
    return SANDBOXES.validate({"kind": "docker", **options})


def values(options: list[str], name: str) -> list[str]:
    return [value for at, value in pairwise(options) if at == name]


def test_a_container_has_no_rights_no_network_and_few_processes(tmp_path: Path) -> None:
    options = _options(config(processes=7, file_mb=11), [str(tmp_path)], "/folder", ())
    assert options[0] == "run" and {"--rm", "--read-only"} <= {*options}
    single = {"--network": "none", "--pull": "never", "--cap-drop": "ALL", "--user": f"{NO_USER}:{NO_USER}"}
    for name, value in single.items():
        assert values(options, name) == [value]
    assert values(options, "--pids-limit") == [str(7 + SPARE_PROCESSES)]
    assert (
        set(values(options, "--security-opt")) >= {"no-new-privileges"} and len(values(options, "--security-opt")) == 3
    )
    assert any("size=11m" in each for each in values(options, "--tmpfs"))
    volumes = values(options, "--volume")
    assert volumes[0] == "/folder:/meeting" and all(each.endswith(":ro") for each in volumes[1:])
    assert f"{tmp_path}:/packages/0:ro" in volumes and len(volumes) == 3
    assert all("=" in each for each in values(options, "--env")) and values(options, "--env")


def test_tools_are_shown_but_those_that_an_image_has(tmp_path: Path) -> None:
    before = len(values(_options(config(), [], "/folder", ()), "--volume"))
    options = _options(config(), [], "/folder", (str(tmp_path), *COMMANDS))
    shown = values(options, "--volume")[before:]
    assert len(shown) == 1 and shown[0].startswith(f"{tmp_path}:") and shown[0].endswith(":ro")


def test_codechat_itself_is_not_seen(tmp_path: Path) -> None:
    own = Path(room.__file__).resolve().parent.parent
    other = tmp_path / "site-packages"
    (other / "codechat").mkdir(parents=True)
    assert list(_installed([str(own.parent), str(other), str(tmp_path / "absent")])) == [
        "/packages/0/codechat", "/packages/1/codechat"
    ]  # fmt: skip
    options = _options(config(), [str(other)], "/folder", ())
    assert "/packages/0/codechat" in values(options, "--tmpfs")


class Started:
    """Stands for the sandbox of processes."""

    last: Any = None
    fails = False

    def __init__(self, config: Any, launch: Any, workers: int, weak: bool, notice: str | None) -> None:
        self.launch, self.workers, self.weak, self.notice = launch, workers, weak, notice
        Started.last = self

    def start(self) -> None:
        if self.fails:
            raise WorkerDied("no image\nmore")


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr(room, "ZygoteSandbox", Started)
    return program


def test_an_engine_is_started_with_the_image_and_its_python(podman: Path) -> None:
    found = room.docker(config(image="own"), workers=3)
    assert found is Started.last and (found.workers, found.weak, found.notice) == (3, False, None)  # type: ignore[attr-defined]
    launch = Started.last.launch(())
    command = launch.command(["-c", "x"], "/folder")
    assert command[:2] == [str(podman), "run"] and command[-4:] == ["own", "python3", "-c", "x"]
    assert launch.meeting is not None and launch.place is None and dict(launch.environment) == dict(os.environ)
    assert (
        launch.inside.own_path and launch.inside.scratch == ["/dev/shm", "/var/tmp", "/tmp"] and not launch.inside.proc
    )
    paths = [path for path in config().libraries().path if path.endswith("-packages")]
    assert launch.inside.paths == [f"/packages/{number}" for number in range(len(paths))]
    assert Started.last.launch((PROC,)).inside.proc is True


def test_what_does_not_start_is_the_users_to_mend(podman: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Started, "fails", True)
    with pytest.raises(UserError, match="no image") as caught:
        room.docker(config(image="own"))
    assert "more" not in caught.value.message
    podman.unlink()
    with pytest.raises(UserError, match="not installed"):
        room.docker(config())


@pytest.mark.parametrize("image", [None, "own"])
def test_another_python_needs_an_image_of_its_own(
    podman: Path, monkeypatch: pytest.MonkeyPatch, image: str | None
) -> None:
    class Other:
        minor, version, path = (3, sys.version_info.minor + 1), "3.x", ("/p/site-packages", "/p/lib")

    chosen = config(**({"image": image} if image else {}))
    monkeypatch.setattr(type(chosen), "libraries", lambda self: Other)
    if image is None:
        with pytest.raises(UserError, match=f"python:3.{sys.version_info.minor + 1}-slim"):
            room.docker(chosen)
    else:
        room.docker(chosen)
        assert Started.last.launch(()).inside.paths == ["/packages/0"]
