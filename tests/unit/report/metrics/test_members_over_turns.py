"""A share over turns whose members change says so, and no headline rises because those that fail leave it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codechat.base.records import SessionRecord
from codechat.report.chapters import chapter_of
from codechat.report.metrics import Effort, Measures, caution_of, headline_of, points_of
from codechat.report.metrics.measures import FIELD, changes_text, changing_sizes, size_of, value_of
from codechat.report.tracking import FinishedCell
from codechat.report.tracking.runs import description
from codechat.run.protocols.recorded import MEASURES as RECORDED
from codechat.run.protocols.recorded import recorded_metrics
from codechat.studies.cab.metrics import ASSIST
from codechat.studies.multicodeif.metrics import LEVELS, REPAIR, levels_metrics, repair_metrics
from codechat.studies.refine.metrics import REFINE, refine_metrics
from codechat.studies.sreval.metrics import STEPWISE, stepwise_metrics
from support.cab import Assisted, write_assisted
from support.codeif import MEASURES, Talk, write_talk
from support.multicodeif import session, turn
from support.refine_cells import Made, sessions_of

DROPPING = [["n+"], ["n+"], *[["n-", "n-", "n-", "n-", "n?"]] * 3]
"""Two tasks met at once; three that fail until the last round, where nobody can decide."""


def repaired(dialogues: Sequence[Sequence[str]], rounds: int, *, rejudge: bool = False) -> dict[str, Any]:
    sessions = [session(f"t{number}", *replies) for number, replies in enumerate(dialogues)]
    return repair_metrics(sessions, rounds=rounds, rejudge=rejudge, seed=0) | {FIELD: REPAIR.describe()}


def chains(levels: Sequence[Sequence[str]]) -> dict[str, Any]:
    sessions = []
    for number, replies in enumerate(levels):
        turns = [turn(place, each, level=f"L{place + 1}", round=0) for place, each in enumerate(replies)]
        sessions.append(session(f"t{number}", *turns, protocol="levels"))
    return levels_metrics(sessions, seed=0) | {FIELD: LEVELS.describe()}


def lines_of(measures: Measures, metrics: dict[str, Any]) -> dict[str, str]:
    return dict(chapter_of(measures.protocol).summary(measures, metrics))


def test_failing_tasks_that_become_undecided_lift_no_headline() -> None:
    found = repaired(DROPPING, 4)
    assert found["ifrepair"] == [0.4] * 4 + [1.0] and found["n"]["ifrepair"] == [
        5,
        5,
        5,
        5,
        2,
    ]  # as the contract has it
    assert found["ifrepair_fixed"] == [0.4] * 5 and found["ifrepair_end"] == 0.4
    assert found["ifrepair_end_without_leaks"] == 0.4 and found["by_category"]["ifrepair"]["coding_style"] == 0.4
    lines = lines_of(REPAIR, found)
    assert lines["IFRepair, end"].startswith("0.400") and lines["n of IFRepair@k, turn 0 → 4"].startswith("5 → 2")
    points = {(point.key, point.step): point.value for point in points_of(REPAIR, found)}
    first, *_ = headline_of(REPAIR)
    assert [points[first, step] for step in range(5)] == [0.4] * 5 and points["turn/ifrepair_n", 4] == 2


def test_levels_rise_by_no_drop_out_either() -> None:
    found = chains([["n+", "n+"], *[["n-", "n?"]] * 4])
    assert found["hsr"] == [0.2, 1.0] and found["n"]["hsr"] == [5, 1]
    assert found["hsr_fixed"] == [0.2, 0.2] and found["avg_hsr_fixed"] == 0.2
    assert next(iter(headline_of(LEVELS))) == "turn/hsr_fixed" and LEVELS.finals[0].key == "avg_hsr_fixed"


def test_a_chain_that_lacks_a_level_is_not_of_the_fixed_set() -> None:
    found = chains([["n+", "n-"], ["n-", "n-"], ["n+"], ["n?", "n+"]])
    assert found["n"]["hsr_fixed"] == [2, 2] and found["hsr_fixed"] == [0.5, 0.0]


VERDICT = st.sampled_from(["n-", "n+", "n?"])


@settings(max_examples=40)
@given(st.lists(st.lists(VERDICT, min_size=1, max_size=4), min_size=1, max_size=8), st.data(), st.booleans())
def test_no_undecided_later_verdict_lifts_what_leads(dialogues: list[list[str]], data: Any, rejudge: bool) -> None:
    """Of any dialogues, a later failure that becomes undecided changes no figure over the fixed set."""
    number = data.draw(st.integers(0, len(dialogues) - 1))
    place = data.draw(st.integers(0, len(dialogues[number]) - 1))
    dialogues[number][place] = "n-"
    dropped = [list(each) for each in dialogues]
    if place:
        dropped[number][place] = "n?"
    for measured, measures in ((repaired, REPAIR), (chains, LEVELS)):
        options: dict[str, Any] = {"rounds": 3, "rejudge": rejudge} if measured is repaired else {}
        before, after = measured(dialogues, **options), measured(dropped, **options)
        leading = measures.series[0]
        assert value_of(before, leading) == value_of(after, leading)
        assert len({*size_of(after, leading)}) <= 1, "one set at every turn"
    assert repaired(dialogues, 3)["gains"] == repaired(dropped, 3)["gains"]


def stepped(lengths: Sequence[int]) -> dict[str, Any]:
    sessions = [session(f"t{number}", *["n+"] * length, protocol="stepwise") for number, length in enumerate(lengths)]
    return stepwise_metrics(sessions, seed=0) | {FIELD: STEPWISE.describe()}


@pytest.mark.parametrize("mode", ["dynamic", "static"])
def test_conversations_that_end_early_leave_a_number(mode: str, tmp_path: Path) -> None:
    metrics = json.loads((write_talk(Talk("m", mode, tasks=8), tmp_path) / "metrics.json").read_text())
    assert_told(MEASURES[mode], metrics)


def test_tasks_of_fewer_steps_leave_a_number() -> None:
    found = stepped([5, 3, 1])
    assert_told(STEPWISE, found)
    assert changing_sizes(found, STEPWISE.series[0]) == [3, 2, 2, 1, 1]
    assert "3 at first" in caution_of(found) and "1 at last" in caution_of(found)
    assert caution_of(stepped([2, 2])) == "", "nothing changes"


def test_dialogues_with_a_satisfied_user_leave_a_number(tmp_path: Path) -> None:
    found = json.loads((write_assisted(Assisted("m", issues=1), tmp_path) / "metrics.json").read_text())
    assert_told(ASSIST, found)
    assert not changes_text(found, ASSIST.series[0]) and changes_text(found, ASSIST.series[1])


def test_published_dialogues_of_several_lengths_leave_a_number() -> None:
    sessions = [session(f"t{number}", *["n+"] * length, protocol="recorded") for number, length in enumerate((4, 2, 1))]
    found = recorded_metrics(sessions, seed=0, effort=Effort()) | {FIELD: RECORDED.describe()}
    assert_told(RECORDED, found)
    assert changing_sizes(found, RECORDED.series[0]) == [3, 2, 1, 1]


def assert_told(measures: Measures, metrics: dict[str, Any]) -> None:
    """Each share over turns has its sizes, and where they differ the summary, MLflow's points and its note have them."""
    lines, points = lines_of(measures, metrics), points_of(measures, metrics)
    for series in measures.series:
        assert len(size_of(metrics, series)) == len(value_of(metrics, series)), series
        changes = bool(changes_text(metrics, series))
        assert any(line.startswith(f"n of {series.label}, ") for line in lines) == changes
        assert any(point.key == f"turn/{series.key}_n" for point in points) == changes
    leading = measures.series[0]
    note = description(FinishedCell("1", "n", {}, points, None, headline=headline_of(measures)))  # type: ignore[arg-type]
    assert ("not the same" in note) == bool(changes_text(metrics, leading))


def test_numbers_between_the_ends_are_said() -> None:
    metrics = {"passed": [0.5, 1.0, 0.5, None], "n": {"passed": [4, 2, 3, 0]}}
    series = MEASURES["static"].series[0]
    series = type(series)("passed", "Passing turns")
    assert changes_text(metrics, series) == "4 → 3, least 2"
    assert changes_text({"passed": [1.0, None], "n": {"passed": [4, 0]}}, series) == ""


def test_adherence_of_some_turns_says_of_how_many() -> None:
    sessions: list[SessionRecord] = list(sessions_of(Made("m", tasks=12, turns=4)))
    found = refine_metrics(sessions, seed=0)
    judged = sum(found["phi"][key] for key in ("pass_adhered", "pass_violated", "fail_adhered", "fail_violated"))
    line = lines_of(REFINE, found)["adherence, turn 1 → 3"]
    assert (f"{judged} of {12 * 3}" in line) == (judged < 12 * 3)
