"""The verbs of a protocol: ask a model, let a judge decide, check a program, run a command, draw a random number.

Every verb is a journal step: its result is on disk before the protocol sees it, and a resumed session gets the
recorded result. So a protocol must be deterministic given the results of its verbs.
"""

import functools
import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from codechat.base.domain import (
    Adherence,
    Applicabilities,
    Applicability,
    Build,
    Compliance,
    Extraction,
    Instruction,
    Message,
    Output,
    Program,
    Reply,
    Verdict,
)
from codechat.base.errors import ContextOverflow
from codechat.base.files import GrowingHash, content_hash
from codechat.base.records import CallRecord, TurnRecord
from codechat.base.seeding import generator
from codechat.datasets.tasks import Task
from codechat.judging import (
    ADHERENCE,
    APPLICABILITY,
    CONSTRAINT,
    ConstraintQuestion,
    DecidesConstraints,
    DecidesTogether,
    Judge,
)
from codechat.judging.deciding import Decision, Question, decide
from codechat.models import UNDER_TEST, BaselineView, Request
from codechat.run.protocols.answers import Overflowed, by_role, call_record
from codechat.run.protocols.services import CheckOnce, Player, Services
from codechat.run.protocols.session_log import EqualTurns, SessionLog
from codechat.run.protocols.visit import Visit
from codechat.sandbox import Command, Ran
from codechat.sandbox.suites import Suite
from codechat.studies.cab.environments import Environment
from codechat.studies.multicodeif.constraints import Finding
from codechat.studies.multicodeif.constraints.examining import Inquiry

T = TypeVar("T")


class Kit:
    """The verbs of one session. `on_turn` gets every finished turn, in order, and whether one of its steps is new."""

    def __init__(
        self, task: Task, session_id: str, seed: int, services: Services, on_turn: Callable[[TurnRecord, bool], None]
    ) -> None:
        self.log = SessionLog()
        self._worked_at: set[int] = set()  # turns with a step that was not in the journal
        self._task, self._session, self._seed = task, session_id, seed
        self._services, self._on_turn = services, on_turn
        self._conversations: dict[str, GrowingHash] = {}
        self._numbers: Counter[tuple[int, str]] = Counter()
        self._calls: dict[int, list[CallRecord]] = defaultdict(list)  # of protocols with further roles
        self._asked: dict[str, tuple[Message, ...]] = {}  # each role's last request
        self._tested = EqualTurns()
        self._visit = Visit(task, services.environment, services.brake)

    @property
    def judge_offline(self) -> bool:
        """Whether the judge calls no endpoint, so that a decision costs nothing."""
        return self._services.judge_offline

    def generator(self, purpose: str, seed: int | None = None) -> random.Random:
        """A separate random generator for each purpose, by (seed, task, purpose); `seed` replaces the cell's own."""
        return generator(self._seed if seed is None else seed, self._task.task_id, purpose)

    def finish_turn(self, turn: TurnRecord) -> None:
        """Append a finished turn to the session's record, with the calls of further roles. Turns come in order."""
        if (equal := self._tested.finish(turn.turn)) is not None:
            turn = turn.model_copy(update={"tested_as": equal})
        if self._services.has_roles:
            turn = turn.model_copy(update=by_role(self._calls[turn.turn]))
        self.log.turns.append(turn)
        self._on_turn(turn, turn.turn in self._worked_at)

    def recall(self, turn: TurnRecord, *, anew: Collection[str]) -> None:
        """Keep the recorded calls of a turn that is scored again, but those of roles that are asked `anew`."""
        self._calls[turn.turn][:0] = [call for call in turn.calls() if call.role not in anew]

    async def ask(
        self,
        role: str,
        turn: int,
        messages: tuple[Message, ...],
        *,
        instruction: Instruction | None = None,
        code: str | None = None,
        reference: str | None = None,
        final: bool = False,
    ) -> Reply:
        """The reply of the model that plays a role (`UNDER_TEST`, or one that the protocol declares).

        Only baselines see `instruction`, the current `code` and `reference` (that of this turn, if not the task's).
        `final`: no later request repeats the last message. Raises `ContextOverflow`.
        """
        player, request = self._player(role), self._request(role, turn, messages, final=final)
        if player.baseline:
            request = replace(request, view=BaselineView(self._task, instruction, code, self._seed, reference))

        async def call() -> Reply | Overflowed:
            self._services.brake.check()
            await player.gate.check()
            try:
                return await player.model.complete(request)
            except ContextOverflow as overflow:
                return Overflowed(str(overflow))

        digest = self._conversation(role).of(messages)
        name = f"{role}/{request.number}" if request.number else role
        answer: Reply | Overflowed = await self._step(turn, name, digest, Reply | Overflowed, call, payer=role)
        if self._services.has_roles:
            self._calls[turn].append(call_record(role, messages, answer, self._asked.get(role, ())))
            self._asked[role] = messages
        if isinstance(answer, Overflowed):
            raise ContextOverflow(answer.overflow)
        return answer

    async def decide(self, role: str, turn: int, question: Question) -> Decision:
        """A role's decision: one of the question's answers, or undecided. See `codechat.judging.deciding`."""
        player, place = self._player(role), self._request(role, turn, (), final=True)

        async def call() -> Decision:
            self._services.brake.check()
            await player.gate.check()
            return await decide(player.model, question, place)

        digest = content_hash([question.prompt, {label: list(words) for label, words in question.answers.items()}])
        decision = await self._step(turn, f"{role}/{question.name}", digest, Decision, call, payer=role)
        if self._services.has_roles:
            said = None if decision.answers is None else "\n".join(": ".join(pair) for pair in decision.answers.items())
            reply = Reply(said or "", **decision.fields())
            self._calls[turn].append(call_record(role, (Message("user", question.prompt),), reply))
        return decision

    async def applicable(self, turn: int, code: str, instruction: Instruction) -> Applicability:
        """Whether the instruction fits the code."""
        judge, gate = self._judge()

        async def call() -> Applicability:
            await gate.check()
            return await judge.applicable(code, instruction)

        digest = content_hash([code, instruction.id, instruction.text])
        name = f"{APPLICABILITY}/{instruction.id}"
        return await self._step(turn, name, digest, Applicability, call, payer=APPLICABILITY, free=self.judge_offline)

    async def applicable_together(self, turn: int, code: str, instructions: Sequence[Instruction]) -> Applicabilities:
        """Whether each of some instructions fits the code, by a judge that can be asked about several at once."""
        judge, gate = self._judge()
        if not isinstance(judge, DecidesTogether):
            raise TypeError("this judge is asked about one instruction at a time")

        async def call() -> Applicabilities:
            await gate.check()
            return await judge.applicable_together(code, instructions)

        digest = content_hash([code, *([each.id, each.text] for each in instructions)])
        name = f"{APPLICABILITY}/together/{instructions[0].id}"
        return await self._step(turn, name, digest, Applicabilities, call, payer=APPLICABILITY)

    async def adherence(self, turn: int, before: str, after: str, instruction: Instruction) -> Adherence:
        """Whether the change does what was asked."""
        judge, gate = self._judge()

        async def call() -> Adherence:
            await gate.check()
            return await judge.adherence(before, after, instruction)

        digest = content_hash([before, after, instruction.id, instruction.text])
        return await self._step(turn, ADHERENCE, digest, Adherence, call, payer=ADHERENCE, free=self.judge_offline)

    async def comply(self, turn: int, question: ConstraintQuestion) -> Compliance:
        """Whether a code keeps a constraint, as the judge says; undecided if it decides no constraints."""
        judge, gate = self._judge()
        if not isinstance(judge, DecidesConstraints):
            return Compliance(None, "none", "the cell's judge decides no constraints; judge=llm does")

        async def call() -> Compliance:
            await gate.check()
            return await judge.constraint(question)

        asked = [question.prompt, question.constraint, question.code, question.reference]
        digest = content_hash([*asked, question.like_reference] if question.like_reference else asked)
        name = f"{CONSTRAINT}/{question.index}"
        return await self._step(turn, name, digest, Compliance, call, payer=CONSTRAINT, free=self.judge_offline)

    async def examine(self, turn: int, inquiries: Sequence[Inquiry]) -> list[Finding]:
        """What rules find in the turn's code, in the order of the questions."""
        examiner = self._services.examiner
        if examiner is None:
            raise ValueError("the protocol examines code, and its tasks have no constraints")
        digest = content_hash([inquiry.key for inquiry in inquiries])
        return await self._step(turn, "examine", digest, list[Finding], lambda: examiner.find(inquiries), free=True)

    async def check(self, turn: int, extraction: Extraction, suite: Suite) -> Verdict:
        """The suite's verdict on the extracted program, or on its absence."""
        if extraction.problem is not None or extraction.program is None:
            return Verdict.without_run(extraction.problem or "no_code", extraction.reason)
        return await self.check_program(turn, extraction.program, suite)

    async def check_program(self, turn: int, source: str, suite: Suite) -> Verdict:
        """The suite's verdict on a whole program for the task."""
        tests, program = self._services.tests, Program(source, self._task.target)
        verdict = await self._check(turn, program, suite, tests.check)
        self._tested.add(turn, tests.remember(program, suite, verdict))
        return verdict

    async def check_reference(self, turn: int, source: str, suite: Suite) -> Verdict:
        """The same of a program of the dataset's own, run once a process: its verdict depends on the task alone."""
        return await self._check(turn, Program(source, self._task.target), suite, self._services.tests.check_reference)

    async def run(self, turn: int, command: Command) -> Ran:
        """Run a command in a box of the sandbox; its exit status and output."""
        return await self._step(turn, "run", command.key, Ran, lambda: self._services.tests.run(command))

    @property
    def environment(self) -> Environment | None:
        """Where the session's repository is; None if the protocol uses none."""
        return self._services.environment

    async def enter(self, turn: int) -> None:
        """Open the session's repository before the first call, so that what cannot be had costs nothing.

        With `environment=docker` its image is built then. Raises as `Environment.open`.
        """

        async def enter() -> bool:
            await self._player(UNDER_TEST).gate.check()
            await self._visit.enter()
            return True

        await self._step(turn, "room", "", bool, enter, free=True)

    async def command(self, turn: int, command: str) -> Output:
        """Run a command by a fresh shell in the session's repository. Raises as `Environment.open`."""
        name, run = f"command/{self._number(turn, 'command')}", functools.partial(self._visit.run, command)
        output: Output = await self._step(turn, name, content_hash(command), Output, run, free=True)
        self._visit.remember(command)
        return output

    async def build(self, turn: int, files: Mapping[str, str], dockerfile: str | None) -> Build:
        """Build the session's environment with a maintainer's files, and its Dockerfile if it gave one.

        Whatever comes of it, later commands find the files in the repository, as they were built.
        """
        name, digest = f"build/{self._number(turn, 'build')}", content_hash([dict(files), dockerfile])
        built = await self._step(turn, name, digest, Build, lambda: self._visit.build(files, dockerfile))
        self._visit.remember_build(files)
        return built

    async def aclose(self) -> None:
        """End the session's room."""
        await self._visit.aclose()

    async def _check(
        self, turn: int, program: Program, suite: Suite, check: Callable[[Program, Suite], Awaitable[Verdict]]
    ) -> Verdict:
        """The step of a check, the same whoever wrote the program."""
        digest = content_hash([program.source, suite.key])
        return await self._step(turn, f"check/{suite.kind}", digest, Verdict, lambda: check(program, suite))

    def _request(self, role: str, turn: int, messages: tuple[Message, ...], *, final: bool) -> Request:
        """A call of a role, numbered among its calls at this turn."""
        number = self._number(turn, role)
        return Request(messages, self._task.task_id, turn, None, self._seed, role, number, final)

    def _number(self, turn: int, what: str) -> int:
        number = self._numbers[turn, what]
        self._numbers[turn, what] += 1
        return number

    def _player(self, role: str) -> Player:
        player = self._services.players.get(role)
        if player is None:
            raise ValueError(f"the protocol asks the role '{role}', which its config does not declare")
        return player

    def _judge(self) -> tuple[Judge, CheckOnce]:
        services = self._services
        if services.judge is None or services.judge_gate is None:
            raise ValueError("the protocol asks the judge of instructions, which it does not name in `uses`")
        return services.judge, services.judge_gate

    def _conversation(self, role: str) -> GrowingHash:
        return self._conversations.setdefault(role, GrowingHash(lambda message: [message.role, message.content]))

    async def _step(
        self,
        turn: int,
        name: str,
        digest: str,
        kind: Any,
        compute: Callable[[], Awaitable[T]],
        *,
        payer: str | None = None,
        free: bool = False,
    ) -> T:
        """A step of the session. After an interruption none begins; a budget stops only steps that call an endpoint."""

        async def begin() -> T:
            if self._services.brake.interrupted:
                self._services.brake.check()
            self._worked_at.add(turn)
            return await compute()

        journal, step = self._services.journal, f"{turn}/{name}"
        result: T = await journal.step(self._session, step, digest, kind, begin, payer=payer, free=free)
        return result
