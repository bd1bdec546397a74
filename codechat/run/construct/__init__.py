"""Construction: how tasks are made. A study brings a recipe; the engine takes its items through the stages."""

from codechat.run.construct.interface import Dropped, Item, Kept, Outcome, Spread, Waits, read_rows
from codechat.run.construct.kit import Kit
from codechat.run.construct.recipe import RECIPES, Distributions, Funnel, Recipe, RecipeConfig, RecipeRoles, Stage

__all__ = [
    "RECIPES", "Distributions", "Dropped", "Funnel", "Item", "Kept", "Kit", "Outcome", "Recipe", "RecipeConfig",
    "RecipeRoles", "Spread", "Stage", "Waits", "read_rows",
]  # fmt: skip
