"""The CSV that people label: what is written can be read again, and mistakes are told by line."""

import csv
import io
import json
from pathlib import Path

import pytest

from codechat.base.errors import UserError
from codechat.base.spreadsheet import escape_formula, unescape_formula
from codechat.report.audit.kinds import Row, read_labels, sample_csv
from codechat.report.audit.scoring import audit, markdown, write_audit
from codechat.studies.refine.audit import DECISIONS, draw_apart, draw_sample
from support.mistakes import mistake
from support.refine_cells import of, session, turn, write_audit_cell

COSMETIC = of("cosmetic", "add")
HOSTILE = '=HYPERLINK("http://x")\n"quoted", and\r\n,,\n'


@pytest.fixture
def decisions(tmp_path: Path) -> tuple[Row, ...]:
    turns = [turn(1, COSMETIC[0], COSMETIC[1:3], code=HOSTILE), turn(2, COSMETIC[3])]
    write_audit_cell(tmp_path / "c", [session("c", f"t/{n}", turns) for n in range(3)])
    return draw_sample([tmp_path / "c"], 100, 0).rows


def labelled(path: Path, decisions: tuple[Row, ...], *labels: tuple[str, str], **more: str) -> Path:
    """Write the sample with labels row by row; rows without are left empty."""
    table = list(csv.DictReader(io.StringIO(sample_csv(decisions), newline="")))
    for row, (applicable, adherence) in zip(table, labels, strict=False):
        row |= {"applicable": applicable, "adherence": adherence, **more}
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    return path


def read_table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_what_is_written_is_read_again(tmp_path: Path, decisions: tuple[Row, ...]) -> None:
    rows = read_labels(labelled(tmp_path / "a.csv", decisions, ("YES ", ""), ("no", "")))
    assert [row["sample"] for _, row in rows.values()] == [one["sample"] for one in decisions]
    assert [row["applicable"] for _, row in rows.values()][:3] == ["yes", "no", ""]
    assert all(row["sample"] == row.kind.key(row.columns) for _, row in rows.values())


def test_the_code_is_in_the_sample_and_is_no_formula(decisions: tuple[Row, ...]) -> None:
    table = list(csv.DictReader(io.StringIO(sample_csv(decisions), newline="")))
    changed = [
        row["code_after"] for row, one in zip(table, decisions, strict=True) if one.texts["code_after"] == HOSTILE
    ]
    assert changed == ["'" + HOSTILE] * 3
    assert escape_formula("-1") == "'-1"
    assert escape_formula("x = 1") == "x = 1"
    for text in ("=1", "'=1", "''=1", "'x", "", "'", "\t", "x"):
        assert unescape_formula(escape_formula(text)) == text


def test_labels_do_not_need_the_code(tmp_path: Path, decisions: tuple[Row, ...]) -> None:
    path = labelled(tmp_path / "a.csv", decisions, ("yes", ""))
    table = read_table(path)
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(DECISIONS.columns), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(table)
    assert len(read_labels(path)) == len(decisions)


def test_semicolons_and_a_byte_order_mark_are_read(tmp_path: Path, decisions: tuple[Row, ...]) -> None:
    rows = read_table(labelled(tmp_path / "a.csv", decisions, ("yes", "")))
    with (tmp_path / "b.csv").open("w", newline="", encoding="utf-8-sig") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    assert list(read_labels(tmp_path / "b.csv")) == [one["sample"] for one in decisions]


def replaced(path: Path, old: str, new: str) -> Path:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def test_a_wrong_label_is_told_by_line(tmp_path: Path, decisions: tuple[Row, ...]) -> None:
    path = labelled(tmp_path / "a.csv", decisions, ("yes", ""), ("maybe", ""))
    line = 2 + sample_csv(decisions[:1]).count("\n") - 1  # codes span lines
    with pytest.raises(UserError, match=rf"a\.csv:{line}: applicable is 'maybe'") as caught:
        read_labels(path)
    assert "yes or no" in caught.value.remedy


def test_adherence_needs_a_judged_change_and_an_applicable_instruction(
    tmp_path: Path, decisions: tuple[Row, ...]
) -> None:
    unchosen = [("yes", "adhered") if not one["judge_adherence"] else ("", "") for one in decisions]
    with pytest.raises(UserError, match="judged no change here"):
        read_labels(labelled(tmp_path / "a.csv", decisions, *unchosen))
    early = [("", "adhered") if one["judge_adherence"] else ("", "") for one in decisions]
    with pytest.raises(UserError, match="applicable is not"):
        read_labels(labelled(tmp_path / "b.csv", decisions, *early))


def test_an_altered_or_strange_row_is_told(tmp_path: Path, decisions: tuple[Row, ...]) -> None:
    path = labelled(tmp_path / "a.csv", decisions)
    path.write_text(path.read_text().replace(decisions[0]["sample"], "0" * 16))
    with mistake("a.csv:2"):
        read_labels(path)
    flipped = replaced(labelled(tmp_path / "b.csv", decisions), ",yes,rules,", ",no,rules,")
    with pytest.raises(UserError, match="altered"):
        read_labels(flipped)


def test_rows_twice_missing_columns_and_no_file_are_told(tmp_path: Path, decisions: tuple[Row, ...]) -> None:
    twice = labelled(tmp_path / "a.csv", (*decisions, decisions[0]))
    with mistake("line 2"):
        read_labels(twice)
    with mistake("b.csv:1", "sample"):
        read_labels(replaced(labelled(tmp_path / "b.csv", decisions), "sample,dataset", "simple,dataset"))
    with pytest.raises(UserError, match="cannot read"):
        read_labels(tmp_path / "nowhere.csv")
    (tmp_path / "c.csv").write_bytes(b"\xff\xfe\x00x")
    with pytest.raises(UserError, match="UTF-8"):
        read_labels(tmp_path / "c.csv")
    with pytest.raises(UserError, match="holds no row"):
        read_labels(labelled_nothing(tmp_path / "d.csv"))


def labelled_nothing(path: Path) -> Path:
    path.write_text(",".join(DECISIONS.columns) + "\n")
    return path


def all_yes(decisions: tuple[Row, ...]) -> list[tuple[str, str]]:
    return [("yes", "adhered" if one["judge_adherence"] else "") for one in decisions]


def test_one_annotator(tmp_path: Path, decisions: tuple[Row, ...]) -> None:
    path = labelled(tmp_path / "ada.csv", decisions, *all_yes(decisions), note="hm")
    found = audit([path])
    score = found.scores["ada"]
    assert (score["applicability"].accuracy.count, score["applicability"].accuracy.of) == (6, 12)
    assert (score["adherence"].accuracy.count, score["adherence"].accuracy.of) == (6, 6)
    assert not found.pairs
    assert {(one.between, one.labels, one.judged, one.notes) for one in found.disputes} == {
        ("labels and judge", "yes", "no", "hm")
    }
    assert len(found.disputes) == 6


def test_two_annotators_and_the_files(tmp_path: Path, decisions: tuple[Row, ...]) -> None:
    first = labelled(tmp_path / "ada.csv", decisions, *all_yes(decisions))
    other = all_yes(decisions)
    other[0] = ("no", "")
    second = labelled(tmp_path / "bob.csv", decisions, *other)
    found = audit([first, second])
    assert set(found.scores) == {"ada", "bob", "agreed"}
    assert found.scores["agreed"]["applicability"].labelled == 11
    same = found.pairs["ada, bob"]["applicability"].same_label
    assert (same.count, same.of) == (11, 12)
    split = [one for one in found.disputes if one.between == "annotators"]
    assert {(one.sample, one.labels) for one in split} >= {(decisions[0]["sample"], "yes / no")}
    write_audit(found, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "audit.json", "audit.md", "confusion.csv", "disagreements.csv",
    }  # fmt: skip
    values = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert values["scores"]["ada"]["applicability"]["accuracy"]["count"] == 6
    assert values["agreement"]["applicability"]["kappa"]["n"] == 12
    assert values["disputes"] == len(found.disputes)
    confusion = read_table(tmp_path / "out" / "confusion.csv")
    assert (
        sum(int(row["rows"]) for row in confusion if (row["labels"], row["question"]) == ("ada", "applicability")) == 12
    )
    assert len(read_table(tmp_path / "out" / "disagreements.csv")) == len(found.disputes)
    text = markdown(found)
    assert "0.500 [0.254, 0.746] (6 of 12)" in text
    assert "None" not in text


def test_two_samples_do_not_mix(tmp_path: Path, decisions: tuple[Row, ...]) -> None:
    half = labelled(tmp_path / "a.csv", decisions[:6])
    whole = labelled(tmp_path / "b.csv", decisions)
    with mistake("b.csv:", "a.csv"):
        audit([half, whole])
    both = (tmp_path / "agreed.csv", tmp_path / "x" / "b.csv")
    both[1].parent.mkdir()
    for path in both:
        path.write_bytes(whole.read_bytes())
    assert set(audit(list(both)).scores) == {*map(str, both), "agreed"}
    assert audit([whole, half]).scores["b"]["applicability"].unlabelled == 12
    with pytest.raises(UserError, match=r"a\.csv is given twice"):
        audit([half, half])


def test_three_annotators_are_three_pairs(tmp_path: Path, decisions: tuple[Row, ...]) -> None:
    alike, other = all_yes(decisions), [("no", ""), *all_yes(decisions)[1:]]
    said = {"ada": alike, "bob": other, "eve": alike}
    found = audit([labelled(tmp_path / f"{name}.csv", decisions, *labels) for name, labels in said.items()])
    same = {pair: each["applicability"].same_label.count for pair, each in found.pairs.items()}
    assert same == {"ada, bob": 11, "ada, eve": 12, "bob, eve": 11}
    assert found.scores["agreed"]["applicability"].labelled == 11, "where all three label alike"
    split = [one for one in found.disputes if one.between == "annotators" and one.question == "applicability"]
    assert [(one.sample, one.labels) for one in split] == [(decisions[0]["sample"], "yes / no")]
    assert "- bob, eve agree on" in markdown(found) and "### Where all label alike" in markdown(found)


@pytest.fixture
def apart(tmp_path: Path) -> tuple[Row, ...]:
    """Of 12 decisions with 6 judged changes, 8 drawn for applicability and 4 for adherence."""
    turns = [turn(1, COSMETIC[0], COSMETIC[1:3], code=HOSTILE), turn(2, COSMETIC[3])]
    write_audit_cell(tmp_path / "apart", [session("c", f"t/{n}", turns) for n in range(3)])
    return draw_apart([tmp_path / "apart"], 8, 4, 0).rows


def test_questions_that_were_drawn_apart_are_scored_apart(tmp_path: Path, apart: tuple[Row, ...]) -> None:
    rows = [row for _, row in read_labels(labelled(tmp_path / "a.csv", apart)).values()]
    kinds = [row["counts_for"] for row in rows]
    assert set(kinds) == {"applicability", "adherence", "both"}
    assert len(rows) < 12, "what both draws hold is one row"
    for row in rows:
        assert bool(row["judge_adherence"]) is (row["counts_for"] != "applicability")
    path = labelled(tmp_path / "ada.csv", apart, *all_yes(apart))
    score = audit([path]).scores["ada"]
    assert [score["applicability"].accuracy.of, score["adherence"].accuracy.of] == [8, 4]
    untouched = audit([labelled(tmp_path / "bob.csv", apart)]).scores["bob"]
    assert [untouched["applicability"].unlabelled, untouched["adherence"].unlabelled] == [8, 4]


def test_the_applicability_label_of_a_row_for_adherence_counts_there_alone(
    tmp_path: Path, apart: tuple[Row, ...]
) -> None:
    labels = [("no", "") if one["counts_for"] == "adherence" else ("yes", "") for one in apart]
    score = audit([labelled(tmp_path / "a.csv", apart, *labels)]).scores["a"]
    number = sum(one["counts_for"] == "adherence" for one in apart)
    assert sum(score["applicability"].confusion["no"].values()) == 0
    assert score["adherence"].confusion["inapplicable"]["adhered"] == number > 0
    assert score["adherence"].unlabelled == 4 - number


def test_a_row_for_applicability_shows_no_change_and_takes_no_adherence(tmp_path: Path, apart: tuple[Row, ...]) -> None:
    table = list(csv.DictReader(io.StringIO(sample_csv(apart), newline="")))
    assert [bool(row["code_after"]) for row in table] == [row["counts_for"] != "applicability" for row in table]
    columns = list(table[0])
    assert columns.index("counts_for") > columns.index("annotator"), "it is to be hidden with the judge's columns"
    labels = [("yes", "adhered") if one["counts_for"] == "applicability" else ("", "") for one in apart]
    with pytest.raises(UserError, match="drawn for applicability alone"):
        read_labels(labelled(tmp_path / "a.csv", apart, *labels))
    moved = replaced(labelled(tmp_path / "b.csv", apart), ",adherence,yes,", ",both,yes,")
    with pytest.raises(UserError, match="altered"):
        read_labels(moved)


def test_labels_from_before_questions_were_drawn_apart_are_read(tmp_path: Path, decisions: tuple[Row, ...]) -> None:
    rows = read_table(labelled(tmp_path / "a.csv", decisions, *all_yes(decisions)))
    with (tmp_path / "old.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, [name for name in rows[0] if name != "counts_for"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    assert audit([tmp_path / "old.csv"]).scores["old"] == audit([tmp_path / "a.csv"]).scores["a"]
