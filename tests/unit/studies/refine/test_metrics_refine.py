"""The refinement metrics against figures worked out by hand, and the laws they obey."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codechat.base.domain import CHANGES, OUTCOMES, SCOPES, Usage
from codechat.base.records import AdherenceRecord, CandidateRecord, SessionRecord, TurnRecord
from codechat.report.metrics import Effort, Price
from codechat.report.metrics.spending import Tariff
from codechat.studies.refine.metrics import RefineMetrics, refine_metrics

VERDICTS = {"a": "adhered", "v": "violated", "u": "undecided"}
OUTCOME_OF = {"P": "pass", "F": "fail", "N": "no_code"}


def session(text: str, task: str = "T/0", *, status: str = "completed", overflow: bool = False) -> SessionRecord:
    """A session from a word per turn: `P`, `F` or `N` (no code), and for a follow-up the verdict and the type.

    `P F:a:cosmetic/add S X` is a pass, a failure that adhered to a cosmetic addition, a skipped turn (the verdict
    of the turn before) and a turn after a context overflow.
    """
    turns: list[TurnRecord] = []
    for number, word in enumerate(text.split()):
        state, _, rest = word.partition(":")
        if state == "S":
            before = turns[-1]
            turns.append(
                TurnRecord(
                    turn=number,
                    skipped=True,
                    outcome=before.outcome,
                    passed=before.passed,
                    passed_base=before.passed,
                    candidates=[CandidateRecord(id="i", applicable=None, by="llm")],
                )
            )
        elif state == "X":
            turns.append(TurnRecord(turn=number, outcome="no_code", passed=False, passed_base=False))
        else:
            turns.append(answered(number, state, rest))
    return SessionRecord(
        cell_id="c",
        session_id=f"{task}#{text}",
        task_id=task,
        dataset="starter",
        model="m",
        protocol="refine",
        agenda=["cosmetic"] * (len(turns) - 1),
        seed=0,
        status=status,
        ended="context_overflow" if overflow else None,
        error="down" if status == "errored" else None,
        turns=turns,
    )


def answered(number: int, state: str, rest: str) -> TurnRecord:
    verdict, _, cell = rest.partition(":")
    scope, _, change = (cell or "cosmetic/add").partition("/")
    return TurnRecord.model_validate(
        {
            "turn": number,
            "instruction": {"id": "i", "text": "t", "scope": scope, "change": change} if number else None,
            "response": "r",
            "outcome": OUTCOME_OF[state],
            "passed": state == "P",
            "passed_base": state == "P",
            "adherence": {"verdict": VERDICTS[verdict], "by": "rules", "reason": ""} if verdict else None,
        }
    )


def metrics(*sessions: SessionRecord, **options: Any) -> dict[str, Any]:
    return refine_metrics(list(sessions), seed=0, **options)


def test_a_cell_worked_out_by_hand() -> None:
    found = metrics(
        session("P  P:a:cosmetic/add  F:a:semantic/add  P:v:structural/remove", "T/0"),
        session("P  F:v:semantic/add  F:a:cosmetic/remove  F:u:cosmetic/modify", "T/1"),
        session("F  P:a:semantic/modify  P:a:cosmetic/add  P:a:structural/add", "T/2"),
        session("P  P:a:cosmetic/add  P:v:structural/modify  F:a:semantic/remove", "T/3"),
    )
    assert found["pass_at_1"] == [3 / 4, 3 / 4, 2 / 4, 2 / 4]
    assert found["iar"] == [3 / 4, 3 / 4, 2 / 3]
    assert found["mst"] == (2 + 1 + 0 + 3) / 4
    assert found["mst_at"] == {"2": (2 + 1 + 0 + 2) / 4, "4": 6 / 4}
    assert found["delta_pct"] == pytest.approx(-100 / 3)
    assert found["iar_delta_pct"] == pytest.approx(100 * (2 / 3 - 3 / 4) / (3 / 4))
    # the code before passed at 8 follow-up turns: T/0 1 and 2, T/1 1, T/2 2 and 3, T/3 1, 2 and 3; 3 of them broke it
    assert found["regression"]["overall"] == 3 / 8
    assert found["regression"]["by_scope"] == {"cosmetic": 0 / 3, "structural": 0 / 2, "semantic": 3 / 3}
    assert found["regression"]["by_change"] == {"add": 2 / 6, "remove": 1 / 1, "modify": 0 / 1}
    assert found["regression"]["by_cell"]["semantic/add"] == 1.0
    assert found["regression"]["by_cell"]["semantic/modify"] is None
    # the code before failed at 4: T/0 3 (mended), T/1 2 and 3, T/2 1 (mended)
    assert found["self_correction"]["overall"] == 2 / 4
    assert found["self_correction"]["by_scope"] == {"cosmetic": 0 / 2, "structural": 1.0, "semantic": 1.0}
    assert found["self_correction"]["by_change"] == {"add": None, "remove": 1 / 2, "modify": 1 / 2}
    counts = {key: found["phi"][key] for key in ("pass_adhered", "pass_violated", "fail_adhered", "fail_violated")}
    assert counts == {"pass_adhered": 5, "pass_violated": 2, "fail_adhered": 3, "fail_violated": 1}
    assert found["phi"]["value"] == pytest.approx((5 * 1 - 2 * 3) / (7 * 4 * 8 * 3) ** 0.5)
    assert found["undecided"] == 1
    assert found["outcomes"] == {"pass": 10, "fail": 6, "timeout": 0, "no_code": 0, "syntax_error": 0, "crash": 0}


def test_keys_and_their_order_are_the_contracts() -> None:
    found = metrics(session("P P:a"))
    assert list(found) == [
        *("sessions", "completed", "errored", "skipped_turns", "undecided", "undecided_applicability"),
        *(
            "without_code",
            "outcomes",
            "retries",
            "rate_limited",
            "cached_replies",
            "pass_at_1",
            "iar",
            "mst",
            "mst_at",
            "delta_pct",
            "iar_delta_pct",
        ),
        *("mann_kendall", "regression", "self_correction", "phi", "ci", "tokens", "cost_usd", "spent_usd", "wall_s"),
    ]
    assert list(found["mann_kendall"]) == ["pass_at_1", "iar"]
    assert list(found["regression"]) == ["overall", "by_scope", "by_change", "by_cell"]
    assert list(found["regression"]["by_cell"]) == [f"{s}/{c}" for s in SCOPES for c in CHANGES]
    assert list(found["phi"]) == ["value", "pass_adhered", "pass_violated", "fail_adhered", "fail_violated"]
    assert list(found["outcomes"]) == list(OUTCOMES)
    assert RefineMetrics.model_validate(found).model_dump(mode="json") == json.loads(json.dumps(found)) == found


def test_sessions_whose_first_reply_held_no_code_are_counted() -> None:
    without, later, short = session("N S S", "T/0"), session("P N:a S", "T/1"), session("N X X", "T/2", overflow=True)
    assert metrics(without, later, short, session("N S S", "T/3", status="errored"))["without_code"] == 1
    assert metrics(session("N", "T/0"))["without_code"] == 0, "a session of one turn has nothing to skip"


def test_a_skipped_turn_counts_for_pass_at_1_and_mst_alone() -> None:
    found = metrics(session("P S P:a F:a", "T/0"), session("F S S P:a", "T/1"))
    assert found["pass_at_1"] == [1 / 2, 1 / 2, 1 / 2, 1 / 2]
    assert found["mst"] == 3 / 2
    assert found["iar"] == [None, 1.0, 1.0]
    assert found["iar_delta_pct"] is None
    assert found["skipped_turns"] == 3
    assert found["outcomes"]["pass"] + found["outcomes"]["fail"] == 5
    # T/0: turn 2 follows a skip that copied a pass, turn 3 breaks it; T/1: turn 3 mends what failed before two skips
    assert found["regression"]["overall"] == 1 / 2
    assert found["self_correction"]["overall"] == 1.0
    assert found["phi"]["pass_adhered"] == 2
    assert found["undecided_applicability"] == 3


def test_turns_after_a_context_overflow_fail_but_are_not_judged() -> None:
    found = metrics(session("P P:a X X", "T/0", overflow=True), session("P P:v P:a F:a", "T/1"))
    assert found["pass_at_1"] == [1.0, 1.0, 1 / 2, 0.0]
    assert found["mst"] == (2 + 3) / 2
    assert found["iar"] == [1 / 2, 1.0, 1.0]
    assert found["regression"]["overall"] == 1 / 4
    assert found["self_correction"]["overall"] is None
    assert sum(value for key, value in found["phi"].items() if key != "value") == 4
    assert found["outcomes"]["no_code"] == 2
    assert found["delta_pct"] == -100.0


def test_a_reply_without_code_is_a_failing_violated_turn_like_any_other() -> None:
    found = metrics(session("P N:v:semantic/add P:a:cosmetic/add"))
    assert found["iar"] == [0.0, 1.0]
    assert found["regression"]["by_cell"]["semantic/add"] == 1.0
    assert found["self_correction"]["by_cell"]["cosmetic/add"] == 1.0
    assert found["phi"]["fail_violated"] == 1
    assert found["mst"] == 1


def test_an_overflow_leaves_a_judged_no_code_turn_of_the_same_session_in() -> None:
    found = metrics(session("P N:v X", overflow=True))
    assert (found["iar"], found["regression"]["overall"]) == ([0.0, None], 1.0)


def test_errored_sessions_are_counted_and_left_out_of_everything_else() -> None:
    good = session("P P:a", "T/0")
    broken = session("F S", "T/1", status="errored")
    found = metrics(good, broken)
    assert (found["sessions"], found["completed"], found["errored"]) == (2, 1, 1)
    alone = metrics(good)
    assert {**found, "sessions": 1, "errored": 0} == alone


@pytest.mark.parametrize("sessions", [[], [session("P F:a F:v", status="errored")]])
def test_without_a_completed_session_every_rate_is_null(sessions: list[SessionRecord]) -> None:
    found = metrics(*sessions)
    length = 3 if sessions else 0
    assert found["pass_at_1"] == [None] * length
    assert found["iar"] == [None] * max(length - 1, 0)
    assert found["mst_at"] == ({"2": None, "3": None} if sessions else {})
    for key in ("mst", "delta_pct", "iar_delta_pct"):
        assert found[key] is None
    assert found["mann_kendall"] == {"pass_at_1": None, "iar": None}
    assert found["ci"]["mst"] is found["ci"]["delta_pct"] is found["ci"]["regression"]["overall"] is None
    assert found["phi"]["value"] is None


def test_undecided_verdicts_stay_out_of_iar_and_phi_but_not_of_regression() -> None:
    found = metrics(session("P F:u:semantic/add P:a"))
    assert found["iar"] == [None, 1.0]
    assert found["phi"]["pass_adhered"] == 1
    assert found["phi"]["fail_adhered"] == found["phi"]["fail_violated"] == 0
    assert found["regression"]["by_scope"]["semantic"] == 1.0
    assert found["undecided"] == 1


def test_sessions_of_different_lengths_count_where_they_have_a_turn() -> None:
    found = metrics(session("P P:a P:a", "T/0"), session("F", "T/1"))
    assert found["pass_at_1"] == [1 / 2, 1.0, 1.0]
    assert found["mst_at"] == {"2": 1.0, "3": 1.5}


def test_delta_is_null_where_nothing_passes_at_first() -> None:
    assert metrics(session("F P:a"))["delta_pct"] is None


def test_tokens_are_summed_apart_and_cost_null_without_a_price() -> None:
    spent = session("P P:a")
    spent.turns[0].usage = Usage(input_tokens=1000, output_tokens=100, cached_input_tokens=400)
    spent.turns[1].usage = Usage(input_tokens=500, output_tokens=50)
    spent.turns[1].judge_usage = Usage(input_tokens=7, output_tokens=3)
    tariff = Tariff({"model": Price(input=2.0, output=8.0, cached_input=0.5)}, ("applicability", "adherence"))
    found = metrics(spent, effort=Effort(retries=4, wall_s=12.5, tariff=tariff))
    assert found["tokens"] == {
        "model": {"input_tokens": 1500, "output_tokens": 150, "cached_input_tokens": 400},
        "judge": {"input_tokens": 7, "output_tokens": 3, "cached_input_tokens": 0},
    }
    assert found["cost_usd"]["model"] == pytest.approx((1100 * 2 + 400 * 0.5 + 150 * 8) / 1e6)
    assert found["cost_usd"]["judge"] is None
    assert (found["retries"], found["wall_s"]) == (4, 12.5)


def test_intervals_resample_tasks_not_sessions() -> None:
    """Two tasks of which each one's sessions agree: a resample holds 0, 1 or 2 good tasks, never a third of one."""
    sessions = [session("P P:a", "T/0")] * 5 + [session("F F:a", "T/1")] * 5
    found = metrics(*sessions)
    assert found["ci"]["mst"] == [0.0, 2.0]
    assert found["ci"]["pass_at_1"] == [[0.0, 1.0], [0.0, 1.0]]
    assert found["ci"]["regression"]["overall"] == [0.0, 0.0]
    assert found["ci"]["regression"]["by_scope"]["semantic"] is None


def test_intervals_are_the_same_on_every_machine() -> None:
    """Fixed numbers: a change of the draws or of the quantile would show here."""
    sessions = [session("P " + ("P:a " * (n % 4)) + "F:a " * (3 - n % 4), f"T/{n}") for n in range(20)]
    found = metrics(*sessions)
    assert found["mst"] == 2.5
    assert found["ci"]["mst"] == [2.0, 3.0]
    assert found["ci"]["delta_pct"] == [-90.0, -55.00000000000001]
    assert found["ci"]["regression"]["overall"] == [0.22448979591836735, 0.46153846153846156]


def test_another_seed_draws_other_resamples() -> None:
    sessions = [session("P " + ("P:a " * (n % 4)) + "F:a " * (3 - n % 4), f"T/{n}") for n in range(20)]
    intervals = {tuple(refine_metrics(sessions, seed=seed)["ci"]["regression"]["overall"]) for seed in range(5)}
    assert len(intervals) > 1


words = st.tuples(
    st.sampled_from("PFN"), st.sampled_from("auv"), st.sampled_from(SCOPES), st.sampled_from(CHANGES)
).map(lambda parts: f"{parts[0]}:{parts[1]}:{parts[2]}/{parts[3]}")


@st.composite
def any_session(draw: st.DrawFn) -> SessionRecord:
    first = draw(st.sampled_from("PF"))
    follow_ups = draw(st.lists(words | st.just("S"), min_size=5, max_size=5))
    overflow = draw(st.booleans())
    if overflow:
        kept = draw(st.integers(0, 4))
        follow_ups = follow_ups[:kept] + ["X"] * (5 - kept)
    status = draw(st.sampled_from(["completed", "completed", "completed", "errored"]))
    task = f"T/{draw(st.integers(0, 4))}"
    return session(" ".join([first, *follow_ups]), task, status=status, overflow=overflow)


def rates_in(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [rate for part in value.values() for rate in rates_in(part)]
    if isinstance(value, list):
        return [rate for part in value for rate in rates_in(part)]
    return [] if value is None else [value]


@settings(max_examples=40)
@given(st.lists(any_session(), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_laws(sessions: list[SessionRecord], shuffler: random.Random) -> None:
    found = metrics(*sessions)
    shares = [found[key] for key in ("pass_at_1", "iar", "regression", "self_correction")]
    assert all(0 <= rate <= 1 for rate in rates_in([*shares, found["ci"]["pass_at_1"], found["ci"]["regression"]]))
    assert found["sessions"] == found["completed"] + found["errored"]
    if found["completed"]:
        capped = [found["mst_at"][cap] for cap in ("2", "4", "6")]
        assert capped == sorted(capped)
        assert capped[-1] == found["mst"] <= 6
        assert found["pass_at_1"][0] <= found["mst_at"]["2"] <= 2 * found["pass_at_1"][0]
        tasks = {each.task_id for each in sessions if each.status == "completed"}
        assert (found["ci"]["mst"] is None) == (len(tasks) == 1)
        if found["ci"]["mst"] is not None:
            low, high = found["ci"]["mst"]
            by_task = [refine_metrics([s], seed=0)["mst"] for s in sessions if s.status == "completed"]
            assert min(by_task) <= low <= high <= max(by_task)
    shuffled = sessions.copy()
    shuffler.shuffle(shuffled)
    assert metrics(*shuffled) == found
    judged = sum(isinstance(t.adherence, AdherenceRecord) for s in sessions for t in s.turns)
    assert sum(v for k, v in found["phi"].items() if k != "value") <= judged


def test_skips_on_code_that_does_not_parse_are_counted_apart() -> None:
    """P passes, B does not parse, N has no code; S skips: with a number, since nothing applied to that turn's code."""
    sessions = []
    for text in ("P B S S", "B N S P S", "P B S0 S", "N S S", "P S B", "B S N S B P S", "B S"):
        turns: list[TurnRecord] = []
        for number, word in enumerate(text.split()):
            if word[0] == "S":
                read = int(word[1:]) if word[1:] else None
                before = turns[-1]
                turns.append(before.model_copy(update={"turn": number, "skipped": True, "read_turn": read}))
                continue
            outcome = {"P": "pass", "B": "syntax_error", "N": "no_code"}[word]
            fields: dict[str, Any] = {
                "outcome": outcome,
                "passed": word == "P",
                "code": None if word == "N" else "code",
            }
            turns.append(TurnRecord(turn=number, response="reply", **fields))
        sessions.append(
            session("P", text).model_copy(update={"turns": turns, "agenda": ["cosmetic"] * (len(turns) - 1)})
        )
    recount = 0
    for each in sessions:
        for turn in (turn for turn in each.turns if turn.skipped):
            codes = [earlier for earlier in each.turns[: turn.turn] if not earlier.skipped and earlier.code]
            recount += turn.read_turn is None and codes[-1:] != [] and codes[-1].outcome == "syntax_error"
    found = metrics(*sessions)
    assert found["skipped_unparsable"] == recount == 2 + 1 + 1 + 0 + 0 + 2 + 1
    assert "skipped_unparsable" not in metrics(session("P S")), "0 is left out"
    slim = [each.slim() for each in sessions]
    assert metrics(*slim)["skipped_unparsable"] == recount
