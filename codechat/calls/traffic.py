"""What this process asked of its endpoints, counted since it started."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Traffic:
    """A snapshot. All but the first two only grow; differences of two snapshots count what lies between them."""

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


@dataclass(slots=True)
class Counters:
    """The running counts; only this room and the cache write them."""

    in_flight: int = 0
    waiting: int = 0
    attempts: int = 0
    retries: int = 0
    rate_limited: int = 0
    cache_hits: int = 0


COUNTERS = Counters()


def traffic() -> Traffic:
    """The counts of this moment."""
    now = COUNTERS
    return Traffic(now.in_flight, now.waiting, now.attempts, now.retries, now.rate_limited, now.cache_hits)
