"""An interval of a share is never of no width because all tasks agree; metrics.json keeps its percentiles."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codechat.report.build import comparisons_of
from codechat.report.chapters import chapter_of, study_of
from codechat.report.data import Cards
from codechat.report.drawing import Look
from codechat.report.generic.tables import Sheet, tables_of
from codechat.report.loading import load_cells
from codechat.report.metrics.measures import Breakdown, Final, Series, interval_of
from codechat.report.metrics.statistics import STOPPED, TaskBootstrap, TaskRatio, wilson
from codechat.studies.multicodeif.metrics import REPAIR, repair_metrics
from codechat.studies.refine.chapter import comparisons, page, tables
from support.multicodeif import session
from support.refine_cells import Made, write_cell

NONE_OF_SIX = wilson(0, 6)


def repaired(tasks: int, reply: str) -> dict[str, Any]:
    return repair_metrics([session(f"t{n}", reply, reply) for n in range(tasks)], rounds=1, rejudge=False, seed=0)


def test_none_of_six_is_wilsons() -> None:
    found = repaired(6, "n-")
    assert found["ci"]["accuracy"] == [0.0, 0.0], "as the contract has it"
    assert NONE_OF_SIX is not None and NONE_OF_SIX[1] == pytest.approx(0.3903, abs=1e-4)
    for measure in (*REPAIR.finals[:3], *REPAIR.series[:2], REPAIR.breakdowns[0]):
        shown = interval_of(found, measure)
        each = shown if isinstance(measure, Final) else next(iter(shown.values() if isinstance(shown, dict) else shown))
        assert each == pytest.approx(NONE_OF_SIX), measure
    assert dict(chapter_of("repair").summary(REPAIR, found))["Accuracy"] == "0.000 [0.000, 0.390]"
    (finals, *_) = tables_of(Sheet(REPAIR, (), [((), found)]))
    assert next(finals.named_rows())["accuracy_ci"] == pytest.approx(NONE_OF_SIX)


def test_many_turns_of_few_tasks_count_as_few() -> None:
    metrics = {"completed": 6, "ia": 1.0, "n": {"ia": 54}, "ci": {"ia": [1.0, 1.0]}}
    assert interval_of(metrics, Final("ia", "IA")) == pytest.approx(wilson(6, 6))


@pytest.mark.parametrize(
    ("measure", "metrics"),
    [
        (Final("mst", "MST", unit="number"), {"mst": 1.0, "n": {"mst": 6}, "ci": {"mst": [1.0, 1.0]}}),
        (Final("x", "X"), {"x": 0.5, "n": {"x": 6}, "ci": {"x": [0.5, 0.5]}}),
        (Final("x", "X"), {"x": 1.0, "n": {"x": 6}, "ci": {"x": [0.8, 1.0]}}),
        (Final("x", "X"), {"x": 1.0, "n": {"x": 1}, "ci": {"x": None}}),
        (Series("x", "X"), {"x": [1.0], "ci": {"x": [[1.0, 1.0]]}, STOPPED: {}}),
        (Breakdown("x", "X", "by", "x"), {"x": {"a": None}, "n": {"x": {"a": 0}}, "ci": {"x": {"a": None}}}),
    ],
)
def test_every_other_interval_stays(measure: Any, metrics: dict[str, Any]) -> None:
    assert interval_of({"completed": 6, **metrics}, measure) == metrics["ci"]["x" if "x" in metrics else "mst"]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3)), min_size=2, max_size=8))
def test_no_shown_interval_of_a_share_is_without_width(tasks: list[tuple[bool, int]]) -> None:
    figure = TaskRatio({f"t{number}": (total * met, total) for number, (met, total) in enumerate(tasks)})
    bootstrap = TaskBootstrap(figure.by_task, 0)
    shown = bootstrap.shown(figure)
    assert shown is not None and figure.rate is not None
    assert 0 <= shown[0] <= figure.rate <= shown[1] <= 1 and shown[0] < shown[1]
    if len({met for met, _ in tasks}) > 1:
        assert shown == bootstrap.interval(figure)


def test_refinements_tables_show_them_too(tmp_path: Path) -> None:
    write_cell(Made("a", tasks=6, turns=4, first=2.0, breaks=0.0), tmp_path)
    (found,) = comparisons_of(load_cells([tmp_path]))
    for row in tables.turns(found).named_rows():
        assert (row["pass_at_1"], row["pass_at_1_ci"]) == (1.0, pytest.approx(wilson(6, 6)))
        assert row["surviving_ci"] == pytest.approx(wilson(6, 6))
    (whole,) = [row for row in tables.transitions(found).named_rows() if row["type"] == "all"]
    assert (whole["regression"], whole["regression_ci"]) == (0.0, pytest.approx(NONE_OF_SIX))


def test_cards_and_figures_of_regression_show_them_too(tmp_path: Path) -> None:
    """Three tasks, whose code always passes: neither a band nor a whisker is without width."""
    write_cell(Made("a", tasks=3, turns=4, first=2.0, breaks=0.0), tmp_path)
    (found,) = comparisons_of(load_cells([tmp_path]))
    (outcomes,) = found.cells
    kinds = [(kind, figure) for kind, figure in outcomes.regression.items() if figure.rate is not None]
    assert {kind.partition(".")[0] for kind, _ in kinds} == {"overall", "by_scope", "by_change", "by_cell"}
    for kind, figure in kinds:
        assert comparisons.regression(outcomes, kind) == (0.0, pytest.approx(wilson(0, len(figure.by_task)))), kind
    (panel,) = page.regression(found, Look(found), "by_scope").axes
    whiskers = [ends for lines in panel.collections for ends in lines.get_segments()]
    assert whiskers
    assert all(low[1] < high[1] for low, high in whiskers)
    (cards,) = [
        each for part in page.sections_of(found, (), study_of(found)) for each in part.parts if isinstance(each, Cards)
    ]
    assert cards.cards[0].lines[-1].ci == [pytest.approx(wilson(3, 3))] * 4
