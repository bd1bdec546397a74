"""What a session is expected to ask, by hand."""

import pytest

from codechat.base.domain import Target
from codechat.datasets.tasks import Task
from codechat.models import UNDER_TEST
from codechat.run.protocols import Ask
from codechat.run.protocols.dialogue import PROSE, UNKNOWN_CODE, growing_dialogue, length_of


@pytest.mark.parametrize(
    ("continued", "shared"), [(True, [(0, 0), (100 + 5, 1), (100 + 5 + 20, 2)]), (False, [(0, 0), (0, 0), (0, 0)])]
)
def test_each_turn_of_a_growing_dialogue_sends_all_before_it(continued: bool, shared: list[tuple[int, int]]) -> None:
    task = Task("t", "p" * 100, reference="r" * 30)
    asks = list(growing_dialogue(task, 3, 5, 20, continued=continued))
    assert asks == [
        Ask(UNDER_TEST, turn, 105 + 20 * turn, 30 + PROSE, replies=turn, shared=begun, shared_replies=replies)
        for turn, (begun, replies) in enumerate(shared)
    ]


def test_a_task_without_a_reference_has_an_answer_of_some_length() -> None:
    (ask,) = growing_dialogue(Task("t", "p"), 1, 0, 0)
    assert ask.answer == UNKNOWN_CODE + PROSE


def test_a_reply_leaves_out_the_text_that_its_reference_begins_with() -> None:
    prompt, body = 'def f(x: int) -> int:\n    """Say why."""\n', "    return x\n"
    target = Target("f", signature="def f(x: int) -> int:")
    assert length_of(Task("t", prompt, target, reference=prompt + body)) == len("\n    return x") + len(
        target.signature
    )
    assert length_of(Task("t", "Write f.", target, reference=body)) == len(body)
