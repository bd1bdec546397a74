"""Stages redundancy, review and chains: similar prompts, labels of people, complete chains (MultiCodeIF, III-B)."""

import re
from bisect import insort
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from codechat.base.errors import UserError
from codechat.report.audit.kinds import Row, read_labels
from codechat.report.audit.made import MADE
from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome
from codechat.studies.multicodeif.construct.task import Made
from codechat.studies.multicodeif.construct.writing import unstated

THRESHOLD = 0.7
"""The paper's: from this ROUGE-L with a kept prompt on, a prompt is redundant."""
PEOPLE = 2
"""The labels that a task needs before it counts as reviewed."""
NEAREST = 3
PUBLISHED = "published/"
GAP = "the level before is missing"


def tokens_of(text: str) -> list[str]:
    """The words that ROUGE-L compares: runs of a-z and 0-9 in lower case, not stemmed."""
    return re.findall(r"[a-z0-9]+", text.lower())


def _masks_of(tokens: Sequence[str]) -> dict[str, int]:
    """The places of each token, as the bits of a number."""
    masks: dict[str, int] = {}
    for place, token in enumerate(tokens):
        masks[token] = masks.get(token, 0) | 1 << place
    return masks


def rouge_l(one: str, other: str) -> float:
    """ROUGE-L F of two texts, from 0 to 1; 0 if one has no token."""
    tokens = tokens_of(one)
    return _score(_masks_of(tokens), len(tokens), tokens_of(other))


def _score(masks: Mapping[str, int], length: int, other: Sequence[str], least: float = 0.0) -> float:
    """The score of a text, given by its masks and length, with another; 0 if it cannot reach the `least`.

    One step for a token, for all places at once (Hyyrö, "Bit-parallel LCS-length computation revisited", 2004).
    """
    total = length + len(other)
    if not total or 2 * min(length, len(other)) / total < least:
        return 0.0
    shared = [masks[token] for token in other if token in masks]
    if 2 * len(shared) / total < least:
        return 0.0
    whole = open_ = (1 << length) - 1
    for mask in shared:
        met = open_ & mask
        open_ = (open_ + met) | (open_ - met)
    return 2 * (length - (open_ & whole).bit_count()) / total


@dataclass(frozen=True, slots=True)
class Near:
    """The id of a kept text, and the similarity to it."""

    id: str
    score: float


class Texts:
    """The texts that were kept, with their tokens, in order; `threshold` is the similarity of redundant texts."""

    def __init__(self, threshold: float = THRESHOLD) -> None:
        self._threshold = threshold
        self._texts: list[tuple[str, list[str]]] = []

    def add(self, id_: str, text: str) -> None:
        """Keep a text."""
        self._texts.append((id_, tokens_of(text)))

    def nearest(self, text: str, skip: Container[str] = ()) -> Near | None:
        """The most similar kept text, the first of several, if it makes the text redundant; else None.

        `skip` has the ids of texts to leave out, such as other levels of the chain.
        """
        return next(iter(self.neighbours(text, 1, skip, self._threshold)), None)

    def neighbours(self, text: str, count: int = 3, skip: Container[str] = (), least: float = 0.0) -> list[Near]:
        """The `count` most similar kept texts with at least the score `least`, nearest first, then in order."""
        tokens = tokens_of(text)
        masks, near = _masks_of(tokens), list[Near]()
        for id_, other in self._texts:
            if id_ in skip:
                continue
            full = len(near) == count
            score = _score(masks, len(tokens), other, near[-1].score if full else least)
            if score >= least and not (full and score <= near[-1].score):
                insort(near, Near(id_, score), key=lambda each: -each.score)
                del near[count:]
        return near


class Reviews:
    """The labels of each item. A label is of a text, and does not count after the text has changed."""

    def __init__(self, files: Sequence[str]) -> None:
        """Raises `UserError` for a file without labels of made tasks."""
        self._rows: Mapping[str, list[tuple[str, Row]]] = defaultdict(list)
        for path in files:
            for line, row in read_labels(Path(path).expanduser()).values():
                if row.kind is not MADE:
                    raise UserError(f"{path}:{line}: no label of a made task", "give what `audit export items=N` wrote")
                self._rows[row["task_id"]].append((row["annotator"].strip() or path, row))

    def edited(self, item: str, made: Made) -> Made:
        """The task with the prompt that people wrote for it; unchanged without one, or with two that differ."""
        seen = set[str]()
        while made.content not in seen:
            seen.add(made.content)
            edits = {row["edit"].strip() for _, row in self._on(item, made) if row["edit"].strip()}
            if len(edits) == 1:
                made = replace(made, prompt=edits.pop())
        return made

    def votes(self, item: str, made: Made) -> Mapping[str, tuple[bool, str]]:
        """Whether the task is sound, and a note, by person. The author of its present prompt finds it sound."""
        rows = self._rows.get(item, ())
        wrote = {who: (True, "") for who, row in rows if row["edit"].strip() == made.prompt}
        return wrote | {who: (row["sound"] == "yes", row["note"]) for who, row in self._on(item, made) if row["sound"]}

    def _on(self, item: str, made: Made) -> Sequence[tuple[str, Row]]:
        return [(who, row) for who, row in self._rows.get(item, ()) if row["content"] == made.content]


class Filter:
    """Stage redundancy: drops prompts similar to kept ones and to the `published` ones, which are given by id."""

    def __init__(self, threshold: float, published: Mapping[str, str], reviews: Reviews) -> None:
        self._threshold, self._published, self._reviews = threshold, published, reviews

    async def together(self, items: Sequence[Item], kit: Kit) -> Sequence[Outcome]:
        """In order; the levels of one chain are not compared. A prompt that people edited passes its checks again."""
        texts, types = Texts(self._threshold), dict[str, str]()
        for name, prompt in self._published.items():
            texts.add(f"{PUBLISHED}{name}", prompt)
        chains: dict[str, set[str]] = defaultdict(set)

        def keep(item: Item, made: Made) -> None:
            texts.add(item.id, made.prompt)
            types[item.id] = made.own.type
            chains[made.chain].add(item.id)

        for item in kit.kept:
            keep(item, Made.of(item))
        outcomes: list[Outcome] = []
        for item in items:
            made = Made.of(item)
            edited = self._reviews.edited(item.id, made)
            fault = unstated(edited) if edited is not made else None
            near = None if fault else texts.nearest(edited.prompt, chains[made.chain])
            if near is not None:
                same = "same type" if types.get(near.id) == made.own.type else "across types"
                reason = f"redundant, {same if near.id in types else 'published'}"
                fault = Dropped(reason, f"ROUGE-L {near.score:.3f} with {near.id.removeprefix(PUBLISHED)}")
            if fault is None:
                keep(item, edited)
            outcomes.append(fault or Kept(item.having(**edited.data())))
        return without_gaps(items, outcomes)


class Review:
    """Stage review: marks tasks that people accepted, drops rejected ones, and adds the nearest texts to read."""

    def __init__(self, reviews: Reviews, published: Mapping[str, str]) -> None:
        self._reviews, self._published = reviews, published

    async def together(self, items: Sequence[Item], kit: Kit) -> Sequence[Outcome]:
        """The majority of at least two labels counts; without one a task stays unreviewed."""
        texts, prompts, chains = Texts(), dict(self._published), defaultdict[str, set[str]](set)
        for item in (*kit.kept, *items):
            made = Made.of(item)
            prompts[item.id] = made.prompt
            chains[made.chain].add(item.id)
        for name, prompt in prompts.items():
            texts.add(name, prompt)
        outcomes: list[Outcome] = []
        for item in items:
            made = Made.of(item)
            votes = dict(sorted(self._reviews.votes(item.id, made).items()))
            sound = sum(yes for yes, _ in votes.values())
            decided = len(votes) >= PEOPLE and 2 * sound != len(votes)
            if decided and 2 * sound < len(votes):
                notes = [f"{who}: {note or 'no reason given'}" for who, (yes, note) in votes.items() if not yes]
                outcomes.append(Dropped("rejected by people", "; ".join(notes)))
                continue
            near = texts.neighbours(made.prompt, NEAREST, chains[made.chain])
            nearest = [{"id": each.id, "score": round(each.score, 3), "prompt": prompts[each.id]} for each in near]
            reviewed = item.having(reviewed=decided, nearest=nearest).noting(content=made.content)
            said = {who: yes for who, (yes, _) in votes.items()}
            outcomes.append(Kept(reviewed.noting(review=said) if said else reviewed))
        return outcomes


def without_gaps(items: Sequence[Item], outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes, without the levels that follow a dropped level."""
    kept = set[str]()
    found: list[Outcome] = []
    for item, outcome in zip(items, outcomes, strict=True):
        previous = Made.of(item).previous
        gap = isinstance(outcome, Kept) and previous is not None and previous not in kept
        if isinstance(outcome, Kept) and not gap:
            kept.add(item.id)
        found.append(Dropped(GAP, f"{previous} is dropped") if gap else outcome)
    return found


async def chains(items: Sequence[Item], kit: Kit) -> Sequence[Outcome]:
    """Stage chains: of a chain, the levels up to the first that is missing."""
    return without_gaps(items, [Kept(item) for item in items])
