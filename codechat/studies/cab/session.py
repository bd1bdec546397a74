"""The dialogue: opening, exploration and answer, build, the user's reply, and so on; then the judgement."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from codechat.domain import Reply
from codechat.errors import UserError
from codechat.metrics import Effort, Measures
from codechat.protocols import Ask, Kit
from codechat.records import SessionRecord, TurnRecord
from codechat.studies.cab.changes import Changes, read_changes
from codechat.studies.cab.config import JUDGE, AssistConfig
from codechat.studies.cab.expected import expected_asks
from codechat.studies.cab.exploring import Answered, Maintainer
from codechat.studies.cab.judging import Ended, judge
from codechat.studies.cab.metrics import ASSIST, assist_metrics
from codechat.studies.cab.references import references_for
from codechat.studies.cab.stage import Stage
from codechat.studies.cab.tasks import AssistTask
from codechat.studies.cab.telling import Built, Exchange
from codechat.studies.cab.turns import AssistJudgement, AssistTurn, BuildRecord, Status, UserReply
from codechat.studies.cab.user import ask_user
from codechat.tasks import Task


class Assist:
    """Rounds of answer and reply. A turn is one answer with what led to it and the user's reply to it."""

    measures: Measures = ASSIST

    def __init__(self, config: AssistConfig, *, rooms: bool) -> None:
        """`rooms`: whether commands can be run where there is a repository, for estimates."""
        self._config, self._rooms = config, rooms

    def turns(self, task: Task) -> int:
        if not assist_task(task).conditions:
            raise UserError(f"{task.task_id} has no satisfaction conditions, by which an answer is judged", "give some")
        return self._config.rounds

    def agenda(self, generator: random.Random) -> list[str]:
        return []

    def asks(self, task: Task) -> Iterator[Ask]:
        explores = self._rooms and assist_task(task).workspace is not None
        return expected_asks(self._config, assist_task(task), explores=explores)

    async def run(self, task: Task, kit: Kit) -> None:
        stage, dialogue, state = Stage(self._config, assist_task(task), kit), list[Exchange](), _State()
        maintainer = Maintainer(stage)
        said: UserReply | None = None
        for turn in range(self._config.rounds):
            answered = await maintainer.answer(turn, said.text if said else None)
            made, said = _Made(), None
            if answered.answer is not None:
                made = await state.change(stage, answered.answer, turn)
                dialogue.append(Exchange(answered.answer))
                references = references_for(stage.task, answered.answer, self._config.references)
                said = await ask_user(stage, turn, dialogue, state.built, references)
                dialogue[-1] = Exchange(answered.answer, said.text)
                state.replied(said)
            over = _is_over(said) or turn + 1 == self._config.rounds
            if over:
                await kit.aclose()  # no command follows, and other sessions wait for a room
                kit.log.judgement = (await judge(stage, turn, dialogue, state.ended(stage))).model_dump()
            kit.finish_turn(_record(turn, answered, made, said))
            if answered.reply is None:
                kit.log.ended = "context_overflow"
            if over:
                return

    async def score(self, task: Task, kit: Kit, recorded: SessionRecord) -> None:
        stage, before = Stage(self._config, assist_task(task), kit), AssistJudgement.of(recorded)
        turns = [AssistTurn.of(turn) for turn in recorded.turns]
        answered = [(turn.answer, turn) for turn in turns]
        dialogue = [
            Exchange(answer, turn.user.text if turn.user else None) for answer, turn in answered if answer is not None
        ]
        build = next((turn.build for turn in reversed(turns) if turn.build is not None), None)
        refused = next((turn.refused for turn in reversed(turns) if turn.answer is not None), [])
        ended = Ended(before.rounds, before.satisfied, Built(build, refused), before.needs_build, before.unvalidated)
        judged = await judge(stage, recorded.turns[-1].turn, dialogue, ended)
        kit.log.judgement, kit.log.ended = judged.model_dump(), recorded.ended
        for turn in recorded.turns:
            kit.recall(turn, anew={JUDGE})
            kit.finish_turn(turn)

    def metrics(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        return assist_metrics(sessions, rounds=self._config.rounds, seed=seed, effort=effort)


def assist_task(task: Task) -> AssistTask:
    """The task; tasks of another kind are refused before."""
    assert isinstance(task, AssistTask)
    return task


@dataclass(frozen=True, slots=True)
class _Made:
    """The changes of one answer, and their build."""

    changes: Changes = field(default_factory=Changes)
    build: BuildRecord | None = None


@dataclass
class _State:
    """What came of a session so far: all changes, the last build, how often the user replied, and how satisfied."""

    changes: Changes = field(default_factory=Changes)
    built: Built = field(default_factory=Built)
    rounds: int = 0
    satisfied: Status | None = None

    async def change(self, stage: Stage, answer: str, turn: int) -> _Made:
        """Build again if the answer changes something: with the files of earlier answers too."""
        new, build = read_changes(answer) if stage.builds else Changes(), None
        if new.names:
            self.changes = self.changes.then(new)
            found = await stage.kit.build(turn, self.changes.files, self.changes.dockerfile)
            build = BuildRecord(ok=found.ok, log=found.log, seconds_s=found.seconds)
        self.built = Built(build or self.built.build, new.refused)
        return _Made(new, build)

    def replied(self, said: UserReply) -> None:
        """Count a reply of the user."""
        self.rounds, self.satisfied = self.rounds + 1, said.status

    def ended(self, stage: Stage) -> Ended:
        """For the judgement."""
        needs = stage.task.needs_build
        return Ended(self.rounds, self.satisfied, self.built, needs, needs and not stage.builds)


def _is_over(said: UserReply | None) -> bool:
    """Whether a dialogue ends: there was no answer, the user is satisfied, or said nothing that can be passed on."""
    return said is None or said.status == "FULLY_SATISFIED" or not said.text


def _record(turn: int, answered: Answered, made: _Made, said: UserReply | None) -> TurnRecord:
    own = AssistTurn(
        answer=answered.answer,
        explored=list(answered.explored),
        steps=answered.steps,
        unread=answered.unread,
        unrun=answered.unrun,
        forced=answered.forced,
        changed=made.changes.names,
        refused=list(made.changes.refused),
        build=made.build,
        user=said,
    )
    answer: tuple[Reply, None] | None = None if answered.reply is None else (answered.reply, None)
    fields = {**own.model_dump(), "usage": answered.usage, "latency_s": answered.latency_s}
    return TurnRecord.of(turn, answered.request, answer, **fields)
