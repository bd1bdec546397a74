"""A construction before it runs: the recipe with its items, its identity, and the check of its folder."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, PydanticUserError

from codechat.base.errors import UserError, nearest
from codechat.base.files import content_hash, from_yaml
from codechat.base.texts import problem_of_name, writable
from codechat.models import ModelConfig
from codechat.models.endpoints import address_of
from codechat.models.roles import models_in, role_of
from codechat.report.tracking.address import without_password
from codechat.run.cell import as_yaml, is_unused
from codechat.run.construct.interface import Item, read_rows
from codechat.run.construct.recipe import RECIPES, ConstructionConfig, Recipe, Stage
from codechat.run.journal import Journal

SETTINGS, YIELD, ANSWERS = "config.yaml", "yield.json", "answers.jsonl"
MADE = "made"
"""The key of config.yaml that identifies the construction of a folder."""
STAGE = "stage"
"""The key, in an item's provenance, of the stage after which it was written."""


class ItemRow(BaseModel):
    """A line of `from=FILE`, as `until=STAGE` leaves it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    data: dict[str, Any]
    provenance: dict[str, Any] = {}


@dataclass(frozen=True)
class Construction:
    """A config with its recipe, its items, and their stages. `id` is a hash of all that can change the result."""

    config: ConstructionConfig
    choices: Mapping[str, str]
    recipe: Recipe
    items: tuple[Item, ...]
    stages: tuple[Stage, ...]
    id: str

    @property
    def name(self) -> str:
        return self.config.recipe.kind

    @property
    def folder(self) -> Path:
        return Path(self.config.out)

    @cached_property
    def places(self) -> Mapping[str, ModelConfig]:
        """The models of the roles that are asked, by their place in the config."""
        models = models_in(self.config.recipe, RECIPES.group)
        return {place: model for place, model in models if role_of(place) in self.recipe.roles}

    @cached_property
    def roles(self) -> Mapping[str, ModelConfig]:
        return {role_of(place): model for place, model in self.places.items()}

    @cached_property
    def endpoints(self) -> Mapping[str, ModelConfig]:
        """The models behind endpoints, by place."""
        return {place: model for place, model in self.places.items() if address_of(model) is not None}

    @cached_property
    def parts(self) -> Sequence[Sequence[Stage]]:
        """The stages in parts: rows of stages of single items, and each stage that takes all items together."""
        parts: list[list[Stage]] = []
        for stage in self.stages:
            if not parts or stage.together or parts[-1][0].together:
                parts.append([])
            parts[-1].append(stage)
        return parts

    @property
    def is_partial(self) -> bool:
        """Whether `until` stops before the last stage, so that items are written to continue from."""
        return bool(self.stages) and self.stages[-1] is not _stages_of(self.recipe, self.config.recipe.skip)[-1]

    @cached_property
    def prompts(self) -> Mapping[str, str]:
        prompts = getattr(self.config.recipe, "prompts", None)
        texts = prompts.model_dump() if isinstance(prompts, BaseModel) else prompts or {}
        return {name: content_hash(text)[:16] for name, text in sorted(texts.items())}

    def unit(self, *parts: Any) -> str:
        """The key in the journal of an item in a part of the stages, or of another piece of work."""
        return content_hash([self.id, *parts])[:16]

    def settings(self) -> str:
        """The content of config.yaml, without secrets."""
        return without_password(as_yaml({**self.config.values(), "choices": dict(self.choices), MADE: self.made}))

    @cached_property
    def made(self) -> dict[str, str]:
        """The entries of config.yaml that distinguish this construction from another in the same folder."""
        seeds = content_hash([[item.id, item.data, item.provenance] for item in self.items])
        return {"recipe": self.name, "seeds": seeds[:16], "id": self.id[:16]}

    def refuse_other(self) -> None:
        """Raise `UserError` if the folder holds anything else than this construction."""
        if is_unused(self.folder, SETTINGS, ANSWERS):
            return
        remedy = "choose another out=DIR"
        try:
            values = from_yaml((self.folder / SETTINGS).read_text(encoding="utf-8"))
            made: dict[str, str] = values[MADE]
            recipe, seeds, identity = made["recipe"], made["seeds"], made["id"]
        except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError):
            raise UserError(f"{self.folder} holds something else than a construction", remedy) from None
        if not (self.folder / YIELD).exists() and self._nothing_paid():
            return  # e.g. after a wrong address: the journal's steps fit only the settings that they were made with
        if recipe != self.name:
            raise UserError(f"{self.folder} was made by recipe={recipe}, not by recipe={self.name}", remedy)
        if seeds != self.made["seeds"]:
            raise UserError(f"{self.folder} was made from other seeds", f"{remedy}, or give the same seeds")
        if identity != self.made["id"]:
            now = self.config.values()
            changed = [key for key in _counting(self.config) if now.get(key) != values.get(key)]
            problem = f"{self.folder} was made with other settings: {', '.join(changed) or 'another version'}"
            raise UserError(problem, f"{remedy}, or set them as in {self.folder / SETTINGS}")

    def _nothing_paid(self) -> bool:
        path = self.folder / "journal.db"
        if not path.exists():
            return True
        with contextlib.closing(Journal(path)) as journal:
            return not journal.ledger.of


def _counting(config: ConstructionConfig) -> dict[str, Any]:
    """The options that can change a result, including roles that are not asked and a sandbox that is not used."""
    return {"construct": config.recipe.identity(), "sandbox": config.sandbox.identity(), "seed": config.seed}


def construction_of(config: ConstructionConfig, choices: Mapping[str, str]) -> Construction:
    """Build the recipe, read its seeds, and check all that can be checked before a call. Raises `UserError`."""
    options = config.recipe
    recipe = RECIPES.build(options)
    stages = _stages_of(recipe, options.skip)
    if options.until is not None:
        names = [stage.name for stage in stages]
        if options.until not in names:
            raise UserError(f"there is no stage until={options.until}", nearest(options.until, names))
        stages = stages[: names.index(options.until) + 1]
    _check_schemas(recipe)
    models = dict(models_in(options, RECIPES.group))
    roles = set(map(role_of, models))
    for place in (f"{RECIPES.group}.roles.{role}" for role in recipe.roles if role not in roles):
        raise UserError(f"the role {place} has no model", f"model@{place}=NAME")
    if options.rows is not None:
        items, stages = _read_items(Path(options.rows), stages)
    else:
        items = tuple(recipe.seeds())
    if not items:
        raise UserError(f"recipe={options.kind} found no seeds", "give others")
    _check_ids(items)
    for stage in () if config.dry_run else stages:
        if stage.check is not None:
            stage.check(items)
    asked = {place: model.identity() for place, model in models.items() if role_of(place) in recipe.roles}
    identity = {**_counting(config), "construct": {**options.identity(), "roles": asked}}
    if not recipe.sandbox:
        del identity["sandbox"]
    seeds = [[item.id, item.data, item.provenance] for item in items]
    return Construction(config, choices, recipe, items, stages, content_hash([identity, seeds]))


def _stages_of(recipe: Recipe, skip: Sequence[str]) -> tuple[Stage, ...]:
    """The stages that are not skipped. Raises `UserError` for an unknown part."""
    names = [*(stage.name for stage in recipe.stages), *recipe.optional]
    for name in skip:
        if name not in names:
            raise UserError(f"there is no part skip=[{name}]", nearest(name, names))
    return tuple(stage for stage in recipe.stages if stage.name not in skip)


def _check_schemas(recipe: Recipe) -> None:
    """Raise `UserError` for a schema that no reply could be read with."""
    for schema in recipe.schemas:
        try:
            schema.model_json_schema()
        except (PydanticUserError, NameError, AttributeError, TypeError) as error:
            problem = f"the schema {getattr(schema, '__name__', repr(schema))} cannot be read"
            raise UserError(f"{problem}: {str(error).splitlines()[0]}", "mend the recipe's model of replies") from error


def _read_items(path: Path, stages: Sequence[Stage]) -> tuple[tuple[Item, ...], tuple[Stage, ...]]:
    """The items of `from=FILE`, and the stages that are left for them. Raises `UserError`."""
    rows = [row for _, row in read_rows(path, ItemRow, "from", "give what until=STAGE left in items.jsonl")]
    names, reached = [stage.name for stage in stages], {str(row.provenance.get(STAGE, "")) for row in rows}
    if len(reached) > 1:
        several = ", ".join(sorted(reached))
        raise UserError(f"the items of {path} come from several stages: {several}", "give them apart")
    last = next(iter(reached), "")
    if last and last not in names:
        raise UserError(f"the items of {path} come from the stage '{last}'", nearest(last, names))
    left = tuple(stages[names.index(last) + 1 :] if last else stages)
    if not left:
        raise UserError(f"no stage is left for the items of {path}", f"they have passed '{last}' already")
    for row in rows:
        row.provenance.pop(STAGE, None)
        row.provenance.pop("seal", None)  # of earlier versions
    return tuple(Item(row.id, row.data, row.provenance) for row in rows), left


def _check_ids(items: Sequence[Item]) -> None:
    seen = set[str]()
    for item in items:
        if problem := problem_of_name(item.id):
            raise UserError(f"the seed '{item.id[:60]}' cannot be used: its id {problem}", "give it another id")
        if item.id in seen:
            raise UserError(f"two seeds have the id '{item.id}'", "give each its own")
        if writable(item.data) is not item.data:
            raise UserError(f"the seed '{item.id}' has half of a surrogate pair, which no file can hold", "mend it")
        seen.add(item.id)
