"""Turns that are not scored: they enter no rate, are counted apart, and break nothing."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from codechat.base.records import SessionRecord, read_sessions, write_sessions
from codechat.cli.commands.export import run_export
from codechat.report.build import build_report
from codechat.report.data import ReportData
from codechat.report.loading import load_cells
from codechat.report.metrics.measures import FIELD
from codechat.report.metrics.statistics import sustained
from codechat.report.page import Index, write_page
from codechat.studies.codeif.metrics import conversation_metrics
from codechat.studies.refine.metrics import refine_metrics
from support.codeif import MEASURES, Talk, talks_of, write_talk
from support.refine_cells import Made, config_of, sessions_of

NULL = {"outcome": None, "passed": None, "passed_base": None, "failure": None}


def unscored(session: SessionRecord, turns: set[int] | None = None) -> SessionRecord:
    """The session without a verdict at these turns, or at any."""
    values = session.model_dump(mode="json", by_alias=True)
    values["turns"] = [{**turn, **NULL} if turns is None or turn["turn"] in turns else turn for turn in values["turns"]]
    return SessionRecord.model_validate(values)


def write_unscored(made: Talk, runs: Path, turns: set[int] | None = None) -> Path:
    folder = write_talk(made, runs)
    sessions = [unscored(session, turns) for session in talks_of(made)]
    write_sessions(folder / "sessions.jsonl", sessions)
    measures = MEASURES[made.protocol]
    metrics = conversation_metrics(sessions, measures, converses=True, seed=0)
    (folder / "metrics.json").write_text(json.dumps({**metrics, FIELD: measures.describe()}))
    return folder


def write_refined(made: Made, runs: Path, turns: set[int]) -> Path:
    folder = runs / made.model
    folder.mkdir(parents=True)
    sessions = [unscored(session, turns) for session in sessions_of(made)]
    write_sessions(folder / "sessions.jsonl", sessions)
    (folder / "metrics.json").write_text(json.dumps(refine_metrics(sessions, seed=0)))
    (folder / "config.yaml").write_text(yaml.safe_dump(config_of(made)))
    return folder


def report_of(runs: Path) -> ReportData:
    data = build_report(load_cells([runs]), runs.parent / "out")
    write_page(data, runs.parent / "out")
    return data


def rows(data: ReportData, name: str) -> list[dict[str, Any]]:
    (table,) = [table for table in data.tables if table.name == name]
    return list(table.named_rows())


def test_a_protocol_that_tests_nothing_is_reported(tmp_path: Path) -> None:
    """As where validators judge: everything else that is measured stands, and nothing is compared by verdicts."""
    made = [Talk(model, tasks=4, meets=meets) for model, meets in (("a", 0.9), ("b", 0.4))]
    for each in made:
        write_unscored(each, tmp_path / "runs")
    data = report_of(tmp_path / "runs")
    assert "static_pairs" not in [table.name for table in data.tables]
    turns = [sum(len(session.turns) for session in talks_of(each)) for each in made]
    assert [row["not_scored"] for row in rows(data, "static_counts")] == turns
    assert [row["outcome_fail"] for row in rows(data, "static_counts")] == [0, 0]
    counted = rows(data, "static_counts")
    assert all({"replies", "replies_cut"} <= set(row) for row in counted), "how many a limit of tokens cut"
    finals = rows(data, "static_finals")
    assert [row["passed"] for row in finals] == [None, None]
    assert all(row["ia"] is not None for row in finals)


def test_scored_turns_alone_are_compared(tmp_path: Path) -> None:
    for model, meets in (("a", 0.9), ("b", 0.4)):
        write_unscored(Talk(model, tasks=6, meets=meets), tmp_path / "runs", {0, 1})
    (row,) = rows(report_of(tmp_path / "runs"), "static_pairs")
    for side in "ab":
        sessions = read_sessions(tmp_path / "runs" / f"{side}-codeif_bench-static" / "sessions.jsonl")
        verdicts = [turn.passed for session in sessions for turn in session.turns if turn.turn > 1]
        assert None not in verdicts
        assert row[f"passing_{side}"] == pytest.approx(sum(map(bool, verdicts)) / len(verdicts))
    assert row["p"] is not None


def test_refinements_leave_it_out_of_every_rate(tmp_path: Path) -> None:
    makes = [Made(model, tasks=12, turns=4, breaks=breaks) for model, breaks in (("a", 0.1), ("b", 0.4))]
    for made in makes:
        write_refined(made, tmp_path / "runs", {2})
    data = report_of(tmp_path / "runs")
    for row in rows(data, "turns"):
        assert (row["pass_at_1"] is None) == (row["turn"] == 2)
        assert row["regression"] is None or row["turn"] == 1, "turns 2 and 3 have no verdict before, or none"
    for made, row in zip(makes, rows(data, "leaderboard"), strict=True):
        sessions = [unscored(session, {2}) for session in sessions_of(made)]
        lasted = [[t.passed for t in s.turns if t.turn != 2] for s in sessions]
        assert row["mst"] == pytest.approx(sum(next((n for n, p in enumerate(s) if not p), 3) for s in lasted) / 12)
    assert [row["not_scored"] for row in rows(data, "counts")] == [12, 12]
    (unscored_turn,) = [row for row in rows(data, "pairs_turns") if row["turn"] == 2]
    assert unscored_turn["both"] + unscored_turn["neither"] == 0
    assert unscored_turn["p"] is None


def test_cells_without_such_a_turn_say_nothing_of_it(tmp_path: Path) -> None:
    write_talk(Talk("a", tasks=3), tmp_path / "runs")
    assert "not_scored" not in rows(report_of(tmp_path / "runs"), "static_counts")[0]


def test_the_page_marks_it_with_a_sign_of_its_own() -> None:
    index = Index()
    for session in talks_of(Talk("m", tasks=1)):
        index.add(0, unscored(session, {1}))
    (letters,) = index.columns([])["outcomes"]
    assert letters[1] == "-"
    assert "-" not in letters[0] + letters[2:]


@pytest.mark.parametrize(
    ("verdicts", "length"),
    [((True, None, True, False), 2), ((None, None), 0), ((None, False, True), 0), ((True, True, True), 3), ((), 0)],
)
def test_it_neither_breaks_nor_lengthens_what_lasts(verdicts: tuple[bool | None, ...], length: int) -> None:
    assert sustained(verdicts) == length


def test_an_export_has_it_empty(tmp_path: Path) -> None:
    folder = write_unscored(Talk("a", tasks=2), tmp_path, {1})
    run_export([f"run={folder}", f"out={tmp_path / 'turns.csv'}"])
    run_export([f"run={folder}", f"out={tmp_path / 'turns.parquet'}"])
    with (tmp_path / "turns.csv").open() as stream:
        found = list(csv.DictReader(stream))
    for row in found:
        assert (row["outcome"] == "") == (row["passed"] == "") == (row["passed_base"] == "") == (row["turn"] == "1")
        assert (row["passed_before"] == "") == (row["turn"] in ("0", "2"))
    import pandas as pd

    frame = pd.read_parquet(tmp_path / "turns.parquet")
    assert frame["passed"].isna().tolist() == [row["turn"] == "1" for row in found]
