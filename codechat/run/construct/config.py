"""The whole configuration of a construction, validated, and the words of its command."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ConfigDict, SerializeAsAny

from codechat.base.config import Config, original_option, place_option, run_option, validate
from codechat.base.errors import UserError, nearest
from codechat.base.registry import Registry
from codechat.models import MODELS
from codechat.models.hardware import HARDWARE, HardwareConfig
from codechat.report.tracking import TRACKING
from codechat.run.construct.recipe import RECIPES, RecipeConfig
from codechat.run.settings.compose import Root, compose_values, key_of
from codechat.sandbox import SANDBOXES, SandboxConfig

GROUPS: Mapping[str, Registry[Any, Any]] = {
    registry.group: registry for registry in (RECIPES, SANDBOXES, HARDWARE, TRACKING)
}
ROOT = Root("construction", GROUPS, RECIPES.group)
TEMPERATURE = "temperature"
RENAMED = {"recipe": RECIPES.group, "from": f"{RECIPES.group}.rows"}
"""Words of the command line whose keys are called otherwise: `from` is a word of Python's own."""


class ConstructionConfig(Config):
    """One construction: a recipe, and the groups that it shares with cells.

    In words and files the recipe's options stand under `construct`, a name that pydantic has for itself.
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
    """The words, with a `+` before the model of a role that the recipe leaves without one: Hydra adds it then."""
    place = f"model@{RECIPES.group}.roles."
    if not any(word.startswith(place) for word in words):
        return [*words]
    recipe = next(_placed(word) for word in words if key_of(word) == "recipe")
    roles = compose_values([recipe], ROOT)[0][RECIPES.group].get("roles") or {}
    empty = {f"{place}{role}" for role, model in roles.items() if model is None}
    return [f"+{word}" if key_of(word) in empty and word.startswith(place) else word for word in words]


def _leave_out(roles: Any, keys: Sequence[str]) -> None:
    """Take a recipe's temperature from roles whose model has none, such as one of replies written beforehand."""
    without = {each.name for each in MODELS if TEMPERATURE not in each.config.model_fields}
    for role, model in roles.items() if isinstance(roles, Mapping) else ():  # else validation refuses them
        given = f"{RECIPES.group}.roles.{role}.{TEMPERATURE}" in keys
        if isinstance(model, dict) and model.get(MODELS.key) in without and not given:
            model.pop(TEMPERATURE, None)


def _placed(word: str) -> str:
    """A word at its place in the whole config: what is no key of that is an option of the recipe."""
    key, equals, value = word.partition("=")
    bare = key.lstrip("+~")
    top = bare.partition("@")[0].partition(".")[0]
    if key in RENAMED:
        return f"{RENAMED[key]}{equals}{value}"
    if "@" in bare or top == RECIPES.group or top in ConstructionConfig.model_fields or not equals:
        return word
    return f"{key.removesuffix(bare)}{RECIPES.group}.{bare}{equals}{value}"
