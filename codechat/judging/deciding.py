"""Decide by a model: a question with a closed set of answers, or a form to fill in, read strictly, else undecided.

The judged text is quoted between marker lines whose mark is a hash of the text, so no text can contain its end marker.
A decision counts only if the model's answer ends with it and has each label on exactly one line, with one of the
label's words. Lines with another word, long lines and quoted lines with a label count too, but a quoted line or a reply
that was cut off is no answer. If an answer cannot be read, the model is asked again, unless it repeats itself; in the
end the decision is undecided, never guessed. A context overflow is undecided, because the candidate's text caused it;
an unreachable model is an `InfrastructureError`.
"""

import hashlib
import json
import operator
import re
import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, Field, ValidationError

from codechat.base.domain import Message, Reply, Spent
from codechat.base.errors import ContextOverflow, InfrastructureError
from codechat.base.template import counted, fill
from codechat.models import Model, Request
from codechat.models.calls.answers import Ending, ending
from codechat.sandbox.languages import LONGEST_REPLY, without_thinking

M = TypeVar("M", bound=BaseModel)
R = TypeVar("R")

MAX_REASON = 300
MAX_LINE = 100
"""Characters of a line with an answer."""
VERDICT = "VERDICT"
CONTEXT_FULL = "the question does not fit the judge's context"
UNREADABLE = "no readable verdict"
"""The beginning of the reason of a decision without a readable answer; records have it."""
MAX_SAID = 80
"""Characters of an unreadable answer that are quoted."""
NO_TEXT = "(no text)"
"""Stands for an empty reply in a conversation, since endpoints refuse empty messages."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_OPENS = re.compile(r" {0,3}```[^`]*")
_CLOSES = re.compile(r" {0,3}```[ \t]*")
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})[^`]*")
_INDENTED = re.compile(r" {0,3}\t| {4}")
_REASON_LINE = re.compile(r"^[\s>*_`#]*REASON[\s*_`]*:[\s*_`]*(.+)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the answers that count.

    `answers` has the words that count for each label, in capitals, `_` for a blank: `{"VERDICT": ("YES", "NO")}` is
    answered by a line `VERDICT: YES`. Labels may come in any order, but the last of `answers` on the last line. `reask`
    is sent after an unreadable answer, at most `max_reasks` times. `name` identifies the question within a role and
    turn.
    """

    name: str
    prompt: str
    answers: Mapping[str, tuple[str, ...]]
    reask: str
    max_reasks: int = 2


@dataclass(frozen=True, slots=True)
class Decision(Spent):
    """The word chosen for every label, None if no answer could be read; the usage covers all replies.

    `said` is the first line of the last answer if it could not be read.
    """

    answers: dict[str, str] | None
    reason: str
    said: Annotated[str, Field(exclude_if=operator.not_)] = ""

    @property
    def verdict(self) -> str | None:
        return None if self.answers is None else self.answers.get(VERDICT)


class Reading(NamedTuple):
    """The content of an answer."""

    answers: dict[str, str]
    reason: str


async def decide(model: Model, question: Question, place: Request) -> Decision:
    """Ask until an answer can be read, or give up. Raises `InfrastructureError` if the model cannot be asked. `place`
    has the task, turn and role; its messages are replaced by the question."""
    found, why, spent, replies = await first_readable(
        lambda messages: model.complete(replace(place, messages=messages)), question.prompt, question.max_reasks,
        read=lambda answer: read_answer(answer, question.answers) or UNREADABLE,
        again=lambda _: question.reask,
    )  # fmt: skip
    if found is not None:
        return Decision(found.answers, found.reason, **spent.fields())
    if why == CONTEXT_FULL:
        return Decision(None, why, **spent.fields())
    repeats = ": the last repeats the one before" if len(replies) <= question.max_reasks else ""
    reason = f"{UNREADABLE} in {counted(len(replies), 'reply', 'replies')}{repeats}"
    return Decision(None, reason, first_line(replies[-1]), **spent.fields())


@dataclass(frozen=True, slots=True)
class Form(Generic[M]):
    """A request that is answered by one JSON object: the whole reply, or its only fence.

    `reask` is sent after an answer that does not fit the `schema`, at most `max_reasks` times; `{{problem}}` in it
    becomes the reason. `read` parses a reply in another form, such as a file's text; it returns the object or a reason.
    """

    prompt: str
    schema: type[M]
    reask: str
    max_reasks: int = 2
    read: Callable[[str], M | str] | None = None


@dataclass(frozen=True, slots=True)
class Filled(Spent, Generic[M]):
    """The object; None if no reply has a fitting one, with the last `problem`."""

    value: M | None
    problem: str = ""


async def fill_in(model: Model, form: Form[M], place: Request) -> Filled[M]:
    """Ask until the reply fits the schema, or give up. Raises `InfrastructureError` if the model cannot be asked."""
    found, why, spent, _ = await first_readable(
        lambda messages: model.complete(replace(place, messages=messages)), form.prompt, form.max_reasks,
        read=form.read or (lambda answer: read_object(answer, form.schema)),
        again=lambda problem: form.reask.replace("{{problem}}", problem),
    )  # fmt: skip
    return Filled(found, why, **spent.fields())


def whole_of(answer: str) -> str | None:
    """The text that a reply consists of: its only fence, or all of it; None if it has several fences."""
    fences = list[str]()
    inside: list[str] | None = None
    for line in answer.split("\n"):
        if inside is None and _OPENS.fullmatch(line):
            inside = []
        elif inside is not None and _CLOSES.fullmatch(line):
            fences.append("".join(f"{each}\n" for each in inside))
            inside = None
        elif inside is not None:
            inside.append(line)
    return None if len(fences) > 1 else fences[0] if fences else answer


def read_object(answer: str, schema: type[M]) -> M | str:
    """The one JSON object of a reply, if it fits the schema; else why not, in words."""
    text = whole_of(answer)
    if text is None:
        return "several fences, and one JSON object was asked for"
    try:
        return schema.model_validate(json.loads(text))
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'the object'}: {first['msg'].removeprefix('Value error, ')}"
    except (ValueError, RecursionError) as error:
        return f"no JSON object: {str(error)[:100]}"


async def first_readable(
    ask: Callable[[tuple[Message, ...]], Awaitable[Reply]],
    prompt: str,
    max_reasks: int,
    *,
    read: Callable[[str], R | str],
    again: Callable[[str], str],
) -> tuple[R | None, str, Spent, list[str]]:
    """The first readable reply, or the last problem in words; the usage of all replies, and the unreadable ones.

    `read` returns the content or the problem; `again` returns the re-ask for a problem. A reply that repeats the one
    before it word for word is the last: a model that decodes greedily would go on repeating it.
    """
    messages: tuple[Message, ...] = (Message("user", prompt),)
    spent, problem, unread = Spent(cached=True), "", list[str]()
    for _ in range(max_reasks + 1):
        try:
            reply = await ask(messages)
        except ContextOverflow:
            return None, CONTEXT_FULL, replace(spent, cached=False), unread
        except InfrastructureError as error:
            error.retries += spent.retries
            error.rate_limited += spent.rate_limited
            raise
        spent = spent.plus(reply)
        cut = ending(reply.finish_reason) is Ending.CUT or len(reply.text) > LONGEST_REPLY
        answer = without_thinking(reply.text[:LONGEST_REPLY], quotes_code=True)
        found = "the reply was cut off" if cut else read(answer)
        if not isinstance(found, str):
            return found, "", spent, unread
        problem = found
        unread.append(answer)
        if unread[-2:-1] == [answer]:
            break
        messages += (Message("assistant", answer.strip() or NO_TEXT), Message("user", again(problem)))
    return None, problem, spent, unread


def first_line(text: str) -> str:
    """The first line of a reply with text, bounded."""
    line = next(filter(None, map(str.strip, _LINE_END.split(text))), NO_TEXT)
    return line if len(line) <= MAX_SAID else line[: MAX_SAID - 1] + "…"


def reask(template: str, answers: Mapping[str, tuple[str, ...]]) -> str:
    """The text of a re-ask: `{{verdicts}}` becomes every valid line."""
    lines = [f"{label}: {word}" for label, words in answers.items() for word in words]
    return fill(template, verdicts="\n".join(lines))


def quote(template: str, own: Mapping[str, str] | None = None, /, **parts: str) -> str:
    """The prompt with every part between marker lines that no part can contain; `own` fills fields without markers."""
    content = "\x1f".join(parts.values())
    boundary = content
    while (boundary := hashlib.sha256(boundary.encode("utf-8", "surrogatepass")).hexdigest()[:24]) in content:
        pass
    blocks = {
        name: f"<<<BEGIN {name.upper()} {boundary}>>>\n{text}\n<<<END {name.upper()} {boundary}>>>"
        for name, text in parts.items()
    }
    return fill(template, boundary=boundary, **(own or {}), **blocks)


def read_answer(answer: str, answers: Mapping[str, tuple[str, ...]]) -> Reading | None:
    """The words of all labels, each on exactly one line, the last label on the last line; markdown is allowed."""
    lines = lines_of(answer)
    found = {label: only_word(label, words, lines, tuple(answers)) for label, words in answers.items()}
    if None in found.values() or _word_of(list(answers)[-1], lines[-1]) is None:
        return None
    return Reading({label: word for label, word in found.items() if word is not None}, _reason(lines[:-1]))


def only_word(label: str, words: Sequence[str], lines: Sequence[str], labels: Sequence[str] = ()) -> str | None:
    """The word of a label, None unless exactly one line has it, unquoted and without other text. A label may contain
    another of the `labels`."""
    others = [other for other in labels if other != label]
    having = [line for line in lines if _has(label, line) and not any(_word_of(other, line) for other in others)]
    word = _word_of(label, having[0]) if len(having) == 1 else None
    return word if word in words else None


def lines_of(text: str) -> list[str]:
    """The non-empty lines of a reply without fences; a quoted line begins with `>`. Lines are quoted if they are in a
    fence that is not around the whole reply, or indented like code."""
    lines = [line for line in _LINE_END.split(text) if line.strip()]
    if len(lines) > 1 and _FENCE.match(lines[0]) and _FENCE.fullmatch(lines[-1]) and lines[-1].strip() in lines[0]:
        lines = lines[1:-1]
    found, fence = list[str](), ""
    for line in lines:
        opens = _FENCE.match(line)
        if opens and not fence:
            fence = opens[0]
        elif opens and _closes(opens[0], fence):
            fence = ""
        else:
            found.append(f"> {line.strip()}" if fence or _INDENTED.match(line) else line.strip())
    return found


def _closes(line: str, opening: str) -> bool:
    """Whether a line of marks closes a fence: at least as many equal marks, nothing else, indented about as much."""
    marks, opened = line.strip(), opening.strip()
    run = re.match(r"`+|~+", opened)
    indents = len(line) - len(line.lstrip()), len(opening) - len(opening.lstrip())
    return run is not None and set(marks) == {opened[0]} and len(marks) >= len(run[0]) and indents[0] <= indents[1] + 3


def is_quoted(line: str) -> bool:
    """Whether a line is quoted: by a mark, or in backticks or quotation marks."""
    return line.lstrip("*_ ")[:1] in tuple(">`'\"“”‘’«»„")


def _has(label: str, line: str) -> bool:
    """Whether a line has a label: in capitals, or in any letters before a colon."""
    line = line if line.isascii() else unicodedata.normalize("NFKC", line)
    name = rf"(?<![^\W_]){re.escape(label)}"
    return bool(re.search(rf"{name}(?![^\W_])|(?i:{name}[\s*_`'\"]*:)", line))


def _word_of(label: str, line: str) -> str | None:
    """The word, in capitals, of an unquoted line that has only a label and a word."""
    if len(line) > MAX_LINE or is_quoted(line):
        return None
    pattern = rf"(?:#{{2,6}} +)?[*_]*{re.escape(label)}[\s*_]*:[\s*_]*(\w+?(?:[ -]\w+?)?)[\s*_.]*$"
    match = re.match(pattern, line, re.IGNORECASE)
    return re.sub("[ -]", "_", match.group(1)).upper() if match else None


def _reason(lines: list[str]) -> str:
    """The line marked as the reason, else the last line before the verdict; bounded."""
    stated = [match.group(1) for match in map(_REASON_LINE.match, lines) if match]
    reason = stated[-1] if stated else (lines[-1] if lines else "")
    return reason if len(reason) <= MAX_REASON else reason[: MAX_REASON - 1] + "…"
