"""Cells as they were before the core was opened: records, metrics and ids stay, but for fields that end in `_s`.

`cells/records/` was written by that version. Rules and baselines have a version in the ids of the cells that use them;
where that was raised since, the id is compared under version 1, the rules ask for what they asked for then, and what
the baselines write has its own tests.
Where a verdict was decided is told since: `records/decided.json` holds that apart. So is which turn was tested as an
earlier one; metrics.json counts since what was loaded, and replies. The rest is as it was.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Applicability, Instruction
from codechat.base.files import from_yaml
from codechat.base.records import read_sessions
from codechat.cli.app import main
from codechat.run.cell import Cell, build_cell
from codechat.run.journal import read_values
from codechat.run.run import Outcome, run_built
from codechat.run.running.observer import Silent
from codechat.run.settings.compose import compose
from codechat.studies.refine.patterns import applicable
from codechat.testing import Call, OpenAIServer, Result, dataset_tasks, fading_solver, overflow

HERE = Path(__file__).parent / "cells"
CELLS: dict[str, dict[str, Any]] = from_yaml((HERE / "cells.yaml").read_text())
RECORDS = HERE / "records"
DECIDED: dict[str, Any] = json.loads((RECORDS / "decided.json").read_text())
TOLD_SINCE = ("decided", "inside", "tested_as", "without_code", "loaded", "replies", "unreadable")
RENAMED = {
    "Conversation Accuracy (share)": "Conversation Accuracy",
    "Conversation Accuracy (all met)": "Conversation Accuracy, all or nothing",
}
IDS: dict[str, Any] = json.loads((RECORDS / "ids.json").read_text())
ANSWERED_BEFORE_THE_INTERRUPTION = 116  # of 119: three belong to decisions that the budget cut off at their re-ask
REPLIES: dict[str, list[str]] = from_yaml((HERE / "replies.yaml").read_text())


def tasks() -> list[Any]:
    return [*dataset_tasks("starter"), *dataset_tasks("jsonl", str(HERE / "tasks.jsonl"))]


def behaviour() -> Any:
    """Code that breaks now and then, judges of every kind of answer, and a model whose context is short."""
    fading = fading_solver(tasks())

    def answer(call: Call) -> Result:
        first = call.messages[0]["content"]
        luck = int(hashlib.sha256(first.encode()).hexdigest(), 16) % 10
        for words, yes, no in (
            ("VERDICT: NOT_APPLICABLE", "APPLICABLE", "NOT_APPLICABLE"),
            ("VERDICT: ADHERED", "ADHERED", "VIOLATED"),
        ):
            if words in first:
                if luck == 0 or (luck == 1 and len(call.messages) == 1):
                    return "I cannot say" + "." * len(call.messages)  # words as then: a repeated one ends re-asks
                return f"Looked at.\nREASON: luck {luck}.\nVERDICT: {yes if luck > 4 else no}"
        if str(call.body["model"]).startswith("short") and len(call.messages) > 7:
            return overflow()
        return fading(call)  # type: ignore[return-value]

    return answer


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(behaviour()) as running:
        yield running


def words_of(name: str, url: str) -> list[str]:
    """The command line of a cell."""
    replies = {f"${{{key}}}": json.dumps(value).replace("\\n", "\n") for key, value in REPLIES.items()}
    found = []
    for word in CELLS[name]["set"]:
        said = str(word)
        for place, text in {**replies, "SERVER": url, "HERE": str(HERE)}.items():
            said = said.replace(place, text)
        found.append(said)
    return [*found, "tracking=none", "hardware.workers=1"]


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if not key.endswith("_s")}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def records(outcome: Outcome) -> list[Any]:
    return [without_times(json.loads(line)) for line in (outcome.folder / "sessions.jsonl").read_text().splitlines()]


def kept(name: str) -> list[Any]:
    return [without_times(json.loads(line)) for line in (RECORDS / f"{name}.sessions.jsonl").read_text().splitlines()]


def without_ids(sessions: list[Any]) -> list[Any]:
    return [{key: value for key, value in each.items() if key not in ("cell_id", "session_id")} for each in sessions]


def as_then(value: Any) -> Any:
    """Records or metrics without what was added since, measures by their names of then."""
    if isinstance(value, dict):
        added = (
            {"asked"} if isinstance(value.get("asked"), list) else set()
        )  # a turn's instructions; a check has a bool
        return {key: as_then(each) for key, each in value.items() if key not in (*TOLD_SINCE, *added)}
    if isinstance(value, str):
        return RENAMED.get(value, value)
    return [as_then(each) for each in value] if isinstance(value, list) else value


def leaves(value: Any) -> Iterator[Any]:
    """All numbers of nested mappings and lists; an interval that is missing is None."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)
    else:
        yield value


def told_since(sessions: list[Any]) -> list[list[Any]]:
    """Of each turn where its verdict was decided, why inside, and where those of its checks were."""
    return [
        [
            [turn["decided"], turn.get("inside"), *(check["decided"] for check in turn.get("checks", ()))]
            for turn in session["turns"]
        ]
        for session in sessions
    ]


def cell_of(name: str, url: str, runs: Path) -> Cell:
    return build_cell(compose([*words_of(name, url), f"runs_dir={runs}"]))


def assert_id(cell: Cell, before: str, versions: list[str]) -> None:
    """The id of then; or, of what has a version, the id that it would have under version 1."""
    assert (before in cell.older and before != cell.id) if versions else (before == cell.id)


def fits_as_then(name: str) -> Callable[[str, Instruction], Applicability]:
    """The rules' decisions of applicability, those that the records hold as they were: what later versions ask for less
    changes what is drawn, which says nothing about the core.
    """
    then: dict[tuple[str, str], bool] = {}
    for session in kept(name):
        code = ""
        for turn in session["turns"]:
            read = session["turns"][turn["read_turn"]]["code"] if "read_turn" in turn else code
            then.update(((read, one["id"]), one["applicable"]) for one in turn["candidates"] if one["by"] == "rules")
            code = turn.get("code") or code

    def decide(code: str, instruction: Instruction) -> Applicability:
        now = applicable(code, instruction)
        return replace(now, applicable=then.get((code, instruction.id), now.applicable))

    return decide


@pytest.mark.parametrize("name", [name for name in CELLS if "baseline" not in CELLS[name].get("versions", [])])
def test_a_cell_is_what_it_was(
    name: str, server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "rules" in CELLS[name].get("versions", []):
        monkeypatch.setattr("codechat.studies.refine.judge_rules.applicable", fits_as_then(name))
    cell, versions = cell_of(name, server.base_url, tmp_path), CELLS[name].get("versions", [])
    assert_id(cell, IDS["cells"][name], versions)
    outcome = run_built(cell, ["codechat"])
    assert outcome.status == 0
    assert without_ids(as_then(records(outcome))) == without_ids(kept(name))
    assert [each["cell_id"] for each in records(outcome)] == [cell.id] * len(kept(name))
    if not versions:
        assert as_then(records(outcome)) == kept(name)
    metrics = json.loads((outcome.folder / "metrics.json").read_text())
    then = json.loads((RECORDS / f"{name}.metrics.json").read_text())
    if then["completed"] == 1:  # the interval of one task had no width, which looked certain: there is none now
        assert set(leaves(metrics.pop("ci"))) == {None} != set(leaves(then.pop("ci")))
    assert as_then(without_times(metrics)) == without_times(then)
    assert {"metrics": metrics["decided"], "turns": told_since(records(outcome))} == DECIDED[name]


@pytest.mark.parametrize("name", ["drifter", "refactorer"])
def test_a_baseline_has_another_id_and_asks_for_the_same(name: str, tmp_path: Path) -> None:
    cell = cell_of(name, "", tmp_path)
    assert_id(cell, IDS["cells"][name], CELLS[name]["versions"])
    now, then = records(run_built(cell, ["codechat"])), kept(name)
    assert [each["agenda"] for each in now] == [each["agenda"] for each in then]
    assert [each["turns"][0]["response"] for each in now] == [each["turns"][0]["response"] for each in then]


@pytest.mark.parametrize("preset", IDS["presets"], ids=lambda preset: " ".join(preset["set"]))
def test_the_ids_of_presets(preset: dict[str, Any]) -> None:
    cell = build_cell(compose(preset["set"]))
    assert preset["id"] in (cell.id, *cell.older)
    ruled = any(cell.config.versions() > 1 for group in [cell.config.judge.kind] if group in ("rules", "hybrid"))
    assert (preset["id"] == cell.id) == (not ruled or cell.config.protocol.kind != "refine")  # type: ignore[attr-defined]
    assert cell.folder_of(preset["id"]).name == preset["folder"]


def test_a_cell_that_was_interrupted_then_goes_on_without_paying_twice(server: OpenAIServer, tmp_path: Path) -> None:
    cell = cell_of("served_llm", server.base_url, tmp_path)
    cell.folder.mkdir()
    shutil.copy(RECORDS / "interrupted.journal.db", cell.folder / "journal.db")
    begun = server.answered
    outcome = run_built(cell, ["codechat"])
    resumed = server.answered
    assert outcome.status == 0
    assert as_then(records(outcome)) == kept("served_llm")
    assert run_built(cell_of("served_llm", server.base_url, tmp_path / "whole"), ["codechat"]).status == 0
    whole = server.answered - resumed
    assert resumed - begun == whole - ANSWERED_BEFORE_THE_INTERRUPTION


def test_a_cell_of_earlier_rules_is_not_continued_and_says_so(tmp_path: Path) -> None:
    cell = cell_of("echo", "", tmp_path)
    begun = cell.folder_of(IDS["cells"]["echo"])
    begun.mkdir()
    shutil.copy(RECORDS / "interrupted.journal.db", begun / "journal.db")
    notes: list[str] = []

    class Listener(Silent):
        def note(self, text: str) -> None:
            notes.append(text)

    assert run_built(cell, ["codechat"], Listener()).status == 0
    assert f"{begun} was begun under other rules, baselines or repositories: it is not continued" in notes


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.sessions.jsonl")), ids=lambda path: path.name.partition(".")[0])
def test_records_of_then_load_and_are_written_as_they_were(path: Path) -> None:
    lines = path.read_text().splitlines()
    read = [as_then(json.loads(record.line())) for record in read_sessions(path)]
    assert read == [as_then(json.loads(line)) for line in lines]


def test_a_journal_of_then_is_read_without_being_touched() -> None:
    path = RECORDS / "interrupted.journal.db"
    before = path.read_bytes()
    values = list(read_values(path, "applicability"))
    assert len(values) > 10
    assert all(re.fullmatch(r"\d+/applicability/[\w-]+", step) for _, step, _ in values)
    assert {json.loads(value)["by"] for _, _, value in values} == {"llm"}
    assert path.read_bytes() == before


def test_a_report_reads_cells_of_then(tmp_path: Path) -> None:
    """Their config.yaml is today's: its keys have not changed."""
    for name in ("served_llm", "static_full"):
        cell = cell_of(name, "http://127.0.0.1:9/v1", tmp_path)
        cell.folder.mkdir()
        (cell.folder / "config.yaml").write_text(cell.config_yaml())
        for kind in ("sessions.jsonl", "metrics.json"):
            shutil.copy(RECORDS / f"{name}.{kind}", cell.folder / kind)
    assert main(["report", f"runs={tmp_path}", f"out={tmp_path / 'report'}"]) == 0
    tables = " ".join(path.read_text() for path in (tmp_path / "report" / "tables").glob("*.md"))
    assert "MST@7" in tables and "Conversation Accuracy" in tables
