"""Calls over a network: one policy of retries, limits by endpoint, and what was asked so far."""

from codechat.calls.traffic import Traffic, traffic

__all__ = ["Traffic", "traffic"]
