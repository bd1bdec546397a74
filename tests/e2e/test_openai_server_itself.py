"""The test server as a user meets it: a command, a reference for every task, and plain HTTP."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.openai_server import Call, Fault, OpenAIServer, fading_solver, reference_solver

from codechat.datasets import DATASETS
from codechat.domain import Message, Task
from codechat.models import MODELS, Request
from codechat.template import fill

ROOT = Path(__file__).parents[2]
INITIAL = (ROOT / "conf" / "prompts" / "refine_initial.md").read_text(encoding="utf-8")


def tasks_of(name: str, folder: Path | None = None) -> tuple[Task, ...]:
    files = {"humaneval": "HumanEvalPlus.jsonl.gz", "mbpp": "MbppPlus.jsonl.gz"}
    config = DATASETS.validate({"kind": name} | ({"path": str(folder / files[name])} if folder else {}))
    return DATASETS.of(config).factory(config).tasks


def asked(text: str) -> Call:
    return Call(0, "/v1/chat/completions", {}, {"messages": [{"role": "user", "content": text}]})


@pytest.fixture
def data() -> Path:
    if "CODECHAT_TEST_DATA" not in os.environ:
        pytest.skip("CODECHAT_TEST_DATA is not set: no benchmark data here")
    return Path(os.environ["CODECHAT_TEST_DATA"])


def everyone_gets_their_reference(tasks: tuple[Task, ...]) -> None:
    solve = reference_solver(tasks)
    for task in tasks:
        answer = solve(asked(fill(INITIAL, prompt=task.prompt, signature=task.signature)))
        assert isinstance(answer, str), task.task_id
        assert task.reference is not None
        assert f"```python\n{task.reference}\n```" in answer, task.task_id


def test_the_solver_knows_every_starter_task() -> None:
    everyone_gets_their_reference(tasks_of("starter"))


@pytest.mark.parametrize("name", ["humaneval", "mbpp"])
def test_the_solver_knows_every_benchmark_task(name: str, data: Path) -> None:
    everyone_gets_their_reference(tasks_of(name, data))


def test_the_solver_refuses_what_it_does_not_know() -> None:
    answer = reference_solver(tasks_of("starter"))(asked("Write a poem."))
    assert isinstance(answer, Fault)
    assert answer.status == 400


@pytest.mark.parametrize(("role", "verdict"), [("applicability", "APPLICABLE"), ("adherence", "VIOLATED")])
def test_the_solver_answers_judge_prompts_with_a_verdict(role: str, verdict: str) -> None:
    prompt = (ROOT / "conf" / "prompts" / f"judge_{role}.md").read_text(encoding="utf-8")
    answer = reference_solver([])(asked(prompt))
    assert isinstance(answer, str)
    assert answer.endswith(f"\nVERDICT: {verdict}")


@pytest.fixture
def command() -> Iterator[str]:
    """The server as a command; gives its base URL."""
    line = [sys.executable, str(ROOT / "tests/servers/openai_server.py"), "--dataset", "starter", "--port", "0"]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path}) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0


async def test_the_command_serves_references(command: str) -> None:
    config = MODELS.validate({"kind": "openai", "name": "reference", "base_url": command})
    model = MODELS.of(config).factory(config)
    task = tasks_of("starter")[0]
    text = fill(INITIAL, prompt=task.prompt, signature=task.signature)
    try:
        await model.check()
        reply = await model.complete(Request((Message("user", text),), task.task_id, 0))
    finally:
        await model.aclose()
    assert task.reference is not None
    assert task.reference in reply.text


def test_a_wrong_dataset_is_told_by_the_command() -> None:
    line = [sys.executable, str(ROOT / "tests/servers/openai_server.py"), "--dataset", "humanevil"]
    done = subprocess.run(line, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == 2
    assert "did you mean 'humaneval'" in done.stderr


def test_plain_http_is_spoken() -> None:
    with OpenAIServer(lambda call: 1 / 0) as server:  # type: ignore[arg-type,return-value]
        connection = http.client.HTTPConnection("127.0.0.1", int(server.base_url.split(":")[2].split("/")[0]))
        for method, path, body, status in (
            ("GET", "/v1/models", None, 200),
            ("GET", "/v1/chat/completions", None, 404),
            ("POST", "/v1/chat/completions", "{", 400),
            ("POST", "/v1/chat/completions", '{"messages": []}', 500),
        ):  # one connection for all: it is kept alive
            connection.request(method, path, body)
            response = connection.getresponse()
            assert (response.status, bool(json.loads(response.read()))) == (status, True)
        connection.close()


def test_a_taken_port_is_told() -> None:
    with OpenAIServer(lambda call: "x") as server:
        port = int(server.base_url.split(":")[2].split("/")[0])
        with pytest.raises(OSError, match="in use"), OpenAIServer(lambda call: "x", port=port):
            pass


def test_the_fading_model_breaks_more_with_every_turn_and_the_same_each_time() -> None:
    tasks = tasks_of("starter")
    solve = fading_solver(tasks)

    def broken_after(turns: int) -> int:
        count = 0
        for task in tasks:
            history = [{"role": "user", "content": fill(INITIAL, prompt=task.prompt, signature=task.signature)}]
            history += [{"role": "user", "content": f"Change {turn}."} for turn in range(turns)]
            call = Call(0, "/v1/chat/completions", {}, {"model": "fading-20", "messages": history})
            answer = solve(call)
            assert answer == solve(call)
            count += "return 'broken'" in str(answer)
        return count

    assert broken_after(0) == 0
    assert 0 < broken_after(1) < broken_after(9)
