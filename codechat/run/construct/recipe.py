"""A recipe: its seeds, its stages and its output; and the whole configuration of a construction."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict, SerializeAsAny

from codechat.base.config import Config, original_option, place_option, result_option, run_option, validate
from codechat.base.errors import UserError, nearest
from codechat.base.registry import NoTraits, Registry
from codechat.models import MODELS
from codechat.models.hardware import HARDWARE, HardwareConfig
from codechat.models.roles import Roles
from codechat.report.tracking import TRACKING
from codechat.run.construct.interface import Item, OnQuestion, Outcome
from codechat.run.construct.kit import Kit
from codechat.run.protocols import Ask
from codechat.run.settings.compose import Root, compose_values, key_of
from codechat.sandbox import SANDBOXES, SandboxConfig


@dataclass(frozen=True)
class Stage:
    """One stage. `work` gets an item and its kit. `check` gets the first items of a run before anything begins, and
    raises `UserError` if the stage lacks something, such as a program or a key.

    `together` gets all items that reached the stage, in the order of the seeds, and returns an outcome for each. It
    begins when no earlier item is under way, errored or waiting: its result does not depend on the order of replies. In
    a later round it gets that round's items; `Kit.kept` has the items kept before.
    """

    name: str
    work: Callable[[Item, Kit], Awaitable[Outcome]] | None = None
    together: Callable[[Sequence[Item], Kit], Awaitable[Sequence[Outcome]]] | None = None
    check: Callable[[Sequence[Item]], None] | None = None


class Funnel(Protocol):
    """A recipe's counts over all items that came through or were dropped."""

    def add(self, data: Mapping[str, Any], stage: str, reason: str) -> None:
        """Count an item; `stage` and `reason` are of its drop, empty if it came through."""

    def table(self, calls: int) -> Sequence[Sequence[str]]:
        """The rows to print, heads first; `calls` are the calls of all roles."""


Distributions = Mapping[str, Mapping[str, int]]
"""Counts of kept items: title, then value and number."""


def _line(item: Item) -> Mapping[str, Any]:
    return {"id": item.id, **item.data}


@dataclass(frozen=True)
class Recipe:
    """What a recipe's factory returns.

    `seeds` returns the same first items at every call, with unique ids; raises `UserError` for unusable ones before
    anything is paid. `row` returns the line of a kept item in items.jsonl. `roles` are asked by the stages, with forms
    of these `schemas`. `sandbox`: whether a stage runs programs. `optional` are further parts that `skip` may name.
    `prepare` is awaited before the first paid call, with all seeds and a kit that asks no role; raises `UserError` for
    unusable seeds, such as a solution that fails its tests. `more` returns the items of another round, none if there
    are enough; it gets all begun items and all kept items when all have ended. `distributions` counts the kept rows for
    the card. `asks` are the expected calls of an item, for `dry_run`, with turn 0. `funnel` begins a count for a table
    of the recipe. `aclose` is awaited when a run ends, in the stages' event loop. `cell` are the words of a cell over
    the kept items, such as `dataset=jsonl`, without `dataset.path` and a model.
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
        "wait",
        "what becomes of an item with an unanswered question: wait, take the suggestion, keep it unchanged, drop",
    )
    skip: list[str] = result_option([], "stages, or other parts that the recipe names, to leave out")


RECIPES: Registry[Recipe, NoTraits] = Registry("construct", "codechat.run.construct", NoTraits, Recipe, RecipeConfig)


GROUPS: Mapping[str, Registry[Any, Any]] = {
    registry.group: registry for registry in (RECIPES, SANDBOXES, HARDWARE, TRACKING)
}
ROOT = Root("construction", GROUPS, RECIPES.group)
TEMPERATURE = "temperature"
RENAMED = {"recipe": RECIPES.group, "from": f"{RECIPES.group}.rows"}
"""Words of the command line with other keys in the config: `from` is a keyword of Python."""


class ConstructionConfig(Config):
    """One construction: a recipe, and the groups that it shares with cells.

    In words and files the recipe's options have the key `construct`, a name that pydantic reserves.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    recipe: SerializeAsAny[RecipeConfig] = original_option(..., "how the tasks are made: recipe=NAME")
    sandbox: SerializeAsAny[SandboxConfig] = original_option(..., "where programs run, within which limits")
    hardware: SerializeAsAny[HardwareConfig] = run_option(..., "what may be used of this machine")
    tracking: SerializeAsAny[Config] = run_option(..., "where the yields are sent")
    out: str = place_option(..., "the folder of what is made")
    seed: int = original_option(0, "seed of every random choice")
    max_errors: int = run_option(0, "errored items that are tolerated before the exit status is 3", ge=0)
    budget_usd: float | None = run_option(
        None, "US dollars that the roles may spend, all runs together; null: no limit", gt=0
    )
    budget_tokens: int | None = run_option(None, "tokens, in and out, that the roles may spend; null: no limit", gt=0)
    dry_run: bool = run_option(False, "estimate calls, tokens and cost, and run nothing")

    def values(self) -> dict[str, Any]:
        """The options as they are written."""
        values = self.model_dump(mode="json")
        return {RECIPES.group: values.pop("recipe"), **values}


def compose_construction(words: Sequence[str]) -> tuple[ConstructionConfig, Mapping[str, str]]:
    """The config that the words of a command describe, and the chosen option of every group. Raises `UserError`."""
    keys = [key_of(word) for word in words]
    for needed in ("recipe", "out"):
        if needed not in keys:
            remedy = nearest("", (each.name for each in RECIPES)) if needed == "recipe" else "out=DIR, a folder"
            raise UserError(f"construct needs {needed}=…", remedy)
    values, choices = compose_values([_placed(word) for word in _with_new_roles(words)], ROOT)
    _leave_out(values[RECIPES.group].get("roles"), keys)
    parts = {group: registry.validate(values.get(group) or {}, group) for group, registry in GROUPS.items()}
    recipe = parts.pop(RECIPES.group)
    rest = {name: value for name, value in values.items() if name not in GROUPS}
    return validate(ConstructionConfig, {**rest, **parts, "recipe": recipe}, ""), choices


def _with_new_roles(words: Sequence[str]) -> list[str]:
    """The words, with Hydra's `+` before the model of a role that has none in the recipe."""
    place = f"model@{RECIPES.group}.roles."
    if not any(word.startswith(place) for word in words):
        return [*words]
    recipe = next(_placed(word) for word in words if key_of(word) == "recipe")
    roles = compose_values([recipe], ROOT)[0][RECIPES.group].get("roles") or {}
    empty = {f"{place}{role}" for role, model in roles.items() if model is None}
    return [f"+{word}" if key_of(word) in empty and word.startswith(place) else word for word in words]


def _leave_out(roles: Any, keys: Sequence[str]) -> None:
    """Remove a recipe's temperature from roles whose model has no such option, such as recorded replies."""
    without = {each.name for each in MODELS if TEMPERATURE not in each.config.model_fields}
    for role, model in roles.items() if isinstance(roles, Mapping) else ():  # else validation refuses them
        given = f"{RECIPES.group}.roles.{role}.{TEMPERATURE}" in keys
        if isinstance(model, dict) and model.get(MODELS.key) in without and not given:
            model.pop(TEMPERATURE, None)


def _placed(word: str) -> str:
    """A word with its key in the whole config: unknown keys are options of the recipe."""
    key, equals, value = word.partition("=")
    bare = key.lstrip("+~")
    top = bare.partition("@")[0].partition(".")[0]
    if key in RENAMED:
        return f"{RENAMED[key]}{equals}{value}"
    if "@" in bare or top == RECIPES.group or top in ConstructionConfig.model_fields or not equals:
        return word
    return f"{key.removesuffix(bare)}{RECIPES.group}.{bare}{equals}{value}"
