"""What every environment promises, and what rooms look like."""

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from codechat.base.errors import InfrastructureError, UserError
from codechat.datasets.tasks import Workspace
from codechat.studies.cab.environments import ENVIRONMENTS, checkout, commits
from codechat.studies.cab.environments.resident import Limits
from support import machine
from support.benches import BESIDE, Driven, DrivenRoom, in_kind, lacking
from support.repositories import FIX, Repository, make_repository

NAMES = sorted(component.name for component in ENVIRONMENTS)
ROOMS = ("checkout", BESIDE, "docker")
USUAL = (
    "ls", "ls -la", "ls -laR src", "ls -la ..", "pwd", "find . -type f -not -path './.git/*'", "find . | wc -l", "cat README.md",
    "cat src/counter.py", "head -1 src/more/notes.txt", "tail -1 src/more/notes.txt", "wc -l src/more/notes.txt", "grep -rn count src",
    "grep -c . README.md", "sed -n 2p src/counter.py", "awk '{print NF}' README.md", "sort -r src/more/notes.txt", "stat -c '%n %s %A %U %G %Y' src/counter.py",
    "du -sk src", "cut -c1-3 README.md", "echo $HOME $PATH $LANG", "id", "whoami", "umask", "env | sort", "ls /tmp ~", "sha1sum src/counter.py",
    "./run.sh", "sh -c 'exit 3'", "nosuchcommand", "tar c src | tar t", "diff README.md src/counter.py", "basename $(pwd)", "test -x run.sh && echo yes",
)  # fmt: skip
OF_GIT = (
    "git log", "git log --oneline --all --stat", "git status", "git status --short --branch", "git branch -a", "git tag", "git remote -v", "git show",
    "git diff", "git ls-files -s", "git blame src/counter.py", "git reflog", "git stash list", "git rev-parse HEAD", "git cat-file -p HEAD",
    "git config -l", "git describe --always", "git fsck --lost-found", "git grep return", "git shortlog -sn HEAD",
)  # fmt: skip


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return make_repository(tmp_path_factory.mktemp("contract") / "repository")


@pytest.fixture(scope="module", params=ROOMS)
def driven(request: pytest.FixtureRequest) -> Iterator[Driven]:
    if why := lacking(request.param):
        pytest.skip(why)
    if request.param == "docker":
        request.getfixturevalue("engine")
    made = Driven(request.param, command_s=10, output_kb=64)
    yield made
    made.close()


Drive = Callable[..., Driven]


@pytest.fixture
def drive() -> Iterator[Drive]:
    """Makes environments, which are closed with their rooms."""
    made: list[Driven] = []

    def make(kind: str, **options: object) -> Driven:
        made.append(Driven(kind, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def room(driven: Driven, repository: Repository) -> Iterator[DrivenRoom]:
    made = opened(driven, repository)
    yield made


def opened(driven: Driven, repository: Repository) -> DrivenRoom:
    return driven.open(in_kind(repository.workspace, driven.config.kind))


@pytest.mark.parametrize("name", NAMES)
def test_every_environment_opens_closes_and_says_what_it_can(
    name: str, repository: Repository, request: pytest.FixtureRequest, drive: Drive
) -> None:
    if why := lacking(name):
        pytest.skip(why)
    if name == "docker":
        request.getfixturevalue("engine")
    made = drive(name)
    assert isinstance(made.environment.commands, bool) and isinstance(made.environment.builds, bool)
    for _ in range(2):
        room = opened(made, repository)
        output = room.run("echo $((6 * 7))")
        assert (output.text, output.status, output.ended) == ("42\n", 0, "exit") if made.environment.commands else (
            output.text.startswith("(there is no environment") and output.status is None
        )  # fmt: skip
        built = made.wait(room.room.build({"a.txt": "a"}, None))
        assert built.ok == made.environment.builds, built
        room.close()


def test_usual_commands_print_the_same_in_two_rooms(driven: Driven, repository: Repository) -> None:
    rooms = [opened(driven, repository) for _ in range(2)]
    asked = [*USUAL, *OF_GIT]
    if driven.config.kind == "docker":  # `tiny` has no git, and its root is as old as the container
        asked = [command for command in USUAL if command != "ls -la .."]
    assert len(asked) >= 30
    for command in asked:
        first, second = (room.run(command) for room in rooms)
        assert replace(first, seconds=0) == replace(second, seconds=0), command
        assert first.text or command in (
            "sh -c 'exit 3'",
            "git diff",
            "git tag",
            "git remote -v",
            "git stash list",
            "git reflog",
            "git fsck --lost-found",
            "ls /tmp ~",
        )
    for room in rooms:
        room.close()


def test_nothing_later_than_the_commit_is_there(driven: Driven, repository: Repository, room: DrivenRoom) -> None:
    assert FIX not in room.run("grep -r . . ; cat .git/packed-refs .git/HEAD; ls -R .git").text
    assert (
        room.run("ls .git/logs .git/hooks .git/refs/remotes .git/refs/tags/v2 .git/FETCH_HEAD .git/ORIG_HEAD").status
        != 0
    )
    if driven.config.kind != "checkout":
        return
    assert room.text("git log --all --format=%s") == "a counter\nbegin\n"
    for command in ("git cat-file -e", "git show", "git log"):
        assert room.run(f"{command} {repository.fix}").status != 0
    listed = room.text(
        "git cat-file --batch-all-objects --batch | strings; git fsck --lost-found --unreachable; git branch -a; git tag"
    )
    assert "a counter" in listed and FIX not in listed and "later" not in listed
    assert room.text("git status --porcelain") == ""


def test_files_last_and_processes_do_not(room: DrivenRoom) -> None:
    room.text("cd src && echo x > new && export GONE=1 && (sleep 1000 &)")
    assert (
        room.text('pwd | grep -v src$ | wc -l; echo "<$GONE>"; cat src/new; ps 2>/dev/null | grep -c [s]leep || true')
        == "1\n<>\nx\n0\n"
    )


def test_an_exit_status_is_as_a_shell_shows_it(room: DrivenRoom) -> None:
    assert [room.run(command).status for command in ("true", "false", "exit 77", "kill -9 $$", "nosuch", "kill -SEGV $$")] == [
        0, 1, 77, 137, 127, 139,
    ]  # fmt: skip


def test_both_outputs_come_in_their_order(room: DrivenRoom) -> None:
    assert room.text("echo 1; echo 2 >&2; echo 3") == "1\n2\n3\n"


def test_a_command_is_bounded_and_whole(room: DrivenRoom) -> None:
    assert room.run("echo a\0b").ended == "killed"
    assert room.run("# " + "x" * (1 << 17)).ended == "killed"
    assert room.text("# " + "x" * 100_000 + "\necho long") == "long\n"
    assert room.text("cat <<'EOF'\na 'b' \"c\" $d `e`\nEOF\n") == "a 'b' \"c\" $d `e`\n"
    assert room.text("echo ä \u20ac") == "ä \u20ac\n"
    assert room.text("") == ""


def test_an_output_keeps_its_head_and_its_tail(driven: Driven, room: DrivenRoom) -> None:
    output = room.run("i=0; while [ $i -lt 20000 ]; do echo line $i ä; i=$((i+1)); done")
    assert (
        output.cut
        and output.text.startswith("line 0 ä\nline 1 ä\n")
        and output.text.endswith("line 19998 ä\nline 19999 ä\n")
    )
    head, note, tail = output.text.partition(" bytes left out: of an output the first and the last 32 KiB are kept]\n")
    assert note and "\ufffd" not in output.text and "\\x" not in output.text
    left_out = int(head.rpartition("[")[2].replace(",", ""))
    kept_text = head.rpartition("\n[")[0] + tail
    whole = sum(len(f"line {number} ä\n".encode()) for number in range(20000))
    assert 0 <= whole - left_out - len(kept_text.encode()) <= 3


def test_rooms_are_apart(driven: Driven, repository: Repository) -> None:
    first, second = opened(driven, repository), opened(driven, repository)
    first.text("echo mine > README.md; echo x > /tmp/x")
    assert "It counts." in second.text("cat README.md; ls /tmp | wc -l")
    first.close()
    assert second.text("ls /tmp | wc -l") == "0\n"
    second.close()
    third = opened(driven, repository)
    assert "It counts." in third.text("cat README.md")
    third.close()


def test_no_more_rooms_than_allowed(driven: Driven, repository: Repository, drive: Drive) -> None:
    made = drive(driven.config.kind, max_rooms=1)
    workspace = in_kind(repository.workspace, driven.config.kind)

    async def two() -> list[str]:
        told: list[str] = []
        first = await made.environment.open(workspace)

        async def wait() -> None:
            second = await made.environment.open(workspace)
            told.append("open")
            await second.aclose()

        waiting = asyncio.create_task(wait())
        await asyncio.sleep(1)
        told.append("waited")
        await first.aclose()
        await first.aclose()
        await waiting
        return told

    assert made.wait(two()) == ["waited", "open"]


def test_all_seconds_of_a_room_are_bounded(driven: Driven, repository: Repository, drive: Drive) -> None:
    made = drive(driven.config.kind, command_s=30, room_s=1.5)
    room = opened(made, repository)
    assert room.run("sleep 1").status == 0
    late = room.run("sleep 60")
    assert late.ended == "timeout" and late.seconds < 40 and "all together 1.5 s" in late.text
    assert room.run("sleep 60").seconds < 40
    room.close()


def test_a_commit_that_is_not_there_is_a_mistake(driven: Driven, repository: Repository, tmp_path: Path) -> None:
    for workspace, told in (
        (replace(repository.workspace, commit="0" * 40), "is not there"),
        (replace(repository.workspace, commit="main"), "is no commit id"),
        (Workspace(str(tmp_path), repository.commit), "is no git repository"),
        (Workspace(str(tmp_path / "nowhere"), repository.commit), "is no git repository"),
    ):
        with pytest.raises(UserError, match=told):
            driven.open(in_kind(workspace, driven.config.kind))


def test_a_bare_mirror_is_a_repository(driven: Driven, repository: Repository, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror.git"
    subprocess.run(["git", "clone", "-q", "--mirror", repository.folder, mirror], check=True, capture_output=True)
    room = driven.open(in_kind(Workspace(str(mirror), repository.commit), driven.config.kind))
    assert "n + 2" in room.text("cat src/counter.py")
    room.close()


def test_a_shallow_clone_shows_the_history_that_it_has(repository: Repository, tmp_path: Path, drive: Drive) -> None:
    if why := lacking("checkout"):
        pytest.skip(why)
    clone = tmp_path / "clone"
    source = f"file://{repository.folder}"
    subprocess.run(["git", "clone", "-q", "--depth", "2", source, clone], check=True, capture_output=True)
    made = drive("checkout")
    room = made.open(Workspace(str(clone), repository.commit))
    assert room.text("git log --format=%s; git status --porcelain") == "a counter\n"
    room.close()


def test_a_copied_room_is_as_one_in_layers(repository: Repository, drive: Drive) -> None:
    """Where the system's layers do not keep attributes in memory: before Linux 6.6."""
    if why := lacking("checkout"):
        pytest.skip(why)
    limits = Limits(kind="checkout")
    told = []
    for overlay in (True, False):
        made = drive("checkout")
        made.environment = checkout.Checkout(limits, overlay=overlay)
        room = made.open(repository.workspace)
        assert room.text("rm -rf src && mkdir src && ls src && git checkout -q . && git status --porcelain") == ""
        told.append(
            [room.text(command) for command in ("git log", "find . -not -path './.git/*'|sort", "cat link run.sh")]
        )
        room.close()
    assert told[0] == told[1]


def test_a_commit_is_unpacked_once_and_kept_while_used(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = []
    fill = commits._fill
    monkeypatch.setattr(commits, "_fill", lambda *given: (filled.append(1), fill(*given)))
    held = [commits.unpacked(repository.workspace, None) for _ in range(2)]
    assert len(filled) == 1 and commits.contents().counts["commit"] == 1
    assert commits.clear().counts["commit"] == 0 and held[0].folder.is_dir()
    for each in held:
        each.release()
    assert commits.clear().counts["commit"] == 1 and commits.contents().counts["commit"] == 0
    commits.unpacked(repository.workspace, None).release()
    assert len(filled) == 2


@pytest.mark.usefixtures("engine")
class TestImages:
    """The engine's part."""

    @pytest.fixture
    def build(self, repository: Repository, drive: Drive) -> Callable[..., DrivenRoom]:
        def opened(dockerfile: str, **options: object) -> DrivenRoom:
            return drive("docker", **options).open(replace(repository.workspace, dockerfile=dockerfile))

        return opened

    def test_a_dockerfile_of_the_dataset_has_to_build(
        self, repository: Repository, build: Callable[..., DrivenRoom]
    ) -> None:
        for text, told in (
            ("FROM tiny\nRUN exit 3\n", "own Dockerfile does not build"),
            ("FROM nowhere/such:1\n", "the base image nowhere/such:1 is not here"),
            ("FROM tiny\nRUN --mount=type=bind,source=/,target=/x ls\n", "no mounts"),
        ):
            with pytest.raises(InfrastructureError, match=told):
                build(text)

    def test_a_base_is_mapped_and_an_image_built_once(
        self, repository: Repository, build: Callable[..., DrivenRoom]
    ) -> None:
        text = (
            "FROM python:3.11-slim\nENV WORD=given\nWORKDIR /deep/app\nCOPY . .\nRUN echo $RANDOM$(date +%s%N) > made\n"
        )
        told = []
        for _ in range(2):
            room = build(text, images={"python:3.11-slim": "tiny"})
            told.append(room.text("pwd; cat made; echo $WORD; cat src/counter.py"))
            room.close()
        assert told[0] == told[1] and told[0].startswith("/deep/app\n") and "given\ndef count" in told[0]
        assert commits.contents().counts["image"] == 1 and commits.clear().counts["image"] == 1

    def test_an_image_for_all_rows(self, repository: Repository, drive: Drive) -> None:
        made = drive("docker", image="tiny")
        room = made.open(repository.workspace)
        assert room.text("pwd; ls").startswith("/workspace/repository\nREADME.md")
        room.close()
        with pytest.raises(UserError, match="comes without a Dockerfile"):
            drive("docker").open(repository.workspace)

    def test_a_clone_in_an_image_loses_its_future(
        self, repository: Repository, build: Callable[..., DrivenRoom]
    ) -> None:
        text = f"FROM tiny\nWORKDIR /app\nCOPY . clone\nRUN mkdir -p clone/.git /other/.git && echo {FIX} > clone/.git/f && echo {FIX} > /other/.git/f\n"
        room = build(text)
        assert room.text("pwd") == "/app/clone\n"
        assert room.text(f"grep -rl {FIX} /app /other /tmp /home; ls -a /other; ls .git").count("HEAD") == 1
        room.close()

    def test_a_maintainers_build(self, repository: Repository, drive: Drive) -> None:
        made = drive("docker")
        room = made.open(in_kind(repository.workspace, "docker"))
        tried = {
            "files": ({"new/file.txt": "new"}, "FROM tiny\nCOPY . .\nRUN grep new new/file.txt && grep n.+.2 src/counter.py\n", True),
            "own": ({"README.md": "changed"}, None, True),
            "fails": ({}, "FROM tiny\nRUN exit 5\n", False),
            "no base": ({}, "FROM nowhere:9\n", False),
            "syntax": ({}, "# syntax=evil/frontend\nFROM tiny\n", False),
            "no network": ({}, "FROM tiny\nRUN wget -T 2 -q http://1.1.1.1/\n", False),
            "download": ({}, "FROM tiny\nADD http://127.0.0.1/x /x\n", False),
            "out": ({"../out": "x"}, None, False),
            "absolute": ({"/etc/out": "x"}, None, False),
            "git": ({".git/hooks/x": "x"}, None, False),
            "link": ({"link/x": "x"}, None, False),
            "empty": ({}, "", False),
        }  # fmt: skip
        for name, (files, dockerfile, ok) in tried.items():
            built = made.wait(room.room.build(files, dockerfile))
            assert built.ok == ok and (built.log or ok), (name, built)
            assert not any(ord(character) < 32 and character not in "\n\t" for character in built.log)
        assert room.text("ls new 2>/dev/null | wc -l") == "0\n"
        room.close()

    def test_an_engine_that_is_away_is_no_fault_of_a_maintainer(
        self, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drive: Drive
    ) -> None:
        made = drive("docker")
        room = made.open(in_kind(repository.workspace, "docker"))
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing")
        with pytest.raises(InfrastructureError, match="is away"):
            made.wait(room.room.build({}, "FROM tiny\n"))
        with pytest.raises(InfrastructureError):
            made.open(replace(repository.workspace, dockerfile="FROM tiny\nRUN true\n"))
        monkeypatch.undo()
        room.close()

    def test_a_room_whose_container_was_killed_is_broken(self, repository: Repository, drive: Drive) -> None:
        made = drive("docker")
        room = made.open(in_kind(repository.workspace, "docker"))
        names = subprocess.run(["docker", "ps", "-q"], capture_output=True, text=True, check=True).stdout.split()
        subprocess.run(["docker", "kill", *names], capture_output=True, check=True)
        with pytest.raises(InfrastructureError, match="the room broke"):
            room.run("echo")
        room.close()


@pytest.mark.engines
def test_an_engine_killed_in_mid_session(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs meanwhile ends or breaks; no build is decided; with the engine back, a new room is opened."""
    if (why := machine.lacking_engine()) or os.getuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip(why or "needs dockerd and root")
    folder = tmp_path_factory.mktemp("engine")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/socket")
    engine = machine.start(folder)
    try:
        machine.make_image()
        made = Driven("docker")
        workspace = in_kind(repository.workspace, "docker")
        room = made.open(workspace)
        assert room.text("echo before") == "before\n"
        engine.kill()
        engine.wait()
        with pytest.raises(InfrastructureError, match="is away"):
            made.wait(room.room.build({}, "FROM tiny\nRUN exit 1\n"))
        with pytest.raises(InfrastructureError):
            made.open(workspace)
        with contextlib.suppress(InfrastructureError):
            assert room.text("echo after") == "after\n"
        room.close()
        again = tmp_path_factory.mktemp("engine")
        monkeypatch.setenv("DOCKER_HOST", f"unix://{again}/socket")
        engine = machine.start(again)
        machine.make_image()
        assert made.open(workspace).text("echo again") == "again\n"
        made.close()
    finally:
        engine.terminate()
        engine.wait()
        machine.end_leftovers(folder)
