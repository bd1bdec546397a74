"""Stages concepts, draw, write, expand and witness: what models do for one task (MultiCodeIF, III-B and III-C)."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo, field_validator

from codechat.base.config import Config, original_option
from codechat.base.domain import Program, Target
from codechat.base.errors import ContextOverflow
from codechat.base.template import require
from codechat.judging.deciding import VERDICT, Form, Question, quote, reask
from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome, Spread
from codechat.sandbox.languages import extract, language_of
from codechat.sandbox.languages.grammar import Parsed
from codechat.studies.multicodeif.checking import examine, parse
from codechat.studies.multicodeif.constraints import Constraint, Finding, constraint_type
from codechat.studies.multicodeif.constraints.examining import Examination
from codechat.studies.multicodeif.construct.sources import Pool
from codechat.studies.multicodeif.construct.task import Demanded, Made, names_language, relation, unsaid
from codechat.studies.multicodeif.versions import finding_of, suite_of

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
MALFORMED, NOT_STATED = "malformed", "not stated"
KEPT, BROKEN = "KEPT", "BROKEN"
NOT_PASSABLE, ACCEPTS, UNDECIDED = "not passable", "accepts everything", "undecided"
POOL_SHOWN = 20
"""The values of a pool that the author sees."""


_WRITTEN = (
    *("code", "concepts", "example", "constraint", "validation", "pool"),
    *("language", "description", "range", "answer"),
)
_FIELDS: dict[str, tuple[str, ...]] = {
    "concepts": ("code",),
    "write": _WRITTEN,
    "expand": (*_WRITTEN, "base", "earlier"),
    "solve": ("task", "constraints", "language"),
    "again": ("attempt", "feedback"),
    "without": ("task", "constraint", "language"),
    "judge": ("task", "constraint", "code"),
    "rejudge": ("verdicts",),
    "reask": ("problem",),
}


class ConstraintsPrompts(Config):
    """The prompts; `{{name}}` is filled in. The mark `{{boundary}}` and `{{language}}` may stand in any."""

    concepts: str = original_option(..., "asks for the concepts of {{code}}")
    write: str = original_option(..., "asks for a task with one constraint: the six parts of Figure 4")
    expand: str = original_option(..., "asks for the task {{base}} with one constraint more than the {{earlier}} ones")
    solve: str = original_option(..., "asks for a program that does the {{task}} and keeps its {{constraints}}")
    again: str = original_option(..., "follows it after a failed {{attempt}} with {{feedback}}")
    without: str = original_option(..., "asks for a program that does the {{task}} and breaks the {{constraint}}")
    judge: str = original_option(..., "asks whether {{code}}, written for {{task}}, keeps {{constraint}}")
    rejudge: str = original_option(..., "follows an unreadable verdict; fills {{verdicts}}")
    reask: str = original_option(..., "follows an answer in another form; fills {{problem}}")

    @field_validator("*")
    @classmethod
    def _has_its_fields(cls, text: str, info: ValidationInfo) -> str:
        may = () if info.field_name in ("reask", "rejudge") else ("language", "boundary")
        return require(text, *_FIELDS[info.field_name or ""], may=may)


class Draw:
    """Stage draw: a task's value and language, even over the values of the type's pool."""

    def __init__(self, pools: Mapping[str, Pool]) -> None:
        self._pools = pools

    async def work(self, item: Item, kit: Kit) -> Outcome:
        """The n-th task of a type: by (seed, type, n). Each round has every value once, in its own order."""
        made = Made.of(item)
        fitting: dict[str, list[str]] = {}
        for value, language in self._pools[made.type].pairs():
            fitting.setdefault(value, []).append(language)
        round_, place = divmod(made.number, len(fitting))
        values = sorted(fitting)
        kit.generator(f"draw/{round_}", of=made.type).shuffle(values)
        language = kit.generator(f"draw/{made.number}", of=made.type).choice(fitting[values[place]])
        return Kept(item.having(drawn={"type": made.type, "value": values[place], "language": language}))

    def further(self, made: Made, types: Sequence[str], kit: Kit) -> Demanded | None:
        """A constraint for the next level, in the chain's language, that neither repeats nor contradicts an earlier
        one; None if no pool of the types has one left."""
        language, earlier = made.language, made.constraints
        of_functions = (each for each in earlier if "{function}" in (self._pools[each.type].answer or ""))
        function = next((each.answer.values[0] for each in of_functions), "solve")
        free: dict[str, list[Demanded]] = {}
        for name in types:
            pool = self._pools[name]
            for value, _ in pool.pairs({language}):
                answer = pool.answer_to(value, language, function)
                if relation(Constraint.of(name, answer), earlier) is None:
                    free.setdefault(name, []).append(Demanded(name, value, language, answer))
        generator = kit.generator(f"expand/{made.level + 1}")
        return generator.choice(free[generator.choice(sorted(free))]) if free else None


class Concepts(BaseModel):
    """The author's answer on a snippet."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    concepts: list[Text] = Field(min_length=1, max_length=8)


class Written(BaseModel):
    """The author's answer: a task, and the answer that its constraint has."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    prompt: Text
    answer: Text


class Author:
    """Stages concepts and write: asks the author, by the six parts of Figure 4, and checks the result."""

    def __init__(self, prompts: ConstraintsPrompts, pools: dict[str, Pool]) -> None:
        self._prompts, self._pools = prompts, pools

    async def concepts(self, item: Item, kit: Kit) -> Outcome:
        """The concepts of the item's snippet."""
        snippet = Made.of(item).snippet
        prompt = quote(self._prompts.concepts, {"language": snippet["language"]}, code=snippet["code"])
        found = await kit.fill_in("author", Form(prompt, Concepts, self._prompts.reask))
        return Kept(item.having(concepts=found.value.concepts)) if found.value else Dropped(MALFORMED, found.problem)

    async def write(self, item: Item, kit: Kit) -> Outcome:
        """A task with the drawn constraint alone."""
        made = Made.of(item)
        wanted = Demanded(**(made.drawn or {}), answer="")
        written = await self._ask(self._prompts.write, made, wanted, kit)
        if isinstance(written, Dropped):
            return written
        asked = self.read(written, wanted)
        if isinstance(asked, Dropped):
            return asked
        task = replace(made, prompt=written.prompt, demanded=(asked,), chain=item.id)
        origin = {name: made.snippet[name] for name in ("id", "language", "origin", "licence")}
        return unstated(task) or Kept(item.having(**task.data()).noting(snippet=origin))

    async def expand(self, made: Made, wanted: Demanded, kit: Kit) -> Written | Dropped:
        """What the author makes of a task with one more constraint."""
        earlier = "\n".join(f"- {each.words}" for each in made.demanded)
        return await self._ask(self._prompts.expand, made, wanted, kit, base=made.prompt, earlier=earlier)

    async def _ask(self, template: str, made: Made, wanted: Demanded, kit: Kit, **more: str) -> Written | Dropped:
        """What the author writes for a wanted constraint; `more` are further parts of the prompt."""
        pool = self._pools[wanted.type]
        rule = pool.kind.guarded
        by_rule = inspect.getsource(getattr(rule, "func", rule)).strip() if rule else ""
        own = {
            "language": wanted.language,
            "description": pool.description,
            "range": pool.range,
            "pool": "\n".join(f"- {value}" for value, _ in [*pool.pairs({wanted.language})][:POOL_SHOWN]),
            "example": f"prompt: {pool.example.prompt}\nanswer: {pool.example.answer}",
            "validation": by_rule or f"A {pool.kind.by} decides whether code keeps it.",
            "constraint": wanted.value,
            "answer": (pool.answer or "{value}")
            .replace("{language}", wanted.language)
            .replace("{value}", wanted.value),
        }
        parts = {"code": made.snippet["code"], "concepts": "\n".join(f"- {each}" for each in made.concepts) or "(none)"}
        form = Form(quote(template, own, **parts, **more), Written, self._prompts.reask)
        found = await kit.fill_in("author", form)
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
    """Why a prompt does not state what it demands: its own constraint, the language, or an earlier constraint."""
    if not names_language(made.prompt, made.language):
        return Dropped(NOT_STATED, f"the prompt does not name the language {made.language}")
    for each in (made.own, *made.demanded[:-1]):
        if lacking := unsaid(each.constraint, made.prompt, each.value):
            reason = NOT_STATED if each is made.own else "earlier constraint lost"
            return Dropped(reason, f"of {each.type} the prompt does not say {', '.join(lacking)}")
    return None


class Expand:
    """Stage expand: chains of `levels` levels, of tasks and with constraints of the `types`, which have pools."""

    def __init__(self, author: Author, draw: Draw, types: Sequence[str], levels: int) -> None:
        self._author, self._draw, self._types, self._levels = author, draw, types, levels

    async def work(self, item: Item, kit: Kit) -> Outcome:
        """Each level of the task as an item; an unsound level is dropped, and the chain ends before it."""
        made = Made.of(item)
        if self._levels == 1 or made.type not in self._types:
            return Kept(item)
        levels, lost = [made], list[tuple[Item, Dropped]]()
        while made.level < self._levels and not lost:
            wanted = self._draw.further(made, self._types, kit)
            if wanted is None:
                break
            drawn = {"type": wanted.type, "value": wanted.value, "language": wanted.language}
            draft = replace(made, level=made.level + 1, previous=f"{made.chain}/L{made.level}", drawn=drawn)
            draft, fault = await self._next(made, draft, wanted, kit)
            if fault:
                lost.append((_level(item, draft), fault))
            else:
                made = draft
                levels.append(made)
        return Spread([_level(item, each) for each in levels], lost)

    async def _next(self, made: Made, draft: Made, wanted: Demanded, kit: Kit) -> tuple[Made, Dropped | None]:
        """The next level, possibly incomplete, and the reason if it is not usable."""
        written = await self._author.expand(made, wanted, kit)
        if isinstance(written, Dropped):
            return draft, written
        draft = replace(draft, prompt=written.prompt)
        asked = _related(made, written, wanted) or self._author.read(written, wanted)
        if isinstance(asked, Dropped):
            return draft, asked
        draft = replace(draft, demanded=(*made.demanded, asked))
        return draft, unstated(draft)


def _related(made: Made, written: Written, wanted: Demanded) -> Dropped | None:
    """How the written answer repeats or contradicts an earlier one, in the chain's own language."""
    try:
        new = Constraint.of(wanted.type, written.answer)
    except ValueError:
        return None
    found = relation(new, made.constraints) if new.answer.language in ("", made.language) else None
    return Dropped(found[0], f"'{written.answer:.80}' after '{found[1].answer.raw:.80}'") if found else None


def _level(item: Item, made: Made) -> Item:
    return replace(item, data=made.data(), id=f"{item.id}/L{made.level}")


class Witness:
    """Stage witness: a program that keeps every constraint, and a refused one: a task needs both.

    Asks the solver for at most `tries` programs each, and checks them with the guarded validators. A code that the
    language's grammar refuses shows nothing: a validator accepts or refuses it for what no program can be.
    """

    def __init__(self, prompts: ConstraintsPrompts, tries: int) -> None:
        self._prompts, self._tries = prompts, tries

    async def work(self, item: Item, kit: Kit) -> Outcome:
        """The task with its witness."""
        made = Made.of(item)
        code = await self._solved(made, kit)
        if isinstance(code, Dropped):
            return code
        return await self._unrefused(made, kit) or Kept(item.having(witness=code))

    async def _solved(self, made: Made, kit: Kit) -> str | Dropped:
        """A program that keeps all constraints. The next try sees the last one, and the findings on it."""
        constraints = "\n".join(f"- {each.words}" for each in made.demanded)
        own, parts = {"language": made.language}, {"task": made.prompt, "constraints": constraints}
        prompt, feedback, reason = quote(self._prompts.solve, own, **parts), "no code was written", NOT_PASSABLE
        for draw in range(self._tries):
            code = await self._code(prompt, kit, draw, made.language)
            if code and (refused := await self._refused(made, code, kit)):
                reason, feedback = (UNDECIDED if refused.met is None else NOT_PASSABLE), f"- {refused.reason}"
            elif code:
                findings = await self._findings(made, made.demanded, code, kit)
                unmet = [(each, found) for each, found in zip(made.demanded, findings, strict=True) if not found.met]
                if not unmet:
                    return code
                reason = NOT_PASSABLE if any(found.met is False for _, found in unmet) else UNDECIDED
                feedback = "\n".join(
                    f"- {each.words} {'Undecided' if found.met is None else 'Not kept'}: {found.reason}"
                    for each, found in unmet
                )
            template = f"{self._prompts.solve}\n\n{self._prompts.again}"
            prompt = quote(template, own, **parts, attempt=code or "(no code)", feedback=feedback)
        return Dropped(reason, f"no witness in {self._tries} tries; at last: {feedback}")

    async def _unrefused(self, made: Made, kit: Kit) -> Dropped | None:
        """Why no program without the level's own constraint is refused; None if one is."""
        own, parts = {"language": made.language}, {"task": made.prompt, "constraint": made.own.words}
        by_text = constraint_type(made.own.type).by == "classifier"  # a program of another language breaks it
        prompt, said, reason = quote(self._prompts.without, own, **parts), "no code was written", ACCEPTS
        for draw in range(self._tries):
            if code := await self._code(prompt, kit, draw, "" if by_text else made.language):
                finding = None if by_text else await self._refused(made, code, kit)
                if finding is None:
                    (finding,) = await self._findings(made, [made.own], code, kit)
                    if finding.met is False:
                        return None
                said, reason = finding.reason, UNDECIDED if finding.met is None else ACCEPTS
        return Dropped(reason, f"no program without it is refused; the last: {said}")

    async def _code(self, prompt: str, kit: Kit, draw: int, language: str) -> str | None:
        """The code of a reply; in any language if none is given."""
        try:
            reply = await kit.ask("solver", prompt, draw=draw)
        except ContextOverflow:
            return None
        return extract(reply.text, Target(language)).code

    async def _refused(self, made: Made, code: str, kit: Kit) -> Finding | None:
        """That the grammar of the task's language does not read a code; None if it does, or if there is no grammar."""
        if not isinstance(language_of(made.language), Parsed):
            return None
        found = await parse(kit, made.language, code)
        reason = found.reason or f"The code is no program in {made.language}: its grammar refuses it."
        return None if found.met else Finding(found.met, reason)

    async def _findings(self, made: Made, demanded: Sequence[Demanded], code: str, kit: Kit) -> list[Finding]:
        """The findings of the guarded validators on a code. A judge sees no reference."""
        inquiries = [Examination(each.constraint, code, "guarded") for each in demanded]
        findings = await examine(kit, kit.stage, inquiries)
        for place, each in enumerate(demanded):
            by = constraint_type(each.type).by
            if by == "judge":
                findings[place] = await self._judged(made, each, code, kit)
            elif by == "compiler":
                suite = suite_of(each.constraint, "guarded")
                findings[place] = finding_of(await kit.check(Program(code, Target(made.language)), suite))
        return findings

    async def _judged(self, made: Made, demanded: Demanded, code: str, kit: Kit) -> Finding:
        prompt = quote(self._prompts.judge, task=made.prompt, constraint=demanded.words, code=code)
        answers = {VERDICT: (KEPT, BROKEN)}
        said = await kit.decide("judge", Question("constraint", prompt, answers, reask(self._prompts.rejudge, answers)))
        return Finding(None if said.verdict is None else said.verdict == KEPT, said.reason)
