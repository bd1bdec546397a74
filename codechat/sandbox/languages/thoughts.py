"""The thoughts of a reply: the marks of all known model families, and the answer without what stands between them.

Servers with a reasoning parser send thoughts in a separate field; others leave them in the text. Marks that are
single tokens of a model, and `<think>`, open a thought at the beginning of any line. Tags of plain words, phrases and
channels do so only at the beginning of the answer or after another thought, because a program may hold the same words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from typing import NamedTuple

_THINK = r"think(?:ing)?"
_WORDS = (
    rf"(?:(?:[a-z]{{1,20}}[:_-]?)?{_THINK}|(?:[a-z]{{1,20}}[:_-])?(?:thoughts?|reason(?:ing)?|reflect(?:ion)?|monologue)"
    r"|scratch_?pad|analysis|brainstorm(?:ing)?|deliberation|chain_of_thoughts?|cot|justification|rationale)"
    r"(?:_(?:process|scratchpad|content|steps|trace))?"
)
"""Words of tags: `<reasoning>`, `<seed:think>`, `<longcat_think>`, `<antThinking>`."""
_TOKEN = r"think(?:ing)?|thoughts?|reason(?:ing)?"
_TOKENS = (
    (r"\[(?-i:THINK(?:ING)?|THOUGHT|REASONING)\]", r"\[/(?-i:THINK(?:ING)?|THOUGHT|REASONING)\]"),  # Magistral
    (rf"◁(?:{_TOKEN})▷", rf"◁/(?:{_TOKEN})▷"),  # Kimi
    (  # <|begin_of_thought|>, <|START_THINKING|>, <|think:start|>, <|thinking|>
        rf"<\|(?:(?:begin|start)[_:-](?:of[_:-])?)?(?:{_TOKEN})(?:[_:-](?:begin|start))?\|>",
        rf"<\|(?:/|end[_:-](?:of[_:-])?)(?:{_TOKEN})\|>|</\|(?:{_TOKEN})\|>|<\|(?:{_TOKEN})[_:-]end\|>",
    ),
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),  # Apertus
    (r"<\|channel>[ \t]*(?:thought|analysis)?", r"<channel\|>"),  # Gemma 4
    (r"<unused94>(?:thought)?", r"<unused95>"),  # MedGemma
)
"""How thoughts begin and end in tokens of models."""
_BLANK = "\ufeff \t\r\n"
_TURN = r"<\|(?:message_model|(?:start|begin)\|>\s*assistant)(?:\|>)?"
_PHRASES = (
    (rf"(?:{_TURN})?<\|content_thinking\|>", r"<\|end_message\|>", False),
    (rf"(?:{_TURN})?\s*to=self<\|message\|>", rf"<\|eo[mt]\|>\s*(?:{_TURN})?\s*(?:to=user)?(?:<\|message\|>)?", False),
    (r"<\|think\|>", rf"<\|end\|>\s*(?:{_TURN})?(?:<\|content\|>)?|</?\|/?think\|>", False),  # Solar
    (r"Here(?:['’]s| is) my thought process:", r"(?m)^[ \t]*Here(?:['’]s| is) my response:", False),  # Granite
    (r"\#{1,4}[ ]Thinking[ \t]*\n", r"(?m)^\#{1,4}[ ]Final Response[ \t]*$", True),  # HuatuoGPT
    (r"Thinking\.\.\.[ \t]*\n", r"(?m)^[ \t]*\.\.\.done thinking\.", True),  # Ollama's terminal
)
"""Phrases that begin and end a thought, and whether the first counts only if the second follows."""
_OF_PHRASES = tuple(
    (re.compile(rf"[{_BLANK}]*+(?:{opening})", re.IGNORECASE), re.compile(end, re.IGNORECASE), must_end)
    for opening, end, must_end in _PHRASES
)
_WRAPPER = re.compile(
    r"\s*<\|(?:(?:(?:begin|start|end)_(?:of_)?(?:solution|response|text|answer))|content_text|message_model|end_message"
    r"|content_model_end_sampling)\|>\s*",
    re.IGNORECASE,
)
"""Tokens around the answer of a reply that thought."""

_FENCE = r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>[^\n<]*)"
LONGEST_REPLY = 1_200_000
"""Characters of a reply that any pattern sees, thoughts included: about twice the text of 128,000 tokens."""
MOST_BEFORE_TAG = 1000  # characters of a line before a tag in which quotation marks are looked for
_REST_BLANK = re.compile(r"[ \t\r]*(?:\n|\Z)")
_END_OF_QUOTE = re.compile(r"['\"]|`(?!``)")
_ALL_BLANK = re.compile(r"\s*\Z")
_LEADING_BLANK_LINES = re.compile(r"\A(?:[ \t\r]*\n)+")
Pair = tuple[str, str]


class _Marks(NamedTuple):
    """Patterns: whether there is any mark, and the marks and fences of a reply in their order."""

    any: re.Pattern[str]
    event: re.Pattern[str]


def _compiled(pairs: Sequence[Pair], tags: str) -> _Marks:
    opens, closes = ("|".join(pair[side] for pair in pairs) for side in (0, 1))
    marks = f"(?P<opens>{opens})|(?P<closes>{closes})|{tags}"
    event = f"(?m){_FENCE}|(?P<lead>^[ \\t\\ufeff]*)?(?P<mark>{marks})"
    # without groups, so that the search skips to the few characters with which marks begin
    return _Marks(re.compile(f"{opens}|{closes}|{tags}", re.IGNORECASE), re.compile(event, re.IGNORECASE))


_KNOWN = _compiled(
    _TOKENS,
    rf"<(?P<slash>/?)(?P<think>{_THINK})>|<(?P<end>/?)(?P<word>{_WORDS})(?:\s[^<>\n]{{0,200}})?>",
)


@cache
def _of_model(marks: tuple[Pair, ...]) -> _Marks:
    return _compiled([(re.escape(opening), re.escape(end)) for opening, end in marks], r"(?P<think>(?!))(?P<slash>)")


class Parted(NamedTuple):
    """The answer of a reply, and its thoughts."""

    answer: str
    thoughts: str


def without_thinking(reply: str, *, quotes_code: bool = False) -> str:
    """The reply for the history: without thoughts between known marks, the rest unchanged.

    An opening mark without an end (a reply cut off) removes all that follows; an end without an opening mark (which a
    template wrote) removes all that precedes. A mark inside a fence or in quotes does not count. An end alone on a line
    of a fence does, since a thought may leave its fence open, except in a reply that `quotes_code`, such as a judge's.
    The result is empty if the reply has nothing else. Linear in the reply's length; a reply longer than `LONGEST_REPLY`
    stays whole.
    """
    if len(reply) > LONGEST_REPLY:
        return reply
    if (found := _in_channels(reply)) is not None:
        return found
    if (rest := _after_phrases(reply)) is not None:
        return without_thinking(rest, quotes_code=quotes_code)
    return _part(reply, _KNOWN, quotes_code=quotes_code).answer


def part(reply: str, marks: Sequence[Pair]) -> Parted:
    """The answer and the thoughts between the marks of a model, by the rules of `without_thinking`."""
    return _part(reply, _of_model(tuple(marks)), quotes_code=False)


def begins_with_thought(reply: str) -> bool:
    """Whether the reply's first word is a mark of a thought. `[THINK]` would be an expression of Python."""
    return reply.lstrip(_BLANK).startswith("[THINK")


def _part(reply: str, marks: _Marks, *, quotes_code: bool) -> Parted:
    if not marks.any.search(reply):
        return Parted(reply, "")
    scan = _Scan(reply, quotes_code)
    events = [*map(_Event.of, marks.event.finditer(reply))]
    for event, following in zip_longest(events, events[1:]):
        scan.take(event, following)
    return scan.result()


class _Event(NamedTuple):
    """A fence line, or a mark: its family, and whether it begins or ends a thought."""

    match: re.Match[str]
    family: str = ""
    opening: bool = True

    @classmethod
    def of(cls, match: re.Match[str]) -> "_Event":
        if match["fence"]:
            return cls(match)
        if match["opens"] or match["closes"]:
            return cls(match, _TOKEN, bool(match["opens"]))
        if match["think"]:
            return cls(match, _THINK, not match["slash"])
        word = match["word"].lower()
        return cls(match, _THINK if re.fullmatch(_THINK, word) else word, not match["end"])

    @property
    def is_plain(self) -> bool:
        """Whether the mark is a word that programs hold too."""
        return self.family != _TOKEN and not self.match["think"]


@dataclass(slots=True)
class _Scan:
    reply: str
    quotes_code: bool
    kept: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    start: int = 0  # the start of the text that is not yet kept or removed
    thinking: str = ""  # the family of the open thought
    ended_once: bool = False
    fence: re.Match[str] | None = None
    opened_in_fence: bool = False
    answered: bool = False  # whether the answer is known to have begun
    mentioned: set[str] = field(default_factory=set)  # families with an opening mark so far

    def take(self, event: _Event, following: _Event | None) -> None:
        """Handle one fence line or mark; `following` is the next of them."""
        match = event.match
        if self.thinking:
            if event.family == self.thinking and not event.opening:
                self._resume(match)
        elif match["fence"]:
            self._fence(match)
        elif self.fence is not None:
            self.opened_in_fence |= event.opening
            # an end alone on its line ends a thought without an opening mark, even in an unclosed fence
            alone = match["lead"] is not None and _REST_BLANK.match(self.reply, match.end()) and not event.is_plain
            if alone and not (event.opening or self.opened_in_fence or self.quotes_code or self.ended_once):
                self._forget(match)
        elif _is_quoted(self.reply, match.start("mark")) or (
            event.family != _THINK and _END_OF_QUOTE.match(self.reply, match.end())
        ):
            return
        elif not event.opening:
            self._end(event)
        elif self._opens(event, following):
            self._keep(match.start())
            self.start, self.thinking = match.end(), event.family
        else:
            self.mentioned.add(event.family)

    def _opens(self, event: _Event, following: _Event | None) -> bool:
        """Whether an opening mark outside fences and quotes begins a thought."""
        if event.is_plain:
            self._answer(event.match.start())
            return not self.answered
        return event.match["lead"] is not None or (following is not None and not following.opening)

    def _end(self, event: _Event) -> None:
        """The end of a thought that no mark has begun."""
        if event.is_plain and (self.ended_once or event.family in self.mentioned):
            return
        if event.family != _THINK and not self.ended_once and _ALL_BLANK.match(self.reply, event.match.end()):
            return
        if self.ended_once:
            self._keep(event.match.start("mark"))
            self._resume(event.match, thought=False)
        else:
            self._forget(event.match)

    def _fence(self, match: re.Match[str]) -> None:
        run, info = match["fence"], match["info"].strip()
        if self.fence is None:
            if run[0] == "~" or "`" not in info:
                self.fence, self.opened_in_fence = match, False
        else:
            opened = self.fence["fence"]
            near = len(match["indent"]) <= len(self.fence["indent"]) + 3
            if run[0] == opened[0] and len(run) >= len(opened) and not info and near:
                self.fence = None

    def _keep(self, end: int) -> None:
        self._answer(end)
        self.kept.append(self.reply[self.start : end])

    def _answer(self, end: int) -> None:
        self.answered = self.answered or bool(self.reply[self.start : end].strip(_BLANK))

    def _resume(self, match: re.Match[str], *, thought: bool = True) -> None:
        if thought:
            self.thoughts.append(self.reply[self.start : match.start("mark")])
        self.start, self.thinking, self.ended_once = match.end(), "", True

    def _forget(self, match: re.Match[str]) -> None:
        """What no mark has begun is a thought, and nothing is answered yet."""
        self.fence, self.answered = None, False
        self._resume(match)

    def result(self) -> Parted:
        (self.thoughts if self.thinking else self.kept).append(self.reply[self.start :])
        text, thoughts = "".join(self.kept), "\n".join(map(str.strip, self.thoughts))
        return Parted(_unwrapped(text) if self.thinking or self.ended_once else text, thoughts)


def _is_quoted(text: str, place: int) -> bool:
    """Whether a mark is in quotes: marked as a quoted line, or behind the first of two quotation marks."""
    line = text[max(0, place - MOST_BEFORE_TAG) : place].rpartition("\n")[2]
    return line[-1:] in ("`", "'", '"') or line.lstrip()[:1] == ">" or any(line.count(mark) % 2 for mark in '`"')


def _behind_wrappers(text: str, place: int) -> int:
    while found := _WRAPPER.match(text, place):
        place = found.end()
    return place


def _unwrapped(answer: str) -> str:
    """An answer without the tokens around it, and without blank lines before it."""
    begin, end = _behind_wrappers(answer, 0), len(answer)
    while (start := answer.rfind("<|", begin, end)) >= 0 and _WRAPPER.fullmatch(answer, start, end):
        end = start
    return _LEADING_BLANK_LINES.sub("", answer[begin:end])


def _after_phrases(reply: str) -> str | None:
    """The reply after thoughts between phrases, empty if the last was cut off; None if no phrase begins it."""
    place = 0
    while ended := _end_of_phrase(reply, place):
        place = _behind_wrappers(reply, ended)
    return _unwrapped(reply[place:]) if place else None


def _end_of_phrase(reply: str, place: int) -> int:
    """Where a thought that begins at a place by a phrase ends; 0 if none does."""
    for opening, end, must_end in _OF_PHRASES:
        if begun := opening.match(reply, place):
            ended = end.search(reply, begun.end())
            if ended or not must_end:
                return ended.end() if ended else len(reply)
    return 0


_HEAD = re.compile(
    r"(?P<start><\|start\|>[^<\n]{0,200})?<\|channel\|>[ \t]*(?P<channel>\w{1,40})"
    r"(?:[^<\n]{0,300}(?:<\|constrain\|>[^<\n]{0,100})?<\|message\|>)?"
)
_ENDS = re.compile(r"<\|(?:end|return|call)\|>")
_BARE = re.compile(r"\s*analysis(?=[A-Z][\w'’]*[,.]? [\w\"'`])")
_BARE_FINAL = "assistantfinal"
FINAL = "final"


def _in_channels(reply: str) -> str | None:
    """The final channel of a reply in the harmony format, empty if there is none; None for other replies.

    Servers that drop special tokens leave `analysis…assistantfinal…`.
    """
    if "<|channel|>" not in reply:
        if not _BARE.match(reply):
            return None
        return reply.partition(_BARE_FINAL)[2]
    heads: list[re.Match[str]] = []
    for head in _HEAD.finditer(reply):
        within = bool(heads) and heads[-1]["channel"] == FINAL
        quoted = (
            _is_quoted(reply, head.start())
            if within
            else reply[max(0, head.start() - 1) : head.start()] in ("`", "'", '"')
        )
        if not quoted:
            heads.append(head)
    if not heads or not _begins_channels(reply[: heads[0].start()], heads[0]):
        return None
    ends = [head.start() for head in heads[1:]] + [len(reply)]
    finals = [
        reply[head.end() : _end_of_message(reply, head.end(), end)]
        for head, end in zip(heads, ends, strict=True)
        if head["channel"] == FINAL
    ]
    return _unwrapped("".join(finals))


def _begins_channels(before: str, head: re.Match[str]) -> bool:
    """Whether the text before the first channel is none, or a thought that the template opened."""
    if not before.strip(_BLANK):
        return True
    if before.rstrip().endswith(("<|end|>", "<|call|>")):
        return True
    return bool(head["start"]) and sum(line.lstrip()[:3] == "```" for line in before.splitlines()) % 2 == 0


def _end_of_message(reply: str, start: int, end: int) -> int:
    """The place where a message of the final channel ends."""
    found = _ENDS.finditer(reply, start, end)
    ends = (each.start() for each in found if each.end() == end or not _is_quoted(reply, each.start()))
    return next(ends, end)
