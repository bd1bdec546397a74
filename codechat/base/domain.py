"""The shared values of the package: frozen, without behaviour.

A *session* is one dialogue over one task; a *turn* is one request and its reply, turn 0 being the initial generation;
an *agenda* fixes the type of instruction of every later turn.
"""

import operator
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

Role = Literal["system", "user", "assistant"]
Scope = Literal["cosmetic", "structural", "semantic"]
Change = Literal["add", "remove", "modify"]
Outcome = Literal["pass", "fail", "timeout", "no_code", "syntax_error", "crash"]
Decided = Literal["outside", "inside"]
AdherenceVerdict = Literal["adhered", "violated", "undecided"]
CommandEnd = Literal["exit", "timeout", "memory", "killed"]
Unrun = Literal["unfit", "none", "some"]
StepKind = Literal["command", "edit", "tool"]
TurnEnd = Literal["exit", "error", "time", "requests", "tokens", "cost", "memory", "disk"]
Tier = Literal["standard", "flex", "batch"]
STANDARD: Tier = "standard"
FLEX: Tier = "flex"
BATCH: Tier = "batch"

SCOPES: tuple[Scope, ...] = get_args(Scope)
CHANGES: tuple[Change, ...] = get_args(Change)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
STEP_KINDS: tuple[StepKind, ...] = get_args(StepKind)


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str


_ADDED = Field(exclude_if=operator.not_)
"""Marks fields that were added to records later: left out where they are empty."""


CHARS_PER_TOKEN = 3.5
"""Characters of a token, for estimates. Measured by the tokenizers of SmolLM2, Qwen, GPT-4 and GPT-4o: 2.6 to 3.4 of
code and tasks, 3.2 to 3.8 of judges' prompts, 3.5 to 4.3 of replies with code; MINT's endpoints counted 3.2 to 3.7."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or several calls, as the endpoint counted them.

    Input tokens include cached tokens and tokens written to the endpoint's prompt cache; output tokens include
    `reasoning_tokens`, of thoughts. `tiers` has the parts of all these that other tiers than the standard one served
    (`flex`, `batch`).
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: Annotated[int, _ADDED] = 0
    reasoning_tokens: Annotated[int, _ADDED] = field(default=0, kw_only=True)
    tiers: Annotated[Mapping[str, "Usage"], _ADDED] = field(default_factory=dict, hash=False)

    def __add__(self, other: "Usage") -> "Usage":
        if other is NO_USAGE:  # of steps that ask no model
            return self
        tiers = self.tiers
        if other.tiers:
            tiers = {**tiers, **{name: tiers.get(name, NO_USAGE) + part for name, part in other.tiers.items()}}
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            tiers,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )

    def __sub__(self, other: "Usage") -> "Usage":
        tiers = {name: part - other.tiers.get(name, NO_USAGE) for name, part in self.tiers.items()}
        return Usage(
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            self.cached_input_tokens - other.cached_input_tokens,
            self.cache_write_tokens - other.cache_write_tokens,
            {name: part for name, part in tiers.items() if part != NO_USAGE},
            reasoning_tokens=self.reasoning_tokens - other.reasoning_tokens,
        )

    def served_as(self, tier: str) -> "Usage":
        """The same tokens, all of them served in a tier."""
        return replace(self, tiers={} if tier == STANDARD else {tier: replace(self, tiers={})})

    def by_tier(self) -> "Iterator[tuple[str, Usage]]":
        """The tokens by tier, the standard one first, without empty parts."""
        if not self.tiers:
            yield STANDARD, self
            return
        standard = replace(self, tiers={})
        for part in self.tiers.values():
            standard -= part
        if standard != NO_USAGE:
            yield STANDARD, standard
        yield from self.tiers.items()

    def counts(self) -> dict[str, int]:
        """The numbers of tokens by name, for records."""
        named = {name: getattr(self, name) for name in ("input_tokens", "output_tokens", "cached_input_tokens")}
        added = {"cache_write_tokens": self.cache_write_tokens, "reasoning_tokens": self.reasoning_tokens}
        return named | {name: count for name, count in added.items() if count}

    def fields(self) -> dict[str, Any]:
        """The fields for records; `of` reads them."""
        tiers = {name: part.counts() for name, part in self.tiers.items()}
        return {**self.counts(), **({"tiers": tiers} if tiers else {})}

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "Usage":
        """Read `fields`."""
        return cls(**{**fields, "tiers": {name: cls(**part) for name, part in fields.get("tiers", {}).items()}})


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Instruction:
    """One refinement request: its text, its kind in the taxonomy (paper III-B), and the rule that decides it.

    `rule` is data for the `rules` judge, or None if only an LLM can judge. `language` is the language of the code.
    """

    id: str
    text: str
    scope: Scope
    change: Change
    rule: Mapping[str, Any] | None = field(default=None, hash=False)
    language: str = "python"

    @property
    def kind(self) -> str:
        """`scope/change`, as in metrics keys."""
        return f"{self.scope}/{self.change}"


@dataclass(frozen=True, slots=True)
class Target:
    """The requirements on an answer: code in `language`, a tag as in a fence (```` ```python ````).

    `entry_point` is the name that the code must define, `signature` the line that it must keep; empty if the task
    requires none.
    """

    language: str = "python"
    entry_point: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program to be tested, and its target."""

    source: str
    target: Target = Target()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The usage and the attempts of an answer.

    `retries` counts repeated attempts of its calls, `rate_limited` attempts refused as too many. A `cached` answer has
    the usage of the original call, but cost nothing now.
    """

    usage: Usage = NO_USAGE
    retries: int = 0
    rate_limited: int = 0
    cached: bool = False

    def plus(self, other: "Spent") -> "Spent":
        """The sum of both; `cached` if both were."""
        return Spent(
            usage=self.usage + other.usage,
            retries=self.retries + other.retries,
            rate_limited=self.rate_limited + other.rate_limited,
            cached=self.cached and other.cached,
        )

    def fields(self) -> dict[str, Any]:
        """The four fields, for another answer."""
        return {"usage": self.usage, "retries": self.retries, "rate_limited": self.rate_limited, "cached": self.cached}


@dataclass(frozen=True, slots=True)
class AgentStep:
    """One step of a coding agent. `text`: a command, the path of a changed file, or another tool with its input.

    `output` is its result, bounded, and `status` the exit status of a command; None if unknown.
    """

    kind: StepKind
    text: str
    output: str = ""
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """What a coding agent did in a turn.

    `file` is the content of the code's file at the end, None without one; `lines_added` and `lines_removed` count its
    changes in the turn. `elsewhere` is the number of other files that changed, `diff` their changes, bounded.
    `omitted` counts steps that are not kept. `ran_code`: a command ran the code before the last message.

    `ended` is the limit that ended the agent; else it ended by itself (`exit`), or with another `status` than 0
    (`error`). `requests` counts its calls of the endpoint, `unmetered` answered ones without usage, `replayed` calls
    whose answers an interrupted attempt at the turn had paid for; such a turn has several `attempts`. `remembers`: the
    agent went on with its conversation, else the workspace was all it had of earlier turns.
    """

    file: str | None
    steps: tuple[AgentStep, ...] = ()
    omitted: int = 0
    ran_code: bool = False
    lines_added: int = 0
    lines_removed: int = 0
    elsewhere: int = 0
    diff: str = ""
    ended: TurnEnd = "exit"
    status: int | None = None
    requests: int = 0
    unmetered: int = 0
    replayed: int = 0
    attempts: int = 1
    remembers: bool = False

    def slim(self) -> "Trajectory":
        """The trajectory without its texts; its steps keep their kinds."""
        steps = tuple(AgentStep(each.kind, "", status=each.status) for each in self.steps)
        return replace(self, file=self.file and "", steps=steps, diff="")


@dataclass(frozen=True, slots=True)
class Reply(Spent):
    """A model's answer. `text` is the whole reply, reasoning included if the endpoint puts it in the text; `reasoning`
    is what the endpoint sends apart, or stands between the marks of `model.thoughts`.

    `fingerprint` identifies the model's version: the reply's `system_fingerprint`, or the version that the provider
    names. The code of a coding agent is the file in its `trajectory`; its last message decides nothing.
    """

    text: str
    finish_reason: str | None = "stop"
    latency_s: float = 0.0
    fingerprint: str | None = None
    reasoning: Annotated[str, _ADDED] = ""
    trajectory: Annotated[Trajectory | None, _ADDED] = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """Code found in a reply.

    `code` is the reply's text; `program` is executed (test code and main guard removed). `problem` is None if the
    program can be run; `reason` is why it cannot, or how it was found. A reply without code has other code that
    `lacks_name`, the entry point's, or none at all.
    """

    code: str | None
    program: str | None
    problem: Literal["no_code", "syntax_error"] | None
    reason: str
    lacks_name: bool = False


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

    def given_fields(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of tests on a program; `passed_base` is the result of the base tests alone.

    `inside` is why program and tests shared a process, where the program could have forged the verdict: empty if they
    did not, None if unknown. `by_program`: the program itself caused that when it ran. `unrun` is why tests did not
    run, if the suite can distinguish this from failing tests: they do not compile with a program that compiles by
    itself (`unfit`), there is no test (`none`), or some are skipped or do not end (`some`).
    """

    outcome: Outcome
    passed_base: bool
    failure: Failure | None = None
    cpu_s: float = 0.0
    inside: str | None = None
    by_program: bool = False
    unrun: Unrun | None = None

    @property
    def decided(self) -> Decided | None:
        """Whether the verdict was out of the program's reach."""
        return None if self.inside is None else "inside" if self.inside else "outside"

    @property
    def passed(self) -> bool:
        return self.outcome == "pass"

    @classmethod
    def without_run(cls, outcome: Outcome, reason: str) -> "Verdict":
        """The verdict on an answer that could not be run at all."""
        return cls(outcome, passed_base=False, failure=Failure(reason), inside="")


@dataclass(frozen=True, slots=True)
class Applicability(Spent):
    """Whether an instruction fits a code; None if undecided."""

    applicable: bool | None
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Applicabilities(Spent):
    """Decisions about several instructions and one code, in their order, with their total usage."""

    decisions: tuple[Applicability, ...]


@dataclass(frozen=True, slots=True)
class Contradiction(Spent):
    """Whether two instructions cannot both be followed in one change of a code; None if undecided."""

    contradicts: bool | None
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Compliance(Spent):
    """Whether a code keeps a constraint of its task; None if undecided."""

    met: bool | None
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Adherence(Spent):
    """Whether a change did what the instruction asked, correctness aside (paper III-E1)."""

    verdict: AdherenceVerdict
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """The end of a command in a room, with its standard output and standard error together as legible text.

    `status` is the exit status, 128 + the signal's number after a signal, and None after a limit: `ended` names the
    limit, "killed" being any other end by the room. If the output was too long, `cut` is True and the text says how
    much is missing between its head and its tail. `seconds` is time by the clock.
    """

    text: str
    status: int | None
    ended: CommandEnd = "exit"
    cut: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Build:
    """Whether a room's environment could be built with a maintainer's files, the log's legible end, and the seconds.

    `test` is the output of the dataset's test command in the built image, if there is one.
    """

    ok: bool
    log: str
    seconds: float = 0.0
    test: Output | None = None
