"""What is remarked when an endpoint says less or something else than the one before it."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.models import MODELS
from codechat.models.endpoints import EndpointInfo
from codechat.run.answering import endpoints
from codechat.run.answering.endpoints import EndpointCheck, _remarks
from codechat.run.journal.database import EndpointRecord

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
    earlier = [
        EndpointRecord("model", "http://a/v1", json.dumps(BEFORE), (), 1.0),
        EndpointRecord("model", "http://b/v1", "{}", (), 2.0),
    ]
    found = list(_remarks("model", earlier, EndpointInfo("http://b/v1?key=secret", now)))
    assert [kind for kind, _ in found] == kinds
    assert all("secret" not in text for _, text in found)
    assert list(_remarks("model", [], EndpointInfo("http://b/v1", now))) == []


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (None, r"http://b/v1 .*not compared.*http://a/v1"),
        ({}, r"http://b/v1 .*not asked.*http://b/v1 gives nothing"),
        (BEFORE, r"http://b/v1 .*same id and root.*not asked"),
    ],
)
async def test_an_endpoint_at_a_new_address_is_compared_by_what_it_says(
    said: dict[str, str | int] | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def introduced(_: Any) -> EndpointInfo | None:
        return None if said is None else EndpointInfo("http://b/v1", said)

    monkeypatch.setattr(endpoints, "describe_endpoint", introduced)
    model: Any = MODELS.validate({"kind": "openai", "name": "m", "base_url": "http://b/v1"})
    met = EndpointRecord("model", "http://a/v1", json.dumps(BEFORE), (), 1.0)
    assert re.match(f"model: {told}", await endpoints._compare("model", model, [met]))
    silent = await endpoints._compare("model", model, [EndpointRecord("model", "http://a/v1", "{}", (), 1.0)])
    if said:
        assert "http://a/v1 gives nothing" in silent


def model(**more: Any) -> Any:
    return MODELS.validate({"kind": "openai", "name": "m", "base_url": "http://b/v1", **more})


@pytest.mark.parametrize(
    ("now", "refused"),
    [
        ({"id": "m", "root": "org/m"}, ""),
        ({"id": "m"}, ""),
        ({}, ""),
        ({"id": "other", "root": "org/m"}, "its id is 'other'"),
        ({"id": "m", "root": "org/other"}, "its root is 'org/other'"),
    ],
)
def test_another_checkpoint_is_refused(now: dict[str, str | int], refused: str) -> None:
    earlier = [met(BEFORE), met({}, address="http://c/v1", at=2.0)]
    said = EndpointInfo("http://b/v1?key=secret", now)
    endpoints.refuse_other_weights("model", model(), [], said)
    if not refused:
        endpoints.refuse_other_weights("model", model(), earlier, said)
        return
    with pytest.raises(UserError, match=refused) as caught:
        endpoints.refuse_other_weights("model", model(), earlier, said)
    assert "http://a/v1" in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("wanted", "stated", "refused"), [(8, 8, False), (8, 9, True), (8, None, False), (None, 9, False)]
)
def test_conversations_of_another_length_are_refused(wanted: int | None, stated: int | None, refused: bool) -> None:
    config: Any = SimpleNamespace(weights=SimpleNamespace(max_model_len=wanted))
    said = EndpointInfo("http://b/v1", {} if stated is None else {"max_model_len": stated})
    if refused:
        with pytest.raises(UserError, match="--max-model-len 8"):
            endpoints._refuse_other_length("model", config, said)
    else:
        endpoints._refuse_other_length("model", config, said)
    endpoints._refuse_other_length("model", model(), EndpointInfo("http://b/v1", {"max_model_len": 9}))


def met(facts: dict[str, Any], *fingerprints: str, address: str = "http://a/v1", at: float = 1.0) -> EndpointRecord:
    return EndpointRecord("model", address, json.dumps(facts), fingerprints, at)


@pytest.mark.parametrize(
    ("value", "date"), [(1_700_000_000, True), (1.5, True), (0, False), (-1, False), (10**11, False), (10**11 - 1, True), ("x", False)]
)  # fmt: skip
def test_a_moment_is_shown_as_a_date_if_it_can_be_one(value: Any, date: bool) -> None:
    shown = endpoints._moment(value)
    assert (shown != str(value)) is date and bool(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", shown)) is date


class Journal:
    def __init__(self, *known: EndpointRecord) -> None:
        self._known, self.written = known, list[EndpointRecord]()

    def endpoints(self) -> list[EndpointRecord]:
        return list(self._known)

    async def record_endpoint(self, each: EndpointRecord) -> None:
        self.written.append(each)


def register(journal: Any, notes: list[str], **places: Any) -> EndpointCheck:
    return EndpointCheck(places or {"model": model()}, journal, notes.append)


async def test_what_an_endpoint_says_is_recorded_for_every_place_that_it_has() -> None:
    journal, notes = Journal(), list[str]()
    one = register(journal, notes, model=model(), judge=model(), user=model(name="other"))
    said = EndpointInfo("http://b/v1", {"id": "m"})
    assert one.known(model()) is None and one.places(model()) == ["model", "judge"]
    await one.on_connect(model(), said)
    assert [(each.place, each.base_url, each.facts) for each in journal.written] == [
        (place, "http://b/v1", {"id": "m"}) for place in ("model", "judge")
    ]
    assert one.known(model()) == said and one.known(model(name="other")) is None
    with pytest.raises(UserError, match="another checkpoint"):
        await one.on_connect(model(), EndpointInfo("http://b/v1", {"id": "other"}))
    assert notes == []


async def test_a_fingerprint_is_recorded_once_and_a_new_one_remarked_once() -> None:
    config, journal, notes = model(), Journal(met({"id": "m"}, "f1", address="http://b/v1")), list[str]()
    one = register(journal, notes, model=config)
    await one.on_fingerprint(config, "f1")
    assert notes == []
    await one.on_fingerprint(config, "f2")
    await one.on_fingerprint(config, "f2")
    await one.on_fingerprint(config, "f3")
    assert [each.fingerprints for each in journal.written] == [("f1",), ("f1", "f2"), ("f1", "f2", "f3")]
    (note,) = notes
    assert "f2" in note and "f1" in note


@pytest.mark.parametrize("known", [{"id": "m"}, {}])
async def test_an_endpoint_is_asked_again_before_any_call_if_something_is_known(
    monkeypatch: pytest.MonkeyPatch, known: dict[str, str]
) -> None:
    asked = list[Any]()

    async def introduced(config: Any) -> EndpointInfo | None:
        asked.append(config)
        return EndpointInfo("http://b/v1", {"id": "other"}) if len(asked) > 1 else None

    monkeypatch.setattr(endpoints, "describe_endpoint", introduced)
    one = register(Journal(met(known)), [])
    await one.check_again()
    if known:
        with pytest.raises(UserError, match="another checkpoint"):
            await one.check_again()
    else:
        await one.check_again()
    assert len(asked) == (2 if known else 0)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("protocol:\n  user:\n    base_url: http://x\n", "http://x"),
        ("protocol:\n  user:\n    base_url: 1\n", None),
        ("protocol:\n  user: text\n", None),
        ("- a list\n", None),
        ("a: [", None),
        (None, None),
    ],
)
def test_the_address_of_an_older_cell_is_that_of_its_config(
    tmp_path: Path, text: str | None, address: str | None
) -> None:
    if text is not None:
        (tmp_path / "config.yaml").write_text(text)
    assert endpoints._address_in(tmp_path, "protocol.user") == address
