"""Claude Code, Codex and mini-swe-agent as models under test, against a scripted endpoint: by codechat's own command."""

import asyncio
import json
import os
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Usage
from codechat.datasets.tasks import Task
from codechat.testing import Answer, Call, Fault, OpenAIServer, Result, dataset_tasks, error, scripted_agent
from codechat.testing.apis import body_of
from codechat.testing.server import RESET, rate_limited
from codechat.testing.streams import EVENTS, stream_of
from support.processes import below, codechat, descendants, ended, start, wait_until

PROGRAMS = Path(os.environ.get("CODECHAT_AGENTS", "nowhere")) / "bin"
PRESETS = ("mini_swe_agent", "claude_code", "codex")  # the slowest first
pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(
        not all((PROGRAMS / name).exists() for name in ("claude", "codex", "mini")),
        reason="without CODECHAT_AGENTS: a folder with bin/claude, bin/codex and bin/mini",
    ),
]
of_each = pytest.mark.parametrize("preset", PRESETS)
TASKS = dataset_tasks("starter")
BREAKS = (3, 6)  # the requests at which the code breaks, from 0; the next ones mend it
PRICES = "model.prices={input: 10, output: 10}"
KEY, VARIABLE = "sk-made-up-0123456789abcdef", "CODECHAT_TEST_AGENTS_KEY"


@pytest.fixture(autouse=True)
def agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv(VARIABLE, KEY)


class Follows:
    """Follows the script. `turn` is the request of the protocol that was worked on last, in a cell of one dialogue."""

    def __init__(self) -> None:
        self.turn, self._steps = 0, Counter[int]()
        self._follow = scripted_agent(TASKS, self._deed)

    def _deed(self, task: Task, turn: int) -> str:
        self.turn = turn
        return "break" if turn in BREAKS else "solve"

    def step(self, call: Call) -> tuple[Result, tuple[int, int]]:
        """The answer, and which it is: the turn, and the answers to this turn that were asked for, the first excluded."""
        answer = self._follow(call)
        self._steps[self.turn] += 1
        return answer, (self.turn, self._steps[self.turn])

    def __call__(self, call: Call) -> Any:
        return self.step(call)[0]


def words(model: str, server: OpenAIServer, turns: int, *more: str) -> list[str]:
    url = server.base_url.removesuffix("/v1") if model == "claude_code" else server.base_url
    given = [f"model={model}", f"model.base_url={url}", f"model.api_key_env={VARIABLE}", "dataset=starter"]
    return [*given, f"agenda.turns={turns}", "judge=rules", "tracking=none", *more]


def cell_of(folder: Path, runs: str = "runs") -> Path:
    (cell,) = (folder / runs).iterdir()
    return cell


def sessions_of(cell: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (cell / "sessions.jsonl").read_text().splitlines()]


def metrics_of(cell: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((cell / "metrics.json").read_text())
    return found


def worked(sessions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The turns at which the agent was asked."""
    return [turn for session in sessions for turn in session["turns"] if not turn["skipped"]]


def check_verdicts(sessions: list[dict[str, Any]], turns: int) -> None:
    """Each turn has the verdict of the script."""
    for session in sessions:
        assert session["status"] == "completed", session["error"]
        asked, outcomes = 0, list[str]()
        for turn in session["turns"]:
            outcomes.append(outcomes[-1] if turn["skipped"] else "fail" if asked in BREAKS else "pass")
            asked += not turn["skipped"]
        assert [turn["outcome"] for turn in session["turns"]] == outcomes
        assert len(outcomes) == turns


def check_usage(cell: Path, server: OpenAIServer) -> None:
    """Records and metrics have the tokens that the server counted."""
    usage, found = server.usage, metrics_of(cell)
    counted = {
        "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
    }  # fmt: skip
    recorded = Counter[str]()
    for turn in worked(sessions_of(cell)):
        recorded.update(turn["usage"])
    assert recorded == counted == found["tokens"]["model"]


def check_left(cell: Path) -> None:
    """No file of the run has the key, and nothing is left of the agents."""
    assert not (cell / "agents").exists()
    for path in cell.parent.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


def requests_of(sessions: list[dict[str, Any]]) -> int:
    return sum(turn["trajectory"]["requests"] for turn in worked(sessions))


@of_each
def test_four_dialogues_of_ten_turns(preset: str, tmp_path: Path) -> None:
    """The same script by a chat model gives the same codes, verdicts, Pass@1 and MST."""
    before = descendants()
    with OpenAIServer(Follows()) as server:
        done = codechat(tmp_path, *words(preset, server, 10, "dataset.limit=4"))
        assert done.returncode == 0, done.stdout + done.stderr
        cell = cell_of(tmp_path)
        sessions = sessions_of(cell)
        assert len(sessions) == 4
        check_verdicts(sessions, 10)
        check_usage(cell, server)
        check_left(cell)
        assert KEY not in done.stdout + done.stderr
        assert server.answered == requests_of(sessions)
        sent = {call.headers.get("x-api-key") or call.headers["authorization"] for call in server.calls}
        assert sent == {KEY if preset == "claude_code" else f"Bearer {KEY}"}
    for turn in worked(sessions):
        trajectory = turn["trajectory"]
        kinds = {step["kind"] for step in trajectory["steps"]} - {"tool"}
        assert kinds == ({"command"} if preset == "mini_swe_agent" else {"command", "edit"})
        assert trajectory["ran_code"] and trajectory["ended"] == "exit" and trajectory["requests"] > 1
        assert turn["finish_reason"] == "stop" and turn["response"].startswith("The work is done.")
        assert turn["code"] == trajectory["file"].strip()
    with OpenAIServer(Follows(), models=["chat"]) as server:
        chat = words("openai", server, 10, "dataset.limit=4", "model.name=chat", "runs_dir=chats")
        assert codechat(tmp_path, *chat).returncode == 0
    told = sessions_of(cell_of(tmp_path, "chats"))
    parts = ("skipped", "instruction", "candidates", "outcome", "code")
    assert [[[turn[part] for part in parts] for turn in each["turns"]] for each in sessions] == [
        [[turn[part] for part in parts] for turn in each["turns"]] for each in told
    ]
    found, expected = metrics_of(cell), metrics_of(cell_of(tmp_path, "chats"))
    for figure in ("pass_at_1", "mst", "mst_at", "iar", "regression"):
        assert found[figure] == expected[figure]
    assert found["mst"] == 3
    wait_until(lambda: descendants() <= before)


@of_each
def test_a_killed_turn_is_repeated(preset: str, tmp_path: Path) -> None:
    """What was answered before the kill is not asked again, but for the call under way."""
    follows, stalled, killed = Follows(), threading.Event(), threading.Event()

    async def stalls(call: Call) -> Any:
        answer, place = follows.step(call)
        if place == (5, 2) and not stalled.is_set():
            stalled.set()
            await asyncio.to_thread(killed.wait)
            return RESET
        return answer

    with OpenAIServer(stalls) as server:
        command = words(preset, server, 6, "dataset.limit=1")
        process = start(tmp_path, *command)
        assert process.pid is not None
        wait_until(lambda: stalled.is_set() or not process.is_alive())
        started = below(process.pid)
        assert started
        process.kill()
        assert ended(process) == -9
        killed.set()
        wait_until(lambda: not any(map(is_alive, started)))
        done = codechat(tmp_path, *command)
        assert done.returncode == 0, done.stdout + done.stderr
        cell = cell_of(tmp_path)
        sessions = sessions_of(cell)
        check_verdicts(sessions, 6)
        check_usage(cell, server)
        check_left(cell)
        *turns, last = [turn["trajectory"] for turn in worked(sessions)]
        assert [(turn["attempts"], turn["replayed"]) for turn in turns] == [(1, 0)] * 5
        assert (last["attempts"], last["replayed"]) == (2, 2)
        assert server.answered == requests_of(sessions) + 1


def is_alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


@of_each
def test_a_budget_ends_a_dialogue(preset: str, tmp_path: Path) -> None:
    """Each answer costs a cent. What is paid is not paid again."""
    follows = Follows()

    def costs(call: Call) -> Result:
        answer = follows(call)
        return replace(answer, usage=Usage(900, 100))

    with OpenAIServer(costs) as server:
        command = words(preset, server, 2, "dataset.limit=1", PRICES)
        done = codechat(tmp_path, *command, "budget_usd=0.07")
        assert done.returncode == 3, done.stdout + done.stderr
        assert server.answered == 7 and "$0.07 spent" in done.stderr
        assert metrics_of(cell_of(tmp_path))["spent_usd"]["model"] == pytest.approx(0.07)
        done = codechat(tmp_path, *command, "budget_usd=1")
        assert done.returncode == 0, done.stdout + done.stderr
        cell = cell_of(tmp_path)
        sessions = sessions_of(cell)
        check_verdicts(sessions, 2)
        check_usage(cell, server)
        check_left(cell)
        assert server.answered == requests_of(sessions)
        assert sessions[0]["turns"][1]["trajectory"]["replayed"] > 0
        assert metrics_of(cell)["spent_usd"]["model"] == pytest.approx(0.01 * server.answered)


def cut_stream(call: Call) -> Fault:
    """Half of a good answer, as a stream that breaks off."""
    text = stream_of(call, body_of(call, Answer("Let me think about it.")))
    return Fault(200, text, EVENTS, cut=len(text) // 2)


def test_faults_of_the_endpoint_change_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.models.calls.retry.FIRST_WAIT_S", 0.01)
    follows = Follows()
    faults = [error(500, "internal error"), rate_limited(0.05), RESET, cut_stream]

    def faulty(call: Call) -> Any:
        place, is_faulty = divmod(call.number, 3)[0] % 4, call.number % 3 == 2
        fault = faults[place]
        return (fault(call) if callable(fault) else fault) if is_faulty else follows(call)

    with OpenAIServer(faulty) as server:
        done = codechat(tmp_path, *words("codex", server, 5, "dataset.limit=1"))
        assert done.returncode == 0, done.stdout + done.stderr
        cell = cell_of(tmp_path)
        sessions = sessions_of(cell)
        check_verdicts(sessions, 5)
        check_usage(cell, server)
        check_left(cell)
        given = server.answered // 3
        assert given >= 8
        assert server.answered == requests_of(sessions) + given
        assert metrics_of(cell)["retries"] == given
        assert {turn["trajectory"]["attempts"] for turn in worked(sessions)} == {1}


def test_an_endpoint_that_dies_scores_nothing(tmp_path: Path) -> None:
    """The same command goes on once it is back."""
    follows = Follows()

    async def stalls(call: Call) -> Any:
        """Answers turn 0 and half of turn 1."""
        if call.number == 6:
            await asyncio.Event().wait()
        return follows(call)

    with OpenAIServer(stalls) as dying:
        command = words("codex", dying, 3, "dataset.limit=1", "model.max_retries=1", PRICES)
        process = start(tmp_path, *command)
        wait_until(lambda: dying.answered > 6 or not process.is_alive())
    assert ended(process) == 3
    (session,) = sessions_of(cell_of(tmp_path))
    assert session["status"] == "errored" and "nothing answers at" in session["error"]
    assert [turn["outcome"] for turn in session["turns"]] == ["pass"]
    found, paid = metrics_of(cell_of(tmp_path)), dying.usage
    assert (found["completed"], found["errored"], found["mst"]) == (0, 1, None)
    assert found["spent_usd"]["model"] == pytest.approx(10 * (paid.input_tokens + paid.output_tokens) / 1_000_000)
    with OpenAIServer(Follows(), port=int(dying.base_url.split(":")[2].removesuffix("/v1"))) as server:
        done = codechat(tmp_path, *command)
        assert done.returncode == 0, done.stdout + done.stderr
        cell = cell_of(tmp_path)
        check_verdicts(sessions_of(cell), 3)
        check_left(cell)
        again = worked(sessions_of(cell))[1]["trajectory"]
        assert (again["attempts"], again["replayed"]) == (2, 2)
        server.usage += dying.usage
        check_usage(cell, server)


@of_each
def test_a_refused_key_is_a_mistake(preset: str, tmp_path: Path) -> None:
    with OpenAIServer(lambda _: error(401, f"Incorrect API key provided: {KEY}", "invalid_api_key")) as server:
        done = codechat(tmp_path, *words(preset, server, 3, "dataset.limit=1"))
        assert done.returncode == 2
        assert KEY not in done.stdout + done.stderr
        assert VARIABLE in done.stderr and len(done.stderr.splitlines()) <= 5
        assert server.answered == 1


def test_a_recorded_cell_is_scored_again(tmp_path: Path) -> None:
    with OpenAIServer(Follows()) as server:
        assert codechat(tmp_path, *words("codex", server, 4, "dataset.limit=2")).returncode == 0
    cell = cell_of(tmp_path)
    sessions = sessions_of(cell)
    check_verdicts(sessions, 4)
    assert codechat(tmp_path, "rescore", f"run={cell}", "out=again", "tracking=none").returncode == 0
    replay = ["model=replay", f"model.path={cell / 'sessions.jsonl'}", "dataset.limit=2", "runs_dir=replayed"]
    replay += ["agenda.turns=4", "judge=rules", "tracking=none"]
    done = codechat(tmp_path, *replay)
    assert done.returncode == 0, done.stdout + done.stderr
    for folder in (tmp_path / "again", cell_of(tmp_path, "replayed")):
        parts = ("skipped", "instruction", "outcome", "code", "adherence")
        assert [[[turn[part] for part in parts] for turn in each["turns"]] for each in sessions_of(folder)] == [
            [[turn[part] for part in parts] for turn in each["turns"]] for each in sessions
        ]
    assert [turn["trajectory"] for turn in worked(sessions_of(tmp_path / "again"))] == [
        turn["trajectory"] for turn in worked(sessions)
    ]
    assert metrics_of(tmp_path / "again")["agent"] == metrics_of(cell)["agent"]
    assert codechat(tmp_path, "report", "runs=runs", "out=report").returncode == 0
    table = (tmp_path / "report" / "tables" / "refine_agents_finals.csv").read_text().splitlines()
    assert table[1].startswith("codex,starter,2.0,")
    assert codechat(tmp_path, "export", f"run={cell}", "out=turns.csv").returncode == 0
    assert len((tmp_path / "turns.csv").read_text().splitlines()) > 8
