"""How many replies of the model under test were no whole answers: the same for every protocol.

A limit of tokens that is too low, a server without the chat template, or a context that is too short looks like a model
that cannot program. The engine adds these counts to every metrics.json.
"""

from collections.abc import Iterable

from codechat.records import SessionRecord

REPLIES = "replies"
"""The key of the counts in metrics.json."""
CUT = ("length", "content_filter")
"""Finish reasons of a reply that did not come to its own end."""


def count_replies(sessions: Iterable[SessionRecord]) -> dict[str, int]:
    """Counts of completed sessions.

    `all`: the replies at scored turns; `cut`: those that a limit of tokens or a filter ended; `no_code`: those in which
    no code was found; `overflowed`: the sessions that outgrew the model's context.
    """
    found = dict.fromkeys(("all", "cut", "no_code", "overflowed"), 0)
    for session in sessions:
        if session.status != "completed":
            continue
        found["overflowed"] += session.ended == "context_overflow"
        for turn in session.turns:
            if turn.response is not None and turn.outcome is not None:
                found["all"] += 1
                found["cut"] += turn.finish_reason in CUT
                found["no_code"] += turn.outcome == "no_code"
    return found
