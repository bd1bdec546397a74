"""AGDIS (Algorithm 1): the first applicable instruction of a turn's type, and the questions of refinement to a judge.

Does an instruction apply to the code (Algorithm 1, line 9), and was it followed (section III-E1)?
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from codechat.base.domain import NO_USAGE, Adherence, Applicabilities, Applicability, Instruction, Usage
from codechat.base.files import content_hash
from codechat.base.records import CandidateRecord, TurnRecord
from codechat.judging import ADHERENCE, APPLICABILITY, DecidesTogether
from codechat.judging.deciding import UNREADABLE
from codechat.run.protocols import Kit


@dataclass(frozen=True, slots=True)
class Selection:
    """The choice of AGDIS for a turn: no instruction if none applies (SKIP)."""

    instruction: Instruction | None
    candidates: tuple[CandidateRecord, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class Agdis:
    """Selects the instructions of a session's turns.

    The judge is asked about `lookahead` candidates at once, one question each, or about `together` candidates by one
    question. Candidates after the chosen one leave no trace, so neither number changes a record. `seed` is the agenda's
    own seed, None for the cell's.
    """

    seed: int | None
    lookahead: int
    together: int

    async def select(self, kit: Kit, turn: int, code: str, candidates: list[Instruction]) -> Selection:
        """Shuffle the candidates and take the first applicable one. No instruction applies to empty code."""
        kit.generator(f"agdis/{turn}", self.seed).shuffle(candidates)
        tried: list[CandidateRecord] = []
        usage, step = NO_USAGE, self.lookahead if self.together == 1 else self.together
        for start in range(0, len(candidates) if code else 0, step):
            batch = candidates[start : start + step]
            for instruction, check in zip(batch, await self._check(kit, turn, code, batch), strict=True):
                if isinstance(check, BaseException):  # raised only if checking one at a time would have raised it
                    raise check
                usage += check.usage
                unreadable = check.applicable is None and check.reason.startswith(UNREADABLE)
                tried.append(
                    CandidateRecord(id=instruction.id, applicable=check.applicable, by=check.by, unreadable=unreadable)
                )
                if check.applicable:
                    return Selection(instruction, tuple(tried), usage)
        return Selection(None, tuple(tried), usage)

    async def _check(
        self, kit: Kit, turn: int, code: str, batch: Sequence[Instruction]
    ) -> Sequence[Applicability | BaseException]:
        """The decisions on a batch; the usage of a common question counts for its first candidate."""
        if self.together > 1:
            found = await applicable_together(kit, turn, code, batch)
            first, *others = found.decisions
            return [replace(first, usage=found.usage), *(replace(each, usage=NO_USAGE) for each in others)]
        asked = [applicable(kit, turn, code, each) for each in batch]
        return [await asked[0]] if len(asked) == 1 else await asyncio.gather(*asked, return_exceptions=True)


def recorded_selection(turn: TurnRecord, pool: Mapping[str, Instruction]) -> Selection:
    """The recorded selection. The instruction has the pool's rule if its text in the pool is still the same."""
    chosen = turn.instruction
    if chosen is None:
        return Selection(None, tuple(turn.candidates), NO_USAGE)
    known = pool.get(chosen.id)
    if known is None or known.text != chosen.text:
        known = Instruction(chosen.id, chosen.text, chosen.scope, chosen.change)
    return Selection(known, tuple(turn.candidates), NO_USAGE)


async def applicable(kit: Kit, turn: int, code: str, instruction: Instruction) -> Applicability:
    """The judge's decision on whether the instruction fits the code."""
    asked = kit.services.asked()

    async def call() -> Applicability:
        await asked.gate.check()
        return await asked.judge.applicable(code, instruction)

    digest = content_hash([code, instruction.id, instruction.text])
    name = f"{APPLICABILITY}/{instruction.id}"
    return await kit.step_at(turn, name, digest, Applicability, call, payer=APPLICABILITY, free=asked.offline)


async def applicable_together(kit: Kit, turn: int, code: str, instructions: Sequence[Instruction]) -> Applicabilities:
    """The decisions on several instructions, by a judge that can be asked about several at once."""
    asked = kit.services.asked()
    judge = asked.judge
    if not isinstance(judge, DecidesTogether):
        raise TypeError("this judge is asked about one instruction at a time")

    async def call() -> Applicabilities:
        await asked.gate.check()
        return await judge.applicable_together(code, instructions)

    digest = content_hash([code, *([each.id, each.text] for each in instructions)])
    name = f"{APPLICABILITY}/together/{instructions[0].id}"
    return await kit.step_at(turn, name, digest, Applicabilities, call, payer=APPLICABILITY)


async def adherence(kit: Kit, turn: int, before: str, after: str, instruction: Instruction) -> Adherence:
    """The judge's decision on whether the change from `before` to `after` follows the instruction."""
    asked = kit.services.asked()

    async def call() -> Adherence:
        await asked.gate.check()
        return await asked.judge.adherence(before, after, instruction)

    digest = content_hash([before, after, instruction.id, instruction.text])
    return await kit.step_at(turn, ADHERENCE, digest, Adherence, call, payer=ADHERENCE, free=asked.offline)
