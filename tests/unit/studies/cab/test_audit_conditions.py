"""An audit of satisfaction conditions, from a cell to its figures: drawn, labelled, scored."""

import csv
import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from codechat.base.errors import UserError
from codechat.base.files import from_yaml
from codechat.cli.commands.audit import run_audit
from codechat.cli.commands.report import run_report
from codechat.report.audit.kinds import draw, kinds, read_labels
from codechat.report.audit.scoring import share
from codechat.sandbox.languages import language_of
from codechat.studies.cab.audit import COMPLETENESS, CONDITIONS
from codechat.studies.cab.chapter.tables import LISTS, paper
from support.cab import Assisted, issue, write_assisted
from support.mistakes import mistake
from support.refine_cells import of, session, turn, write_audit_cell


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A cell of seven issues, each with three conditions; the judge decided six."""
    folder = write_assisted(Assisted("m", issues=1, cohorts=("recent",), undecided=7), tmp_path / "runs")
    path = tmp_path / "issues.jsonl.gz"
    conditions = [f"It is told {what}." for what in ("how", "why", "where")]
    rows = [
        issue(url=f"https://github.com/own/tool/issues/{number}", satisfaction_conditions=conditions)
        for number in range(1, 8)
    ]
    path.write_bytes(gzip.compress("".join(json.dumps(each) + "\n" for each in rows).encode()))
    config = from_yaml((folder / "config.yaml").read_text())
    config["dataset"] = {"benchmark": "cab", "path": str(path), "repos": "/nowhere"}
    config["protocol"]["roles"] = {"judge": {"kind": "openai", "name": "gpt-5"}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return tmp_path / "runs"


def edit(runs: Path, **options: Any) -> None:
    (path,) = runs.glob("*/config.yaml")
    config = from_yaml(path.read_text())
    for group, values in options.items():
        config[group] |= values
    path.write_text(yaml.safe_dump(config))


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_decisions_are_drawn_with_what_the_judge_read(runs: Path) -> None:
    drawn = draw(CONDITIONS, [runs], 100, 0)
    assert drawn.summary.startswith("21 of 21 decisions ") and len(drawn.rows) == 7 * 3
    by_place = {(one["task_id"], one["place"]): one for one in drawn.rows}
    one = by_place["own/tool#1", "2"]
    assert (one["condition"], one["language"], one["judge"]) == ("It is told where.", "c", "gpt-5")
    assert one.texts["answer"] == f"Set the port, {one['turn']}." and one.texts["question"] and one.texts["thread"]
    assert one["judge_reason"] == "It does not."
    assert by_place["own/tool#7", "0"]["judge_satisfied"] == "undecided"
    edit(runs, protocol={"judged": "dialogue"})
    (whole,) = [each for each in draw(CONDITIONS, [runs], 100, 0).rows if each["sample"] == one["sample"]]
    assert whole.texts["answer"].startswith("maintainer:\nSet the port, 0.\n\nuser:\nAnd then?")


def test_statements_of_the_data_are_drawn_of_a_construction_and_of_cells(runs: Path, tmp_path: Path) -> None:
    """An issue that both have is drawn once."""
    made = tmp_path / "made"
    made.mkdir()
    rows = [issue(url=f"https://github.com/own/tool/issues/{n}", satisfaction_conditions=["It ends."]) for n in (7, 8)]
    (made / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (made / "yield.json").write_text(json.dumps({"recipe": "issues", "id": "x"}))
    drawn = draw(COMPLETENESS, [made, runs], 100, 0)
    assert {row["task_id"] for row in drawn.rows} == {f"own/tool#{number}" for number in range(1, 9)}
    assert len(drawn.rows) == len(draw(COMPLETENESS, [runs], 100, 0).rows) + 1


def test_a_draw_depends_on_the_seed_alone(runs: Path) -> None:
    def keys(seed: int) -> list[str]:
        return [one["sample"] for one in draw(CONDITIONS, [runs], 5, seed).rows]

    assert len(keys(0)) == 5 and keys(0) == keys(0)
    assert any(keys(seed) != keys(0) for seed in range(1, 9))


def test_from_a_cell_to_its_figures(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "audit"
    assert run_audit(["export", f"runs={runs}", f"out={out}", "conditions=100"]) == 0
    assert "21 of 21 decisions" in capsys.readouterr().out
    page = (out / "label.html").read_text()
    assert '["The issue", "' in page and '["The thread that followed it", "' in page and "meet this condition" in page
    rows = table(out / "sample.csv")
    assert [*rows[0]].index("satisfied") == [*rows[0]].index("answer") + 1
    opposite = {"yes": "no", "no": "yes", "undecided": "yes"}
    for each in rows:  # who labels sides with the judge, but for one issue
        judged = each["judge_satisfied"]
        each["satisfied"] = judged if each["task_id"] not in ("own/tool#1", "own/tool#7") else opposite[judged]
    labels = write(tmp_path / "labels.csv", rows)
    assert run_audit(["score", f"labels={labels}", f"out={out}"]) == 0
    score = json.loads((out / "audit.json").read_text())["scores"]["labels"]
    assert [*score] == ["condition"]
    found = score["condition"]
    assert (found["labelled"], found["undecided"]) == (21, 3)
    assert (found["accuracy"]["count"], found["accuracy"]["of"]) == (15, 18)
    assert found["by_language"]["c"]["value"] == 0 and found["by_language"]["java"]["value"] == 1
    assert [*found["by_judge"]] == ["gpt-5"]
    assert len(table(out / "disagreements.csv")) == 3
    assert "instruction was applicable" not in (out / "audit.md").read_text()


def test_an_altered_row_is_told(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    assert run_audit(["export", f"runs={runs}", f"out={out}", "conditions=2"]) == 0
    (first, _) = table(out / "sample.csv")
    other = {"yes": "no", "no": "yes", "undecided": "no"}[first["judge_satisfied"]]
    for change, message in (({"judge_satisfied": other}, "no export drew"), ({"satisfied": "so"}, "satisfied is 'so'")):
        with pytest.raises(UserError, match=message):
            read_labels(write(tmp_path / "altered.csv", [{**first, **change}]))


def test_cells_without_conditions_and_a_changed_dataset_are_told(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="decisions on conditions"):
        run_audit(["export", f"runs={runs}", f"out={tmp_path / 'a'}", "conditions=3", "constraints=4"])
    url = "https://github.com/own/tool/issues/1"
    (tmp_path / "issues.jsonl.gz").write_bytes(gzip.compress(json.dumps(issue(url=url)).encode()))
    with mistake("own/tool#1", "conditions"):
        draw(CONDITIONS, [runs], 9, 0)
    write_audit_cell(tmp_path / "refine", [session("c", "t/0", [turn(1, of("cosmetic", "add")[0])])])
    with mistake("satisfaction condition"):
        draw(CONDITIONS, [tmp_path / "refine"], 9, 0)


def labelled(path: Path, out: Path, label: str, says: Callable[[dict[str, str]], str]) -> Path:
    return write(out, [{**row, label: says(row)} for row in table(path)])


def test_conditions_from_a_cell_to_the_report(runs: Path, tmp_path: Path) -> None:
    """Table 4 for one's own issues."""
    asked: dict[str, tuple[str, int | None, Callable[[dict[str, str]], str]]] = {
        "accuracy": ("accurate", 7 * 3, lambda row: "no" if row["extracted_condition"].endswith("where.") else "yes"),
        "completeness": ("complete", 7, lambda row: "yes" if row["task_id"] == "own/tool#1" else "no"),
    }
    folders = []
    for name, (label, count, says) in asked.items():
        folder = tmp_path / name
        assert run_audit(["export", f"runs={runs}", f"out={folder}", f"{name}=1000"]) == 0
        rows = table(folder / "sample.csv")
        assert count == len(rows) and rows[0]["question"] and rows[0]["answer"]
        assert "thread" in rows[0]
        who = [labelled(folder / "sample.csv", folder / f"{person}.csv", label, says) for person in ("ada", "bob")]
        if name == "accuracy":  # a third, as in the paper, who finds everything accurate
            who.append(labelled(folder / "sample.csv", folder / "eve.csv", label, lambda row: "yes"))
        assert run_audit(["score", f"labels={','.join(map(str, who))}", f"out={folder}"]) == 0
        folders.append(str(folder))
    assert run_report([f"runs={runs}", f"out={tmp_path / 'report'}", f"audit={','.join(folders)}"]) == 0
    shown = table(tmp_path / "report" / "tables" / "assist_labels.csv")
    overall = {(row["question"], row["source"]): row for row in shown if row["group"] == "all"}
    accurate, complete = overall["Accurate conditions", "measured"], overall["Complete lists", "measured"]
    assert (accurate["n"], float(accurate["share"])) == ("63", pytest.approx(100 * (14 + 14 + 21) / 63))
    wilson = share(1, 7)
    assert wilson.low is not None and float(complete["interval_low"]) == pytest.approx(100 * wilson.low)
    assert float(accurate["same"]) == pytest.approx(100 * (1 + 14 / 21 + 14 / 21) / 3)
    assert (float(accurate["kappa"]), accurate["kappa_interval_low"]) == (pytest.approx(1 / 3), ""), "the mean of pairs"
    assert (float(complete["kappa"]), float(complete["kappa_interval_low"])) == (1.0, 1.0)
    assert float(overall["Complete lists", "measured"]["share"]) == pytest.approx(100 / 7)
    printed = overall["Accurate conditions", "published"]
    assert (printed["share"], printed["same"], printed["differs"]) == ("86.27", "82.39", "63 of 663 labels")
    assert overall["Complete lists", "published"]["differs"] == "14 of 210 labels"
    assert len([row for row in shown if row["question"] == "Accurate conditions"]) == 2 * (1 + 7), "all, by language"


def test_conditions_of_the_data_are_drawn_once_however_many_cells_there_are(runs: Path) -> None:
    (cell,) = runs.glob("*")
    shutil.copytree(cell, runs / "again")
    sessions = runs / "again" / "sessions.jsonl"
    sessions.write_text(sessions.read_text().replace(cell.name, "again"))
    for name, count in (("accuracy", 21), ("completeness", 7)):
        assert len(draw(kinds()[name], [runs], 1000, 0).rows) == count


def test_scored_labels_need_a_cell_that_has_them(runs: Path, tmp_path: Path) -> None:
    with mistake("scored labels", "audit score labels="):
        run_report([f"runs={runs}", f"out={tmp_path / 'report'}", f"audit={tmp_path / 'none'}"])
    (tmp_path / "of_code").mkdir()
    scores = {
        "scores": {"ada": {"constraint": {"accuracy": {"count": 1, "of": 2}, "by_category": {}, "by_language": {}}}}
    }
    (tmp_path / "of_code" / "audit.json").write_text(json.dumps(scores))
    with mistake("constraint"):
        run_report([f"runs={runs}", f"out={tmp_path / 'report'}", f"audit={tmp_path / 'of_code'}"])


def test_table_4_as_printed() -> None:
    """Its sums and shares, of 30 lists in each language."""
    rows = {name: row for name, row in paper()["conditions"].items() if name != "all"}
    total, accurate, share_accurate, complete = paper()["conditions"]["all"]
    assert (total, accurate) == tuple(sum(row[place] for row in rows.values()) for place in (0, 1)) == (663, 572)
    for size, good, printed, _ in paper()["conditions"].values():
        assert round(100 * good / size, 2) == printed
    lists = [round(LISTS * row[3] / 100) for row in rows.values()]
    assert all(round(100 * one / LISTS, 2) == row[3] for one, row in zip(lists, rows.values(), strict=True))
    assert complete == round(100 * sum(lists) / (LISTS * len(rows)), 2) and share_accurate == 86.27
    assert all(language_of(name).names[0] == name for name in rows), "as records name them"
