"""Stepwise sessions over a Java repository's method, with a stand-in for Maven, and with Maven where it can be had."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.cli.app import main
from codechat.datasets import DATASETS
from codechat.run.run import Outcome
from codechat.run.run import run as run_composed
from codechat.run.settings.compose import compose
from codechat.studies.sreval import suite_maven as maven
from codechat.studies.sreval.rows import StepTask
from support.repositories import COMMAND, JAVA_FILES, METADATA, STAND_IN, TWICE, sandbox_words, write_files, write_lines

pytestmark = pytest.mark.long

LOCAL = os.environ.get("CODECHAT_TEST_MAVEN", "")
PUBLISHED = Path(os.environ.get("CODECHAT_TEST_DATA", "")) / "sreval_java_repository.jsonl.gz"
ABOVE = "The code above the function in its file:\n\n```java\npackage shop;\n\npublic class Twice {\n```\n\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(maven, "toolchain", lambda jdk: STAND_IN)
    monkeypatch.setattr(maven, "_WORKING", {})
    write_files(tmp_path / "repos" / "shop", JAVA_FILES)
    write_lines(tmp_path / "tasks.jsonl", TWICE)
    return tmp_path


def words(*more: str, local: str = "/usr/share") -> list[str]:
    data = ["dataset=sreval_java_repository", "dataset.path=tasks.jsonl", "dataset.repos=repos", "tracking=none"]
    return ["protocol=stepwise", *data, *sandbox_words(Path(local)), "hardware.workers=1", *more]


def run(*more: str, local: str = "/usr/share") -> Outcome:
    return run_composed(compose(words(*more, local=local)))


def turns_of(outcome: Outcome) -> list[dict[str, Any]]:
    (line,) = (outcome.folder / "sessions.jsonl").read_text().splitlines()
    turns: list[dict[str, Any]] = json.loads(line)["turns"]
    return turns


def test_a_row_is_read(here: Path) -> None:
    config = {"kind": "sreval_java_repository", "path": "tasks.jsonl", "repos": "repos"}
    (task,) = DATASETS.build(DATASETS.validate(config)).tasks
    assert isinstance(task, StepTask) and task.target.language == "java"
    assert (task.above, task.reference) == (METADATA["context"], TWICE["turn_datas"][1]["solution"])
    suite = task.suites[1]
    assert isinstance(suite, maven.Maven)
    assert suite.words == ("test", "-Dtest=shop.TwiceTest#doubles", "-Dsurefire.failIfNoSpecifiedTests=false")
    assert suite.tests == TWICE["turn_datas"][1]["test"] and list(suite.outside) == ["shop"]


def test_references_pass_by_what_the_command_says(here: Path) -> None:
    outcome = run("model=reference")
    assert outcome.metrics is not None and outcome.metrics["acc"] == [1.0, 1.0]
    requests = [turn["request"][-1]["content"] for turn in turns_of(outcome)]
    shown = [ABOVE, ""]  # the paper's tokens say that Java repositories show it once (Table 6)
    assert all(
        request.startswith(f"{above}programming problem:\n") for above, request in zip(shown, requests, strict=True)
    )
    assert {path: Path("repos/shop", path).read_text() for path in JAVA_FILES} == JAVA_FILES


@pytest.mark.parametrize(
    ("solution", "test", "told"),
    [
        ("public static int twice(int x) { return 3; }", None, "it ends with status 1"),
        ("public static", None, "it does not compile"),
        ("public static int twice(int x) { System.exit(0); }", None, "it ends with status 1"),
        (None, "@Disabled @Test void doubles() {}", "0 of 1 tests were run to their end"),
        (None, "@Test void none() {}", "0 of 1 tests were run to their end"),
    ],
)
def test_what_fails(here: Path, solution: str | None, test: str | None, told: str) -> None:
    turn = TWICE["turn_datas"][0]
    changed = {**turn, "solution": solution or turn["solution"], "test": test or turn["test"]}
    write_lines(here / "tasks.jsonl", {**TWICE, "turn_datas": [changed, TWICE["turn_datas"][1]]})
    first, second = turns_of(run("model=reference"))
    assert (first["outcome"], first["failure"]["reason"], first["decided"]) == ("fail", told, "inside")
    assert second["passed"]


def test_a_repository_whose_own_test_does_not_run_is_no_programs_fault(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pom = here / "repos/shop/pom.xml"
    pom.write_text(pom.read_text() + "<!-- lacking -->")
    assert main(words("model=reference")) == 2
    assert re.search(r"shop .*: \[ERROR\] a plugin could not be resolved\n.*mvn -o", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["sandbox.maven_repository=null"], "sandbox.maven_repository=~/.m2/repository"),
        (["sandbox.maven_repository=nowhere"], "programs cannot read a folder nowhere"),
        (["sandbox.processes=32"], "set sandbox.processes=128 sandbox.memory_mb=8192 sandbox.open_files=1024, or more"),
        (["dataset.repos=null"], "1 chosen task needs 1 repository (tasks of each in brackets):\nshop (1)"),
    ],
)
def test_what_a_run_needs_is_told_at_its_start(
    here: Path, capsys: pytest.CaptureFixture[str], more: list[str], told: str
) -> None:
    assert main(words("model=reference", *more)) == 2
    assert told in capsys.readouterr().err
    assert not list(Path().glob("runs/*/sessions.jsonl"))


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"func_start": 5}, "Twice.java does not hold the task's code at the lines 5 to 6"),
        ({"test_code": "@Test void other() {}"}, "TwiceTest.java does not hold the task's code at the lines 7 to 10"),
        ({"file_path": "src/None.java"}, "cannot read"),
        ({"file_path": "../Twice.java"}, "it must be a path inside the repositories"),
        ({"test_instruction": "rm -rf /"}, "metadata.test_instruction: it is no command that begins with mvn"),
        ({"test_instruction": "mvn 'test"}, "metadata.test_instruction: No closing quotation"),
    ],
)
def test_mistakes_in_rows_and_repositories(here: Path, changed: dict[str, Any], told: str) -> None:
    write_lines(here / "tasks.jsonl", {**TWICE, "metadata": {**METADATA, **changed}})
    config = {"kind": "sreval_java_repository", "path": "tasks.jsonl", "repos": "repos"}
    with pytest.raises(UserError) as caught:
        DATASETS.build(DATASETS.validate(config))
    assert told in str(caught.value)


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="CODECHAT_TEST_DATA is unset: no benchmark files")
def test_the_published_file_loads_and_says_what_it_needs() -> None:
    with pytest.raises(UserError) as caught:
        DATASETS.build(DATASETS.validate({"kind": "sreval_java_repository", "path": str(PUBLISHED)}))
    assert "jvector (12), langchain4j (3), mybatis-flex (3), spring-ai (8), timefold-solver (14)" in str(caught.value)


@pytest.mark.skipif(not LOCAL, reason="CODECHAT_TEST_MAVEN names no local Maven repository")
def test_a_real_maven_in_the_sandbox(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert COMMAND.startswith("mvn")
    found = run("model=reference", local=LOCAL).metrics
    assert found is not None and found["acc"] == [1.0, 1.0]
    found = run("model=previous", local=LOCAL).metrics
    assert found is not None and found["acc"] == [1.0, 0.0]
