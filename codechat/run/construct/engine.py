"""Takes all items of a recipe through its stages: concurrently, journalled, under one budget."""

import asyncio
import contextlib
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from codechat.base.domain import Usage
from codechat.base.errors import BrokenTask, ContextOverflow, InfrastructureError, Stopped, UserError
from codechat.base.texts import writable
from codechat.models import MODELS
from codechat.models.calls import Brake
from codechat.models.hardware import HARDWARE
from codechat.run.cell.budget import Budget
from codechat.run.cell.references import sandbox_for
from codechat.run.construct.interface import Answer, Dropped, Item, Kept, Outcome, Settled, Spread, Waits
from codechat.run.construct.kit import Kit, People, Used
from codechat.run.construct.making import Construction
from codechat.run.construct.recipe import Stage
from codechat.run.journal import Journal, Ledger
from codechat.run.protocols.services import CheckOnce, Player, Services
from codechat.run.running.sessions import FAILURES_IN_A_ROW, finish_steps, run_together, unwrap_group, working
from codechat.sandbox import Sandbox
from codechat.sandbox.suites.checker import Checker, NoSandbox

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


class Watcher(Protocol):
    """Who looks on: the terminal."""

    def begin(self, made: Construction, budget: Budget) -> None:
        """A construction begins."""

    def note(self, text: str) -> None:
        """Show a remark."""

    def watching(self, counts: Counts, ledger: Ledger) -> AbstractContextManager[object]:
        """Surrounds the items; both arguments have running sums."""

    def interruptible(self, brake: Brake) -> AbstractContextManager[object]:
        """Surrounds the items within the event loop: pulling the brake ends them."""


@dataclass
class Made:
    """What has become of the items: their ends without texts, part by part of the way, each in the order of the seeds.

    The way has `length` parts; items may stand before one until all others are settled. `begun` counts the seeds, those
    of further rounds included. `bug` is the first.
    """

    length: int = 0
    parts: list[list[End]] = field(default_factory=list)
    begun: int = 0
    bug: Exception | None = None

    @property
    def final(self) -> list[End]:
        """The last end of every item, in the order of the seeds; not those of items that became others."""
        last = {end.path: end for ends in self.parts for end in ends}
        return [last[path] for path in sorted(last) if last[path].status != "spread"]

    @property
    def kept(self) -> list[End]:
        """The ends of items that came through."""
        return [end for end in self.parts[-1] if end.status == "kept"] if 0 < self.length == len(self.parts) else []

    @property
    def settled(self) -> bool:
        """Whether every item has come to its end."""
        return all(end.settled for ends in self.parts for end in ends)


@dataclass(frozen=True)
class Run:
    """A construction that runs in this process; `answers` are people's, by question."""

    made: Construction
    journal: Journal
    answers: Mapping[str, Answer]
    watcher: Watcher
    budget: Budget
    brake: Brake = field(default_factory=Brake)
    counts: Counts = field(default_factory=Counts)


@contextlib.asynccontextmanager
async def services_of(run: Run) -> AsyncIterator[Services]:
    """Build the roles' models and the sandbox, and close them at the end."""
    config, workers = run.made.config, HARDWARE.build(run.made.config.hardware).workers
    async with contextlib.AsyncExitStack() as stack:
        models = {role: MODELS.build(each) for role, each in run.made.roles.items()}
        for model in models.values():
            stack.push_async_callback(model.aclose)
        if run.made.recipe.aclose is not None:
            stack.push_async_callback(run.made.recipe.aclose)
        sandbox: Sandbox = NoSandbox(config.sandbox)
        if run.made.recipe.sandbox:
            sandbox = await stack.enter_async_context(sandbox_for((), config.sandbox, workers, run.watcher.note))
        gate, tests = CheckOnce(*models.values()), Checker(sandbox)
        players = {role: Player(model, gate) for role, model in models.items()}
        services = Services(players, run.journal, tests, brake=run.brake, workers=workers)
        stack.push_async_callback(services.opened.aclose)
        yield services


async def make(run: Run, found: Made) -> None:
    """Take the items as far as they come: to the end, to `until`, or until a budget or the user stops them.

    `found` gets their ends, of which those before an interruption stay.
    """
    async with (
        working(run.journal, run.brake, run.budget, run.made.endpoints, run.watcher),
        services_of(run) as services,
        finish_steps(run.journal),
    ):
        await _Making(run, services, found).run()


class _Making:
    """One run over all parts of the way: stages of single items, between those that take all items together."""

    def __init__(self, run: Run, services: Services, result: Made) -> None:
        made = run.made
        self._made, self._services, self._counts, self._result = made, services, run.counts, result
        self._people = People(run.answers, made.config.recipe.on_question)
        self._journal, self._brake = services.journal, services.brake
        most = max((each.max_concurrency for each in made.roles.values()), default=0)
        self._slots = asyncio.Semaphore(2 * (most + HARDWARE.build(made.config.hardware).workers))
        self._ids = set[str]()
        self._begun: list[Item] = []
        self._failures, self._failure = 0, ""
        self._last = False  # whether the part under way is the last one

    async def run(self) -> None:
        """Make what is missing."""
        if self._made.recipe.prepare is not None:
            kit = self._kit(self._made.unit("prepare"), "")
            kit.stage = "prepare"
            await unwrap_group(self._made.recipe.prepare(self._made.items, kit))
        self._result.length = len(self._made.parts)
        items, kept, more = self._made.items, list[Item](), self._made.recipe.more
        has_rounds = self._made.config.recipe.rows is None and not self._made.is_partial
        while items:
            await self._round(items, kept)
            if more is None or not has_rounds or self._brake.reason or not self._result.settled:
                break
            kept = [Item(end.id, end.data, end.provenance) for end in map(self._whole, self._result.kept)]
            items = tuple(more(self._begun, kept))

    def _kit(self, unit: str, item: str) -> Kit:
        return Kit(unit, item, self._made.config.seed, self._services, self._people)

    async def _round(self, items: Sequence[Item], kept: Sequence[Item]) -> None:
        """Take items through all parts; those before them were `kept`."""
        result, first = self._result, len(self._begun)
        for item in items:
            self._take_id(item)
        self._begun += items
        result.begun = len(self._begun)
        self._counts.planned += len(items)
        standing = [Standing(item, (number,), item.id) for number, item in enumerate(items, first)]
        for number, part in enumerate(self._made.parts):
            self._last = number == len(self._made.parts) - 1
            if part[0].together is not None and (self._brake.reason or not result.settled):
                break
            ends: list[End] = []
            if len(result.parts) == number:
                result.parts.append([])
            try:
                if part[0].together is not None:
                    ends += await self._together(standing, number, part[0], kept)
                else:
                    await unwrap_group(run_together(self._climb(at, number, part, ends) for at in standing))
            finally:
                ends.sort(key=lambda end: end.path)
                result.parts[number] += ends
            standing = [after for end in ends for after in self._after(end)]

    def _after(self, end: End) -> Iterable[Standing]:
        """The item, if it goes on to the next part. Texts are in the journal, so that memory holds one part's."""
        return self._whole(end).standing() if end.status == "kept" else ()

    def _whole(self, end: End) -> End:
        return End.model_validate_json(self._journal.record(end.unit) or "")

    async def _climb(self, at: Standing, number: int, part: Sequence[Stage], ends: list[End], first: int = 0) -> None:
        """Take an item, and those that it becomes, through a part of the way, from its `first` stage on."""
        async with self._slots:
            end = None if self._brake.interrupted else await self._end(at, number, part, first)
        if end is None:
            return
        ends.append(end.outline())
        if end.status == "spread":
            children = [*end.standing()]
            for child in children:
                self._take_id(child.item)
            after = first + len(end.visited)
            await run_together(self._climb(child, number, part, ends, after) for child in children)

    def _take_id(self, item: Item) -> None:
        if item.id in self._ids:
            raise UserError(f"two items have the id '{item.id}'", "a stage that spreads an item gives each a new id")
        self._ids.add(item.id)

    async def _end(self, at: Standing, number: int, part: Sequence[Stage], first: int) -> End | None:
        """The end of an item in a part: the recorded one, or a new one; None if the user interrupted it."""
        unit, upto = self._made.unit(number, at.item.id, at.item.data), part[-1].name
        known = self._journal.outline(unit, completed=True)
        if known is not None and (end := End.model_validate_json(known)).upto == upto:
            self._count(end, new=False)
            return self._whole(end) if end.status == "spread" else end
        kit = self._kit(unit, at.item.id)
        end = End(id=at.item.id, origin=at.origin, path=at.path, unit=unit, upto=upto, status="errored", visited=[])
        if self._failures >= FAILURES_IN_A_ROW:
            detail = f"not attempted: too many failures in a row; the last: {self._failure}"
            return await self._finish(end.model_copy(update={"detail": detail}), kit)
        visited = [part[first - 1].name] if at.dropped is not None else list[str]()
        try:
            outcome: Outcome = at.dropped or Kept(at.item)
            for stage in part[first:]:
                if not isinstance(outcome, Kept):
                    break
                at = replace(at, item=outcome.item)
                visited.append(stage.name)
                kit.stage = stage.name
                outcome = await _outcome_of(stage, at.item, kit)
            end = end_of(end, at.item, outcome, visited, kit)
            self._failures = 0
        except Exception as error:  # noqa: BLE001  one seed never stops the others; a bug is raised when they have ended
            if isinstance(error, Stopped) and self._brake.interrupted:
                return None
            end = end.model_copy(update={"visited": visited, "calls": Calls.of(kit.used), "detail": self._noted(error)})
        return await self._finish(end, kit)

    def _noted(self, error: Exception) -> str:
        """Why an item errored, in words. A `UserError` is raised again; a bug is kept, and the other items go on."""
        if isinstance(error, UserError):
            raise error
        if isinstance(error, Stopped):
            return f"not finished: {error}"
        if isinstance(error, InfrastructureError):
            self._failures, self._failure = self._failures + 1, str(error) or type(error).__name__
            return self._failure
        self._result.bug = self._result.bug or error
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"bug: {type(error).__name__}: {error} ({last.filename}:{last.lineno})"

    async def _together(
        self, standing: Sequence[Standing], number: int, stage: Stage, kept: Sequence[Item]
    ) -> list[End]:
        """The ends of all items in a stage that takes them at once; its calls are counted with the first of them."""
        assert stage.together is not None
        if not standing:
            return []
        reached = [[at.item.id, at.item.data] for at in standing]
        common = self._kit(self._made.unit(number, stage.name, reached), stage.name)
        common.stage, common.kept = stage.name, kept
        outcomes = await stage.together([at.item for at in standing], common)
        if len(outcomes) != len(standing):
            raise ValueError(f"the stage {stage.name} gave {len(outcomes)} outcomes for {len(standing)} items")
        ends: list[End] = []
        for at, outcome in zip(standing, outcomes, strict=True):
            unit = self._made.unit(number, at.item.id, at.item.data)
            kit = self._kit(unit, at.item.id)
            kit.stage, kit.used = stage.name, {} if ends else common.used
            end = End(
                id=at.item.id, origin=at.origin, path=at.path, unit=unit, upto=stage.name, status="errored", visited=[]
            )
            found = end_of(end, at.item, _after_people(stage, at.item, outcome, kit), [stage.name], kit)
            kit.provisional = True  # it depends on all the others: decided again in every run
            ends.append((await self._finish(found, kit)).outline())
        return ends

    async def _finish(self, end: End, kit: Kit) -> End:
        """Record an end. One that may change yet is found again by its steps, and counts as unfinished."""
        completed = end.settled and not kit.provisional
        await self._journal.finish(
            end.unit, end.model_dump_json(), end.outline().model_dump_json(), completed=completed
        )
        self._count(end, new=kit.new)
        return end

    def _count(self, end: End, *, new: bool) -> None:
        if end.status != "kept" or self._last:
            self._counts.add(end, new=new)


async def _outcome_of(stage: Stage, item: Item, kit: Kit) -> Outcome:
    """What a stage decides; what the user wants, if it ends in a question without an answer."""
    assert stage.work is not None
    try:
        outcome = await stage.work(item, kit)
    except Settled as settled:
        return settled.outcome
    except ContextOverflow as overflow:
        return Dropped("context overflow", str(overflow))
    except BrokenTask as broken:
        return Dropped("broken tests", str(broken))
    return _after_people(stage, item, outcome, kit)


def _after_people(stage: Stage, item: Item, outcome: Outcome, kit: Kit) -> Outcome:
    """The outcome, with people's answer in the item if a stage waited for one."""
    if not isinstance(outcome, Kept | Spread | Dropped | Waits):
        raise TypeError(f"the stage {stage.name} must give Kept, Spread, Dropped or Waits, and gave {outcome!r:.80}")
    if isinstance(outcome, Kept) and outcome.item.id != item.id:
        raise ValueError(f"the stage {stage.name} gave the item '{item.id}' another id: Spread makes new items")
    if not isinstance(outcome, Waits):
        return outcome
    try:
        answer = kit.people(outcome.question, outcome.suggestion)
    except Settled as settled:
        return settled.outcome
    answers = {**item.data.get("answers", {}), **({} if answer is None else {stage.name: answer})}
    return Kept(item.having(answers=answers) if answers else item)
