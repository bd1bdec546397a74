"""The chapter of requirements that come step by step: the paper's tables, and when its own figures stand beside ours."""

import csv
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codechat.report.build import build_report, comparisons_of, headline_of
from codechat.report.chapters import chapter_of
from codechat.report.data import Board, Chart, ReportData
from codechat.report.loading import load_cells
from support.sreval import Steps, write_steps

MODELS = ("gpt_oss_20b_low", "qwen3_coder_480b", "mine")


def report(folder: Path, *cells: Steps) -> ReportData:
    for cell in cells:
        write_steps(cell, folder / "runs")
    return build_report(load_cells([folder / "runs"]), folder / "out")


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "out" / "tables" / f"{name}.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def metrics_of(folder: Path, pattern: str) -> dict[str, Any]:
    (path,) = (folder / "runs").glob(f"{pattern}/metrics.json")
    return dict(json.loads(path.read_text()))


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """RQ1 and RQ2 of two models at both function-level datasets, and RQ1 of a third."""
    folder = tmp_path_factory.mktemp("study")
    settings = [("full_history", "basic"), ("full_history", "golden"), ("code_edit", "basic"), ("cumulative", "basic")]
    report(
        folder,
        *(
            Steps(model, dataset, prompting, context, passes=0.4 + 0.1 * number + (0.15 if context == "golden" else 0))
            for number, model in enumerate(MODELS)
            for dataset in ("sreval_python", "sreval_java")
            for prompting, context in (settings[:2] if model == "mine" else settings)
        ),
    )
    return folder


def test_the_overview_is_the_papers_table_with_its_figures_beside_ours(comparison: Path) -> None:
    rows = rows_of(comparison, "stepwise_models_function")
    named = [(row["model"], row["source"]) for row in rows]
    assert named[:5] == [
        ("gpt_oss_20b_low", "measured"), ("gpt-oss-20B low", "published"), ("mine", "measured"),
        ("qwen3_coder_480b", "measured"), ("Qwen3-Coder-480B-A35B-Instruct", "published"),
    ]  # fmt: skip
    assert len(rows) == 3 + 11, "every model of the paper is there once"
    assert [*rows[0]][2:] == [
        f"{language}_{key}_{context}"
        for language in ("python", "java")
        for key in ("avg_acc", "complete_rate")
        for context in ("basic", "golden")
    ]
    measured = metrics_of(comparison, "mine-sreval_java-full_history-golden-official")
    assert float(rows[2]["java_avg_acc_golden"]) == measured["avg_acc"]
    assert float(rows[2]["java_complete_rate_golden"]) == measured["complete_rate"]
    assert [*rows[1].values()][2:] == ["0.4937", "0.6442", "0.1901", "0.1972", "0.5308", "0.6356", "0.2035", "0.2151"]


def test_acc_by_round_is_a_table_a_dataset(comparison: Path) -> None:
    rows = {row["model"]: row for row in rows_of(comparison, "stepwise_rounds_sreval_java")}
    acc = metrics_of(comparison, "mine-sreval_java-full_history-basic-official")["acc"]
    assert [float(rows["mine"][f"round_{number}_basic"]) for number in range(1, 6)] == acc
    printed = [rows["DeepSeek-V3.1"][f"round_{number}_golden"] for number in range(1, 6)]
    assert printed == ["0.6105", "0.6919", "0.7267", "0.6933", "0.6239"]
    assert rows["DeepSeek-V3.1"]["complete_rate_basic"] == "0.2267"


def test_promptings_are_rows_with_tokens(comparison: Path) -> None:
    rows = rows_of(comparison, "stepwise_prompting_function")
    asked = {(row["model"], row["source"]) for row in rows}
    assert ("gpt-oss-120B medium", "published") not in asked, "the paper has this table for four models"
    assert len({model for model, source in asked if source == "published"}) == 4
    (edited,) = [row for row in rows if row["model"] == "gpt_oss_20b_low" and row["prompting"] == "code edit"]
    assert float(edited["python_atc"]) == metrics_of(comparison, "gpt_oss_20b_low-sreval_python-code_edit-*")["atc"]
    published = [row for row in rows if row["model"] == "gpt-oss-20B low"]
    assert [(row["context"], row["prompting"]) for row in published] == [
        ("BS", "full history"), ("BS", "code edit"), ("BS", "cumulative"), ("GS", "full history"),
    ], "code edits with golden context were not measured here"  # fmt: skip
    assert (published[2]["python_avg_acc"], published[2]["java_atc"]) == ("0.5321", "8484.03")


def test_sizes_of_the_datasets(comparison: Path) -> None:
    rows = rows_of(comparison, "stepwise_tasks")
    assert [[*row.values()][:7] for row in rows] == [
        ["sreval_java", "measured", "172", "3", "5", str(788 / 172), "788"],
        ["sreval_java", "published", "172", "3", "5", "4.58", "788"],
        ["sreval_python", "measured", "142", "3", "5", str(560 / 142), "560"],
        ["sreval_python", "published", "142", "3", "5", "3.94", "560"],
    ]


def test_the_lengths_and_marks_that_the_paper_prints(comparison: Path) -> None:
    (printed,) = (row for row in rows_of(comparison, "stepwise_tasks")
                  if (row["dataset"], row["source"]) == ("sreval_python", "published"))  # fmt: skip
    assert [printed[f"characters_{part}"] for part in ("question", "code", "tests")] == ["233.3", "1234.4", "2023.3"]
    assert [printed[f"lines_{part}"] for part in ("question", "code", "tests")] == ["2.2", "36.3", "50.0"]
    models = {row["short"]: row for row in rows_of(comparison, "stepwise_paper_models")}
    assert len(models) == 11 and [name for name, row in models.items() if row["open"] == "no"] == ["G5-M"]
    assert (models["DS-T"]["category"], models["DS-T"]["size"]) == ("large reasoning model", "370B")
    assert int(models["OSS-20"]["cells"]) > 0 == int(models["QW3-30"]["cells"])


@pytest.mark.parametrize(
    "cell",
    [
        Steps("mine", harness="guarded"),
        Steps("mine", by_turn=(141, 141, 141, 100, 34)),
        Steps("mine", dataset="mine", by_turn=(20, 20, 10)),
        Steps("mine", dataset="sreval_java_repository", local_context="every"),
        Steps("mine", dataset="sreval_python_repository", local_context="first"),
    ],
    ids=["another harness", "a task less", "another dataset", "more of the file than the paper shows", "less of it"],
)
def test_published_figures_stay_away_from_what_cannot_be_compared(tmp_path: Path, cell: Steps) -> None:
    data = report(tmp_path, cell)
    for table in data.tables:
        if table.name.startswith(("stepwise_models", "stepwise_rounds", "stepwise_prompting")):
            assert [row[:2] for row in table.rows] == [("mine", "measured")], table.name
            assert ("No cell here has." in table.note) == (cell.dataset != "mine")
    assert [table.name for table in data.opening] == ["stepwise_finals"]


def test_published_figures_stand_in_the_comparable_columns_alone(tmp_path: Path) -> None:
    data = report(tmp_path, Steps("mine"), Steps("mine", context="golden", harness="guarded"))
    rows = rows_of(tmp_path, "stepwise_models_function")
    assert {row["model"] for row in rows[:2]} == {"mine, harness=official", "mine, harness=guarded"}
    for row in rows[2:]:
        assert row["python_avg_acc_basic"] and not row["python_avg_acc_golden"]
    assert [table.name for table in data.opening] == ["stepwise_models_function", "stepwise_finals"]


def test_an_effort_on_the_command_line_finds_the_papers_model(tmp_path: Path) -> None:
    report(tmp_path, *(Steps("gpt_oss_20b", options=(("reasoning_effort", effort),)) for effort in ("low", "medium")))
    rows = rows_of(tmp_path, "stepwise_models_function")
    assert [row["model"] for row in rows[:4]] == [
        "gpt_oss_20b, reasoning_effort=low", "gpt-oss-20B low",
        "gpt_oss_20b, reasoning_effort=medium", "gpt-oss-20B medium",
    ]  # fmt: skip


def test_bold_is_the_best_measured_model_and_no_baseline(tmp_path: Path) -> None:
    cells = [Steps("weak", passes=0.3), Steps("strong", passes=0.6), Steps("reference", kind="reference", passes=1)]
    data = report(tmp_path, *cells)
    (table,) = [table for table in data.tables if table.name == "stepwise_models_function"]
    assert {table.rows[row][0] for row, _ in table.strong} == {"strong"}


def test_repositories_are_a_level_of_their_own(tmp_path: Path) -> None:
    report(tmp_path, Steps("mine", "sreval_java_repository"), Steps("mine", "sreval_python"))
    names = {path.stem for path in (tmp_path / "out" / "tables").glob("*.csv")}
    assert {"stepwise_models_function", "stepwise_models_repository", "stepwise_prompting_repository"} <= names
    rows = rows_of(tmp_path, "stepwise_models_repository")
    assert [*rows[0]][2:] == ["java_avg_acc_basic", "java_complete_rate_basic"]
    assert ["Qwen3-235B-A22B-Instruct-2507", "0.2339"] in [[row["model"], row["java_avg_acc_basic"]] for row in rows]


def test_without_full_history_there_are_promptings_alone(tmp_path: Path) -> None:
    data = report(tmp_path, Steps("mine", prompting="cumulative"))
    names = [table.name for table in data.tables if table.group == "stepwise_paper"]
    assert names == ["stepwise_prompting_function", "stepwise_tasks", "stepwise_paper_models"]


def test_the_claim_and_each_chart_keep_to_one_setting(comparison: Path) -> None:
    cells = load_cells([comparison / "runs"])
    (found,) = comparisons_of(cells)
    asked = headline_of([found], ())
    assert asked.kicker.startswith("What do context and prompting change?") and "Model:" in asked.text
    claim = chapter_of("stepwise").headline(found, ())
    assert claim.title.startswith("mine leads: AvgAcc"), "a golden context is no rival of a basic one"
    assert "full history" in claim.text and "basic context" in claim.text
    (section,) = chapter_of("stepwise").sections(found)
    (board,) = [part for part in section.parts if isinstance(part, Board)]
    assert len(board.columns[0].values) == len(cells)
    charts = section.parts[-1]
    assert isinstance(charts, list) and len(charts) == 2 * 2 * 4
    for chart in charts:
        assert isinstance(chart, Chart)
        settings = {tuple(sorted(line.cell.config["protocol"].items())) for line in chart.lines}
        assert len(settings) == 1
        assert {line.name for line in chart.lines} <= set(MODELS), "the title tells the setting"


def test_the_terminal_tells_every_round(tmp_path: Path) -> None:
    folder = write_steps(Steps("mine", by_turn=(4, 4, 2)), tmp_path)
    (found,) = comparisons_of(load_cells([folder]))
    lines = dict(chapter_of("stepwise").summary(found.measures, found.cells[0].cell.metrics))
    acc = found.cells[0].cell.metrics["acc"]
    assert lines["Acc, round 1 → 3"] == " → ".join(f"{value:.3f}" for value in acc)
    assert "Acc after the first turn" in lines


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_the_tables_fit_a_page(comparison: Path, tmp_path: Path) -> None:
    names = sorted(path.stem for path in (comparison / "out" / "tables_wide").glob("stepwise_[mrp]*.tex"))
    lines = [r"\documentclass[twocolumn]{article}", r"\usepackage{array,booktabs,graphicx}", r"\begin{document}"]
    lines += [rf"\input{{{comparison / 'out' / 'tables_wide' / name}}}" for name in names]
    (tmp_path / "paper.tex").write_text("\n".join([*lines, r"\end{document}"]))
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout


def test_tasks_made_without_stages_stand_beside_the_papers_table(tmp_path: Path) -> None:
    names = ("shop", "shop_without_alignment", "shop_without_both")
    report(tmp_path, *(Steps("mine", name, by_turn=(9, 9, 5), passes=0.3 + 0.2 * n) for n, name in enumerate(names)))
    rows = rows_of(tmp_path, "stepwise_ablations")
    ours, aligned, both = rows[:3]
    assert [row["method"] for row in rows[:3]] == ["ours", "w/o Evaluator", "w/o DC & Evaluator"]
    assert {row["tasks"] for row in rows[:3]} == {"shop"} and {row["source"] for row in rows[:3]} == {"measured"}
    gain = 100 * (float(both["avg_acc"]) - float(ours["avg_acc"]))
    assert float(ours["delta_1"]) == 0 and float(both["delta_1"]) == pytest.approx(gain)
    assert float(aligned["delta_2"]) == pytest.approx(
        100 * (float(aligned["complete_rate"]) - float(ours["complete_rate"]))
    )
    assert len(rows) == 3 + 4 * 2 * 3 and rows[3]["model"] == "DeepSeek-V3.1-Think"
    assert len(rows_of(tmp_path, "stepwise_people")) == 7


def test_without_a_pair_of_methods_there_is_no_such_table(comparison: Path) -> None:
    assert not (comparison / "out" / "tables" / "stepwise_ablations.csv").exists()
