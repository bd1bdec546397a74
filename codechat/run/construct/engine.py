"""Takes all items of a recipe through its stages: concurrently, journalled, under one budget."""

import asyncio
import contextlib
import operator
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from codechat.base.domain import Usage
from codechat.base.errors import (
    BrokenTask,
    ContextOverflow,
    ConversationRefused,
    InfrastructureError,
    Stopped,
    UserError,
)
from codechat.base.texts import writable
from codechat.models import MODELS
from codechat.models.calls import Brake
from codechat.models.hardware import HARDWARE
from codechat.run.cell.budget import Budget
from codechat.run.cell.estimate import Sizes
from codechat.run.cell.references import sandbox_for
from codechat.run.construct.interface import Answer, Dropped, Item, Kept, Outcome, Settled, Spread, Waits
from codechat.run.construct.kit import Kit, People
from codechat.run.construct.making import Construction
from codechat.run.construct.recipe import Stage
from codechat.run.journal import Journal, Ledger
from codechat.run.protocols.services import CheckOnce, Player, Services
from codechat.run.running.room import Room
from codechat.run.running.sessions import FAILURES_IN_A_ROW, finish_steps, run_together, unwrap_group, working
from codechat.sandbox import Sandbox
from codechat.sandbox.suites.checker import Checker, NoSandbox


@dataclass(frozen=True, slots=True)
class ItemState:
    """An item under way.

    `path` is its place among the seeds, then among the items that one became; `origin` is the id of its seed; `dropped`
    is set if the stage that made the item dropped it.
    """

    item: Item
    path: tuple[int, ...]
    origin: str
    dropped: Dropped | None = None


class Calls(BaseModel):
    model_config = ConfigDict(frozen=True)

    stage: str
    role: str
    calls: int
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int = 0
    reasoning_tokens: int = Field(0, exclude_if=operator.not_)
    tiers: dict[str, Usage] = {}

    @property
    def usage(self) -> Usage:
        """The tokens."""
        counts = (self.input_tokens, self.output_tokens, self.cached_input_tokens, self.cache_write_tokens)
        return Usage(*counts, tiers=self.tiers, reasoning_tokens=self.reasoning_tokens)


def calls_of(kit: Kit) -> list[Calls]:
    """The calls of a kit, by stage and role."""
    used = sorted(kit.used.items(), key=lambda pair: pair[0])
    return [Calls(stage=stage, role=role, calls=n, **usage.fields()) for (stage, role), (n, usage) in used]


class ItemResult(BaseModel):
    """An item's end in one part of the stages, as the journal keeps it. `visited` are the stages that it reached.

    `unit` is its key in the journal, and `upto` the last stage of that part when it ran: an item that was kept with
    another `until` continues from there. `made` counts the items that replace it. An outline lacks `data` and
    `children`.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    origin: str
    path: tuple[int, ...]
    unit: str
    status: Literal["kept", "spread", "dropped", "waits", "errored"]
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
        """The last stage that the item reached."""
        return self.visited[-1] if self.visited else ""

    @property
    def settled(self) -> bool:
        """Whether the item is not taken up again."""
        return self.status in ("kept", "spread", "dropped")

    @property
    def item(self) -> Item:
        return Item(self.id, self.data, self.provenance)

    def outline(self) -> "ItemResult":
        """The result without the texts of the item."""
        return self.model_copy(update={"data": {}, "children": [], "provenance": {}})

    def states(self) -> Iterable[ItemState]:
        """The items that continue from here."""
        if self.status == "kept":
            yield ItemState(self.item, self.path, self.origin)
        for number, child in enumerate(self.children):
            item = Item(child["id"], child["data"], child["provenance"])
            dropped = Dropped(**child["dropped"]) if "dropped" in child else None
            yield ItemState(item, (*self.path, number), self.origin, dropped)


def result_of(begun: ItemResult, item: Item, outcome: Outcome, visited: Sequence[str], kit: Kit) -> ItemResult:
    """The result for a stage's outcome; `item` as it came to that stage, unless it was kept."""
    item = outcome.item if isinstance(outcome, Kept) else item
    fields: dict[str, Any] = {}
    match outcome:
        case Kept():
            fields = {"status": "kept"}
        case Spread(items=items, dropped=dropped):
            children = [_child(each) for each in items]
            children += [{**_child(each), "dropped": asdict(why)} for each, why in dropped]
            fields = {"status": "spread", "made": len(items), "children": children}
        case Dropped(reason=reason, detail=detail):
            fields = {"status": "dropped", "reason": reason, "detail": detail}
        case Waits(question=question, suggestion=suggestion):
            asked = {"id": kit.waiting, "question": question, "suggestion": suggestion}
            fields = {"status": "waits", "question": asked}
    fields |= {"visited": [*visited], "asked": [*kit.asked], "calls": calls_of(kit)}
    whole = {**dict(begun), "data": dict(item.data), "provenance": dict(item.provenance), **fields}
    return ItemResult.model_validate(writable(whole))


def _child(item: Item) -> dict[str, Any]:
    return {"id": item.id, "data": dict(item.data), "provenance": dict(item.provenance)}


@dataclass
class Counts:
    """Items that have ended, by status; `planned` are all items to come, and `new` were not in the journal."""

    planned: int = 0
    of: Counter[str] = field(default_factory=Counter)
    new: int = 0

    @property
    def done(self) -> int:
        """All that have ended, except items that became others."""
        return self.of.total()

    def words(self, sessions: int) -> list[str]:
        """The counts in words; `sessions` is the number of seeds."""
        counts = [f"{n:,} {status}" for status in ("kept", "dropped", "waits", "errored") if (n := self.of[status])]
        return [f"{self.done:,}/{self.planned:,} items of {sessions:,} seeds", *counts]

    def add(self, result: ItemResult, *, new: bool) -> None:
        """Count a result."""
        if result.status == "spread":
            self.planned += len(result.children) - 1
        else:
            self.of[result.status] += 1
            self.new += new

    def progress(self, ledger: Ledger, budget: Budget) -> dict[str, float]:
        """See `codechat.run.running.observer.Progressing`."""
        counts = {status: float(self.of[status]) for status in ("kept", "dropped", "waits")}
        return {**counts, **budget.progress(ledger), "errors": self.of["errored"]}


class Watcher(Protocol):
    """An observer of a construction: as `codechat.run.running.observer.Observer`, of items instead of sessions."""

    def begin(self, made: Construction, budget: Budget) -> None: ...

    def note(self, text: str) -> None: ...

    def watching(self, counts: Counts, ledger: Ledger) -> AbstractContextManager[object]: ...

    def interruptible(self, brake: Brake) -> AbstractContextManager[object]: ...


@dataclass
class ConstructionResult:
    """The results of all items without texts, part by part of the stages, each in the order of the seeds.

    The stages have `length` parts; items may wait before a part until all others are settled. `begun` counts the seeds
    of all rounds. `bug` is the first bug.
    """

    length: int = 0
    parts: list[list[ItemResult]] = field(default_factory=list)
    begun: int = 0
    bug: Exception | None = None

    @property
    def final(self) -> list[ItemResult]:
        """The last result of every item, in the order of the seeds, without items that became others."""
        last = {result.path: result for results in self.parts for result in results}
        return [last[path] for path in sorted(last) if last[path].status != "spread"]

    @property
    def kept(self) -> list[ItemResult]:
        """The results of items that came through."""
        complete = 0 < self.length == len(self.parts)
        return [result for result in self.parts[-1] if result.status == "kept"] if complete else []

    @property
    def settled(self) -> bool:
        """Whether every item has ended."""
        return all(result.settled for results in self.parts for result in results)


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
    config, recipe, workers = run.made.config, run.made.recipe, HARDWARE.build(run.made.config.hardware).workers
    async with contextlib.AsyncExitStack() as stack:
        models = {role: MODELS.build(each) for role, each in run.made.roles.items()}
        for closing in (*(model.aclose for model in models.values()), recipe.aclose):
            if closing is not None:
                stack.push_async_callback(closing)
        sandbox: Sandbox = NoSandbox(config.sandbox)
        if recipe.sandbox:
            sandbox = await stack.enter_async_context(sandbox_for((), config.sandbox, workers, run.watcher.note))
        gate = CheckOnce(*models.values())
        players = {role: Player(model, gate) for role, model in models.items()}
        services = Services(players, run.journal, Checker(sandbox), brake=run.brake, workers=workers)
        stack.push_async_callback(services.opened.aclose)
        yield services


def room_of(run: Run) -> Room:
    """The items that the budget lets be under way at once; all are expected to cost the mean of the seeds."""
    made, budget, asks, costs = run.made, run.budget, run.made.recipe.asks, list[float]()
    if budget.is_limited and asks is not None:
        sizes = Sizes.of(made.roles, {})
        costs = [fmean(budget.part(sizes.tokens(asks(item))) for item in made.items)]
    return Room(lambda: budget.left(run.journal.ledger), lambda _: costs, run.brake)


async def make(run: Run, result: ConstructionResult) -> None:
    """Take the items to the end, to `until`, or until a budget or the user stops them.

    `result` is filled as items end, and keeps the ends before an interruption.
    """
    async with (
        working(run.journal, run.brake, run.budget, run.made.endpoints, run.watcher),
        services_of(run) as services,
        finish_steps(run.journal),
    ):
        await _Runner(run, services, result).run()


class _Runner:
    """One run over all parts: stages of single items, between stages that take all items together."""

    def __init__(self, run: Run, services: Services, result: ConstructionResult) -> None:
        made = run.made
        self._made, self._services, self._counts, self._result = made, services, run.counts, result
        self._people = People(run.answers, made.config.recipe.on_question)
        self._journal, self._brake = services.journal, services.brake
        most = max((each.max_concurrency for each in made.roles.values()), default=0)
        self._slots = asyncio.Semaphore(2 * (most + services.workers))
        self._room = room_of(run)
        self._ids = set[str]()
        self._begun: list[Item] = []
        self._failures, self._failure = 0, ""
        self._last = False  # whether the current part is the last one

    async def run(self) -> None:
        """Make what is missing."""
        if self._made.recipe.prepare is not None:
            kit = self._kit(self._made.unit("prepare"), "", "prepare")
            await unwrap_group(self._made.recipe.prepare(self._made.items, kit))
        self._result.length = len(self._made.parts)
        items, kept, more = self._made.items, list[Item](), self._made.recipe.more
        has_rounds = self._made.config.recipe.rows is None and not self._made.is_partial
        while items:
            await self._round(items, kept)
            if more is None or not has_rounds or self._brake.reason or not self._result.settled:
                break
            kept = [self._whole(result).item for result in self._result.kept]
            items = tuple(more(self._begun, kept))

    def _kit(self, unit: str, item: str, stage: str = "") -> Kit:
        kit = Kit(unit, item, self._made.config.seed, self._services, self._people)
        kit.stage = stage
        return kit

    async def _round(self, items: Sequence[Item], kept: Sequence[Item]) -> None:
        """Take items through all parts; items of earlier rounds were `kept`."""
        result, first = self._result, len(self._begun)
        for item in items:
            self._take_id(item)
        self._begun += items
        result.begun = len(self._begun)
        self._counts.planned += len(items)
        states = [ItemState(item, (number,), item.id) for number, item in enumerate(items, first)]
        for number, part in enumerate(self._made.parts):
            self._last = number == len(self._made.parts) - 1
            if part[0].together is not None and (self._brake.reason or not result.settled):
                break
            ends: list[ItemResult] = []
            if len(result.parts) == number:
                result.parts.append([])
            try:
                if part[0].together is not None:
                    ends += await self._together(states, number, part[0], kept)
                else:
                    await unwrap_group(run_together(self._climb(at, number, part, ends) for at in states))
            finally:
                ends.sort(key=lambda end: end.path)
                result.parts[number] += ends
            # texts are read from the journal again, so that memory holds the texts of one part
            states = [state for end in ends if end.status == "kept" for state in self._whole(end).states()]

    def _whole(self, end: ItemResult) -> ItemResult:
        return ItemResult.model_validate_json(self._journal.record(end.unit) or "")

    async def _climb(
        self, at: ItemState, number: int, part: Sequence[Stage], ends: list[ItemResult], first: int = 0
    ) -> None:
        """Take an item, and the items that it becomes, through a part, from its `first` stage on."""
        async with self._slots, self._room.session(at.item.id):
            end = None if self._brake.interrupted else await self._end(at, number, part, first)
        if end is None:
            return
        ends.append(end.outline())
        if end.status == "spread":
            children = [*end.states()]
            for child in children:
                self._take_id(child.item)
            after = first + len(end.visited)
            await run_together(self._climb(child, number, part, ends, after) for child in children)

    def _take_id(self, item: Item) -> None:
        if item.id in self._ids:
            raise UserError(f"two items have the id '{item.id}'", "a stage that spreads an item gives each a new id")
        self._ids.add(item.id)

    def _started(self, at: ItemState, number: int, upto: str) -> ItemResult:
        """The result of an undecided item: errored."""
        unit = self._made.unit(number, at.item.id, at.item.data)
        head: dict[str, Any] = {"id": at.item.id, "origin": at.origin, "path": at.path, "unit": unit}
        return ItemResult(**head, upto=upto, status="errored", visited=[])

    async def _end(self, at: ItemState, number: int, part: Sequence[Stage], first: int) -> ItemResult | None:
        """The result of an item in a part: recorded or new; None if the user interrupted it."""
        end = self._started(at, number, part[-1].name)
        recorded = self._journal.outline(end.unit, completed=True)
        if recorded is not None and (known := ItemResult.model_validate_json(recorded)).upto == end.upto:
            self._count(known, new=False)
            return self._whole(known) if known.status == "spread" else known
        kit = self._kit(end.unit, at.item.id)
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
            end = result_of(end, at.item, outcome, visited, kit)
            self._failures = 0
        except Exception as error:  # noqa: BLE001  one seed never stops the others; a bug is raised when they have ended
            if isinstance(error, Stopped) and self._brake.interrupted:
                return None
            end = end.model_copy(update={"visited": visited, "calls": calls_of(kit), "detail": self._noted(error)})
        return await self._finish(end, kit)

    def _noted(self, error: Exception) -> str:
        """Why an item errored, in words. Raises a `UserError` again; keeps a bug, and the other items go on."""
        if isinstance(error, UserError):
            raise error
        if isinstance(error, Stopped):
            return f"not finished: {error}"
        if isinstance(error, InfrastructureError):
            cause = str(error) or type(error).__name__
            if not isinstance(error, ConversationRefused):
                self._failures, self._failure = self._failures + 1, cause
            return cause
        self._result.bug = self._result.bug or error
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"bug: {type(error).__name__}: {error} ({last.filename}:{last.lineno})"

    async def _together(
        self, states: Sequence[ItemState], number: int, stage: Stage, kept: Sequence[Item]
    ) -> list[ItemResult]:
        """The results of all items in a stage that takes them at once; its calls are counted with the first item."""
        assert stage.together is not None
        if not states:
            return []
        reached = [[at.item.id, at.item.data] for at in states]
        common = self._kit(self._made.unit(number, stage.name, reached), stage.name, stage.name)
        common.kept = kept
        outcomes = await stage.together([at.item for at in states], common)
        if len(outcomes) != len(states):
            raise ValueError(f"the stage {stage.name} gave {len(outcomes)} outcomes for {len(states)} items")
        ends: list[ItemResult] = []
        for at, outcome in zip(states, outcomes, strict=True):
            begun = self._started(at, number, stage.name)
            kit = self._kit(begun.unit, at.item.id, stage.name)
            kit.used = {} if ends else common.used
            end = result_of(begun, at.item, _after_people(stage, at.item, outcome, kit), [stage.name], kit)
            kit.provisional = True  # depends on all other items: decided again in every run
            ends.append((await self._finish(end, kit)).outline())
        return ends

    async def _finish(self, end: ItemResult, kit: Kit) -> ItemResult:
        """Record a result. One that may still change is found again by its steps, and counts as unfinished."""
        completed = end.settled and not kit.provisional
        outline = end.outline().model_dump_json()
        await self._journal.finish(end.unit, end.model_dump_json(), outline, completed=completed)
        self._count(end, new=bool(kit.worked_at))
        self._room.turn_ended(end.id, new=bool(kit.worked_at))
        return end

    def _count(self, end: ItemResult, *, new: bool) -> None:
        if end.status != "kept" or self._last:
            self._counts.add(end, new=new)


async def _outcome_of(stage: Stage, item: Item, kit: Kit) -> Outcome:
    """A stage's decision; for a question without an answer, the user's choice (`on_question`)."""
    assert stage.work is not None
    try:
        outcome = await stage.work(item, kit)
    except Settled as ended:
        return ended.outcome
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
    except Settled as ended:
        return ended.outcome
    answers = {**item.data.get("answers", {}), **({} if answer is None else {stage.name: answer})}
    return Kept(item.having(answers=answers) if answers else item)
