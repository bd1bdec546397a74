"""Cells that differ: several datasets, ties, sessions of different lengths, and what is drawn of them."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.commands.report import _terminal_tables
from codechat.cli.terminal import out
from codechat.report.build import comparisons_of, headline_of
from codechat.report.chapters import chapter_of
from codechat.report.comparison import Comparison
from codechat.report.data import Table
from codechat.report.loading import load_cells
from codechat.studies.refine.chapter.tables import ranks
from support.refine_cells import Made, write_cell


def comparison_of(runs: Path, *makes: Made) -> Comparison[Any]:
    for made in makes:
        write_cell(made, runs)
    (comparison,) = comparisons_of(load_cells([runs]))
    return comparison


def tables_of(comparison: Comparison[Any]) -> dict[str, Table]:
    return {table.name: table for table in chapter_of("refine").tables(comparison)}


def perfect(*models: str) -> list[Made]:
    return [Made(model, tasks=6, turns=3, first=1.1, breaks=0.0) for model in models]


def test_two_datasets_without_a_common_model_are_two_blocks(tmp_path: Path) -> None:
    comparison = comparison_of(tmp_path, Made("a", "humaneval", 6, 3), Made("b", "mine", 6, 3))
    tables = tables_of(comparison)
    board = tables["leaderboard"]
    assert board.blocks == (("humaneval", (0,)), ("mine", (1,)))
    assert [row[:3] for row in board.rows] == [(1, "a", "humaneval"), (1, "b", "mine")]
    assert None not in [row["mst"] for row in board.named_rows()]
    assert "mst_mean" not in [column.key for column in tables["table_5_mst"].columns], "there is no mean"
    with out.capture() as told:
        for shown in _terminal_tables(board):
            out.print(shown)
    lines = told.get().splitlines()
    assert [line.strip() for line in lines if line.startswith("Leaderboard")] == [
        "Leaderboard: humaneval",
        "Leaderboard: mine",
    ]
    assert not [line for line in lines if line.count("–") > 3], "no row of dashes"


def test_ties_share_a_rank() -> None:
    values = {"a": 2.0, "b": 3.0, "c": 3.0 + 1e-15, "d": None, "e": 1.0, "f": 1.5}
    assert ranks(values) == {"b": 1, "c": 1, "a": 3, "f": 4, "e": 5, "d": None}


def test_lengths_are_ranked_by_the_turns_that_all_have(tmp_path: Path) -> None:
    """4.00 of 4 turns is more than 4.90 of 10: of four turns each."""
    comparison = comparison_of(
        tmp_path, Made("short", tasks=12, turns=4, first=1.1, breaks=0.0), Made("long", tasks=12, turns=10, breaks=0.05),
        Made("long", "mine", tasks=12, turns=10), Made("short", "mine", tasks=12, turns=4, first=1.1, breaks=0.0),
    )  # fmt: skip
    tables = tables_of(comparison)
    rows = [*tables["leaderboard"].named_rows()]
    assert [(row["rank"], row["model"], row["dataset"]) for row in rows[:4]] == [
        (1, "short", "mean of all"), (2, "long", "mean of all"), (1, "short", "humaneval"), (2, "long", "humaneval"),
    ]  # fmt: skip
    for row in rows:
        assert row["mst_common"] <= 4 and row["mst_common_ci"][0] <= row["mst_common"] <= row["mst_common_ci"][1]
    long = rows[3]
    cells = [found.cell for found in comparison.cells if (found.cell.turns, found.cell.dataset) == (10, "humaneval")]
    at = cells[0].metrics["mst_at"]["4"]
    assert long["mst_common"] == pytest.approx(at) and long["mst"] > long["mst_common"]
    assert [row["model"] for row in tables["table_5_mst"].named_rows()][:2] == ["short", "long"]
    (alike,) = (comparison_of(tmp_path / "alike", Made("a", tasks=6, turns=4)),)
    assert "mst_common" not in {column.key for column in tables_of(alike)["leaderboard"].columns}


def test_a_tie_is_told_as_one(tmp_path: Path) -> None:
    comparison = comparison_of(tmp_path / "three", *perfect("a", "b", "c"))
    tables = tables_of(comparison)
    told = headline_of([comparison], tuple(tables.values()))
    assert told.title.startswith("a, b and c ") and "3.00 of 3 turns" in told.title
    assert "Next is" not in told.text
    assert [row[0] for row in tables["leaderboard"].rows] == [1, 1, 1]
    two = comparison_of(tmp_path / "two", *perfect("a", "b"))
    told = headline_of([two], tuple(tables_of(two).values()))
    assert told.title.startswith("a and b ") and "3.00 of 3 turns" in told.title
    assert "0.00 turns on humaneval" in told.text and "0.00 to 0.00" in told.text


def test_cells_of_different_lengths_keep_every_value(tmp_path: Path) -> None:
    comparison = comparison_of(tmp_path, *(Made("a", tasks=8, turns=turns) for turns in (3, 5, 6)))
    table = tables_of(comparison)["table_6_mst_sensitivity"]
    found = {row["turns"]: row for row in table.named_rows()}
    for turns, caps in ((3, (2, 3)), (5, (2, 4, 5)), (6, (2, 4, 6))):
        row = found[turns]
        assert [cap for cap in (2, 3, 4, 5, 6) if row[f"mst_at_{cap}"] is not None] == list(caps)
        for before, cap in pairwise(caps):
            change = 100 * (row[f"mst_at_{cap}"] / row[f"mst_at_{before}"] - 1)
            assert row[f"change_{cap}_pct"] == pytest.approx(change)


def test_an_ablation_holds_cells_that_differ_in_nothing_else(tmp_path: Path) -> None:
    makes = [Made("a", tasks=6, turns=3, agenda="balanced"), Made("a", tasks=6, turns=3, agenda="semantic", seed=1)]
    assert "ablation_agenda" not in tables_of(comparison_of(tmp_path, *makes))
