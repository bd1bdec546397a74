"""LaTeX that can be pasted: it fits the column, and LaTeX itself says so where it is installed."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from codechat.report.build import studies_of
from codechat.report.chapters import chapter_of
from codechat.report.data import Column, Interval, Table
from codechat.report.latex import COMPACT, WIDE, as_latex
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
    (study,) = studies_of(load_cells([runs]))
    return list(chapter_of("refine").tables(study))


def test_no_value_is_lost(tables: list[Table]) -> None:
    for table in tables:
        for page in (COMPACT, WIDE):
            latex = as_latex(table, page)
            for row in table.rows:
                for column, value in zip(table.columns, row, strict=True):
                    text = column.text(value).replace("−", "$-$").replace("%", r"\%")
                    assert not column.numeric or value is None or text in latex, (table.name, column.key)
            heads = [line for line in latex.splitlines() if r"\begin{tabular}" in line]
            assert len(heads) == latex.count(r"\ifdim\wd0>"), "every part is measured by LaTeX itself"


@pytest.mark.parametrize(("rows", "per_page"), [(43, [21, 22]), (42, [42]), (85, [28, 29, 28])])
def test_no_page_is_left_for_a_single_row(rows: int, per_page: list[int]) -> None:
    columns = (Column("model", "Model"), Column("x", "X", ".1f"))
    latex = as_latex(Table("t", "T", columns, tuple((f"m{number}", 0.5) for number in range(rows))))
    assert [part.count(" & 0.5") for part in latex.split(r"\begin{tabular}")[1:]] == per_page


def test_no_part_is_left_for_a_single_column() -> None:
    columns = (Column("model", "Model"), *(Column(f"v{number}", f"Value{number}", ".4f") for number in range(7)))
    latex = as_latex(Table("t", "T", columns, (("m", *[0.5] * 7),)))
    assert [line.count("Value") for line in latex.splitlines() if "Value" in line] == [3, 4]


def test_blocks_are_named_and_names_are_said_once() -> None:
    columns = (
        Column("model", "Model"),
        Column("dataset", "Dataset"),
        Column("turn", "Turn", "d"),
        Column("x", "X", ".1f"),
    )
    rows = tuple((model, name, turn, 0.5) for name in ("d1", "d2") for model in ("m", "n") for turn in (0, 1))
    latex = as_latex(Table("t", "T", columns, rows))
    assert [line for line in latex.splitlines() if line.endswith(r" \\")] == [
        r"Model & Turn & X \\",
        *(line for name in ("d1", "d2") for line in (
            rf"\multicolumn{{3}}{{l}}{{\textit{{{name}}}}} \\",
            r"m & 0 & 0.5 \\", r" & 1 & 0.5 \\", r"n & 0 & 0.5 \\", r" & 1 & 0.5 \\",
        )),
    ]  # fmt: skip


def test_what_is_too_wide_or_too_long_is_set_in_parts() -> None:
    wide = [
        each for n in range(9) for each in (Column(f"v{n}", f"Value {n}", ".3f"), Column(f"v{n}_ci", "95 %", ".3f"))
    ]
    values = (0.5, Interval(0.25, 0.75)) * 9
    table = Table("t", "T", (Column("model", "Model"), *wide), tuple((f"m{n}", *values) for n in range(60)))
    latex = as_latex(table)
    assert latex.count(r"\caption") == latex.count(r"\label") == 1
    assert latex.count("continued") == latex.count(r"\begin{table}") - 1 > 3
    for line in latex.splitlines():
        if line.startswith("m5 "):
            assert line.count("0.500") == line.count("["), "an interval stays with its value"
            assert line.count("0.500") in (1, 2)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_finds_nothing_that_sticks_out(tables: list[Table], tmp_path: Path) -> None:
    tried = 0
    for name, first in CLASSES.items():
        if not _has_class(re.findall(r"\{(\w+)\}", first)[0]):
            continue
        for page in (COMPACT, WIDE):
            body = [rf"{as_latex(table, page)}\clearpage" for table in tables]
            start = [first, r"\usepackage{array,booktabs,graphicx}", r"\begin{document}\title{T}\author{A}\maketitle"]
            (tmp_path / "t.tex").write_text("\n".join([*start, *body, r"\end{document}"]))
            done = subprocess.run(
                ["pdflatex", "-interaction=nonstopmode", "t.tex"], cwd=tmp_path, capture_output=True,
                timeout=120, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            log = done.stdout.decode(errors="replace")
            assert done.returncode == 0, (name, log[-2000:])
            assert re.findall(r"Overfull.*|.*Float too large.*|^! .*", log, re.MULTILINE) == [], (name, page)
            tried += 1
    assert tried >= 4, "article is part of every LaTeX"


def _has_class(name: str) -> bool:
    found = subprocess.run(["kpsewhich", f"{name}.cls"], capture_output=True, check=False, timeout=60)
    return found.returncode == 0
