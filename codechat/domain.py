"""What the rooms hand to each other: frozen values without behaviour of their own.

The terms are the field's: a *session* is one dialogue over one task; a *turn* is one request and its
reply, turn 0 being the initial generation; an *agenda* fixes the type of instruction of every later turn.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

Role = Literal["system", "user", "assistant"]
Scope = Literal["cosmetic", "structural", "semantic"]
Change = Literal["add", "remove", "modify"]
Outcome = Literal["pass", "fail", "timeout", "no_code", "syntax_error", "crash"]
AdherenceVerdict = Literal["adhered", "violated", "undecided"]

SCOPES: tuple[Scope, ...] = get_args(Scope)
CHANGES: tuple[Change, ...] = get_args(Change)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or several calls, as the endpoint counted them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
        )

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            self.cached_input_tokens - other.cached_input_tokens,
        )


@dataclass(frozen=True, slots=True)
class Instruction:
    """One refinement request: its text, its cell in the taxonomy (paper III-B), and the rule that decides it.

    `rule` is data that the `rules` judge understands, or None where only an LLM can judge.
    """

    id: str
    text: str
    scope: Scope
    change: Change
    rule: Mapping[str, Any] | None = field(default=None, hash=False)

    @property
    def cell(self) -> str:
        """`scope/change`, as in metrics keys."""
        return f"{self.scope}/{self.change}"


@dataclass(frozen=True, slots=True)
class Target:
    """What an answer must be: code in `language`, and what it must define where the task says so.

    `language` is a tag as in a fence (```` ```python ````). `entry_point` is the name that the code must define, and
    `signature` the line that it must keep; both are empty where the task demands none.
    """

    language: str = "python"
    entry_point: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program to be tested, and what it was to be."""

    source: str
    target: Target = Target()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What an answer took.

    `retries` counts the repeated attempts of its calls, `rate_limited` those that were refused as too many. A `cached`
    answer was given before: its usage is what it was then, and nothing was paid now.
    """

    usage: Usage = Usage()
    retries: int = 0
    rate_limited: int = 0
    cached: bool = False

    def plus(self, other: "Spent") -> "Spent":
        """What both took; `cached` if both were."""
        return Spent(
            usage=self.usage + other.usage,
            retries=self.retries + other.retries,
            rate_limited=self.rate_limited + other.rate_limited,
            cached=self.cached and other.cached,
        )

    def fields(self) -> dict[str, Any]:
        """These four alone, to make another answer of."""
        return {
            "usage": self.usage,
            "retries": self.retries,
            "rate_limited": self.rate_limited,
            "cached": self.cached,
        }


@dataclass(frozen=True, slots=True)
class Reply(Spent):
    """A model's answer. `text` is the whole reply, reasoning included if the endpoint puts it in the text."""

    text: str
    finish_reason: str | None = "stop"
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Extraction:
    """Code found in a reply.

    `code` keeps the reply's own text; `program` is what is executed (test code and main guard removed).
    `problem` is None if the program can be run; `reason` says why it cannot, or what was done to get it.
    """

    code: str | None
    program: str | None
    problem: Literal["no_code", "syntax_error"] | None
    reason: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a program did not pass: the first failing input with both values (bounded reprs), or the exception."""

    reason: str
    suite: Literal["base", "plus"] | None = None
    index: int | None = None
    input: str | None = None
    expected: str | None = None
    actual: str | None = None
    exception: str | None = None
    stdout: str | None = None

    def stated(self) -> dict[str, Any]:
        """The fields that say something."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the tests say of a program. `passed_base` is the verdict of the base tests alone."""

    outcome: Outcome
    passed_base: bool
    failure: Failure | None = None
    cpu_s: float = 0.0

    @property
    def passed(self) -> bool:
        return self.outcome == "pass"

    @classmethod
    def without_run(cls, outcome: Outcome, reason: str) -> "Verdict":
        """The verdict on something that could not be run at all."""
        return cls(outcome, passed_base=False, failure=Failure(reason))


@dataclass(frozen=True, slots=True)
class Applicability(Spent):
    """Whether an instruction fits a code; None if nobody could decide."""

    applicable: bool | None
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Adherence(Spent):
    """Whether a change did what the instruction asked, correctness aside (paper III-E1)."""

    verdict: AdherenceVerdict
    by: str
    reason: str = ""
