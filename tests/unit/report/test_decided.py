"""Verdicts decided outside and inside: how they are counted, and where a reader meets the count."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from codechat.base.domain import Verdict
from codechat.base.records import BY_PROGRAM, SessionRecord, TurnRecord, read_sessions, write_sessions
from codechat.cli.cell_view import inside_line
from codechat.cli.commands.export import run_export
from codechat.report.build import comparisons_of, sections_of
from codechat.report.chapters import chapter_of
from codechat.report.data import Board, BoardColumn, Table
from codechat.report.loading import load_cells
from codechat.report.metrics import points_of
from codechat.report.metrics.counts import DECIDED, constructs_in, count_decided, inside_in
from codechat.report.page import body_of
from codechat.run.results.samples import Summary
from codechat.studies.codeif.metrics import Exchange
from support.codeif import Talk, write_talk
from support.refine_cells import Made, write_cell

MOCKS = "mocks and patches (patch)"
OUTSIDE: dict[str, Any] = {"decided": "outside"}
INSIDE: dict[str, Any] = {"decided": "inside", "inside": MOCKS}
PASS: dict[str, Any] = {"outcome": "pass", "passed": True, "passed_base": True}


def session(*turns: dict[str, Any], **fields: Any) -> SessionRecord:
    made = [{**PASS, "turn": number, **each} for number, each in enumerate(turns)]
    values = {
        "cell_id": "c", "session_id": "s", "task_id": "t", "dataset": "d", "model": "m", "protocol": "own",
        "agenda": [], "seed": 0, "status": "completed", "turns": made,
    }  # fmt: skip
    return SessionRecord.model_validate(values | fields)


def told(folder: Path, *, counted: bool = True) -> Path:
    """The cell, whose first session was decided inside at turn 0 and outside after it, the others outside."""
    sessions = list(read_sessions(folder / "sessions.jsonl"))
    for place, each in enumerate(sessions):
        each.turns = [
            TurnRecord.model_validate(turn.model_dump() | (OUTSIDE if place or turn.turn else INSIDE))
            for turn in each.turns
        ]
    write_sessions(folder / "sessions.jsonl", sessions)
    path = folder / "metrics.json"
    metrics = json.loads(path.read_text())
    path.write_text(json.dumps(metrics | ({DECIDED: count_decided(sessions)} if counted else {})))
    return folder


def test_every_scored_turn_is_counted_once() -> None:
    sessions = [
        session(INSIDE, OUTSIDE, {**OUTSIDE, "skipped": True}, {**INSIDE, "skipped": True}),
        session(OUTSIDE, {"decided": None}, {"outcome": None, "passed": None, "passed_base": None}),
        session(INSIDE, INSIDE, status="errored"),
        session({**INSIDE, "inside": "a stack frame"}, INSIDE),
    ]
    assert count_decided(sessions) == {"outside": 2, "inside": 3}
    assert count_decided(each.slim() for each in sessions) == {"outside": 2, "inside": 3}
    assert constructs_in(sessions) == {MOCKS: 2, "a stack frame": 1}
    assert count_decided([]) == {"outside": 0, "inside": 0}


def test_programs_that_brought_it_about_are_counted_apart() -> None:
    moved = {**INSIDE, BY_PROGRAM: True}
    sessions = [session(moved, OUTSIDE, INSIDE, moved), session({**moved, "skipped": True})]
    found = count_decided(sessions)
    assert found == {"outside": 1, "inside": 3, "by_program": 2}
    assert inside_line({DECIDED: found}, sessions).startswith("3 of 4 verdicts")
    assert "2 programs " in inside_line({DECIDED: found}, sessions)
    made = TurnRecord.of(0, [], None, Verdict("pass", True, inside="a result", by_program=True))
    assert (made.forced_by, made.moved) == ("a result", True)
    assert made.shared_fields() == {"inside": "a result", BY_PROGRAM: True}
    lines = [*Summary(9, 3, 3, {"pass": 9}, 1, 1, {}, inside=4, moved=1).lines()]
    assert "4 of 9 verdicts" in lines[2] and "1 program " in lines[2]


def test_records_that_do_not_tell_count_in_neither_and_are_written_as_they_were() -> None:
    old = session({}, {})
    assert count_decided([old]) == {"outside": 0, "inside": 0}
    assert all("decided" not in turn and "inside" not in turn for turn in json.loads(old.line())["turns"])
    mixed = json.loads(session({}, OUTSIDE, INSIDE).line())["turns"]
    assert [turn.get("decided") for turn in mixed] == [None, "outside", "inside"]
    assert [turn.get("inside") for turn in mixed] == [None, None, MOCKS]
    assert SessionRecord.model_validate_json(session({}, INSIDE).line()) == session({}, INSIDE)


def test_a_conversations_turn_may_name_its_construct() -> None:
    own: dict[str, Any] = {"round": "initial", "requirement": None, "level": None, "checks": []}
    (turn,) = session({**own, **INSIDE}).turns
    assert Exchange.of(turn) == Exchange(**own)


def test_the_summary_says_how_many_and_why() -> None:
    sessions = [session(INSIDE, OUTSIDE, {**INSIDE, "inside": "a stack frame"}, INSIDE)]
    line = inside_line({DECIDED: count_decided(sessions)}, sessions)
    assert line.startswith("3 of 4 verdicts") and "2 of them" in line and line.endswith(MOCKS)
    unnamed = [session({"decided": "inside"})]
    assert inside_line({DECIDED: count_decided(unnamed)}, unnamed).endswith("read a surprising pass)")


@pytest.mark.parametrize("metrics", [{}, {DECIDED: None}, {DECIDED: {"outside": 7, "inside": 0}}])
def test_without_such_a_verdict_the_summary_says_nothing_and_reads_nothing(metrics: dict[str, Any]) -> None:
    def unread() -> Iterator[SessionRecord]:
        raise AssertionError("the sessions were read")
        yield

    assert inside_in(metrics) == 0
    assert inside_line(metrics, unread()) == ""


def test_verify_says_it_only_if_there_is_one() -> None:
    def lines(inside: int) -> list[str]:
        return list(Summary(4, 2, 2, {"pass": 4}, 1.0, 1.0, {}, inside).lines())

    assert lines(1)[2].startswith("1 of 4 verdicts")
    assert len(lines(0)) == len(lines(1)) - 1


def test_the_counts_are_tracked(tmp_path: Path) -> None:
    (cell,) = load_cells([told(write_cell(Made("m", tasks=3, turns=2), tmp_path))])
    measures = chapter_of("refine").measures
    assert measures is not None
    points = {point.key: point.value for point in points_of(measures, cell.metrics)}
    assert points["final/decided_inside"] == 1
    assert points["final/decided_outside"] == sum(cell.metrics["outcomes"].values()) - 1
    unknown = {name: value for name, value in cell.metrics.items() if name != DECIDED}
    assert not any("decided_" in point.key for point in points_of(measures, unknown) if "un" not in point.key)


def test_the_page_gets_a_turns_construct() -> None:
    turns = body_of(session(INSIDE, OUTSIDE, {}, {"decided": "inside"}), {}, None)["turns"]
    assert [turn.get("inside") for turn in turns] == [MOCKS, None, None, ""]
    assert all("inside" not in turn.get("more", {}) for turn in turns)


def shown(runs: Path, name: str) -> tuple[Table, dict[str, BoardColumn]]:
    """A table of the report on the cells, and the columns of its page's board."""
    (comparison,) = comparisons_of(load_cells([runs]))
    (table,) = [table for table in chapter_of(comparison.protocol).tables(comparison) if table.name == name]
    boards = [part for section in sections_of([comparison]) for part in section.parts if isinstance(part, Board)]
    return table, {column.title: column for board in boards for column in board.columns}


@pytest.mark.parametrize("protocol", ["refine", "static"])
def test_a_report_tells_it_of_each_cell(tmp_path: Path, protocol: str) -> None:
    runs = tmp_path / "runs"
    for model in ("a", "b"):
        refined = protocol == "refine"
        folder = write_cell(Made(model, tasks=4, turns=3), runs) if refined else write_talk(Talk(model, tasks=4), runs)
        told(folder, counted=model == "a")
    table, columns = shown(runs, "counts" if refined else "static_counts")
    assert [row["decided_inside"] for row in table.named_rows()] == [1, None], "b's metrics.json does not say"
    assert "Decided inside: " in table.note
    assert columns["decided inside"].values == [1, None]


def test_a_report_without_such_a_verdict_says_nothing(tmp_path: Path) -> None:
    path = write_talk(Talk("a", tasks=3), tmp_path / "runs") / "metrics.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {DECIDED: {"outside": 9, "inside": 0}}))
    table, columns = shown(tmp_path / "runs", "static_counts")
    assert not [column for column in table.columns if "decided" in column.key]
    assert "decided inside" not in columns


def test_an_export_has_its_columns(tmp_path: Path) -> None:
    write_sessions(tmp_path / "sessions.jsonl", [session(INSIDE, OUTSIDE, {})])
    for suffix in ("csv", "parquet"):
        run_export([f"run={tmp_path}", f"out={tmp_path / 'turns'}.{suffix}"])
    with (tmp_path / "turns.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["decided"], row["inside"]) for row in rows] == [("inside", MOCKS), ("outside", ""), ("", "")]
    frame = pd.read_parquet(tmp_path / "turns.parquet")
    assert list(frame.columns) == list(rows[0]), "no column of the protocol's own holds it again"
    assert [value if isinstance(value, str) else None for value in frame["decided"]] == ["inside", "outside", None]
