"""A nested config as MLflow's params."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from codechat.report.tracking.runs import LONGEST_VALUE, flat_params


def test_nested_keys_are_dotted_and_values_are_text() -> None:
    params = flat_params(
        {
            "model": {"kind": "echo", "temperature": 0.0, "path": None, "stop": ["a", "b"], "extra": {}},
            "agenda": {"distribution": {"cosmetic/add": 1}, "iid": True},
            "seed": 0,
        }
    )
    assert params == {
        "model.kind": "echo",
        "model.temperature": "0.0",
        "model.path": "null",
        "model.stop": '["a", "b"]',
        "model.extra": "{}",
        "agenda.distribution.cosmetic/add": "1",
        "agenda.iid": "true",
        "seed": "0",
    }


def test_of_a_long_value_the_beginning_and_a_hash_stay() -> None:
    one, other = (flat_params({"prompt": "Revise the code. " * 100 + end})["prompt"] for end in "ab")
    assert one.startswith("Revise the code. Revise")
    assert "1701 characters" in one
    assert len(one) <= LONGEST_VALUE
    assert one != other


def test_a_password_in_a_uri_is_blanked_out() -> None:
    params = flat_params({"tracking": {"uri": "postgresql://me:secret@db/mlflow"}})
    assert params == {"tracking.uri": "postgresql://***@db/mlflow"}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=600),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=300), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1), values, max_size=4))
def test_mlflow_accepts_whatever_comes_out(config: dict[str, Any]) -> None:
    from mlflow.utils.validation import _validate_length_limit, _validate_param

    for key, value in flat_params(config).items():
        assert len(value) <= LONGEST_VALUE
        _validate_length_limit("Param key", 250, key)
        _validate_param(key, value)
