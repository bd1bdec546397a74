"""Stages concepts and write: a snippet's concepts, and a task that is asked for a drawn constraint (III-B, 1 to 3)."""

import inspect
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from codechat.judging.deciding import Form, quote
from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome
from codechat.studies.multicodeif.construct.demands import names_language, unsaid
from codechat.studies.multicodeif.construct.pools import Pool
from codechat.studies.multicodeif.construct.prompts import ConstraintsPrompts
from codechat.studies.multicodeif.construct.task import Demanded, Made

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
MALFORMED = "malformed"
NOT_STATED = "not stated"
POOL_SHOWN = 20
"""Values of a pool that the author sees."""


class Concepts(BaseModel):
    """The author's answer on a snippet."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    concepts: list[Text] = Field(min_length=1, max_length=8)


class Written(BaseModel):
    """The author's answer: a task, and the answer that says its constraint."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    prompt: Text
    answer: Text


class Author:
    """Asks the author, by the six parts of Figure 4, and checks what it wrote."""

    def __init__(self, prompts: ConstraintsPrompts, pools: dict[str, Pool]) -> None:
        self._prompts, self._pools = prompts, pools

    async def concepts(self, item: Item, kit: Kit) -> Outcome:
        """The concepts of the item's snippet."""
        snippet = Made.of(item).snippet
        own = {"language": snippet["language"]}
        form = Form(quote(self._prompts.concepts, own, code=snippet["code"]), Concepts, self._prompts.reask)
        found = await kit.fill_in("author", form)
        return Kept(item.having(concepts=found.value.concepts)) if found.value else Dropped(MALFORMED, found.problem)

    async def write(self, item: Item, kit: Kit) -> Outcome:
        """A task with the drawn constraint alone."""
        made = Made.of(item)
        drawn = made.drawn or {}
        wanted = Demanded(**drawn, answer="")
        found = await self._ask(self._prompts.write, made, wanted, kit)
        if isinstance(found, Dropped):
            return found
        asked = self.read(found, wanted)
        if isinstance(asked, Dropped):
            return asked
        whole = replace(made, prompt=found.prompt, demanded=(asked,), chain=item.id)
        return unstated(whole) or Kept(item.having(**whole.data()).noting(snippet=_origin(made)))

    async def expand(self, made: Made, wanted: Demanded, kit: Kit) -> Written | Dropped:
        """What the author makes of a task by a wanted constraint more."""
        earlier = "\n".join(f"- {each.words}" for each in made.demanded)
        return await self._ask(self._prompts.expand, made, wanted, kit, base=made.prompt, earlier=earlier)

    async def _ask(self, template: str, made: Made, wanted: Demanded, kit: Kit, **more: str) -> Written | Dropped:
        """What the author writes for a wanted constraint; `more` are further parts of the prompt."""
        pool = self._pools[wanted.type]
        values = [value for value, _ in pool.pairs({wanted.language})]
        form = pool.answer or "{value}"
        own = {
            "language": wanted.language,
            "description": pool.description,
            "range": pool.range,
            "pool": "\n".join(f"- {value}" for value in values[:POOL_SHOWN]),
            "example": f"prompt: {pool.example.prompt}\nanswer: {pool.example.answer}",
            "validation": _validation(pool),
            "constraint": wanted.value,
            "answer": form.replace("{language}", wanted.language).replace("{value}", wanted.value),
        }
        parts = {"code": made.snippet["code"], "concepts": "\n".join(f"- {each}" for each in made.concepts) or "(none)"}
        prompt = quote(template, own, **parts, **more)
        found = await kit.fill_in("author", Form(prompt, Written, self._prompts.reask))
        return found.value or Dropped(MALFORMED, found.problem)

    def read(self, written: Written, wanted: Demanded) -> Demanded | Dropped:
        """The constraint that was written, if it is the wanted one."""
        pool = self._pools[wanted.type]
        try:
            found = pool.kind.read(written.answer)
            holds = pool.holds(written.answer, wanted.value, wanted.language)
        except ValueError as error:
            return Dropped("unreadable answer", str(error))
        if found.language and found.language != wanted.language:
            return Dropped("other language", f"{found.language}, and {wanted.language} was drawn")
        if not holds:
            return Dropped("other value", f"'{written.answer:.80}', and '{wanted.value}' was drawn")
        if pool.answer is None:
            return replace(wanted, answer=wanted.value)
        if pool.answer == "{value}":
            return replace(wanted, answer=written.answer)
        function = found.values[0] if "{function}" in pool.answer else ""
        return replace(wanted, answer=pool.answer_to(wanted.value, wanted.language, function))


def unstated(made: Made) -> Dropped | None:
    """Why a prompt does not state what it demands: its own constraint, its language, or an earlier constraint."""
    language = made.language
    if not names_language(made.prompt, language):
        return Dropped(NOT_STATED, f"the prompt does not name the language {language}")
    if lacking := unsaid(made.own.constraint, made.prompt, made.own.value):
        return Dropped(NOT_STATED, f"of {made.own.type} the prompt does not say {', '.join(lacking)}")
    for each in made.demanded[:-1]:
        if lacking := unsaid(each.constraint, made.prompt, each.value):
            return Dropped("earlier constraint lost", f"of {each.type} the prompt does not say {', '.join(lacking)}")
    return None


def _origin(made: Made) -> dict[str, str]:
    """Where the snippet comes from."""
    return {name: made.snippet[name] for name in ("id", "language", "origin", "licence")}


def _validation(pool: Pool) -> str:
    """How code is checked: the rule itself, or who decides."""
    rule = pool.kind.guarded
    if rule is None:
        return f"A {pool.kind.by} decides whether code keeps it."
    return inspect.getsource(getattr(rule, "func", rule)).strip()
