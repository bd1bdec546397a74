"""A protocol's description of what it measures: read from metrics.json, and followed to the tracked points."""

from dataclasses import replace
from typing import Any

from codechat.report.metrics import Breakdown, Final, Measures, Point, Series, headline_of, points_of
from codechat.report.metrics.measures import FIELD, interval_of, measures_in, merge, size_of, value_of

KEPT = Series("kept", "Kept", first_turn=1)
GRADE = Final("grade", "Grade", at="marks.mean", unit="number", help="the mean mark")
BY_KIND = Breakdown("grade", "Grade", by="kind", at="by_kind.grade", unit="number")
LOST = Final("lost", "Lost turns", unit="count", higher_is_better=None)
MEASURES = Measures("exam", "An exam: of nothing", (KEPT,), (GRADE,), (BY_KIND,), (LOST,), "the mark is good")
METRICS: dict[str, Any] = {
    "sessions": 3, "completed": 2, "errored": 1, "outcomes": {"pass": 4, "fail": 1}, "retries": 7, "wall_s": 2.5,
    "tokens": {"model": {"input_tokens": 10}}, "cost_usd": {"model": None}, "lost": 0,
    "kept": [0.5, None, 0.25], "marks": {"mean": 3.5}, "by_kind": {"grade": {"hard/odd": 2.0, "Plain sort": None}},
    "ci": {"kept": [[0.4, 0.6], None, [0.2, 0.3]], "marks": {"mean": [3.0, 4.0]}},
    "n": {"marks": {"mean": 2}},
}  # fmt: skip


def test_points_follow_from_the_description() -> None:
    points = points_of(MEASURES, METRICS)
    assert [point for point in points if point.key.startswith("turn/")] == [
        Point("turn/kept", 0.5, 1),
        Point("turn/kept", 0.25, 3),
    ]
    scalars = {point.key: point.value for point in points if not point.key.startswith("turn/")}
    assert scalars == {
        "final/sessions": 3, "final/completed": 2, "final/errored": 1, "final/outcome_pass": 4, "final/outcome_fail": 1,
        "final/lost": 0, "final/grade": 3.5, "final/grade_hard_odd": 2.0,
        "cost/wall_s": 2.5, "cost/retries": 7, "cost/model_input_tokens": 10,
    }  # fmt: skip


def test_values_intervals_and_sizes_lie_under_the_same_place() -> None:
    assert (value_of(METRICS, GRADE), interval_of(METRICS, GRADE), size_of(METRICS, GRADE)) == (3.5, [3.0, 4.0], 2)
    assert interval_of(METRICS, KEPT)[1] is None
    assert (interval_of(METRICS, BY_KIND), size_of(METRICS, KEPT)) == (None, None)
    assert value_of({"marks": 3}, GRADE) is None, "something else lies on the way"


def test_metrics_json_carries_its_description() -> None:
    assert measures_in({FIELD: MEASURES.describe()}) == MEASURES
    assert measures_in({}) is None
    later = {**MEASURES.describe(), "series": [{"key": "kept"}]}
    assert measures_in({FIELD: later}) is None, "what this version cannot read is not guessed"


def test_the_headline_is_the_first_series_and_the_first_finals() -> None:
    assert headline_of(MEASURES) == {"turn/kept": "Kept", "final/grade": "Grade", "final/errored": "errored sessions"}
    assert MEASURES.name == "An exam"


def test_cells_of_one_protocol_may_measure_more_or_less() -> None:
    """The option that adds a measure is in some cells only: a report has a place for all, in the fuller order."""
    less = replace(MEASURES, series=(), breakdowns=())
    other = replace(less, finals=(Final("own", "Own"),))
    together = merge([less, other, MEASURES])
    assert merge([less, MEASURES]) == merge([MEASURES, less]) == MEASURES
    assert [final.key for final in together.finals] == ["grade", "own"]
    assert (together.series, together.breakdowns) == (MEASURES.series, MEASURES.breakdowns)
