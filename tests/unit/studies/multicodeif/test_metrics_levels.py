"""The figures of levels, on sessions that are worked out by hand."""

from typing import Any

import pytest

from codechat.base.records import SessionRecord
from codechat.report.metrics import points_of
from codechat.report.metrics.measures import interval_of, size_of, value_of
from codechat.studies.multicodeif.metrics import LEVELS, levels_metrics
from support.multicodeif import session, turn


def chain(task: str, *levels: str, **fields: Any) -> SessionRecord:
    turns = [turn(number, each, level=f"L{number + 1}", round=0) for number, each in enumerate(levels)]
    return session(task, *turns, protocol="levels", **fields)


def measured(*sessions: SessionRecord) -> dict[str, Any]:
    return levels_metrics(sessions, seed=0)


CHAINS = (
    chain("a", "t+", "t+ o+", "t+ o- n+", language="java"),
    chain("b", "t-+", "t+ o-", "t- o- n?", language="go"),
    chain("c", "t+", "t+ o?", "t+ o+ n+", language="go"),
    chain("d", "t+", status="errored", error="HTTP 500"),
)


def test_soft_and_hard_satisfaction_by_level() -> None:
    found = measured(*CHAINS)
    assert found["levels"] == ["L1", "L2", "L3"]
    assert found["ssr"] == [2 / 3, 4 / 5, 5 / 8]
    assert found["hsr"] == [2 / 3, 1 / 2, 1 / 3]
    assert (found["n"]["ssr"], found["n"]["hsr"]) == ([3, 5, 8], [3, 2, 3])


def test_means_weigh_levels_alike() -> None:
    found = measured(*CHAINS)
    assert found["avg_ssr"] == pytest.approx((2 / 3 + 4 / 5 + 5 / 8) / 3)
    assert found["avg_hsr"] == pytest.approx((2 / 3 + 1 / 2 + 1 / 3) / 3)
    assert found["avg_hsr_official"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert found["n"]["avg_hsr"] == 8
    low, high = found["ci"]["avg_hsr"]
    assert low <= found["avg_hsr"] <= high


def test_undecided_turns_are_in_no_rate() -> None:
    found = measured(*CHAINS)
    assert found["undecided_levels"] == [0, 1 / 3, 0]
    assert found["undecided"] == 1 / 9
    assert found["by_type"]["undecided"] == {
        "data_structure_operation": 1 / 6, "data_structure_type": 0, "naming": 1 / 3,
    }  # fmt: skip


def test_groups_are_over_all_levels() -> None:
    found = measured(*CHAINS)
    assert found["by_type"]["accuracy"]["data_structure_type"] == 7 / 9
    assert found["by_type"]["official"]["data_structure_type"] == 8 / 9
    assert found["by_language"]["accuracy"] == {"go": 2 / 5, "java": 2 / 3}
    assert found["by_check"]["accuracy"] == {"rule": 11 / 16}


def test_a_chain_may_lack_a_level() -> None:
    short = session("a", turn(0, "t+", level="L1"), turn(2, "t+ o+ n+", level="L3"), protocol="levels")
    found = measured(short, chain("b", "t-", "t- o-", "t- o- n-"))
    assert found["hsr"] == [1 / 2, 0, 1 / 2]
    assert found["n"]["hsr"] == [2, 1, 2]


def test_every_measure_has_a_value_a_size_and_an_interval_of_the_same_shape() -> None:
    found = measured(*CHAINS)
    for measure in (*LEVELS.series, *LEVELS.finals, *LEVELS.breakdowns):
        value = value_of(found, measure)
        assert value is not None, measure
        for other in (interval_of(found, measure), size_of(found, measure)):
            assert type(other) is type(value) or not isinstance(value, list | dict), measure
            assert not isinstance(value, list | dict) or len(other) == len(value), measure
    points = {(point.key, point.step): point.value for point in points_of(LEVELS, found)}
    assert points["turn/hsr", 2] == 1 / 3
    assert points["final/avg_ssr", 0] == pytest.approx(found["avg_ssr"])


def test_slim_sessions_have_the_same_figures() -> None:
    assert measured(*(each.slim() for each in CHAINS)) == measured(*CHAINS)


def test_no_session_has_no_figures() -> None:
    found = measured()
    assert (found["hsr"], found["avg_hsr"], found["undecided"], found["levels"]) == ([], None, None, [])
