"""Cells of protocol=assist: without a key, replayed, judged again, interrupted, and without a hidden text."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.base.records import read_sessions
from codechat.cli.commands.rescore import run_rescore
from codechat.datasets import DATASETS
from codechat.report.metrics.spending import Tariff
from codechat.run.cell import build_cell
from codechat.run.cell.estimate import estimate_of
from codechat.run.run import Outcome, run
from codechat.run.settings.compose import compose
from codechat.studies.cab.tasks import AssistTask
from codechat.studies.cab.turns import AssistTurn
from codechat.testing import Call, OpenAIServer, Result, error
from support.cab import Rooms, hold, issue, judges, repository, says, write
from support.mistakes import mistake

pytestmark = pytest.mark.long

STARTER = ("protocol=assist", "dataset=assist_starter", "tracking=none", "hardware.workers=1")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def comparable(value: Any) -> Any:
    """Without ids of cell and session, labels and times."""
    if isinstance(value, dict):
        gone = ("cell_id", "session_id", "model")
        return {key: comparable(each) for key, each in value.items() if not key.endswith("_s") and key not in gone}
    return [comparable(each) for each in value] if isinstance(value, list) else value


def sessions(outcome: Outcome | Path) -> list[dict[str, Any]]:
    folder = outcome if isinstance(outcome, Path) else outcome.folder
    return [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]


def test_the_starter_needs_no_further_option(here: Path) -> None:
    outcome = run(compose(STARTER))
    assert outcome.status == 0 and outcome.metrics is not None
    assert outcome.metrics["verdicts"] == {"correct": 1.0, "partially_correct": 0.0, "incorrect": 0.0, "undecided": 0}
    assert outcome.metrics["satisfied"] == 1.0 and outcome.metrics["rounds"] == 2.0, "two, one and three"
    for session in read_sessions(outcome.folder / "sessions.jsonl"):
        own = AssistTurn.of(session.turns[0])
        assert [(each.command, each.status) for each in own.explored] == [("ls", 0), ("git log --oneline", 0)]


def test_rehearsed_roles_play_nowhere_else(here: Path) -> None:
    words = ["protocol=assist", "dataset=cab", "dataset.path=x", "tracking=none"]
    write(here / "x", issue())
    with mistake("rehearsed_user", "assist_starter"):
        run(compose([*words, "environment=none"]))


def test_commands_need_a_repository(here: Path) -> None:
    write(here / "x", issue())
    words = ["protocol=assist", "dataset=cab", "dataset.path=x", "tracking=none", "model=maintainer"]
    roles = ["model@protocol.roles.user=gpt5_nano", "model@protocol.roles.judge=gpt5"]
    with mistake("ann/shop#4", "dataset.repos=DIR", "environment=none"):
        run(compose([*words, *roles]))
    assert build_cell(compose([*words, *roles, "environment=none"])).tasks


def test_dialogues_are_held_again_from_their_recording(here: Path) -> None:
    first = run(compose(STARTER))
    path = first.folder / "sessions.jsonl"
    roles = [f"model@protocol.roles.{role}=replay" for role in ("user", "judge")]
    paths = [f"{place}.path={path}" for place in ("model", "protocol.roles.user", "protocol.roles.judge")]
    again = run(compose([*STARTER, "model=replay", *roles, *paths]))
    assert again.status == 0
    assert comparable(sessions(again)) == comparable(sessions(first))


def test_recorded_dialogues_are_judged_by_another_judge(here: Path) -> None:
    first = run(compose(STARTER))
    replies = {"starter/pebble#1": judges(True, False, verdict="PARTIALLY CORRECT", verbosity="VERBOSE")}

    def answer(call: Call) -> Result:
        conditions = len(re.findall(r"^CONDITION \d+:", call.messages[0]["content"], re.MULTILINE))
        return replies["starter/pebble#1"] if conditions == 2 else judges(*[False] * conditions, verdict="CORRECT")

    with OpenAIServer(answer, models=["strict"]) as server:
        place = "protocol.roles.judge"
        words = [f"run={first.folder}", "out=again", f"model@{place}=openai", f"{place}.name=strict"]
        words += [
            f"{place}.base_url={server.base_url}",
            f"{place}.api_key_env=null",
            f"{place}.prices={{input: 1, output: 1}}",
        ]
        assert run_rescore(words) == 0
        assert len(server.calls) == 3, "nobody but the judge is asked"
    old, new = sessions(first), sessions(here / "again")
    assert {each["task_id"]: each["judgement"]["verdict"] for each in new} == {
        "starter/till#1": "CORRECT", "starter/pebble#1": "PARTIALLY_CORRECT", "starter/kettle#1": "CORRECT",
    }  # fmt: skip
    for before, after in zip(old, new, strict=True):
        assert [turn["answer"] for turn in after["turns"]] == [turn["answer"] for turn in before["turns"]]
        kept = [call for turn in before["turns"] for call in turn["calls"] if call["role"] != "judge"]
        assert [call for turn in after["turns"] for call in turn["calls"] if call["role"] != "judge"] == kept
    metrics = json.loads((here / "again" / "metrics.json").read_text())
    assert metrics["agreement"] == pytest.approx(1 / 3), "the parts of two CORRECT ones imply INCORRECT"
    assert metrics["tokens"]["judge"]["input_tokens"] > 0 and metrics["cost_usd"]["judge"] > 0
    with pytest.raises(UserError, match=r"protocol.rounds cannot change"):
        run_rescore([f"run={first.folder}", "out=third", "protocol.rounds=3"])
    assert run_rescore([f"run={first.folder}", "out=whole", "protocol.judged=answer"]) == 0
    ids = {each["cell_id"] for folder in ("again", "whole") for each in sessions(here / folder)}
    assert len(ids) == 2, "another judge, another cell"


def test_dialogues_are_judged_again_without_the_clones(here: Path) -> None:
    commit = repository(here / "clones" / "ann" / "shop", {"README": "Set it."})
    write(here / "issues", issue(commit_id=commit))

    def answer(call: Call) -> Result:
        given = {"model": "ANSWER: Set it.", "user": says("Thanks.", "FULLY_SATISFIED"), "judge": judges(True)}
        return given[call.body["model"]]

    with OpenAIServer(answer, models=["model", "user", "judge"]) as server:
        words = ["protocol=assist", "dataset=cab", "dataset.path=issues", "dataset.repos=clones", "tracking=none"]
        first = run(compose([*words, *served(server)]))
        assert first.status == 0
        (here / "clones").rename(here / "elsewhere")
        assert run_rescore([f"run={first.folder}", "out=again", "protocol.judged=answer"]) == 0
        asked = Counter(call.body["model"] for call in server.calls)
    assert asked == {"model": 1, "user": 1, "judge": 2}


def test_an_estimate_knows_the_calls_of_an_issue(here: Path) -> None:
    paid = ["model=gpt5", "model@protocol.roles.user=gpt5_nano", "model@protocol.roles.judge=gpt5", "dataset.limit=1"]
    for words, answers in (
        (["protocol.explore=every"], 60),
        (["protocol.explore=first"], 24),
        (["protocol.steps=0"], 10),
    ):
        found = estimate_of(build_cell(compose([*STARTER, *paid, *words])), Tariff())
        assert {role: found.calls[role] for role in ("model", "user", "judge")} == {
            "model": answers, "user": 10, "judge": 1,
        }  # fmt: skip


@pytest.fixture
def broken() -> Iterator[OpenAIServer]:
    """Three commands, then two answers; the user's endpoint fails at its second call until it is mended."""
    said = [
        "EXPLORE: echo a > note; cat note",
        "EXPLORE: cat note; ls",
        "ANSWER: first",
        "EXPLORE: cat note",
        "ANSWER: b",
    ]

    def answer(call: Call) -> Result:
        role = call.body["model"]
        if role == "model":
            return said[len([each for each in call.messages if each["role"] == "assistant"])]
        if role == "judge":
            return judges(True, True, True)
        second = "MAINTAINER_2" in call.messages[0]["content"]
        if second and not server.mended:  # type: ignore[attr-defined]
            return error(500, "out of order")
        return says("Done.", "FULLY_SATISFIED") if second else says("Go on.")

    with OpenAIServer(answer, models=["model", "user", "judge"]) as server:
        server.mended = False  # type: ignore[attr-defined]
        yield server


def served(server: OpenAIServer) -> list[str]:
    words = []
    for place, name in (("model", "model"), ("protocol.roles.user", "user"), ("protocol.roles.judge", "judge")):
        words += [f"model@{place}=openai" if place != "model" else "model=openai", f"{place}.name={name}"]
        words += [f"{place}.base_url={server.base_url}", f"{place}.api_key_env=null", f"{place}.max_retries=0"]
    return words


def test_a_failed_call_is_never_judged_and_a_resumed_session_pays_nothing_twice(
    here: Path, broken: OpenAIServer
) -> None:
    words = [*STARTER, *served(broken), "dataset.tasks=['starter/till#1']"]
    failed = run(compose(words))
    assert failed.status == 3 and failed.metrics is not None
    assert (failed.metrics["errored"], failed.metrics["verdicts"]["correct"]) == (1, None)
    (session,) = sessions(failed)
    assert session["status"] == "errored" and "out of order" in session["error"] and session.get("judgement") is None
    asked = Counter(call.body["model"] for call in broken.calls)
    assert asked == {"model": 5, "user": 2}
    left = estimate_of(build_cell(compose(words)), Tariff())
    assert (left.turns, left.calls["model"]) == (8, 48), "two turns have answers, of several calls each"
    broken.mended = True  # type: ignore[attr-defined]
    done = run(compose(words))
    assert done.status == 0
    assert Counter(call.body["model"] for call in broken.calls) == {"model": 5, "user": 3, "judge": 1}
    (session,) = sessions(done)
    printed = session["turns"][1]["calls"][1]["request"][-1]["content"]
    assert "\na\n" in printed, "what an earlier command wrote is there"


def strict_rows() -> list[AssistTask]:
    folder = os.environ.get("CODECHAT_TEST_DATA")
    if folder is None:
        pytest.skip("CODECHAT_TEST_DATA is not set")
    path = Path(folder) / "cab_verified_strict.jsonl.gz"
    found = DATASETS.build(DATASETS.validate({"benchmark": "cab", "path": str(path)})).tasks
    return [task for task in found if isinstance(task, AssistTask)]


def plain(text: str) -> str:
    return " ".join(text.split())


async def test_no_maintainer_of_the_strict_rows_sees_a_hidden_text(tmp_path: Path) -> None:
    tasks = strict_rows()
    assert len(tasks) == 83
    for number, task in enumerate(tasks):
        secret = f"It lacks: {task.conditions[0]}"
        said = {
            "model": ["EXPLORE: ls", "ANSWER: It is so.", "ANSWER: I see."],
            "user": [
                f"{secret}\nI tried.",
                f"I tried.\n{secret}",
                says("I tried.", reason=secret),
                says("Yes.", "FULLY_SATISFIED"),
            ],
            "judge": [judges(*[False] * len(task.conditions), verdict="INCORRECT")],
        }
        folder = tmp_path / str(number)
        folder.mkdir()
        held = await hold(folder, said, task=task, rooms=Rooms(), references=3, steps=1)
        seen = plain("\n".join(message.content for each in held.requests("model") for message in each))
        told = plain("\n".join(message.content for each in held.requests("judge") for message in each))
        hidden = [*task.conditions, *(comment.body for comment in task.thread)]
        for text in (each for each in map(plain, hidden) if each and each not in plain(task.prompt)):
            assert text not in seen, task.task_id
            assert text in told, "the judge sees it"
        assert "SATISFIED" not in seen and "REASON" not in seen and "It lacks" not in seen
