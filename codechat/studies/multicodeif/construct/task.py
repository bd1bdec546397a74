"""A task in the making, as the data of its item."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter

from codechat.base.files import content_hash
from codechat.run.construct import Item
from codechat.studies.multicodeif.constraints import Constraint, constraint_type


@dataclass(frozen=True, slots=True)
class Demanded:
    """A constraint of a task: its type, the value drawn from the pool, the language, and the answer that asks for it.

    Of a solved type the answer is the value, until a witness takes its place.
    """

    type: str
    value: str
    language: str
    answer: str

    @property
    def constraint(self) -> Constraint:
        """As rules and judges read it."""
        return Constraint(self.type, constraint_type(self.type).read(self.answer))

    @property
    def words(self) -> str:
        """In words, also for a solved type, whose task alone says the value."""
        said = self.constraint.words
        return f"{said.rstrip('.')}: {self.value}." if constraint_type(self.type).solved else said


@dataclass(frozen=True, slots=True)
class Made:
    """What the stages know of a task.

    `type` and `number` are those of its first level, `round` that in which it was begun; `level` counts from 1, `chain`
    is the id of the first level's item. `demanded` are all constraints, the level's own last. `previous` is the id of
    the level before.
    """

    type: str
    number: int
    round: int
    snippet: Mapping[str, str]
    concepts: tuple[str, ...] = ()
    drawn: Mapping[str, str] | None = None
    prompt: str = ""
    demanded: tuple[Demanded, ...] = ()
    level: int = 1
    chain: str = ""
    previous: str | None = None
    witness: str = ""
    reviewed: bool = False
    nearest: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, item: Item) -> "Made":
        """The task of an item."""
        return _ADAPTER.validate_python(dict(item.data))

    def data(self) -> dict[str, Any]:
        """The item's data."""
        values = asdict(self)
        return {name: [*value] if isinstance(value, tuple) else value for name, value in values.items()}

    @property
    def own(self) -> Demanded:
        """The constraint of this level."""
        return self.demanded[-1]

    @property
    def language(self) -> str:
        """The task's language."""
        return self.own.language

    @property
    def constraints(self) -> list[Constraint]:
        """All constraints, as rules and judges read them."""
        return [each.constraint for each in self.demanded]

    @property
    def content(self) -> str:
        """A hash of what people review: the prompt and the answers."""
        return content_hash([self.prompt, [[each.type, each.value, each.answer] for each in self.demanded]])[:16]


_ADAPTER: TypeAdapter[Made] = TypeAdapter(Made)
