"""Cells whose rooms need a container engine: what is wrong with it is told before any call, if it can be known then."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from codechat import compose, run
from codechat.base.records import read_sessions
from codechat.cli.app import main
from codechat.cli.sweep import run_sweep
from codechat.report.loading import load_cells
from codechat.studies.cab.chapter.tables import differences
from codechat.studies.cab.maintainer import NETWORK, NO_NETWORK
from codechat.studies.cab.turns import AssistJudgement, AssistTurn
from codechat.testing import Call, OpenAIServer
from support import machine
from support.cab import issue, judges, repository, says, write
from support.mistakes import mistake

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
    assert "environment.image" in shown and "'nowhere:9'" in shown
    assert "docker pull nowhere:9" in shown
    mapped = words(server, tmp_path, "environment.image=mine", "environment.images={mine: nowhere:8}")
    assert "has no image 'nowhere:8'" in told(server, capsys, *mapped)


CLONED = "FROM tiny\nWORKDIR /repo\nCOPY . .\n"
CHANGE = "ANSWER: Take this file:\nCREATE_FILE[ready]:\nyes\nEND_FILE"


def issues(folder: Path, count: int, **first: str) -> list[str]:
    """The words for so many issues of one repository, every other one with a Dockerfile; the first has more fields."""
    commit = repository(folder / "clones" / "ann" / "shop", {"README": "A shop."})
    rows = [
        issue(**{"url": f"https://github.com/ann/shop/issues/{number}", "commit_id": commit, "dockerfile": recipe,
                 **(first if number == 1 else {})})
        for number, recipe in zip(range(1, count + 1), cycle([CLONED, None]), strict=False)
    ]  # fmt: skip
    write(folder / "cab.jsonl", *rows)
    return ["dataset=cab", f"dataset.path={folder / 'cab.jsonl'}", f"dataset.repos={folder / 'clones'}"]


def test_what_can_have_no_room_is_told_before_anything_is_paid(
    engine: None, server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = issues(tmp_path, 4)
    for more in ([], ["dry_run=true"]):
        shown = told(server, capsys, *words(server, tmp_path, *made, *more))
        assert "2 of 4 tasks" in shown and "Dockerfile" in shown and "ann/shop#2" in shown
        assert "environment.fallback=checkout" in shown and "environment.image=NAME" in shown
    assert main(words(server, tmp_path, *made, "environment.fallback=checkout", "dry_run=true")) == 0


def test_forty_issues_half_with_a_dockerfile_in_one_cell(engine: None, tmp_path: Path) -> None:
    """Each where it can work, as its record says; the row's own image is built once, and its test runs in it."""

    def say(call: Call) -> str:
        asked = "\n".join(message["content"] for message in call.messages)
        if call.body["model"] != "model":
            return speak(call)
        if len(call.messages) == 1:
            return "EXPLORE: ls; test -e /bin/busybox && echo tiny"
        return CHANGE if "FROM tiny" in asked else "ANSWER: It is told."

    with OpenAIServer(say, models=["model", "user", "judge"]) as server:
        made = issues(tmp_path, 40, test_command="cat ready")
        more = ["environment.fallback=checkout", "environment.max_rooms=4"]
        outcome = run(compose(words(server, tmp_path, *made, *more)))
        asked = [call.messages[0]["content"] for call in server.calls if call.body["model"] == "judge"]
    sessions = list(outcome.sessions)
    assert outcome.status == 0 and len(sessions) == 40
    own = {each.task_id: AssistJudgement.of(each) for each in sessions}
    ways = {"docker": (True, True, True, False), "checkout": (False, False, False, False)}
    for number in range(1, 41):
        each = own[f"ann/shop#{number}"]
        found = (each.needs_build, each.could_be_built, each.was_built, each.unvalidated)
        assert each.environment == ("docker" if number % 2 else "checkout") and found == ways[each.environment]
        assert each.tested is (True if number == 1 else None)
    first = AssistTurn.of(sessions[0].turns[0])
    assert first.own_build and first.own_build.test and first.own_build.test.status == 1, "before the change"
    assert first.build and first.build.test and first.build.test.output == "yes\n"
    assert sum("yes\n" in text and "tests succeeded" in text for text in asked) == 1
    assert outcome.metrics and set(outcome.metrics["by_build"]["correct"]) == {"none", "was_built"}
    assert "codechat-tested" not in shown_images() and "codechat-tried" not in shown_images(), "what was tried is gone"


def test_an_image_of_the_data_that_does_not_build_costs_nothing(
    engine: None, server: OpenAIServer, tmp_path: Path
) -> None:
    made = issues(tmp_path, 1, dockerfile="FROM tiny\nRUN false\n")
    outcome = run(compose(words(server, tmp_path, *made)))
    (session,) = outcome.sessions
    assert session.status == "errored" and "does not build here" in (session.error or "") and not server.calls


def test_a_network_that_is_asked_for(engine: None, tmp_path: Path) -> None:
    """Commands reach what is in the engine's network, and the maintainer is not told that there is none."""
    name = f"codechat-{tmp_path.name}"[:60].replace("_", "-")
    made = subprocess.run(["docker", "network", "create", name], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"needs an engine that makes networks: {made.stderr.strip()[-200:]}")
    try:
        shown = {}
        for number, word in enumerate((f"environment.network={name}", "environment.network=null")):
            say = iter(["EXPLORE: ls /sys/class/net /proc/self/net >&2; cat /proc/net/dev", "ANSWER: So."])
            heard: list[str] = []

            def speaks(call: Call, say: Iterator[str] = say, heard: list[str] = heard) -> str:
                heard.append(call.messages[-1]["content"])
                return next(say) if call.body["model"] == "model" else speak(call)

            with OpenAIServer(speaks, models=["model", "user", "judge"]) as server:
                given = issues(tmp_path / str(number), 1)
                assert run(compose(words(server, tmp_path / str(number), *given, word))).status == 0
            shown[number] = heard
        assert NETWORK in shown[0][0] and NO_NETWORK in shown[1][0]
        assert "eth0" in shown[0][1] and "eth0" not in shown[1][1]
    finally:
        subprocess.run(["docker", "network", "rm", name], capture_output=True, check=False)


def test_table_2_by_one_command_in_small(
    engine: None, server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recipe's setup with one model for all: nothing but the models and the count of issues is not the paper's."""
    monkeypatch.chdir(tmp_path)
    given = words(server, tmp_path / "runs", *issues(tmp_path, 2))
    left_out = {"protocol=assist", "dataset=assist_starter", "dataset=cab", "environment=docker"}
    assert run_sweep(["+sweep=cab", *(word for word in given if word not in left_out)]) == 0
    (folder,) = (tmp_path / "runs").iterdir()
    (cell,) = load_cells([tmp_path / "runs"])
    assert [AssistJudgement.of(each).environment for each in read_sessions(folder / "sessions.jsonl")] == [
        "docker", "checkout",
    ]  # fmt: skip
    assert differences(cell, "recent") == ["2 of 194 issues", "user user", "judge judge"]


def test_an_image_for_rows_without_a_dockerfile_alone(engine: None, server: OpenAIServer, tmp_path: Path) -> None:
    machine.make_python_image()
    made = issues(tmp_path, 2)
    said = [
        "environment.image=own-python",
        "dataset.build=any",
        "protocol.prompts.files=@" + str(tmp_path / "files.md"),
    ]
    (tmp_path / "files.md").write_text("{{dockerfile}}")
    outcome = run(compose(words(server, tmp_path, *made, *said)))
    own = [AssistJudgement.of(each) for each in outcome.sessions]
    assert [each.environment for each in own] == ["docker", "docker"]
    assert [each.could_be_built for each in own] == [True, False], "an image of one's own is no build of the row's"


def shown_images() -> str:
    return subprocess.run(["docker", "images"], capture_output=True, text=True, check=True).stdout


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
    assert "environment=docker" in shown and "nowhere:9" not in shown
    with mistake("environment=docker", "environment=checkout"):
        run(compose(words(server, tmp_path, "environment.image=tiny")))


def test_an_engine_that_dies_later_makes_sessions_errored(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (why := machine.lacking_engine()) or os.getuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip(why or "needs dockerd and root")
    folder = tmp_path_factory.mktemp("engine")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/socket")
    process = machine.start(folder)

    def speak_and_kill(call: Call) -> str:
        process.kill()
        process.wait()
        return speak(call)

    try:
        machine.make_image()
        with OpenAIServer(speak_and_kill, models=["model", "user", "judge"]) as server:
            outcome = run(compose(words(server, folder / "runs", "environment.image=tiny")))
        assert outcome.metrics is not None and outcome.status == 3 and outcome.metrics["errored"] == 3
        assert all(each.error and "is away" in each.error for each in outcome.sessions)
        assert {call.body["model"] for call in server.calls} == {"model"}
    finally:
        process.kill()
        process.wait()
        machine.end_leftovers(folder)
