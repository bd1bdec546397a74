"""JSON from outside: values, or one-line problems, never a bug."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codechat.base.texts import DEEPEST, read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
)


@given(VALUES)
def test_values_are_those_of_json(value: Any) -> None:
    assert read_json(json.dumps(value)) == value
    assert read_json(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1),
        '{"a":' * 950 + "1" + "}" * 950,
        "9" * 5000,
        b"\xff",
        "",
        "{",
    ],
)
def test_what_is_no_value_is_a_value_error_in_one_line(text: str | bytes) -> None:
    with pytest.raises(ValueError) as caught:
        read_json(text)
    assert "\n" not in str(caught.value)


def test_as_many_levels_as_are_allowed_are_read() -> None:
    assert read_json("[" * DEEPEST + "]" * DEEPEST)
