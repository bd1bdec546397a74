"""Counts that the engine adds to every metrics.json: where verdicts were decided, and replies that were no answers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from codechat.base.domain import Decided
from codechat.base.records import SessionRecord, TurnRecord
from codechat.base.template import counted

DECIDED = "decided"
"""The key in metrics.json of the verdicts by where they were decided."""
MOVED = "by_program"
INSIDE_MEANS = "the program shared a process with its tests: read a surprising pass"
REPLIES = "replies"
"""The key in metrics.json of the counts of replies."""
CUT = ("length", "content_filter")
"""Finish reasons of a reply that did not come to its own end."""


def count_decided(sessions: Iterable[SessionRecord]) -> dict[str, int]:
    """The scored turns of completed sessions by where their verdict was decided, as in metrics.json.

    A verdict is decided outside if the program had no access to the process that decided it, and inside if both shared
    one, so that the program could have forged it. A skipped turn repeats a verdict and does not count; nor does one of
    which this is not known, as in old records. `by_program`, if there are any, are those decided inside because of what
    the program returned or defined.
    """
    found = Counter[str | None]()
    for turn in _scored(sessions):
        found[turn.decided] += 1
        found[MOVED] += turn.moved
    return {place: found[place] for place in (*get_args(Decided), *([MOVED] if found[MOVED] else []))}


def constructs_in(sessions: Iterable[SessionRecord]) -> Counter[str]:
    """How often each construct forced program and tests into one process, over the turns that are counted."""
    return Counter(turn.forced_by for turn in _scored(sessions) if turn.forced_by)


def inside_in(metrics: Mapping[str, Any]) -> int:
    """The verdicts of a metrics.json that were decided inside; 0 if it does not say."""
    return int((metrics.get(DECIDED) or {}).get("inside", 0))


def moved_words(moved: int) -> str:
    """How many programs brought it about that their verdicts were decided inside; empty if none did."""
    return f"; {counted(moved, 'program')} brought that about by what they returned or defined" if moved else ""


def _scored(sessions: Iterable[SessionRecord]) -> Iterator[TurnRecord]:
    for session in sessions:
        if session.status == "completed":
            yield from (turn for turn in session.turns if turn.outcome is not None and not turn.skipped)


def count_replies(sessions: Iterable[SessionRecord]) -> dict[str, int]:
    """The replies of the model under test in completed sessions that were no whole answers.

    A limit of tokens that is too low, a server without the chat template, or a context that is too short looks like a
    model that cannot program.

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
