"""The options of the openai model: refused where wrong, and silent about secrets."""

from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.models import MODELS
from codechat.models.openai import OpenAIApi, OpenAIConfig, Unreadable, refusal_of, reply_of
from codechat.models.remote.failures import Refusal, SupportedParameters


def validate(**values: Any) -> Any:
    return MODELS.validate({"kind": "openai", "name": "m", **values})


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"temprature": 1}, "did you mean 'temperature'"),
        ({"temperature": 3}, "model.temperature"),
        ({"max_tokens": 0}, "model.max_tokens"),
        ({"max_concurrency": 0}, "model.max_concurrency"),
        ({"timeout_s": 0}, "model.timeout_s"),
        ({"max_retries": -1}, "model.max_retries"),
        ({"api": "completions"}, "model.api"),
        ({"name": ""}, "model.name"),
        ({"base_url": "localhost:8000/v1"}, "an address is needed"),
        ({"neutral": {"top_p": 0.9}}, "top_p: 0.9 could change a reply"),
        ({"base_url": "ftp://localhost/v1"}, "an address is needed"),
        ({"base_url": "http://[::1/v1"}, "an address is needed"),
        ({"base_url": "http://127.0.0.1:99999/v1"}, "an address is needed"),
        ({"base_url": "http:///v1"}, "an address is needed"),
        ({"base_url": "http://here/v1#chat"}, "#"),
        ({"base_url": "http://here/v1?a=b#"}, "#"),
    ],
)
def test_a_bad_option_is_told(values: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told) as caught:
        validate(**values)
    assert len(str(caught.value).splitlines()) <= 5


@pytest.mark.parametrize(
    "values",
    [
        {"api_key_env": "sk-secret-123"},
        {"base_url": "https://user:sk-secret-123@api.example/v1"},
        {"base_url": "https://api.example/v1?key=sk-secret-123"},
        {"base_url": "https://api.example/v1?api-version=1&subscription-key=sk-secret-123"},
        {"base_url": "https://api.example/v1?access_token=sk-secret-123&v=1"},
        {"base_url": "https://api.example/v1?sv=1&sig=sk-secret-123"},
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(values: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="api_key_env") as caught:
        validate(**values)
    assert "sk-secret" not in f"{caught.value}{caught.value.__cause__}{caught.value.__context__}"


def test_a_trailing_slash_means_nothing() -> None:
    assert validate(base_url="http://127.0.0.1:1/v1/").base_url == "http://127.0.0.1:1/v1"
    queried = validate(base_url="https://x.example/deployments/d/?api-version=2024-10-21").base_url
    assert queried == "https://x.example/deployments/d?api-version=2024-10-21"


def test_where_it_is_served_is_not_part_of_the_identity_but_decoding_is() -> None:
    base = validate().identity()
    elsewhere = {
        "base_url": "http://127.0.0.1:1/v1",
        "api_key_env": "A",
        "max_retries": 0,
        "timeout_s": 1,
        "call_timeout_s": 9,
    }
    assert validate(**elsewhere).identity() == base
    for changed in ({"name": "n"}, {"temperature": None}, {"max_tokens": 5}, {"api": "responses"}):
        assert validate(**changed).identity() != base
    for changed in ({"reasoning_effort": "low"}, {"extra_body": {"seed": 1}}):
        assert validate(**changed).identity() != base


# -- the protocol ------------------------------------------------------------------------------------------------

PLAIN = OpenAIConfig(name="m")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"error": {"message": "m", "code": "c", "param": "p"}}', Refusal(400, "m", "c", "p")),
        ('{"error": {"message": "m", "type": "t", "code": null, "param": null}}', Refusal(400, "m", "t")),
        (
            '{"object": "error", "message": "m\\n n", "type": "BadRequestError", "code": 400}',
            Refusal(400, "m n", "400"),
        ),
        ('{"error": "m"}', Refusal(400, "m")),
        ('{"detail": [{"msg": "m"}]}', Refusal(400, '[{"msg": "m"}]')),
        ("<html>\n bad gateway</html>", Refusal(400, "<html> bad gateway</html>")),
        ("", Refusal(400, "")),
        ("[1]", Refusal(400, "[1]")),
    ],
)
def test_error_bodies_of_all_kinds_are_read(body: str, expected: Refusal) -> None:
    assert refusal_of(400, body) == expected


def test_a_dialect_gives_way_only_on_what_was_sent() -> None:
    refusal = Refusal(400, "Unsupported parameter: 'temperature'", "unsupported_parameter", "temperature")
    sent = OpenAIApi(PLAIN).body((), SupportedParameters())
    learnt = SupportedParameters().after(refusal, sent)
    assert learnt == SupportedParameters(temperature=False)
    assert "temperature" not in OpenAIApi(PLAIN).body((), learnt)
    assert learnt.after(refusal, OpenAIApi(PLAIN).body((), learnt)) is None


def test_other_statuses_are_no_refusal_of_a_parameter() -> None:
    assert not Refusal(500, "temperature is not supported").names_unsupported("temperature")
    assert not Refusal(429, "context length").is_overflow


def test_extra_fields_win() -> None:
    config = OpenAIConfig(name="m", max_tokens=5, extra_body={"temperature": 1, "seed": 3})
    body = OpenAIApi(config).body((), SupportedParameters())
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (1, 3, 5)


def test_text_in_parts_is_joined_and_missing_usage_is_zero() -> None:
    chat = b'{"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}]}'
    reply = reply_of("chat", chat)
    assert (reply.text, reply.finish_reason, reply.usage.input_tokens) == ("ab", None, 0)
    parts = (
        b'{"status": "completed", "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]}'
    )
    assert reply_of("responses", parts).text == "no"


def test_cached_tokens_are_read_in_both_wordings() -> None:
    body = b'{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 8}}'
    assert reply_of("chat", body).usage.cached_input_tokens == 8


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"null", b"[" * 100_000, b'{"status": "failed", "error": null}', b'{"output": [1]}', b"{}"]
)
def test_what_cannot_be_read_is_told_apart(body: bytes) -> None:
    with pytest.raises(Unreadable):
        reply_of("responses", body)


def test_an_answer_that_is_no_json_shows_its_beginning() -> None:
    page = b"<html>\n<h1>502 Bad\x1b[31m Gateway</h1>" + b"x" * 1000
    with pytest.raises(Unreadable, match=r"10\d\d bytes.*<html> <h1>502 Bad") as raised:
        reply_of("chat", page)
    assert "\x1b" not in str(raised.value) and len(str(raised.value)) < 250
