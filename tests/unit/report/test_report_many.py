"""Figures of more entrants than a panel holds: a panel or a row each, and every name once."""

from typing import Any

import pytest

from codechat.report.build import comparisons_of
from codechat.report.chapters import chapter_of
from codechat.report.comparison import Comparison
from codechat.report.drawing import Look, curves, styled
from support.pages import MadeCell, made_cell

NAMES = [f"entrant-{number}" for number in range(11)]


@pytest.fixture(scope="module")
def comparison() -> Comparison[Any]:
    cells = [made_cell(name, tasks=4, turns=5, breaks=0.1 + 0.02 * place) for place, name in enumerate(NAMES)]
    apart = [MadeCell(**{**vars(cell), "config": {"model": {"kind": "openai"}}}) for cell in cells]
    (comparison,) = comparisons_of(apart)
    return comparison


@pytest.fixture(scope="module")
def figures(comparison: Comparison[Any]) -> dict[str, Any]:
    with styled():
        look = Look(comparison)
        return {each.name: each.draw(comparison, look) for each in chapter_of("refine").drawings(comparison)}


@pytest.mark.parametrize("name", ["figure_3_pass_at_1", "survival", "figure_6_adherence", "regression_by_turn"])
def test_curves_have_a_panel_each(figures: dict[str, Any], name: str) -> None:
    panels = [panel for panel in figures[name].axes if panel.get_visible()]
    titles = [panel.get_title(loc="left") for panel in panels]
    assert sorted(titles) == sorted(NAMES), "named where it is drawn, so that no legend is needed"
    assert not figures[name].legends
    assert all(len(panel.lines) == 2 for panel in panels), "the entrant and the median of all"
    assert len({panel.get_ylim() for panel in panels}) == 1, "one scale"
    assert len({panel.get_xlim() for panel in panels}) == 1, "the turns stand below each column's last panel alone"
    labels = [bool([tick for tick in panel.get_xticklabels() if tick.get_visible()]) for panel in panels]
    assert labels == [False] * 7 + [True] * 4


def test_numbers_that_are_all_alike_have_an_axis(comparison: Comparison[Any]) -> None:
    figure = curves(comparison, Look(comparison), lambda _: [(1, 0.0, None), (2, 0.0, None)], "Gain", shares=False)
    for panel in figure.axes[: len(NAMES)]:
        low, high = panel.get_ylim()
        assert low < 0 < high


@pytest.mark.parametrize("name", ["figure_4_regression_by_scope", "figure_5_regression_by_change"])
def test_points_have_a_row_each(figures: dict[str, Any], name: str) -> None:
    (panel,) = figures[name].axes
    assert sorted(label.get_text() for label in panel.get_yticklabels()) == sorted(NAMES)
    assert panel.get_xlabel() == "Regression rate" and not panel.get_ylabel()
    assert panel.get_xlim()[0] < 0 < panel.get_xlim()[1] <= 1.02


@pytest.mark.parametrize("name", ["models_regression", "models_self_correction"])
def test_all_together_has_a_row_for_all(figures: dict[str, Any], name: str) -> None:
    by_model, *others = figures[name].axes
    heads = [label.get_text() for label in by_model.get_yticklabels()]
    assert sorted(heads[:-1]) == sorted(NAMES) and heads[-1] == "all models together"
    assert all(len(panel.get_legend_handles_labels()[1]) == 1 for panel in others), "only all together is named"
