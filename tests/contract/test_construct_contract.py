"""What every registered recipe must be: stages and roles that fit its config, and a refusal before anything is paid."""

import inspect
import json
from pathlib import Path

import pytest

from codechat.base.errors import UserError
from codechat.models.roles import models_in, role_of
from codechat.run.construct import RECIPES, Recipe
from codechat.run.construct.making import construction_of
from codechat.run.construct.recipe import ROOT, ConstructionConfig, compose_construction
from codechat.run.settings.compose import compose_values

SEEDS = {
    "steps": {
        "id": "mine/1", "instruction": "Write double(x), which doubles a number.", "language": "python",
        "solution": "def double(x):\n    return 2 * x\n", "tests": ["assert double(2) == 4"], "entry_point": "double",
    },
    "issues": {"repository": "ann/shop"},
    "rewordings": {"task_id": "mine/1", "prompt": "Write double(x), which doubles a number.", "entry_point": "double"},
    "constraints": {"id": "mine/1", "code": "def double(x):\n    y = 2 * x\n    return y\n", "language": "python"},
}  # fmt: skip
"""A seed of every recipe, by its name."""


@pytest.fixture(params=[component.name for component in RECIPES])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> ConstructionConfig:
    """As it is shipped, with another model for every role, those included that may be left out."""
    roles = compose_values([f"construct={request.param}"], ROOT)[0]["construct"].get("roles") or {}
    words = [f"recipe={request.param}", f"out={tmp_path / 'out'}", "tracking=none"]
    config = compose_construction([*words, *(f"model@construct.roles.{role}=gpt5" for role in roles)])[0]
    assert {model.name for _, model in models_in(config.recipe, "construct")} <= {"gpt-5"}
    return config


@pytest.fixture
def recipe(config: ConstructionConfig, tmp_path: Path) -> Recipe:
    seeds = tmp_path / "seeds.jsonl"
    seeds.write_text(json.dumps(SEEDS[config.recipe.kind]) + "\n")
    return RECIPES.build(config.recipe.model_copy(update={"seeds": str(seeds)}))


def test_the_same_seeds_give_the_same_items_each_time(recipe: Recipe) -> None:
    first, second = [*recipe.seeds()], [*recipe.seeds()]
    assert first and first == second
    json.dumps([dict(item.data) for item in first])


def test_an_estimate_names_roles_that_are_asked(recipe: Recipe) -> None:
    assert recipe.asks is not None
    asked = [ask for item in recipe.seeds() for ask in recipe.asks(item)]
    assert asked and {ask.role for ask in asked} <= {*recipe.roles}


def test_stages_have_names_of_their_own_and_one_function(recipe: Recipe) -> None:
    names = [stage.name for stage in recipe.stages]
    assert names and len({*names, *recipe.optional}) == len(names) + len(recipe.optional)
    for stage in recipe.stages:
        (function,) = [each for each in (stage.work, stage.together) if each is not None]
        assert len(inspect.signature(function).parameters) == 2


def test_every_role_that_is_asked_is_in_the_config(config: ConstructionConfig, recipe: Recipe) -> None:
    places = {role_of(place) for place, _ in models_in(config.recipe, "construct")}
    assert recipe.roles and {*recipe.roles} <= places


def test_schemas_can_be_read(recipe: Recipe) -> None:
    for schema in recipe.schemas:
        assert schema.model_json_schema()["type"] == "object"


def test_what_it_lacks_is_told_before_anything_is_begun(config: ConstructionConfig) -> None:
    with pytest.raises(UserError) as refused:
        construction_of(config, {})
    assert refused.value.remedy
    assert not Path(config.out).exists()
