"""The shipped prompts, and the options of the protocol: what may stand in them, and what a rescoring may change."""

from pathlib import Path

import pytest

from codechat.base.errors import UserError
from codechat.base.records import read_sessions
from codechat.run.run import run
from codechat.run.settings.compose import compose
from codechat.studies.cab.judging import form, read_judge, read_user
from codechat.studies.cab.stage import AssistConfig, AssistPrompts
from codechat.studies.cab.turns import AssistJudgement
from support.cab import judges, says

STARTER = ("protocol=assist", "dataset=assist_starter")


def shipped(*words: str) -> AssistConfig:
    found = compose([*STARTER, *words]).config.protocol
    assert isinstance(found, AssistConfig)
    return found


def test_the_shipped_prompts_ask_for_what_is_read() -> None:
    prompts = shipped().prompts
    for status in ("FULLY_SATISFIED", "PARTIALLY_SATISFIED", "NOT_SATISFIED"):
        assert f"{status}" in prompts.user and status in prompts.reask_user
        assert read_user(says("So.", status), ()) is not None
    assert read_judge(judges(True, False), 2) is not None
    assert [line.partition(":")[0] for line in form(2).splitlines()] == [
        line.partition(":")[0] for line in judges(True, False).splitlines()
    ]
    assert "{{form}}" in prompts.judge and "{{form}}" in prompts.reask_judge
    assert "EXPLORE: command" in prompts.explore and "ANSWER: your answer" in prompts.explore
    assert "EXPLORE:" not in prompts.blind, "a maintainer without means is not told of commands"
    for name in ("opening", "outputs", "followup", "files", "user", "judge"):
        assert "{{boundary}}" in getattr(prompts, name), f"{name} says how its material is marked"


def test_the_papers_prompts_say_what_the_papers_do() -> None:
    plain, paper = shipped().prompts, shipped("protocol.prompts=paper").prompts
    assert not plain.again and "another solution can be as good" in plain.judge
    assert "repeat" in paper.again and "full code" in paper.again
    assert "authoritative" in paper.judge and "intent" in paper.judge and "approach" in paper.judge
    assert "can be as good" not in paper.judge
    same = set(AssistPrompts.model_fields) - {"again", "judge"}
    assert all(getattr(plain, name) == getattr(paper, name) for name in same)


def test_an_answer_is_judged_by_itself_only_if_it_repeats_all() -> None:
    """Without the order an answer holds what is new, and the user weighs all answers together."""
    judged = {word: shipped(word).judged for word in ("protocol.prompts=plain", "protocol.prompts=paper")}
    assert judged == {"protocol.prompts=plain": "dialogue", "protocol.prompts=paper": "answer"}
    assert shipped("protocol.prompts=paper", "protocol.judged=dialogue").judged == "dialogue"
    assert shipped("protocol.judged=answer").judged == "answer"


def test_a_dialogue_of_deltas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread answers bit by bit: by its last answer one condition of three is met, though its user is satisfied."""
    monkeypatch.chdir(tmp_path)
    found = {}
    for prompts in ("plain", "paper"):
        for judged in ("answer", "dialogue"):
            words = ["tracking=none", "environment=none", "hardware.workers=1", 'dataset.tasks=["starter/kettle#1"]']
            outcome = run(compose([*STARTER, *words, f"protocol.prompts={prompts}", f"protocol.judged={judged}"]))
            (session,) = read_sessions(outcome.folder / "sessions.jsonl")
            order = compose([*STARTER, f"protocol.prompts={prompts}"]).config.protocol.prompts.again.strip()  # type: ignore[attr-defined]
            ordered = [order in turn.request[-1].content for turn in session.turns if order]
            assert ordered == [False, True, True] * bool(order), "before every later answer"
            own = AssistJudgement.of(session)
            assert own.satisfied == "FULLY_SATISFIED" and own.rounds == 3
            found[prompts, judged] = (own.verdict, own.conditions_met)
    assert found["plain", "answer"] == ("PARTIALLY_CORRECT", 1)
    assert {found[place] for place in found if place != ("plain", "answer")} == {("CORRECT", 3)}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("protocol.prompts.user=Be the user.", "must contain"),
        ("protocol.prompts.opening={{question}} {{means}} {{conditions}}", "unknown field"),
        ("protocol.rounds=0", "greater than or equal to 1"),
        ("protocol.explore=always", "protocol.explore"),
        ("model@protocol.roles.judge=echo", "'echo' is a baseline"),
    ],
)
def test_a_wrong_option_is_told(word: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        shipped(word)


def test_steps_before_an_answer() -> None:
    assert [shipped().steps_before(turn) for turn in (0, 1, 9)] == [5, 5, 5]
    assert [shipped("protocol.explore=first").steps_before(turn) for turn in (0, 1, 9)] == [5, 1, 1]
    assert shipped("protocol.explore=first", "protocol.steps=0").steps_before(1) == 0


@pytest.mark.parametrize(
    ("key", "may"),
    [
        ("protocol.roles.judge", True),
        ("protocol.roles.judge.name", True),
        ("protocol.judged", True),
        ("protocol.prompts.judge", True),
        ("protocol.prompts.reask_judge", True),
        ("protocol.prompts.user", False),
        ("protocol.roles.user", False),
        ("protocol.rounds", False),
        ("model", False),
        ("environment", False),
        ("tracking.uri", True),
    ],
)
def test_a_rescoring_may_change_the_judge_alone(key: str, may: bool) -> None:
    assert compose(STARTER).config.can_change_in_rescoring(key) is may
