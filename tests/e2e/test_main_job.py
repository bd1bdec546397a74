"""The main job over a socket: HumanEval+ and MBPP+ samples, faults, interruption, resumption, the LLM judge."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codechat.datasets import DATASETS
from codechat.testing import Answer, Call, OpenAIServer, error, overflow, reference_solver
from support.processes import codechat

DATA = os.environ.get("CODECHAT_TEST_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="CODECHAT_TEST_DATA names no folder with the benchmark data")
FILES = {"humaneval": "HumanEvalPlus.jsonl.gz", "mbpp": "MbppPlus.jsonl.gz"}


def tasks_of(kind: str, **options: Any) -> tuple[Any, ...]:
    config = DATASETS.validate({"kind": kind, **options})
    return DATASETS.build(config).tasks


def command(server: OpenAIServer | str, *arguments: str) -> list[str]:
    base_url = server if isinstance(server, str) else server.base_url
    return [
        sys.executable, "-m", "codechat", "tracking=none", "model=openai", f"model.base_url={base_url}",
        "model.api_key_env=null", "model.name=tested", "model.cache=false", *arguments,
    ]  # fmt: skip


def run(folder: Path, server: OpenAIServer | str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return codechat(folder, *command(server, *arguments)[3:])


def sessions(folder: Path, where: str = "runs") -> list[dict[str, Any]]:
    (cell,) = (folder / where).iterdir()
    return [json.loads(line) for line in (cell / "sessions.jsonl").read_text().splitlines()]


def metrics(folder: Path, where: str = "runs") -> dict[str, Any]:
    (cell,) = (folder / where).iterdir()
    found: dict[str, Any] = json.loads((cell / "metrics.json").read_text())
    return found


def timeless(value: Any) -> Any:
    """A record without the fields whose names end in `_s`."""
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if not key.endswith("_s")}
    return [timeless(each) for each in value] if isinstance(value, list) else value


@needs_data
@pytest.mark.parametrize("kind", ["humaneval", "mbpp"])
def test_a_model_that_returns_the_reference_keeps_everything_alive(tmp_path: Path, kind: str) -> None:
    path = f"{DATA}/{FILES[kind]}"
    with OpenAIServer(reference_solver(tasks_of(kind, path=path))) as server:
        done = run(tmp_path, server, f"dataset={kind}", f"dataset.path={path}", "dataset.limit=12")
        assert done.returncode == 0, done.stdout + done.stderr
        asked = [call for call in server.calls if call.path.endswith("completions")]
    found = metrics(tmp_path)
    assert found["pass_at_1"] == [1.0] * 10
    assert found["mst"] == 10
    assert found["completed"] == 12
    assert len(asked) == 12 * 10 - found["skipped_turns"]
    assert "return" not in json.dumps(
        [call.messages[0] for call in asked if len(call.messages) == 1 and "reference" in call.body]
    )


def breaking(call: Call) -> str:
    """Right until the conversation has seen three instructions; then a wrong function."""
    user = [message for message in call.messages if message["role"] == "user"]
    task = next(task for task in STARTER if task.prompt.strip() in user[0]["content"])
    if len(user) <= 3:
        return f"Sure.\n```python\n{task.reference}\n```"
    return f"```python\n{task.target.signature}\n    return 'nonsense'\n```"


STARTER = tasks_of("starter")


def test_broken_code_is_counted_where_it_breaks(tmp_path: Path) -> None:
    with OpenAIServer(breaking) as server:
        done = run(tmp_path, server, "dataset.limit=6")
    assert done.returncode == 0, done.stderr
    found = metrics(tmp_path)
    for session in sessions(tmp_path):
        asked = 0
        for turn in session["turns"]:
            asked += not turn["skipped"]
            assert turn["passed"] is (asked <= 3), "broken from the fourth reply on"
            if not turn["passed"]:
                assert turn["outcome"] == "fail"
                assert turn["failure"]["input"]
                assert "nonsense" in turn["failure"]["actual"]
    assert found["mst"] == pytest.approx(sum(_prefix(session) for session in sessions(tmp_path)) / 6)
    assert found["regression"]["overall"] > 0


def _prefix(session: dict[str, Any]) -> int:
    length = 0
    for turn in session["turns"]:
        if not turn["passed"]:
            break
        length += 1
    return length


def judging(call: Call) -> str:
    """The model under test, and a judge that finds everything applicable and nothing followed."""
    last = call.messages[-1]["content"]
    if "NOT_APPLICABLE" in last:
        return "The code has a place for it.\nVERDICT: APPLICABLE"
    if "VIOLATED" in last:
        return "Nothing changed.\nVERDICT: VIOLATED"
    return breaking(call)


def test_language_models_judge_over_the_same_protocol(tmp_path: Path) -> None:
    with OpenAIServer(judging) as server:
        at = [f"judge.{role}.base_url={server.base_url}" for role in ("applicability", "adherence")]
        done = run(tmp_path, server, "judge=paper", "judge.check=false", "dataset.limit=3", *at)
        names = Counter(call.body["model"] for call in server.calls if "model" in call.body)
    assert done.returncode == 0, done.stderr
    found = metrics(tmp_path)
    assert found["iar"] == [0.0] * 9
    assert found["skipped_turns"] == 0
    assert names["openai/gpt-oss-20b"] == names["openai/gpt-oss-120b"] == 27
    assert found["tokens"]["judge"]["input_tokens"] > 0
    assert {turn["adherence"]["by"] for session in sessions(tmp_path) for turn in session["turns"][1:]} == {"llm"}


def test_a_context_overflow_completes_the_session(tmp_path: Path) -> None:
    def full(call: Call) -> Any:
        return overflow(wording="vllm") if len(call.messages) > 5 else breaking(call)

    with OpenAIServer(full) as server:
        done = run(tmp_path, server, "dataset.limit=2")
    assert done.returncode == 0, done.stderr
    for session in sessions(tmp_path):
        assert (session["status"], session["ended"]) == ("completed", "context_overflow")
        assert [turn["outcome"] for turn in session["turns"]][-3:] == ["no_code"] * 3
    assert metrics(tmp_path)["errored"] == 0


def test_a_failing_endpoint_errs_sessions_and_the_next_run_mends_them(tmp_path: Path) -> None:
    def moody(call: Call) -> Any:
        return (
            error(500, "out of order")
            if STARTER[1].target.entry_point in call.messages[0]["content"]
            else breaking(call)
        )

    with OpenAIServer(moody) as server:
        done = run(tmp_path, server, "dataset.limit=3", "model.max_retries=0")
    assert done.returncode == 3
    assert "max_errors" in done.stderr
    broken = sessions(tmp_path)
    assert [session["status"] for session in broken] == ["completed", "errored", "completed"]
    assert "500" in broken[1]["error"]
    assert len(broken[1]["agenda"]) == 9
    assert metrics(tmp_path)["completed"] == 2
    with OpenAIServer(breaking) as server:
        done = run(tmp_path, server, "dataset.limit=3", "model.max_retries=0")
        calls = [call for call in server.calls if call.path.endswith("completions")]
    assert done.returncode == 0, done.stderr
    mended = sessions(tmp_path)
    assert [session["status"] for session in mended] == ["completed"] * 3
    assert [timeless(mended[0]), timeless(mended[2])] == [timeless(broken[0]), timeless(broken[2])]
    assert len(calls) == sum(not turn["skipped"] for turn in mended[1]["turns"])


def test_errors_within_max_errors_are_tolerated(tmp_path: Path) -> None:
    with OpenAIServer(
        lambda call: (
            error(500, "no") if STARTER[0].target.entry_point in call.messages[0]["content"] else breaking(call)
        )
    ) as server:
        assert run(tmp_path, server, "dataset.limit=2", "model.max_retries=0", "max_errors=1").returncode == 0


def test_an_endpoint_that_dies_stops_the_cell(tmp_path: Path) -> None:
    with OpenAIServer(lambda call: error(503, "gone") if call.number > 12 else breaking(call)) as server:
        done = run(tmp_path, server, "model.max_retries=0", "model.max_concurrency=2", "hardware.workers=1")
        asked = len(server.calls)
    assert done.returncode == 3
    assert asked < 40, "it stopped asking"
    errors = [session["error"] for session in sessions(tmp_path) if session["status"] == "errored"]
    assert sum("not attempted" in text for text in errors) > 30
    assert len(sessions(tmp_path)) == len(STARTER)


def slow(call: Call) -> str:
    time.sleep(0.05)
    return breaking(call)


@pytest.mark.parametrize(("stop", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
@pytest.mark.long
def test_an_interrupted_cell_resumes_and_ends_as_if_undisturbed(tmp_path: Path, stop: int, status: int) -> None:
    size = ("dataset.limit=4", "model.max_concurrency=2")
    with OpenAIServer(slow) as server:
        with subprocess.Popen(
            command(server, *size), cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        ) as process:
            wait_for(lambda: len(server.calls) >= 12)
            process.send_signal(stop)
            _, stderr = process.communicate(timeout=60)
        assert process.returncode == status
        first = len(server.calls)
        if stop == signal.SIGINT:
            assert re.search(r"Resume: \S*codechat tracking=none model=openai", stderr)
            assert "Traceback" not in stderr
        done = run(tmp_path, server, *size)
        assert done.returncode == 0, done.stderr
        total = len(server.calls)
        again = run(tmp_path, server, *size)
        assert again.returncode == 0
        assert len(server.calls) == total, "a finished cell contacts no endpoint"
        other = run(tmp_path, server, *size, "runs_dir=undisturbed", "model.max_concurrency=1", "judge.lookahead=3")
        assert other.returncode == 0
        undisturbed = len(server.calls) - total
    assert timeless(sessions(tmp_path)) == timeless(sessions(tmp_path, "undisturbed"))
    checks = 2  # each process looks once whether the endpoint is there
    assert total <= undisturbed + checks + 4, f"{first} calls before the stop: what was answered is not asked again"


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_finished_cell_needs_neither_key_nor_endpoint(tmp_path: Path) -> None:
    with OpenAIServer(breaking) as server:
        assert run(tmp_path, server, "dataset.limit=1").returncode == 0
    assert run(tmp_path, "http://127.0.0.1:9/v1", "dataset.limit=1").returncode == 0


def test_replay_answers_as_the_recording_did(tmp_path: Path) -> None:
    with OpenAIServer(breaking) as server:
        assert run(tmp_path, server, "dataset.limit=2").returncode == 0
    (cell,) = (tmp_path / "runs").iterdir()
    done = subprocess.run(
        [sys.executable, "-m", "codechat", "tracking=none", "model=replay", f"model.path={cell}/sessions.jsonl", "dataset.limit=2", "runs_dir=again"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    recorded, replayed = sessions(tmp_path), sessions(tmp_path, "again")
    for key in ("code", "outcome", "instruction", "adherence", "response"):
        assert [[turn[key] for turn in s["turns"]] for s in recorded] == [
            [turn[key] for turn in s["turns"]] for s in replayed
        ]


@pytest.mark.long
def test_no_secret_is_written_anywhere(tmp_path: Path) -> None:
    secret = "sk-very-secret-0123456789"
    environment = {**os.environ, "MY_KEY": secret}
    with OpenAIServer(lambda call: Answer(breaking(call)) if "x" else "") as server:
        words = [word for word in command(server, "dataset.limit=1") if not word.startswith("model.api_key_env")]
        words = [word for word in words if word != "tracking=none"]
        done = subprocess.run(
            [*words, "model.api_key_env=MY_KEY"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert server.calls[-1].headers["authorization"] == f"Bearer {secret}"
    assert secret not in done.stdout + done.stderr
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
