"""From a cell with a judge that errs at known rates, through people's labels, to adherence corrected for its errors."""

import csv
import json
import re
from pathlib import Path

import pytest

from support.plugins import codechat, install

pytestmark = pytest.mark.long

RENDERED = True
SENSITIVITY, SPECIFICITY = 0.85, 0.75


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def decisions_of(place: Path) -> list[tuple[bool, bool]]:
    """Of every decided change whether it was followed, which the judge's reason says, and whether the judge said so."""
    turns = [turn for line in place.read_text().splitlines() for turn in json.loads(line)["turns"]]
    judged = [turn["adherence"] for turn in turns if turn.get("adherence")]
    return [(each["reason"] == "in truth adhered", each["verdict"] == "adhered") for each in judged]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with a cell of a noisy judge, another of a noisier one, and labels of the first."""
    folder = tmp_path_factory.mktemp("corrected")
    install(folder, "noisy", ("judge",))
    for model, limit, sensitivity in (("refactorer", 25, SENSITIVITY), ("echo", 2, 0.6)):
        words = [
            f"model={model}",
            "judge=noisy",
            f"judge.sensitivity={sensitivity}",
            f"judge.specificity={SPECIFICITY}",
        ]
        status, said = codechat(folder, *words, f"dataset.limit={limit}", "tracking=none", "hardware.workers=2")
        assert status == 0, said
    (cell,) = (folder / "runs").glob("refactorer*")
    status, said = codechat(folder, "audit", "export", f"runs={cell}", "out=audit", "correction=150")
    assert status == 0, said
    assert "drawn: 150 of " in said
    rows = table(folder / "audit" / "sample.csv")
    with (folder / "audit" / "ada.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        for row in rows:
            followed = row["adherence_reason"] == "in truth adhered"
            writer.writerow({**row, "applicable": "yes", "adherence": "adhered" if followed else "violated"})
    return folder


def test_the_correction_finds_the_truth_beside_the_raw_figure(place: Path) -> None:
    status, said = codechat(place, "report", "runs=runs", "audit=audit", "out=report")
    assert status == 0, said
    assert "corrected" in said
    assert "echo" in said and "not corrected" in said and "another judge" in said
    (cell,) = (place / "runs").glob("refactorer*")
    decisions = decisions_of(cell / "sessions.jsonl")
    followed = [true for true, _ in decisions]
    truth = sum(followed) / len(followed)
    rows = table(place / "report" / "tables" / "adherence_corrected.csv")
    own = {row["of"]: row for row in rows if row["model"] == "refactorer"}
    whole = own["all turns"]
    assert int(whole["judged"]) == len(followed) == 225
    assert abs(float(whole["powered"]) - truth) < 0.6 * abs(float(whole["raw"]) - truth)
    assert float(whole["powered_ci_low"]) < truth < float(whole["powered_ci_high"])
    assert truth < float(whole["raw_ci_low"]), "the judge calls adhered what was not followed"
    assert own.keys() == {"all turns", "cosmetic", "structural", "semantic"}
    (other,) = [row for row in rows if row["model"] == "echo"]
    assert other["powered"] == ""
    assert other["note"].startswith("not corrected") and "another judge" in other["note"]
    board = {row["model"]: row for row in table(place / "report" / "tables" / "leaderboard.csv")}
    assert board["refactorer"]["adherence"] == whole["raw"], "the raw value stays"
    assert board["refactorer"]["adherence_corrected"] == whole["powered"]
    page = (place / "report" / "index.html").read_text(encoding="utf-8")
    assert "for the judge's errors" in page.replace("&#39;", "'").replace("\\u0027", "'")


def test_differences_of_entrants_stand_beside_each_other(place: Path) -> None:
    words = ["model=echo", "judge=noisy", f"judge.sensitivity={SENSITIVITY}", f"judge.specificity={SPECIFICITY}"]
    status, said = codechat(place, *words, "dataset.limit=3", "tracking=none", "runs_dir=more")
    assert status == 0, said
    (cell,) = (place / "runs").glob("refactorer*")
    status, said = codechat(place, "report", f"runs={cell},more", "audit=audit", "out=both")
    assert status == 0, said
    (row,) = table(place / "both" / "tables" / "adherence_differences.csv")
    assert {row["a"], row["b"]} == {"echo", "refactorer"}
    assert float(row["raw_ci_low"]) <= float(row["raw_ci_high"])
    assert row["powered"] == ""
    assert re.fullmatch(r"not corrected: too few labels .* 0 .*judged adhered.* 10 .*", row["note"])


def test_without_an_audit_nothing_is_corrected(place: Path) -> None:
    status, said = codechat(place, "report", "runs=runs", "out=plain")
    assert status == 0, said
    assert "corrected" not in said
    assert not list((place / "plain" / "tables").glob("*corrected*"))
    assert "adherence_corrected" not in (place / "plain" / "tables" / "leaderboard.csv").read_text()


def test_the_score_says_that_the_rows_are_no_share_of_all(place: Path) -> None:
    status, said = codechat(place, "audit", "score", "labels=audit/ada.csv", "out=audit")
    assert status == 0, said
    assert "150 rows were drawn" in said and "audit=DIR" in said
