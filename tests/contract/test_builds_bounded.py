"""Builds that would take all: each is ended, nothing of it is left, and it is the fault of whoever wrote it.

Nor does one spoil another: steps that they share go with the image of whichever is done first. Images of a build that
was ended while a step ran go with the next failed build.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from codechat.base.domain import Build
from codechat.base.errors import InfrastructureError
from codechat.studies.cab.environments import ENVIRONMENTS
from codechat.studies.cab.environments.docker import DockerConfig
from support.benches import DOCKERFILE, Driven, in_kind
from support.cab import ISSUE, hold, judges, says
from support.machine import Images, asked
from support.repositories import Repository, make_repository

pytestmark = pytest.mark.engines

MARK = "98761"  # seconds that nobody else sleeps
LIMITS = {"memory_mb": 256, "disk_mb": 16}
HOSTILE = {
    "memory": ("RUN tail /dev/zero\n", "non-zero code: 137"),
    "one file": ("RUN head -c 99999999 /dev/zero > /f\n", "non-zero code"),
    "output": ("RUN yes\n", "took more than 4 s"),
    "time": (f"RUN echo > /f\nRUN sleep {MARK}\n", "took more than 4 s"),
    "time of a child": (f"RUN setsid sleep {MARK} & sleep {MARK}\n", "took more than 4 s"),
}
SLOW = {name for name, (_, told) in HOSTILE.items() if "took" in told}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return make_repository(tmp_path_factory.mktemp("bounded") / "repository")


@pytest.fixture(scope="module")
def driven(request: pytest.FixtureRequest, engine: None) -> Iterator[Driven]:
    made = Driven("docker", **LIMITS, build_s=request.param)
    yield made
    made.close()


def left() -> tuple[set[str], Images, int]:
    """Containers, images, and processes with the mark."""
    marked = 0
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            marked += MARK.encode() in place.read_bytes().split(b"\0")
        except OSError:
            continue
    return asked("ps", "-aq"), Images(), marked


def settled(before: tuple[set[str], Images, int], again: Callable[[], object] = lambda: None) -> bool:
    """Whether nothing more than before is left, within a few seconds; `again` lets another build fail meanwhile."""
    until = time.monotonic() + 30
    while not (as_before := _as_before(before)) and time.monotonic() < until:
        again()
        time.sleep(0.2)
    return as_before


def _as_before(before: tuple[set[str], Images, int]) -> bool:
    containers, _, marked = left()
    return containers <= before[0] and marked <= before[2] and before[1].are_left(ended=1)


@pytest.mark.parametrize(
    ("driven", "name"),
    [(4.0 if name in SLOW else 60.0, name) for name in sorted(HOSTILE, key=SLOW.__contains__)],
    indirect=["driven"],
)
def test_a_maintainers_build_is_ended(name: str, driven: Driven, repository: Repository) -> None:
    steps, told = HOSTILE[name]
    room = driven.open(in_kind(repository.workspace, "docker"))
    before, began = left(), time.monotonic()
    built = driven.wait(room.room.build({}, f"FROM tiny\n{steps}"))
    assert not built.ok and re.search(told, built.log), built
    assert len(built.log) < 20_000 and time.monotonic() - began < 100
    assert room.text("echo on") == "on\n", "the room goes on"
    # A busy machine may take four seconds for nothing.
    again = any(driven.wait(room.room.build({}, "FROM tiny\nRUN true\n")).ok for _ in range(3))
    assert again, "and so does the next build"
    assert settled(before, lambda: driven.wait(room.room.build({}, "FROM tiny\nRUN false\n"))), (before, left())
    room.close()


@pytest.mark.parametrize("name", ["memory", "one file"])
def test_a_datasets_build_is_ended_and_the_session_errored(
    name: str, repository: Repository, engine: None, tmp_path: Path
) -> None:
    steps, told = HOSTILE[name]
    task = replace(ISSUE, workspace=replace(repository.workspace, dockerfile=f"FROM tiny\n{steps}"), needs_build=True)
    rooms = ENVIRONMENTS.build(ENVIRONMENTS.validate({"kind": "docker", **LIMITS, "build_s": 60.0}))
    before = left()
    with pytest.raises(InfrastructureError, match=f"Dockerfile.*({told})"):
        asyncio.run(hold(tmp_path, {"model": ["EXPLORE: ls"]}, task=task, rooms=rooms))
    assert settled(before), (before, left())


def test_a_maintainer_whose_build_is_ended_is_incorrect(repository: Repository, engine: None, tmp_path: Path) -> None:
    task = replace(ISSUE, workspace=in_kind(repository.workspace, "docker"), needs_build=True)
    rooms = ENVIRONMENTS.build(ENVIRONMENTS.validate({"kind": "docker", **LIMITS, "build_s": 60.0}))
    changed = f"MODIFY_DOCKERFILE:\n{DOCKERFILE}{HOSTILE['memory'][0]}END_DOCKERFILE"
    said = {"model": [f"ANSWER: {changed}"], "user": [says("Good.", "FULLY_SATISFIED")], "judge": [judges(True, True)]}
    held = asyncio.run(hold(tmp_path, said, task=task, rooms=rooms))
    assert (held.judgement["judged"], held.judgement["verdict"], held.judgement["build"]) == (
        "CORRECT",
        "INCORRECT",
        False,
    )
    (message,) = held.requests("judge")[0]
    assert "non-zero code: 137" in message.content, "the judge is told why"


def test_equal_builds_at_once_spoil_none(engine: None, tmp_path: Path) -> None:
    builder = DockerConfig.model_validate({"kind": "docker", "build_s": 60.0}).builder("docker")
    steps = "FROM tiny\nCOPY . /work\nRUN echo one > /x\nRUN echo two > /y\n"
    (tmp_path / "ready").write_text("yes")

    def build(number: int) -> Build:
        tag = f"codechat-tried:equal-{number}"
        try:
            return builder.build(tmp_path, {}, steps, tag)
        finally:
            builder.engine.run("image", "rm", "--force", tag)

    before = left()
    with ThreadPoolExecutor(4) as threads:
        logs = [built.log for built in threads.map(build, range(12)) if not built.ok]
    assert logs == [] and settled(before)
