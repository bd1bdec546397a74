"""Stage redundancy: a prompt that is too similar to one that was kept is dropped (MultiCodeIF, III-B, step 4)."""

from collections.abc import Mapping, Sequence

from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome
from codechat.studies.multicodeif.construct.redundancy import Kept as Texts
from codechat.studies.multicodeif.construct.review import Reviews
from codechat.studies.multicodeif.construct.task import Made
from codechat.studies.multicodeif.construct.writing import unstated

PUBLISHED = "published/"
GAP = "the level before is missing"


class Filter:
    """Compares prompts with those that were kept before them, and with the `published` ones, by id."""

    def __init__(self, threshold: float, published: Mapping[str, str], reviews: Reviews) -> None:
        self._threshold, self._published, self._reviews = threshold, published, reviews

    async def together(self, items: Sequence[Item], kit: Kit) -> Sequence[Outcome]:
        """In order; the levels of one chain are not compared. A prompt that people edited passes its checks again."""
        texts, types = Texts(self._threshold), dict[str, str]()
        for name, prompt in self._published.items():
            texts.add(f"{PUBLISHED}{name}", prompt)
        chains: dict[str, set[str]] = {}

        def keep(item: Item, made: Made) -> None:
            texts.add(item.id, made.prompt)
            types[item.id] = made.own.type
            chains.setdefault(made.chain, set()).add(item.id)

        for item in kit.kept:
            keep(item, Made.of(item))
        outcomes: list[Outcome] = []
        for item in items:
            made = Made.of(item)
            edited = self._reviews.edited(item.id, made)
            fault = unstated(edited) if edited is not made else None
            near = None if fault else texts.nearest(edited.prompt, chains.get(made.chain, ()))
            if near is not None:
                place = "published" if near.id not in types else "same type" if types[near.id] == made.own.type else ""
                reason = f"redundant, {place or 'across types'}"
                fault = Dropped(reason, f"ROUGE-L {near.score:.3f} with {near.id.removeprefix(PUBLISHED)}")
            if fault is None:
                keep(item, edited)
            outcomes.append(fault or Kept(item.having(**edited.data())))
        return without_gaps(items, outcomes)


def without_gaps(items: Sequence[Item], outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes; a level whose level before is not kept is dropped too."""
    kept = set[str]()
    found: list[Outcome] = []
    for item, outcome in zip(items, outcomes, strict=True):
        previous = Made.of(item).previous
        follows = previous is None or previous in kept
        if isinstance(outcome, Kept) and follows:
            kept.add(item.id)
        found.append(Dropped(GAP, f"{previous} is dropped") if isinstance(outcome, Kept) and not follows else outcome)
    return found


async def chains(items: Sequence[Item], kit: Kit) -> Sequence[Outcome]:
    """Stage chains: of a chain, the levels up to the first that is missing."""
    return without_gaps(items, [Kept(item) for item in items])
