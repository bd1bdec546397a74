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

LONGEST_TOKEN = 8
FEWEST = 20
"""Words by which a request must have grown for the growth to be compared."""
EQUAL = 8
"""Characters by which two additions differ at least if equal counts are more than chance."""


class _Read(NamedTuple):
    """A counted request: input tokens, cached tokens, words, and characters of new messages."""

    tokens: int
    cached: int
    words: float
    new: int


@dataclass(slots=True)
class InputsRead:
    """The requests of one session to the model under test."""

    _sent: tuple[Message, ...] = ()
    _most: _Read | None = None
    _counts_all: bool = False  # whether a count shows that it is not of uncached tokens alone

    def truncated(self, turn: TurnRecord) -> bool:
        """Whether a request of the turn was not read as a whole. Turns come in order."""
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
        if not usage.input_tokens:  # not counted, or of an imported record
            return False
        grows = bool(before) and self._sent[: len(before)] == before
        added = self._sent[len(before) :] if grows else self._sent
        words, new = _words(self._sent), sum(len(each.content) for each in added)
        read = _Read(usage.input_tokens, usage.cached_input_tokens, words, new)
        most, self._most = self._most, read
        if not grows or most is None:
            self._counts_all = False
            return read.tokens + read.cached < words / 2
        if read.tokens < most.tokens:
            self._most = most
        short = all(
            now < words or (words - most.words >= FEWEST and now - then < (words - most.words) / 2)
            for now, then in ((read.tokens, most.tokens), (read.tokens + read.cached, most.tokens + most.cached))
        )
        cut = short and not self._only_uncached(read, most, added)
        self._counts_all |= cut or (not short and read.tokens > _most_tokens(added))
        return cut

    def _only_uncached(self, read: _Read, most: _Read, added: Sequence[Message]) -> bool:
        """Whether the endpoint may have counted only what its cache lacked: at least the newest message.

        A count that stays at the highest one although texts of other lengths came is a limit.
        """
        at_limit = read.tokens == most.tokens and abs(read.new - most.new) > EQUAL
        return not self._counts_all and not at_limit and _words(added[-1:]) <= read.tokens <= _most_tokens(added)


def _words(messages: Sequence[Message]) -> float:
    """Fewer tokens than tokenizers make of the texts: one a word, of eight characters at least on average."""
    return sum(min(len(each.content.split()), len(each.content) / LONGEST_TOKEN) for each in messages)


def _most_tokens(messages: Sequence[Message]) -> float:
    """About the most tokens of the texts: one of two ASCII characters, two of any other."""
    text = "".join(each.content for each in messages)
    plain = len(text.encode("ascii", "ignore"))
    return plain / 2 + 2 * (len(text) - plain)
