"""The verbs of constraints: what rules find in code, and whether a judge says that a constraint is kept."""

from collections.abc import Sequence

from codechat.base.domain import Compliance
from codechat.base.files import content_hash
from codechat.judging import CONSTRAINT, ConstraintQuestion, DecidesConstraints
from codechat.run.protocols.kit import Kit, Unit
from codechat.studies.multicodeif.constraints import Finding
from codechat.studies.multicodeif.constraints.examining import Examiner, Inquiry


async def examine(kit: Unit, place: int | str, inquiries: Sequence[Inquiry], *, free: bool = False) -> list[Finding]:
    """What rules find in codes, in the order of the questions; a rule runs in a process that can be ended."""
    services = kit.services
    examiner = services.opened.get("examiner", lambda: Examiner(services.workers))
    digest = content_hash([inquiry.key for inquiry in inquiries])
    return await kit.step_at(place, "examine", digest, list[Finding], lambda: examiner.find(inquiries), free=free)


async def comply(kit: Kit, turn: int, question: ConstraintQuestion) -> Compliance:
    """The judge's decision on whether a code keeps a constraint; undecided if the judge decides no constraints."""
    asked = kit.services.asked()
    judge = asked.judge
    if not isinstance(judge, DecidesConstraints):
        return Compliance(None, "none", "the cell's judge decides no constraints; judge=llm does")

    async def call() -> Compliance:
        await asked.gate.check()
        return await judge.constraint(question)

    parts = [question.prompt, question.constraint, question.code, question.reference]
    digest = content_hash([*parts, question.like_reference] if question.like_reference else parts)
    name = f"{CONSTRAINT}/{question.index}"
    return await kit.step_at(turn, name, digest, Compliance, call, payer=CONSTRAINT, free=asked.offline)
