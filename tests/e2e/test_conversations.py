"""Conversations of verifiable instructions against a server that speaks the OpenAI protocol, tests in the sandbox."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.commands.rescore import run_rescore
from codechat.cli.sweep import run_sweep
from codechat.run.run import Outcome
from codechat.run.run import run as run_composed
from codechat.run.settings.compose import compose
from codechat.testing import Call, Fault, OpenAIServer, error
from support.mistakes import mistake

# A situation: the instructions after the task, what the code of each reply holds, and the rounds that must follow:
# `A` asks for A, `A?` gives feedback on it, `A!` is a feedback round after which A is discarded.
SITUATIONS: dict[str, tuple[str, list[str], str]] = {
    "met-at-once": ("AB", ["base A B"], "task"),
    "one-by-one": ("AB", ["base", "base A", "base A B"], "task A B"),
    "never-asked-again": ("AB", ["base A", "base A B"], "task B"),
    "repaired": ("AB", ["base B", "base B", "base A B"], "task A A?"),
    "discarded": ("AB", ["base", "base", "base", "base B"], "task A A! B"),
    "task-repaired": ("A", ["A", "base A"], "task task?"),
    "task-discarded": ("A", ["", "", "A"], "task task! A"),
    "forgotten": ("AB", ["base", "base A", "base B", "base A B"], "task A B A"),
    "task-forgotten": ("A", ["base", "A", "base A"], "task A task"),
    "capped": ("AB", ["base A", "base B", "base A", "base B", "base A", "base B"], "task B A B A B"),
    "worst-case": ("AB", [""] * 6, "task task! A A! B B!"),
    "no-code": ("AB", ["base B", "I can't.", "base A B"], "task A A?"),
}


def program(words: str) -> str:
    if words.startswith("I "):
        return words
    return f"Here it is:\n```python\ndef words():\n    return {words.split()!r}\n```\n"


def row(name: str) -> dict[str, Any]:
    letters = SITUATIONS[name][0]
    return {
        "task_id": name,
        "prompt": f"Write words(), which lists words. This is the task [{name}].",
        "entry_point": "words",
        "canonical_solution": f"def words():\n    return {['base', *letters]!r}\n",
        "tests": ["assert 'base' in words()"],
        "requirements": [
            {
                "id": letter,
                "type": f"letter {letter}",
                "text": f"List {letter}, too.",
                "tests": f"assert {letter!r} in words()",
            }
            for letter in letters
        ],
    }


def scripted(call: Call) -> str | Fault:
    """The reply of the situation that the first message names; one too many is a fault."""
    name = call.messages[0]["content"].partition("[")[2].partition("]")[0]
    replies, turn = SITUATIONS[name][1], sum(message["role"] == "assistant" for message in call.messages)
    return program(replies[turn]) if turn < len(replies) else error(500, f"{name}: nothing was expected here")


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks") / "tasks.jsonl"
    path.write_text("".join(json.dumps(row(name)) + "\n" for name in SITUATIONS))
    return path


def words_of(server: OpenAIServer, tasks: Path, runs: Path, *more: str) -> list[str]:
    return [
        "tracking=none",
        "dataset=jsonl",
        f"dataset.path={tasks}",
        "model=openai",
        f"model.base_url={server.base_url}",
        "model.name=m",
        "model.api_key_env=null",
        "model.max_retries=0",
        f"runs_dir={runs}",
        *more,
    ]


def run(server: OpenAIServer, tasks: Path, runs: Path, *more: str) -> Outcome:
    return run_composed(compose(words_of(server, tasks, runs, *more)))


def sessions_of(outcome: Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (outcome.folder / "sessions.jsonl").read_text().splitlines()]


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if not key.endswith("_s")}
    return [timeless(each) for each in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def dynamic(tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    with OpenAIServer(scripted) as server:
        yield run(server, tasks, tmp_path_factory.mktemp("runs"), "protocol=dynamic")


def path_of(session: dict[str, Any]) -> str:
    marks = {"initial": "", "instruction": "", "feedback": "?"}
    return " ".join(
        (turn["requirement"]["id"] if turn["requirement"] else "task")
        + ("!" if turn["discarded"] else marks[turn["round"]])
        for turn in session["turns"]
    )


@pytest.mark.parametrize("name", sorted(SITUATIONS))
def test_the_rounds_of_a_dynamic_conversation(dynamic: Outcome, name: str) -> None:
    assert dynamic.status == 0
    (session,) = [each for each in sessions_of(dynamic) if each["task_id"] == name]
    assert path_of(session) == SITUATIONS[name][2]
    for turn, words in zip(session["turns"], SITUATIONS[name][1], strict=True):
        held = set() if words.startswith("I ") else set(words.split())
        assert {check["id"]: check["passed"] for check in turn["checks"]} == {
            "task": "base" in held,
            **{letter: letter in held for letter in SITUATIONS[name][0]},
        }


def test_feedback_carries_what_the_tests_report(dynamic: Outcome) -> None:
    (session,) = [each for each in sessions_of(dynamic) if each["task_id"] == "repaired"]
    feedback = session["turns"][2]["request"][-1]["content"]
    assert "List A, too." in feedback
    assert session["turns"][1]["failure"]["reason"].removeprefix("A: ") in feedback
    assert [message["role"] for message in session["turns"][2]["request"]] == ["user", "assistant"] * 2 + ["user"]


def test_the_metrics_of_the_dynamic_cell(dynamic: Outcome) -> None:
    metrics = dynamic.metrics
    assert metrics is not None
    rounds = [turn for session in sessions_of(dynamic) for turn in session["turns"]]
    assert metrics["completed"] == len(SITUATIONS)
    assert metrics["rounds"]["feedback"] == sum(turn["round"] == "feedback" for turn in rounds)
    assert metrics["rounds"]["discarded"] == 1 + 1 + 3
    first = [SITUATIONS[name][1][0].split() for name in SITUATIONS]
    assert metrics["ia"][0] == metrics["ca"][0] == sum("base" in words for words in first) / len(first)
    assert metrics["ife"][0] == pytest.approx(sum(map(len, first)) / len(first)), "at round 1 all that is met counts"
    assert metrics["measures"]["protocol"] == "dynamic"


def test_concurrency_and_cached_replies_change_nothing(dynamic: Outcome, tasks: Path, tmp_path: Path) -> None:
    with OpenAIServer(scripted) as server:
        again = run(server, tasks, tmp_path, "protocol=dynamic", "model.max_concurrency=1", "hardware.workers=1")
    assert timeless(sessions_of(again)) == timeless(sessions_of(dynamic))


@pytest.mark.parametrize("harness", ["guarded", "official"])
def test_a_static_cell_is_scored_again(tasks: Path, tmp_path: Path, harness: str) -> None:
    chosen = ("protocol=static", f"protocol.harness={harness}", "dataset.tasks=[one-by-one,repaired]")
    with OpenAIServer(scripted) as server:
        outcome = run(server, tasks, tmp_path / "runs", *chosen)
    assert_scored_again(outcome, tmp_path / "again")


def test_a_dynamic_cell_is_scored_again(dynamic: Outcome, tmp_path: Path) -> None:
    assert_scored_again(dynamic, tmp_path / "again")
    assert dynamic.metrics is not None
    again = json.loads((tmp_path / "again" / "metrics.json").read_text())
    assert {key: again[key] for key in ("ia", "ca", "ifr", "ife", "rounds")} == {
        key: dynamic.metrics[key] for key in ("ia", "ca", "ifr", "ife", "rounds")
    }


def test_a_dialogue_over_other_instructions_is_not_scored_again(dynamic: Outcome, tasks: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(tasks.read_text().replace("List A, too.", "List A as well."))
    with mistake("'A'", "List A, too", "dataset.path"):
        run_rescore([f"run={dynamic.folder}", f"dataset.path={other}", f"out={tmp_path / 'again'}"])


def assert_scored_again(outcome: Outcome, out: Path) -> None:
    assert outcome.status == 0
    assert run_rescore([f"run={outcome.folder}", f"out={out}"]) == 0
    again = [json.loads(line) for line in (out / "sessions.jsonl").read_text().splitlines()]
    for recorded, scored in zip(sessions_of(outcome), again, strict=True):
        assert timeless(scored["turns"]) == timeless(recorded["turns"])


def test_a_replay_takes_the_recorded_path_and_refuses_another(dynamic: Outcome, tasks: Path, tmp_path: Path) -> None:
    recording = dynamic.folder / "sessions.jsonl"
    words = ["tracking=none", "dataset=jsonl", "protocol=dynamic", "model=replay", f"model.path={recording}"]
    again = run_composed(compose([*words, f"dataset.path={tasks}", f"runs_dir={tmp_path}"]))
    for recorded, replayed in zip(sessions_of(dynamic), sessions_of(again), strict=True):
        assert timeless(recorded["turns"]) == timeless(replayed["turns"])
    other = tmp_path / "other.jsonl"
    other.write_text(tasks.read_text().replace("List A, too.", "List A as well."))
    with mistake("another instruction", "List A, too"):
        run_composed(compose([*words, f"dataset.path={other}", f"runs_dir={tmp_path}"]))


@pytest.mark.parametrize("protocol", ["static", "dynamic"])
@pytest.mark.long
def test_a_killed_cell_resumes_and_ends_as_if_undisturbed(tasks: Path, tmp_path: Path, protocol: str) -> None:
    chosen = (f"protocol={protocol}", "dataset.tasks=[repaired,discarded,forgotten]", "model.cache=false")

    def slow(call: Call) -> str | Fault:
        time.sleep(0.05)
        return scripted(call)

    with OpenAIServer(slow) as server:
        command = [sys.executable, "-m", "codechat", *words_of(server, tasks, tmp_path / "runs", *chosen)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 60
            while server.answered < 4:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        resumed = run(server, tasks, tmp_path / "runs", *chosen)
        asked = len(server.calls)
        undisturbed = run(server, tasks, tmp_path / "undisturbed", *chosen)
        whole = len(server.calls) - asked
    assert resumed.status == 0
    assert timeless(sessions_of(resumed)) == timeless(sessions_of(undisturbed))
    assert asked <= whole + 3 + 1, "three sessions had a call under way; each process looks whether anybody is there"


ROLES = {
    "full": "user assistant user assistant user",
    "single": "user",
    "multi": "user assistant user",
    "n_round": "user assistant user",
}


@pytest.mark.parametrize("context", sorted(ROLES))
def test_static_with_the_shipped_prompts_and_both_harnesses(tasks: Path, tmp_path: Path, context: str) -> None:
    def answer(call: Call) -> str:
        asked = call.messages[-1]["content"]
        return program("base A" if "List A" in asked else "base B" if "List B" in asked else "base")

    with OpenAIServer(answer) as server:
        outcome = run(
            server, tasks, tmp_path, "protocol=static", f"protocol.context={context}", "protocol.harness=official",
            "dataset.tasks=[one-by-one]",
        )  # fmt: skip
    (session,) = sessions_of(outcome)
    turns = session["turns"]
    assert outcome.status == 0 and session["agenda"] == [] and session["protocol"] == "static"
    assert " ".join(message["role"] for message in turns[2]["request"]) == ROLES[context]
    together = context in ("full", "n_round")
    assert [[check["passed"] for check in turn["checks"]] for turn in turns] == [
        [True],
        [True, True],
        [True, False, True] if together else [True, True],
    ]
    assert [turn["passed"] for turn in turns] == [True, True, not together]
    assert [turn["official"]["passed"] for turn in turns] == [True, True, not together]
    assert outcome.metrics is not None
    assert outcome.metrics["agreement"] == [1.0, 1.0, 1.0]
    assert outcome.metrics["by_strategy"]["ia"] == {"Base": 1.0, "letter A": 1.0, "letter B": 1.0}
    if context == "n_round":
        assert "List A, too." in turns[2]["request"][0]["content"]


def test_a_sweep_over_contexts_and_protocols_ends_with_their_headlines(
    tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["model=echo", "dataset=jsonl", f"dataset.path={tasks}", "dataset.limit=1", "tracking=none"]
    assert run_sweep([*words, f"runs_dir={tmp_path}", "protocol=static", "protocol.context=full,single"]) == 0
    printed = capsys.readouterr().out
    assert "Instruction Accuracy first" in printed and printed.count(" done ") == 2
    assert run_sweep([*words, f"runs_dir={tmp_path}", "agenda.turns=2", "protocol=refine,dynamic"]) == 0
    printed = capsys.readouterr().out
    assert "first turn" in printed and printed.count(" done ") == 2


def test_a_dataset_without_instructions_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "codechat", "protocol=static", "tracking=none", "dataset.limit=1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "has no verifiable instructions" in done.stderr and len(done.stderr.strip().splitlines()) <= 5
