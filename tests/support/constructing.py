"""Constructions in this process: a recipe of a test's own stages, whose role `poet` is a server of the test's."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import SerializeAsAny

from codechat.base.config import original_option, result_option
from codechat.models import ModelConfig
from codechat.models.calls import Brake
from codechat.models.roles import role
from codechat.run.construct import RECIPES, Item, Recipe, RecipeConfig, RecipeRoles, Stage
from codechat.run.construct.recipe import ConstructionConfig, compose_construction
from codechat.run.construct.run import Outcome, construct
from codechat.testing import OpenAIServer


class TrialRoles(RecipeRoles):
    poet: SerializeAsAny[ModelConfig] | None = role("openai", "whom the stages ask", default=None)


class TrialConfig(RecipeConfig):
    kind: Literal["trial"] = original_option("trial", "which recipe")
    roles: TrialRoles = result_option(TrialRoles(), "who takes part")
    prompts: dict[str, str] = result_option({}, "what is asked")


@contextlib.contextmanager
def trial(recipe: Recipe) -> Iterator[None]:
    """While it lasts, `recipe=trial` is this one."""
    RECIPES.discover()

    @RECIPES.register("trial", TrialConfig)
    def made(config: TrialConfig) -> Recipe:
        """A test's own."""
        return recipe

    try:
        yield
    finally:
        RECIPES._components.pop("trial")


@dataclass
class Quiet:
    """Keeps the remarks."""

    notes: list[str] = field(default_factory=list)
    brake: Brake | None = None

    def begin(self, made: Any, budget: Any) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)

    def watching(self, counts: Any, ledger: Any) -> Any:
        return contextlib.nullcontext()

    def interruptible(self, brake: Brake) -> Any:
        self.brake = brake
        return contextlib.nullcontext()


@cache
def _usual() -> ConstructionConfig:
    with trial(Recipe(lambda: (), ())):
        words = ["recipe=trial", "out=nowhere", "tracking=none", "sandbox.allow_weak=true"]
        return compose_construction([*words, "construct.roles.poet.name=x"])[0]


def _poet() -> ModelConfig:
    recipe = _usual().recipe
    assert isinstance(recipe, TrialConfig) and recipe.roles.poet is not None
    return recipe.roles.poet


def config_of(out: Path, server: OpenAIServer | None, options: Mapping[str, Any], **top: Any) -> ConstructionConfig:
    """The config of a trial, without composing: `options` are the recipe's, `top` the others."""
    poet = None
    if server is not None:
        usual = _poet()
        changed = {"base_url": server.base_url, "name": "x", "api_key_env": None, "cache": False, "max_concurrency": 4}
        poet = usual.model_copy(update={**changed, **options.get("poet", {})})
    own = {name: value for name, value in options.items() if name != "poet"}
    recipe = TrialConfig(roles=TrialRoles(poet=poet), **own)
    return _usual().model_copy(update={"recipe": recipe, "out": str(out), **top})


def run(
    out: Path,
    stages: Sequence[Stage],
    items: Sequence[Item],
    server: OpenAIServer | None = None,
    *,
    watcher: Quiet | None = None,
    recipe: Mapping[str, Any] | None = None,
    top: Mapping[str, Any] | None = None,
    **options: Any,
) -> Outcome:
    """Run a trial; `recipe` are further fields of the recipe, `top` keys beside it, `options` the recipe's keys."""
    roles = ("poet",) if server is not None else ()
    made = Recipe(**{"seeds": lambda: items, "stages": stages, "roles": roles, **(recipe or {})})
    config = config_of(out, server, options, **(top or {}))
    with trial(made):
        return construct(config, {}, watcher or Quiet(), ["codechat"])


def seeds(number: int) -> list[Item]:
    return [Item(f"s{index}", {"number": index}) for index in range(number)]


def written(folder: Path) -> dict[str, bytes]:
    """What the same seeds and replies must make the same."""
    names = ("items.jsonl", "dropped.jsonl", "questions.jsonl", "yield.json", "card.md")
    return {name: (folder / name).read_bytes() for name in names}
