"""The verbs of a unit of work: ask a model, let a judge decide, check a program, run a command, draw a random number.

Every verb but the last is a journal step: the result is on disk before the protocol sees it, and a resumed session gets
the recorded result. So a protocol must be deterministic given the results of the verbs. Verbs that only one study needs
are functions there, over `Unit.step_at`. Names and digests of steps are the format of journals: they must never change.
"""

import contextlib
import random
import shutil
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from codechat.base.domain import Extraction, Instruction, Message, Program, Reply, Verdict
from codechat.base.errors import ContextOverflow, UserError
from codechat.base.files import GrowingHash, content_hash
from codechat.base.records import CallRecord, SessionRecord, TurnRecord
from codechat.base.seeding import generator
from codechat.datasets.tasks import Task
from codechat.judging.deciding import Decision, Question, decide
from codechat.models import UNDER_TEST, BaselineView, Desk, Request
from codechat.models.calls.limits import dialogue_ended
from codechat.moved import moved_verb
from codechat.run.journal import Journal
from codechat.run.protocols.inputs import InputsRead
from codechat.run.protocols.services import (
    EqualTurns,
    Opened,
    Overflowed,
    Player,
    Services,
    SessionLog,
    by_role,
    call_record,
    reply_of,
    sendable,
)
from codechat.sandbox import Command, Ran
from codechat.sandbox.suites import Suite

T = TypeVar("T")


DESKS = "agents"
"""The folder of a cell, or a shard, in which agents keep what must survive this process."""


def desk_folder(journal: Journal, key: str) -> Path:
    """The folder in which the agent of a session keeps what must survive this process; removed with the session."""
    return journal.folder / DESKS / content_hash(key)[:16]


def clear_desk(journal: Journal, key: str) -> None:
    """Remove what the agent of a session has kept."""
    folder = desk_folder(journal, key)
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # other sessions have theirs
        folder.parent.rmdir()


class Unit:
    """The journal steps of one unit of work: a session, or an item that is made.

    `key` is the unit's key in the journal, `name` the task's or item's id. `place` is, in all verbs, the turn of a
    session or the stage of an item. `opened` holds what a study opens for this unit alone.
    """

    def __init__(self, key: str, name: str, seed: int, services: Services) -> None:
        self.services, self.opened = services, Opened()
        self.worked_at: set[int | str] = set()  # places with a step that was not in the journal
        self._key, self._name, self._seed = key, name, seed
        self._numbers: Counter[tuple[int | str, str]] = Counter()

    def player(self, role: str) -> Player:
        """The model of a role. Raises `ValueError` for one that nothing declares."""
        player = self.services.players.get(role)
        if player is None:
            raise ValueError(f"the role '{role}' is asked, which neither a protocol's config nor a recipe declares")
        return player

    def number(self, place: int | str, what: str) -> int:
        """The count of earlier calls of this method for `what` at a place."""
        number = self._numbers[place, what]
        self._numbers[place, what] += 1
        return number

    async def step_at(
        self,
        place: int | str,
        name: str,
        digest: str,
        kind: Any,
        compute: Callable[[], Awaitable[T]],
        *,
        payer: str | None = None,
        free: bool = False,
    ) -> T:
        """The result of a step, of the type `kind`: computed once, then found in the journal by name and digest.

        `payer` is the role that the step asks. A `free` step costs nothing to compute again. After an interruption no
        step begins; a budget stops only steps that call an endpoint.
        """

        async def begin() -> T:
            if self.services.brake.interrupted:
                self.services.brake.check()
            self.worked_at.add(place)
            return await compute()

        journal, step = self.services.journal, f"{place}/{name}"
        result: T = await journal.step(self._key, step, digest, kind, begin, payer=payer, free=free)
        return result

    async def answer_at(self, place: int | str, name: str, digest: str, request: Request) -> Reply | Overflowed:
        """The reply of the model of the request's role, as a step."""
        player = self.player(request.role)

        async def call() -> Reply | Overflowed:
            self.services.brake.check()
            await player.gate.check()
            try:
                return await player.model.complete(request)
            except ContextOverflow as overflow:
                return Overflowed(str(overflow))

        answer: Reply | Overflowed = await self.step_at(
            place, name, digest, Reply | Overflowed, call, payer=request.role
        )
        return answer

    async def run_at(self, place: int | str, command: Command) -> Ran:
        """Run a command in a box of the sandbox; returns exit status and output."""
        return await self.step_at(place, "run", command.key, Ran, lambda: self.services.tests.run(command))

    async def aclose(self) -> None:
        """Close the resources that were opened for the unit, and its conversations."""
        dialogue_ended(self._key)
        await self.opened.aclose()


class Kit(Unit):
    """The verbs of one session. `on_turn` gets every finished turn, in order, and whether one of its steps is new."""

    def __init__(
        self, task: Task, session_id: str, seed: int, services: Services, on_turn: Callable[[TurnRecord, bool], None]
    ) -> None:
        super().__init__(session_id, task.task_id, seed, services)
        self.log, self.task = SessionLog(), task
        self._on_turn = on_turn
        self._conversations: dict[str, GrowingHash] = {}
        self._calls: dict[int, list[CallRecord]] = defaultdict(list)  # of protocols with further roles
        self._asked: dict[str, tuple[Message, ...]] = {}  # each role's last request
        self._tested, self._inputs = EqualTurns(), InputsRead()
        self.recording: SessionRecord | None = None  # the session that is scored again
        self.anew: Collection[str] = ()  # roles that are asked again all the same

    def __getattr__(self, name: str) -> Any:
        """A verb that was a method before it became a function of its study: it works for one release."""
        return partial(moved_verb(name), self)

    def generator(self, purpose: str, seed: int | None = None) -> random.Random:
        """A separate random generator for each purpose, by (seed, task, purpose); `seed` replaces the cell's own."""
        return generator(self._seed if seed is None else seed, self._name, purpose)

    def finish_turn(self, turn: TurnRecord) -> None:
        """Append a finished turn to the session's record, with the calls of further roles. Turns come in order."""
        if (equal := self._tested.finish(turn.turn)) is not None:
            turn = turn.model_copy(update={"tested_as": equal})
        if self.services.has_roles:
            turn = turn.model_copy(update=by_role(self._calls[turn.turn]))
        recorded = self.recorded(turn.turn)
        turn = turn.model_copy(update={"request": sendable(turn.request) if recorded is None else recorded.request})
        if self._inputs.truncated(turn):
            turn = turn.model_copy(update={"truncated": True})
        self.log.turns.append(turn)
        self._on_turn(turn, turn.turn in self.worked_at)

    def recorded(self, turn: int) -> TurnRecord | None:
        """The recorded turn of a session that is scored again; None for a new session.

        Decisions on the path of a dialogue are taken from it: another decision would lead to another dialogue. Raises
        `UserError` if the recording has no such turn.
        """
        if self.recording is None:
            return None
        if turn >= len(self.recording.turns):
            raise self.changed()
        return self.recording.turns[turn]

    def ends(self, turn: int, over: bool) -> bool:
        """Whether a turn is the last: `over`, as its verdicts decide, or as recorded if the session is scored again."""
        return over if self.recording is None else turn + 1 == len(self.recording.turns)

    def changed(self) -> UserError:
        """The error that the task has other turns than its recording."""
        count = len(self.recording.turns) if self.recording else 0
        return UserError(
            f"the recording of {self.task.task_id} has {count} turns, and the task another number now",
            "set dataset.path to the recorded file",
        )

    def recall(self, turn: TurnRecord) -> None:
        """Keep the recorded calls of a turn that is scored again, except calls of roles that are asked again."""
        self._calls[turn.turn][:0] = [call for call in turn.calls() if call.role not in self.anew]

    async def ask(
        self,
        role: str,
        turn: int,
        messages: tuple[Message, ...],
        *,
        instruction: Instruction | None = None,
        further: tuple[Instruction, ...] = (),
        code: str | None = None,
        reference: str | None = None,
        final: bool = False,
        again: int = 0,
    ) -> Reply:
        """The reply of the model that plays a role (`UNDER_TEST`, or one that the protocol declares).

        An assistant's message without text is sent as `NO_TEXT`: endpoints refuse empty messages. Only baselines see
        `instruction`, `further` ones of the request, the current `code` and `reference` (this turn's own, if it is not
        the task's). `final`: no later request repeats the last message. `again` numbers the further replies to the
        turn's request, which are drawn anew. Raises `ContextOverflow`. A session that is scored again gets the recorded
        replies, except for the roles `anew`.
        """
        if role not in self.anew and (recorded := self.recorded(turn)) is not None:
            return reply_of(recorded) if role == UNDER_TEST else self._recorded_reply(recorded, role)
        request = replace(self._request(role, turn, tuple(sendable(messages)), final=final), again=again)
        if self.player(role).baseline:
            view = BaselineView(self.task, instruction, code, self._seed, reference, again, further)
            request = replace(request, view=view)
        if self.player(role).has_desk:
            folder = desk_folder(self.services.journal, self._key)
            request = replace(request, desk=Desk(self._key, self.task.start, folder, self.opened.get))
        digest = self._conversation(role).of(messages)
        name = f"{role}/{request.number}" if request.number else role
        answer = await self.answer_at(turn, name, digest, request)
        if self.services.has_roles:
            self._calls[turn].append(call_record(role, request.messages, answer, self._asked.get(role, ())))
            self._asked[role] = request.messages
        if isinstance(answer, Overflowed):
            raise ContextOverflow(answer.overflow)
        return answer

    async def decide(self, role: str, turn: int, question: Question) -> Decision:
        """A role's decision: one of the question's answers, or undecided. See `codechat.judging.deciding`."""
        player, place = self.player(role), self._request(role, turn, (), final=True)

        async def call() -> Decision:
            self.services.brake.check()
            await player.gate.check()
            return await decide(player.model, question, place)

        digest = content_hash([question.prompt, {label: list(words) for label, words in question.answers.items()}])
        decision = await self.step_at(turn, f"{role}/{question.name}", digest, Decision, call, payer=role)
        if self.services.has_roles:
            said = None if decision.answers is None else "\n".join(": ".join(pair) for pair in decision.answers.items())
            reply = Reply(said or "", **decision.fields())
            self._calls[turn].append(call_record(role, (Message("user", question.prompt),), reply))
        return decision

    async def check(self, turn: int, extraction: Extraction, suite: Suite, *, final: bool = True) -> Verdict:
        """The suite's verdict on the extracted program, or on its absence.

        With `final` the program is the turn's own; else another one may take its place.
        """
        if extraction.problem is not None or extraction.program is None:
            return Verdict.without_run(extraction.problem or "no_code", extraction.reason)
        return await self.check_program(turn, extraction.program, suite, final=final)

    async def check_program(self, turn: int, source: str, suite: Suite, *, final: bool = True) -> Verdict:
        """The suite's verdict on a whole program for the task; `final` as in `check`."""
        tests, program = self.services.tests, Program(source, self.task.target)
        verdict = await self._check(turn, program, suite, tests.check)
        known = tests.remember(program, suite, verdict)
        if final:
            self._tested.add(turn, known)
        return verdict

    async def check_reference(self, turn: int, source: str, suite: Suite) -> Verdict:
        """The verdict on a program of the dataset, run once a process: the verdict depends on the task alone."""
        return await self._check(turn, Program(source, self.task.target), suite, self.services.tests.check_reference)

    async def run(self, turn: int, command: Command) -> Ran:
        """Run a command in a box of the sandbox; returns exit status and output."""
        return await self.run_at(turn, command)

    async def _check(
        self, turn: int, program: Program, suite: Suite, check: Callable[[Program, Suite], Awaitable[Verdict]]
    ) -> Verdict:
        """The step of a check. It does not depend on the author of the program."""
        digest = content_hash([program.source, suite.key])
        return await self.step_at(turn, f"check/{suite.kind}", digest, Verdict, lambda: check(program, suite))

    def _recorded_reply(self, recorded: TurnRecord, role: str) -> Reply:
        """The recorded reply of a further role: the next one of the turn."""
        number, calls = self.number(recorded.turn, role), [call for call in recorded.calls() if call.role == role]
        if number >= len(calls):
            raise self.changed()
        self._calls[recorded.turn].append(calls[number])
        return reply_of(calls[number])

    def _request(self, role: str, turn: int, messages: tuple[Message, ...], *, final: bool) -> Request:
        """A call of a role, numbered among its calls at this turn."""
        number = self.number(turn, role)
        return Request(messages, self.task.task_id, turn, None, self._seed, role, number, final)

    def _conversation(self, role: str) -> GrowingHash:
        return self._conversations.setdefault(role, GrowingHash(lambda message: [message.role, message.content]))
