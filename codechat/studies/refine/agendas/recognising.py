"""The type of a developer's request in free words, by the texts and verbs of the pool.

A text of the pool that stands in the request gives its own type. Else the change is given by the first verb, if an
instruction could begin with it, and the scope by the nearest instruction: the cosine of their words, each weighted by
how few instructions have it (TF-IDF). A request that is near to none has no type.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from codechat.base.domain import Change, Instruction
from codechat.studies.refine.instructions.pool import VERBS, leading_verb

NEAR = 0.35
"""The least cosine of a request and the nearest instruction. By eye, of 106 made-up refinements 82 got their type, 4
another and 20 none, and none of 23 other messages got one; of the 664 requests for other behaviour in CodeIF-Bench and
SR-Eval 12 got one."""
SPOKEN: Mapping[str, Change] = {
    **dict.fromkeys(("give", "wrap", "cache"), "add"),
    **dict.fromkeys(("rid", "without", "never", "not", "no", "stop", "don't"), "remove"),
    **dict.fromkeys(
        ("make", "update", "break", "improve", "indent", "format", "clean", "restructure", "unify"), "modify"
    ),
}
"""Further words for a change, which people say and no instruction of the pool leads with."""
STOP = {
    "a", "all", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "do", "does",
    "each", "every", "for", "from", "has", "have", "i", "if", "in", "instead", "into", "is", "it", "its", "just",
    "least", "let", "like", "me", "more", "my", "now", "of", "ok", "on", "one", "only", "or", "our", "please",
    "rather", "so", "some", "such", "than", "that", "the", "them", "then", "there", "these", "they", "thing", "this",
    "those", "to", "too", "us", "want", "was", "we", "were", "what", "where", "which", "will", "with", "would", "you",
    "your",
}  # fmt: skip
BEFORE = {"also", "code", "function", "get", "i'd", "let's", "must", "return", "should", "sure"} | STOP - {"if"}
"""Words that may stand before the verb of a request: `could you also`, `the function should`."""
_QUOTED = re.compile(r"```[^`]*(?:```|\Z)|`[^`\n]*`|\B'[^'\n]*'\B")
_WORD = re.compile(r"[a-z_][a-z_0-9']*|[#%+]")
_SENTENCE = re.compile(r"[.!?;:]\s|\n")


class Recogniser:
    """Recognises requests by the instructions of a pool."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self._texts = {_plain(one.text): one for one in instructions}
        self._verbs: dict[str, Change] = {
            **SPOKEN, **VERBS, **{leading_verb(one.text): one.change for one in instructions}
        }  # fmt: skip
        self._words = [(one, Counter(_words(one.text))) for one in instructions]
        seen = Counter(word for _, words in self._words for word in words)
        self._rarity = {word: math.log((1 + len(instructions)) / count) for word, count in seen.items()}
        self._unknown = math.log(1 + len(instructions))

    def kind_of(self, request: str) -> str | None:
        """The `scope/change` of a request, of the first if it has several; None if none is recognised."""
        sentences = [*_sentences(request)]
        known = (self._texts.get(_plain(part)) for part in (request, *request.splitlines(), *sentences))
        given = next((one.kind for one in known if one is not None), None)
        return given or next(filter(None, map(self._near, sentences)), None)

    def _near(self, text: str) -> str | None:
        leads = (next((word for word in _WORD.findall(part) if word not in BEFORE), "") for part in text.split(","))
        change = next((self._verbs[word] for word in leads if word in self._verbs), None)
        words = Counter(_words(text))
        if change is None or not words:
            return None
        near = [(self._cosine(words, known), one) for one, known in self._words if one.change == change]
        nearest, instruction = max(near, key=lambda found: found[0], default=(0.0, None))
        return instruction.kind if instruction is not None and nearest >= NEAR else None

    def _cosine(self, one: Counter[str], other: Counter[str]) -> float:
        shared = sum(count * other[word] * self._weight(word) ** 2 for word, count in one.items() if word in other)
        return shared / (self._length(one) * self._length(other)) if shared else 0.0

    def _length(self, words: Counter[str]) -> float:
        return math.sqrt(sum((count * self._weight(word)) ** 2 for word, count in words.items()))

    def _weight(self, word: str) -> float:
        return self._rarity.get(word, self._unknown)


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).strip(" .")


def _sentences(text: str) -> Iterator[str]:
    return (part for part in _SENTENCE.split(_QUOTED.sub(" ", text).lower()) if part.strip())


def _words(text: str) -> Iterator[str]:
    """The words that carry meaning, plurals as singulars; a negation means the change alone."""
    for word in _WORD.findall(text.lower()):
        if word not in STOP and SPOKEN.get(word) != "remove":
            yield f"{word[:-3]}y" if word.endswith("ies") else word[:-1] if re.search(r"[^s']s$", word) else word
