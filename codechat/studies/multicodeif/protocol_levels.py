"""MultiCodeIF's levels: the prompts of a chain state more constraints at every level, and all so far are checked."""

import random
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

from codechat.base.config import original_option
from codechat.base.domain import Message, Reply
from codechat.base.errors import ContextOverflow
from codechat.base.records import SessionRecord, TurnRecord
from codechat.datasets.tasks import Task
from codechat.judging import CONSTRAINT, JudgeConfig
from codechat.models import UNDER_TEST
from codechat.report.metrics import Effort
from codechat.run.protocols import PROTOCOLS, Ask, Kit, Parts
from codechat.run.protocols.dialogue import Graded, grade_in_order
from codechat.sandbox.languages import without_thinking
from codechat.studies.multicodeif import checking
from codechat.studies.multicodeif.checking import Checking, ConstrainedPrompts, Round, expected_asks, levels_of
from codechat.studies.multicodeif.metrics import LEVELS, levels_metrics
from codechat.studies.multicodeif.rows import ConstrainedTask


class LevelsConfig(checking.ConstrainedConfig):
    """Options of the levels."""

    kind: Literal["levels"] = original_option("levels", "the protocol")
    context: Literal["single", "full"] = original_option(
        "single", "what a request holds: the level's prompt, which states everything, or also the dialogue before it"
    )
    prompts: ConstrainedPrompts = original_option(..., "a preset by its name, or each prompt as a text or @FILE")


class Levels:
    """One request a level. Constraints are checked while the next level is generated."""

    measures = LEVELS

    def __init__(self, config: LevelsConfig, judge: JudgeConfig) -> None:
        self._config, self._judge = config, judge

    def turns(self, task: Task) -> int:
        return len(checking.checkable_levels(task))

    def agenda(self, generator: random.Random) -> list[str]:
        return []

    def asks(self, task: Task) -> Iterator[Ask]:
        """The level's prompt; in one dialogue, also the earlier prompts and replies."""
        shared = 0
        for turn, level in enumerate(levels_of(task)):
            new = len(self._config.prompts.initial) + len(level.prompt)
            replies = turn if self._config.context == "full" else 0
            yield from expected_asks(self._judge, task, Round(turn, level, ()), shared + new, replies, shared=shared)
            shared += new if self._config.context == "full" else 0

    async def run(self, task: Task, kit: Kit) -> None:
        checking = Checking(kit, task, self._config.harness)
        replies: list[str] = []
        async with grade_in_order() as grading:
            levels = levels_of(task)
            for turn, level in enumerate(levels):
                round_ = Round(turn, level, layout(self._config, task, replies))
                try:
                    reply = await kit.ask(UNDER_TEST, turn, round_.request, final=turn + 1 == len(levels))
                except ContextOverflow:
                    grading.start(partial(self._overflow, checking, round_))
                    return
                grading.start(partial(self._grade, checking, round_, reply))
                replies.append(reply.text if self._config.harness == "official" else without_thinking(reply.text))

    async def _grade(self, checking: Checking, round_: Round, reply: Reply, earlier: Graded | None) -> TurnRecord:
        try:
            found = await checking.found(round_, reply)
        finally:
            if earlier is not None:
                await earlier
        record = checking.record(round_, reply, found)
        checking.kit.finish_turn(record)
        return record

    async def _overflow(self, checking: Checking, first: Round, earlier: Graded | None) -> TurnRecord:
        """The dialogue no longer fits: this level and all later ones are unmet; returns the last."""
        if earlier is not None:
            await earlier
        for turn, level in enumerate(levels_of(checking.task)):
            if turn >= first.turn:
                record = checking.overflow(first if turn == first.turn else Round(turn, level, ()))
                checking.kit.finish_turn(record)
        checking.kit.log.ended = "context_overflow"
        return record

    def metrics(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        return levels_metrics(sessions, seed=seed, effort=effort)


@PROTOCOLS.register(
    "levels",
    LevelsConfig,
    uses=frozenset({"judge", "sandbox"}),
    questions=frozenset({CONSTRAINT}),
    further=checking.further_questions,
    over=ConstrainedTask,
    with_desk={"context": "full"},
)
def levels(config: LevelsConfig, parts: Parts) -> Levels:
    """Chains of levels that add constraints, all of which must hold (MultiCodeIF)."""
    return Levels(config, parts.judge)


def layout(config: LevelsConfig, task: Task, replies: Sequence[str]) -> tuple[Message, ...]:
    """The messages of the level that follows the replies."""
    chain = [config.prompts.opening(task, level) for level in levels_of(task)[: len(replies) + 1]]
    if config.context == "single":
        return (chain[-1],)
    said = [Message("assistant", reply) for reply in replies]
    return (*(message for pair in zip(chain, said, strict=False) for message in pair), chain[-1])
