"""The four metrics of CodeIF-Bench on dialogues that are worked out by hand."""

from typing import Any

import pytest

from codechat.base.domain import Usage
from codechat.base.records import SessionRecord, TurnRecord
from codechat.report.metrics import points_of
from codechat.report.metrics.spending import Effort
from codechat.studies.codeif.metrics import (
    DYNAMIC,
    CheckRecord,
    Exchange,
    OfficialRecord,
    RequirementRecord,
    conversation_metrics,
    static_measures,
)

STATIC = static_measures(converses=True, official=False)
NAMES = {"task": "Base", "A": "Edge Case Handling", "B": "Code Standard", "C": "Edge Case Handling"}


def check(text: str) -> CheckRecord:
    """`A+` is met, `A-` is not, `(A+)` was not asked for, `F+` is an extension."""
    name = text.strip("()+-")
    return CheckRecord(
        id=name,
        strategy="Functionality Extension" if name == "F" else NAMES[name],
        asked=not text.startswith("("),
        accumulates=name != "F",
        outcome="pass" if "+" in text else "fail",
        passed="+" in text,
        reason=None,
    )


def turn(number: int, described: str, *, response: str | None = "…", **fields: Any) -> TurnRecord:
    """`initial: task+`, `A: task+ A-`, `A?: …` for a feedback round, `A!: …` for one after which A is given up."""
    asked, _, checks = described.partition(": ")
    name = asked.rstrip("?!")
    records = [check(each) for each in checks.split()]
    own = "task" if name == "initial" else name
    holding = [each for each in records if (each.asked and each.accumulates if own != "F" else each.id == own)]
    exchange = Exchange(
        round="initial" if asked == "initial" else "feedback" if asked != name else "instruction",
        requirement=None if own == "task" else RequirementRecord(id=own, strategy=check(f"{own}+").strategy, text="…"),
        level=fields.pop("level", "L-1"),
        checks=records,
        discarded=asked.endswith("!"),
        official=fields.pop("official", None),
    )
    passed = all(each.passed for each in holding)
    return TurnRecord(
        turn=number,
        response=response,
        outcome="pass" if passed else "fail",
        passed=passed,
        passed_base=records[0].passed,
        usage=Usage(input_tokens=10, output_tokens=1),
        **fields,
        **exchange.model_dump(),
    )


def session(task: str, *turns: str | TurnRecord, **fields: Any) -> SessionRecord:
    level = fields.pop("level", "L-1")
    return SessionRecord(
        cell_id="c",
        session_id=task,
        task_id=task,
        dataset="d",
        model="m",
        protocol="static",
        agenda=[],
        seed=0,
        status=fields.pop("status", "completed"),
        turns=[each if isinstance(each, TurnRecord) else turn(n, each, level=level) for n, each in enumerate(turns)],
        **fields,
    )


def measured(*sessions: SessionRecord, measures: Any = STATIC, converses: bool = True) -> dict[str, Any]:
    return conversation_metrics(sessions, measures, converses=converses, seed=0, effort=Effort(wall_s=2.0, retries=3))


ONE = session("1", "initial: task+", "A: task+ A+", "B: task+ A- B+", "C: task- A+ B+ C-")
TWO = session("2", "initial: task-", "A: task+ A-", "B: task+ A- B+", level="L-2")


def test_forgetting_in_dialogues_of_unequal_length() -> None:
    metrics = measured(ONE, TWO)
    assert metrics["ia"] == [0.5, 0.5, 1.0, 0.0]
    assert metrics["ca"] == pytest.approx([1 / 2, (2 / 2 + 1 / 2) / 2, (2 / 3 + 2 / 3) / 2, 2 / 4])
    assert metrics["ca_all"] == metrics["passed"] == [0.5, 0.5, 0.0, 0.0]
    assert metrics["ifr"] == pytest.approx([None, 0 / 1, 1 / 3, 1 / 3])
    assert metrics["ife"] == pytest.approx(metrics["ca"]), "every earlier instruction lasts, and one came each round"
    assert metrics["n"]["ia"] == metrics["n"]["ca"] == [2, 2, 2, 1]
    assert metrics["n"]["ifr"] == [0, 1, 3, 3]
    overall = metrics["overall"]
    assert (overall["ia"], overall["ifr"]) == pytest.approx((4 / 7, 2 / 7))
    assert overall["ca"] == pytest.approx((1 + 0 + 1 + 1 / 2 + 2 / 3 + 2 / 3 + 1 / 2) / 7)


def test_by_strategy_and_level() -> None:
    metrics = measured(ONE, TWO)
    by = metrics["by_strategy"]
    assert by["ia"] == pytest.approx({"Base": 1 / 2, "Code Standard": 2 / 2, "Edge Case Handling": 1 / 3})
    # met earlier and lost: the task 1 of 4 times, A and C 1 of 2 (C was never met), B 0 of 1
    assert by["ifr"] == pytest.approx({"Base": 1 / 4, "Code Standard": 0 / 1, "Edge Case Handling": 1 / 2})
    assert metrics["n"]["by_strategy"]["ia"] == {"Base": 2, "Code Standard": 2, "Edge Case Handling": 3}
    assert metrics["by_level"]["ia"] == pytest.approx({"L-1": 3 / 4, "L-2": 1 / 3})
    assert metrics["series_by_level"]["L-2"]["ia"] == [0.0, 0.0, 1.0]
    assert metrics["series_by_level"]["L-1"]["ifr"] == pytest.approx([None, 0.0, 1 / 2, 1 / 3])


def test_an_extension_in_mid_dialogue_counts_at_its_own_turn_alone() -> None:
    metrics = measured(session("1", "initial: task+", "A: task+ A+", "F: task- A+ F+", "B: task+ A+ B+"))
    assert metrics["ia"] == [1.0] * 4
    assert metrics["passed"] == [1.0] * 4, "the extension's turn is held to the extension alone"
    assert metrics["ca"] == metrics["ca_all"] == [1.0, 1.0, None, 1.0]
    assert metrics["ifr"] == [None, 0.0, 0.5, 0.0]
    assert metrics["ife"] == pytest.approx([1 / 1, 2 / 2, 1 / 3, 3 / 4])
    assert metrics["by_strategy"]["ca"]["Functionality Extension"] is None
    assert "Functionality Extension" not in {k for k, v in metrics["by_strategy"]["ifr"].items() if v is not None}


def test_a_dynamic_dialogue_with_a_discarded_instruction() -> None:
    metrics = measured(
        session(
            "1",
            "initial: task+ (A-) (B+) (C-)",
            "A: task+ A- (B+) (C-)",
            "A!: task+ A- (B-) (C-)",
            "B: task+ A- B+ (C-)",
            "C: task+ A- B+ C-",
            "C?: task- A- B+ C+",
        ),
        measures=DYNAMIC,
    )
    assert metrics["ia"] == [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    assert metrics["ca"] == pytest.approx([1, 1 / 2, 1 / 2, 2 / 3, 2 / 4, 2 / 4]), "a discarded one was asked for"
    assert metrics["ifr"] == pytest.approx([None, 0 / 2, 1 / 2, 0 / 2, 0 / 2, 1 / 2])
    assert metrics["ife"] == pytest.approx([2 / 1, 2 / 2, 1 / 3, 2 / 4, 2 / 5, 2 / 6])
    assert metrics["ife_asked"] == pytest.approx([1 / 1, 1 / 2, 1 / 3, 2 / 4, 2 / 5, 2 / 6])
    assert metrics["rounds"] == {"initial": 1, "instruction": 3, "feedback": 2, "repaired": 1, "discarded": 1}


def test_turns_without_code_fail_and_those_never_asked_forget_nothing() -> None:
    lost = turn(2, "B: task- A- B-", response=None)
    empty = turn(2, "B: task- A- B-", response="no")
    overflowed = session("1", "initial: task+", "A: task+ A+", lost, ended="context_overflow")
    metrics = measured(overflowed, session("2", "initial: task+", "A: task+ A+", empty))
    assert metrics["ia"] == metrics["passed"] == [1.0, 1.0, 0.0]
    assert metrics["ca"] == [1.0, 1.0, 0.0]
    assert metrics["ifr"] == [None, 0.0, 1.0]
    assert metrics["n"]["ifr"] == [0, 2, 2], "only the reply without code forgets"


def test_errored_sessions_are_counted_and_left_out() -> None:
    broken = session("2", "initial: task-", status="errored", error="endpoint down")
    metrics = measured(ONE, broken)
    assert (metrics["sessions"], metrics["completed"], metrics["errored"]) == (2, 1, 1)
    assert metrics["ia"] == [1.0, 1.0, 1.0, 0.0]
    assert metrics["outcomes"]["pass"] == 2 and metrics["outcomes"]["fail"] == 2
    assert metrics["tokens"]["model"] == {"input_tokens": 40, "output_tokens": 4, "cached_input_tokens": 0}
    assert (metrics["wall_s"], metrics["retries"]) == (2.0, 3)


def test_turns_by_themselves_have_nothing_to_forget_and_both_harnesses_are_compared() -> None:
    def official(passed: bool) -> OfficialRecord:
        return OfficialRecord(passed=passed, outcome="pass" if passed else "fail", reason=None)

    measures = static_measures(converses=False, official=True)
    metrics = measured(
        session(
            "1",
            turn(0, "initial: task+", official=official(True)),
            turn(1, "A: task- A+", official=official(True)),
            turn(2, "F: task- F+"),
        ),
        measures=measures,
        converses=False,
    )
    assert {series.key for series in measures.series} == {"ia", "ca", "ca_all", "passed", "official", "agreement"}
    assert metrics["ia"] == [1.0, 1.0, 1.0]
    assert metrics["ca"] == [1.0, 0.5, None]
    assert metrics["passed"] == [1.0, 0.0, 1.0]
    assert metrics["official"] == [1.0, 1.0, None]
    assert metrics["agreement"] == [1.0, 0.0, None]
    assert metrics["overall"]["agreement"] == 0.5
    assert "ifr" not in metrics and "ife" not in metrics


def test_intervals_resample_tasks() -> None:
    tasks = [session(str(n), "initial: task+" if n % 3 else "initial: task-", "A: task+ A+") for n in range(30)]
    metrics = measured(*tasks)
    low, high = metrics["ci"]["ia"][0]
    assert low < metrics["ia"][0] < high and high - low == pytest.approx(0.33, abs=0.08)
    assert metrics["ci"]["ia"][1] == [1.0, 1.0]
    assert metrics["ci"]["overall"]["ca"][0] < metrics["overall"]["ca"] < metrics["ci"]["overall"]["ca"][1]
    assert metrics == measured(*reversed(tasks)), "nothing depends on the order of the sessions"


def test_nothing_at_all() -> None:
    metrics = measured()
    assert metrics["ia"] == [] and metrics["overall"]["ca"] is None and metrics["by_strategy"]["ia"] == {}


def test_what_is_tracked() -> None:
    points = {(point.key, point.step): point.value for point in points_of(STATIC, measured(ONE, TWO))}
    assert points["turn/ia", 2] == 1.0
    assert points["final/ca", 0] == pytest.approx(measured(ONE, TWO)["overall"]["ca"])
    assert points["final/ia_Edge_Case_Handling", 0] == pytest.approx(1 / 3)
    assert points["final/ia_L-2", 0] == pytest.approx(1 / 3)
    assert ("turn/ifr", 0) not in points, "null is not logged"
