"""An audit of constraints, from a cell to its figures: drawn, labelled, scored."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, TurnRecord, write_sessions
from codechat.cli.commands.audit import run_audit
from codechat.cli.commands.report import run_report
from codechat.report.audit.kinds import draw, read_labels
from codechat.report.metrics.measures import FIELD
from codechat.studies.multicodeif.audit import CONSTRAINTS
from codechat.studies.multicodeif.metrics import (
    LEVELS,
    REPAIR,
    ConstrainedTurn,
    ConstraintRecord,
    levels_metrics,
    repair_metrics,
)
from support.mistakes import mistake
from support.multicodeif import chain, constrained
from support.refine_cells import of, session, turn, write_audit_cell

CODE = "fn join(words: &[&str]) -> String {\n    words.concat()\n}\n"
KINDS = {"invocation": "environment", "data_structure_type": "data_structure", "data_structure_operation": "data_structure",
         "data_structure_size": "data_structure"}  # fmt: skip


def record(number: int, level: str, met: dict[str, bool | None], **fields: Any) -> TurnRecord:
    constraints = [
        ConstraintRecord(
            type=kind, category=KINDS[kind], by="rule", met=each, reason="seen", guarded=each, official=each
        )
        for kind, each in met.items()
    ]
    own = ConstrainedTurn(level=level, round=number, constraints=constraints, carried=fields.pop("carried", False))
    known = {"response": "…", "code": CODE, "outcome": "fail", "passed": False, **fields}
    return TurnRecord(turn=number, **known, **own.model_dump())


def of_task(task: str, protocol: str, *turns: TurnRecord) -> SessionRecord:
    return SessionRecord(
        cell_id=f"cell-{protocol}", session_id=task, task_id=task, dataset="multicodeif", model="m", protocol=protocol,
        agenda=[], seed=0, status="completed", turns=list(turns), language="rust",
    )  # fmt: skip


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A cell of repair over three tasks, and one of levels over a chain."""
    tasks = [constrained(task_id=f"syntax_function/{number}") for number in range(3)]
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (*tasks, *chain())))
    repairs = [
        of_task(
            f"syntax_function/{number}", "repair", record(0, "single", {"invocation": False}),
            record(1, "single", {"invocation": True if number else None}),
            record(2, "single", {"invocation": True}, carried=True),
        )
        for number in range(3)
    ]  # fmt: skip
    repairs[2].turns.append(record(3, "single", {"invocation": False}, code=None))
    kinds = ["data_structure_type", "data_structure_operation", "data_structure_size", "data_structure_type"]
    levels = of_task(
        "chain/0", "levels", record(0, "L1", {kinds[0]: True}), record(1, "L2", dict.fromkeys(kinds[:2], False))
    )
    for sessions, measures in ((repairs, REPAIR), ([levels], LEVELS)):
        folder = tmp_path / "runs" / measures.protocol
        folder.mkdir(parents=True)
        write_sessions(folder / "sessions.jsonl", sessions)
        metrics = (
            repair_metrics(sessions, rounds=3, rejudge=True, seed=0)
            if measures is REPAIR
            else levels_metrics(sessions, seed=0)
        )
        (folder / "metrics.json").write_text(json.dumps({**metrics, FIELD: measures.describe()}))
        part = "single" if measures is REPAIR else "levels"
        dataset = {"kind": "multicodeif", "path": str(path), "part": part}
        config = {"dataset": dataset, "protocol": {"kind": measures.protocol}, "model": {"kind": "openai"}, "seed": 0}
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return tmp_path / "runs"


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_verdicts_on_code_are_drawn_with_prompt_and_words(runs: Path) -> None:
    drawn = draw(CONSTRAINTS, [runs], 100, 0)
    assert drawn.summary.startswith("9 of 9 verdicts ") and len(drawn.rows) == 3 * 2 + 3, (
        "no reply without code, none judged again"
    )
    by_place = {(one["task_id"], one["turn"], one["place"]): one for one in drawn.rows}
    one = by_place["syntax_function/0", "1", "0"]
    assert one.texts == {"prompt": "Join words with push_str.", "code": CODE} and one["judge_met"] == "undecided"
    assert "push_str" in one["constraint"]
    two = by_place["chain/0", "1", "1"]
    assert (two.texts["prompt"], two["type"]) == ("Keep a phone book, level 2.", "data_structure_operation")
    assert two["judge"] == "rule" and two["judge_reason"] == "seen"


def test_a_draw_depends_on_seed_and_cells_alone(runs: Path) -> None:
    def keys(seed: int, *folders: Path) -> list[str]:
        return [one["sample"] for one in draw(CONSTRAINTS, folders, 4, seed).rows]

    both = (runs / "levels", runs / "repair")
    assert len(keys(0, *both)) == 4
    assert keys(0, *both) == keys(0, *reversed(both)) == keys(0, runs)
    assert any(keys(seed, *both) != keys(0, *both) for seed in range(1, 9))


def test_from_a_cell_to_its_figures(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "audit"
    assert run_audit(["export", f"runs={runs}", f"out={out}", "constraints=100"]) == 0
    assert "9 of 9 verdicts" in capsys.readouterr().out
    assert "The task" in (out / "label.html").read_text()
    rows = table(out / "sample.csv")
    assert [*rows[0]].index("met") == [*rows[0]].index("code") + 1
    for row in rows:  # who labels finds every code of the chain right
        row["met"] = "YES" if row["task_id"] == "chain/0" else "no"
    labels = write(tmp_path / "labels.csv", rows)
    assert run_audit(["score", f"labels={labels}", f"out={out}"]) == 0
    score = json.loads((out / "audit.json").read_text())["scores"]["labels"]
    assert [*score] == ["constraint"]
    found = score["constraint"]
    assert (found["labelled"], found["undecided"]) == (9, 1)
    assert found["confusion"] == {"yes": {"yes": 1, "no": 2, "undecided": 0}, "no": {"yes": 2, "no": 3, "undecided": 1}}
    assert found["by_category"]["data_structure"]["value"] == 1 / 3
    assert found["by_type"]["invocation"]["count"] == 3
    assert len(table(out / "disagreements.csv")) == 4
    assert "instruction was applicable" not in (out / "audit.md").read_text()


def test_two_annotators_agree_or_not(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    assert run_audit(["export", f"runs={runs}", f"out={out}", "constraints=100"]) == 0
    rows = table(out / "sample.csv")
    one = write(tmp_path / "one.csv", [{**row, "met": "no"} for row in rows])
    two = write(tmp_path / "two.csv", [{**row, "met": "no" if number else "yes"} for number, row in enumerate(rows)])
    assert run_audit(["score", f"labels={one},{two}", f"out={out}"]) == 0
    agreement = json.loads((out / "audit.json").read_text())["agreement"]["constraint"]
    assert agreement["same_label"]["count"] == 8
    assert run_report([f"runs={runs}", f"out={tmp_path / 'report'}", f"audit={out}"]) == 0
    (shown, *_) = table(tmp_path / "report" / "tables" / "levels_labels.csv")
    assert (shown["question"], shown["group"], shown["n"]) == ("Right verdicts", "all", "16"), "both people's, decided"


def test_an_altered_row_is_told(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    assert run_audit(["export", f"runs={runs}", f"out={out}", "constraints=2"]) == 0
    rows = table(out / "sample.csv")
    other = {"yes": "no", "no": "yes", "undecided": "no"}
    for change, message in (
        ({"judge_met": other[rows[0]["judge_met"]]}, "no export drew this row"),
        ({"met": "perhaps"}, "met is 'perhaps'"),
    ):
        altered = write(tmp_path / "altered.csv", [{**rows[0], **change}])
        with pytest.raises(UserError, match=message):
            read_labels(altered)


def test_cells_without_constraints_and_a_changed_dataset_are_told(runs: Path, tmp_path: Path) -> None:
    write_audit_cell(tmp_path / "refine", [session("c", "t/0", [turn(1, of("cosmetic", "add")[0])])])
    with mistake("constraint"):
        draw(CONSTRAINTS, [tmp_path / "refine"], 9, 0)
    with pytest.raises(UserError, match="decisions on instructions"):
        run_audit(["export", f"runs={runs}", f"out={tmp_path / 'a'}", "constraints=3", "n=4"])
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(constrained(task_id="syntax_function/0")) + "\n")
    with mistake("syntax_function/1"):
        draw(CONSTRAINTS, [runs / "repair"], 9, 0)
