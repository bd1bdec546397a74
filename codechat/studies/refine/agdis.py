"""AGDIS (Algorithm 1): the first applicable instruction of a turn's type, and the questions of refinement to a judge.

Does an instruction apply to the code (Algorithm 1, line 9), and was it followed (section III-E1)? Of several
instructions in a request: does one contradict another?
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from codechat.base.domain import NO_USAGE, Adherence, Applicabilities, Applicability, Contradiction, Instruction, Usage
from codechat.base.files import content_hash
from codechat.base.records import CandidateRecord, ConflictRecord, TurnRecord
from codechat.judging import ADHERENCE, APPLICABILITY, DecidesConflicts, DecidesTogether, Judge, ReadsParsed
from codechat.judging.deciding import UNREADABLE
from codechat.run.protocols import Kit
from codechat.studies.refine.conflicts import contradict


@dataclass(frozen=True, slots=True)
class Selection:
    """The choice of AGDIS for a turn: no instruction if none applies (SKIP), several for a request with several.
    `read_turn` is as in a turn's record."""

    instructions: tuple[Instruction, ...]
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

    async def select(
        self, kit: Kit, turn: int, codes: Codes, lists: Sequence[list[Instruction]], given: Collection[str] = ()
    ) -> Selection:
        """Shuffle each list of candidates and take its first applicable one. No instruction applies to empty code.

        Instructions whose ids are `given` are passed over. The first list decides whether the turn is skipped; of each
        further list one instruction joins the request that contradicts none before it, if there is one.
        """
        read_turn = codes.read_by(kit.services.asked().judge, kit.task.target.language)
        found = _Search(kit, turn, codes.at(read_turn))
        for place, candidates in enumerate(lists if found.code else ()):
            kit.generator(f"agdis/{turn}/{place}" if place else f"agdis/{turn}", self.seed).shuffle(candidates)
            await self._choose(found, [each for each in candidates if each.id not in {*given, *found.tried}])
            if not found.chosen:
                break
        return Selection(tuple(found.chosen), tuple(found.tried.values()), found.usage, read_turn)

    async def _choose(self, found: "_Search", candidates: Sequence[Instruction]) -> None:
        """Try candidates in order until one is chosen."""
        step = self.lookahead if self.together == 1 else self.together
        for start in range(0, len(candidates), step):
            batch = candidates[start : start + step]
            for instruction, check in zip(batch, await self._checks(found, batch), strict=True):
                if isinstance(check, BaseException):  # raised only if checking one at a time would have raised it
                    raise check
                if await found.take(instruction, check):
                    return

    async def _checks(self, found: "_Search", batch: Sequence[Instruction]) -> Sequence[Applicability | BaseException]:
        """The decisions on a batch, each asked for once a turn."""
        new = [each for each in batch if each.id not in found.known]
        checks = await self._check(found.kit, found.turn, found.code, new) if new else ()
        decided = dict(zip((each.id for each in new), checks, strict=True))
        found.known |= {name: check for name, check in decided.items() if isinstance(check, Applicability)}
        return [found.known.get(each.id) or decided[each.id] for each in batch]

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


@dataclass
class _Search:
    """The search for a turn's instructions: the `chosen` ones, and the candidates `tried` for them by id.

    `known` has all decisions on applicability, also on candidates that leave no trace.
    """

    kit: Kit
    turn: int
    code: str
    chosen: list[Instruction] = field(default_factory=list)
    tried: dict[str, CandidateRecord] = field(default_factory=dict)
    known: dict[str, Applicability] = field(default_factory=dict)
    usage: Usage = NO_USAGE

    async def take(self, instruction: Instruction, check: Applicability) -> bool:
        """Note a candidate; returns whether it is chosen."""
        conflict = await self._conflict(instruction) if check.applicable else None
        self.usage += check.usage
        self.tried[instruction.id] = CandidateRecord(
            id=instruction.id,
            applicable=check.applicable,
            by=check.by,
            unreadable=check.applicable is None and check.reason.startswith(UNREADABLE),
            conflict=conflict,
        )
        if check.applicable and conflict is None:
            self.chosen.append(instruction)
            return True
        return False

    async def _conflict(self, instruction: Instruction) -> ConflictRecord | None:
        """The first contradiction with a chosen instruction; an undecided pair counts as one."""
        for one in self.chosen:
            found = await conflict(self.kit, self.turn, self.code, (one, instruction))
            self.usage += found.usage
            if found.contradicts is not False:
                return ConflictRecord(
                    instruction=one.id, contradicts=found.contradicts, by=found.by, reason=found.reason
                )
        return None


def recorded_selection(turn: TurnRecord, pool: Mapping[str, Instruction]) -> Selection:
    """The recorded selection. An instruction has the pool's rule if its text in the pool is still the same."""
    chosen = []
    for asked in turn.asked:
        known = pool.get(asked.id)
        if known is None or known.text != asked.text:
            known = Instruction(asked.id, asked.text, asked.scope, asked.change)
        chosen.append(known)
    return Selection(tuple(chosen), tuple(turn.candidates), NO_USAGE, turn.read_turn)


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


async def conflict(kit: Kit, turn: int, code: str, pair: tuple[Instruction, Instruction]) -> Contradiction:
    """Whether two instructions contradict each other: by their rules if both have one, else the judge's decision."""
    ruled, asked = contradict(*pair), kit.services.asked()
    judge = asked.judge
    if ruled is not None or not isinstance(judge, DecidesConflicts):
        return ruled or Contradiction(None, "rules", "one of them has no rule, and the judge decides no conflicts")

    async def call() -> Contradiction:
        await asked.gate.check()
        return await judge.conflict(code, *pair)

    digest = content_hash([code, *([each.id, each.text] for each in pair)])
    name = f"{APPLICABILITY}/conflict/{pair[0].id}/{pair[1].id}"
    return await kit.step_at(turn, name, digest, Contradiction, call, payer=APPLICABILITY)


async def adherence(
    kit: Kit, turn: int, before: str, after: str, instruction: Instruction, *, place: int = 0
) -> Adherence:
    """The judge's decision on whether the change from `before` to `after` follows the instruction at a place of the
    request."""
    asked = kit.services.asked()

    async def call() -> Adherence:
        await asked.gate.check()
        return await asked.judge.adherence(before, after, instruction)

    digest = content_hash([before, after, instruction.id, instruction.text])
    name = f"{ADHERENCE}/{place}" if place else ADHERENCE
    return await kit.step_at(turn, name, digest, Adherence, call, payer=ADHERENCE, free=asked.offline)
