"""The verbs of refinement: does an instruction apply (Algorithm 1), and was it followed (section III-E1)?"""

from collections.abc import Sequence

from codechat.base.domain import Adherence, Applicabilities, Applicability, Instruction
from codechat.base.files import content_hash
from codechat.judging import ADHERENCE, APPLICABILITY, DecidesTogether
from codechat.run.protocols import Kit


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
