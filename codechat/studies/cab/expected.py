"""The calls that a session is expected to make, for estimates: all rounds, all steps, sizes by stated assumptions."""

from collections.abc import Iterator

from codechat.models import UNDER_TEST
from codechat.protocols import Ask
from codechat.studies.cab.config import JUDGE, USER, AssistConfig
from codechat.studies.cab.tasks import AssistTask

OUTPUTS = 4_000
"""Characters that a step's commands print."""
SAID = 1_200
"""Characters of an answer, and, generously, of a reply that explores."""
REPLIED = 400
"""Characters of the user's reply."""
REFERENCE = 800
"""Characters of a reply of another issue with what it replies to."""


def expected_asks(config: AssistConfig, task: AssistTask, *, explores: bool) -> Iterator[Ask]:
    """The calls of a session whose user is never satisfied, and whose maintainer takes every step if it `explores`.

    A maintainer that cannot run commands answers at once.
    """
    prompts, conditions = config.prompts, sum(map(len, task.conditions))
    opening = len(prompts.opening) + len(prompts.explore if explores else prompts.blind) + len(task.prompt)
    told = replies = 0
    shared = 0
    for turn in range(config.rounds):
        told += len(prompts.followup) + REPLIED if turn else 0
        for call in range(config.steps_before(turn) + 1 if explores else 1):
            told += OUTPUTS + len(prompts.outputs) + len(prompts.more) if call else 0
            yield Ask(UNDER_TEST, turn, opening + told, SAID, replies=replies, shared=shared, shared_replies=replies)
            replies, shared = replies + 1, opening + told
        dialogue = len(task.prompt) + (turn + 1) * SAID + turn * REPLIED
        shown = len(prompts.user) + conditions + dialogue + config.references * REFERENCE
        yield Ask(USER, turn, shown, REPLIED)
    thread = sum(len(comment.body) for comment in task.thread)
    judged = SAID if config.judged == "answer" else dialogue + REPLIED
    yield Ask(JUDGE, config.rounds - 1, len(prompts.judge) + len(task.prompt) + thread + conditions + judged)
