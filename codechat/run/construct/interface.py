"""An item, and what a stage may decide about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

SEVERAL = "; "
"""Between the reasons of an item that is dropped for several; each is counted."""
OnQuestion = Literal["wait", "suggestion", "keep", "drop"]
"""What becomes of an item with a question that nobody has answered."""


@dataclass(frozen=True, slots=True)
class Item:
    """A task in the making. `id` is its own among all items; `data` is a JSON mapping that stages read and replace.

    `provenance` is a JSON mapping that stands in the item's line under `provenance`, beside what the engine adds.
    """

    id: str
    data: Mapping[str, Any]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def having(self, **data: Any) -> Self:
        """The item with some entries of its data replaced."""
        return replace(self, data={**self.data, **data})

    def noting(self, **provenance: Any) -> Self:
        """The item with some entries of its provenance replaced."""
        return replace(self, provenance={**self.provenance, **provenance})


@dataclass(frozen=True, slots=True)
class Kept:
    """The item goes on to the next stage, as it is now."""

    item: Item


@dataclass(frozen=True, slots=True)
class Dropped:
    """The item ends here. `reason` is one of few words to count by, such as `not passable`; `detail` is in words."""

    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Spread:
    """The item becomes several, each of which goes on by itself; its ids must be new.

    Those of `dropped` end in this stage, each for its own reason.
    """

    items: Sequence[Item]
    dropped: Sequence[tuple[Item, Dropped]] = ()


@dataclass(frozen=True, slots=True)
class Waits:
    """The item waits for people. With their answer it goes on to the next stage.

    The answer is in its data then, under `answers`, by the stage's name. A stage that needs the answer itself asks by
    `Kit.people` instead.
    """

    question: str
    suggestion: str = ""


Outcome = Kept | Spread | Dropped | Waits


class Settled(Exception):
    """Raised within the kit to end a stage by an outcome: a question without an answer, as the user wants it."""

    def __init__(self, outcome: Dropped | Waits) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome
