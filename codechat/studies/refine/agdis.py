"""AGDIS (Algorithm 1): the first applicable instruction of a turn's type, and the questions of refinement to a judge.

Does an instruction apply to the code (Algorithm 1, line 9), and was it followed (section III-E1)?
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from codechat.base.domain import NO_USAGE, Adherence, Applicabilities, Applicability, Instruction, Usage
from codechat.base.files import content_hash
from codechat.base.records import CandidateRecord, TurnRecord
from codechat.judging import ADHERENCE, APPLICABILITY, DecidesTogether, Judge, ReadsParsed
from codechat.judging.deciding import UNREADABLE
from codechat.run.protocols import Kit


@dataclass(frozen=True, slots=True)
class Selection:
    """The choice of AGDIS for a turn: no instruction if none applies (SKIP). `read_turn` is as in a turn's record."""

    instruction: Instruction | None
    candidates: tuple[CandidateRecord, ...]
    usage: Usage
    read_turn: int | None = None


class Codes:
    """The codes of a session so far, by turn; replies without code have none."""

    def __init__(self) -> None:
        self._by_turn: dict[int, str] = {}

    def add(self, turn: int, code: str | None) -> None:
        """Take the code of a reply."""
        if code:
            self._by_turn[turn] = code

    def at(self, turn: int | None) -> str:
        """The code of a turn; the last code if there is none there, and empty if there is none at all."""
        last = next(reversed(self._by_turn.values()), "")
        return last if turn is None else self._by_turn.get(turn, last)

    def read_by(self, judge: Judge, language: str) -> int | None:
        """The turn of the code that a judge is asked about; None for the last code.

        Algorithm 1 asks about the last code, broken or not. A judge that sees nothing in code that does not parse
        would skip all later turns, and the model would never get to mend it: it is asked about the last that it reads.
        """
        if not isinstance(judge, ReadsParsed):
            return None
        turns = list(reversed(self._by_turn))
        read = next((turn for turn in turns if judge.reads(self._by_turn[turn], language)), None)
        return None if read == next(iter(turns), None) else read


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

    async def select(self, kit: Kit, turn: int, codes: Codes, candidates: list[Instruction]) -> Selection:
        """Shuffle the candidates and take the first applicable one. No instruction applies to empty code."""
        read_turn = codes.read_by(kit.services.asked().judge, kit.task.target.language)
        code = codes.at(read_turn)
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
                    return Selection(instruction, tuple(tried), usage, read_turn)
        return Selection(None, tuple(tried), usage, read_turn)

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
        return Selection(None, tuple(turn.candidates), NO_USAGE, turn.read_turn)
    known = pool.get(chosen.id)
    if known is None or known.text != chosen.text:
        known = Instruction(chosen.id, chosen.text, chosen.scope, chosen.change)
    return Selection(known, tuple(turn.candidates), NO_USAGE, turn.read_turn)


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
