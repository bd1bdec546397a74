"""What the records keep of a role's calls: the new part of a request, the answer, and the tokens by role."""

import pytest

from codechat.base.domain import Message, Reply, Usage
from codechat.models import UNDER_TEST
from codechat.run.protocols.services import Overflowed, by_role, call_record

ONE, TWO, THREE = (Message("user", text) for text in ("one", "two", "three"))


@pytest.mark.parametrize(
    ("before", "earlier", "kept"),
    [((), 0, (ONE, TWO)), ((ONE,), 1, (TWO,)), ((ONE, TWO), 2, ()), ((THREE,), 0, (ONE, TWO)), ((ONE, TWO, THREE), 0, (ONE, TWO))],
)  # fmt: skip
def test_a_request_is_kept_without_what_it_continues(
    before: tuple[Message, ...], earlier: int, kept: tuple[Message, ...]
) -> None:
    reply = Reply("said", usage=Usage(5, 2), finish_reason="length", latency_s=1.5)
    found = call_record("user", (ONE, TWO), reply, before)
    assert (found.role, found.earlier, tuple(found.request)) == ("user", earlier, kept)
    assert (found.response, found.finish_reason, found.usage, found.latency_s) == ("said", "length", Usage(5, 2), 1.5)
    overflowed = call_record("user", (ONE, TWO), Overflowed("too long"), before)
    assert (overflowed.earlier, tuple(overflowed.request), overflowed.response) == (earlier, kept, None)
    assert overflowed.usage == Usage()


def test_tokens_are_those_of_the_other_roles() -> None:
    roles = ("user", UNDER_TEST, "user", "judge")
    calls = [call_record(role, (ONE,), Reply(role, usage=Usage(at + 1, 1))) for at, role in enumerate(roles)]
    fields = by_role(calls)
    assert fields["usage_by_role"] == {"user": Usage(4, 2).fields(), "judge": Usage(4, 1).fields()}
    (whole,) = (value for name, value in fields.items() if name != "usage_by_role")
    assert [each["response"] for each in whole] == list(roles)
