"""`import format=harbor`: trials as sessions; what Harbor does not record is absent; other sources are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import AgentStep, Usage
from codechat.base.records import SessionRecord, read_sessions
from codechat.cli.app import main
from codechat.studies.refine.format_harbor import HarborImport, harbor
from support.mistakes import mistake

TASK = """
[metadata.codechat]
file = "/app/solution.py"
task_id = "own/one"
dataset = "own"
language = "python"
agenda = ["cosmetic", "semantic"]
seed = 7
turns = [
  {turn = 0, skipped = false},
  {turn = 1, skipped = true},
  {turn = 2, skipped = false, instruction = {id = "a", text = "Use a loop.", scope = "semantic", change = "add"}},
]
"""
CODES = ("def f():\n    return 1\n", "def f():\n    for n in (1,):\n        return n\n")


def said(text: str, *calls: dict[str, Any], sent: int = 10) -> dict[str, Any]:
    """A step of an agent, as ATIF has it, with a result for each call."""
    numbered = [{"tool_call_id": f"{text} {number}", **call} for number, call in enumerate(calls)]
    results = [
        {"source_call_id": f"{text} {number}", "content": [{"type": "text", "text": f"{number}"}]}
        for number, _ in enumerate(calls)
    ]
    metrics = {"prompt_tokens": sent, "completion_tokens": 2, "cached_tokens": 1}
    return {
        "step_id": 1,
        "source": "agent",
        "message": text,
        "tool_calls": numbered,
        "observation": {"results": results},
        "metrics": metrics,
        "llm_call_count": 1,
    }


def call(name: str, **given: Any) -> dict[str, Any]:
    return {"function_name": name, "arguments": given}


ASKED = {"step_id": 1, "source": "user", "message": "write it"}
FIRST = [
    ASKED,
    said(
        "now", call("Write", file_path="/app/solution.py", content=CODES[0]), call("Bash", command="python solution.py")
    ),
    said("done", call("shell", cmd=["ls", "-l"]), call("search", query="loops"), call("apply_patch", input="*** x")),
]
SECOND = [
    {**ASKED, "message": "Use a loop."},
    said("looped", call("editor", command="view", path="/app/solution.py"), sent=30),
]


def write_trial(
    jobs: Path, name: str = "one__a", *, rewards: tuple[int | None, int | None] = (1, 0), **more: Any
) -> Path:
    """A trial's folder with two steps, as Harbor leaves it."""
    folder = jobs / "job" / name
    resumes = more.pop("resumes", False)
    steps = []
    for turn, reward, code in zip((0, 2), rewards, CODES, strict=True):
        place = folder / "steps" / f"turn-{turn}"
        (place / "agent").mkdir(parents=True)
        (place / "artifacts" / "app").mkdir(parents=True)
        (place / "artifacts" / "app" / "solution.py").write_text(code)
        told = FIRST if turn == 0 else [*FIRST, *SECOND] if resumes else SECOND
        (place / "agent" / "trajectory.json").write_text(json.dumps({"schema_version": "ATIF-v1.7", "steps": told}))
        times = {"started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:09.5Z"}
        verdict = None if reward is None else {"rewards": {"reward": reward, "passed_base": 1}}
        raised = {"exception_type": "AgentTimeoutError"} if turn else None
        steps.append(
            {
                "step_name": f"turn-{turn}",
                "verifier_result": verdict,
                "agent_execution": times,
                "exception_info": raised,
                "agent_result": {"n_input_tokens": 5, "n_output_tokens": 6, "n_cache_tokens": None},
            }
        )
    agent = {"name": "claude-code", "version": "2", "model_info": {"name": "m", "provider": None}}
    result = {
        "task_name": "codechat/own-one",
        "trial_name": name,
        "task_id": {"path": "elsewhere"},
        "agent_info": agent,
        "config": {"agent": {"resume_trajectory": resumes}},
        "step_results": steps,
    }
    (folder / "result.json").write_text(json.dumps(result | more))
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of jobs; beside it the tasks."""
    task = tmp_path / "tasks" / "own-one"
    for turn in (0, 2):
        (task / "steps" / f"turn-{turn}").mkdir(parents=True)
        (task / "steps" / f"turn-{turn}" / "instruction.md").write_text(f"request {turn}: Use a loop.\n")
    (task / "task.toml").write_text(TASK)
    (tmp_path / "jobs" / "job").mkdir(parents=True)
    (tmp_path / "jobs" / "job" / "result.json").write_text('{"n_total_trials": 1, "stats": {}}')
    return tmp_path / "jobs"


def read(source: Path) -> SessionRecord:
    (session,) = harbor(HarborImport(source=str(source), tasks=str(source.parent / "tasks"))).sessions
    return session


def test_a_trial_becomes_a_session(source: Path) -> None:
    write_trial(source)
    session = read(source)
    assert (session.task_id, session.dataset, session.model, session.seed) == ("own/one", "own", "claude-code/m", 7)
    assert session.agenda == ["cosmetic", "semantic"]
    first, skipped, last = session.turns
    assert [turn.passed for turn in session.turns] == [True, True, False]
    assert [turn.passed_base for turn in (first, last)] == [True, True]
    assert [turn.code for turn in session.turns] == [CODES[0], CODES[0], CODES[1]]
    assert (first.instruction, skipped.skipped, last.adherence) == (None, True, None)
    assert last.instruction is not None
    assert (last.instruction.scope, last.instruction.change) == ("semantic", "add")
    assert (first.response, last.response, first.latency_s) == ("done", "looped", 9.5)
    assert (first.usage, last.usage) == (Usage(20, 4, 2), Usage(30, 2, 1))
    assert first.request[-1].content == "request 0: Use a loop.\n"


def test_calls_of_tools_become_steps(source: Path) -> None:
    write_trial(source)
    first, _, last = (turn.trajectory for turn in read(source).turns)
    assert first is not None
    assert last is not None
    assert first.steps == (
        AgentStep("edit", "/app/solution.py", "0"),
        AgentStep("command", "python solution.py", "1"),
        AgentStep("command", '["ls", "-l"]', "0"),
        AgentStep("tool", '{"tool_call_id":"done 1","function_name":"search","arguments":{"query":"loops"}}', "1"),
        AgentStep("edit", '{"tool_call_id":"done 2","function_name":"apply_patch","arguments":{"input":"*** x"}}', "2"),
    )
    assert last.steps == (AgentStep("tool", "/app/solution.py", "0"),)
    assert (first.ran_code, last.ran_code, first.requests) == (True, False, 2)
    assert (first.file, last.lines_added, last.lines_removed) == (CODES[0], 2, 1)
    assert (first.ended, last.ended, first.remembers) == ("exit", "time", False)


def test_a_conversation_that_goes_on_counts_its_new_steps_alone(source: Path) -> None:
    write_trial(source, resumes=True)
    first, _, last = read(source).turns
    assert (first.usage, last.usage) == (Usage(20, 4, 2), Usage(30, 2, 1))
    assert last.trajectory is not None
    assert (len(last.trajectory.steps), last.trajectory.remembers) == (1, True)


def test_a_step_without_tokens_has_none(source: Path) -> None:
    folder = write_trial(source)
    (folder / "steps" / "turn-2" / "agent" / "trajectory.json").unlink()
    result = json.loads((folder / "result.json").read_text())
    result["step_results"][1]["agent_result"] = None
    (folder / "result.json").write_text(json.dumps(result))
    assert read(source).turns[2].usage == Usage()


def test_what_harbor_does_not_record_is_absent(source: Path) -> None:
    folder = write_trial(source, agent_info={"name": "oracle", "version": "1", "model_info": None})
    for turn in (0, 2):
        (folder / "steps" / f"turn-{turn}" / "agent" / "trajectory.json").unlink()
    (folder / "steps" / "turn-2" / "artifacts" / "app" / "solution.py").unlink()
    session = read(source)
    assert session.model == "oracle"
    first, _, last = session.turns
    assert (first.usage, first.response) == (Usage(5, 6), "")
    assert (last.code, last.outcome) == (None, "no_code")
    assert first.trajectory is not None
    assert first.trajectory.steps == ()


def test_a_trial_without_all_verdicts_is_left_out(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trial(source, "one__b", rewards=(1, None))
    words = ["import", "format=harbor", f"source={source}", f"tasks={source.parent}/tasks", f"out={source}/out.jsonl"]
    with mistake(str(source), "verdict"):
        read(source)
    write_trial(source)
    assert main(words) == 0
    assert "1 trial without a verdict at each step left out: the first is one__b" in capsys.readouterr().out
    assert len(list(read_sessions(source / "out.jsonl"))) == 1


def test_attempts_and_agents_are_files(source: Path) -> None:
    for name in ("one__a", "one__b"):
        write_trial(source, name)
    write_trial(source, "one__c", agent_info={"name": "codex", "version": "1"})
    words = ["import", "format=harbor", f"source={source}", f"tasks={source.parent}/tasks", f"out={source}/out"]
    assert main(words) == 0
    assert sorted(path.name for path in (source / "out").iterdir()) == [
        "claude-code_m-1.jsonl", "claude-code_m-2.jsonl", "codex-1.jsonl",
    ]  # fmt: skip


def test_other_files_are_named(source: Path) -> None:
    folder = write_trial(source)
    with mistake("elsewhere/task.toml"):
        harbor(HarborImport(source=str(source)))
    (folder / "result.json").write_text('{"trial_name": 3}')
    with mistake(f"{folder}/result.json"):
        read(source)
