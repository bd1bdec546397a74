"""Stage expand: L2, L3, … each from the level before, with exactly one constraint more (MultiCodeIF, section III-C)."""

from collections.abc import Sequence
from dataclasses import replace

from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome, Spread
from codechat.studies.multicodeif.constraints import Constraint, constraint_type
from codechat.studies.multicodeif.construct.demands import relation
from codechat.studies.multicodeif.construct.drawing import Draw
from codechat.studies.multicodeif.construct.task import Demanded, Made
from codechat.studies.multicodeif.construct.writing import Author, Written, unstated


class Expand:
    """Makes chains of so many `levels`, of tasks and by constraints of the `types`, to which pools belong."""

    def __init__(self, author: Author, draw: Draw, types: Sequence[str], levels: int) -> None:
        self._author, self._draw, self._types, self._levels = author, draw, types, levels

    async def work(self, item: Item, kit: Kit) -> Outcome:
        """The task's levels as items of their own; one that is unsound ends here, and the chain before it."""
        made = Made.of(item)
        if self._levels == 1 or made.type not in self._types:
            return Kept(item)
        levels, lost = [_level(item, made)], list[tuple[Item, Dropped]]()
        while made.level < self._levels and not lost:
            wanted = self._draw.further(made, self._types, kit)
            if wanted is None:
                break
            before = f"{made.chain}/L{made.level}"
            draft = replace(made, level=made.level + 1, previous=before, drawn=_drawn(wanted))
            found = await self._next(made, draft, wanted, kit)
            if isinstance(found, Made):
                made = found
                levels.append(_level(item, made))
            else:
                lost.append((_level(item, found[0]), found[1]))
        return Spread(levels, lost)

    async def _next(self, made: Made, draft: Made, wanted: Demanded, kit: Kit) -> Made | tuple[Made, Dropped]:
        """The next level; or the draft as far as it came, and why it is none."""
        written = await self._author.expand(made, wanted, kit)
        if isinstance(written, Dropped):
            return draft, written
        draft = replace(draft, prompt=written.prompt)
        asked = _related(made, written, wanted) or self._author.read(written, wanted)
        if isinstance(asked, Dropped):
            return draft, asked
        whole = replace(draft, demanded=(*made.demanded, asked))
        fault = unstated(whole)
        return (whole, fault) if fault else whole


def _related(made: Made, written: Written, wanted: Demanded) -> Dropped | None:
    """How the written answer repeats or contradicts an earlier one, in the chain's own language."""
    try:
        new = Constraint(wanted.type, constraint_type(wanted.type).read(written.answer))
    except ValueError:
        return None
    found = relation(new, made.constraints) if new.answer.language in ("", made.language) else None
    return Dropped(found[0], f"'{written.answer:.80}' after '{found[1].answer.raw:.80}'") if found else None


def _level(item: Item, made: Made) -> Item:
    return replace(item, data=made.data(), id=f"{item.id}/L{made.level}")


def _drawn(wanted: Demanded) -> dict[str, str]:
    return {"type": wanted.type, "value": wanted.value, "language": wanted.language}
