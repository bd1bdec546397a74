"""A maintainer's build files in its room: there for later commands, as they were built, and nowhere else."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from codechat.datasets.tasks import Task, Workspace
from codechat.models.calls import Brake
from codechat.studies.cab.environments.build_files import PIECE, commands_writing
from codechat.studies.cab.verbs import Visit
from support.benches import Driven, DrivenRoom, in_kind, lacking
from support.repositories import make_repository

LONG = "line 'of' \\n %s \u20ac $HOME `id`\n" * (4 * PIECE // 30)
FILES = {
    "new/deep/a file.txt": 'it\'s "quoted" $HOME `id` \\n %d\n',
    "-n": "-e no option\n",
    "empty": "",
    "no line end": "x",
    "NUL": "a\0b\0",
    "quotes": "'" * 3 * PIECE,
    "long": LONG,
    "README.md": "changed\n",
    "new/$(touch evil); touch evil": "a name is no command\n",
}
NOWHERE = ("../out", "/tmp/out", "a/../../out", ".git/hooks/pre-commit", "deep/.git/config", "", ".", "a\0b")


@dataclass(frozen=True, slots=True)
class Housed(Task):
    """A task with a repository."""

    workspace: Workspace = field(default_factory=lambda: Workspace("", ""))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return make_repository(tmp_path_factory.mktemp("written") / "repository").workspace


@pytest.fixture(params=("checkout", "docker"))
def driven(request: pytest.FixtureRequest) -> Iterator[Driven]:
    if why := lacking(request.param):
        pytest.skip(why)
    if request.param == "docker":
        request.getfixturevalue("engine")
    made = Driven(request.param, disk_mb=16)
    yield made
    made.close()


def room_of(driven: Driven, workspace: Workspace) -> DrivenRoom:
    return driven.open(in_kind(workspace, driven.config.kind))


def write(room: DrivenRoom, files: dict[str, str]) -> list[int | None]:
    return [room.run(command).status for command in commands_writing(files)]


def test_files_of_a_build_lie_in_the_room_and_in_that_of_a_resumed_session(
    driven: Driven, workspace: Workspace
) -> None:
    task = Housed("t", "p", workspace=in_kind(workspace, driven.config.kind))
    first, again = {"conf/a.ini": "port = 1\n", "run.sh": "echo mine\n"}, {"conf/a.ini": "port = 2\n"}

    async def told(visit: Visit, *commands: str) -> list[str]:
        try:
            return [(await visit.run(command)).text for command in commands]
        finally:
            await visit.aclose()

    async def hold() -> list[str]:
        visit = Visit(task, driven.environment, Brake())
        await visit.run("echo before > conf.txt; mkdir conf; echo port = 0 > conf/a.ini")
        built = await visit.build(first, None)
        assert built.ok == driven.environment.builds, built
        said = [(await visit.run("cat conf/a.ini; echo mended >> conf/a.ini; ./run.sh; ls -l conf; pwd")).text]
        await visit.build(again, "FROM tiny\nRUN exit 3\n")
        return said + await told(visit, "cat conf/a.ini conf.txt; git status 2>&1 | grep -c run.sh")

    async def resumed() -> list[str]:
        visit = Visit(task, driven.environment, Brake())
        visit.remember("echo before > conf.txt; mkdir conf; echo port = 0 > conf/a.ini")
        visit.remember_build(first)
        visit.remember("cat conf/a.ini; echo mended >> conf/a.ini; ./run.sh; ls -l conf; pwd")
        visit.remember_build(again)
        return await told(visit, "cat conf/a.ini conf.txt; git status 2>&1 | grep -c run.sh; ls -a . conf")

    said = driven.wait(hold())
    assert said[0].startswith("port = 1\nmine\n") and "a.ini" in said[0], "an executable file stays one"
    assert said[1].startswith("port = 2\nbefore\n"), "what was built, whatever commands made of it, and if it failed"
    later = driven.wait(resumed())
    assert later[0].startswith(said[1])


def test_every_text_arrives_under_every_name(driven: Driven, workspace: Workspace) -> None:
    room = room_of(driven, workspace)
    assert write(room, FILES) == [0] * len(list(commands_writing(FILES)))
    for name, text in FILES.items():
        quoted = "./" + name.replace("$", "\\$")
        found = room.text(f'sha1sum < "{quoted}"').split()[0]
        assert found == hashlib.sha1(text.encode()).hexdigest(), name
    assert room.text("ls | grep -c evil || true") == "0\n"
    room.close()


def test_no_file_leaves_the_repository(driven: Driven, workspace: Workspace) -> None:
    room = room_of(driven, workspace)
    assert list(commands_writing(dict.fromkeys(NOWHERE, "x"))) == []
    room.text(
        "echo kept > /tmp/there; ln -s /tmp out; ln -s /tmp/there file; mkdir in; ln -s ../out in/deeper; mkdir dir"
    )
    whole = dict.fromkeys(("out/new", "in/deeper/new", "out/a/b", "README.md/x"), "evil")
    assert 0 not in write(room, whole), "they lead through a link, or a file"
    assert 0 not in write(room, {"out/long": LONG, "dir": "a folder is there"})
    assert write(room, {"file": "mine"}) == [0]
    assert room.text("cat /tmp/there; ls /tmp; test ! -L file; cat file; ls dir") == "kept\nthere\nmine"
    room.close()


def test_files_share_the_disk_of_the_room(driven: Driven, workspace: Workspace, tmp_path: Path) -> None:
    room = room_of(driven, workspace)
    room.run("dd if=/dev/zero of=big bs=1M count=15 2>/dev/null")
    statuses = write(room, {"much": "x" * (3 << 20)})
    assert statuses[0] == 0 and statuses[-1] != 0, "the disk is full"
    assert int(room.text("du -sk . | cut -f1")) <= 17 << 10
    assert room.text("rm big; echo on > after; cat after") == "on\n"
    room.close()
