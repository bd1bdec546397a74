"""The columns that a protocol's own fields become in an export."""

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyarrow import parquet

from codechat.base.records import SessionRecord, read_sessions, write_sessions
from codechat.cli.commands import export
from codechat.cli.commands.export import COLUMNS, ExportedCell, Row, own_columns, run_export
from support.cab import Assisted, write_assisted
from support.codeif import Talk, write_talk
from support.multicodeif import Constrained, write_constrained

TURN: dict[str, Any] = {"turn": 0, "outcome": "pass", "passed": True, "passed_base": True}


def session(*turns: dict[str, Any]) -> SessionRecord:
    made = [{**TURN, "turn": number, **fields} for number, fields in enumerate(turns)]
    return SessionRecord(
        cell_id="c", session_id="s", task_id="t", dataset="d", model="m", protocol="own", agenda=[], seed=0,
        status="completed", turns=made,
    )  # fmt: skip


def test_every_field_has_a_column_of_its_kind() -> None:
    told = session(
        {"round": "initial", "steps": 1, "share": 1, "kept": True, "wanted": None, "checks": [{"id": "a"}], "seed": 3},
        {"round": None, "steps": 2, "share": 0.5, "kept": False, "wanted": {"id": "x", "weight": 2}, "mixed": 3},
        {"mixed": "three", "nested": {"a": {"b": 1}}, "many": {f"k{n}": n for n in range(20)}},
    )
    columns = {column.name: column for column in own_columns([told], {"seed"})}
    assert {name: column.kind for name, column in columns.items()} == {
        "wanted_id": "string", "wanted_weight": "int64", "checks": "string", "kept": "bool", "many": "string",
        "mixed": "string", "nested": "string", "own_seed": "int64", "round": "string", "share": "float64",
        "steps": "int64",
    }  # fmt: skip
    turns = [Row(told, turn, ExportedCell(Path())) for turn in told.turns]
    rows = [{name: column.value(turn) for name, column in columns.items()} for turn in turns]
    assert [row["wanted_id"] for row in rows] == [None, "x", None]
    assert [row["steps"] for row in rows] == [1, 2, None]
    assert rows[0]["checks"] == '[{"id": "a"}]'
    assert [row["mixed"] for row in rows] == [None, "3", '"three"']
    assert json.loads(rows[2]["nested"]) == {"a": {"b": 1}}
    assert columns["checks"].meaning.endswith("as JSON")
    assert own_columns([session({}, {})], set()) == [], "a refinement has no more columns"


def test_a_conversation_is_exported_whole(tmp_path: Path) -> None:
    folder = write_talk(Talk("m", "dynamic", tasks=3), tmp_path)
    for name in ("turns.csv", "turns.parquet"):
        assert run_export([f"run={folder}", f"out={tmp_path / name}"]) == 0
    turns = [
        turn for line in (folder / "sessions.jsonl").read_text().splitlines() for turn in json.loads(line)["turns"]
    ]
    with (tmp_path / "turns.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    frame = pd.read_parquet(tmp_path / "turns.parquet")
    assert list(frame.columns) == list(rows[0])
    own = [name for name in frame.columns if name not in {column.name for column in COLUMNS}]
    assert own == [
        "checks",
        "discarded",
        "level",
        "requirement_id",
        "requirement_strategy",
        "requirement_text",
        "round",
    ]
    for turn, row, (_, line) in zip(turns, rows, frame.iterrows(), strict=True):
        assert row["round"] == line["round"] == turn["round"]
        assert json.loads(row["checks"]) == json.loads(line["checks"]) == turn["checks"]
        assert bool(line["discarded"]) is turn["discarded"]
        assert row["requirement_text"] == (turn["requirement"] or {"text": ""})["text"]
        assert row["agenda_type"] == ""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_cell_is_written_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    folder = write_talk(Talk("m", "dynamic", tasks=4), tmp_path)
    run_export([f"run={folder}", f"out={tmp_path / 'whole'}.{suffix}"])
    monkeypatch.setattr(export, "CHUNK", 3)
    run_export([f"run={folder}", f"out={tmp_path / 'pieces'}.{suffix}"])
    read = pd.read_csv if suffix == "csv" else pd.read_parquet
    whole, pieces = (read(tmp_path / f"{name}.{suffix}") for name in ("whole", "pieces"))
    assert len(whole) > 9
    pd.testing.assert_frame_equal(whole, pieces)
    if suffix == "parquet":
        assert parquet.ParquetFile(tmp_path / "pieces.parquet").num_row_groups == -(-len(whole) // 3)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_cell_without_a_turn_has_its_columns(tmp_path: Path, suffix: str) -> None:
    write_sessions(tmp_path / "sessions.jsonl", [session().model_copy(update={"status": "errored"})])
    run_export([f"run={tmp_path}", f"out={tmp_path / 'none'}.{suffix}"])
    frame = pd.read_csv(tmp_path / "none.csv") if suffix == "csv" else pd.read_parquet(tmp_path / "none.parquet")
    assert list(frame.columns) == [column.name for column in COLUMNS]
    assert frame.empty


def test_constraints_are_exported_with_their_turns(tmp_path: Path) -> None:
    folder = write_constrained(Constrained("m", share=0.02, options={"rounds": 1}), tmp_path)
    assert run_export([f"run={folder}", f"out={tmp_path / 'turns.csv'}"]) == 0
    assert run_export([f"run={folder}", f"out={tmp_path / 'turns.parquet'}"]) == 0
    frame = pd.read_parquet(tmp_path / "turns.parquet")
    assert {"level", "round", "parses", "constraints"} <= {*frame.columns}
    recorded = [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]
    turns = [turn for session in recorded for turn in session["turns"]]
    assert [json.loads(each) for each in frame["constraints"]] == [turn["constraints"] for turn in turns]
    assert [*frame["round"]] == [turn["round"] for turn in turns]
    assert [*frame["parses"]] == [turn["parses"] for turn in turns]


def test_an_assistance_is_exported_with_its_judgement(tmp_path: Path) -> None:
    folder = write_assisted(Assisted("m", issues=1, cohorts=("recent",), undecided=3), tmp_path)
    assert run_export([f"run={folder}", f"out={tmp_path / 'turns.csv'}"]) == 0
    with (tmp_path / "turns.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    sessions = list(read_sessions(folder / "sessions.jsonl"))
    told = [(session, turn) for session in sessions for turn in session.turns]
    for (session, turn), row in zip(told, rows, strict=True):
        own, judged = turn.model_extra or {}, session.judgement
        assert row["judgement_verdict"] == (judged["verdict"] or "")
        assert row["judgement_rounds"] == str(len(session.turns))
        assert json.loads(row["judgement_conditions"]) == judged["conditions"]
        assert row["answer"] == own["answer"] and row["steps"] == "2" and row["forced"] == "FALSE"
        assert json.loads(row["user"])["status"] == own["user"]["status"]
        assert json.loads(row["explored"])[0]["command"] == "=ls"
    assert {row["judgement_verdict"] for row in rows} > {""}
