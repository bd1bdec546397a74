"""Answers of models as the journal and the records keep them."""

from dataclasses import dataclass

from codechat.domain import Message, Reply
from codechat.records import CallRecord


@dataclass(frozen=True, slots=True)
class Overflowed:
    """A reply step that ended in a context overflow, as the journal keeps it."""

    overflow: str


def call_record(role: str, messages: tuple[Message, ...], answer: Reply | Overflowed) -> CallRecord:
    """The record of one call of a role."""
    request = list(messages)
    if isinstance(answer, Overflowed):
        return CallRecord(role=role, request=request, response=None)
    return CallRecord(
        role=role,
        request=request,
        response=answer.text,
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        latency_s=answer.latency_s,
    )
