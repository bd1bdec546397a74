"""The gate between turns: a reply whose code fails the tests is asked for again, and given up after the last try.

The remedy of Regression Accumulation (arXiv 2607.01855). By default the gate sees the base tests alone, while a turn's
verdict is of all tests: else the measure would teach the model.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from codechat.base.domain import Extraction, Failure, Message, Reply, Usage, Verdict
from codechat.base.errors import ContextOverflow
from codechat.base.records import CALLS, GATE, CallRecord, TurnRecord
from codechat.base.template import fill
from codechat.datasets.tasks import Task
from codechat.models import UNDER_TEST
from codechat.run.protocols import Ask, Kit
from codechat.run.protocols.services import Overflowed, call_record, reply_of
from codechat.sandbox.languages import code_text, extract, without_thinking
from codechat.sandbox.suites import Suite

GateKind = Literal["none", "silent", "tests"]
GateTests = Literal["base", "all"]
PROMPT = """That code does not pass the tests:

{{failure}}

Correct it and reply with the whole code in the same form as before."""
REFUSED = 0.15
"""The share of replies that the gate is expected to refuse, for estimates: near the paper's rates of regression."""
ASSUMED = (f"a gate refuses {REFUSED:.0%} of the replies, and as many of those to each further try",)
EXPLAINED = 300
"""Characters of a message about a failing test."""


class Asks(Protocol):
    """Asks the model under test for the turn's reply."""

    async def __call__(self, messages: tuple[Message, ...], *, again: int, final: bool) -> Reply: ...


@dataclass(frozen=True, slots=True)
class Answered:
    """The last reply to a turn's request, with its code.

    `fields` are the turn's in the record if the model was asked again. If `rolled_back`, the code before stands.
    """

    reply: Reply
    extraction: Extraction
    rolled_back: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gate:
    """Asks again, at most `tries` times a turn: by the same request, or about the failing test by the `prompt`."""

    kind: GateKind
    tries: int
    tests: GateTests
    prompt: str

    async def answer(
        self, kit: Kit, turn: int, request: tuple[Message, ...], suite: Suite, ask: Asks, *, final: bool
    ) -> Answered:
        """The reply to a turn's request that passes the gate, else the last one.

        After the last try the turn is rolled back, unless it is turn 0, whose code nothing precedes. A session that is
        scored again keeps its replies and roll-backs. Raises `ContextOverflow` if the request itself does not fit; a
        further try that does not fit is the last.
        """
        if (recorded := kit.recorded(turn)) is not None and GATE in (recorded.model_extra or {}):
            return await self._answer_recorded(kit, recorded, suite)
        tries = 0 if self.kind == "none" or recorded is not None else self.tries
        before, messages = tuple[Message, ...](), request
        calls, verdicts = list[CallRecord](), list[Verdict]()
        for number in range(tries + 1):
            try:
                reply = await ask(messages, again=number, final=final and number == tries)
            except ContextOverflow as overflow:
                if not number:
                    raise
                calls.append(call_record(UNDER_TEST, messages, Overflowed(str(overflow)), before))
                break
            calls.append(call_record(UNDER_TEST, messages, reply, before))
            extraction = _code_of(reply, kit.task)
            if tries:
                verdicts.append(await kit.check(turn, extraction, suite, final=False))
            if not tries or self._lets_pass(verdicts[-1]):
                break
            before, messages = messages, self._next(messages, reply, verdicts[-1])
        if len(calls) == 1:
            return Answered(reply, extraction)
        accepted = self._lets_pass(verdicts[-1])
        return _answered(calls, verdicts, reply, extraction, accepted=accepted, rolled_back=turn > 0 and not accepted)

    async def _answer_recorded(self, kit: Kit, recorded: TurnRecord, suite: Suite) -> Answered:
        """The recorded replies with their verdicts of now."""
        calls, known = list(recorded.calls()), (recorded.model_extra or {})[GATE]
        replies = [reply_of(call) for call in calls if call.response is not None]
        made = [_code_of(reply, kit.task) for reply in replies]
        verdicts = [await kit.check(recorded.turn, each, suite, final=False) for each in made]
        ends = {name: known[name] for name in ("accepted", "rolled_back")}
        return _answered(calls, verdicts, replies[-1], made[-1], **ends)

    def _lets_pass(self, verdict: Verdict) -> bool:
        return verdict.passed_base if self.tests == "base" else verdict.passed

    def _next(self, messages: tuple[Message, ...], reply: Reply, verdict: Verdict) -> tuple[Message, ...]:
        """The next request: the same one, or one that continues it with the refused reply and the failing test."""
        if self.kind == "silent":
            return messages
        told = Message("user", fill(self.prompt, failure=_explained(verdict)))
        return (*messages, Message("assistant", without_thinking(reply.text)), told)

    def asks(self, expected: Ask) -> Iterator[Ask]:
        """The expected calls of a turn whose first call is `expected`, which is the first of them."""
        yield expected
        for number in range(1, self.tries + 1 if self.kind != "none" else 1):
            further = replace(expected, times=REFUSED**number, shared=expected.characters)
            if self.kind == "tests":
                told = expected.characters + number * (len(self.prompt) + EXPLAINED)
                further = replace(further, characters=told, replies=expected.replies + number)
            yield replace(further, shared_replies=expected.replies)


def _code_of(reply: Reply, task: Task) -> Extraction:
    return extract(code_text(reply, task.target.language), task.target)


def _answered(
    calls: Sequence[CallRecord],
    verdicts: Sequence[Verdict],
    reply: Reply,
    extraction: Extraction,
    *,
    accepted: bool,
    rolled_back: bool,
) -> Answered:
    """The answer of a turn whose model was asked again; the tokens of further tries are counted apart."""
    tries = [
        {"outcome": each.outcome, "passed": each.passed, "passed_base": each.passed_base}
        | ({"failure": each.failure.given_fields()} if each.failure else {})
        for each in verdicts
    ]
    further = sum((call.usage for call in calls[1:]), Usage())
    return Answered(reply, extraction, rolled_back, {
        "usage": calls[0].usage, "usage_by_role": {GATE: further.fields()},
        CALLS: [call.model_dump() for call in calls],
        GATE: {"tries": tries, "accepted": accepted, "rolled_back": rolled_back},
    })  # fmt: skip


def _explained(verdict: Verdict) -> str:
    """The first failing test in words. Tests run in order, the base tests first: a base test if these fail."""
    failure = verdict.failure or Failure(verdict.outcome)
    parts = {
        "Arguments": failure.input,
        "Expected": failure.expected,
        "Result": failure.actual,
        "Exception": failure.exception,
    }
    return "\n".join([failure.reason, *(f"{name}: {text}" for name, text in parts.items() if text is not None)])
