"""Rewordings of statements, for `dataset.twin=reworded`: a model puts a statement in other words, and another one says
whether the meaning stayed. The reference decides nothing, so that a wrong rewording cannot be repaired into the answer.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, ValidationInfo, field_validator

from codechat.base.config import Config, original_option
from codechat.base.errors import UserError
from codechat.base.template import require
from codechat.datasets.twins import lost_by
from codechat.judging.deciding import VERDICT, Form, Question, quote, reask, whole_of
from codechat.models import ModelConfig
from codechat.models.roles import role
from codechat.run.construct import (
    RECIPES,
    Dropped,
    Item,
    Kept,
    Kit,
    Outcome,
    Recipe,
    RecipeConfig,
    RecipeRoles,
    Stage,
    read_rows,
)
from codechat.run.protocols import Ask

ROW = "a line is one JSON object with task_id, prompt and entry_point, as in a dataset's file"
_FIELDS: dict[str, tuple[str, ...]] = {
    "reword": ("statement",),
    "compare": ("original", "rewording"),
    "reask": ("problem",),
    "reask_words": ("verdicts",),
}


class RewordingsRoles(RecipeRoles):
    """The models; the checker should be another than the writer."""

    writer: SerializeAsAny[ModelConfig] = role("gpt5", "model that puts a statement in other words")
    checker: SerializeAsAny[ModelConfig] = role("deepseek_v31", "model that says whether the meaning stayed")


class RewordingsPrompts(Config):
    """The prompts, with fields `{{name}}`. Any may have the mark `{{boundary}}`."""

    reword: str = original_option(..., "asks for other words; fills {{statement}}")
    compare: str = original_option(..., "asks if {{original}} and {{rewording}} mean the same")
    reask: str = original_option(..., "follows a rewording that cannot be used; fills {{problem}}")
    reask_words: str = original_option(..., "follows an unreadable verdict; fills {{verdicts}}")

    @field_validator("*")
    @classmethod
    def _has_its_fields(cls, text: str, info: ValidationInfo) -> str:
        return require(text, *_FIELDS[info.field_name or ""], may=("boundary",))


class RewordingsConfig(RecipeConfig):
    kind: Literal["rewordings"] = original_option("rewordings", "which recipe")
    roles: RewordingsRoles = original_option(..., "who writes and who compares")
    prompts: RewordingsPrompts = original_option(..., "each as a text or @FILE")


class SeedRow(BaseModel):
    """A line of `seeds=FILE`: a task. Further fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    task_id: str = Field(min_length=1)
    prompt: str = Field(min_length=1)
    entry_point: str = ""


class Reworded(BaseModel):
    """The new statement."""

    model_config = ConfigDict(frozen=True)

    prompt: str


class Rewordings:
    """The stages."""

    def __init__(self, config: RewordingsConfig) -> None:
        self._config = config

    def seeds(self) -> Sequence[Item]:
        config = self._config
        if config.rows is not None:
            return ()
        if config.seeds is None:
            raise UserError("recipe=rewordings puts the statements of tasks in other words", f"seeds=FILE: {ROW}")
        rows = [row for _, row in read_rows(Path(config.seeds).expanduser(), SeedRow, "seeds", ROW)]
        return [Item(row.task_id, {**row.model_dump(), "original": row.prompt}) for row in rows]

    async def reword(self, item: Item, kit: Kit) -> Outcome:
        """The statement gets other words. Drops the item if no reply keeps the function and its head."""
        original, prompts = item.data["original"], self._config.prompts

        def read(answer: str) -> Reworded | str:
            text = whole_of(answer)
            if text is None:
                return "several code blocks, and one was asked for"
            new = text.strip("\n") + "\n"
            same = new.split() == original.split() and "the text is the original"
            return same or lost_by(new, original, item.data["entry_point"]) or Reworded(prompt=new)

        form = Form(quote(prompts.reword, statement=original), Reworded, prompts.reask, read=read)
        filled = await kit.fill_in("writer", form)
        if filled.value is None:
            return Dropped("no rewording", filled.problem)
        return Kept(item.having(prompt=filled.value.prompt))

    async def compare(self, item: Item, kit: Kit) -> Outcome:
        """Drops the item unless the meaning stayed."""
        prompts, answers = self._config.prompts, {VERDICT: ("YES", "NO")}
        prompt = quote(prompts.compare, original=item.data["original"], rewording=item.data["prompt"])
        said = await kit.decide("checker", Question("meaning", prompt, answers, reask(prompts.reask_words, answers)))
        if said.verdict == "YES":
            return Kept(item)
        return Dropped("undecided" if said.verdict is None else "meaning changed", said.reason)

    def asks(self, item: Item) -> list[Ask]:
        """The expected calls for an item."""
        length = len(item.data["original"])
        return [Ask("writer", 0, length + 900, length), Ask("checker", 0, 2 * length + 900, 400)]


@RECIPES.register("rewordings", RewordingsConfig)
def rewordings(config: RewordingsConfig) -> Recipe:
    """Statements of tasks in other words, checked by a second model, for dataset.twin=reworded."""
    made = Rewordings(config)
    return Recipe(
        seeds=made.seeds,
        stages=[Stage("reword", made.reword), Stage("compare", made.compare)],
        row=lambda item: {"task_id": item.id, "prompt": item.data["prompt"], "original": item.data["original"]},
        roles=("writer", "checker"),
        schemas=(Reworded,),
        asks=made.asks,
    )
