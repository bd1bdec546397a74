"""Rooms of `environment=checkout` share nothing, and end with all that runs in them."""

import asyncio
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from codechat.base.errors import InfrastructureError
from support.benches import Driven, lacking
from support.repositories import Repository, make_repository


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return make_repository(tmp_path_factory.mktemp("forked") / "repository")


@pytest.fixture
def driven() -> Iterator[Driven]:
    if why := lacking("checkout"):
        pytest.skip(why)
    made = Driven("checkout", command_s=10)
    yield made
    made.close()


def test_a_room_ends_with_all_that_runs_in_it(driven: Driven, repository: Repository) -> None:
    """Also in the midst of a command: when the room is closed, the command is gone."""
    room, mark = driven.open(repository.workspace), f"3{time.time_ns() % 10**8}"

    async def close_early() -> None:
        running = asyncio.create_task(room.room.run(f"setsid sleep {mark} & sleep {mark}"))
        await asyncio.sleep(0.5)
        assert of_mark(mark) >= 2
        await room.room.aclose()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    driven.wait(close_early())
    assert of_mark(mark) == 0


def of_mark(mark: str) -> int:
    """How many processes of this machine sleep so many seconds."""
    found = 0
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                found += (place / "cmdline").read_bytes() == f"sleep\0{mark}\0".encode()
            except OSError:
                continue
    return found


def test_terminals_are_a_rooms_own(driven: Driven, repository: Repository) -> None:
    first, second = (driven.open(repository.workspace) for _ in range(2))

    async def beside() -> str:
        waiting = asyncio.create_task(first.room.run("script -qc 'tty; ls /dev/pts; sleep 1' /dev/null"))
        await asyncio.sleep(0.5)
        seen = await second.room.run("ls /dev/pts")
        assert "/dev/pts/0" in (await waiting).text
        return seen.text

    assert driven.wait(beside()) == "ptmx\n"


def test_a_room_shows_no_other_commit(driven: Driven, repository: Repository) -> None:
    rooms = [driven.open(replace(repository.workspace, commit=one)) for one in (repository.commit, repository.fix)]
    for room in rooms:
        assert room.text("ls -A /lower /harness /python 2>/dev/null | grep -v : | tr -d '\\n'") == ""
    assert rooms[0].run(f"git cat-file -e {repository.fix}").status != 0
    assert rooms[0].text("mount | grep -c lower= || true") == "0\n"


def test_a_folder_of_the_cache_that_others_may_not_enter(
    driven: Driven, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path / "cache"))
    before = os.umask(0o077)
    try:
        assert driven.open(repository.workspace).text("head -c 1 README.md") == "#"
    finally:
        os.umask(before)


def test_a_box_that_cannot_be_made_is_told(
    driven: Driven, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a namespace' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(driven.environment._box, "_program", str(refusing))
    with pytest.raises(InfrastructureError, match="bwrap: No permissions"):
        driven.open(repository.workspace)
