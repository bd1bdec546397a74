"""What the rooms hand to each other: frozen values without behaviour of their own.

The terms are the field's: a *session* is one dialogue over one task; a *turn* is one request and its
reply, turn 0 being the initial generation; an *agenda* fixes the type of instruction of every later turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
class InputOutputTests:
    """Calls whose results must equal the reference's (EvalPlus style).

    `base` and `plus` hold one argument tuple per call; `atol` is the absolute tolerance for floats;
    `oracle` names the comparison (see `codechat.sandbox.oracle`). `expected_base` and `expected_plus` hold one result
    per call where the dataset gives them; where None, the results are the reference's.
    """

    base: tuple[tuple[Any, ...], ...]
    plus: tuple[tuple[Any, ...], ...]
    atol: float = 0.0
    oracle: str = "equal"
    expected_base: tuple[Any, ...] | None = None
    expected_plus: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class AssertionTests:
    """Python snippets that follow a program and hold it to assertions, its source text included where they read it."""

    snippets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RepositoryTests:
    """Tests that live in a repository, run in a copy of it in which the program takes a function's place.

    `repository` is the project's folder, None where nobody said where it is; `file` holds the function, and its path
    is relative to that folder, as those of the pytest ids in `nodes` are. `lines` are the function's first and last
    line, from 1; `indent` the columns by which its `def` is indented.
    """

    repository: str | None
    file: str
    lines: tuple[int, int]
    indent: int
    nodes: tuple[str, ...]


ProgramTests = AssertionTests | RepositoryTests


@dataclass(frozen=True, slots=True)
class Requirement:
    """A verifiable instruction: what is asked, and the tests that say whether code meets it.

    `strategy` is its type (CodeIF-Bench, Table 1). `accumulates` is False where later code need not keep it, as for a
    functionality extension: it counts at its own turn alone. `asked` is False where the dataset leaves it out of its
    conversation: only where every requirement is asked by itself is it asked too.
    """

    id: str
    strategy: str
    text: str
    tests: ProgramTests
    accumulates: bool = True
    asked: bool = True


@dataclass(frozen=True, slots=True)
class Task:
    """One programming task. `reference` is shown to baselines and to the sandbox, never to a model under test.

    `signature` is the `def` line that the answer must keep; `prompt` is the problem statement as the dataset words it;
    `reference` is a complete program that defines `entry_point`. `assertions` are the task's own tests where
    the dataset has no calls to compare. `requirements` are what is asked of the program after the prompt, in order,
    where the dataset has a conversation of its own; `level` is the dataset's own grading.
    """

    task_id: str
    prompt: str
    entry_point: str
    signature: str
    reference: str | None
    tests: InputOutputTests
    assertions: ProgramTests | None = None
    requirements: tuple[Requirement, ...] = ()
    level: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dataset:
    """Tasks in order, with the hash of their whole content."""

    name: str
    tasks: tuple[Task, ...]
    content_hash: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer. `text` is the whole reply, reasoning included where the endpoint puts it in the text.

    `retries` counts the repeated attempts of this call, `rate_limited` those that were refused as too many. A `cached`
    reply was given before: usage and latency are what they were then, and nothing was paid now.
    """

    text: str
    finish_reason: str | None = "stop"
    usage: Usage = Usage()
    latency_s: float = 0.0
    retries: int = 0
    rate_limited: int = 0
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Extraction:
    """Code found in a reply.

    `code` keeps the reply's own text; `program` is what is executed (test code and main guard removed).
    `problem` is None where the program can be run; `reason` tells why it cannot, or what was done to get it.
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
class Applicability:
    """Whether an instruction fits a code; None where nobody could decide."""

    applicable: bool | None
    by: str
    reason: str = ""
    usage: Usage = Usage()
    retries: int = 0
    rate_limited: int = 0
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Adherence:
    """Whether a change did what the instruction asked, correctness aside (paper III-E1)."""

    verdict: AdherenceVerdict
    by: str
    reason: str = ""
    usage: Usage = Usage()
    retries: int = 0
    rate_limited: int = 0
    cached: bool = False
