"""What is remarked when an endpoint says less or something else than the one before it."""

import json

import pytest

from codechat.engine.answering.endpoints import _remarks
from codechat.journal.database import Met
from codechat.models.endpoints import Statement

BEFORE = {"id": "m", "root": "org/m", "created": 1_700_000_000}


@pytest.mark.parametrize(
    ("now", "kinds"),
    [
        (BEFORE, []),
        ({"id": "m", "created": 1_700_000_000}, ["silent"]),
        ({"id": "m", "root": "org/m", "created": 1_800_000_000}, ["created"]),
        ({"id": "m", "root": "org/m"}, []),
        ({}, ["silent", "silent"]),
        ({**BEFORE, "root": "org/other"}, []),
    ],
)
def test_an_endpoint_that_says_less_than_before_is_remarked(now: dict[str, str | int], kinds: list[str]) -> None:
    earlier = [Met("model", "http://a/v1", json.dumps(BEFORE), (), 1.0), Met("model", "http://b/v1", "{}", (), 2.0)]
    found = list(_remarks("model", earlier, Statement("http://b/v1?key=secret", now)))
    assert [kind for kind, _ in found] == kinds
    assert all("secret" not in text for _, text in found)
    assert list(_remarks("model", [], Statement("http://b/v1", now))) == []
