"""People's labels read from an audit's folder: which files, which judge, for how many decisions each label stands."""

import csv
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from codechat.base.errors import UserError
from codechat.cli.commands.audit import run_audit
from codechat.cli.commands.report import options_of, run_report
from codechat.report.audit.kinds import sample_csv
from codechat.report.comparison import JudgeLabels
from codechat.report.loading import load_cells
from codechat.studies.refine.audit import (
    POPULATION,
    Sample,
    draw_apart,
    draw_for_correction,
    population_json,
    read_people,
    with_labels,
)
from codechat.studies.refine.chapter.powered import FEWEST
from support.mistakes import mistake
from support.refine_cells import of, session, turn, write_audit_cell

COSMETIC, SEMANTIC = of("cosmetic", "add"), of("semantic", "remove")
VIOLATED = {"adherence": {"verdict": "violated", "by": "rules", "reason": "not seen"}}
UNDECIDED = {"adherence": {"verdict": "undecided", "by": "llm", "reason": "?"}}
Row = dict[str, str]


def cell(runs: Path, name: str = "c", judge: str = "rules", sessions: int = 12, **more: object) -> Path:
    """Of every task two cosmetic changes judged adhered, one semantic one judged violated, one undecided, one without
    code."""
    turns = [
        turn(1, COSMETIC[0]), turn(2, COSMETIC[1]), turn(3, SEMANTIC[0], **VIOLATED),
        turn(4, SEMANTIC[1], **UNDECIDED), turn(5, SEMANTIC[2], **VIOLATED, code=None),
    ]  # fmt: skip
    made = [session(name, f"t/{number}", turns) for number in range(sessions)]
    return write_audit_cell(runs / name, made, judge={"kind": judge}, choices={"judge": judge}, **more)


def write(sample: Sample, folder: Path) -> list[Row]:
    """What `audit export` leaves; returns the rows."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sample.csv").write_text(sample_csv(sample.rows))
    (folder / POPULATION).write_text(population_json(sample.population.cells, options_of))
    with (folder / "sample.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def labelled(path: Path, rows: list[Row], label: Callable[[Row], tuple[str, str]]) -> None:
    """A file in which each row has what `label` says: whether it applies, and whether it was followed."""
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        for row in rows:
            applicable, adherence = label(row)
            writer.writerow({**row, "applicable": applicable, "adherence": adherence})


def as_judged(row: Row) -> tuple[str, str]:
    return "yes", row["judge_adherence"] if row["judge_adherence"] != "undecided" else "violated"


def only(found: Mapping[str, JudgeLabels]) -> JudgeLabels:
    (known,) = found.values()
    return known


def test_labels_and_what_they_stand_for(tmp_path: Path) -> None:
    rows = write(draw_apart([cell(tmp_path / "runs")], 0, 30, 0), tmp_path / "audit")
    labelled(tmp_path / "audit" / "ada.csv", rows, as_judged)
    people = read_people(tmp_path / "audit", [], options_of)
    known = only(people.by_judge)
    assert people.notes == ()
    assert known.judge == "rules"
    assert known.sizes == {
        ("cosmetic", True): 24,
        ("cosmetic", False): 0,
        ("semantic", True): 0,
        ("semantic", False): 12,
    }
    assert len(known.labels) == sum(row["judge_adherence"] != "undecided" for row in rows) > 20
    assert {(one.scope, one.adhered, one.followed) for one in known.labels} == {
        ("cosmetic", True, 1.0), ("semantic", False, 0.0),
    }  # fmt: skip


def test_without_population_the_cells_at_hand_say_it(tmp_path: Path) -> None:
    runs = cell(tmp_path / "runs")
    rows = write(draw_apart([runs], 0, 30, 0), tmp_path / "audit")
    labelled(tmp_path / "audit" / "ada.csv", rows, as_judged)
    told = only(read_people(tmp_path / "audit", [], options_of).by_judge)
    (tmp_path / "audit" / POPULATION).unlink()
    cells = load_cells([runs], options_of)
    counted = only(read_people(tmp_path / "audit", cells, options_of).by_judge)
    assert counted == told
    with mistake("cells", ": c"):
        read_people(tmp_path / "audit", [], options_of)


def test_several_people_count_by_their_mean(tmp_path: Path) -> None:
    rows = write(draw_apart([cell(tmp_path / "runs")], 0, 30, 0), tmp_path / "audit")
    labelled(tmp_path / "audit" / "ada.csv", rows, as_judged)
    first = next(row["sample"] for row in rows if row["judge_adherence"] == "adhered")
    labelled(tmp_path / "audit" / "bob.csv", rows, lambda row: ("no", "") if row["sample"] == first else as_judged(row))
    people = read_people(tmp_path / "audit", [], options_of)
    assert sorted({one.followed for one in only(people.by_judge).labels}) == [0.0, 0.5, 1.0]
    assert people.notes[0].startswith("People disagree on 1 of ")
    alone = read_people(tmp_path / "audit" / "bob.csv", [], options_of)
    assert sorted({one.followed for one in only(alone.by_judge).labels}) == [0.0, 1.0]


def test_a_draw_for_the_correction_has_both_verdicts_of_every_judge(tmp_path: Path) -> None:
    runs = [cell(tmp_path / "runs", name, judge) for name, judge in (("a", "rules"), ("b", "hybrid"))]
    sample = draw_for_correction(runs, 51, 0, options_of)
    groups = Counter((row["cell_id"], row["scope"], row["judge_adherence"]) for row in sample.rows)
    assert groups.keys() == {
        (name, *group) for name in "ab" for group in (("cosmetic", "adhered"), ("semantic", "violated"))
    }
    assert min(groups.values()) >= FEWEST
    assert {groups[name, "cosmetic", "adhered"] + groups[name, "semantic", "violated"] for name in "ab"} == {25, 26}
    assert {row["counts_for"] for row in sample.rows} == {"correction"}
    rows = write(sample, tmp_path / "audit")
    labelled(tmp_path / "audit" / "ada.csv", rows, as_judged)
    people = read_people(tmp_path / "audit", [], options_of)
    assert sorted(known.judge for known in people.by_judge.values()) == ["hybrid", "rules"]


def test_labels_of_another_judge_correct_nothing(tmp_path: Path) -> None:
    one, other = cell(tmp_path / "runs", "a"), cell(tmp_path / "runs", "b", "hybrid")
    prompted = cell(tmp_path / "runs", "p", seed=1)
    (prompted / "config.yaml").write_text(
        (prompted / "config.yaml").read_text().replace("kind: rules", "kind: rules\n  rules_first: false")
    )
    rows = write(draw_apart([one], 0, 30, 0), tmp_path / "audit")
    labelled(tmp_path / "audit" / "ada.csv", rows, as_judged)
    people = read_people(tmp_path / "audit", [], options_of)
    found = {each.cell_id: each.labels for each in with_labels(load_cells([one, other, prompted]), people, options_of)}
    assert isinstance(found["a"], JudgeLabels)
    assert "another judge (rules)" in found["b"]
    assert "(rules, with other options" in found["p"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: None, "there is no folder"),
        (lambda folder: folder.mkdir(), "holds no labels of instructions"),
        (
            lambda folder: (folder.mkdir(), (folder / "confusion.csv").write_text("labels,question\n")),
            "holds no labels",
        ),
    ],
)
def test_a_wrong_folder_is_told(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    make(tmp_path / "audit")
    with pytest.raises(UserError, match=words):
        read_people(tmp_path / "audit", [], options_of)


def test_a_folder_that_nobody_labelled_and_a_damaged_one_are_told(tmp_path: Path) -> None:
    rows = write(draw_apart([cell(tmp_path / "runs")], 0, 30, 0), tmp_path / "audit")
    with mistake("label of adherence"):
        read_people(tmp_path / "audit", [], options_of)
    labelled(tmp_path / "audit" / "ada.csv", rows, as_judged)
    other = write(draw_apart([cell(tmp_path / "more", sessions=3)], 0, 30, 0), tmp_path / "other")
    assert other
    (tmp_path / "audit" / POPULATION).write_text((tmp_path / "other" / POPULATION).read_text())
    with mistake("population.json", " t/"):
        read_people(tmp_path / "audit", [], options_of)
    (tmp_path / "audit" / POPULATION).write_text("{}")
    with pytest.raises(UserError, match=r"population\.json is damaged"):
        read_people(tmp_path / "audit", [], options_of)


def test_a_report_tells_a_wrong_folder_before_it_writes(tmp_path: Path) -> None:
    words = [f"runs={cell(tmp_path / 'runs')}", f"out={tmp_path / 'report'}"]
    with mistake("nowhere"):
        run_report([*words, "audit=nowhere"])
    with mistake(str(tmp_path / "runs"), "labels of instructions"):
        run_report([*words, f"audit={tmp_path / 'runs'}"])
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("correction=10", "n=5"), "leave one out"),
        (("correction=10", "adherence=5"), "leave one out"),
        (("correction=10", "constraints=5"), "leave one out"),
        (("correction=0",), "correction "),
    ],
)
def test_settings_of_a_draw_that_do_not_go_together(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    with pytest.raises(UserError) as refused:
        run_audit(["export", f"runs={cell(tmp_path / 'runs')}", f"out={tmp_path / 'never'}", *words])
    assert told in f"{refused.value} {refused.value.remedy}"
    assert not (tmp_path / "never").exists()
