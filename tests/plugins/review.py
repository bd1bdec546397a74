"""A protocol in one file: a user and a reviewer beside the model under test, and a tool that is run in a box.

The model writes a text. Each turn `wc -w` counts its words in the sandbox, the user asks for a shorter one, and the
reviewer decides whether it still says the same. Nothing is tested, so no turn is scored.
"""

import random
import shutil
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
from codechat.report.metrics import Effort, Final, Measures, Series, spending_of, tokens_of
from codechat.run.protocols import PROTOCOLS, Ask, Kit, Parts
from codechat.sandbox import Command

WORDS = {VERDICT: ("SAME", "OTHER")}
ASK = "Does the text still say the same?\n{{before}}\n{{after}}\nEnd with a line VERDICT: SAME or VERDICT: OTHER."
AGAIN = "Answer with one of:\n{{verdicts}}"


class ReviewRoles(Roles):
    """Who plays beside the model under test."""

    user: SerializeAsAny[ModelConfig] = role("openai", "who asks for a shorter text")
    reviewer: SerializeAsAny[ModelConfig] = role("openai", "who decides whether it says the same")


class ReviewConfig(Config):
    """Options of the protocol."""

    kind: Literal["review"] = result_option("review", "the protocol")
    rounds: int = result_option(2, "how often the user asks", ge=1)
    roles: ReviewRoles = result_option(..., "the further models")


class Review:
    """Rounds of shortening."""

    measures = Measures(
        "review",
        "Review: a text that gets shorter",
        series=(Series("words", "Words", unit="number", higher_is_better=False),),
        finals=(Final("same", "Says the same"),),
    )

    def __init__(self, config: ReviewConfig) -> None:
        self._rounds = config.rounds

    def turns(self, task: Task) -> int:
        return 1 + self._rounds

    def agenda(self, generator: random.Random) -> list[str]:
        return []

    def asks(self, task: Task) -> Iterator[Ask]:
        for turn in range(self.turns(task)):
            yield Ask(UNDER_TEST, turn, len(task.prompt), 400)
            if turn:
                yield Ask("user", turn, 400, 100)
                yield Ask("reviewer", turn, 800)

    async def run(self, task: Task, kit: Kit) -> None:
        history: tuple[Message, ...] = (Message("user", task.prompt),)
        text = ""
        for turn in range(self.turns(task)):
            if turn:
                wish = await kit.ask("user", turn, (Message("user", f"Ask for a shorter text than:\n{text}"),))
                history += (Message("user", wish.text),)
            reply = await kit.ask(UNDER_TEST, turn, history)
            count = await kit.run(turn, _word_count(reply.text))
            same = None
            if turn:
                prompt = quote(ASK, before=text, after=reply.text)
                question = Question("same", prompt, WORDS, reask(AGAIN, WORDS))
                same = (await kit.decide("reviewer", turn, question)).verdict
            history += (Message("assistant", reply.text),)
            text = reply.text
            words = int(count.stdout.split()[0])
            kit.finish_turn(TurnRecord.of(turn, history[:-1], (reply, None), words=words, same=same))

    def metrics(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        kept = list(sessions)
        done = [session for session in kept if session.status == "completed"]
        extras = [[turn.model_extra or {} for turn in session.turns] for session in done]
        columns = zip(*extras, strict=False)
        decided = [turn["same"] == "SAME" for turns in extras for turn in turns if turn["same"]]
        return {
            "sessions": len(kept),
            "completed": len(done),
            "errored": len(kept) - len(done),
            "outcomes": {},
            "words": [sum(turn["words"] for turn in column) / len(column) for column in columns],
            "same": sum(decided) / len(decided) if decided else None,
            **spending_of(tokens_of(done), effort),
        }


@PROTOCOLS.register("review", ReviewConfig, uses=frozenset({"sandbox"}))
def review(config: ReviewConfig, parts: Parts) -> Review:
    """A text that a user wants shorter, and a reviewer who compares (a plugin of the tests)."""
    return Review(config)


def _word_count(text: str) -> Command:
    tool = shutil.which("wc") or "/usr/bin/wc"
    return Command(argv=(tool, "-w", "text"), files={"text": text.encode()}, tools=(tool,))
