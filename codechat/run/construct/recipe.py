"""A recipe: where items come from, the stages they go through, and how one that is kept is written."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from codechat.base.config import Config, original_option, place_option, result_option, run_option
from codechat.base.registry import NoTraits, Registry
from codechat.models.roles import Roles
from codechat.run.construct.interface import Item, OnQuestion, Outcome
from codechat.run.construct.kit import Kit
from codechat.run.protocols import Ask


@dataclass(frozen=True)
class Stage:
    """One step of the way. `work` gets an item and its kit. `check` is called before anything is begun, with the items
    that a run begins with: it raises `UserError` if the stage lacks what it will need, such as a program or a key.

    A stage of `together` takes all items that reached it at once, in the order of the seeds, and returns an outcome for
    each: it begins when no earlier item is under way, errored or waiting, so that its result does not depend on the
    order of replies. In a later round it gets that round's items, and finds those kept before in `Kit.kept`.
    """

    name: str
    work: Callable[[Item, Kit], Awaitable[Outcome]] | None = None
    together: Callable[[Sequence[Item], Kit], Awaitable[Sequence[Outcome]]] | None = None
    check: Callable[[Sequence[Item]], None] | None = None


class Funnel(Protocol):
    """Counts of a recipe's own, over all items that came through or were dropped."""

    def add(self, data: Mapping[str, Any], stage: str, reason: str) -> None:
        """Count an item as it was in the end, with the stage and the reason if it was dropped, both empty else."""

    def table(self, calls: int) -> Sequence[Sequence[str]]:
        """The rows to print, the first of them the heads, after so many calls of all roles."""


Distributions = Mapping[str, Mapping[str, int]]
"""Counts of kept items: title, then value and number."""


def _line(item: Item) -> Mapping[str, Any]:
    return {"id": item.id, **item.data}


@dataclass(frozen=True)
class Recipe:
    """What a recipe's factory returns.

    `seeds` gives the items to begin with, each time the same, with ids of their own; it raises `UserError` for what
    cannot be used, before anything is paid. `row` gives the line of a kept item in items.jsonl. `roles` are those that
    the stages ask, and `schemas` those of their forms. `sandbox`: whether a stage runs programs. `optional` are further
    parts that `skip` may name, beside the stages. `prepare` is awaited before the first paid call, with all seeds and a
    kit that asks no role: it raises `UserError` for seeds that cannot be used, such as a solution that fails its own
    tests. `more` gives the items of another round, none if there are enough: it gets all items that were begun, and
    those that came through, when all have come to their ends. `distributions` count the kept rows for the card. `asks`
    are the calls that an item is expected to need, for `dry_run`; their `turn` is 0. `funnel` begins a count for a
    table of the recipe's own. `aclose` is awaited when a run ends, in the event loop of the stages. `cell` are the
    words of a cell over the kept items, such as `dataset=jsonl`, to which `dataset.path` and a model are added.
    """

    seeds: Callable[[], Iterable[Item]]
    stages: Sequence[Stage]
    row: Callable[[Item], Mapping[str, Any]] = _line
    roles: Sequence[str] = ()
    schemas: Sequence[type[BaseModel]] = ()
    sandbox: bool = False
    optional: Sequence[str] = ()
    distributions: Callable[[Sequence[Mapping[str, Any]]], Distributions] | None = None
    asks: Callable[[Item], Iterable[Ask]] | None = None
    prepare: Callable[[Sequence[Item], Kit], Awaitable[None]] | None = None
    more: Callable[[Sequence[Item], Sequence[Item]], Iterable[Item]] | None = None
    funnel: Callable[[], Funnel] | None = None
    aclose: Callable[[], Awaitable[None]] | None = None
    cell: Sequence[str] = ()


class RecipeRoles(Roles):
    """The base of a recipe's config of roles: its option `roles`."""

    place: ClassVar[str] = "construct.roles"


class RecipeConfig(Config):
    """Options every recipe has. On the command line they are given without `construct.`."""

    kind: str = original_option(..., "which recipe")
    seeds: str | None = place_option(None, "the file of seeds")
    rows: str | None = place_option(
        None, "from=FILE: go on from these items instead of seeds, as until=STAGE left them"
    )
    until: str | None = run_option(None, "stop after this stage")
    answers: str | None = run_option(None, "people's answers to questions.jsonl: JSONL of question and answer")
    on_question: OnQuestion = run_option(
        "wait", "what becomes of an item with an unanswered question: wait, take the suggestion, keep it as it is, drop"
    )
    skip: list[str] = result_option([], "stages, or other parts that the recipe names, to leave out")


RECIPES: Registry[Recipe, NoTraits] = Registry("construct", "codechat.run.construct", NoTraits, Recipe, RecipeConfig)
