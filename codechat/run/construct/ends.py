"""How an item ended in one part of the way, as the journal keeps it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from codechat.base.domain import Usage
from codechat.base.texts import writable
from codechat.run.cell.budget import Budget
from codechat.run.construct.interface import Dropped, Item, Kept, Outcome, Spread, Waits
from codechat.run.construct.kit import Kit, Used
from codechat.run.journal import Ledger

Status = Literal["kept", "spread", "dropped", "waits", "errored"]


@dataclass(frozen=True, slots=True)
class Standing:
    """An item on its way: `path` is its place among the seeds, then among the items that one became."""

    item: Item
    path: tuple[int, ...]
    origin: str
    """The id of its seed."""
    dropped: Dropped | None = None
    """Why the stage that made it did not take it."""


class Calls(BaseModel):
    """The calls of a role in a stage."""

    model_config = ConfigDict(frozen=True)

    stage: str
    role: str
    calls: int
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int = 0
    tiers: dict[str, Usage] = {}

    @property
    def usage(self) -> Usage:
        """The tokens."""
        counts = (self.input_tokens, self.output_tokens, self.cached_input_tokens, self.cache_write_tokens)
        return Usage(*counts, tiers=self.tiers)

    @classmethod
    def of(cls, used: "dict[tuple[str, str], Used]") -> "list[Calls]":
        """Those of a kit."""
        return [
            cls(stage=stage, role=role, calls=each.calls, **each.usage.fields())
            for (stage, role), each in sorted(used.items())
        ]


class End(BaseModel):
    """An item's end in one part of the way. `visited` are the stages that it came to, the last one last.

    `unit` is its key in
    the journal, and `upto` the last stage of that part when it ran: an item that was kept with another `until` goes on
    from there. `made` are the items that go on in its place. `data` and `children` are left out in an outline.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    origin: str
    path: tuple[int, ...]
    unit: str
    status: Status
    visited: list[str]
    upto: str
    reason: str = ""
    detail: str = ""
    question: dict[str, str] | None = None
    asked: list[dict[str, str]] = Field(default_factory=list)
    calls: list[Calls] = Field(default_factory=list)
    data: dict[str, Any] = Field(default_factory=dict)
    provenance: dict[str, Any] = Field(default_factory=dict)
    made: int = 0
    children: list[dict[str, Any]] = Field(default_factory=list)

    @property
    def stage(self) -> str:
        """The stage that it ended in."""
        return self.visited[-1] if self.visited else ""

    @property
    def settled(self) -> bool:
        """Whether it will not be taken up again."""
        return self.status in ("kept", "spread", "dropped")

    def outline(self) -> "End":
        """The end without the texts of the item."""
        return self.model_copy(update={"data": {}, "children": [], "provenance": {}})

    def standing(self) -> Iterable[Standing]:
        """The items that go on from here."""
        if self.status == "kept":
            yield Standing(Item(self.id, self.data, self.provenance), self.path, self.origin)
        for number, child in enumerate(self.children):
            item = Item(child["id"], child["data"], child["provenance"])
            dropped = Dropped(**child["dropped"]) if "dropped" in child else None
            yield Standing(item, (*self.path, number), self.origin, dropped)


def end_of(begun: End, item: Item, outcome: Outcome, visited: Sequence[str], kit: Kit) -> End:
    """The end that a stage's outcome means; the item is as it came to that stage, unless it was kept."""
    item = outcome.item if isinstance(outcome, Kept) else item
    own: dict[str, Any] = {}
    match outcome:
        case Kept():
            own = {"status": "kept"}
        case Spread(items=items, dropped=dropped):
            children = [_child(each) for each in items]
            children += [{**_child(each), "dropped": asdict(why)} for each, why in dropped]
            own = {"status": "spread", "made": len(items), "children": children}
        case Dropped(reason=reason, detail=detail):
            own = {"status": "dropped", "reason": reason, "detail": detail}
        case Waits(question=question, suggestion=suggestion):
            own = {"status": "waits", "question": {"id": kit.waiting, "question": question, "suggestion": suggestion}}
    end = begun.model_copy(update={"visited": [*visited], "asked": [*kit.asked], "calls": Calls.of(kit.used)})
    whole = {**dict(end), "data": dict(item.data), "provenance": dict(item.provenance), **own}
    return End.model_validate(writable(whole))


def _child(item: Item) -> dict[str, Any]:
    return {"id": item.id, "data": dict(item.data), "provenance": dict(item.provenance)}


@dataclass
class Counts:
    """Items that have ended, by status; `planned` are those that there will be, and `new` were not in the journal."""

    planned: int = 0
    of: Counter[str] = field(default_factory=Counter)
    new: int = 0

    @property
    def done(self) -> int:
        """All that have ended, but those that became others."""
        return self.of.total()

    def words(self, seeds: int) -> list[str]:
        """The counts in words, of so many seeds."""
        counts = [f"{self.of[status]:,} {status}" for status in ("kept", "dropped", "waits", "errored")]
        return [
            f"{self.done:,}/{self.planned:,} items of {seeds:,} seeds",
            *(each for each in counts if each[0] != "0"),
        ]

    def add(self, end: End, *, new: bool) -> None:
        """Count an end."""
        if end.status == "spread":
            self.planned += len(end.children) - 1
        else:
            self.of[end.status] += 1
            self.new += new

    def progress(self, ledger: Ledger, budget: Budget) -> dict[str, float]:
        """See `codechat.run.running.observer.Progressing`."""
        sums = Ledger(dict(ledger.of))
        dollars = budget.spent_usd(sums)
        return {
            **{status: float(self.of[status]) for status in ("kept", "dropped", "waits")},
            "tokens": sums.tokens,
            **({"dollars": dollars} if dollars is not None else {}),
            "errors": self.of["errored"],
        }
