"""Stepwise sessions as a user runs them: baselines, a served model, rescoring and replay, and broken tasks."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Program, Verdict
from codechat.cli.app import main
from codechat.run.run import Outcome
from codechat.run.run import run as run_composed
from codechat.run.settings.compose import compose
from codechat.sandbox.suites.assertions import Assertions
from codechat.testing import Call, OpenAIServer
from support.sreval import growing

pytestmark = pytest.mark.long

ROWS = [growing("a" * 24, 3), growing("b" * 24, 5)]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    """Answers the newest requirement with its reference, whatever the layout, but never the last one."""
    wanted = {turn["instruction"].strip(): turn["solution"] for turn in ROWS[1]["turn_datas"]}

    def answer(call: Call) -> str:
        newest = call.messages[-1]["content"].splitlines()[-1]
        return f"<think>hm</think>```python\n{wanted[newest]}```" if "ValueError" not in newest else "I refuse."

    with OpenAIServer(answer) as running:
        yield running


def run(*words: str) -> Outcome:
    fixed = ["protocol=stepwise", "dataset=sreval_python", "dataset.path=tasks.jsonl", "tracking=none"]
    return run_composed(compose([*fixed, "hardware.workers=1", *words]))


def metrics_of(outcome: Outcome) -> dict[str, Any]:
    assert outcome.status == 0 and outcome.metrics is not None
    return dict(outcome.metrics)


def test_references_pass_every_turn() -> None:
    found = metrics_of(run("model=reference"))
    assert found["acc"] == [1.0] * 5 and found["avg_acc"] == found["complete_rate"] == found["question_acc"] == 1.0


def test_previous_passes_the_turns_whose_tests_do_not_tell_the_step() -> None:
    found = metrics_of(run("model=previous"))
    assert found["acc"] == [1.0, 0.0, 0.0, 0.0, 0.0], "each of these steps is told by its test"
    assert found["complete_rate"] == found["acc_after_first"] == 0.0


def test_earlier_tests_that_the_reference_fails_do_not_count() -> None:
    outcome = run("model=reference", "dataset.limit=1")
    (session,) = [json.loads(line) for line in (outcome.folder / "sessions.jsonl").read_text().splitlines()]
    assert [turn["earlier"] for turn in session["turns"]] == [[], [], [{"turn": 1, "passed": True}]], (
        "turn 1 leaves negative numbers out, so turn 0's test contradicts it"
    )


@pytest.mark.parametrize("prompting", ["full_history", "code_edit", "cumulative"])
def test_a_served_model_in_every_layout(server: OpenAIServer, prompting: str) -> None:
    words = ["model=openai", f"model.base_url={server.base_url}", "model.name=m", "model.api_key_env=null"]
    outcome = run(*words, f"protocol.prompting={prompting}")
    found = metrics_of(outcome)
    assert found["acc"] == [1.0, 1.0, 1.0, 1.0, 0.0] and found["complete_rate"] == 0.5
    assert found["atc"] > 0
    again = run("model=replay", f"model.path={outcome.folder}/sessions.jsonl", f"protocol.prompting={prompting}")
    assert metrics_of(again)["acc"] == found["acc"]
    assert main(["rescore", f"run={outcome.folder}", "out=again", "tracking=none"]) == 0
    assert json.loads(Path("again/metrics.json").read_text())["acc"] == found["acc"]


def test_reasoning_stays_in_the_history_of_the_published_harness_alone(server: OpenAIServer) -> None:
    words = ["model=openai", f"model.base_url={server.base_url}", "model.name=m", "model.api_key_env=null"]
    for harness in ("guarded", "official"):
        session, *_ = run(*words, f"protocol.harness={harness}").sessions
        asked = [message.content for message in session.turns[2].request if message.role == "assistant"]
        assert len(asked) == 2 and {text.startswith("<think>hm</think>") for text in asked} == {harness == "official"}


def test_a_report_and_an_export(here: Path) -> None:
    run("model=reference")
    run("model=previous")
    assert main(["report", "runs=runs", "out=report"]) == 0
    assert "AvgAcc" in (here / "report" / "index.html").read_text()
    assert main(["export", "runs=runs", "out=turns.csv"]) == 0
    assert len(Path("turns.csv").read_text().splitlines()) > 16


def test_other_protocols_and_tasks_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocol=stepwise", "model=echo", "tracking=none"]) == 2
    told = "protocol=stepwise works on tasks whose requirements come step by step, and starter has programming tasks"
    assert told in capsys.readouterr().err
    assert main(["dataset=sreval_python", "dataset.path=tasks.jsonl", "model=reference", "tracking=none"]) == 2
    assert re.search("has no tests.*protocol=refine", capsys.readouterr().err)


def test_a_reference_that_fails_its_turn_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    row = growing("c" * 24)
    row["turn_datas"][1]["solution"] = row["turn_datas"][0]["solution"]
    Path("broken.jsonl").write_text(json.dumps(row) + "\n")
    assert main(["verify", "dataset=sreval_python", "dataset.path=broken.jsonl"]) == 0, (
        "published data keeps its defects"
    )
    shown = capsys.readouterr().out
    assert f"broken.jsonl:1: {'c' * 24}: turn 2: its reference fails" in shown


def test_references_run_on_earlier_tests_in_the_first_of_several_cells_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    check = Assertions.check

    async def counted(suite: Assertions, program: Program, sandbox: Any) -> Verdict:
        checked.append(program.source)
        return await check(suite, program, sandbox)

    monkeypatch.setattr(Assertions, "check", counted)
    rows = [growing("c" * 24, 3)]
    for turn in rows[0]["turn_datas"]:
        turn["solution"] += "# of this test alone\n"
    Path("tasks.jsonl").write_text(json.dumps(rows[0]) + "\n")
    found = []
    for prompting in ("full_history", "code_edit"):
        checked.clear()
        metrics = metrics_of(run("model=previous", f"protocol.prompting={prompting}"))
        found.append((len(checked), metrics["acc"], metrics["kept"], metrics["n"]["kept"]))
    (first, *figures), (second, *again) = found
    # three turns by their own tests, turn 2's code by those of turn 1; three references by earlier tests, once
    assert (first, second) == (4 + 3, 4) and figures == again


def test_code_that_hangs_is_not_run_on_earlier_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    row = growing("d" * 24, 3)
    Path("tasks.jsonl").write_text(json.dumps(row) + "\n")
    hanging = row["turn_datas"][1]["solution"]
    checked: list[str] = []
    check = Assertions.check

    async def hangs(suite: Assertions, program: Program, sandbox: Any) -> Verdict:
        if program.source.strip() != hanging.strip():
            return await check(suite, program, sandbox)
        checked.append("".join(suite.snippets))
        return Verdict.without_run("timeout", "the CPU time of the whole program is used up")

    monkeypatch.setattr(Assertions, "check", hangs)
    outcome = run("model=previous")
    (session,) = [json.loads(line) for line in (outcome.folder / "sessions.jsonl").read_text().splitlines()]
    last = session["turns"][2]
    assert last["outcome"] == "timeout" and last["earlier"] == [{"turn": 1, "passed": False}]
    _, second, third = (turn["test"].strip() for turn in row["turn_datas"])
    assert any(third in each for each in checked) and not any(second in each for each in checked), "its own tests alone"
