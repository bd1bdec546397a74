"""Tasks in Java as a user runs them: baselines, a served model, tasks of one's own, and what is refused or told."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.cli.app import main
from codechat.run.run import Outcome
from codechat.run.run import run as run_composed
from codechat.run.settings.compose import compose
from codechat.testing import Call, OpenAIServer
from support.machine import needs_java
from support.mistakes import mistake
from support.sreval import growing_java

pytestmark = pytest.mark.long

ROWS = [growing_java("a" * 24, 2), growing_java("b" * 24, 3)]
FIXED = ["protocol=stepwise", "tracking=none", "hardware.workers=1"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(*ROWS)
    return tmp_path


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    """Answers the newest requirement with its reference, the last one in a class of another name."""
    wanted = {turn["instruction"].splitlines()[-1]: turn["solution"] for turn in ROWS[1]["turn_datas"]}

    def answer(call: Call) -> str:
        newest = call.messages[-1]["content"].splitlines()[-1]
        code = wanted[newest].replace("Greeter", "Welcomer") if "empty" in newest else wanted[newest]
        return f"Sure:\n```java\n{code}```\nUse it so:\n```java\nnew Greeter();\n```"

    with OpenAIServer(answer) as running:
        yield running


def write(*rows: dict[str, Any]) -> None:
    Path("tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def run(*words: str) -> Outcome:
    return run_composed(compose([*FIXED, "dataset=sreval_java", "dataset.path=tasks.jsonl", *words]))


def metrics_of(outcome: Outcome) -> dict[str, Any]:
    assert outcome.status == 0 and outcome.metrics is not None
    return dict(outcome.metrics)


@needs_java
def test_references_and_those_of_the_turn_before() -> None:
    assert metrics_of(run("model=reference"))["acc"] == [1.0, 1.0, 1.0]
    before = metrics_of(run("model=previous"))
    assert before["acc"] == [1.0, 0.0, 0.0] and before["acc_after_first"] == 0.0


@needs_java
def test_a_served_model_and_its_verdicts_in_words(server: OpenAIServer) -> None:
    words = ["model=openai", f"model.base_url={server.base_url}", "model.name=m", "model.api_key_env=null"]
    outcome = run(*words)
    assert metrics_of(outcome)["acc"] == [1.0, 1.0, 0.0]
    last = [json.loads(line) for line in (outcome.folder / "sessions.jsonl").read_text().splitlines()][-1]["turns"][-1]
    assert (last["outcome"], last["failure"]["reason"]) == ("fail", "its tests do not compile with it")
    assert "cannot find symbol" in last["failure"]["exception"]
    assert "public" not in last["code"] and "```java" in server.calls[0].messages[0]["content"]
    again = run("model=replay", f"model.path={outcome.folder}/sessions.jsonl")
    assert metrics_of(again)["acc"] == [1.0, 1.0, 0.0]
    assert main(["rescore", f"run={outcome.folder}", "out=again", "tracking=none"]) == 0


@needs_java
def test_tasks_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    turns = [
        {
            "instruction": turn["instruction"],
            "solution": turn["solution"],
            "suite": {"kind": "junit", "tests": turn["test"]},
        }
        for turn in ROWS[1]["turn_datas"]
    ]
    row = {"task_id": "mine/1", "language": "java", "turns": turns}
    write(row)
    assert main(["verify", "dataset=jsonl", "dataset.path=tasks.jsonl"]) == 0
    assert "every reference passes" in capsys.readouterr().out
    write({**row, "turns": [{**turns[0], "solution": turns[1]["solution"]}]})
    with mistake("turn 1", "its reference fails"):
        run_composed(compose([*FIXED, "dataset=jsonl", "dataset.path=tasks.jsonl", "model=reference"]))


@needs_java
def test_a_published_task_that_does_not_compile_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    row = growing_java("d" * 24, 2)
    row["turn_datas"][1]["solution"] = "class Greeter { Unknown greet(String name) { return null; } }\n"
    write(row)
    assert main(["verify", "dataset=sreval_java", "dataset.path=tasks.jsonl"]) == 0, "published defects are listed"
    told = capsys.readouterr().out
    assert "turn 2: its reference fails" in told and "line 1: cannot find symbol" in told


def test_what_knows_only_python_is_refused() -> None:
    with mistake("model=refactorer", "python", "java", "dataset.tasks"):
        run("model=refactorer")


def test_no_jdk_is_told_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no JDK"):
        run("model=reference", f"sandbox.java.home={tmp_path}")


@needs_java
def test_no_junit_is_told_before_anything_runs() -> None:
    with mistake("Java", "JUnit 5"):
        run("model=reference", "sandbox.java.classpath=[]")


def test_limits_in_which_no_virtual_machine_starts_are_no_failure_of_the_program() -> None:
    with mistake("sandbox.memory_mb=512"):
        run("model=reference", "sandbox.memory_mb=512")


def test_mistakes_in_the_file_name_their_line() -> None:
    for change, told in (
        ({"total_turn": 7}, "total_turn is 7"),
        (
            {"turn_datas": [{**ROWS[0]["turn_datas"][0], "test": "import x;"}], "total_turn": 1},
            "declares no type in Java",
        ),
    ):
        write(ROWS[1], {**ROWS[0], **change})
        with pytest.raises(UserError, match=rf"tasks\.jsonl:2: .*{told}"):
            run("model=reference")


def test_requirements_are_those_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["requirements", "dataset=sreval_java", "dataset.path=tasks.jsonl"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("# ") and "java" in line
