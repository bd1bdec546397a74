"""The chapters of constraints: the paper's tables and figures, and when its own figures stand beside ours."""

import json
from pathlib import Path
from typing import Any

import pytest

from codechat.base.records import TRACKED
from codechat.report import write_figures
from codechat.report.build import build_report, comparisons_of, headline_of
from codechat.report.chapters import chapter_of
from codechat.report.data import Board, Chart, FigureFile, Table
from codechat.report.loading import load_cells
from codechat.studies.multicodeif.chapter.published import words
from support.multicodeif import SIZES, Constrained, write_constrained

pytestmark = pytest.mark.long
DRAWN = True

PAPER: dict[str, Any] = {"harness": "official", "feedback": "paper", "rejudge": True}


def report(folder: Path, *cells: Constrained) -> dict[str, Table]:
    """The tables of the cells by their names."""
    for cell in cells:
        write_constrained(cell, folder / "runs")
    return tables_in(folder)


def tables_in(folder: Path) -> dict[str, Table]:
    studies = comparisons_of(load_cells([folder / "runs"]))
    tables = [table for comparison in studies for table in chapter_of(comparison.protocol).tables(comparison)]
    return {table.name: table for table in tables}


def rows_of(folder: Path, name: str) -> list[dict[str, Any]]:
    return list(tables_in(folder)[name].named_rows())


def metrics_of(folder: Path, pattern: str) -> dict[str, Any]:
    (path,) = (folder / "runs").glob(f"{pattern}/metrics.json")
    return dict(json.loads(path.read_text()))


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper's way of repair by a model of the paper, of each weights, and by one that no list has."""
    folder = tmp_path_factory.mktemp("study")
    models = {"gpt4o": 0.6, "deepseek_v3": 0.55, "qwen3_1_7b": 0.4, "mine": 0.5}
    report(
        folder,
        *(
            Constrained(model, passes=passes, options=PAPER, share=1 if model == "gpt4o" else 0.1)
            for model, passes in models.items()
        ),
        Constrained("gpt4o", "levels", passes=0.8),
        Constrained("mine", "levels", passes=0.7),
    )
    return folder


def test_categories_stand_under_both_harnesses_beside_the_paper(comparison: Path) -> None:
    rows = rows_of(comparison, "repair_categories")
    assert [(row["model"], row["source"]) for row in rows] == [
        ("deepseek_v3", "guarded"), ("deepseek_v3", "official"), ("DeepSeek-V3", "published"),
        ("gpt4o", "guarded"), ("gpt4o", "official"), ("GPT-4o", "published"),
        ("mine", "guarded"), ("mine", "official"),
        ("qwen3_1_7b", "guarded"), ("qwen3_1_7b", "official"), ("Qwen3-1.7B", "published"),
        ("Claude-3-7-Sonnet", "published"), ("DeepSeek-R1", "published"), ("Llama-3.2-3B", "published"),
    ]  # fmt: skip
    assert [*rows[0]][2:] == [*SIZES, "average", "undecided"]
    metrics = metrics_of(comparison, "gpt4o-*-repair-*")
    for row, harness in zip(rows[3:5], ("guarded", "official"), strict=True):
        assert row["scenario"] == pytest.approx(100 * metrics["by_category"][harness]["scenario"])
        assert row["average"] == pytest.approx(100 * metrics[harness])
    assert (rows[5]["environment"], rows[5]["exemplar"], rows[5]["average"]) == (78.3, 69.2, 62.1)


def test_rounds_have_gains_and_stand_without_leaks(comparison: Path) -> None:
    rows = rows_of(comparison, "repair_rounds")
    metrics = metrics_of(comparison, "gpt4o-*-repair-*")
    measured, without, published = rows[2:5]
    assert [row["source"] for row in rows[2:5]] == ["measured", "without leaks", "published"]
    assert [measured[f"ifrepair_{k}"] for k in range(5)] == pytest.approx([100 * v for v in metrics["ifrepair"]])
    assert [measured[f"gain_{k}"] for k in range(1, 5)] == pytest.approx(metrics["gains"])
    assert without["ifrepair_4"] == pytest.approx(100 * metrics["ifrepair_without_leaks"][4])
    assert [published[f"ifrepair_{k}"] for k in range(5)] == [62.1, 70.6, 74.2, 77.6, 78.6]
    assert published["gain_3"] == 3.2


def test_categories_by_round(comparison: Path) -> None:
    rows = [row for row in rows_of(comparison, "repair_round_categories") if row["model"] == "gpt4o"]
    assert [row["category"] for row in rows] == [name.replace("_", " ") for name in SIZES]
    assert [row["tasks"] for row in rows] == [*SIZES.values()]
    shares = metrics_of(comparison, "gpt4o-*-repair-*")["ifrepair_by_category"]["exemplar"]
    assert [rows[-1][f"ifrepair_{k}"] for k in range(5)] == pytest.approx([100 * share for share in shares])


def test_means_are_unweighted_and_by_weights(comparison: Path) -> None:
    rows = {row["category"]: row for row in rows_of(comparison, "repair_means")}
    rate = {
        model: metrics_of(comparison, f"{model}-*-repair-*")["by_category"]["accuracy"]["algorithm"]
        for model in ("gpt4o", "deepseek_v3", "qwen3_1_7b", "mine")
    }
    row = rows["algorithm"]
    assert row["mean"] == pytest.approx(100 * sum(rate.values()) / 4)
    assert row["closed"] == pytest.approx(100 * rate["gpt4o"])
    assert row["open"] == pytest.approx(50 * (rate["deepseek_v3"] + rate["qwen3_1_7b"]))
    assert (row["least"], row["most"]) == pytest.approx((100 * min(rate.values()), 100 * max(rate.values())))
    assert row["mean_ci"][0] < row["mean"] < row["mean_ci"][1]
    assert (row["models"], row["published"]) == (4, 54.7)
    assert "not of mine" in tables_in(comparison)["repair_means"].note


def test_levels_stand_under_both_harnesses_beside_the_paper(comparison: Path) -> None:
    rows = rows_of(comparison, "levels_satisfaction")
    assert [row["source"] for row in rows[:3]] == ["guarded", "official", "published"]
    metrics = metrics_of(comparison, "gpt4o-*-levels-*")
    assert rows[0]["ssr_L3"] == pytest.approx(100 * metrics["ssr_guarded"][2])
    assert rows[1]["hsr_average"] == pytest.approx(100 * metrics["avg_hsr_official"])
    assert [rows[2][f"hsr_{name}"] for name in ("L1", "L2", "L3", "L4", "average")] == [
        54.5, 35.2, 26.1, 18.8, 33.7,
    ]  # fmt: skip
    assert len(rows) == 2 * 2 + 5


def test_the_papers_figures_are_drawn(tmp_path: Path) -> None:
    cells = [Constrained(model, share=0.05, options={"rounds": 2}) for model in ("gpt4o", "qwen3_1_7b")]
    report(tmp_path, *cells, Constrained("gpt4o", "levels"))
    names = {figure.of.name for figure in drawn(tmp_path)}
    assert {"figure_5_constraints", "figure_6_categories", "figure_7_means", "figure_8_weights"} <= names
    assert {"figure_9_levels", "figure_12_rounds"} <= names
    counted = rows_of(tmp_path, "repair_constraints")
    assert sum(int(row["n"] or 0) for row in counted) == sum(int(size * 0.05) for size in SIZES.values())
    assert {row["category"] for row in counted} == {words(name) for name, size in SIZES.items() if int(size * 0.05)}
    assert {"repair_types", "levels_types", "repair_gains", "levels_hsr"} <= names
    assert "repair_by_type" not in names


def drawn(folder: Path) -> tuple[FigureFile, ...]:
    return build_report(load_cells([folder / "runs"]), folder / "out").figures


@pytest.mark.parametrize(
    "cell",
    [
        Constrained("gpt4o", options={**PAPER, "rounds": 1, "feedback": "named"}),
        Constrained("gpt4o", options={**PAPER, "rounds": 1, "harness": "guarded"}),
        Constrained("gpt4o", options={**PAPER, "rounds": 1, "rejudge": False}),
        Constrained("gpt4o", options={**PAPER, "rounds": 1, "context": "full"}),
        Constrained("gpt4o", options=PAPER, share=0.5),
    ],
    ids=["another feedback", "another harness", "met replies are kept", "another context", "half the tasks"],
)
def test_published_rounds_stay_away_from_what_cannot_be_compared(tmp_path: Path, cell: Constrained) -> None:
    tables = report(tmp_path, cell)
    assert {row[1] for row in tables["repair_rounds"].rows} == {"measured", "without leaks"}
    assert "What differs: " in tables["repair_rounds"].note
    assert ("No cell here has." in tables["repair_categories"].note) == (cell.share < 1)


def test_published_figures_stay_away_from_what_no_judge_decided(tmp_path: Path) -> None:
    tables = report(tmp_path, Constrained("gpt4o", options={**PAPER, "rounds": 1}, judge="rules"))
    for name in ("repair_categories", "repair_rounds"):
        assert "published" not in {row[1] for row in tables[name].rows}
        assert "gpt4o: judge=rules" in tables[name].note


def test_levels_asked_in_one_dialogue_are_not_those_of_the_paper(tmp_path: Path) -> None:
    report(tmp_path, Constrained("gpt4o", "levels", options={"context": "full"}))
    assert [row["source"] for row in rows_of(tmp_path, "levels_satisfaction")] == ["guarded", "official"]


def test_one_model_has_no_means_and_no_repair_no_rounds(tmp_path: Path) -> None:
    report(tmp_path, Constrained("mine", share=0.1, judged=False, options={"rounds": 0}))
    names = {figure.of.name for figure in drawn(tmp_path)}
    assert "figure_6_categories" in names
    assert not names & {"figure_7_means", "figure_8_weights", "figure_12_rounds"}
    assert "repair_means" not in tables_in(tmp_path)
    (guarded, _) = rows_of(tmp_path, "repair_categories")
    assert guarded["scenario"] is None, "a judge's categories are undecided"
    undecided = metrics_of(tmp_path, "*")["undecided"]
    assert guarded["undecided"] == pytest.approx(100 * undecided) and undecided > 0.3


def test_means_are_over_one_setup_whatever_the_repairs(tmp_path: Path) -> None:
    options: list[dict[str, Any]] = [{"rounds": 1}, {"rounds": 0}, {"rounds": 1, "harness": "official"}]
    models = ("gpt4o", "qwen3_1_7b", "mine")
    report(
        tmp_path,
        *(Constrained(model, share=0.1, options=each) for model, each in zip(models, options, strict=True)),
        Constrained("gpt4o", share=0.1, options={"rounds": 2}),
    )
    (row, *_) = rows_of(tmp_path, "repair_means")
    assert row["models"] == 2
    assert "harness=guarded" in tables_in(tmp_path)["repair_means"].title
    assert "rounds" not in tables_in(tmp_path)["repair_means"].title


def test_the_claim_keeps_to_one_harness_and_charts_to_shares(tmp_path: Path) -> None:
    cells = [Constrained(model, share=0.1, passes=0.5) for model in ("one", "two")]
    report(tmp_path, *cells, Constrained("three", share=0.1, passes=0.9, options={"harness": "official"}))
    (found,) = comparisons_of(load_cells([tmp_path / "runs"]))
    claim = headline_of([found], ())
    assert not claim.title.startswith("three")
    assert "protocol.harness=guarded" in claim.text
    (section,) = chapter_of("repair").sections(found)
    *_, charts, told, groups = section.parts
    assert isinstance(groups, Board) and isinstance(told, str) and told.startswith("Accuracy by category: ")
    named = {column.title: column.values for column in groups.columns}
    assert {"Model", "Category", "Accuracy", "n"} <= {*named} and set(named["Category"]) == {*SIZES}
    assert all(str(shown).endswith("*") == (size < 10) for size, shown in named["n"])  # type: ignore[misc, str-unpack]
    assert isinstance(charts, list) and all(isinstance(chart, Chart) and chart.share for chart in charts)
    assert section.groups == ("repair_paper", "repair")


def test_a_cell_draws_no_figure_of_27_types(tmp_path: Path) -> None:
    folder = write_constrained(Constrained("mine", share=0.1), tmp_path)
    (found,) = comparisons_of(load_cells([folder]))
    write_figures(found.measures, found.cells[0].cell.metrics, "mine", tmp_path / "figures")
    names = {path.stem for path in (tmp_path / "figures").glob("*.png")}
    assert names == {"turns", "by_category", "by_language", "by_check"}


def test_both_parts_of_the_benchmark_have_names_that_one_can_read(tmp_path: Path) -> None:
    """A second version of a part has digits of its content: the part's name would then stand for two."""
    contents = {"repair": "a" * 64, "levels": "b" * 64}
    for protocol, content in contents.items():
        folder = write_constrained(Constrained("mine", protocol, share=0.1), tmp_path)
        (folder / TRACKED).write_text(json.dumps({"dataset": {"content_hash": content}}))
    assert {cell.dataset for cell in load_cells([tmp_path])} == {"multicodeif (single)", "multicodeif (levels)"}
    assert {cell.dataset for cell in load_cells([folder])} == {"multicodeif"}
    other = write_constrained(Constrained("other", "levels"), tmp_path)
    (other / TRACKED).write_text(json.dumps({"dataset": {"content_hash": "c" * 64}}))
    names = {cell.dataset for cell in load_cells([tmp_path])}
    assert names == {"multicodeif (single)", f"multicodeif ({'b' * 8})", f"multicodeif ({'c' * 8})"}


def test_cells_of_before_the_fixed_sets_are_read(tmp_path: Path) -> None:
    """Their metrics.json, and its description, have no figure of one set of tasks."""
    cells = [Constrained("gpt4o", share=0.05, options={"rounds": 2}), Constrained("gpt4o", "levels", passes=0.7)]
    report(tmp_path, *cells)
    for path in (tmp_path / "runs").glob("*/metrics.json"):
        metrics = json.loads(path.read_text())
        for part in (metrics, metrics["n"], metrics["ci"]):
            for key in [key for key in part if "_fixed" in key]:
                del part[key]
        for kind in ("series", "finals"):
            metrics["measures"][kind] = [each for each in metrics["measures"][kind] if "_fixed" not in each["key"]]
        path.write_text(json.dumps(metrics))
    (row, *_) = (row for row in rows_of(tmp_path, "repair_rounds") if row["source"] == "measured")
    metrics = metrics_of(tmp_path, "gpt4o-*-repair-*")
    assert [row[f"ifrepair_{k}"] for k in range(3)] == pytest.approx([100 * value for value in metrics["ifrepair"]])
    assert "figure_12_rounds" in {figure.of.name for figure in drawn(tmp_path)}
