"""The test server as a user meets it: a command, a reference for every task, and plain HTTP."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codechat import compose, run
from codechat.base.domain import Message
from codechat.base.template import fill
from codechat.datasets.tasks import Task
from codechat.models import MODELS, Request
from codechat.testing import Call, Fault, OpenAIServer, dataset_tasks, fading_solver, reference_solver
from codechat.testing.openai_server import main as serve
from codechat.testing.server import troubled

ROOT = Path(__file__).parents[2]
INITIAL = (ROOT / "conf" / "prompts" / "refine" / "careful" / "initial.md").read_text(encoding="utf-8")


def tasks_of(name: str, folder: Path | None = None) -> tuple[Task, ...]:
    files = {"humaneval": "HumanEvalPlus.jsonl.gz", "mbpp": "MbppPlus.jsonl.gz"}
    return dataset_tasks(name, str(folder / files[name]) if folder else None)


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
        answer = solve(asked(fill(INITIAL, prompt=task.prompt, signature=task.target.signature)))
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
    prompt = (ROOT / "conf" / "prompts" / "llm" / "few_shot" / f"{role}.md").read_text(encoding="utf-8")
    answer = reference_solver([])(asked(prompt))
    assert isinstance(answer, str)
    assert answer.endswith(f"\nVERDICT: {verdict}")


COMMAND = [sys.executable, "-m", "codechat.testing.openai_server"]
HERE = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


@contextlib.contextmanager
def serving(*words: str, before: tuple[str, ...] = ()) -> Iterator[str]:
    """The server as a command; gives its base URL."""
    line = [*before, *COMMAND, "--dataset", "starter", "--port", "0", *words]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=HERE) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        finally:
            process.kill()


@pytest.fixture(params=["as a shell starts it", "in the background of a script"])
def command(request: pytest.FixtureRequest) -> Iterator[str]:
    """The base URL. A script's shell ignores SIGINT for what it starts in the background."""
    with serving(before=("sh", "-c", 'trap "" INT; exec "$@"', "sh") if "background" in request.param else ()) as url:
        yield url


async def test_the_command_serves_references(command: str) -> None:
    config = MODELS.validate({"kind": "openai", "name": "reference", "base_url": command})
    model = MODELS.build(config)
    task = tasks_of("starter")[0]
    text = fill(INITIAL, prompt=task.prompt, signature=task.target.signature)
    try:
        await model.check()
        reply = await model.complete(Request((Message("user", text),), task.task_id, 0))
    finally:
        await model.aclose()
    assert task.reference is not None
    assert task.reference in reply.text


def test_the_command_takes_batches(command: str, tmp_path: Path) -> None:
    model = ["model=openai", f"model.base_url={command}", "model.api_key_env=null", "model.name=reference"]
    batches = ["model.tier=batch", "model.batch_poll_s=0.1", "model.cache=false"]
    short = ["dataset.limit=2", "agenda.turns=2", "tracking=none", f"runs_dir={tmp_path}"]
    outcome = run(compose([*model, *batches, *short]))
    assert outcome.metrics is not None and outcome.metrics["pass_at_1"] == [1.0, 1.0]


def test_the_command_breaks_code_at_the_turns_given(tmp_path: Path) -> None:
    with serving("--behaviour", "agent", "--breaks", "2,4") as url:
        model = [
            "model=openai",
            f"model.base_url={url}",
            "model.api_key_env=null",
            "model.name=any",
            "model.cache=false",
        ]
        short = ["dataset.limit=2", "agenda.turns=6", "tracking=none", f"runs_dir={tmp_path}"]
        outcome = run(compose([*model, *short]))
    assert outcome.metrics is not None and outcome.metrics["pass_at_1"] == [1.0, 1.0, 0.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--dataset", "humanevil"],
            ["error: --dataset: no dataset is called 'humanevil'", "did you mean 'humaneval'"],
        ),
        (["--dataset", "jsonl"], ["--path is required", "--path FILE"]),
        (["--dataset", "humaneval", "--path", "missing.jsonl"], ["--path: there is no file missing.jsonl"]),
        (
            ["--dataset", "starter", "--path", "x.jsonl"],
            ["error: --path: the tasks of starter come with codechat", "leave out --path"],
        ),
        (["--dataset", "jsonl", "--path", "bare.jsonl"], ["has a reference solution"]),
        (["--port", "99999"], ["--port", "'99999' is no port: give a number from 0 to 65535"]),
        (["--behaviour", "kind"], ["--behaviour", "fading"]),
        (["--breaks", "3,x"], ["--breaks", "'3,x' names no turns"]),
    ],
    ids=lambda value: " ".join(value) if value[0].startswith("--") else "",
)
def test_a_mistake_is_reported_in_the_commands_own_flags(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bare.jsonl").write_text(json.dumps(BARE) + "\n")
    try:
        status = serve(words)
    except SystemExit as refusal:  # argparse's own
        status = refusal.code
    printed = capsys.readouterr()
    assert (status, printed.out) == (2, "")
    for each in said:
        assert each in printed.err
    assert "dataset." not in printed.err


BARE = {"task_id": "t", "prompt": "def f(x):", "entry_point": "f", "base_input": [[1]], "base_output": [1]}


def test_a_taken_port_is_reported_by_the_command() -> None:
    with OpenAIServer(lambda call: "x") as server:
        port = server.base_url.split(":")[2].split("/")[0]
        done = subprocess.run([*COMMAND, "--port", port], capture_output=True, text=True, env=HERE, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --port: ") and f"port {port}: " in done.stderr
    assert "--port 0 takes a free one" in done.stderr
    assert "Traceback" not in done.stderr


async def test_it_may_be_slow_and_fail_at_every_nth_call() -> None:
    solve = troubled(reference_solver(tasks_of("starter")), 0.2, "html", 2)
    began = time.monotonic()
    with OpenAIServer(solve) as server:
        host, path = server.base_url.removeprefix("http://").split("/", 1)
        seen = []
        for _ in range(4):
            connection = http.client.HTTPConnection(host)
            question = {"model": "x", "messages": [{"role": "user", "content": tasks_of("starter")[0].prompt}]}
            connection.request("POST", f"/{path}/chat/completions", json.dumps(question))
            response = connection.getresponse()
            seen.append((response.status, response.getheader("content-type"), response.read()[:1]))
            connection.close()
    assert seen == [(200, "application/json", b"{"), (200, "text/html", b"<")] * 2
    assert time.monotonic() - began >= 0.8


def test_what_the_server_does_wrong_is_named_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--slow", "-1"], ["--slow", "nan"], ["--fault", "hmtl"], ["--every", "0"]):
        with pytest.raises(SystemExit):
            serve(words)
        assert words[0] in capsys.readouterr().err


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
            history = [{"role": "user", "content": fill(INITIAL, prompt=task.prompt, signature=task.target.signature)}]
            history += [{"role": "user", "content": f"Change {turn}."} for turn in range(turns)]
            call = Call(0, "/v1/chat/completions", {}, {"model": "fading-20", "messages": history})
            answer = solve(call)
            assert answer == solve(call)
            count += "return 'broken'" in str(answer)
        return count

    assert broken_after(0) == 0
    assert 0 < broken_after(1) < broken_after(9)


def test_the_fading_model_needs_a_percentage_in_its_name() -> None:
    call = asked(tasks_of("starter")[0].prompt)
    answer = fading_solver(tasks_of("starter"))(Call(0, call.path, {}, {**call.body, "model": "reference"}))
    assert isinstance(answer, Fault)
    assert answer.status == 400
    assert "model.name=fading-20" in str(answer.body)
