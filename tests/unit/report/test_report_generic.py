"""Reports over cells of several protocols: tables against a recount of the sessions, chapters, pairs, cells' own files."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from scipy.stats import wilcoxon

from codechat.base.errors import UserError
from codechat.base.files import from_yaml
from codechat.report import write_figures, write_tables
from codechat.report.build import build_report
from codechat.report.chapters import Chapter
from codechat.report.comparison import Comparison
from codechat.report.data import Drawing, ReportData
from codechat.report.generic import sessions_text
from codechat.report.loading import load_cells
from codechat.studies.codeif.metrics import static_measures
from codechat.studies.refine.chapter import RefineChapter
from support.codeif import MEASURES, Talk, write_talk
from support.refine_cells import Made, write_cell

STRONG, WEAK = Talk("strong", meets=0.9, forgets=0.05, errored=2), Talk("weak", meets=0.5, forgets=0.3)
ASKED = Talk("strong", "dynamic", meets=0.8, tasks=12)


@pytest.fixture(scope="module", autouse=True)
def undrawn() -> Iterator[None]:
    """One empty figure per protocol instead of the slow real ones, which the commands' own tests draw."""

    def drawings(chapter: Chapter, comparison: Comparison[Any]) -> Iterator[Drawing]:
        yield Drawing(
            f"{comparison.protocol}_ia", "IA", "", next(iter(chapter.groups(comparison))), lambda *_: comparison
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Chapter, "drawings", drawings)
        patch.setattr(RefineChapter, "drawings", drawings)
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with cells of three protocols, and the report on them."""
    folder = tmp_path_factory.mktemp("mixed")
    for made in (STRONG, WEAK, ASKED):
        write_talk(made, folder / "runs")
    write_cell(Made("strong", tasks=4, turns=3), folder / "runs")
    return folder


@pytest.fixture(scope="module")
def report(place: Path) -> ReportData:
    return build_report(load_cells([place / "runs"]), place / "out")


def table(place: Path, name: str) -> list[dict[str, str]]:
    with (place / "out" / "tables" / f"{name}.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def turns_of(place: Path, made: Talk) -> list[list[dict[str, Any]]]:
    """The turns of completed sessions, as JSON."""
    lines = (place / "runs" / made.cell_id.replace("/", "-") / "sessions.jsonl").read_text().splitlines()
    return [session["turns"] for line in lines if (session := json.loads(line))["status"] == "completed"]


def own_passes(turn: dict[str, Any]) -> bool:
    wanted = turn["requirement"]["id"] if turn["requirement"] else "task"
    (found,) = [check["passed"] for check in turn["checks"] if check["id"] == wanted]
    return bool(found)


def test_every_protocol_has_a_chapter_after_the_refinements(report: ReportData) -> None:
    assert list(report.groups)[-2:] == ["static", "dynamic"]
    assert report.groups["static"].startswith("CodeIF-Bench, static")
    assert {each.group for each in report.tables} == set(report.groups)
    names = [each.name for each in report.tables if each.group == "static"]
    assert names == [
        "static_finals", "static_turns", "static_by_strategy", "static_by_level", "static_pairs", "static_counts",
        "static_costs",
    ]  # fmt: skip
    assert "dynamic_pairs" not in [each.name for each in report.tables], "one cell has nobody to be compared with"


@pytest.mark.parametrize("made", [STRONG, WEAK], ids=lambda made: made.model)
def test_instruction_accuracy_is_that_of_the_sessions(made: Talk, place: Path, report: ReportData) -> None:
    sessions = turns_of(place, made)
    assert len(sessions) == made.tasks - made.errored
    for row in table(place, "static_turns"):
        if row["model"] == made.model:
            seen = [own_passes(turns[int(row["turn"])]) for turns in sessions if int(row["turn"]) < len(turns)]
            assert float(row["ia"]) == pytest.approx(sum(seen) / len(seen))
            assert int(row["ia_n"]) == len(seen)
            assert float(row["ia_ci_low"]) <= float(row["ia"]) <= float(row["ia_ci_high"])
    every = [own_passes(turn) for turns in sessions for turn in turns]
    (row,) = [row for row in table(place, "static_finals") if row["model"] == made.model]
    assert float(row["ia"]) == pytest.approx(sum(every) / len(every))
    for row in table(place, "static_by_strategy"):
        if row["model"] == made.model:
            named = [turn for turns in sessions for turn in turns
                     if (turn["requirement"] or {"strategy": "Base"})["strategy"] == row["strategy"]]  # fmt: skip
            assert float(row["ia"]) == pytest.approx(sum(map(own_passes, named)) / len(named))


def test_the_best_of_a_dataset_is_bold_whichever_way_is_better(report: ReportData) -> None:
    (finals,) = [each for each in report.tables if each.name == "static_finals"]
    keys = [column.key for column in finals.columns]
    assert [row[0] for row in finals.rows] == ["strong", "weak"]
    assert {(0, keys.index("ia")), (0, keys.index("ifr"))} <= finals.strong, "forgetting less is better"
    assert not any(column.key.endswith("_ci") and (0, place) in finals.strong
                   for place, column in enumerate(finals.columns))  # fmt: skip


def test_counts_tell_what_was_left_out(place: Path, report: ReportData) -> None:
    strong, weak = table(place, "static_counts")
    assert (strong["sessions"], strong["completed"], strong["errored"]) == ("20", "18", "2")
    turns = sum(len(turns) for turns in turns_of(place, STRONG))
    assert int(strong["outcome_pass"]) + int(strong["outcome_fail"]) == turns
    assert "discarded" in table(place, "dynamic_counts")[0], "what the protocol counts besides"
    assert float(table(place, "static_costs")[0]["model_output_tokens"]) == 80 * turns
    assert weak["errored"] == "0"


def test_pairs_compare_on_the_tasks_that_both_completed(place: Path, report: ReportData) -> None:
    (row,) = table(place, "static_pairs")
    assert (row["a"], row["b"], row["tasks"]) == ("strong", "weak", "18")
    a, b = ([[turn["passed"] for turn in turns] for turns in turns_of(place, made)][:18] for made in (STRONG, WEAK))
    shares = [[sum(turns) / len(turns) for turns in side] for side in (a, b)]
    passing = [sum(map(sum, side)) / sum(map(len, side)) for side in (a, b)]
    assert float(row["difference"]) == pytest.approx(passing[0] - passing[1])
    assert float(row["difference_ci_low"]) < float(row["difference"]) < float(row["difference_ci_high"])
    differing = [x - y for x, y in zip(*shares, strict=True) if x != y]
    assert float(row["p"]) == pytest.approx(wilcoxon(differing, method="asymptotic").pvalue)
    ends = [(x[-1], y[-1]) for x, y in zip(a, b, strict=True)]
    assert (int(row["only_a"]), int(row["only_b"])) == (ends.count((True, False)), ends.count((False, True)))


def test_the_next_report_removes_what_it_does_not_write(tmp_path: Path) -> None:
    small = Talk("m", tasks=4), Talk("m", "dynamic", tasks=4)
    both = [write_talk(made, tmp_path / "runs") for made in small]
    build_report(load_cells(both), tmp_path / "out")
    own = tmp_path / "out" / "tables" / "mine.csv"
    own.write_text("kept\n")
    build_report(load_cells(both[:1]), tmp_path / "out")
    left = {path.stem.partition("_")[0] for path in tmp_path.glob("out/*/*")}
    assert left == {"static", "mine"}
    listed = json.loads((tmp_path / "out" / "contents.json").read_text())
    assert {path.stem for path in tmp_path.glob("out/figures/*.svg")} == set(listed["figures"])
    assert {path.stem for path in tmp_path.glob("out/tables/*.tex")} == set(listed["tables"])


def test_sessions_of_different_lengths_are_one_setting(tmp_path: Path) -> None:
    """Models may take different numbers of rounds: that makes them no less comparable, nor is it a column."""
    for made in (Talk("quick", "dynamic", meets=1.0, tasks=6), Talk("slow", "dynamic", meets=0.1, tasks=6)):
        write_talk(made, tmp_path / "runs")
    cells = load_cells([tmp_path / "runs"])
    assert cells[0].turns != cells[1].turns
    data = build_report(cells, tmp_path / "out")
    assert "dynamic_pairs" in [each.name for each in data.tables]
    assert "turns" not in [column.key for column in data.tables[0].columns]


def test_a_cell_leaves_the_same_figures_as_its_report(place: Path, tmp_path: Path, report: ReportData) -> None:
    metrics = json.loads((place / "runs" / "weak-codeif_bench-static" / "metrics.json").read_text())
    write_tables(MEASURES["static"], metrics, tmp_path / "tables")
    write_figures(MEASURES["static"], metrics, "weak", tmp_path / "figures")
    assert {path.name for path in tmp_path.glob("tables/*.csv")} == {
        "finals.csv", "turns.csv", "by_strategy.csv", "by_level.csv",
    }  # fmt: skip
    assert {path.name for path in tmp_path.glob("figures/*.png")} == {"turns.png", "by_strategy.png", "by_level.png"}
    with (tmp_path / "tables" / "turns.csv").open() as stream:
        own = list(csv.DictReader(stream))
    shown = [row for row in table(place, "static_turns") if row["model"] == "weak"]
    assert [row["ca"] for row in own] == [row["ca"] for row in shown]
    assert r"\toprule" in (tmp_path / "tables" / "finals.tex").read_text()


def test_metrics_that_lack_what_every_protocol_has_are_refused(tmp_path: Path) -> None:
    folder = write_talk(Talk("m", tasks=2), tmp_path)
    metrics = json.loads((folder / "metrics.json").read_text())
    del metrics["tokens"]
    (folder / "metrics.json").write_text(json.dumps(metrics))
    with pytest.raises(UserError, match="has no tokens"):
        load_cells([folder])


def test_records_and_metrics_must_belong_together(tmp_path: Path) -> None:
    folder = write_talk(Talk("m", tasks=3), tmp_path)
    lines = (folder / "sessions.jsonl").read_text().splitlines(keepends=True)
    (folder / "sessions.jsonl").write_text("".join(lines[:2]))
    with pytest.raises(UserError, match="counts 3 sessions"):
        build_report(load_cells([folder]), tmp_path / "out")


def test_settings_of_one_protocol_stand_side_by_side(tmp_path: Path) -> None:
    """Where turns do not build on each other nothing can be forgotten: such cells have a dash there."""
    folders = [write_talk(Talk("m", tasks=4), tmp_path / context) for context in ("full", "single")]
    for folder, context in zip(folders, ("full", "single"), strict=True):
        config = from_yaml((folder / "config.yaml").read_text())
        config["protocol"]["context"] = context
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
    metrics = json.loads((folders[1] / "metrics.json").read_text())
    metrics["measures"] = static_measures(converses=False, official=False).describe()
    del metrics["ifr"], metrics["overall"]["ifr"], metrics["by_strategy"]["ifr"], metrics["by_level"]["ifr"]
    (folders[1] / "metrics.json").write_text(json.dumps(metrics))
    sessions = (folders[1] / "sessions.jsonl").read_text().replace('"cell_id":"', '"cell_id":"single/')
    (folders[1] / "sessions.jsonl").write_text(sessions)
    data = build_report(load_cells(folders), tmp_path / "out")
    finals = next(each for each in data.tables if each.name == "static_finals")
    keys = [column.key for column in finals.columns]
    assert [(row[keys.index("variant")], row[keys.index("ifr")] is None) for row in finals.rows] == [
        ("context=full", False),
        ("context=single", True),
    ]
    assert "static_pairs" in [each.name for each in data.tables]


def test_one_of_what_is_counted_has_no_plural() -> None:
    counts = ((1, "turn undecided", "turns undecided"), (0, "none", "none"), (2, "turn skipped", "turns skipped"))
    told = sessions_text({"completed": 4, "errored": 1}, counts)
    assert [(part.split()[0], part.split()[-1]) for part in told.split(", ")] == [
        ("4", "completed"), ("1", "errored"), ("1", "undecided"), ("2", "skipped"),
    ]  # fmt: skip
