"""A second agentic protocol in one file: the model finds a file of a repository by commands, and a guide gives hints.

Each turn the model names one command; it is run in the session's room, and the guide, who sees what it printed, says
whether it was the one that was asked for. Nothing is tested, so no turn is scored.
"""

import random
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pydantic import SerializeAsAny

from codechat.base.config import Config, result_option
from codechat.base.domain import Message
from codechat.base.records import SessionRecord, TurnRecord
from codechat.datasets.tasks import Task
from codechat.judging.deciding import VERDICT, Question, quote, reask
from codechat.models import UNDER_TEST, ModelConfig
from codechat.models.roles import Roles, role
from codechat.report.metrics import Effort, Final, Measures, spending_of, tokens_of
from codechat.run.protocols import PROTOCOLS, Ask, Kit, Parts
from codechat.studies.cab.tasks import AssistTask
from codechat.studies.cab.verbs import run_command

WORDS = {VERDICT: ("FOUND", "MISSED")}
ASK = "The issue:\n{{issue}}\nWas it found in this?\n{{printed}}\nEnd with a line VERDICT: FOUND or VERDICT: MISSED."
AGAIN = "Answer with one of:\n{{verdicts}}"


class ErrandRoles(Roles):
    """Who plays beside the model under test."""

    guide: SerializeAsAny[ModelConfig] = role("openai", "who says whether it was found")


class ErrandConfig(Config):
    """Options of the protocol."""

    kind: Literal["errand"] = result_option("errand", "the protocol")
    tries: int = result_option(3, "how many commands the model may name", ge=1)
    roles: ErrandRoles = result_option(..., "the further models")


class Errand:
    """One command a turn, until the guide is content."""

    measures = Measures("errand", "Errand: what a model finds by commands", finals=(Final("found", "Found"),))

    def __init__(self, config: ErrandConfig) -> None:
        self._tries = config.tries

    def turns(self, task: Task) -> int:
        return self._tries

    def agenda(self, generator: random.Random) -> list[str]:
        return []

    def asks(self, task: Task) -> Iterator[Ask]:
        for turn in range(self._tries):
            yield Ask(UNDER_TEST, turn, len(task.prompt), 100, replies=turn)
            yield Ask("guide", turn, len(task.prompt) + 2_000)

    async def run(self, task: Task, kit: Kit) -> None:
        history: tuple[Message, ...] = (Message("user", f"{task.prompt}\nName one command."),)
        for turn in range(self._tries):
            reply = await kit.ask(UNDER_TEST, turn, history)
            output = await run_command(kit, turn, reply.text)
            question = Question("found", quote(ASK, issue=task.prompt, printed=output.text), WORDS, reask(AGAIN, WORDS))
            verdict = (await kit.decide("guide", turn, question)).verdict
            own = {"printed": output.text, "status": output.status, "found": verdict == "FOUND"}
            kit.finish_turn(TurnRecord.of(turn, history, (reply, None), **own))
            if verdict == "FOUND":
                return
            history += (Message("assistant", reply.text), Message("user", f"Not there:\n{output.text}\nAnother one?"))

    def metrics(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        kept = list(sessions)
        done = [session for session in kept if session.status == "completed"]
        found = [any((turn.model_extra or {})["found"] for turn in session.turns) for session in done]
        return {
            "sessions": len(kept),
            "completed": len(done),
            "errored": len(kept) - len(done),
            "outcomes": {},
            "found": sum(found) / len(found) if found else None,
            **spending_of(tokens_of(done), effort),
        }


@PROTOCOLS.register("errand", ErrandConfig, uses=frozenset({"environment"}), over=AssistTask)
def errand(config: ErrandConfig, parts: Parts) -> Errand:
    """What a model finds in a repository by commands, and a guide who says so (a plugin of the tests)."""
    return Errand(config)
