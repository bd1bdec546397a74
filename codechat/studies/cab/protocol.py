"""CodeAssistBench: a maintainer who explores a repository to answer its user, and a judge in the end.

The model under test is the maintainer. The user opens with the issue; the maintainer runs commands in a room with the
repository until it answers; the user, a model that knows what would satisfy it, replies, and so on until it is
satisfied or the rounds are over. Then a judge decides once. Nothing is tested.
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from codechat.base.domain import Reply
from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, TurnRecord
from codechat.datasets.tasks import Task
from codechat.models import UNDER_TEST
from codechat.report.metrics import Effort, Measures
from codechat.run.protocols import PROTOCOLS, Ask, Kit, Parts
from codechat.studies.cab.environments import EnvironmentConfig
from codechat.studies.cab.judging import Ended, ask_user, judge, references_for
from codechat.studies.cab.maintainer import Answered, Changes, Maintainer, read_changes
from codechat.studies.cab.metrics import ASSIST, assist_metrics
from codechat.studies.cab.stage import JUDGE, USER, AssistConfig, Built, Exchange, Stage
from codechat.studies.cab.tasks import AssistTask
from codechat.studies.cab.turns import AssistJudgement, AssistTurn, BuildRecord, Status, UserReply
from codechat.studies.cab.verbs import build, enter


class Assist:
    """Rounds of answer and reply. A turn is one answer with what led to it and the user's reply to it."""

    measures: Measures = ASSIST

    def __init__(self, config: AssistConfig, environment: EnvironmentConfig | None) -> None:
        self._config, self._environment = config, environment

    def turns(self, task: Task) -> int:
        if not assist_task(task).conditions:
            raise UserError(f"{task.task_id} has no satisfaction conditions, by which an answer is judged", "give some")
        return self._config.rounds

    def agenda(self, generator: random.Random) -> list[str]:
        return []

    def asks(self, task: Task) -> Iterator[Ask]:
        rooms = self._environment is not None and self._environment.kind != "none"
        explores = rooms and assist_task(task).workspace is not None
        return expected_asks(self._config, assist_task(task), explores=explores)

    async def run(self, task: Task, kit: Kit) -> None:
        if kit.recording is not None:
            await self._judge_again(task, kit, kit.recording)
            return
        stage = Stage(self._config, assist_task(task), kit, self._environment)
        dialogue, state, maintainer = list[Exchange](), await _State.begun(stage), Maintainer(stage)
        said: UserReply | None = None
        for turn in range(self._config.rounds):
            answered = await maintainer.answer(turn, said.text if said else None)
            changes, built, said = Changes(), None, None
            if answered.answer is not None:
                changes, built = await state.change(stage, answered.answer, turn)
                dialogue.append(Exchange(answered.answer))
                references = references_for(stage.task, answered.answer, self._config.references)
                said = await ask_user(stage, turn, dialogue, state.built, references)
                dialogue[-1] = Exchange(answered.answer, said.text)
                state.replied(said)
            over = _is_over(said) or turn + 1 == self._config.rounds
            if over:
                await kit.aclose()  # no command follows, and other sessions wait for a room
                kit.log.judgement = (await judge(stage, turn, dialogue, state.ended(stage))).model_dump()
            own = state.built.own if turn == 0 else None
            fields = {
                "changed": changes.names,
                "refused": list(changes.refused),
                "build": built,
                "own_build": own if own is not None and own.test is not None else None,
                "user": said,
            }
            kit.finish_turn(_record(turn, answered, fields))
            if answered.reply is None:
                kit.log.ended = "context_overflow"
            if over:
                return

    async def _judge_again(self, task: Task, kit: Kit, recorded: SessionRecord) -> None:
        """Judge the recorded dialogue: commands and the user's replies cannot be had again without the repository."""
        stage, before = Stage(self._config, assist_task(task), kit), AssistJudgement.of(recorded)
        turns = [AssistTurn.of(turn) for turn in recorded.turns]
        answered = [(turn.answer, turn) for turn in turns]
        dialogue = [
            Exchange(answer, turn.user.text if turn.user else None) for answer, turn in answered if answer is not None
        ]
        last = next((turn.build for turn in reversed(turns) if turn.build is not None), None)
        refused = next((turn.refused for turn in reversed(turns) if turn.answer is not None), [])
        own = turns[0].own_build or (BuildRecord(ok=True, log="") if before.could_be_built else None)
        built, needs = Built(last, refused, own), (before.needs_build, before.unvalidated)
        ended = Ended(before.rounds, before.satisfied, built, *needs, before.environment)
        judged = await judge(stage, recorded.turns[-1].turn, dialogue, ended)
        kit.log.judgement, kit.log.ended = judged.model_dump(), recorded.ended
        for turn in recorded.turns:
            kit.recall(turn)
            kit.finish_turn(turn)

    def metrics(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        return assist_metrics(sessions, rounds=self._config.rounds, seed=seed, effort=effort)


def assist_task(task: Task) -> AssistTask:
    """The task. Tasks of another kind were refused before."""
    assert isinstance(task, AssistTask)
    return task


@dataclass
class _State:
    """The state of a session: all changes, the last build, the number of replies, and the last status."""

    changes: Changes = field(default_factory=Changes)
    built: Built = field(default_factory=Built)
    rounds: int = 0
    satisfied: Status | None = None

    @classmethod
    async def begun(cls, stage: Stage) -> "_State":
        """The state before the first answer: the row's own image is built, if it can be, and tested."""
        if not stage.builds or stage.task.workspace is None:
            return cls()
        await enter(stage.kit, 0)
        own = BuildRecord(ok=True, log="")
        if stage.task.workspace.test is not None:
            own = BuildRecord.of(await build(stage.kit, 0, {}, None))
        return cls(built=Built(own=own))

    async def change(self, stage: Stage, answer: str, turn: int) -> tuple[Changes, BuildRecord | None]:
        """The changes of an answer and their build, with the files of earlier answers too, if it changes a file."""
        new, record = read_changes(answer) if stage.builds else Changes(), None
        if new.names:
            self.changes = self.changes.then(new)
            record = BuildRecord.of(await build(stage.kit, turn, self.changes.files, self.changes.dockerfile))
        self.built = Built(record or self.built.build, new.refused, self.built.own)
        return new, record

    def replied(self, said: UserReply) -> None:
        """Count a reply of the user."""
        self.rounds, self.satisfied = self.rounds + 1, said.status

    def ended(self, stage: Stage) -> Ended:
        """For the judgement."""
        needs = stage.task.needs_build
        return Ended(self.rounds, self.satisfied, self.built, needs, needs and not stage.builds, stage.room)


def _is_over(said: UserReply | None) -> bool:
    """Whether a dialogue ends: there was no answer, the user is satisfied, or the reply has no text to pass on."""
    return said is None or said.status == "FULLY_SATISFIED" or not said.text


def _record(turn: int, answered: Answered, more: Mapping[str, Any]) -> TurnRecord:
    """The record of a turn: an answer, and `more` fields of `AssistTurn`."""
    own = AssistTurn(
        answer=answered.answer,
        explored=list(answered.explored),
        steps=answered.steps,
        unread=answered.unread,
        unrun=answered.unrun,
        forced=answered.forced,
        **more,
    )
    answer: tuple[Reply, None] | None = None if answered.reply is None else (answered.reply, None)
    fields = {**own.model_dump(), "usage": answered.usage, "latency_s": answered.latency_s}
    return TurnRecord.of(turn, answered.request, answer, **fields)


OUTPUTS = 4_000  # characters that a step's commands print
SAID = 1_200  # characters of an answer, and, generously, of a reply that explores
REPLIED = 400  # characters of the user's reply
REFERENCE = 800  # characters of a reply of another issue with what it replies to


def expected_asks(config: AssistConfig, task: AssistTask, *, explores: bool) -> Iterator[Ask]:
    """The calls of a session whose user is never satisfied, and whose maintainer takes every step if it `explores`.

    A maintainer that cannot run commands answers at once.
    """
    prompts, conditions = config.prompts, sum(map(len, task.conditions))
    length = len(prompts.opening) + len(prompts.explore if explores else prompts.blind) + len(task.prompt)
    replies = shared = 0
    for turn in range(config.rounds):
        length += len(prompts.followup) + len(prompts.again) + REPLIED if turn else 0
        for call in range(config.steps_before(turn) + 1 if explores else 1):
            length += OUTPUTS + len(prompts.outputs) + len(prompts.more) if call else 0
            yield Ask(UNDER_TEST, turn, length, SAID, replies=replies, shared=shared, shared_replies=replies)
            replies, shared = replies + 1, length
        dialogue = len(task.prompt) + (turn + 1) * SAID + turn * REPLIED
        shown = len(prompts.user) + conditions + dialogue + config.references * REFERENCE
        yield Ask(USER, turn, shown, REPLIED)
    thread = sum(len(comment.body) for comment in task.thread)
    judged = SAID if config.judged == "answer" else dialogue + REPLIED
    yield Ask(JUDGE, config.rounds - 1, len(prompts.judge) + len(task.prompt) + thread + conditions + judged)


@PROTOCOLS.register("assist", AssistConfig, uses=frozenset({"environment"}), over=AssistTask, with_desk=None)
def assist(config: AssistConfig, parts: Parts) -> Assist:
    """A maintainer who explores a repository to answer a user, and a judge in the end (CodeAssistBench)."""
    return Assist(config, parts.environment)
