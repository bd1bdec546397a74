"""Cells whose rooms need a container engine: what is wrong with it is told before any call, if it can be known then."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from codechat import UserError, compose, run
from codechat.cli.app import main
from codechat.testing import Call, OpenAIServer
from support import engines
from support.assisting import judges, says

pytestmark = pytest.mark.engines


def speak(call: Call) -> str:
    """The maintainer looks once and answers; the user is satisfied."""
    said = call.messages[0]["content"]
    match call.body["model"]:
        case "model":
            return "ANSWER: It is told." if len(call.messages) > 1 else "EXPLORE: ls | wc -l"
        case "user":
            return says("Thanks.", "FULLY_SATISFIED")
        case _:
            return judges(*[True] * sum(f"CONDITION {number}:" in said for number in range(1, 9)))


def words(server: OpenAIServer, folder: Path, *more: str) -> list[str]:
    made = ["protocol=assist", "dataset=assist_starter", "environment=docker", "tracking=none", "model=openai"]
    for place, name in (("model", "model"), ("protocol.roles.user", "user"), ("protocol.roles.judge", "judge")):
        made += [] if place == "model" else [f"model@{place}=openai"]
        made += [f"{place}.base_url={server.base_url}", f"{place}.api_key_env=null", f"{place}.name={name}"]
        made += [f"{place}.cache=false"]
    return [*made, f"runs_dir={folder}", *more]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(speak, models=["model", "user", "judge"]) as made:
        yield made


def told(server: OpenAIServer, capsys: pytest.CaptureFixture[str], *asked: str) -> str:
    assert main(list(asked)) == 2
    shown = capsys.readouterr().err
    assert "Traceback" not in shown and len(shown.splitlines()) <= 5 and not server.calls
    return " ".join(shown.split())


def test_an_image_that_is_not_there(
    engine: None, server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = told(server, capsys, *words(server, tmp_path, "environment.image=nowhere:9"))
    assert "environment.image: docker has no image 'nowhere:9' on this machine" in shown
    assert "docker pull nowhere:9" in shown
    mapped = words(server, tmp_path, "environment.image=mine", "environment.images={mine: nowhere:8}")
    assert "has no image 'nowhere:8'" in told(server, capsys, *mapped)


def test_an_image_that_is_there(engine: None, server: OpenAIServer, tmp_path: Path) -> None:
    outcome = run(compose(words(server, tmp_path, "environment.image=tiny")))
    assert outcome.status == 0 and [each.status for each in outcome.sessions] == ["completed"] * 3


def test_an_engine_that_does_not_answer(
    server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("docker") is None:
        pytest.skip("needs the package docker.io")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing")
    shown = told(server, capsys, *words(server, tmp_path, "environment.image=nowhere:9"))
    assert "environment=docker needs an engine that answers" in shown and "has no image" not in shown
    with pytest.raises(UserError, match="needs an engine that answers"):
        run(compose(words(server, tmp_path)))


def test_an_engine_that_dies_later_makes_sessions_errored(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (why := engines.lacking()) or os.getuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip(why or "needs dockerd and root")
    folder = tmp_path_factory.mktemp("engine")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/socket")
    process = engines.start(folder)

    def speak_and_kill(call: Call) -> str:
        process.kill()
        process.wait()
        return speak(call)

    try:
        engines.make_image()
        with OpenAIServer(speak_and_kill, models=["model", "user", "judge"]) as server:
            outcome = run(compose(words(server, folder / "runs", "environment.image=tiny")))
        assert outcome.metrics is not None and outcome.status == 3 and outcome.metrics["errored"] == 3
        assert all(each.error and "is away" in each.error for each in outcome.sessions)
        assert {call.body["model"] for call in server.calls} == {"model"}
    finally:
        process.kill()
        process.wait()
        engines.end_leftovers(folder)
