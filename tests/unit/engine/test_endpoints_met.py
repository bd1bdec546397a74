"""What is remarked when an endpoint says less or something else than the one before it."""

import json
from typing import Any

import pytest

from codechat.engine.answering import endpoints
from codechat.engine.answering.endpoints import _remarks
from codechat.journal.database import Met
from codechat.models import MODELS
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


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (None, "http://b/v1 does not answer at once, so it is not compared: the figures are those of http://a/v1"),
        ({}, "http://b/v1 was not asked for any reply, and http://b/v1 tells nothing to compare by: the figures"),
        (BEFORE, "http://b/v1 tells the same id and root, and was not asked for any reply: the figures"),
    ],
)
async def test_an_endpoint_at_a_new_address_is_compared_by_what_it_says(
    said: dict[str, str | int] | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def introduced(_: Any) -> Statement | None:
        return None if said is None else Statement("http://b/v1", said)

    monkeypatch.setattr(endpoints, "introduction_of", introduced)
    model: Any = MODELS.validate({"kind": "openai", "name": "m", "base_url": "http://b/v1"})
    met = Met("model", "http://a/v1", json.dumps(BEFORE), (), 1.0)
    assert (await endpoints._compare("model", model, [met])).startswith(f"model: {told}")
    silent = await endpoints._compare("model", model, [Met("model", "http://a/v1", "{}", (), 1.0)])
    if said:
        assert "http://a/v1 tells nothing to compare by" in silent
