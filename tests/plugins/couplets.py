"""A toy recipe of three stages: a line is written on a subject, people may be asked, and its last word is tested."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, SerializeAsAny

from codechat.base.config import original_option
from codechat.base.errors import UserError
from codechat.judging.deciding import Form
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

ASKED = "Write one line about {subject}, as JSON with the keys line and about."


class Subject(BaseModel):
    id: str
    subject: str


class Line(BaseModel):
    line: str
    about: str


class CoupletRoles(RecipeRoles):
    poet: SerializeAsAny[ModelConfig] = role("openai", "writes lines")


class CoupletsConfig(RecipeConfig):
    kind: Literal["couplets"] = original_option("couplets", "which recipe")
    roles: CoupletRoles = original_option(..., "who writes")


@RECIPES.register("couplets", CoupletsConfig)
def couplets(config: CoupletsConfig) -> Recipe:
    """Lines about subjects, for tests."""

    def seeds() -> Iterator[Item]:
        if config.seeds is None:
            raise UserError("recipe=couplets needs seeds", "seeds=FILE, JSONL of id and subject")
        for _, row in read_rows(Path(config.seeds), Subject, "seeds"):
            yield Item(row.id, {"subject": row.subject})

    stages = (Stage("write", write), Stage("review", review), Stage("measure", measure))
    return Recipe(
        seeds, stages, roles=("poet",), schemas=(Line,),
        distributions=lengths,
        asks=lambda item: [Ask("poet", 0, len(ASKED) + len(item.data["subject"]), 60)],
    )  # fmt: skip


def lengths(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    counts = Counter(str(len(row["line"].split())) for row in rows)
    return {"words": dict(sorted(counts.items()))}


async def write(item: Item, kit: Kit) -> Outcome:
    form = Form(ASKED.format(subject=item.data["subject"]), Line, "That was no JSON: {{problem}}. Again, please.")
    filled = await kit.fill_in("poet", form)
    if filled.value is None:
        return Dropped("unreadable", filled.problem)
    if filled.value.about != item.data["subject"]:
        return Dropped("off the subject", filled.value.about)
    return Kept(item.having(line=filled.value.line))


async def review(item: Item, kit: Kit) -> Outcome:
    if "doubtful" not in item.data["line"]:
        return Kept(item)
    better = kit.people(f"Is this a line? {item.data['line']}", item.data["line"].replace("doubtful", "certain"))
    return Kept(item if better is None else item.having(line=better))


async def measure(item: Item, kit: Kit) -> Outcome:
    await kit.ask("poet", f"How many words has {item.data['line']}?")
    return Kept(item) if len(item.data["line"].split()) > 2 else Dropped("too short")
