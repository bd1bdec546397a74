"""The figures of CodeAssistBench by hand: three issues that were judged, one undecided, one errored."""

import json
from typing import Any

import pytest

from codechat.base.domain import Usage
from codechat.base.records import SessionRecord, TurnRecord
from codechat.studies.cab.metrics import ASSIST, assist_metrics, groups_of
from codechat.studies.cab.turns import AssistJudgement, AssistTurn, ExploredRecord, UserReply


def ran(status: int | None, ended: Any = "exit", *, cut: bool = False) -> ExploredRecord:
    return ExploredRecord(command="x", status=status, ended=ended, cut=cut)


def turn(number: int, status: Any, *explored: ExploredRecord, **fields: Any) -> TurnRecord:
    user = None if status == "none" else UserReply(text="So.", status=status, reason="")
    own = AssistTurn(answer="A", explored=list(explored), user=user).model_copy(update=fields)
    used = {"usage_by_role": {"user": {"input_tokens": 10, "output_tokens": 2}}}
    end = "length" if fields.get("forced") else "stop"
    return TurnRecord.of(number, (), None, usage=Usage(100, 20), finish_reason=end, **own.model_dump(), **used)


def judged(verdict: Any, conditions: list[bool | None], **fields: Any) -> dict[str, Any]:
    met = None if None in conditions else sum(map(bool, conditions))
    own = AssistJudgement(
        verdict=verdict, judged=verdict, implied=verdict, technical=verdict, conditions=conditions, conditions_met=met,
        verbosity="APPROPRIATE" if verdict else None, reason="", build=None, needs_build=False, unvalidated=False,
        rounds=1, thread_turns=1, satisfied="FULLY_SATISFIED", pull=False, created_at="2025-03-01T00:00:00Z",
    )  # fmt: skip
    return own.model_copy(update=fields).model_dump()


def session(
    task: str, turns: list[TurnRecord], judgement: Any, language: str = "python", **fields: Any
) -> SessionRecord:
    values = {
        "cell_id": "c",
        "session_id": task,
        "task_id": task,
        "dataset": "cab",
        "model": "m",
        "agenda": [],
        "seed": 0,
    }
    values |= {
        "protocol": "assist",
        "status": "completed",
        "turns": turns,
        "judgement": judgement,
        "language": language,
    }
    return SessionRecord.model_validate({**values, **fields})


FULL, PART, NOT = "FULLY_SATISFIED", "PARTIALLY_SATISFIED", "NOT_SATISFIED"
SESSIONS = [
    session(
        "a/a#1",
        [turn(0, FULL, ran(0), ran(2), ran(None, "timeout", cut=True), steps=2, unread=1)],
        judged("CORRECT", [True, True]),
    ),
    session(
        "b/b#2",
        [turn(0, NOT, ran(0, cut=True), forced=True, steps=2, unrun=3), turn(1, None), turn(2, PART)],
        judged(
            "PARTIALLY_CORRECT", [True, False, False], rounds=3, satisfied=PART, verbosity="VERBOSE", thread_turns=3,
            implied="INCORRECT", needs_build=True, unvalidated=True, created_at="2020-01-01T00:00:00Z", pull=True,
        ),
        "c",
    ),
    session(
        "c/c#3",
        [turn(0, PART), turn(1, FULL)],
        judged(
            "INCORRECT", [False], judged="CORRECT", rounds=2, verbosity="CONCISE", thread_turns=6, needs_build=True,
            build=False,
        ),
    ),
    session("d/d#4", [turn(0, "none", answer=None)], judged(None, [None, None], rounds=0, satisfied=None)),
    session("e/e#5", [], None, status="errored", error="away"),
]  # fmt: skip


@pytest.fixture(scope="module")
def metrics() -> dict[str, Any]:
    return assist_metrics(SESSIONS, rounds=3, seed=0)


def test_sessions_are_counted(metrics: dict[str, Any]) -> None:
    assert (metrics["sessions"], metrics["completed"], metrics["errored"]) == (5, 4, 1)
    assert set(metrics["outcomes"].values()) == {0}


def test_verdicts_are_shares_of_those_decided(metrics: dict[str, Any]) -> None:
    third = pytest.approx(1 / 3)
    assert metrics["verdicts"] == {"correct": third, "partially_correct": third, "incorrect": third, "undecided": 1}
    assert metrics["n"]["verdicts"]["correct"] == 3
    low, high = metrics["ci"]["verdicts"]["correct"]
    assert 0 <= low < 1 / 3 < high <= 1
    assert metrics["verbosity"] == {"concise": third, "appropriate": third, "verbose": third}


def test_conditions_by_condition_and_by_issue(metrics: dict[str, Any]) -> None:
    assert metrics["conditions_met"] == pytest.approx(3 / 6), "2 of 2, 1 of 3, 0 of 1"
    assert metrics["conditions_by_issue"] == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert metrics["all_conditions"] == pytest.approx(1 / 3)
    assert (metrics["n"]["conditions_met"], metrics["n"]["conditions_by_issue"]) == (6, 3)


def test_the_judges_word_beside_what_its_parts_imply(metrics: dict[str, Any]) -> None:
    assert metrics["agreement"] == pytest.approx(1 / 3), "only in the first: the third was called CORRECT"
    assert metrics["technical"] == pytest.approx(1 / 3)


def test_users_and_rounds(metrics: dict[str, Any]) -> None:
    assert metrics["satisfied"] == pytest.approx(2 / 4)
    assert metrics["rounds"] == pytest.approx((1 + 3 + 2 + 0) / 4)
    assert metrics["thread_turns"] == pytest.approx((1 + 3 + 6 + 1) / 4)
    assert metrics["satisfied_by"] == [1 / 4, 2 / 4, 2 / 4]
    assert metrics["fully_satisfied_at"] == pytest.approx([1 / 3, 1.0, 0.0]), "the second reply of b cannot be read"
    assert metrics["partially_satisfied_at"] == pytest.approx([1 / 3, 0.0, 1.0])
    assert metrics["not_satisfied_at"] == pytest.approx([1 / 3, 0.0, 0.0])
    assert metrics["unread_user"] == pytest.approx(1 / 6)


def test_users_against_the_judge(metrics: dict[str, Any]) -> None:
    assert metrics["user_and_judge"] == {
        "phi": pytest.approx(0.5), "satisfied_correct": 1, "satisfied_other": 1, "unsatisfied_correct": 0,
        "unsatisfied_other": 1,
    }  # fmt: skip


def test_table_2(metrics: dict[str, Any]) -> None:
    assert metrics["by_verdict"] == {
        "rounds": {"correct": 1.0, "incorrect": 2.0, "partially_correct": 3.0},
        "thread_turns": {"correct": 1.0, "incorrect": 6.0, "partially_correct": 3.0},
        "thread_replies": {},
    }, "older records have no count of comments"


def test_groups(metrics: dict[str, Any]) -> None:
    assert metrics["by_language"]["correct"] == {"c": 0.0, "python": 0.5}
    assert metrics["by_language"]["satisfied"] == {"c": 0.0, "python": pytest.approx(2 / 3)}
    assert metrics["by_build"]["incorrect"] == {"none": 0.0, "unvalidated": 0.0, "build_failed": 1.0}
    own = AssistJudgement.of(SESSIONS[0]).model_copy(update={"needs_build": True, "could_be_built": True})
    assert ("build", "could_be_built") in groups_of("c", own)
    assert ("build", "was_built") in groups_of("c", own.model_copy(update={"build": True}))
    assert ("build", "unvalidated") in groups_of("c", own.model_copy(update={"could_be_built": None})), "an old record"
    assert metrics["by_thread"]["rounds"] == {"1": 0.5, "3": 3.0, "5+": 2.0}
    assert metrics["by_cohort"]["verbose"] == {"all_time": 1.0, "recent": 0.0}
    assert metrics["by_language_cohort"]["conditions_met"] == {
        "c, all_time": pytest.approx(1 / 3),
        "python, recent": 2 / 3,
    }
    assert metrics["by_kind"]["partially_correct"] == {"issue": 0.0, "pull": 1.0}


def test_commands_and_what_could_not_be_read(metrics: dict[str, Any]) -> None:
    assert (metrics["commands_failed"], metrics["commands_timed_out"], metrics["commands_cut"]) == (1 / 4, 1 / 4, 2 / 4)
    assert metrics["unread_maintainer"] == 1 / 4
    assert metrics["forced"] == pytest.approx(1 / 7)
    assert metrics["counts"] == {
        "cohort_by_issue": 4, "unvalidated": 1, "failed_builds": 1, "unanswered": 1, "cut_answers": 1, "commands": 4, "commands_unrun": 3,
    }  # fmt: skip
    assert metrics["tokens"]["model"].items() >= {"input_tokens": 700, "output_tokens": 140}.items()
    assert metrics["tokens"]["user"].items() >= {"input_tokens": 70, "output_tokens": 14}.items()


def test_records_and_their_outlines_give_the_same_in_any_order() -> None:
    lines = [SessionRecord.model_validate_json(each.slim().line()) for each in reversed(SESSIONS)]
    assert assist_metrics(lines, rounds=3, seed=0) == assist_metrics(SESSIONS, rounds=3, seed=0)


def test_without_a_session_nothing_is_known() -> None:
    empty = json.loads(json.dumps(assist_metrics([], rounds=2, seed=0)))
    assert empty["verdicts"] == {"correct": None, "partially_correct": None, "incorrect": None, "undecided": 0}
    assert empty["satisfied_by"] == [None, None] and empty["user_and_judge"]["phi"] is None
    assert ASSIST.finals[0].at == "verdicts.correct", "cells are ranked by it"
