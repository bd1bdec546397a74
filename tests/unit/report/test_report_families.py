"""Tests are corrected within a question, and its size is told: a factor's effect does not pay for other factors."""

from itertools import product
from pathlib import Path

import pytest

from codechat.report.build import comparisons_of
from codechat.report.data import Table
from codechat.report.generic.paired import holm, pairs
from codechat.report.loading import load_cells
from codechat.studies.refine.chapter import comparisons
from support.refine_cells import Made, write_cell

AGENDAS, JUDGES, SEEDS = ("balanced", "iid", "cosmetic"), ("rules", "llm"), (0, 1)


@pytest.fixture(scope="module")
def ablation(tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, Table]:
    """Twelve cells of one model, whose agenda `cosmetic` breaks little, and two of another model."""
    runs = tmp_path_factory.mktemp("ablation")
    for agenda, judge, seed in product(AGENDAS, JUDGES, SEEDS):
        breaks = 0.02 if agenda == "cosmetic" else 0.2
        write_cell(Made("a", tasks=25, turns=4, agenda=agenda, judge=judge, seed=seed, breaks=breaks), runs)
    write_cell(Made("b", tasks=25, turns=4), runs)
    (found,) = comparisons_of(load_cells([runs]))
    compared = pairs(found)
    return comparisons.differences(compared), comparisons.turns(compared)


def test_a_family_is_what_one_question_compares(ablation: tuple[Table, Table]) -> None:
    rows = list(ablation[0].named_rows())
    assert len(rows) == 12 * 11 // 2 + 1
    sizes = {row["family"]: row["tests"] for row in rows}
    assert sizes["a: agenda"] == 3 * len(JUDGES) * len(SEEDS) and sizes["a: judge"] == len(AGENDAS) * len(SEEDS)
    assert sizes["a: seed"] == len(AGENDAS) * len(JUDGES)
    (models,) = (row for row in rows if row["family"].startswith("models"))
    assert models["tests"] == 1 and models["p_holm"] == models["p"], "one test is not corrected"
    assert sum(row["tests"] == sizes[row["family"]] for row in rows) == len(rows)


def test_the_correction_is_over_the_family_alone(ablation: tuple[Table, Table]) -> None:
    for table, turns in zip(ablation, (1, 4), strict=True):
        rows = list(table.named_rows())
        for family in {row["family"] for row in rows}:
            own = [row for row in rows if row["family"] == family]
            assert [row["p_holm"] for row in own] == pytest.approx(holm([row["p"] for row in own]))
            assert {row["tests"] for row in own} == {len(own)} and len(own) % turns == 0
    rows = list(ablation[0].named_rows())
    over_all = holm([row["p"] for row in rows])
    assert any(p is not None and p >= 0.05 > row["p_holm"] for p, row in zip(over_all, rows, strict=True)), (
        "what the whole table called chance"
    )


def test_one_question_needs_no_name(tmp_path: Path) -> None:
    for model in "abc":
        write_cell(Made(model, tasks=12, turns=4), tmp_path)
    (found,) = comparisons_of(load_cells([tmp_path]))
    table = comparisons.differences(pairs(found))
    assert [row["tests"] for row in table.named_rows()] == [3, 3, 3]
    assert "family" not in {column.key for column in table.columns}
