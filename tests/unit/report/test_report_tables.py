"""Every table against a recount of sessions.jsonl that shares no code with the package, and small cells by hand."""

import csv
import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from codechat.report.build import build_report, comparisons_of
from codechat.report.chapters import chapter_of
from codechat.report.data import Column, Interval, ReportData, Value
from codechat.report.drawing import share_range
from codechat.report.loading import load_cells
from codechat.studies.refine.chapter.outcomes import setups_of
from codechat.studies.refine.chapter.page import DRAWINGS
from support.recount import near, recount
from support.refine_cells import Made, paper, write_cell

pytestmark = pytest.mark.long
RENDERED = True
MADE = [
    made
    for made in paper((18, 22), errored=2, overflows=1, turns=6)
    if made.model in ("gpt5", "gpt5_nano", "llama31_8b")
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ReportData, dict[tuple[str, str], dict[str, Any]]]:
    out = tmp_path_factory.mktemp("report")
    folders = {(made.model, made.dataset): write_cell(made, out / "runs") for made in MADE}
    data = build_report(load_cells([out / "runs"]), out)
    return out, data, {key: recount(folder) for key, folder in folders.items()}


def rows(report: Any, name: str) -> list[dict[str, str]]:
    with (report[0] / "tables" / f"{name}.csv").open() as stream:
        return list(csv.DictReader(stream))


def pairs_of(report: Any, name: str) -> list[tuple[dict[str, str], dict[str, Any]]]:
    found = rows(report, name)
    assert found
    return [(row, report[2][row["model"], row["dataset"]]) for row in found]


def test_the_recount_agrees_with_metrics_json(report: Any) -> None:
    for (model, dataset), truth in report[2].items():
        metrics = json.loads(
            (report[0] / "runs" / f"{model}-{dataset}-balanced-6-rules-0" / "metrics.json").read_text()
        )
        for key in ("sessions", "completed", "errored", "skipped_turns", "undecided", "undecided_applicability"):
            assert metrics[key] == truth[key], key
        assert {k: v for k, v in metrics["outcomes"].items() if v} == truth["outcomes"]
        for key in ("pass_at_1", "iar", "mst", "delta_pct", "iar_delta_pct"):
            assert metrics[key] == pytest.approx(truth[key]), key
        assert metrics["mst_at"] == pytest.approx({str(cap): truth["mst_at"][cap] for cap in (2, 4, 6)})
        for key in ("regression", "self_correction"):
            assert metrics[key]["overall"] == pytest.approx(truth[key])
            parts = {**metrics[key]["by_scope"], **metrics[key]["by_change"], **metrics[key]["by_cell"]}
            assert parts == pytest.approx(truth[f"{key}_by"])
        assert metrics["phi"]["value"] == pytest.approx(truth["phi"])
        assert (metrics["mann_kendall"]["pass_at_1"]["s"], metrics["mann_kendall"]["pass_at_1"]["p"]) == pytest.approx(
            truth["kendall"]
        )


def test_table_4(report: Any) -> None:
    for row, truth in pairs_of(report, "table_4_decay"):
        assert near(row["pass_first"], truth["pass_at_1"][0])
        assert near(row["pass_last"], truth["pass_at_1"][-1])
        assert near(row["delta_pct"], truth["delta_pct"])
        assert float(row["delta_pct_ci_low"]) <= float(row["delta_pct"]) <= float(row["delta_pct_ci_high"])
        assert (int(row["mk_s"]), float(row["mk_p"])) == pytest.approx(truth["kendall"])


def test_table_5(report: Any) -> None:
    *found, mean = rows(report, "table_5_mst")
    assert mean["model"] == "mean of 3 models"
    for name in ("humaneval", "mbpp", "mean"):
        assert near(mean[f"mst_{name}"], sum(float(row[f"mst_{name}"]) for row in found) / 3)
        assert float(mean[f"mst_{name}_ci_low"]) < float(mean[f"mst_{name}"]) < float(mean[f"mst_{name}_ci_high"])
    for row in found:
        values = [report[2][row["model"], dataset]["mst"] for dataset in ("humaneval", "mbpp")]
        assert near(row["mst_humaneval"], values[0])
        assert near(row["mst_mbpp"], values[1])
        assert near(row["mst_mean"], sum(values) / 2)
        assert float(row["mst_mean_ci_low"]) < float(row["mst_mean"]) < float(row["mst_mean_ci_high"])
        widths = [
            float(row[f"mst_{name}_ci_high"]) - float(row[f"mst_{name}_ci_low"])
            for name in ("humaneval", "mbpp", "mean")
        ]
        # a mean of two independent figures: half the root of the sum of squares
        assert widths[2] == pytest.approx(math.hypot(*widths[:2]) / 2, rel=0.15)
    assert [float(row["mst_mean"]) for row in found] == sorted((float(row["mst_mean"]) for row in found), reverse=True)


def test_table_6(report: Any) -> None:
    for row, truth in pairs_of(report, "table_6_mst_sensitivity"):
        before = None
        for cap in (2, 4, 6):
            assert near(row[f"mst_at_{cap}"], truth["mst_at"][cap])
            if before is not None:
                assert near(row[f"change_{cap}_pct"], 100 * (truth["mst_at"][cap] - before) / before)
            before = truth["mst_at"][cap]
    table = next(table for table in report[1].tables if table.name == "table_6_mst_sensitivity")
    for number, place in table.strong:
        assert table.columns[place].key.startswith("change_")
        others = [
            table.rows[number][index] for index, column in enumerate(table.columns) if column.key.startswith("change_")
        ]
        assert table.rows[number][place] == min(others)


def test_table_7(report: Any) -> None:
    for row, truth in pairs_of(report, "table_7_adherence"):
        assert near(row["iar_first"], truth["iar"][0])
        assert near(row["iar_last"], truth["iar"][-1])
        assert near(row["iar_delta_pct"], truth["iar_delta_pct"])
        assert near(row["iar"], truth["iar_all"])
        assert (int(row["mk_s"]), float(row["mk_p"])) == pytest.approx(truth["kendall_iar"])


def test_turn_by_turn(report: Any) -> None:
    found = pairs_of(report, "turns")
    assert len(found) == 6 * len(MADE)
    for row, truth in found:
        turn = int(row["turn"])
        assert near(row["pass_at_1"], truth["pass_at_1"][turn])
        assert near(row["surviving"], truth["surviving"][turn])
        assert near(row["adherence"], truth["iar"][turn - 1] if turn else None)
        assert near(row["regression"], truth["regression_at"][turn - 1] if turn else None)
        assert float(row["surviving_ci_low"]) <= float(row["surviving"]) <= float(row["surviving_ci_high"])


def test_transitions(report: Any) -> None:
    for row, truth in pairs_of(report, "transitions"):
        for rate, total in (("regression", "passed_before"), ("self_correction", "failed_before")):
            expected = truth[rate] if row["breakdown"] == "overall" else truth[f"{rate}_by"][row["type"]]
            assert near(row[rate], expected)
            if row["breakdown"] == "overall":
                assert int(row[total]) == truth[total]


def test_instructions(report: Any) -> None:
    met = sum((truth["met"] for truth in report[2].values()), start=type(next(iter(report[2].values()))["met"])())
    broke = sum((truth["broke"] for truth in report[2].values()), start=type(met)())
    found = {row["id"]: row for row in rows(report, "instructions")}
    assert found.keys() == met.keys()
    for key, row in found.items():
        assert (int(row["passed_before"]), int(row["broke"])) == (met[key], broke[key])
        assert near(row["regression"], broke[key] / met[key])
    floors = [float(row["regression_ci_low"]) for row in found.values()]
    assert floors == sorted(floors, reverse=True)


def test_phi_counts_and_costs(report: Any) -> None:
    for row, truth in pairs_of(report, "phi"):
        assert near(row["phi"], truth["phi"])
        counts = [int(row[key]) for key in ("pass_adhered", "pass_violated", "fail_adhered", "fail_violated")]
        assert counts == truth["phi_counts"]
    for row, truth in pairs_of(report, "counts"):
        for key in (
            "sessions",
            "completed",
            "errored",
            "overflowed",
            "skipped_turns",
            "undecided",
            "undecided_applicability",
        ):
            assert int(row[key]) == truth[key], key
        assert int(row["outcome_timeout"]) == truth["outcomes"]["timeout"]
        assert int(row["errored"]) == 2
    for row, truth in pairs_of(report, "costs"):
        for key, value in truth["model_tokens"].items():
            assert int(row[f"model_{key}"]) == value
        assert row["model_usd"] == "", "an unknown price is not zero"


def test_paired_tables(report: Any) -> None:
    truths = report[2]
    for row in rows(report, "pairs_mst"):
        a, b = (truths[row[side], row["dataset"]] for side in ("a", "b"))
        both = set(a["tasks"]) & set(b["tasks"])
        assert int(row["tasks"]) == len(both)
        means = []
        for truth in (a, b):
            kept = [length for task, length in zip(truth["tasks"], truth["prefix"], strict=True) if task in both]
            means.append(sum(kept) / len(kept))
        assert near(row["mst_difference"], means[0] - means[1])
        assert (
            float(row["mst_difference_ci_low"]) <= float(row["mst_difference"]) <= float(row["mst_difference_ci_high"])
        )
        assert float(row["p_holm"]) >= float(row["p"])
    assert len(rows(report, "pairs_mst")) == 2 * 3
    turns = rows(report, "pairs_turns")
    assert len(turns) == 2 * 3 * 6
    for row in turns:
        a, b = (
            dict(zip(truth["tasks"], truth["passes"], strict=True))
            for truth in (truths[row[side], row["dataset"]] for side in ("a", "b"))
        )
        turn = int(row["turn"])
        counts = [sum((a[task][turn], b[task][turn]) == kind for task in a.keys() & b.keys())
                  for kind in itertools.product((True, False), repeat=2)]  # fmt: skip
        assert counts == [int(row[key]) for key in ("both", "only_a", "only_b", "neither")]
        assert near(row["risk_difference"], (counts[1] - counts[2]) / sum(counts))


def test_every_table_has_three_formats_and_they_agree(report: Any) -> None:
    out, data, _ = report
    for table in data.tables:
        markdown = (out / "tables" / f"{table.name}.md").read_text().splitlines()
        body = [line for line in markdown if line.startswith("|")]
        assert len(body) == len(table.rows) + 2
        assert {line.replace("\\|", "").count("|") for line in body} == {len(table.columns) + 1}
        latex = (out / "tables" / f"{table.name}.tex").read_text()
        assert latex.count(r"\caption") == 1
        assert latex.count(r"\begin{table*}") + latex.count(r"\begin{longtable}") == 1
        assert latex.replace(r"\{", "").replace(r"\}", "").count("{") == latex.replace(r"\{", "").replace(
            r"\}", ""
        ).count("}")
        assert all(
            ord(character) < 128 for line in latex.splitlines() if not line.startswith("%") for character in line
        )
        assert table.group in data.groups
        assert all(len(row) == len(table.columns) for row in table.rows)


@pytest.mark.parametrize(
    ("spec", "value", "text"),
    [
        (".3f", 0.12345, "0.123"),
        ("+.1f", -3.14, "−3.1"),
        (".2f", Interval(-1, 2.5), "[−1.00, 2.50]"),
        ("d", 12, "12"),
        ("p", 0.00004, "<0.0001"),
        ("p", 0.04321, "0.0432"),
        (".3f", None, "–"),
        ("", "a", "a"),
    ],
)
def test_values_as_people_read_them(spec: str, value: Value, text: str) -> None:
    assert Column("key", "title", spec).text(value) == text


def test_every_figure_is_there_twice_and_says_what_it_shows(report: Any) -> None:
    names = [figure.of.name for figure in report[1].figures]
    assert names == [
        "figure_3_pass_at_1", "survival", "figure_4_regression_by_scope", "figure_5_regression_by_change",
        "regression_by_turn", "figure_7_self_correction",
        "figure_6_adherence", "models_self_correction", "models_regression",
    ]  # fmt: skip
    for figure in report[1].figures:
        assert figure.png.read_bytes().startswith(b"\x89PNG")
        assert figure.svg.read_text().rstrip().endswith("</svg>")
        assert figure.of.title
        assert figure.of.caption
        assert figure.of.group in report[1].groups


@pytest.mark.long
def test_the_same_cells_give_the_same_bytes(report: Any, tmp_path: Path) -> None:
    build_report(load_cells([report[0] / "runs"]), tmp_path)
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert len(files) > 50
    for path in files:
        assert path.read_bytes() == (report[0] / path.relative_to(tmp_path)).read_bytes(), path.name


def test_ablations_put_single_choices_side_by_side(tmp_path: Path) -> None:
    for agenda in ("balanced", "semantic"):
        for turns in (4, 6):
            for model, breaks in (("a", 0.05), ("b", 0.2)):
                write_cell(Made(model, tasks=8, turns=turns, agenda=agenda, breaks=breaks), tmp_path / "runs")
    (comparison,) = comparisons_of(load_cells([tmp_path / "runs"]))
    tables = {table.name: table for table in chapter_of("refine").tables(comparison)}
    assert "ablation_judge" not in tables
    agenda = tables["ablation_agenda"]
    assert [row[:4] for row in agenda.rows[:3]] == [
        ("humaneval", "a", "turns=4", "balanced"),
        ("humaneval", "a", "turns=4", "semantic"),
        ("humaneval", "a", "turns=6", "balanced"),
    ]
    lengths = tables["ablation_turns"]
    assert [row[2:4] for row in lengths.rows[:2]] == [("agenda=balanced", "4"), ("agenda=balanced", "6")]
    share = [column.key for column in lengths.columns].index("mst_share")
    truth = recount(tmp_path / "runs" / "a-humaneval-balanced-4-rules-0")
    assert lengths.rows[0][share] == pytest.approx(truth["mst"] / 4)
    board = tables["leaderboard"]
    keys = [column.key for column in board.columns]
    ranked = [(row[keys.index("rank")], row[keys.index("mst_common")]) for row in board.rows]
    assert [rank for rank, _ in ranked] == [1 + sum(other > own for _, other in ranked) for _, own in ranked]
    assert {row[keys.index("turns")] for row in board.rows} == {4, 6}, "all lengths by the turns that all have"


def test_an_entrant_without_one_of_the_datasets_has_no_mean_and_no_rank(tmp_path: Path) -> None:
    for made in (Made("a", "humaneval", 6, 3), Made("a", "mbpp", 6, 3), Made("b", "mbpp", 6, 3, first=1.0, breaks=0.0)):
        write_cell(made, tmp_path / "runs")
    (comparison,) = comparisons_of(load_cells([tmp_path / "runs"]))
    board, mst, *_ = chapter_of("refine").tables(comparison)
    assert [row[:3] for row in board.rows] == [
        (1, "a", "mean of all"), (1, "a", "humaneval"), (1, "a", "mbpp"), (1, "b", "mbpp"),
    ]  # fmt: skip
    assert None not in [row[4] for row in board.rows], "no row of dashes"
    assert mst.rows[1][-2:] == (None, None)
    assert mst.rows[1][[column.key for column in mst.columns].index("mst_mbpp")] is not None


@pytest.mark.parametrize(
    ("made", "without"),
    [
        (Made("m", tasks=1, turns=2, first=1.1, breaks=0.0), {"figure_7_self_correction"}),
        (
            Made("m", tasks=4, turns=3, first=0.0, mends=0.0),
            {
                *("figure_4_regression_by_scope", "figure_5_regression_by_change", "regression_by_turn"),
            },
        ),
        (Made("m", tasks=4, turns=3, first=1.1, breaks=0.0), {"figure_7_self_correction"}),
    ],
    ids=["tiny", "never", "always"],
)
def test_extremes_are_drawn_without_a_warning_and_nothing_is_drawn_empty(
    made: Made, without: set[str], tmp_path: Path
) -> None:
    write_cell(made, tmp_path / "runs")
    data = build_report(load_cells([tmp_path / "runs"]), tmp_path)
    assert {drawing.name for drawing in DRAWINGS} - {figure.of.name for figure in data.figures} == without


@pytest.mark.long
def test_a_report_written_over_another_leaves_nothing_of_it(tmp_path: Path) -> None:
    for model, first, breaks in (("a", 1.1, 0.0), ("b", 0.5, 0.3)):
        write_cell(Made(model, tasks=4, turns=3, first=first, breaks=breaks), tmp_path / "runs")
    build_report(load_cells([tmp_path / "runs"]), tmp_path / "out")
    (tmp_path / "out" / "tables" / "mine.csv").write_text("kept")
    data = build_report(load_cells(list((tmp_path / "runs").glob("a-*"))), tmp_path / "out")
    tables = {path.stem for path in (tmp_path / "out" / "tables").iterdir()}
    assert tables == {table.name for table in data.tables} | {"mine"}
    assert {path.stem for path in (tmp_path / "out" / "figures").iterdir()} == {
        figure.of.name for figure in data.figures
    }


@pytest.mark.parametrize(
    ("values", "shown"),
    [((1.0, 1.0), (0.73, 1.02)), ((0.0, 0.0), (-0.02, 0.27)), ((0.0, 1.0), (-0.02, 1.02)), ((0.4, 0.9), (0.35, 0.95))],
)
def test_an_axis_of_shares_shows_a_quarter_at_least(values: tuple[float, float], shown: tuple[float, float]) -> None:
    assert share_range(values) == pytest.approx(shown)


def test_a_twin_is_in_no_mean_with_its_original(tmp_path: Path) -> None:
    names = ("humaneval", "humaneval_renamed", "mbpp")
    for name in names:
        folder = write_cell(Made("a", name, 6, 3, breaks=0.5), tmp_path / "runs")
        if name.endswith("_renamed"):
            config = yaml.safe_load((folder / "config.yaml").read_text())
            config["dataset"]["twin"] = "renamed"
            (folder / "config.yaml").write_text(yaml.safe_dump(config))
    cells = load_cells([tmp_path / "runs"])
    (comparison,) = comparisons_of(cells)
    board, mst, *_ = chapter_of("refine").tables(comparison)
    assert [row[:3] for row in board.rows] == [(1, "a", name) for name in ("mean of all", *names)]
    own = {cell.dataset: cell.metrics["mst"] for cell in cells}
    assert board.rows[0][3] == pytest.approx((own["humaneval"] + own["mbpp"]) / 2) != sum(own.values()) / 3
    assert mst.rows[0][-2] == board.rows[0][3]
    assert [each.datasets for each in setups_of(cells)] == [["humaneval", "mbpp"]], "nor in the headline"
    (only,) = comparisons_of([cell for cell in cells if cell.dataset != "mbpp"])
    board, *_ = chapter_of("refine").tables(only)
    assert [row[:3] for row in board.rows] == [(1, "a", name) for name in names[:2]], "one dataset has no mean"
    (twins,) = comparisons_of([cell for cell in cells if cell.dataset == "humaneval_renamed"])
    board, *_ = chapter_of("refine").tables(twins)
    assert [row[:2] for row in board.rows] == [(1, "a")], "twins alone are ranked"
