"""Rounds of dynamic conversations in twos, as CodeIF-Bench's Tables 6 and 7 have them, against hand calculations."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from codechat.base.records import SessionRecord, write_sessions
from codechat.report.build import build_report, comparisons_of
from codechat.report.loading import load_cells
from codechat.report.metrics.measures import FIELD
from codechat.report.page import summary_values
from codechat.studies.codeif.metrics import DYNAMIC, conversation_metrics
from support.codeif import Talk, write_talk

NAMES = {"task": "Base", "A": "Edge Case Handling", "B": "Code Standard", "F": "Functionality Extension"}


def turn(number: int, described: str, level: str) -> dict[str, Any]:
    """`A: task+ A- (B+)`: A was asked, the task is met, A is not, B is though nobody asked for it."""
    own, _, checks = described.partition(": ")
    parsed = [
        {"id": name, "strategy": NAMES[name], "asked": not each.startswith("("), "accumulates": name != "F",
         "outcome": "pass" if "+" in each else "fail", "passed": "+" in each, "reason": None}
        for each in checks.split() for name in [each.strip("()+-")]
    ]  # fmt: skip
    requirement = None if own == "task" else {"id": own, "strategy": NAMES[own], "text": "…"}
    return {
        "turn": number, "round": "instruction" if number else "initial", "requirement": requirement, "level": level,
        "checks": parsed, "discarded": False, "response": "…", "code": "x", "outcome": "pass", "passed": True,
        "passed_base": True,
    }  # fmt: skip


def session(task: str, *turns: str, level: str = "L-1") -> SessionRecord:
    return SessionRecord.model_validate(
        {
            "cell_id": "c", "session_id": task, "task_id": task, "dataset": "d", "model": "m", "protocol": "dynamic",
            "agenda": [], "seed": 0, "status": "completed",
            "turns": [turn(number, each, level) for number, each in enumerate(turns)],
        }
    )  # fmt: skip


LONG = session(
    "1", "task: task+ (A-) (B-)", "A: task+ A- (B+)", "A: task- A+ (B+)", "F: task+ A+ (B-) F+", "B: task+ A- B-"
)
SHORT = session("2", "task: task- (A-) (B-)", "task: task+ (A-) (B-)", "A: task+ A+ (B-)")
OTHER = session("3", "task: task+ (A+)", level="L-2")


def write(folder: Path, *sessions: SessionRecord) -> Path:
    folder.mkdir(parents=True)
    write_sessions(folder / "sessions.jsonl", list(sessions))
    metrics = conversation_metrics(sessions, DYNAMIC, converses=True, seed=0)
    (folder / "metrics.json").write_text(json.dumps({**metrics, FIELD: DYNAMIC.describe()}))
    kinds = {"model": {"kind": "openai", "name": "m"}, "dataset": {"kind": "d"}, "protocol": {"kind": "dynamic"}}
    choices = {name: value["kind"] for name, value in kinds.items()}
    (folder / "config.yaml").write_text(yaml.safe_dump({**kinds, "seed": 0, "choices": choices}))
    return folder


def rows_of(out: Path, name: str) -> list[dict[str, str]]:
    with (out / "tables" / f"{name}.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def rows(tmp_path: Path) -> dict[tuple[str, str], dict[str, str]]:
    write(tmp_path / "runs" / "cell", LONG, SHORT, OTHER)
    build_report(load_cells([tmp_path / "runs"]), tmp_path / "out")
    return {(row["level"], row["rounds"]): row for row in rows_of(tmp_path / "out", "dynamic_rounds")}


def values(rows: dict[tuple[str, str], dict[str, str]], name: str) -> list[float]:
    order = ("1–2", "3–4", "5–6", "mean of the pairs", "all rounds")
    return [float(rows["L-1", rounds][name]) for rounds in order]


def test_instruction_accuracy_of_pairs_and_their_mean(rows: dict[tuple[str, str], dict[str, str]]) -> None:
    # rounds 1 and 2: 1, 0 and 0, 1; rounds 3 and 4: 1, 1 and 1; round 5: 0; in all 5 of 8
    assert values(rows, "ia") == pytest.approx([2 / 4, 3 / 3, 0 / 1, (1 / 2 + 1 + 0) / 3, 5 / 8])
    assert [rows["L-1", name]["ia_n"] for name in ("1–2", "3–4", "5–6", "mean of the pairs")] == ["4", "3", "1", ""]


def test_conversation_accuracy_is_the_share_and_leaves_extensions_out(
    rows: dict[tuple[str, str], dict[str, str]],
) -> None:
    first, second, third = (1 + 1 / 2 + 0 + 1) / 4, (1 / 2 + 1) / 2, 1 / 3
    whole = (1 + 1 / 2 + 0 + 1 + 1 / 2 + 1 + 1 / 3) / 7
    assert values(rows, "ca") == pytest.approx([first, second, third, (first + second + third) / 3, whole])
    assert rows["L-1", "3–4"]["ca_n"] == "2", "the extension's turn has none"


def test_efficiency_and_forgetting_of_pairs(rows: dict[tuple[str, str], dict[str, str]]) -> None:
    pairs = [(1 + 1 / 2 + 0 + 1 / 2) / 4, (1 / 3 + 2 / 4 + 2 / 3) / 3, 1 / 5]
    whole = (4 * pairs[0] + 3 * pairs[1] + pairs[2]) / 8
    assert values(rows, "ife_asked") == pytest.approx([*pairs, sum(pairs) / 3, whole])
    # met before and lost: of the task at round 2 none; the task at 3, B at 4, A and B at 5
    forgotten = [0 / 1, 2 / 6, 2 / 3]
    assert values(rows, "ifr") == pytest.approx([*forgotten, sum(forgotten) / 3, 4 / 10])


def test_a_level_has_rows_of_its_own(rows: dict[tuple[str, str], dict[str, str]]) -> None:
    assert [rounds for level, rounds in rows if level == "L-2"] == ["1–2", "mean of the pairs", "all rounds"]
    assert {rows["L-2", name]["ca"] for name in ("1–2", "mean of the pairs", "all rounds")} == {"1.0"}
    assert rows["L-2", "mean of the pairs"]["ifr"] == "", "there is nothing to forget"


def test_all_rounds_are_the_figures_of_the_other_tables(tmp_path: Path) -> None:
    write_talk(Talk("m", "dynamic"), tmp_path / "runs")
    data = build_report(load_cells([tmp_path / "runs"]), tmp_path / "out")
    by_level = {row["level"]: row for row in rows_of(tmp_path / "out", "dynamic_by_level")}
    shown = [row for row in rows_of(tmp_path / "out", "dynamic_rounds") if row["rounds"] == "all rounds"]
    assert len(shown) == 2
    for row in shown:
        for name in ("ia", "ca", "ife_asked", "ifr"):
            assert float(row[name]) == pytest.approx(float(by_level[row["level"]][name]))
            assert float(row[f"{name}_ci_low"]) <= float(row[name]) <= float(row[f"{name}_ci_high"])
        assert row["ia_n"] == by_level[row["level"]]["ia_n"]
    means = [row for row in rows_of(tmp_path / "out", "dynamic_rounds") if row["rounds"] == "mean of the pairs"]
    for row in means:
        assert float(row["ca_ci_low"]) < float(row["ca"]) < float(row["ca_ci_high"])
    for suffix in ("tables/dynamic_rounds.md", "tables/dynamic_rounds.tex"):
        assert "mean of the pairs" in (tmp_path / "out" / suffix).read_text()
    assert "mean of the pairs" in json.dumps(summary_values(data))


def test_columns_of_conversation_accuracy_cannot_be_confused(tmp_path: Path) -> None:
    for protocol in ("static", "dynamic"):
        write_talk(Talk("m", protocol, tasks=4), tmp_path / "runs")
    data = build_report(load_cells([tmp_path / "runs"]), tmp_path / "out")
    for table in data.tables:
        titles = {column.key: column.title for column in table.columns}
        assert titles.get("ca", "Conversation Accuracy (share)") == "Conversation Accuracy (share)"
        assert titles.get("ca_all", "Conversation Accuracy (all met)") == "Conversation Accuracy (all met)"


def test_the_chapter_makes_no_claim_of_its_own(tmp_path: Path) -> None:
    for made in (Talk("m", "dynamic", tasks=2), Talk("a", tasks=2), Talk("b", tasks=2)):
        write_talk(made, tmp_path / "runs")
    cells = sorted(load_cells([tmp_path / "runs"]), key=lambda cell: cell.protocol, reverse=True)
    assert [comparison.protocol for comparison in comparisons_of(cells)] == ["static", "dynamic"]
