"""Hashes that identify steps and cells: the same for equal values, whatever way they are asked for."""

import hashlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from codechat.base.domain import Message
from codechat.base.files import GrowingHash, content_hash

MESSAGES = st.lists(st.builds(Message, st.sampled_from(["user", "assistant"]), st.text()), max_size=6).map(tuple)


@given(st.lists(MESSAGES, max_size=4), MESSAGES)
def test_a_growing_list_has_the_hash_of_the_whole_list(
    asked: list[tuple[Message, ...]], last: tuple[Message, ...]
) -> None:
    growing = GrowingHash(lambda message: [message.role, message.content])
    for messages in [*asked, *(last[:length] for length in range(len(last) + 1))]:
        assert growing.of(messages) == content_hash([[message.role, message.content] for message in messages])


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_equal_values_have_the_hash_of_their_sorted_json(value: Any) -> None:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert content_hash(value) == hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
