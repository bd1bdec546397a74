"""`key=value` words: what is wrong is told with what is right."""

import pytest

from codechat.base.errors import UserError
from codechat.cli.terminal import parse_words

KEYS = {"runs": "folders", "filter": "a filter", "out": "where to"}


def test_values_may_hold_an_equals_sign() -> None:
    assert parse_words(["runs=a,b", "filter=params.x = '1'"], KEYS) == {"runs": "a,b", "filter": "params.x = '1'"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["rums=a"], "no setting 'rums'.*\n.*did you mean 'runs'"),
        (["a"], "cannot read 'a'.*\n.*the keys are runs, filter, out"),
        (["out=a", "out=b"], "out is given twice"),
        (["out="], "out has no value.*\n.*where to"),
        (["runs=a"], "out is required.*\n.*where to"),
    ],
)
def test_mistakes(words: list[str], told: str) -> None:
    with pytest.raises(UserError, match=told.replace("\n.*", r"(.|\n)*")) as mistake:
        parse_words(words, KEYS, required=("out",))
    assert str(mistake.value).count("\n") <= 4
