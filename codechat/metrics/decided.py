"""How many verdicts were out of the reach of the programs that they judge: the same for every protocol.

A verdict is decided outside if the program had no access to the process that decided it, and inside if both shared
one, so that the program could have forged it. The engine adds these counts to every metrics.json.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from codechat.domain import Decided
from codechat.records import SessionRecord, TurnRecord

DECIDED = "decided"
"""The key of the counts in metrics.json."""
MEANING = "the program shared a process with its tests: read a surprising pass"


def count_decided(sessions: Iterable[SessionRecord]) -> dict[str, int]:
    """The scored turns of completed sessions by where their verdict was decided, as in metrics.json.

    A skipped turn repeats a verdict and does not count; nor does one of which this is not known, as in old records.
    """
    found = Counter(turn.decided for turn in _scored(sessions))
    return {place: found[place] for place in get_args(Decided)}


def constructs_in(sessions: Iterable[SessionRecord]) -> Counter[str]:
    """How often each construct forced program and tests into one process, over the turns that are counted."""
    return Counter(turn.forced_by for turn in _scored(sessions) if turn.forced_by)


def inside_in(metrics: Mapping[str, Any]) -> int:
    """The verdicts of a metrics.json that were decided inside; 0 if it does not say."""
    return int((metrics.get(DECIDED) or {}).get("inside", 0))


def _scored(sessions: Iterable[SessionRecord]) -> Iterator[TurnRecord]:
    for session in sessions:
        if session.status == "completed":
            yield from (turn for turn in session.turns if turn.outcome is not None and not turn.skipped)
