"""CodeIF-Bench's static conversation: one verifiable instruction a turn, in order, no feedback (paper 3.1).

Below it are the rules of the benchmark's own harness: how it extracts code, which tests it appends, its time limit.
They keep their faults, so that published verdicts can be reproduced: a fence counts only if its opening line is exactly
"```python", a test that does not parse fails every program, and the verdict is an exit status, which the tested code
can choose. The verdict that codechat trusts, of the suite `assertions`, is recorded too.
"""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from pydantic import field_validator

from codechat.base.config import Config, original_option
from codechat.base.domain import Extraction, Message, Reply, Verdict
from codechat.base.errors import ContextOverflow, UserError
from codechat.base.records import SessionRecord, TurnRecord
from codechat.base.template import fill, require
from codechat.datasets.tasks import Requirement, Task
from codechat.models import UNDER_TEST
from codechat.report.metrics import Effort
from codechat.run.protocols import PROTOCOLS, Ask, Kit, Parts
from codechat.run.protocols.dialogue import Graded, grade_in_order
from codechat.sandbox.languages import code_text, extract, without_thinking
from codechat.sandbox.languages.python.target import is_python
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.exit_status import ExitStatus
from codechat.studies.codeif import conversation
from codechat.studies.codeif.conversation import CONTEXT_FULL, Check, Prompts, Round, checks_of, fail_all, turn_record
from codechat.studies.codeif.metrics import conversation_metrics, static_measures

Mode = Literal["base", "single_round", "multi_round", "n_round"]

WALL_S = 3.0
UNSCORED = "Functionality Extension"  # such a requirement may contradict the tests of the task
_FENCE = re.compile(r"```python\r?\n(.*?)```", re.DOTALL)
_DOCSTRING = re.compile(r' {4}"""\r?\n.*?"""', re.DOTALL)
Context = Literal["full", "single", "multi", "n_round"]


class StaticPrompts(Prompts):
    """The prompts; `{{name}}` is filled in."""

    together: str = original_option(
        ..., "the task with requirements in one message; fills {{prompt}}, {{requirement}} and {{signature}}"
    )

    @field_validator("together")
    @classmethod
    def _check_fields(cls, text: str) -> str:
        return require(text, "prompt", "requirement", may=("signature",))


class StaticConfig(Config):
    """Options of the static conversation."""

    kind: Literal["static"] = original_option("static", "the protocol")
    context: Context = original_option(
        "full", "what a request holds: full (the whole dialogue), or single, multi, n_round as in the published runs"
    )
    harness: Literal["guarded", "official"] = original_option(
        "guarded",
        "official: code is extracted by CodeIF-Bench's own harness, whose verdict is recorded next to the guarded one",
    )
    prompts: StaticPrompts = original_option(..., "a preset by its name, or each prompt as a text or @FILE")


@dataclass(frozen=True, slots=True)
class Tested:
    """All requirements asked so far (`given`, the turn's own last), and the ones `tested` at the turn."""

    given: tuple[Requirement, ...]
    tested: tuple[Requirement, ...]


class Static:
    """The conversation over any of the four contexts. Tests run while the next turn is generated."""

    def __init__(self, config: StaticConfig) -> None:
        self._config = config
        self.measures = static_measures(converses=self._converses, official=config.harness == "official")

    @property
    def _converses(self) -> bool:
        """Whether a turn builds on the turns before it."""
        return self._config.context in ("full", "n_round")

    def turns(self, task: Task) -> int:
        """The task itself, then one turn for each requirement. Raises `UserError` if there is none."""
        if self._config.harness == "official" and not isinstance(task.suite, Assertions):
            raise UserError(
                f"{task.task_id} has no assertion tests, which CodeIF-Bench's harness needs",
                "set protocol.harness=guarded, or choose the function-level tasks of dataset=codeif_bench",
            )
        conversation.task_requirement(task)
        return 1 + len(self._asked(task))

    def asks(self, task: Task) -> Iterator[Ask]:
        continued = self._config.context == "full"
        return conversation.expected_asks(self._config.prompts, task, self.turns(task), continued=continued)

    def _asked(self, task: Task) -> tuple[Requirement, ...]:
        """The requirements to ask. If turns are independent, also the ones left out of the data's conversation."""
        return tuple(each for each in conversation.requirements_of(task) if each.asked or not self._converses)

    def agenda(self, generator: random.Random) -> list[str]:
        return []

    async def run(self, task: Task, kit: Kit) -> None:
        asked = self._asked(task)
        replies: list[str] = []
        codes: list[str] = []
        async with grade_in_order() as grading:
            for turn in range(len(asked) + 1):
                if (recorded := kit.recorded(turn)) is not None:
                    self._refuse_other_order(task, turn, recorded)
                request = layout(self._config, task, asked[:turn], replies)
                try:
                    is_last = turn == len(asked)
                    reply = await kit.ask(UNDER_TEST, turn, request, code=self._before(codes), final=is_last)
                except ContextOverflow:
                    grading.start(partial(self._overflow, kit, task, turn, request))
                    break
                round_ = self._round(task, turn, request)
                grading.start(partial(self._grade, kit, task, round_, reply))
                replies.append(without_thinking(reply.text))
                codes.append(
                    extract(code_text(reply, task.target.language), task.target).code or (codes[-1] if codes else "")
                )

    def _refuse_other_order(self, task: Task, turn: int, recorded: TurnRecord) -> None:
        """Raises `UserError` if the recorded turn asks for another instruction than the task does now."""
        instructions = (conversation.task_requirement(task), *self._asked(task))
        if conversation.recorded_instruction(recorded, instructions).id != instructions[turn].id:
            raise UserError(f"{task.task_id} asks in another order now", "set dataset.path to the recorded file")

    def _before(self, codes: Sequence[str]) -> str | None:
        """The code that a request builds on, for baselines."""
        if not codes or self._config.context == "single":
            return None
        return (codes[0] if self._config.context == "multi" else codes[-1]) or None

    def _round(self, task: Task, turn: int, request: tuple[Message, ...]) -> Round:
        instruction = self._asked(task)[turn - 1] if turn else conversation.task_requirement(task)
        return Round(turn, "instruction" if turn else "initial", instruction, request)

    def _tested(self, task: Task, turn: int) -> Tested:
        """The task, the turn's requirement and, if turns build on each other, the earlier ones that accumulate."""
        given = self._asked(task)[:turn]
        earlier = given[:-1] if self._converses else ()
        return Tested(
            given, (conversation.task_requirement(task), *(each for each in earlier if each.accumulates), *given[-1:])
        )

    async def _grade(self, kit: Kit, task: Task, round_: Round, reply: Reply, earlier: Graded | None) -> TurnRecord:
        scope = self._tested(task, round_.turn)
        extraction = self._extract(task, round_.turn, reply)
        try:
            checks = await checks_of(kit, round_.turn, extraction, scope.tested, _ids(scope.tested))
            official = await self._official(kit, task, round_, scope, reply)
        finally:
            if earlier is not None:
                await earlier
        record = turn_record(task, round_, checks, (reply, extraction), official=official)
        kit.finish_turn(record)
        return record

    def _extract(self, task: Task, turn: int, reply: Reply) -> Extraction:
        """The code of a reply; under the official harness's rules both verdicts are on the same program."""
        if self._config.harness == "guarded":
            return extract(code_text(reply, task.target.language), task.target)
        program = official_code(self._mode(turn), code_text(reply, task.target.language))
        problem: Literal["syntax_error"] | None = None if is_python(program) else "syntax_error"
        return Extraction(
            official_code("base", code_text(reply, task.target.language)),
            program,
            problem,
            "as CodeIF-Bench's harness takes it",
        )

    async def _official(self, kit: Kit, task: Task, round_: Round, scope: Tested, reply: Reply) -> Verdict | None:
        if self._config.harness == "guarded" or not isinstance(task.suite, Assertions):
            return None
        mode = self._mode(round_.turn)
        current = scope.given[-1] if scope.given else None
        snippets = official_tests(mode, task.suite, scope.given, current)
        if snippets is None:
            return None
        source = official_source(official_code(mode, code_text(reply, task.target.language)), snippets)
        return await kit.check_program(round_.turn, source, ExitStatus(wall_s=WALL_S))

    def _mode(self, turn: int) -> Mode:
        if turn == 0:
            return "base"
        modes: dict[Context, Mode] = {"single": "single_round", "multi": "multi_round"}
        return modes.get(self._config.context, "n_round")

    async def _overflow(
        self, kit: Kit, task: Task, first: int, request: tuple[Message, ...], earlier: Graded | None
    ) -> TurnRecord:
        """The conversation no longer fits: this turn and all later ones meet nothing; returns the last."""
        if earlier is not None:
            await earlier
        for turn in range(first, self.turns(task)):
            tested = self._tested(task, turn).tested
            checks: list[Check] = fail_all(tested, _ids(tested), CONTEXT_FULL)
            record = turn_record(task, self._round(task, turn, request if turn == first else ()), checks, None)
            kit.finish_turn(record)
        kit.log.ended = "context_overflow"
        return record

    def metrics(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        return conversation_metrics(sessions, self.measures, converses=self._converses, seed=seed, effort=effort)


@PROTOCOLS.register("static", StaticConfig, uses=frozenset({"sandbox"}), with_desk={"context": "full"})
def static(config: StaticConfig, parts: Parts) -> Static:
    """One verifiable instruction a turn in the data's order, without feedback (CodeIF-Bench)."""
    return Static(config)


def layout(
    config: StaticConfig, task: Task, given: Sequence[Requirement], replies: Sequence[str]
) -> tuple[Message, ...]:
    """The messages of a turn that asks for the last of `given`, after the `replies` of earlier turns."""
    prompts = config.prompts
    start = prompts.opening(task)
    if not given:
        return (start,)
    asked = [Message("user", fill(prompts.requirement, requirement=each.text)) for each in given]
    said = [Message("assistant", reply) for reply in replies]
    match config.context:
        case "single":
            return (_together(prompts, task, given[-1:]),)
        case "multi":
            return (start, said[0], asked[-1])
        case "n_round":
            earlier = given[:-1]
            return (_together(prompts, task, earlier) if earlier else start, said[-1], asked[-1])
        case "full":
            return (start, *(message for pair in zip(said, asked, strict=True) for message in pair))


def _together(prompts: StaticPrompts, task: Task, requirements: Sequence[Requirement]) -> Message:
    texts = "\n".join(each.text for each in requirements)
    prompt = task.prompt.strip("\n")
    return Message("user", fill(prompts.together, prompt=prompt, requirement=texts, signature=task.target.signature))


def _ids(instructions: Sequence[Requirement]) -> frozenset[str]:
    return frozenset(each.id for each in instructions)


def official_code(mode: Mode, reply: str) -> str:
    """The code that the harness extracts from a reply: the first ```python fence, else the whole reply.

    Except in `base`, two things are deleted: docstrings in triple double quotes after four spaces whose text begins on
    the line after the quotes, then blank lines.
    """
    fence = _FENCE.search(reply)
    code = fence.group(1) if fence else reply
    if mode == "base":
        return code
    return "\n".join(line for line in _DOCSTRING.sub("", code).splitlines() if line.strip())


def official_tests(
    mode: Mode, task: Assertions, asked: Sequence[Requirement], current: Requirement | None
) -> tuple[str, ...] | None:
    """The snippets that the harness appends; None if it gives no verdict.

    `asked` are the requirements so far, the current one last. An extension of the function is tested only by its own
    test; in `n_round` it has no verdict and does not count in later turns.
    """
    if current is None:
        return task.snippets
    if mode != "n_round":
        snippets = _snippets(current)
        return snippets if current.strategy == UNSCORED else (*task.snippets, *snippets)
    if current.strategy == UNSCORED:
        return None
    return (*task.snippets, *(text for each in asked if each.strategy != UNSCORED for text in _snippets(each)))


def _snippets(requirement: Requirement) -> tuple[str, ...]:
    """The assertions of a requirement; the harness has no tests of repositories."""
    return requirement.suite.snippets if isinstance(requirement.suite, Assertions) else ()


def official_source(code: str, snippets: Sequence[str]) -> str:
    """The file that the harness runs."""
    return "\n".join([code, *snippets])
