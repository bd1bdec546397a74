"""A session's room: opened late, made again on resume, closed at the end; and what a Dockerfile may ask for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from codechat.base.domain import Build, Output
from codechat.base.errors import InfrastructureError, Stopped
from codechat.datasets.tasks import Task, Workspace
from codechat.models import UNDER_TEST
from codechat.models.calls import Brake
from codechat.run.journal import Journal
from codechat.run.protocols.kit import Kit
from codechat.run.protocols.services import Player, Services
from codechat.sandbox.rooms import legible
from codechat.studies.cab.environments import Worktree
from codechat.studies.cab.environments.build_files import Refused, commands_writing, recipe
from codechat.studies.cab.verbs import build, environment_of, run_command
from support.benches import Script, Words


@dataclass(frozen=True, slots=True)
class Housed(Task):
    """A task with a repository."""

    workspace: Workspace = field(default_factory=lambda: Workspace("somewhere", "0" * 40))


@dataclass
class Counting:
    """An environment whose rooms remember what was run in them."""

    commands = builds = True
    fails: str = ""
    rooms: list[list[str]] = field(default_factory=list)
    closed: int = 0

    async def open(self, workspace: Workspace) -> Worktree:
        if self.fails == "open":
            raise InfrastructureError("the engine is away")
        self.rooms.append([])
        return _Counted(self, self.rooms[-1])

    async def aclose(self) -> None: ...


@dataclass
class _Counted:
    of: Counting
    ran: list[str]

    async def run(self, command: str) -> Output:
        if command == self.of.fails:
            raise InfrastructureError("the room broke")
        self.ran.append(command)
        return Output(f"{len(self.ran)}: {command}\n", 0)

    async def build(self, files: Mapping[str, str], dockerfile: str | None) -> Build:
        self.ran.append("build")
        return Build(True, dockerfile or "own")

    async def aclose(self) -> None:
        self.of.closed += 1


class Sitting:
    """One process's part of a session, over the journal of a folder."""

    def __init__(self, folder: Path, environment: Counting | None, task: Task | None = None) -> None:
        self.journal, self.brake = Journal(folder / "journal.db"), Brake()
        players = {UNDER_TEST: Player.of(Script(lambda _: "x"))}
        serving = {} if environment is None else {"environment": environment}
        services = Services(players, self.journal, Words(), brake=self.brake, serving=serving)
        self.kit = Kit(task or Housed("t", "p"), "session", 0, services, lambda *_: None)

    async def __aenter__(self) -> "Sitting":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kit.aclose()
        await self.journal.settle()
        self.journal.close()


async def test_recorded_commands_are_run_again_before_the_first_new_one(tmp_path: Path) -> None:
    first, second, third = Counting(), Counting(), Counting()
    async with Sitting(tmp_path, first) as sitting:
        told = [await run_command(sitting.kit, turn, word) for turn, word in ((0, "a"), (0, "b"), (0, "a"), (1, "c"))]
    assert first.rooms == [["a", "b", "a", "c"]] and first.closed == 1
    async with Sitting(tmp_path, second) as sitting:
        again = [await run_command(sitting.kit, turn, word) for turn, word in ((0, "a"), (0, "b"), (0, "a"), (1, "c"))]
        assert again == told and second.rooms == []
        new = await run_command(sitting.kit, 1, "d")
    assert second.rooms == [["a", "b", "a", "c", "d"]] and new.text == "5: d\n" and second.closed == 1
    async with Sitting(tmp_path, third) as sitting:
        for turn, word in ((0, "a"), (0, "b"), (0, "a"), (1, "c"), (1, "d")):
            await run_command(sitting.kit, turn, word)
        assert (await build(sitting.kit, 1, {}, "FROM x")).log == "FROM x"
        assert (await build(sitting.kit, 1, {}, None)).log == "own"
    assert third.rooms == [["a", "b", "a", "c", "d", "build", "build"]]
    async with Sitting(tmp_path, Counting(fails="open")) as sitting:
        for turn, word in ((0, "a"), (0, "b"), (0, "a"), (1, "c"), (1, "d")):
            await run_command(sitting.kit, turn, word)
        assert (await build(sitting.kit, 1, {}, "FROM x")).ok


async def test_the_files_of_recorded_builds_are_written_again_in_their_order(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    files = {"conf/a.ini": "port = 1\n", "../out": "x"}
    (wrote,) = commands_writing(files)

    async def so_far(sitting: Sitting) -> None:
        await run_command(sitting.kit, 0, "a")
        await build(sitting.kit, 0, files, None)
        await run_command(sitting.kit, 1, "b")

    async with Sitting(tmp_path, first) as sitting:
        await so_far(sitting)
    assert first.rooms == [["a", "build", wrote, "b"]]
    async with Sitting(tmp_path, second) as sitting:
        await so_far(sitting)
        assert second.rooms == [], "what is recorded needs no room"
        await run_command(sitting.kit, 1, "c")
        await build(sitting.kit, 1, files, "FROM x")
    assert second.rooms == [["a", wrote, "b", "c", "build", wrote]]


async def test_a_session_without_commands_has_no_room(tmp_path: Path) -> None:
    environment = Counting()
    async with Sitting(tmp_path, environment) as sitting:
        assert environment_of(sitting.kit) is environment
    assert environment.rooms == [] and environment.closed == 0


async def test_a_broken_room_records_nothing(tmp_path: Path) -> None:
    async with Sitting(tmp_path, Counting(fails="bad")) as sitting:
        await run_command(sitting.kit, 0, "good")
        with pytest.raises(InfrastructureError, match="broke"):
            await run_command(sitting.kit, 0, "bad")
    later = Counting()
    async with Sitting(tmp_path, later) as sitting:
        assert (await run_command(sitting.kit, 0, "good")).text == "1: good\n"
        assert (await run_command(sitting.kit, 0, "bad")).text == "2: bad\n"


async def test_an_interruption_starts_no_command(tmp_path: Path) -> None:
    environment = Counting()
    async with Sitting(tmp_path, environment) as sitting:
        await run_command(sitting.kit, 0, "a")
        sitting.brake.pull("interrupted", interrupted=True)
        with pytest.raises(Stopped):
            await run_command(sitting.kit, 0, "b")
    assert environment.rooms == [["a"]]


async def test_a_protocol_must_name_the_environment(tmp_path: Path) -> None:
    async with Sitting(tmp_path, None) as sitting:
        with pytest.raises(ValueError, match="environment"):
            await run_command(sitting.kit, 0, "a")
        assert environment_of(sitting.kit) is None
    async with Sitting(tmp_path, Counting(), Task("t", "p")) as sitting:
        with pytest.raises(ValueError, match="has no repository"):
            await run_command(sitting.kit, 0, "a")


REFUSED = {
    "# syntax=docker/dockerfile:1\nFROM a\n": "chooses another reader",
    "#SYNTAX = x\nFROM a\n": "chooses another reader",
    "# a comment\n# escape=`\nFROM a\n": "chooses another reader",
    "\ufeff# syntax=x\nFROM a\n": "chooses another reader",
    "FROM a\nRUN --mount=type=bind,source=/,target=/host cat /host/etc/shadow\n": "no mounts",
    "FROM a\nrun --network=host wget x\n": "no mounts",
    "FROM a\nRUN \\\n  --security=insecure id\n": "no mounts",
    "FROM a\nRUN \\ \t\n# a comment\n\n--mount=type=ssh id\n": "no mounts",
    "FROM a\nONBUILD RUN --mount=type=secret,id=x cat /run/secrets/x\n": "no mounts",
    "FROM a\nRUN\t--mount=type=bind id\n": "no mounts",
    "FROM a\nADD https://example.org/x /x\n": "downloads",
    "FROM a\nARG U=https://example.org\nADD $U /x\n": "downloads",
    "FROM a\nONBUILD ADD git@example.org:x.git /x\n": "downloads",
    "FROM $UNKNOWN\n": "cannot be told",
    "FROM a b c\n": "cannot be told",
    "FROM a\nCOPY --from=$X /x /x\n": "cannot be told",
    "RUN true\n": "no FROM",
    "": "no FROM",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_a_dockerfile_cannot_reach_beyond_its_container(text: str) -> None:
    with pytest.raises(Refused, match=REFUSED[text]):
        recipe(text, {}, network=False)


def test_bases_are_mapped_wherever_they_stand() -> None:
    text = (
        "# a comment = no directive\nARG TAG=3.11\nARG BASE=python:${TAG}-slim\nfrom --platform=linux/amd64 python:${TAG}-slim as Build\r\n"
        "RUN echo 'a # b' && \\\n    # within\n    echo c\nFROM build\nCOPY --chown=a --from=Build /a /b\nCOPY --from=node:20 /x /y\n"
        "COPY --from=0 /c /d\nFROM scratch\nFROM other\n"
    )
    made = recipe(text, {"python:3.11-slim": "mine", "node:20": "nodes"}, network=False)
    assert made.bases == ("mine", "nodes", "other")
    assert made.text.splitlines() == [
        "ARG TAG=3.11", "ARG BASE=python:${TAG}-slim", "FROM mine AS Build", "RUN echo 'a # b' &&     echo c", "FROM build",
        "COPY --chown=a --from=Build /a /b", "COPY --from=nodes /x /y", "COPY --from=0 /c /d", "FROM scratch", "FROM other",
    ]  # fmt: skip


def test_downloads_need_a_network() -> None:
    assert recipe("FROM a\nADD https://example.org/x /x\n", {}, network=True).bases == ("a",)


def test_an_output_is_legible() -> None:
    assert legible(b"a\r\nb\rc\x1b[0m\xff", b"", 11, 1) == "a\nb\\x0dc\\x1b[0m\\xff"
    whole = "\u20ac".encode() * 1000
    told = legible(whole[:512], whole[-512:], len(whole), 1)
    assert told.startswith(
        "\u20ac" * 170 + "\n[1,976 bytes left out: of an output the first and the last 0.5 KiB are kept]\n\u20ac"
    )
    assert "\\x" not in told and told.endswith("\u20ac" * 170)
