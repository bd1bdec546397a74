"""LaTeX that can be pasted: it fits the page, and LaTeX itself says so where it is installed."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from codechat.report.build import comparisons_of
from codechat.report.chapters import chapter_of
from codechat.report.data import Column, Table
from codechat.report.formats import ROWS, as_latex
from codechat.report.loading import load_cells
from support.refine_cells import Made, write_cell

CLASSES = {
    "one column": r"\documentclass{article}",
    "two columns": r"\documentclass[twocolumn]{article}",
    "IEEEtran": r"\documentclass[journal]{IEEEtran}",
    "acmart": r"\documentclass[sigconf,nonacm]{acmart}",
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Table]:
    """All tables of a report: long labels, two datasets, sessions of two lengths."""
    runs = tmp_path_factory.mktemp("runs")
    for model in ("qwen25_coder_32b", "llama31_8b"):
        for made in (Made(model, "humaneval", 8, 5), Made(model, "mbpp", 8, 5), Made(model, "mbpp", 8, 5, seed=1)):
            write_cell(made, runs)
    write_cell(Made("llama31_8b", "mbpp", 8, 4, agenda="escalating"), runs)
    (comparison,) = comparisons_of(load_cells([runs]))
    return list(chapter_of("refine").tables(comparison))


def test_no_value_is_lost(tables: list[Table]) -> None:
    for table in tables:
        latex = as_latex(table)
        for row in table.rows:
            for column, value in zip(table.columns, row, strict=True):
                text = column.text(value).replace("−", "$-$").replace("%", r"\%")
                assert not column.numeric or value is None or text in latex, (table.name, column.key)


def of_rows(rows: int) -> str:
    columns = (Column("model", "Model"), Column("x", "X", ".1f"))
    return as_latex(Table("t", "T", columns, tuple((f"m{number}", 0.5) for number in range(rows))))


def test_a_table_that_is_too_long_for_a_page_breaks_it() -> None:
    short, long = of_rows(ROWS), of_rows(ROWS + 1)
    assert (short.count(r"\begin{table*}"), short.count("longtable")) == (1, 0)
    assert (long.count(r"\begin{longtable}"), long.count("table*")) == (1, 0)
    assert long.count("Model & X") == 2, "the head of the first page and of the others"
    assert [latex.count(" & 0.5") for latex in (short, long)] == [ROWS, ROWS + 1]
    assert "longtable," in long.partition("\n")[0], "it is said which package it needs"


def test_blocks_are_named() -> None:
    columns = (
        Column("model", "Model"),
        Column("dataset", "Dataset"),
        Column("turn", "Turn", "d"),
        Column("x", "X of two words", ".1f"),
    )
    rows = tuple((model, name, turn, 0.5) for name in ("d1", "d2") for model in ("m", "n") for turn in (0, 1))
    latex = as_latex(Table("t", "T", columns, rows, strong=frozenset({(0, 3)})))
    assert [line for line in latex.splitlines() if line.endswith(r" \\")] == [
        r"Model & Turn & \shortstack[r]{X of\\two\\words} \\",
        r"\multicolumn{3}{l}{\textit{d1}} \\",
        r"m & 0 & \textbf{0.5} \\", r"m & 1 & 0.5 \\", r"n & 0 & 0.5 \\", r"n & 1 & 0.5 \\",
        r"\multicolumn{3}{l}{\textit{d2}} \\",
        r"m & 0 & 0.5 \\", r"m & 1 & 0.5 \\", r"n & 0 & 0.5 \\", r"n & 1 & 0.5 \\",
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_finds_nothing_that_sticks_out(tables: list[Table], tmp_path: Path) -> None:
    tried = 0
    for name, first in CLASSES.items():
        if not _has_class(re.findall(r"\{(\w+)\}", first)[0]):
            continue
        shown = [latex for latex in map(as_latex, tables) if name == "one column" or "longtable" not in latex]
        body = [rf"{latex}\clearpage" for latex in shown]
        packages = r"\usepackage{array,booktabs,graphicx,longtable,pdflscape}"
        start = [first, packages, r"\begin{document}\title{T}\author{A}\maketitle"]
        (tmp_path / "t.tex").write_text("\n".join([*start, *body, r"\end{document}"]))
        done = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "t.tex"], cwd=tmp_path, capture_output=True,
            timeout=120, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        log = done.stdout.decode(errors="replace")
        assert done.returncode == 0, (name, log[-2000:])
        assert re.findall(r"Overfull.*|.*Float too large.*|^! .*", log, re.MULTILINE) == [], name
        tried += 1
    assert tried >= 2, "article is part of every LaTeX"


def _has_class(name: str) -> bool:
    found = subprocess.run(["kpsewhich", f"{name}.cls"], capture_output=True, check=False, timeout=60)
    return found.returncode == 0
