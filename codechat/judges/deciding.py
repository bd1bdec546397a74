"""Decide by a model: a question with a closed set of answers, read strictly, else undecided.

The judged text is quoted between marker lines whose mark is a hash of that text, so no text can hold its own end
marker. A decision counts only if the model's answer ends with it and has each label once, with one of its words. If an
answer cannot be read, the model is asked again, and in the end the decision is undecided, never guessed. A context
overflow is undecided too, because the candidate's text caused it; an unreachable model is an `InfrastructureError`.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from codechat.domain import Message, Spent
from codechat.errors import ContextOverflow, InfrastructureError
from codechat.languages import without_thinking
from codechat.models import Model, Request
from codechat.template import fill

MAX_REASON = 300
MAX_LINE = 100
"""Characters of a line with an answer."""
VERDICT = "VERDICT"

_REASON_LINE = re.compile(r"^[\s>*_`#]*REASON[\s*_`]*:[\s*_`]*(.+)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the answers that count.

    `answers` has the words that count for each label, in capitals, `_` for a blank: `{"VERDICT": ("YES", "NO")}` is
    answered by a line `VERDICT: YES`. Labels may come in any order, but the last of `answers` on the last line. `reask`
    is sent after an unreadable answer, at most `max_reasks` times. `name` identifies the question among those of a
    role at one turn.
    """

    name: str
    prompt: str
    answers: Mapping[str, tuple[str, ...]]
    reask: str
    max_reasks: int = 2


@dataclass(frozen=True, slots=True)
class Decision(Spent):
    """The word chosen for every label, None if no answer could be read; its usage is that of all replies."""

    answers: dict[str, str] | None
    reason: str

    @property
    def verdict(self) -> str | None:
        """The word of the label VERDICT."""
        return None if self.answers is None else self.answers.get(VERDICT)


class Reading(NamedTuple):
    """The content of an answer."""

    answers: dict[str, str]
    reason: str


async def decide(model: Model, question: Question, place: Request) -> Decision:
    """Ask until an answer can be read, or give up. Raises `InfrastructureError` if the model cannot be asked.

    `place` has the task, turn and role; its messages are replaced by the question.
    """
    messages, spent = [Message("user", question.prompt)], Spent(cached=True)
    for _ in range(question.max_reasks + 1):
        try:
            reply = await model.complete(replace(place, messages=tuple(messages)))
        except ContextOverflow:
            spent = replace(spent, cached=False)
            return Decision(None, "the question does not fit the judge's context", **spent.fields())
        except InfrastructureError as error:
            error.retries += spent.retries
            error.rate_limited += spent.rate_limited
            raise
        spent = spent.plus(reply)
        answer = without_thinking(reply.text)
        found = read_answer(answer, question.answers)
        if found is not None:
            return Decision(found.answers, found.reason, **spent.fields())
        messages += [Message("assistant", answer.strip() or "(no text)"), Message("user", question.reask)]
    return Decision(None, f"no readable verdict in {question.max_reasks + 1} replies", **spent.fields())


def reask(template: str, answers: Mapping[str, tuple[str, ...]]) -> str:
    """The text of a re-ask: `{{verdicts}}` becomes every line that would count."""
    lines = [f"{label}: {word}" for label, words in answers.items() for word in words]
    return fill(template, verdicts="\n".join(lines))


def quote(template: str, own: Mapping[str, str] | None = None, /, **parts: str) -> str:
    """The prompt with every part between marker lines that the part itself cannot contain.

    `own` fills further fields with texts of our own, as they are.
    """
    boundary = _boundary(parts)
    blocks = {
        name: f"<<<BEGIN {name.upper()} {boundary}>>>\n{text}\n<<<END {name.upper()} {boundary}>>>"
        for name, text in parts.items()
    }
    return fill(template, boundary=boundary, **(own or {}), **blocks)


def _boundary(parts: Mapping[str, str]) -> str:
    """A mark that depends only on the parts and occurs in none of them."""
    content = "\x1f".join(parts.values())
    mark = content
    while (mark := hashlib.sha256(mark.encode("utf-8", "surrogatepass")).hexdigest()[:24]) in content:
        pass
    return mark


def read_answer(answer: str, answers: Mapping[str, tuple[str, ...]]) -> Reading | None:
    """The word of every label, if each occurs once and the answer ends with the last; markdown is allowed."""
    lines = [line.strip() for line in answer.splitlines() if line.strip(" \t`~")]
    found: dict[str, str] = {}
    for label, words in answers.items():
        chosen = [word for line in lines if (word := _word_of(label, line)) in words and word is not None]
        if len(chosen) != 1:
            return None
        found[label] = chosen[0]
    last = list(answers)[-1]
    if not lines or _word_of(last, lines[-1]) != found[last]:
        return None
    return Reading(found, _reason(lines[:-1]))


def _word_of(label: str, line: str) -> str | None:
    """A line's word for a label, in capitals."""
    if len(line) > MAX_LINE:
        return None
    pattern = rf"^[\s>*_`#]*{re.escape(label)}[\s*_`]*:[\s*_`]*(\w+(?:[ -]\w+)?)[\s*_`.]*$"
    match = re.match(pattern, line, re.IGNORECASE)
    return re.sub("[ -]", "_", match.group(1)).upper() if match else None


def _reason(lines: list[str]) -> str:
    """The line marked as the reason, else the last one before the verdict; one line, bounded."""
    stated = [match.group(1) for match in map(_REASON_LINE.match, lines) if match]
    reason = stated[-1] if stated else (lines[-1] if lines else "")
    return reason if len(reason) <= MAX_REASON else reason[: MAX_REASON - 1] + "…"
