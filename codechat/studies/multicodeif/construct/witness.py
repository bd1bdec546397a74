"""Stage witness: a program that keeps every constraint, and one that is refused: without both there is no task."""

from collections.abc import Sequence

from codechat.base.domain import Program, Target
from codechat.base.errors import ContextOverflow
from codechat.judging.deciding import VERDICT, Question, quote, reask
from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome
from codechat.sandbox.languages import extract
from codechat.studies.multicodeif.constraints import Finding, constraint_type
from codechat.studies.multicodeif.constraints.examining import Examination
from codechat.studies.multicodeif.construct.prompts import ConstraintsPrompts
from codechat.studies.multicodeif.construct.task import Demanded, Made
from codechat.studies.multicodeif.verbs import examine
from codechat.studies.multicodeif.versions import finding_of, suite_of

KEPT, BROKEN = "KEPT", "BROKEN"
NOT_PASSABLE, ACCEPTS, UNDECIDED = "not passable", "accepts everything", "undecided"


class Witness:
    """Asks the solver for programs, up to so many `tries` each, and holds them to the guarded validators."""

    def __init__(self, prompts: ConstraintsPrompts, tries: int) -> None:
        self._prompts, self._tries = prompts, tries

    async def work(self, item: Item, kit: Kit) -> Outcome:
        """The task with its witness."""
        made = Made.of(item)
        found = await self._solved(made, kit)
        if isinstance(found, Dropped):
            return found
        fault = await self._unrefused(made, kit)
        return fault or Kept(item.having(witness=found))

    async def _solved(self, made: Made, kit: Kit) -> str | Dropped:
        """A program that keeps all constraints. The next try sees the last one, and what was found of it."""
        constraints = "\n".join(f"- {each.words}" for each in made.demanded)
        own, parts = {"language": made.language}, {"task": made.prompt, "constraints": constraints}
        prompt, feedback, reason = quote(self._prompts.solve, own, **parts), "no code was written", NOT_PASSABLE
        for draw in range(self._tries):
            code = await self._code(prompt, kit, draw, made.language)
            findings = await self._findings(made, made.demanded, code, kit) if code else []
            unmet = [(each, found) for each, found in zip(made.demanded, findings, strict=False) if not found.met]
            if code and not unmet:
                return code
            if code:
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
        told_by_text = constraint_type(made.own.type).by in ("classifier", "compiler")  # it need not be of the language
        language = "" if told_by_text else made.language
        prompt, said, reason = quote(self._prompts.without, own, **parts), "no code was written", ACCEPTS
        for draw in range(self._tries):
            code = await self._code(prompt, kit, draw, language)
            if not code:
                continue
            (finding,) = await self._findings(made, [made.own], code, kit)
            if finding.met is False:
                return None
            said, reason = finding.reason, ACCEPTS if finding.met else UNDECIDED
        return Dropped(reason, f"no program without it is refused; the last: {said}")

    async def _code(self, prompt: str, kit: Kit, draw: int, language: str) -> str | None:
        """The code of a reply; in any language, if none is given."""
        try:
            reply = await kit.ask("solver", prompt, draw=draw)
        except ContextOverflow:
            return None
        return extract(reply.text, Target(language)).code

    async def _findings(self, made: Made, demanded: Sequence[Demanded], code: str, kit: Kit) -> list[Finding]:
        """What the guarded validators find of a code. A judge sees no reference."""
        kinds = [constraint_type(each.type) for each in demanded]
        inquiries = [Examination(each.constraint, code, "guarded") for each in demanded]
        findings = await examine(kit, kit.stage, inquiries)
        for place, (kind, each) in enumerate(zip(kinds, demanded, strict=True)):
            if kind.by == "judge":
                findings[place] = await self._judged(made, each, code, kit)
            elif kind.by == "compiler":
                suite = suite_of(each.constraint, "guarded")
                findings[place] = finding_of(await kit.check(Program(code, Target(made.language)), suite))
        return findings

    async def _judged(self, made: Made, demanded: Demanded, code: str, kit: Kit) -> Finding:
        prompt = quote(self._prompts.judge, task=made.prompt, constraint=demanded.words, code=code)
        answers = {VERDICT: (KEPT, BROKEN)}
        said = await kit.decide("judge", Question("constraint", prompt, answers, reask(self._prompts.rejudge, answers)))
        return Finding(None if said.verdict is None else said.verdict == KEPT, said.reason)
