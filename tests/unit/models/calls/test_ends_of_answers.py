"""How an answer ended, in the words of all providers, and its counts, whatever an endpoint gives as a number."""

import math
from typing import Any

import pytest

from codechat.base.domain import Reply, Usage
from codechat.models.calls.answers import (
    LONGEST_WORD,
    MOST_TOKENS,
    Ending,
    ending,
    is_cut,
    is_fault,
    is_final,
    tokens,
    usage_in,
    usage_of,
    word_of,
)

WORDS = {
    Ending.MODEL: (
        "stop eos eos_token end_turn stop_sequence STOP_SEQUENCE COMPLETE completed tool_calls toolCalls tool_use TOOL_CALL "
        "function_call eosFound stopStringFound stopped_eos endoftext end_of_text end_id stop_words FINISH_REASON_STOP "
        "REASON_STOP ALTERNATIVE_STATUS_FINAL {'type':'stop','matched':151645}"
    ),
    Ending.CUT: (
        "length max_tokens MAX_TOKENS max_output_tokens model_length maximum_tokens token_limit limit repetition "
        "REASON_MAX_LEN maxPredictedTokensReached CONTINUATION"
    ),
    Ending.FILTERED: (
        "content_filter content_filtered guardrail_intervened refusal sensitive SAFETY RECITATION BLOCKLIST SPII "
        "PROHIBITED_CONTENT IMAGE_SAFETY MODEL_ARMOR ERROR_TOXIC blacklist"
    ),
    Ending.OVERFLOW: (
        "model_context_window_exceeded context_length_exceeded contextLengthReached REASON_MAX_CONTEXT "
        "CONTEXT_WINDOW_EXCEEDED prompt_too_long input_length_exceeded"
    ),
    Ending.FAULT: (
        "error ERROR abort network_error insufficient_system_resource failed cancelled TIMEOUT time_limit USER_CANCEL "
        "userStopped modelUnloaded unload load not_finished in_progress queued incomplete pause_turn OTHER LANGUAGE "
        "MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MALFORMED_RESPONSE MISSING_THOUGHT_SIGNATURE "
        "malformed_model_output malformed_tool_use FINISH_REASON_UNSPECIFIED NO_IMAGE REASON_TIME_LIMIT engine_overloaded "
        "rate_limit_exceeded server_shutdown preempted upstream_failure context_canceled context_deadline_exceeded "
        "internal_error out_of_memory {'type':'abort','message':'gone'}"
    ),
    Ending.UNKNOWN: "weird idle compaction",
}


@pytest.mark.parametrize(
    ("meaning", "word"), [(meaning, word) for meaning, row in WORDS.items() for word in row.split()]
)
def test_a_word_has_the_meaning_of_its_stems(meaning: Ending, word: str) -> None:
    assert ending(word) is meaning
    assert is_cut(word) == (meaning in (Ending.CUT, Ending.FILTERED))
    assert is_fault(Reply("x", word)) == (meaning is Ending.FAULT)


def test_an_empty_text_needs_a_known_reason() -> None:
    for word in (None, "weird", ""):
        assert is_fault(Reply(" \n", word)) and not is_fault(Reply("x", word))
    for word in ("stop", "length", "content_filter", "tool_calls"):
        assert not is_fault(Reply("", word))


def test_what_another_call_would_change_is_not_final() -> None:
    used = Usage(5, 3)
    for word in ("stop", "length", "tool_calls", "end_turn", None):
        assert is_final(Reply("x", word, usage=used))
    for word in ("content_filter", "sensitive", "error", "OTHER", "weird", "model_context_window_exceeded"):
        assert not is_final(Reply("x", word, usage=used))
    assert is_final(Reply("", "stop", usage=used)) and is_final(Reply("", "length", usage=used))
    assert not is_final(Reply("", "stop", usage=Usage(5, 0)))  # no token was made


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (7, 7), (7.0, 7), (6.5, 7), ("7", 7), (0, 0), (MOST_TOKENS, MOST_TOKENS),
        (None, 0), (-1, 0), (2**63, 0), (MOST_TOKENS + 1, 0), (math.nan, 0), (math.inf, 0), (-math.inf, 0), (True, 0),
        ("many", 0), ("-5", 0), ("9" * 5000, 0), ("٣", 0), ([], 0), ({"total": 3}, 0),
    ],
)  # fmt: skip
def test_a_count_is_a_number_of_tokens_or_nothing(count: Any, expected: int) -> None:
    assert tokens(count) == expected


def test_parts_of_the_input_never_exceed_it() -> None:
    assert usage_of(10, 5, 4, 6) == Usage(10, 5, 4, 6)
    assert usage_of(10, 5, 11) == Usage(10, 5)
    assert usage_of(10, 5, 4, 7) == Usage(10, 5, 4)
    assert usage_of(-10, 5, 4) == Usage(0, 5)


@pytest.mark.parametrize(
    ("counts", "read"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(9, 2, 4)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, Usage(9, 2, 4)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "cache_read_input_tokens": 4}, Usage(9, 2)),
        ({"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}, Usage(9, 2, 4)),
        ({"input_tokens": 2, "output_tokens": 3, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7}, Usage(14, 3, 5, 7)),
        ({"output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 2}}, Usage(0, 3, reasoning_tokens=2)),
        ({"prompt_tokens": -7, "completion_tokens": 2**63}, Usage()),
        ({"prompt_tokens": math.inf, "completion_tokens": math.nan}, Usage()),
        ({"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 8}}, Usage(7)),
        ({"prompt_tokens": 7, "prompt_tokens_details": "none"}, Usage(7)),
        ({"prompt_tokens": None}, Usage()),
        ("nine", Usage()),
        (None, Usage()),
    ],
)  # fmt: skip
def test_counts_are_read_in_every_protocol(counts: Any, read: Usage) -> None:
    assert usage_in(counts) == read


def test_a_word_is_bounded_and_can_be_written() -> None:
    assert word_of(None) is None
    assert word_of("a\ud800" + "x" * 9000) == "a\ufffd" + "x" * (LONGEST_WORD - 2)
