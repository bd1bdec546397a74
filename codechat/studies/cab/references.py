"""How users replied to maintainers in other issues, found by BM25: they show the user's model the tone, nothing else.

The query is the maintainer's current answer, of which every word counts once; a document is what a maintainer said
before a user's reply. Nothing of the issue itself is looked at: neither its replies nor its words' frequencies. Replies
whose maintainers share no word with the answer are left out; of equal scores the id decides.
"""

import functools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codechat.studies.cab.tasks import AssistTask, Reference

K1, B = 1.5, 0.75
"""How soon a repeated word stops to count, and how much the length of a document matters (Robertson's usual values)."""
CACHED = 4  # datasets whose words stay counted
_WORD = re.compile(r"\w+")


def references_for(task: AssistTask, answer: str, count: int) -> tuple[Reference, ...]:
    """The replies of other issues whose maintainers said what is most like the answer, best first, at most `count`."""
    if not count or not task.replies:
        return ()
    scores = _index_of(task.replies).scores(answer, task.url)
    best = sorted(scores, key=lambda place: (-scores[place], task.replies[place].id))
    return tuple(task.replies[place] for place in best[:count])


@dataclass(frozen=True)
class _Index:
    """Where words occur: for each the documents with how often; the lengths of documents in words; those of an url."""

    found: Mapping[str, Sequence[tuple[int, int]]]
    lengths: Sequence[int]
    of_url: Mapping[str, frozenset[int]]

    def scores(self, answer: str, url: str) -> dict[int, float]:
        """The scores, above 0, of the documents that are not of the url."""
        own = self.of_url.get(url, frozenset())
        documents = len(self.lengths) - len(own)
        words = sum(self.lengths) - sum(self.lengths[place] for place in own)
        norms = [K1 * (1 - B + B * length * documents / words) for length in self.lengths] if words else []
        scores: dict[int, float] = defaultdict(float)
        for word in dict.fromkeys(_words(answer)):
            places = [(place, times) for place, times in self.found.get(word, ()) if place not in own]
            weight = math.log(1 + (documents - len(places) + 0.5) / (len(places) + 0.5))
            for place, times in places:
                scores[place] += weight * times * (K1 + 1) / (times + norms[place])
        return scores


@functools.lru_cache(maxsize=CACHED)
def _index_of(replies: tuple[Reference, ...]) -> _Index:
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    of_url: dict[str, set[int]] = defaultdict(set)
    lengths = []
    for place, reply in enumerate(replies):
        words = _words(reply.maintainer)
        lengths.append(len(words))
        of_url[reply.url].add(place)
        for word, times in Counter(words).items():
            found[word].append((place, times))
    return _Index(found, lengths, {url: frozenset(places) for url, places in of_url.items()})


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


__all__ = ["Reference", "references_for"]
