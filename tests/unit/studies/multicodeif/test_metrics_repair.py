"""The figures of self-repair, on sessions that are worked out by hand."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codechat.base.records import SessionRecord
from codechat.report.generic import summary_lines
from codechat.report.metrics import caution_of, points_of
from codechat.report.metrics.measures import interval_of, size_of, value_of
from codechat.report.metrics.spending import Effort
from codechat.studies.multicodeif.metrics import BY_CATEGORY, REPAIR, ConstrainedTurn, repair_metrics, states_of
from support.multicodeif import session, turn


def measured(*sessions: SessionRecord, rounds: int = 2, rejudge: bool = False) -> dict[str, Any]:
    return repair_metrics(sessions, rounds=rounds, rejudge=rejudge, seed=0, effort=Effort(wall_s=2.0))


SEVEN = (
    session("a", "n+", language="python"),
    session("b", "n-", "n+", language="python"),
    session("c", "t-", "t-", "t+", language="go"),
    session("d", "t-+", "t-+", "t-+", language="go"),
    session("e", "q-", "q+", language=""),
    session("f", "q?"),
    session("g", "n+", status="errored", error="HTTP 500"),
)


def test_ifrepair_counts_what_is_met_after_at_most_k_repairs() -> None:
    found = measured(*SEVEN)
    assert found["ifrepair"] == [1 / 5, 3 / 5, 4 / 5]
    assert found["gains"] == pytest.approx([40, 20])
    assert (found["accuracy"], found["hsr"], found["ifrepair_end"]) == (1 / 5, 1 / 5, 4 / 5)
    assert (found["sessions"], found["completed"], found["errored"]) == (7, 6, 1)
    assert found["n"]["ifrepair"] == [5, 5, 5]
    assert found["outcomes"]["pass"] == 4


def test_the_categories_whose_answers_are_solutions_are_left_out() -> None:
    found = measured(*SEVEN)
    assert found["ifrepair_without_leaks"] == [1 / 4, 2 / 4, 3 / 4]
    assert found["gains_without_leaks"] == pytest.approx([25, 25])
    assert found["n"]["gains_without_leaks"] == [4, 4]


def test_both_harnesses_stand_side_by_side() -> None:
    found = measured(*SEVEN)
    assert (found["guarded"], found["official"]) == (1 / 5, 2 / 5)
    assert found["by_category"]["official"] == {"code_quality": 0, "coding_style": 1 / 2, "data_structure": 1 / 2}
    assert found["by_category"]["guarded"] == {"code_quality": 0, "coding_style": 1 / 2, "data_structure": 0}


def test_groups_count_constraints_and_languages_tasks() -> None:
    found = measured(*SEVEN)
    assert found["by_type"]["accuracy"] == {"code_quality": 0, "data_structure_type": 0, "naming": 1 / 2}
    assert found["by_check"]["accuracy"] == {"judge": 0, "rule": 1 / 4}
    assert found["by_language"]["accuracy"] == {"go": 0, "none": 0, "python": 1 / 2}
    assert found["by_category"]["ifrepair"] == {"code_quality": 1, "coding_style": 1, "data_structure": 1 / 2}
    assert found["by_category"]["undecided"] == {"code_quality": 1 / 2, "coding_style": 0, "data_structure": 0}
    assert found[BY_CATEGORY] == {
        "code_quality": [0, 1, 1], "coding_style": [1 / 2, 1, 1], "data_structure": [0, 0, 1 / 2],
    }  # fmt: skip
    assert found["n"][BY_CATEGORY]["code_quality"] == [1, 1, 1]


def test_undecided_tasks_are_in_no_rate_and_counted_beside() -> None:
    found = measured(*SEVEN)
    assert found["undecided"] == pytest.approx(1 / 6)
    assert found["undecided_rounds"] == pytest.approx([1 / 6, 1 / 6, 1 / 6])


def test_many_undecided_tasks_are_told_before_the_figures() -> None:
    judged, ruled = session("a", "q?"), [session(name, "n+") for name in "bcde"]
    assert caution_of(measured(judged, *ruled)).startswith("1 of 1 decisions"), "few tasks, and all of a judge's"
    assert "25 % of the tasks" in caution_of(measured(judged, *ruled[:3]))
    assert caution_of(measured(session("a", "q+"), *ruled)) == ""


def test_decisions_count_that_another_constraint_hides() -> None:
    """Every task fails by a rule, so that none is undecided, though nobody can read the judge."""
    found = measured(*(session(f"{number}", "n- q?") for number in range(5)))
    assert (found["undecided"], found["undecided_decisions"], found["n"]["undecided_decisions"]) == (0, 1 / 2, 10)
    assert caution_of(found).startswith("5 of 5 decisions")


def test_a_group_that_is_almost_wholly_undecided_has_no_share() -> None:
    """One of eleven decided, which was no code, would show 0 for the whole category and for the judge."""
    found = measured(session("a", "q-"), *(session(f"{number}", "q?") for number in range(10)), session("r", "n+"))
    assert found["by_category"]["accuracy"] == {"coding_style": 1} and found["by_check"]["accuracy"] == {"rule": 1}
    assert found["by_category"]["undecided"] == {"code_quality": 10 / 11, "coding_style": 0}
    assert list(found[BY_CATEGORY]) == ["coding_style"] and found["n"]["by_check"]["undecided"]["judge"] == 11
    lines = dict(summary_lines(REPAIR, found))
    shown = lines["Accuracy by category"]
    assert shown.startswith("coding_style: 1.000 (n 1*); ") and shown.endswith("undecided: code_quality")
    nine = measured(session("a", "q-"), *(session(f"{number}", "q?") for number in range(9)), session("r", "n+"))
    assert nine["by_category"]["accuracy"] == {"code_quality": 0, "coding_style": 1}


def test_an_unmet_constraint_decides_a_task_with_another_undecided() -> None:
    found = measured(session("a", "n- q?", "n+ q?"), session("b", "n+ t+"))
    assert found["ifrepair"] == [1 / 2, 1, 1]  # undecided once the unmet one is met
    assert found["undecided_rounds"] == [0, 1 / 2, 1 / 2]
    assert found["gains"] == [0, 0]  # of the one task that is decided at both
    assert found["ssr"] == 2 / 3  # of the constraints that are decided
    assert (found["n"]["ssr"], found["n"]["accuracy"]) == (3, 2)


def test_rejudged_replies_count_as_they_were_judged_last() -> None:
    sessions = (session("a", "q+", "q-", "q+"), session("b", "q-", "q-", "q-"))
    assert measured(*sessions, rejudge=True)["ifrepair"] == [1 / 2, 0, 1 / 2]
    assert measured(*sessions, rejudge=True)["gains"] == [-50, 50]


def test_a_session_without_room_stays_unmet() -> None:
    overflown = session("a", "n-", turn(1, "n-", response=None, code=None, outcome="no_code"), ended="context_overflow")
    for rejudge in (False, True):
        assert measured(overflown, session("b", "n+", "n+", "n+"), rounds=2, rejudge=rejudge)["ifrepair"] == [1 / 2] * 3


def test_the_share_that_parses_leaves_out_what_is_not_known() -> None:
    found = measured(
        session("a", turn(0, "n+", parses=True)),
        session("b", turn(0, "n+", parses=False), language="go"),
        session("c", turn(0, "n+", parses=None)),
    )
    assert found["parses"] == 1 / 2
    assert found["by_language"]["parses"] == {"go": 0, "python": 1}


def test_without_repairs_there_is_one_round() -> None:
    found = measured(session("a", "n+"), session("b", "n-"), rounds=0)
    assert (found["ifrepair"], found["gains"], found["accuracy"]) == ([1 / 2], [], 1 / 2)


def test_slim_sessions_have_the_same_figures() -> None:
    assert measured(*(each.slim() for each in SEVEN)) == measured(*SEVEN)


def test_every_measure_has_a_value_a_size_and_an_interval_of_the_same_shape() -> None:
    found = measured(*SEVEN)
    for measure in (*REPAIR.series, *REPAIR.finals, *REPAIR.breakdowns):
        value = value_of(found, measure)
        assert value is not None, measure
        for other in (interval_of(found, measure), size_of(found, measure)):
            assert type(other) is type(value) or not isinstance(value, list | dict), measure
            assert not isinstance(value, list | dict) or len(other) == len(value), measure
    points = {(point.key, point.step): point.value for point in points_of(REPAIR, found)}
    assert points["turn/ifrepair", 2] == 4 / 5
    assert points["turn/gains", 1] == pytest.approx(40)
    assert points["final/official_data_structure", 0] == 1 / 2


def test_intervals_hold_the_figures() -> None:
    found = measured(*(session(f"t{number}", "n-", "n+" if number % 3 else "n-", "n-") for number in range(30)))
    low, high = found["ci"]["ifrepair"][1]
    assert low < 20 / 30 < high
    low, high = found["ci"]["gains"][0]
    assert low < 100 * 20 / 30 < high
    assert found["ci"]["by_category"]["ifrepair"]["coding_style"] is not None


def test_a_turn_is_read_among_other_fields() -> None:
    recorded = turn(1, "n+- t?", usage_by_role={"judge": {}}, calls=[], carried=True)
    own = ConstrainedTurn.of(recorded)
    assert (own.carried, own.round, own.constraints[0].official) == (True, 1, False)
    assert [own.all_met(verdict) for verdict in ("met", "guarded", "official")] == [None, None, False]


VERDICTS = st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=6)


@given(VERDICTS, st.integers(0, 5))
def test_what_was_met_stays_met_unless_judged_again(passed: list[bool | None], rounds: int) -> None:
    states = states_of(passed, rounds, rejudge=False)
    assert len(states) == rounds + 1
    assert all(state for state in states[states.index(True) :]) if True in states else True
    assert any(states) == (True in passed[: rounds + 1])
    again = states_of(passed, rounds, rejudge=True)
    assert again[: len(passed)] == passed[: rounds + 1]
    assert set(again[len(passed) :]) <= {passed[-1]}


@settings(max_examples=40)  # each draws its resamples
@given(st.lists(st.lists(st.sampled_from(["n-", "n+", "n?"]), min_size=1, max_size=4), min_size=1, max_size=12))
def test_ifrepair_never_falls_unless_replies_are_judged_again(dialogues: list[list[str]]) -> None:
    sessions = []
    for number, replies in enumerate(dialogues):  # as the protocol ends a session: at the first that is not unmet
        end = next((place for place, reply in enumerate(replies) if reply != "n-"), len(replies))
        sessions.append(session(f"t{number}", *replies[: end + 1]))
    found = measured(*sessions, rounds=3)
    known = [value for value in found["ifrepair"] if value is not None]
    assert known == sorted(known)
    assert all(gain >= 0 for gain in found["gains"] if gain is not None)
    if not any("n?" in replies for replies in dialogues):
        differences = [100 * (after - before) for before, after in pairwise(known)]
        assert found["gains"] == pytest.approx(differences)
