"""The scripted model of coding agents, by the agents' own programs, each in a temporary folder with its own HOME."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Usage
from codechat.testing import OpenAIServer, dataset_tasks, scripted_agent

PROGRAMS = Path(os.environ.get("CODECHAT_AGENTS", "nowhere")) / "bin"
pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(
        not all((PROGRAMS / name).exists() for name in ("claude", "codex", "mini")),
        reason="without CODECHAT_AGENTS: a folder with bin/claude, bin/codex and bin/mini",
    ),
]
TASK = dataset_tasks("starter")[0]
HERE = "The code stands in the file solution.py of the current folder: write it there, since only that file is read."
FIRST = f"{TASK.prompt}\n{TASK.target.signature}\n\n{HERE}"
LATER = f"Rename the variables.\n\n{HERE}"


@dataclass(frozen=True)
class Told:
    """What an agent says of a turn. `usage` is of the turn, or of all turns so far if `in_all`."""

    reply: str
    session: str
    usage: Usage
    in_all: bool = False


@dataclass(frozen=True)
class Agent:
    """How an agent is started with a prompt and the conversation's name, and how its output is read."""

    command: Callable[[str, str, str], list[str]]
    environment: dict[str, str]
    read: Callable[[str], Told]


def claude(root: str, prompt: str, session: str) -> list[str]:
    options = ["--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions", "--model", "claude-x"]
    return ["claude", "-p", prompt, *options, *(["--resume", session] if session else [])]


def claude_told(output: str) -> Told:
    result = lines(output)[-1]
    usage = result["usage"]
    read = usage["cache_read_input_tokens"]
    return Told(
        result["result"], result["session_id"], Usage(usage["input_tokens"] + read, usage["output_tokens"], read)
    )


def codex(root: str, prompt: str, session: str) -> list[str]:
    provider = (
        f'model_providers.test={{name="test",base_url="{root}/v1",wire_api="responses",env_key="OPENAI_API_KEY",'
        "request_max_retries=0,stream_max_retries=0}"
    )
    options = ["--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "gpt-5"]
    options += ["-c", "model_provider=test", "-c", provider]
    return ["codex", "exec", *(["resume", session] if session else []), *options, prompt]


def codex_told(output: str) -> Told:
    events = lines(output)
    replies = [each["item"]["text"] for each in events if each.get("item", {}).get("type") == "agent_message"]
    usage = events[-1]["usage"]
    counted = Usage(usage["input_tokens"], usage["output_tokens"], usage["cached_input_tokens"])
    return Told(replies[-1], events[0]["thread_id"], counted, in_all=True)


def mini(root: str, prompt: str, session: str) -> list[str]:
    options = ["-c", "mini.yaml", "-c", f"model.model_kwargs.api_base={root}/v1", "-o", "../home/told.json"]
    return ["mini", "-y", "--exit-immediately", "-m", "openai/test-model", "-t", prompt, *options]


def mini_told(output: str) -> Told:
    replies = [
        each for each in json.loads(Path("../home/told.json").read_text())["messages"] if each["role"] == "assistant"
    ]
    usage = Usage()
    for each in replies:
        counted = each["extra"]["response"]["usage"]
        cached = counted["prompt_tokens_details"]["cached_tokens"]
        usage += Usage(counted["prompt_tokens"], counted["completion_tokens"], cached)
    return Told(replies[-1]["content"], "", usage)


def lines(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


AGENTS = {
    "claude": Agent(claude, {
        "IS_SANDBOX": "1", "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "{root}",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }, claude_told),
    "codex": Agent(codex, {"OPENAI_API_KEY": "k"}, codex_told),
    "mini": Agent(mini, {
        "OPENAI_API_KEY": "k", "MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }, mini_told),
}  # fmt: skip


@pytest.fixture(params=list(AGENTS))
def agent(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return AGENTS[request.param]


def started(agent: Agent, server: OpenAIServer, prompt: str, session: str = "") -> subprocess.Popen[str]:
    root = server.base_url.removesuffix("/v1")
    program, *words = agent.command(root, prompt, session)
    environment = {name: value.format(root=root) for name, value in agent.environment.items()}
    environment |= {"HOME": str(Path("../home").resolve()), "PATH": os.environ["PATH"], "NO_PROXY": "127.0.0.1"}
    return subprocess.Popen(
        [str(PROGRAMS / program), *words], env=environment, text=True,
        start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_an_agent_follows_the_script(agent: Agent) -> None:
    script = ("solve", "break", "nothing", "delete", "asks_tests", ("break", "echo kept > other.txt"), "solve")
    file, told, usage = Path("solution.py"), list[Told](), Usage()
    with OpenAIServer(scripted_agent([TASK], lambda task, turn: script[turn])) as server:
        for turn in range(len(script)):
            running = started(agent, server, LATER if turn else FIRST, told[-1].session if turn else "")
            output, errors = running.communicate(timeout=120)
            assert running.returncode == 0, output + errors
            told.append(agent.read(output))
            assert told[-1].reply == "The work is done."
            usage = told[-1].usage if told[-1].in_all else usage + told[-1].usage
            assert usage == server.usage
            marked = {2: 1}.get(turn, turn)
            if turn == 3:
                assert not file.exists()
                continue
            assert file.read_text().startswith(f"# {TASK.task_id}, turn {marked}\n")
            tested = subprocess.run([sys.executable, "-m", "doctest", file], check=False, capture_output=True)
            assert (tested.returncode == 0) is (turn in (0, 4, 6))
    assert Path("other.txt").read_text() == "kept\n"


def test_an_agent_may_never_end(agent: Agent) -> None:
    with OpenAIServer(scripted_agent([TASK], lambda task, turn: "forever")) as server:
        running = started(agent, server, FIRST)
        while server.answered < 12:
            assert running.poll() is None
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGKILL)  # with its own processes, which hold the pipes
        running.communicate()
    assert not Path("solution.py").exists()
