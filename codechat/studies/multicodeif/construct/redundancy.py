"""Redundancy of prompts by ROUGE-L (MultiCodeIF, section III-B, step 4): first come, first kept."""

import re
from bisect import insort
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

THRESHOLD = 0.7
"""The paper's: a prompt that is so similar to one that was kept is redundant."""
_TOKEN = re.compile(r"[a-z0-9]+")


def tokens_of(text: str) -> list[str]:
    """The words that ROUGE-L compares: runs of a-z and 0-9 in lower case, not stemmed."""
    return _TOKEN.findall(text.lower())


def masks_of(tokens: Sequence[str]) -> dict[str, int]:
    """The places of each token, as the bits of a number."""
    masks: dict[str, int] = {}
    for place, token in enumerate(tokens):
        masks[token] = masks.get(token, 0) | 1 << place
    return masks


def common_length(masks: Sequence[int], length: int) -> int:
    """The length of the longest common subsequence of a text of so many tokens, and one given by the places of its
    tokens in the first.

    One step for a token, for all places at once (Hyyrö, "Bit-parallel LCS-length computation revisited", 2004).
    """
    whole = (1 << length) - 1
    open_ = whole
    for mask in masks:
        met = open_ & mask
        open_ = (open_ + met) | (open_ - met)
    return length - (open_ & whole).bit_count()


def rouge_l(one: str, other: str) -> float:
    """ROUGE-L F of two texts, from 0 to 1; 0 if one has no token."""
    first, second = tokens_of(one), tokens_of(other)
    return _score(masks_of(first), len(first), second)


def _score(masks: Mapping[str, int], length: int, other: Sequence[str], least: float = 0.0) -> float:
    """The score of a text, given by its masks and length, with another; 0 if it cannot reach the `least`."""
    total = length + len(other)
    if not total or 2 * min(length, len(other)) / total < least:
        return 0.0
    shared = [masks[token] for token in other if token in masks]
    return 2 * common_length(shared, length) / total if 2 * len(shared) / total >= least else 0.0


@dataclass(frozen=True, slots=True)
class Near:
    """A text that was kept, by its id, and the similarity to it."""

    id: str
    score: float


class Kept:
    """The texts that were kept, with their tokens, in the order in which they came."""

    def __init__(self, threshold: float = THRESHOLD) -> None:
        """`threshold` is the similarity from which a text is redundant."""
        self.threshold = threshold
        self._texts: list[tuple[str, list[str]]] = []

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, id_: str, text: str) -> None:
        """Keep a text."""
        self._texts.append((id_, tokens_of(text)))

    def nearest(self, text: str, skip: Container[str] = ()) -> Near | None:
        """The most similar kept text, the first of several, if the text is redundant beside it; else None.

        `skip` has the ids of texts that it is not compared with, such as other levels of its chain.
        """
        return next(iter(self.neighbours(text, 1, skip, self.threshold)), None)

    def neighbours(self, text: str, count: int = 3, skip: Container[str] = (), least: float = 0.0) -> list[Near]:
        """The kept texts that are most similar and at least so similar, nearest first, then in order."""
        tokens = tokens_of(text)
        masks, found = masks_of(tokens), list[Near]()
        for id_, other in self._texts:
            if id_ in skip:
                continue
            full = len(found) == count
            score = _score(masks, len(tokens), other, found[-1].score if full else least)
            if score >= least and not (full and score <= found[-1].score):
                insort(found, Near(id_, score), key=lambda near: -near.score)
                del found[count:]
        return found
