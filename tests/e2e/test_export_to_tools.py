"""Cells in the formats of other tools: EvalPlus confirms the verdicts, and Inspect reads the log."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codechat.base.records import SessionRecord, read_sessions
from codechat.cli.app import main

pytestmark = pytest.mark.long

DATA = os.environ.get("CODECHAT_TEST_DATA")
INSPECT = os.environ.get("CODECHAT_INSPECT_PYTHON")
TASKS = 8

needs_data = pytest.mark.skipif(DATA is None, reason="CODECHAT_TEST_DATA names no folder with benchmark data")
needs_inspect = pytest.mark.skipif(INSPECT is None, reason="CODECHAT_INSPECT_PYTHON names no Python with inspect_ai")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cell(*words: str) -> tuple[Path, list[SessionRecord]]:
    """A finished cell's folder and records."""
    assert main(["tracking=none", "sandbox.allow_weak=true", *words]) == 0
    run = max(Path("runs").iterdir(), key=lambda each: each.stat().st_mtime_ns)
    return run, list(read_sessions(run / "sessions.jsonl"))


@needs_data
def test_evalplus_itself_confirms_the_verdicts_of_a_turn(folder: Path) -> None:
    data = folder / "HumanEvalPlus.jsonl"
    with gzip.open(Path(str(DATA)) / "HumanEvalPlus.jsonl.gz", "rt") as stream:
        data.write_text("".join(line for line, _ in zip(stream, range(TASKS), strict=False)))
    # A rate at which some of eight tasks have broken by the last turn, and others have not.
    run, sessions = cell("dataset=humaneval", f"dataset.path={data}", "agenda.turns=5", "seed=3")
    assert main(["export", "format=evalplus", f"run={run}", "turn=4", "out=samples.jsonl"]) == 0
    environment = {**os.environ, "HUMANEVAL_OVERRIDE_PATH": str(data), "HOME": str(folder)}
    command = [sys.executable, "-m", "evalplus.evaluate", "--dataset", "humaneval", "--samples", "samples.jsonl"]
    subprocess.run([*command, "--parallel", "2"], env=environment, check=True, capture_output=True, timeout=300)
    theirs = json.loads(Path("samples_eval_results.json").read_text())["eval"]
    verdicts = {
        task: [each["plus_status"] == each["base_status"] == "pass" for each in found] for task, found in theirs.items()
    }
    assert verdicts == {session.task_id: [session.turns[4].passed] for session in sessions}
    assert {session.turns[4].passed for session in sessions} == {True, False}


def test_a_skipped_turn_has_the_program_of_the_turn_before(folder: Path) -> None:
    run, sessions = cell("dataset=starter", "dataset.limit=2", "agenda.turns=3")
    turns = sessions[0].turns
    skipped = turns[2].model_copy(update={"skipped": True, "code": None})
    empty = sessions[1].turns[1].model_copy(update={"code": None})
    made = [
        sessions[0].model_copy(update={"task_id": "HumanEval/0", "turns": [*turns[:2], skipped]}),
        sessions[1].model_copy(update={"task_id": "HumanEval/1", "turns": [sessions[1].turns[0], empty, *turns[2:]]}),
    ]
    (run / "sessions.jsonl").write_text("".join(session.line() + "\n" for session in made))
    assert main(["export", "format=evalplus", f"run={run}", "turn=2", "out=two.jsonl"]) == 0
    assert main(["export", "format=evalplus", f"run={run}", "turn=1", "out=one.jsonl"]) == 0
    two, one = (
        [json.loads(line)["solution"] for line in Path(name).read_text().splitlines()]
        for name in ("two.jsonl", "one.jsonl")
    )
    assert two[0] == one[0] == turns[1].code
    assert one[1] == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["format=evalplus"], "turn is required"),
        (["format=evalplus", "turn=0"], "EvalPlus does not know the task starter/"),
        (["format=evalplus", "turn=-1"], "export.turn"),
        (["format=inspekt"], "did you mean 'inspect'?"),
        (["format=inspect", "turn=0"], "there is no setting 'turn'"),
        (["format="], "format"),
    ],
)
def test_mistakes(words: list[str], told: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = cell("dataset=starter", "dataset.limit=1", "agenda.turns=2")
    assert main(["export", *words, f"run={run}", "out=out.json"]) == 2
    assert told in capsys.readouterr().err
    assert not Path("out.json").exists()


@pytest.mark.parametrize(("tool", "out", "right"), [("inspect", "x.eval", "x.json"), ("evalplus", "y", "y.jsonl")])
def test_a_name_that_the_other_tool_does_not_open_is_refused(
    tool: str, out: str, right: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, sessions = cell("dataset=starter", "dataset.limit=1", "agenda.turns=2")
    (run / "sessions.jsonl").write_text(sessions[0].model_copy(update={"task_id": "HumanEval/0"}).line() + "\n")
    words = ["export", f"format={tool}", f"run={run}", *(["turn=1"] if tool == "evalplus" else [])]
    assert main([*words, f"out={out}"]) == 2
    assert f"out={right}" in capsys.readouterr().err and not Path(out).exists()
    assert main([*words, f"out={right}"]) == 0


def test_a_log_has_every_message_once_and_every_decision(folder: Path) -> None:
    run, sessions = cell("dataset=starter", "dataset.limit=3", "agenda.turns=4")
    assert main(["export", "format=inspect", f"run={run}", "out=log.json"]) == 0
    log = json.loads(Path("log.json").read_text())
    assert log["status"] == "success"
    assert log["eval"]["dataset"]["sample_ids"] == [session.task_id for session in sessions]
    for sample, session in zip(log["samples"], sessions, strict=True):
        last = session.turns[-1]
        whole = [(each.role, each.content) for each in last.request] + [("assistant", last.response)]
        assert [(each["role"], each["content"]) for each in sample["messages"]] == whole
        assert sample["scores"]["passed"]["value"] == {f"passed_{each.turn}": each.passed for each in session.turns}
    rates = {each["name"]: each["metrics"]["mean"]["value"] for each in log["results"]["scores"]}
    assert [rates[f"passed_{turn}"] for turn in range(4)] == json.loads((run / "metrics.json").read_text())["pass_at_1"]


def test_a_dialogue_of_several_calls_a_turn_is_whole(folder: Path) -> None:
    run, sessions = cell("protocol=assist", "dataset=assist_starter")
    assert main(["export", "format=inspect", f"run={run}", "out=log.json"]) == 0
    for sample, session in zip(json.loads(Path("log.json").read_text())["samples"], sessions, strict=True):
        replies = [call.response for turn in session.turns for call in turn.calls() if call.role == "model"]
        assert [each["content"] for each in sample["messages"] if each["role"] == "assistant"] == replies
        assert sample["scores"]["judgement"]["value"] == session.judgement["verdict"]


@needs_inspect
def test_inspect_reads_the_log(folder: Path) -> None:
    run, sessions = cell("dataset=starter", "dataset.limit=3", "agenda.turns=4")
    assert main(["export", "format=inspect", f"run={run}", "out=log.json"]) == 0
    script = (
        "from inspect_ai.log import read_eval_log; log = read_eval_log('log.json')\n"
        "print(log.status, [len(sample.messages) for sample in log.samples])"
    )
    said = subprocess.run([str(INSPECT), "-c", script], check=True, capture_output=True, text=True, timeout=120).stdout
    assert said.strip() == f"success {[2 * len(session.turns) for session in sessions]}"
