"""Counts of this process's calls since it started."""

from dataclasses import dataclass, replace


@dataclass(slots=True)
class Traffic:
    """All but the first two only grow, so that the difference of two snapshots counts the time between them."""

    in_flight: int = 0
    """Attempts under way now."""
    waiting: int = 0
    """Calls that wait now: for a limit of their endpoint, or to try again."""
    attempts: int = 0
    """Started requests for an answer."""
    retries: int = 0
    """Attempts that repeated a failed one."""
    rate_limited: int = 0
    """Attempts refused as too many (429)."""
    cache_hits: int = 0
    """Answers from the response cache, without an attempt."""


COUNTERS = Traffic()
"""The running counts; only this room and the cache write them."""


def traffic() -> Traffic:
    """A snapshot of the counts."""
    return replace(COUNTERS)
