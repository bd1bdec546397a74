"""`recipe=issues` is killed in each stage that asks anybody: nothing is asked or built twice, the files are the same."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from codechat.testing import Call, Fault, OpenAIServer
from codechat.testing.github import GithubServer, Hosted, HostedIssue
from support.cab import repository
from support.construction import written
from support.hosting import ROLES, TOKEN, VARIABLE, Models, words_of

pytestmark = pytest.mark.long

ENGINE = """#!/bin/sh
case $1 in
  build) echo build >> "$0.log"; [ ! -e "$0.kills" ] || { rm "$0.kills"; kill -9 "$(cat "$0.pid")"; sleep 1; } ;;
  image) [ "$2" != inspect ] || echo '{"Size": 1, "Id": "a", "Parent": "", "RepoTags": ["b"], "RepoDigests": []}' ;;
esac
"""
"""An engine that builds everything, and kills the construction at a build if it is told to."""


class Runner:
    """The process that starts constructions."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.issues_process"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment, cwd=Path(__file__).parent.parent,
        )  # fmt: skip

    def start(self, words: list[str]) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return self._said()

    def status(self) -> int:
        return self._said()

    def _said(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def issues(name: str) -> Hosted:
    said = (("ann", "2025-03-01T11:00:00Z", "Set the variable."), ("ben", "2025-03-01T12:00:00Z", "It works."))
    listed = [
        HostedIssue(number, f"It fails {number}", "It does.", "ben", f"2025-02-2{number}T10:00:00Z", said)
        for number in range(1, 5)
    ]
    return Hosted(name, issues=listed)


def is_of(stage: str, path: str) -> bool:
    """Whether a request belongs to a stage."""
    parts = {"repositories": "/search/", "issues": "/comments", "commits": "/commits"}
    return stage in parts and parts[stage] in path


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(ENGINE)
    program.chmod(0o755)
    path = os.pathsep.join((str(program.parent), os.environ["PATH"]))
    made = Runner({**os.environ, "PATH": path, VARIABLE: TOKEN, "CODECHAT_CACHE_DIR": str(tmp_path / "cache")})
    yield made
    made.close()


STAGES = ("repositories", "issues", "filter", "messages", "commits", "classify", "dockerfile", "builds", "conditions")


def test_nothing_is_asked_twice_and_no_byte_differs(tmp_path: Path, runner: Runner) -> None:
    commit = repository(tmp_path / "repos" / "ann__shop.git", {"a.c": "int a;"}, bare=True)
    hosted = Hosted(**{**vars(issues("ann/shop")), "commits": [("2025-02-01T00:00:00Z", commit)]})
    child, kills, seen = 0, "", Counter[str]()

    def kill_at(stage: str) -> bool:
        """Kill the construction at the second request of the stage that is to kill it."""
        nonlocal kills
        seen[stage] += stage == kills
        if stage != kills or seen[stage] < 2:
            return False
        kills = ""
        os.kill(child, signal.SIGKILL)
        return True

    def fault(path: str, times: int) -> Fault | None:
        stage = next((each for each in STAGES if is_of(each, path)), "")
        return Fault(stall_s=0.1, cut=0) if kill_at(stage) else None

    models = Models(needs_build=lambda thread: True)

    def answer(call: Call) -> str:
        kill_at(call.body["model"])
        return models(call)

    with (
        GithubServer([hosted], token=TOKEN, page=4, fault=fault) as github,
        OpenAIServer(answer, models=ROLES) as server,
    ):
        one = ["github.max_concurrency=1", *(f"construct.roles.{role}.max_concurrency=1" for role in ROLES)]
        more = ["repos=" + str(tmp_path / "repos"), "languages=[python]", "builds.max_rooms=1", *one]
        words = words_of(github, server, *more, out=str(tmp_path / "whole"))[1:]
        child = runner.start(words)
        assert runner.status() == 0
        log = tmp_path / "bin" / "docker.log"
        requests, calls = Counter(github.requests), Counter(models.prompts)
        builds = len(log.read_text().splitlines())
        assert builds == 4 and {*requests.values()} == {1} and len(requests) == 1 + 2 + 1 + 2 + 4
        github.requests.clear(), models.prompts.clear(), log.unlink()
        words = words_of(github, server, *more, out=str(tmp_path / "killed"))[1:]
        for stage in STAGES:
            kills = stage
            if stage == "builds":
                (tmp_path / "bin" / "docker.kills").touch()
            child = runner.start(words)
            (tmp_path / "bin" / "docker.pid").write_text(str(child))
            assert runner.status() == -signal.SIGKILL, stage
        kills = ""
        child = runner.start(words)
        assert runner.status() == 0
        again = [Counter(github.requests) - requests, Counter(models.prompts) - calls]
        assert again[0].total() <= len(STAGES) and again[1].total() <= len(STAGES), "one was under way at each kill"
        # One may be under way when a Dockerfile, a build or the conditions of another issue kill it.
        assert len(log.read_text().splitlines()) <= builds + 3
    assert written(tmp_path / "killed") == written(tmp_path / "whole")
