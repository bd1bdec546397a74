"""The shipped prompts, and the options of the protocol: what may stand in them, and what a rescoring may change."""

import pytest

from codechat.engine.settings.compose import compose
from codechat.errors import UserError
from codechat.studies.cab.config import AssistConfig
from codechat.studies.cab.judging import form, read_judge
from codechat.studies.cab.user import read_user
from support.assisting import judges, says

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
