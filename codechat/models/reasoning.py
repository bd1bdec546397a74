"""Thoughts that come apart from a reply: in fields of the endpoint, or between the marks of `model.thoughts`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BeforeValidator, StringConstraints

from codechat.base.domain import Reply
from codechat.base.texts import writable
from codechat.sandbox.languages.thoughts import part

LONGEST = 50_000
"""Characters of a reply's reasoning that are kept; of a longer one its two ends."""
THOUGHTS = ("thinking", "reasoning", "redacted_thinking")
"""Types of parts of a message that are no answer."""
MARKS = (
    "marks around thoughts in the text of replies, beyond the known ones, e.g. [['<plan>', '</plan>']]; what stands "
    "between them is recorded as reasoning"
)
_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
_TEXTS = ("text", "thinking", "summary", "content")
_DEEPEST = 4


def _pairs(value: Any) -> Any:
    """One pair may stand alone."""
    alone = isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(each, str) for each in value)
    return (value,) if alone else () if value is None else value


_Mark = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"\S")]
Marks = Annotated[tuple[tuple[_Mark, _Mark], ...], BeforeValidator(_pairs)]
"""Pairs of marks, none of them blank."""


def parted(reply: Reply, marks: Marks) -> Reply:
    """The reply with what stands between the marks as reasoning."""
    found = part(reply.text, marks) if marks else None
    if found is None or found.answer == reply.text:
        return reply
    thoughts = "\n".join(filter(None, (reply.reasoning, found.thoughts)))
    return replace(reply, text=found.answer, reasoning=bounded(thoughts))


def bounded(text: str) -> str:
    """A text that can be written; of a long one the two ends."""
    text = str(writable(text)).strip()
    left_out = len(text) - LONGEST
    if left_out <= 0:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n[… {left_out:,} characters left out …]\n{text[-half:]}"


def reasoning_in(body: Mapping[str, Any]) -> str:
    """The reasoning in a body of the chat or the responses API."""
    return bounded("\n".join(filter(None, map(_said, _places(body)))))


def _places(body: Mapping[str, Any]) -> list[Any]:
    """The values of a body that may hold thoughts; of fields that repeat each other the first."""
    if isinstance(output := body.get("output"), list):
        return [item for item in output if isinstance(item, Mapping) and item.get("type") in THOUGHTS]
    choices = body.get("choices")
    message = choices[0].get("message") if isinstance(choices, list) and choices else None
    if not isinstance(message, Mapping):
        return []
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    inner = [each for each in parts if isinstance(each, Mapping) and each.get("type") in THOUGHTS]
    return [next((message[name] for name in _FIELDS if _said(message.get(name))), None), *inner]


def _said(value: Any, depth: int = 0) -> str:
    """The text in a field of thoughts: a text, or texts within parts."""
    if isinstance(value, str):
        return value
    if depth < _DEEPEST and isinstance(value, list):
        return "\n".join(filter(None, (_said(each, depth + 1) for each in value)))
    if depth < _DEEPEST and isinstance(value, Mapping):
        return next(filter(None, (_said(value.get(name), depth + 1) for name in _TEXTS)), "")
    return ""
