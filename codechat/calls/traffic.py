"""What this process asked of its endpoints, counted since it started."""

from dataclasses import dataclass, replace


@dataclass(slots=True)
class Traffic:
    """All but the first two only grow; differences of two snapshots count what lies between them."""

    in_flight: int = 0
    """Attempts under way now."""
    waiting: int = 0
    """Calls that wait now: for a limit of their endpoint, or to try again."""
    attempts: int = 0
    """Requests for an answer that were begun."""
    retries: int = 0
    """Attempts that repeated a failed one."""
    rate_limited: int = 0
    """Attempts that were refused because there were too many (429)."""
    cache_hits: int = 0
    """Answers that the response cache gave, without an attempt."""


COUNTERS = Traffic()
"""The running counts; only this room and the cache write them."""


def traffic() -> Traffic:
    """The counts of this moment."""
    return replace(COUNTERS)
