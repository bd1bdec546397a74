"""How an answer ended and what it cost, read alike in every protocol.

Endpoints have their own words for the end of an answer. A word is decided by the stems in it, so that words that are
not listed here are decided too: `network_error`, `engine_overloaded` and `MALFORMED_FUNCTION_CALL` are faults.
"""

import math
import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache

from codechat.base.domain import Reply, Usage
from codechat.base.texts import writable

MOST_TOKENS = 1_000_000_000
"""Most tokens of one answer: larger counts are errors of the endpoint, and their sums would not fit the journal."""
LONGEST_WORD = 100
"""Characters of a finish reason."""
OTHER_SHAPES = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""Errors of reading an answer of another shape."""
OF_THOUGHTS = ("reasoning_tokens", "thoughts_tokens", "thinking_tokens")
"""Names of the number of tokens of thoughts."""


class Ending(Enum):
    """Why an answer ended."""

    MODEL = "the model ended it, or calls a tool"
    CUT = "a limit of tokens ended it"
    FILTERED = "a filter ended it"
    OVERFLOW = "the conversation does not fit the model's context"
    FAULT = "the endpoint ended it"
    UNKNOWN = "the word is not known, or there is none"


_FILTER = (
    "filter*|safety|sensitive|refus*|moderat*|block*|blacklist*|prohibit*|recitation|spii|guardrail*|policy|toxic*|armor|"
    "escalation|censor*"
)
_FAULT = (
    "err|error*|fail*|abort*|cancel*|time|timed|timeout|deadline|interrupt*|network|connect*|disconnect*|resource*|system|"
    "overload*|unavailable|capacity|quota|rate|throttl*|busy|internal|server|engine|upstream|backend|gateway|memory|oom|"
    "malformed|invalid|unexpected|missing|exception|crash*|kill*|terminat*|preempt*|evict*|shutdown|restart*|load|loading|"
    "unload*|reset|lost|expired|user|client|other|unknown|unspecified|incomplete|partial|not|no|too|many|per|progress|"
    "queued|pending|paus*|language|image|retry|drop*"
)
_CUT = "length|len|tokens?|limit*|truncat*|continuation|repetition|max|maximum"
_MODEL = "stop*|eos*|eot|end*|complet*|finish*|done|success*|succeed*|normal|final|tools?|functions?|calls?"
_BY_STEM = tuple(
    (meaning, re.compile(rf"(?:^|_)(?:{stems.replace('*', '[a-z0-9]*')})(?:_|$)"))
    for meaning, stems in (
        (Ending.FILTERED, _FILTER), (Ending.FAULT, _FAULT), (Ending.CUT, _CUT), (Ending.MODEL, _MODEL),
    )
)  # fmt: skip
"""In this order: `error_toxic` is a filter's, `rate_limit` and `malformed_function_call` are faults."""
_LONG = re.compile("long|len|exceed|limit|max|token")
_SENT = {"prompt", "prompts", "input", "inputs"}
_STOPPED = re.compile("cancel|deadline|timeout|timed")
_MODELS_OWN = ("stop_token", "stop_tokens", "eos_token", "eos_token_id")


@lru_cache(maxsize=1024)
def ending(word: str | None) -> Ending:
    """The meaning of a finish reason, stop reason or status."""
    if word is None:
        return Ending.UNKNOWN
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word[:LONGEST_WORD])
    key = re.sub(r"[^a-z0-9]+", "_", snake.lower()).strip("_").removeprefix("finish_reason_")
    if key in _MODELS_OWN:
        return Ending.MODEL
    parts = set(key.split("_"))
    if ("context" in parts or (parts & _SENT and _LONG.search(key))) and not _STOPPED.search(key):
        return Ending.OVERFLOW
    return next((meaning for meaning, stems in _BY_STEM if stems.search(key)), Ending.UNKNOWN)


def word_of(value: object) -> str | None:
    """A finish reason as records hold it; None without one."""
    return None if value is None else str(writable(str(value)))[:LONGEST_WORD]


def is_cut(word: str | None) -> bool:
    """Whether a reply with this finish reason is not whole: a limit of tokens or a filter ended it."""
    return ending(word) in (Ending.CUT, Ending.FILTERED)


def is_fault(reply: Reply) -> bool:
    """Whether the endpoint failed, in its own words, or by an empty text without a known reason."""
    meaning = ending(reply.finish_reason)
    return meaning is Ending.FAULT or (meaning is Ending.UNKNOWN and not reply.text.strip())


def is_final(reply: Reply) -> bool:
    """Whether the endpoint would give this answer again.

    Faults may pass, a filter differs from day to day, and an unknown word may mean either. An empty text without a
    token of output is how some gateways pass on a failure.
    """
    if is_fault(reply) or not (reply.text.strip() or reply.usage.output_tokens):
        return False
    return ending(reply.finish_reason) in (Ending.MODEL, Ending.CUT) or reply.finish_reason is None


def tokens(count: object) -> int:
    """A number of tokens from outside; 0 for anything that cannot be one."""
    if isinstance(count, str) and re.fullmatch(r"[0-9]{1,10}", count):
        count = int(count)
    if isinstance(count, bool) or not isinstance(count, int | float) or not 0 <= count <= MOST_TOKENS:
        return 0
    return math.ceil(count)


def tokens_in(counts: object, *names: str) -> int:
    """The first usable number of tokens under one of the names; 0 without one."""
    known = map(counts.get, names) if isinstance(counts, Mapping) else ()
    return next(filter(None, map(tokens, known)), 0)


def usage_of(sent: object, received: object, cached: object = 0, written: object = 0, thoughts: object = 0) -> Usage:
    """The counts of an answer. Parts of the input that exceed it count as nothing: they would lower the cost."""
    whole, found, kept = tokens(sent), tokens(cached), tokens(written)
    found = found if found <= whole else 0
    kept = kept if found + kept <= whole else 0
    return Usage(whole, tokens(received), found, kept, reasoning_tokens=tokens(thoughts))


def usage_in(counts: object) -> Usage:
    """The counts in an answer of the chat, the responses or the messages API; none if they cannot be read.

    In the messages API the input tokens leave out what the prompt cache has read or written.
    """
    if not isinstance(counts, Mapping):
        return Usage()
    prompt, given, completion, output = (
        counts.get(f"{name}_tokens_details") for name in ("prompt", "input", "completion", "output")
    )
    sent, written = tokens_in(counts, "prompt_tokens", "input_tokens"), 0
    cached = tokens_in(prompt, "cached_tokens") or tokens_in(given, "cached_tokens")
    cached = cached or tokens_in(counts, "prompt_cache_hit_tokens")
    if not (given or "prompt_tokens" in counts):
        cached, written = (tokens_in(counts, f"cache_{done}_input_tokens") for done in ("read", "creation"))
        sent += cached + written
    thoughts = max(tokens_in(place, *OF_THOUGHTS) for place in (counts, completion, output))
    return usage_of(sent, tokens_in(counts, "completion_tokens", "output_tokens"), cached, written, thoughts)
