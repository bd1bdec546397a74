"""Whether an endpoint reads whole dialogues, by the input tokens that it counts.

Some servers drop the beginning of a prompt that exceeds a limit, and answer with status 200 (Ollama's `num_ctx`). Every
word between blanks takes at least one token, so a request of more words than counted tokens was not read as a whole,
nor was one that grew if the count grew by less than half of the new words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from codechat.base.domain import Message, Usage
from codechat.base.records import UNDER_TEST, TurnRecord
from codechat.sandbox.languages import without_thinking

LONGEST_TOKEN = 8
FEWEST = 20
"""Words by which a request must have grown for the growth to be compared."""


class _Read(NamedTuple):
    """A counted request: input tokens, their sum with cached tokens, which some endpoints leave out, and words."""

    tokens: int
    with_cached: int
    words: float


@dataclass(slots=True)
class InputsRead:
    """The requests of one session to the model under test."""

    _sent: tuple[Message, ...] = ()
    _words: float = 0.0
    _most: _Read | None = None

    def truncated(self, turn: TurnRecord) -> bool:
        """Whether a request of the turn was not read as a whole. Turns come in order."""
        if turn.trajectory is not None:  # the agent words its requests
            return False
        calls = [call for call in turn.calls() if call.role == UNDER_TEST]
        if not calls:
            return bool(turn.response is not None and turn.request) and self._cut(turn.request, turn.usage)
        found = False
        for call in calls:
            request = [*self._sent[: call.earlier], *call.request]
            found |= call.response is not None and self._cut(request, call.usage)
        return found

    def _cut(self, request: Sequence[Message], usage: Usage) -> bool:
        before, self._sent = self._sent, tuple(request)
        grows = bool(before) and self._sent[: len(before)] == before
        self._words = self._words + _words(request[len(before) :]) if grows else _words(request)
        if not usage.input_tokens:  # not counted, or of an imported record
            return False
        counted = usage.input_tokens, usage.input_tokens + usage.cached_input_tokens
        read, most = _Read(*counted, self._words), self._most
        if most is None or not grows:
            self._most = read
            return read.with_cached < read.words / 2
        self._most = read if read.tokens >= most.tokens else most
        grown = read.words - most.words
        return all(
            now < read.words or (grown >= FEWEST and now - then < grown / 2)
            for now, then in ((read.tokens, most.tokens), (read.with_cached, most.with_cached))
        )


def _words(messages: Sequence[Message]) -> float:
    """Fewer tokens than tokenizers make of the texts: one a word, of eight characters at least on average.

    Thoughts do not count, because a model's template may leave them out.
    """
    texts = [without_thinking(each.content) if each.role == "assistant" else each.content for each in messages]
    return sum(min(len(text.split()), len(text) / LONGEST_TOKEN) for text in texts)
