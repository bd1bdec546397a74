"""Calls over a network: one policy of retries, limits by endpoint, a cache, and counts.

A provider describes itself once (`Policy`, `Limits`), makes single attempts, and calls `call_with_retries`; see
`codechat.models.remote`, and docs/calls.md for every fault and how it is handled.
"""

from codechat.models.calls.brake import BRAKE, Brake, run_coroutine
from codechat.models.calls.limits import (
    ATTEMPTS,
    COUNTERS,
    REAL,
    Endpoint,
    Limits,
    Timing,
    Traffic,
    endpoint_at,
    traffic,
)
from codechat.models.calls.retry import (
    HELD_SLOTS,
    Ended,
    HeldSlots,
    Policy,
    TransientFailure,
    call_with_retries,
    repeat,
    retry_after,
)

__all__ = [
    "ATTEMPTS", "BRAKE", "COUNTERS", "HELD_SLOTS", "REAL", "Brake", "Ended", "Endpoint", "HeldSlots", "Limits",
    "Policy", "Timing", "Traffic", "TransientFailure", "call_with_retries", "endpoint_at", "repeat", "retry_after",
    "run_coroutine", "traffic",
]  # fmt: skip
