"""Hashes that identify steps and cells: the same for equal values, whatever way they are asked for."""

from hypothesis import given
from hypothesis import strategies as st

from codechat.domain import Message
from codechat.files import GrowingHash, content_hash

MESSAGES = st.lists(st.builds(Message, st.sampled_from(["user", "assistant"]), st.text()), max_size=6).map(tuple)


@given(st.lists(MESSAGES, max_size=4), MESSAGES)
def test_a_growing_list_has_the_hash_of_the_whole_list(
    asked: list[tuple[Message, ...]], last: tuple[Message, ...]
) -> None:
    growing = GrowingHash(lambda message: [message.role, message.content])
    for messages in [*asked, *(last[:length] for length in range(len(last) + 1))]:
        assert growing.of(messages) == content_hash([[message.role, message.content] for message in messages])
