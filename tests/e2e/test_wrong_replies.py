"""Replies that are no answers, because of a setting or a server: said before any figure."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from codechat.cli.app import main
from codechat.testing import Answer, Call, Fault, OpenAIServer, Result, dataset_tasks, error, overflow, reference_solver

SOLVE = reference_solver(dataset_tasks("starter"))
WORDS = ("model=openai", "model.name=tested", "dataset.limit=3", "agenda.turns=3", "tracking=none", "hardware.workers=1",
         "sandbox.allow_weak=true", "max_errors=9")  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cut(call: Call) -> Result:
    return Answer(str(SOLVE(call)), finish_reason="length")


def empty(call: Call) -> Result:
    return Answer("")


def short_context(call: Call) -> Result:
    return overflow() if len(call.messages) > 1 else str(SOLVE(call))


def thoughtful(call: Call) -> Result:
    counted = {"prompt_tokens": 200, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 8}}
    return Answer(None, message={"reasoning_content": str(SOLVE(call))}, usage=counted)


def strict(call: Call) -> Result:
    """Refuses empty messages, and gives the model's first follow-up no room for an answer."""
    if any(not message["content"].strip() for message in call.messages):
        return error(400, "messages must not be empty")
    return Answer("", "length", message={"reasoning": "hm"}) if len(call.messages) == 3 else str(SOLVE(call))


def forgetful(call: Call) -> Result:
    """Reads the last 60 words."""
    sent = sum(len(message["content"].split()) for message in call.messages)
    return Answer(str(SOLVE(call)), usage={"prompt_tokens": min(sent, 60), "completion_tokens": 1})


def blocked(call: Call) -> Result:
    prompt = call.messages[0]["content"]
    if dataset_tasks("starter")[0].prompt.strip() in prompt:
        return Fault(400, {"error": {"message": "no", "type": "invalid_request_error", "code": "content_filter"}})
    return str(SOLVE(call))


@pytest.mark.parametrize(
    ("behaviour", "caution"),
    [
        (cut, "9 of 9 replies were cut off by a limit of tokens (model.max_tokens) or a filter"),
        (empty, "no code was found in 3 of 3 replies: read some in sessions.jsonl"),
        (short_context, "3 of 3 sessions outgrew the context that the endpoint serves: all their further turns count as failed"),
        (blocked, "1 of 3 sessions errored: the figures rest on the other 2"),
    ],
    ids=["cut off", "empty", "short context", "blocked"],
)  # fmt: skip
def test_it_is_said_before_any_figure(
    behaviour: Callable[[Call], Result], caution: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with OpenAIServer(behaviour) as server:
        assert main([*WORDS, f"model.base_url={server.base_url}"]) == 0
    assert_before(caution, "Pass@1", capsys)
    folder = next(Path("runs").iterdir())
    assert set(json.loads((folder / "metrics.json").read_text())["replies"]) == {"all", "cut", "no_code", "overflowed"}
    if behaviour is blocked:
        assert main(["report", "runs=runs", "out=out"]) == 0
        assert_before(caution, "Leaderboard", capsys)


@pytest.mark.parametrize(
    ("behaviour", "caution", "count", "completed"),
    [
        (thoughtful, "3 replies had all text in reasoning_content", {"only_reasoning": 3}, 3),
        (strict, "3 replies had all text in reasoning_content", {"only_reasoning": 3}, 3),
        (forgetful, "at 6 turns of 3 of 3 sessions", {"truncated": 6, "truncated_sessions": 3}, 3),
    ],
)
def test_what_a_server_withholds_is_said_first(
    behaviour: Callable[[Call], Result], caution: str, count: dict[str, int], completed: int,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    words = [*WORDS, "judge=rules", "agenda.sequence=[cosmetic,cosmetic]"]
    with OpenAIServer(behaviour) as server:
        assert main([*words, f"model.base_url={server.base_url}"]) == 0
    assert_before(caution, "Pass@1", capsys)
    metrics = json.loads(next(Path("runs").glob("*/metrics.json")).read_text())
    assert metrics["completed"] == completed and count.items() <= metrics["replies"].items()
    assert metrics["tokens"]["model"].get("reasoning_tokens") == (24 if behaviour is thoughtful else None)
    assert main(["report", "runs=runs", "out=out"]) == 0
    assert_before(caution, "Leaderboard", capsys)
    table = next(Path("out").rglob("counts.csv")).read_text()
    assert ("truncated_sessions" in table.splitlines()[0]) is ("truncated" in count)


def broken(call: Call) -> Result:
    """The first task's code never parses; the others' lacks the name."""
    task = dataset_tasks("starter")[0]
    named = task.prompt.strip() in call.messages[0]["content"]
    return f"```python\n{task.target.signature}\n    return (\n```" if named else "```python\nx = 1\n```"


def test_skips_on_broken_code_and_code_without_the_name_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*WORDS, "judge=rules", "agenda.sequence=[semantic,semantic]"]
    with OpenAIServer(broken) as server:
        assert main([*words, f"model.base_url={server.base_url}"]) == 0
    cautions = (
        "6 of 6 follow-up turns were skipped (6, 2 of them since the code does not parse)",
        "no code with the name asked for was found in 2 of 3 replies, and 2 have other code",
    )
    said = " ".join(capsys.readouterr().out.split())
    assert all(caution in said.partition("Pass@1")[0] for caution in cautions)
    assert "2 no_code (2 with code that lacks the name), 1 syntax_error" in said
    assert main(["report", "runs=runs", "out=out"]) == 0
    head, row = next(Path("out").rglob("counts.csv")).read_text().splitlines()
    counts = dict(zip(head.split(","), row.split(","), strict=True))
    assert (counts["skipped_unparsable"], counts["outcome_no_code"], counts["lacks_name"]) == ("2", "2", "2")


def assert_before(caution: str, figures: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = " ".join(capsys.readouterr().out.split())
    assert caution in said.partition(figures)[0]


def test_whole_answers_need_no_caution(capsys: pytest.CaptureFixture[str]) -> None:
    with OpenAIServer(SOLVE) as server:
        assert main([*WORDS, f"model.base_url={server.base_url}"]) == 0
    assert "caution" not in capsys.readouterr().out


def test_conversations_that_are_refused_stop_no_cell(capsys: pytest.CaptureFixture[str]) -> None:
    """More sessions in a row than a dead endpoint may have, refused in unknown words at once: the others are asked."""
    refused = {task.prompt.strip() for task in dataset_tasks("starter")[1:8]}

    def picky(call: Call) -> Result:
        prompt = call.messages[0]["content"]
        if any(each in prompt for each in refused):
            return Fault(400, {"error": {"message": "the moon is wrong", "type": "odd"}})
        return str(SOLVE(call))

    words = [*WORDS, "dataset.limit=10", "agenda.turns=2", "model.max_concurrency=1", "model.max_retries=0"]
    with OpenAIServer(picky) as server:
        main([*words, f"model.base_url={server.base_url}"])
    folder = next(Path("runs").iterdir())
    sessions = [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]
    errors = [session["error"] for session in sessions if session["status"] == "errored"]
    assert (len(sessions), len(errors)) == (10, 7)
    assert all("HTTP 400: the moon is wrong" in error for error in errors)


def test_an_endpoint_that_fails_every_call_stops_the_cell(capsys: pytest.CaptureFixture[str]) -> None:
    first = list[int]()

    def failing(call: Call) -> Result:
        first.append(1)
        return str(SOLVE(call)) if len(first) == 1 else Answer("def ", "network_error")

    words = [*WORDS, "dataset.limit=12", "agenda.turns=2", "model.max_concurrency=1", "model.max_retries=0"]
    with OpenAIServer(failing) as server:
        main([*words, f"model.base_url={server.base_url}"])
    folder = next(Path("runs").iterdir())
    errors = [json.loads(line)["error"] for line in (folder / "sessions.jsonl").read_text().splitlines()]
    assert sum("not attempted" in error for error in errors) >= 4
    assert all("network_error" in error for error in errors)


@pytest.mark.parametrize(
    ("words", "sent"),
    [("invalid temperature: only 1 is allowed for this model", "none"), ("temperature must be > 0", 0.01)],
)
def test_another_temperature_than_the_configured_one_is_said(
    words: str, sent: object, capsys: pytest.CaptureFixture[str]
) -> None:
    def one_only(call: Call) -> Result:
        return error(400, words) if call.body.get("temperature") == 0 else str(SOLVE(call))

    with OpenAIServer(one_only) as server:
        assert main([*WORDS, f"model.base_url={server.base_url}"]) == 0
    assert_before("the endpoint refuses model.temperature=0.0: replies are decoded with another", "Pass@1", capsys)
    folder = next(Path("runs").iterdir())
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["temperatures"] == {"model": {"configured": 0.0, "sent": [sent]}}
