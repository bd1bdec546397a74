"""The verbs of a stage: ask a role, decide, fill in a form, check or examine code, run a command, ask people, draw.

Every verb but the last is a journal step: its result is on disk before the stage sees it, and a resumed item gets the
recorded result. So a stage must be deterministic given the results of its verbs.
"""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from codechat.base.domain import Message, Program, Reply, Usage, Verdict
from codechat.base.errors import ContextOverflow
from codechat.base.files import content_hash
from codechat.base.seeding import generator
from codechat.judging.deciding import Decision, Filled, Form, Question, decide, fill_in
from codechat.models import Request
from codechat.run.construct.interface import Answer, Dropped, Item, OnQuestion, Settled, Waits, question_id
from codechat.run.protocols.kit import Unit
from codechat.run.protocols.services import Overflowed, Services
from codechat.sandbox import Command, Ran
from codechat.sandbox.suites import Suite

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
DRAWS = 1_000_003
"""Apart from each other by more than any user's seeds: the numbers of further draws of one request."""


@dataclass(frozen=True)
class People:
    """People's answers by question, and what is done with a question that has none."""

    answers: Mapping[str, Answer] = field(default_factory=dict)
    on_question: OnQuestion = "wait"


class Kit(Unit):
    """The verbs of one item. `unit` is its key in the journal, `item` its id; the engine sets the current `stage`."""

    def __init__(self, unit: str, item: str, seed: int, services: Services, people: People) -> None:
        super().__init__(unit, item, seed, services)
        self.stage = ""
        self.used: dict[tuple[str, str], tuple[int, Usage]] = {}  # calls by stage and role, cached replies included
        self.asked: list[dict[str, str]] = []  # questions to people that were settled, for the provenance
        self.provisional = False  # whether a question was settled by `on_question`: an answer may still come
        self.waiting = ""  # the id of the last question
        self.kept: Sequence[Item] = ()  # in a stage of all items together: the items that earlier rounds kept
        self._people = people

    @property
    def new(self) -> bool:
        """Whether any step was not in the journal."""
        return bool(self.worked_at)

    def generator(self, purpose: str, of: str | None = None) -> random.Random:
        """A separate random generator for each purpose, by (seed, item, purpose); `of` is a name that items share."""
        return generator(self._seed, self._name if of is None else of, f"construct/{purpose}")

    async def ask(self, role: str, messages: tuple[Message, ...] | str, *, draw: int = 0) -> Reply:
        """The reply of a role's model; a text is one message of the user. Raises `ContextOverflow`.

        Equal requests may get equal replies from the response cache; `draw` numbers requests that must be independent.
        """
        sent = (Message("user", messages),) if isinstance(messages, str) else messages
        number = self.number(self.stage, role)
        request = Request(sent, self._name, number, sample=self._seed + DRAWS * draw, role=role, number=number)
        digest = content_hash([[message.role, message.content] for message in sent] + ([draw] if draw else []))
        answer = await self.answer_at(self.stage, f"{role}/{number}", digest, request)
        if isinstance(answer, Overflowed):
            raise ContextOverflow(answer.overflow)
        calls, usage = self.used.get((self.stage, role), (0, Usage()))
        self.used[self.stage, role] = calls + 1, usage + answer.usage
        return answer

    async def decide(self, role: str, question: Question) -> Decision:
        """A role's decision: one of the question's answers, or undecided. Each re-ask is a step."""
        return await decide(_Asked(self), question, self._request(role))

    async def fill_in(self, role: str, form: Form[M], *, draw: int = 0) -> Filled[M]:
        """A role's answer as an object that fits the form's schema; None in it if no reply did. `draw` as in `ask`."""
        return await fill_in(_Asked(self, draw), form, self._request(role))

    async def check(self, program: Program, suite: Suite) -> Verdict:
        """The suite's verdict on a program, run in the sandbox. A program that was tested before is not run again."""
        digest, check = content_hash([program.source, suite.key]), self.services.tests.check
        return await self.step_at(self.stage, f"check/{suite.kind}", digest, Verdict, lambda: check(program, suite))

    async def run(self, command: Command) -> Ran:
        """Run a command in a box of the sandbox; returns exit status and output."""
        return await self.run_at(self.stage, command)

    async def step(self, name: str, inputs: Any, kind: Any, compute: Callable[[], Awaitable[T]]) -> T:
        """A step of another kind, such as a request to a website: computed once, then found in the journal.

        `inputs` is a JSON value of all that the result depends on; `kind` is a type that pydantic can write and read.
        """
        return await self.step_at(self.stage, f"own/{name}", content_hash(inputs), kind, compute)

    def people(self, question: str, suggestion: str = "") -> str | None:
        """People's answer to a question; None if the item is kept unchanged.

        Without an answer the stage ends here, unless `on_question` takes the suggestion or keeps the item. With the
        answer, the stage runs again and finds its earlier steps in the journal.
        """
        identity = question_id(self._name, self.stage, self.number(self.stage, "people"), question)
        given = self._people.answers.get(identity)
        self.provisional |= given is None
        do = self._people.on_question if given is None else given.do or "answer"
        by = "people" if given is not None else f"on_question={do}"
        self.waiting = identity
        if do == "wait":
            raise Settled(Waits(question, suggestion))
        self.asked.append({"question": identity, "stage": self.stage, "by": by})
        if do == "drop":
            raise Settled(Dropped("question", f"{by}: {question}"))
        if do == "keep":
            return None
        return suggestion if given is None or given.answer is None else given.answer

    def _request(self, role: str) -> Request:
        return Request((), self._name, 0, role=role)


class _Asked:
    """The model of the role that a request names; each reply is a step."""

    def __init__(self, kit: Kit, draw: int = 0) -> None:
        self._kit, self._draw = kit, draw

    async def check(self) -> None: ...

    async def complete(self, request: Request) -> Reply:
        return await self._kit.ask(request.role, request.messages, draw=self._draw)

    async def aclose(self) -> None: ...
