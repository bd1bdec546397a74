"""The expected calls of a session, for estimates: sizes by stated assumptions."""

from collections.abc import Iterator

from codechat.datasets.tasks import Task
from codechat.models import UNDER_TEST
from codechat.run.protocols import Ask

PROSE = 200
"""Characters of a reply around its code."""
UNKNOWN_CODE = 1_000
"""Characters of the code for a task without a reference."""
CHECKS = 2
"""Candidates checked for each instruction, as if every second one applied."""


def length_of(task: Task) -> int:
    """The expected number of characters of a task's code."""
    return len(task.reference) if task.reference else UNKNOWN_CODE


def growing_dialogue(task: Task, turns: int, initial: int, followup: int, *, continued: bool = True) -> Iterator[Ask]:
    """The calls of a dialogue sent whole at every turn; `initial` and `followup` are characters around its texts.

    `continued`: each request begins with the one before it and the reply to that.
    """
    answer, opening = length_of(task) + PROSE, initial + len(task.prompt)
    for turn in range(turns):
        shared = opening + (turn - 1) * followup if turn and continued else 0
        told = opening + turn * followup
        yield Ask(UNDER_TEST, turn, told, answer, replies=turn, shared=shared, shared_replies=turn if shared else 0)
