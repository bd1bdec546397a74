"""Calls over a network: one policy of attempts, limits by endpoint, and what was asked so far.

A provider describes itself once (`Policy`, `Limits`), makes single attempts, and calls `persist`; see
`codechat.models.openai`, and docs/calls.md for the fate of every fault.
"""

from codechat.calls.brake import BRAKE, Brake
from codechat.calls.limits import Endpoint, Limits, endpoint_at
from codechat.calls.retry import SLOTS, Passing, Policy, Slots, persist, retry_after
from codechat.calls.timing import REAL, Timing
from codechat.calls.traffic import COUNTERS, Traffic, traffic

__all__ = [
    "BRAKE",
    "COUNTERS",
    "REAL",
    "SLOTS",
    "Brake",
    "Endpoint",
    "Limits",
    "Passing",
    "Policy",
    "Slots",
    "Timing",
    "Traffic",
    "endpoint_at",
    "persist",
    "retry_after",
    "traffic",
]
