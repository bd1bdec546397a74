"""An endpoint's words: which limits are the conversation's, and what is said of a temperature."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from codechat.models.openai import refusal_of
from codechat.models.remote.failures import Refusal, SupportedParameters
from codechat.models.remote.wording import LONGEST, is_surely_too_long, is_too_long

KNOWN = yaml.safe_load((Path(__file__).parents[3] / "support" / "limits_in_words.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("words", KNOWN["too_long"])
def test_a_conversation_that_is_too_long(words: str) -> None:
    for status in (400, 413, 422):
        assert Refusal(status, words).is_overflow, words
    for status in (401, 404, 429, 503):
        assert not Refusal(status, words).is_overflow


@pytest.mark.parametrize("words", KNOWN["other"])
def test_a_limit_of_another_kind(words: str) -> None:
    for status in (400, 413, 422, 500):
        assert not Refusal(status, words).is_overflow, words


def test_a_server_error_has_to_name_the_context() -> None:
    for words in (
        "the request exceeds the available context size",
        "Prompt is too long",
        "maximum context length is 9",
    ):
        assert Refusal(500, words).is_overflow
    for words in ("input queue limit exceeded: 4096", "tokens exceeded", "context deadline exceeded"):
        assert not Refusal(500, words).is_overflow


@pytest.mark.parametrize(
    ("body", "overflow"),
    [
        ('{"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "{\\"error\\": {\\"message\\": '
         '\\"Prompt has 9000 tokens, 8192 is the limit\\"}}"}}}', True),
        ('[{"error": {"code": 400, "message": "The input token count (9) exceeds the maximum", "status": "INVALID"}}]', True),
        ('{"detail": [{"loc": ["body", "messages", 1, "content"], "msg": "String should have at most 9000 characters", '
         '"input": "requests per minute"}]}', True),
        ('{"detail": [{"loc": ["body", "temperature"], "msg": "Input should be less than or equal to 2", '
         '"input": {"prompt": "the maximum length of a sequence"}}]}', False),
        ('{"error": "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000"}', True),
        ("<html><h1>413 Request Entity Too Large</h1></html>", False),
    ],
)  # fmt: skip
def test_it_is_read_in_every_shape_of_a_body(body: str, overflow: bool) -> None:
    assert refusal_of(400, body).is_overflow is overflow


@pytest.mark.parametrize(
    "body",
    [
        '{"error": {"message": "no", "details": ' + "[" * 100_000 + "]" * 100_000 + "}}",
        '{"error": {"message": "maximum context length is ' + "9" * 5000 + ' tokens"}}',
        '{"error": {"message": "no", "code": ' + "9" * 5000 + "}}",
        '{"error": {"message": {"a": [NaN, Infinity, -1e999]}, "code": [1], "param": {"x": "\\ud800"}}}',
        '{"error": "' + "context " * 100_000 + '"}',
    ],
    ids=["deep", "a long number in words", "a long number", "of another shape", "long"],
)
def test_no_body_is_a_bug_or_takes_long(body: str) -> None:
    began = time.process_time()
    refusal = refusal_of(400, body)
    assert refusal.is_overflow in (True, False) and refusal.context_limit is None
    f"{refusal}".encode()  # can be written
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "unit",
    [
        "a_",
        "a.",
        "aB",
        "max ",
        "input",
        "messages.0",
        "context ",
        "$",
        "1,",
        "n_x_",
        "输",
        "\t",
        "9",
        "9 ",
        "allowed ",
        "0.",
        "per ",
        "(0,",
    ],
)
def test_no_text_takes_long(unit: str) -> None:
    text = unit * LONGEST
    began = time.process_time()
    for _ in range(3):
        is_too_long(text)
        is_surely_too_long(text)
        GIVEN.after(Refusal(400, f"temperature {text}"), {"temperature": 0})
        Refusal(400, f"context length {text}").context_limit  # noqa: B018
    assert time.process_time() - began < 0.5


GIVEN, WITHOUT, LEAST = SupportedParameters(), SupportedParameters(temperature=False), SupportedParameters(zero=False)


@pytest.mark.parametrize(
    ("words", "value", "then"),
    [
        ("invalid temperature: only 1 is allowed for this model", 0, WITHOUT),
        ("Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported.", 0, WITHOUT),
        ("`temperature` is deprecated for this model.", 0, WITHOUT),
        ("`temperature` may only be set to 1 when thinking is enabled.", 0.7, WITHOUT),
        ("Unrecognized request argument supplied: temperature", 0.7, WITHOUT),
        ("body.temperature: Extra inputs are not permitted", 0, WITHOUT),
        ("got an unexpected keyword argument 'temperature'", 0, WITHOUT),
        ("temperature must be 1 for reasoning models", 0, WITHOUT),
        ("temperature is fixed at 0.6", 0, WITHOUT),
        ("Input validation error: `temperature` must be strictly positive", 0, LEAST),
        ("Invalid params: temperature must be in range (0, +inf)", 0, LEAST),
        ("`temperature` (=0.0) has to be a strictly positive float", 0, LEAST),
        ("body.temperature: Input should be greater than 0", 0, LEAST),
        ("the range of temperature is (0.0, 1.0]", 0, LEAST),
        ("temperature must be >= 0.05", 0, LEAST),
        ("temperature cannot be 0", 0, LEAST),
        ("Invalid 'temperature': decimal above maximum value. Expected a value <= 1.", 2, None),
        ("body.temperature: Input should be less than or equal to 1", 1.5, None),
        ("temperature and top_p cannot both be specified for this model", 0, None),
        ("top_k is not supported", 0, None),
    ],
)  # fmt: skip
def test_a_temperature_that_is_refused_in_any_words(words: str, value: float, then: SupportedParameters | None) -> None:
    assert GIVEN.after(Refusal(400, words), {"temperature": value}) == then
    assert GIVEN.after(Refusal(429, words), {"temperature": value}) is None
    assert GIVEN.after(Refusal(400, words), {}) is None


def test_the_least_temperature_stands_for_zero_alone() -> None:
    assert [LEAST.sent_temperature(value) for value in (0, 0.5, None)] == [0.01, 0.5, None]
    assert LEAST.after(Refusal(400, "temperature must be greater than 0.1"), {"temperature": 0.01}) is None
    assert LEAST.after(Refusal(400, "temperature is not supported"), {"temperature": 0.01}) == replace(
        LEAST, temperature=False
    )
    assert not LEAST.as_configured and not WITHOUT.as_configured and GIVEN.as_configured
