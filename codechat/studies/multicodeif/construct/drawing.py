"""Stage draw: the value and the language of a task, even over the values of its type's pool (MultiCodeIF, III-B)."""

from collections.abc import Mapping, Sequence

from codechat.run.construct import Item, Kept, Kit, Outcome
from codechat.studies.multicodeif.constraints import Constraint
from codechat.studies.multicodeif.construct.demands import relation
from codechat.studies.multicodeif.construct.pools import Pool
from codechat.studies.multicodeif.construct.task import Demanded, Made

_FUNCTION = "solve"


class Draw:
    """Draws from pools of the languages that were chosen."""

    def __init__(self, pools: Mapping[str, Pool]) -> None:
        self._pools = pools

    async def work(self, item: Item, kit: Kit) -> Outcome:
        """The n-th task of a type: by (seed, type, n). Each round has every value once, in an order of its own."""
        made = Made.of(item)
        fitting: dict[str, list[str]] = {}
        for value, language in self._pools[made.type].pairs():
            fitting.setdefault(value, []).append(language)
        round_, place = divmod(made.number, len(fitting))
        values = sorted(fitting)
        kit.generator(f"draw/{round_}", of=made.type).shuffle(values)
        value = values[place]
        spoken = kit.generator(f"draw/{made.number}", of=made.type).choice(fitting[value])
        return Kept(item.having(drawn={"type": made.type, "value": value, "language": spoken}))

    def further(self, made: Made, types: Sequence[str], kit: Kit) -> Demanded | None:
        """A constraint for the next level, in the chain's language, that neither repeats nor contradicts an earlier
        one; None if no pool of the types has one left."""
        language, earlier = made.language, made.constraints
        function = next((each.answer.values[0] for each in earlier if _of_function(self._pools[each.type])), _FUNCTION)
        free: dict[str, list[Demanded]] = {}
        for name in types:
            pool = self._pools[name]
            for value, _ in pool.pairs({language}):
                answer = pool.answer_to(value, language, function)
                if relation(Constraint(name, pool.kind.read(answer)), earlier) is None:
                    free.setdefault(name, []).append(Demanded(name, value, language, answer))
        generator = kit.generator(f"expand/{made.level + 1}")
        return generator.choice(free[generator.choice(sorted(free))]) if free else None


def _of_function(pool: Pool) -> bool:
    return "{function}" in (pool.answer or "")
