"""Refinement in JavaScript and Java: offline and served, killed and resumed, replayed, rescored, reported."""

import csv
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.app import main
from codechat.cli.sweep import read_recipe
from codechat.datasets import DATASETS
from codechat.run.cell import build_cell
from codechat.run.run import Outcome
from codechat.run.run import run as run_composed
from codechat.run.settings.compose import compose
from codechat.sandbox.languages import grammar
from codechat.testing import OpenAIServer
from support.machine import needs_java, needs_node
from support.mistakes import mistake
from support.plugins import ROOT
from support.spoken import refactoring_solver, words_for

LANGUAGES = [pytest.param("javascript", marks=needs_node), pytest.param("java", marks=needs_java)]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Outcome:
    return run_composed(compose([*words]))


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if not key.endswith("_s")}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def records(folder: Path) -> list[Any]:
    return [timeless(json.loads(line)) for line in (folder / "sessions.jsonl").read_text().splitlines()]


def judged(folder: Path) -> list[Any]:
    """What every turn came to, whoever answered."""
    return [
        [[turn["code"], turn["outcome"], turn["adherence"] and turn["adherence"]["verdict"]] for turn in each["turns"]]
        for each in records(folder)
    ]


@needs_node
def test_the_starter_in_javascript_is_broken_as_often_as_the_rates_say(here: Path) -> None:
    words = ["dataset=starter_javascript", "dataset.limit=2", "agenda.turns=4", "tracking=none", "hardware.workers=1"]
    kept = run(*words, "model.regression={cosmetic: 0, structural: 0, semantic: 0}")
    assert kept.metrics is not None and kept.metrics["pass_at_1"] == [1.0] * 4
    broken = run(*words, "model.regression={cosmetic: 1, structural: 1, semantic: 1}", "model.self_correction=0")
    assert broken.metrics is not None and broken.metrics["pass_at_1"][:2] == [1.0, 0.0]
    session = records(kept.folder)[0]
    assert session["language"] == "javascript" and session["turns"][0]["decided"] == "outside"
    assert session["turns"][0]["response"].startswith("```javascript\n")


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_served_cell_is_resumed_replayed_and_rescored_with_equal_records(language: str, here: Path) -> None:
    words = words_for(language, here)
    tasks = run(*words, "model=echo", "runs_dir=echo").cell.tasks  # it also makes the tools that tests in Java need
    with OpenAIServer(refactoring_solver(tasks)) as server:
        served = [*words, "model=openai", f"model.base_url={server.base_url}", "model.name=m", "model.api_key_env=null"]
        served += ["model.max_concurrency=1", "model.cache=false"]
        process = subprocess.Popen(
            [sys.executable, "-m", "codechat", *served, "runs_dir=killed"],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until = time.monotonic() + 120
        while server.answered < 4 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL and server.answered >= 4
        begun = server.answered
        resumed = run(*served, "runs_dir=killed")
        assert resumed.status == 0 and server.answered - begun < 3 * len(tasks)
        whole = run(*served, "runs_dir=whole")
    assert records(resumed.folder) == records(whole.folder)
    assert whole.metrics is not None and whole.metrics["pass_at_1"] == [1.0] * 3
    assert any({"adhered", "violated"} & {*turn} for session in judged(whole.folder) for turn in session)
    again = run(*words, "model=replay", f"model.path={whole.folder}/sessions.jsonl", "runs_dir=again")
    assert judged(again.folder) == judged(whole.folder)
    assert main(["rescore", f"run={whole.folder}", "out=rescored", "tracking=none"]) == 0
    (rescored,) = (path.parent for path in Path("rescored").rglob("sessions.jsonl"))
    assert judged(rescored) == judged(whole.folder)


@pytest.mark.long
@needs_java
def test_a_drifter_in_java_gives_the_same_records_whatever_runs_at_once(here: Path) -> None:
    words = [*words_for("java", here), "model.regression={cosmetic: 0.5, structural: 0.5, semantic: 0.5}"]
    one = run(*words, "model.max_concurrency=1", "runs_dir=one")
    two = run(*words, "judge.lookahead=3", "runs_dir=two")
    assert records(one.folder) == records(two.folder)
    outcomes = {turn["outcome"] for session in records(one.folder) for turn in session["turns"]}
    assert outcomes <= {"pass", "fail", "timeout"}, "a slip that a compiler would refuse is none"


@pytest.mark.long
@needs_node
def test_a_report_pairs_the_languages_by_task(here: Path) -> None:
    tasks = "dataset.tasks=[starter/mask_middle,starter/limit_repeats,starter/run_lengths]"
    assert main(["-m", "+sweep=languages", tasks, "agenda.turns=4", "tracking=none", "hardware.workers=1"]) == 0
    assert main(["report", "runs=runs", "out=report"]) == 0
    (row,) = csv.DictReader((here / "report/tables/by_language.csv").read_text().splitlines())
    assert row["datasets"] == "starter, starter_javascript"
    assert (row["model"], row["a"], row["b"], row["tasks"]) == ("drifter", "python", "javascript", "3")
    assert float(row["first_a"]) == float(row["first_b"]) == 1.0
    assert float(row["mst_difference"]) == pytest.approx(float(row["mst_a"]) - float(row["mst_b"]))


def test_the_sweep_over_languages_draws_the_same_tasks_in_both(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (grid,) = read_recipe("languages").grids
    words = [f"dataset.tasks={grid['dataset.tasks']}", "protocol.prompts=neutral"]
    cells = [build_cell(compose([f"dataset={name}", *words])) for name in grid["dataset"]]
    python, javascript = ([task.task_id for task in cell.tasks] for cell in cells)
    assert python == javascript and len(python) == 20
    monkeypatch.setenv("COLUMNS", "500")
    assert main(["-m", "+sweep=languages", "dataset.limit=2", "dry_run=true", "tracking=none"]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("would hold 2 sessions") == 2
    assert max(len(line) for line in printed.out.splitlines() if line.startswith("cell ")) < 250


def test_an_estimate_warns_of_prompts_that_speak_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset=starter_javascript", "model=gpt5_nano", "dry_run=true", "tracking=none"]) == 0
    assert "protocol.prompts=neutral" in capsys.readouterr().err


def test_no_node_is_told_before_anything_runs() -> None:
    with mistake("JavaScript", "/nowhere/node"):
        run("dataset=starter_javascript", "sandbox.node=/nowhere/node", "tracking=none")


@pytest.mark.parametrize("words", [["model=echo"], ["model=drifter", "judge=llm"]])
def test_a_missing_grammar_is_told_with_the_line_that_installs_it(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "tree_sitter" else whole(name))
    grammar._require.cache_clear()
    try:
        with mistake("tree_sitter", "pip install 'codechat[constraints]'"):
            build_cell(compose(["dataset=starter_javascript", *words]))
        assert build_cell(compose(["dataset.limit=1"])).id, "the default run needs none"
    finally:
        grammar._require.cache_clear()


def test_ids_of_python_cells_do_not_depend_on_what_holds_for_other_languages() -> None:
    cells = {name: build_cell(compose([f"dataset={name}", "model=echo"])) for name in ("starter", "starter_javascript")}
    pools = {name: cell.contents["instructions"] for name, cell in cells.items()}
    assert pools["starter"] is not None and pools["starter_javascript"] is not None
    assert len(pools["starter"].instructions) == 233
    assert pools["starter"].content_hash != pools["starter_javascript"].content_hash
    assert not {"javascript", "java"} & {one.language for one in pools["starter"].instructions}
    assert "starter_javascript" in {one.name for one in DATASETS}


def test_prompts_that_speak_of_python_are_said_at_the_start() -> None:
    def said(*words: str) -> list[str]:
        served = ["model=openai", "model.name=m", "model.base_url=http://127.0.0.1:9/v1", "model.api_key_env=null"]
        remarks = build_cell(compose([*served, *words])).remarks
        return [remark.split(" speaks")[0] for remark in remarks if "speaks of Python" in remark]

    words = ["dataset=starter_javascript", "judge=llm"]
    assert said(*words) == ["warning: protocol.prompts", "warning: judge.prompts"]
    assert said(*words, "protocol.prompts=neutral", "judge.prompts=neutral") == said("dataset=starter") == []
