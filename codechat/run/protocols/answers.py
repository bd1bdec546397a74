"""Answers of models as the journal and the records keep them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from codechat.base.domain import Message, Reply, Usage
from codechat.base.records import CALLS, UNDER_TEST, CallRecord


@dataclass(frozen=True, slots=True)
class Overflowed:
    """A reply step that ended in a context overflow, as the journal keeps it."""

    overflow: str


def call_record(
    role: str, messages: tuple[Message, ...], answer: Reply | Overflowed, before: tuple[Message, ...] = ()
) -> CallRecord:
    """The record of one call of a role, which leaves out what continues the request `before`.

    A dialogue of sixty calls would otherwise be recorded sixty times over.
    """
    earlier = len(before) if messages[: len(before)] == before else 0
    request = list(messages[earlier:])
    if isinstance(answer, Overflowed):
        return CallRecord(role=role, earlier=earlier, request=request, response=None)
    return CallRecord(
        role=role,
        earlier=earlier,
        request=request,
        response=answer.text,
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        latency_s=answer.latency_s,
    )


def by_role(calls: Sequence[CallRecord]) -> dict[str, Any]:
    """The fields that a turn's record has in a protocol with further roles."""
    used: dict[str, Usage] = {}
    for call in calls:
        if call.role != UNDER_TEST:
            used[call.role] = used.get(call.role, Usage()) + call.usage
    return {
        "usage_by_role": {role: usage.fields() for role, usage in used.items()},
        CALLS: [call.model_dump() for call in calls],
    }
