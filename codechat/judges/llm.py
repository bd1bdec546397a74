"""A language model as judge: chain-of-thought prompts, a strictly read verdict, and doubt where there is none.

Two roles, each with a model of its own (paper, sections III-D1, III-E1 and IV-C). What is judged is quoted between
marker lines whose mark is a hash of the quoted text, so no text can hold its own end marker; and a verdict counts only
as the single verdict line at the end of the judge's own answer. A reply without one is asked for again, then given up:
`undecided`, never guessed. A judge whose context is too small is undecided too, since the candidate's code made it so;
a judge that cannot be reached is an `InfrastructureError`.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import SerializeAsAny, ValidationInfo, field_validator

from codechat.config import Config, result_option
from codechat.domain import Adherence, AdherenceVerdict, Applicability, Instruction, Message, Reply, Usage
from codechat.errors import ContextOverflow, InfrastructureError, UserError
from codechat.judges import JUDGES, JudgeConfig
from codechat.languages import without_thinking
from codechat.models import MODELS, Model, ModelConfig, Request
from codechat.template import fill, require

MAX_REASON = 300
MAX_VERDICT_LINE = 100

_VERDICT = re.compile(r"^[\s>*_`#]*VERDICT[\s*_`]*:[\s*_`]*(\w+(?:[ -]\w+)?)[\s*_`.]*$", re.IGNORECASE)
_REASON_LINE = re.compile(r"^[\s>*_`#]*REASON[\s*_`]*:[\s*_`]*(.+)$", re.IGNORECASE)


class JudgePrompts(Config):
    """The judge's prompts, as whole texts with `{{fields}}`."""

    applicability: str = result_option(..., "asks whether {{instruction}} applies to {{code}}")
    adherence: str = result_option(..., "asks whether the change from {{before}} to {{after}} follows {{instruction}}")
    reask: str = result_option(..., "asks again for one of {{verdicts}} after a reply that could not be read")

    @field_validator("applicability", "adherence", "reask")
    @classmethod
    def _has_its_fields(cls, value: str, info: ValidationInfo) -> str:
        if info.field_name == "reask":
            return require(value, "verdicts")
        fields = ("code",) if info.field_name == "applicability" else ("before", "after")
        return require(value, "instruction", *fields, may=("boundary",))


class LlmJudgeConfig(JudgeConfig):
    """Which models judge, with which prompts."""

    kind: Literal["llm"] = result_option("llm", "which judge")
    applicability: SerializeAsAny[ModelConfig] = result_option(..., "model that decides whether an instruction applies")
    adherence: SerializeAsAny[ModelConfig] = result_option(..., "model that decides whether it was followed")
    prompts: JudgePrompts = result_option(..., "the prompts")
    max_reasks: int = result_option(2, "how often a verdict that cannot be read is asked for again", ge=0, le=10)

    @field_validator("applicability", "adherence", mode="before")
    @classmethod
    def _a_model(cls, value: Any, info: ValidationInfo) -> Any:
        place = f"judge.{info.field_name}"
        config = MODELS.validate(value, place) if isinstance(value, Mapping) else value
        if isinstance(config, ModelConfig) and MODELS.of(config).baseline:
            raise UserError(f"{place}: '{config.kind}' is a baseline and cannot judge", f"choose model@{place}=NAME")
        return config


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a judge's replies came to; `verdict` is None where none could be read."""

    verdict: str | None
    reason: str
    spent: "Spent"


@dataclass(frozen=True, slots=True)
class Spent:
    """What the replies of one decision took; `cached`: the response cache had them all."""

    usage: Usage = field(default_factory=Usage)
    retries: int = 0
    rate_limited: int = 0
    cached: bool = True

    def __add__(self, reply: Reply) -> "Spent":
        return Spent(
            self.usage + reply.usage,
            self.retries + reply.retries,
            self.rate_limited + reply.rate_limited,
            self.cached and reply.cached,
        )


@JUDGES.register("llm", LlmJudgeConfig)
class LlmJudge:
    """Language models judge, one for applicability and one for adherence (the paper's way)."""

    def __init__(self, config: LlmJudgeConfig) -> None:
        self.config = config
        self._applicability: Model = MODELS.of(config.applicability).factory(config.applicability)
        self._adherence = self._applicability  # one model for both roles shares its limit of calls
        if config.adherence != config.applicability:
            self._adherence = MODELS.of(config.adherence).factory(config.adherence)

    @property
    def _models(self) -> list[Model]:
        return list({id(model): model for model in (self._applicability, self._adherence)}.values())

    async def check(self) -> None:
        """Check both models."""
        for model in self._models:
            await model.check()

    async def aclose(self) -> None:
        """Close both models."""
        for model in self._models:
            await model.aclose()

    async def applicable(self, code: str, instruction: Instruction) -> Applicability:
        """Ask the first model; `applicable` is None where no verdict could be read."""
        prompt = quoted(self.config.prompts.applicability, instruction=instruction.text, code=code)
        opinion = await self._ask(self._applicability, prompt, ("APPLICABLE", "NOT_APPLICABLE"))
        decided = None if opinion.verdict is None else opinion.verdict == "APPLICABLE"
        spent = opinion.spent
        return Applicability(
            decided, "llm", opinion.reason, spent.usage, spent.retries, spent.rate_limited, spent.cached
        )

    async def adherence(self, before: str, after: str, instruction: Instruction) -> Adherence:
        """Ask the second model; `undecided` where no verdict could be read."""
        prompt = quoted(self.config.prompts.adherence, instruction=instruction.text, before=before, after=after)
        opinion = await self._ask(self._adherence, prompt, ("ADHERED", "VIOLATED"))
        words: dict[str | None, AdherenceVerdict] = {"ADHERED": "adhered", "VIOLATED": "violated"}
        verdict = words.get(opinion.verdict, "undecided")
        spent = opinion.spent
        return Adherence(verdict, "llm", opinion.reason, spent.usage, spent.retries, spent.rate_limited, spent.cached)

    async def _ask(self, model: Model, prompt: str, verdicts: tuple[str, str]) -> Opinion:
        messages = [Message("user", prompt)]
        reask = fill(self.config.prompts.reask, verdicts="\n".join(f"VERDICT: {word}" for word in verdicts))
        spent = Spent()
        for attempt in range(self.config.max_reasks + 1):
            try:
                reply = await model.complete(Request(tuple(messages), f"judge:{verdicts[0].lower()}", attempt))
            except ContextOverflow:
                return Opinion(None, "the question does not fit the judge's context", replace(spent, cached=False))
            except InfrastructureError as error:
                error.retries += spent.retries
                error.rate_limited += spent.rate_limited
                raise
            spent += reply
            answer = without_thinking(reply.text)
            found = read_verdict(answer, verdicts)
            if found is not None:
                return Opinion(*found, spent)
            messages += [Message("assistant", answer.strip() or "(no text)"), Message("user", reask)]
        return Opinion(None, f"no readable verdict in {self.config.max_reasks + 1} replies", spent)


def quoted(template: str, **parts: str) -> str:
    """The prompt with every part between marker lines that the part itself cannot contain."""
    boundary = _boundary(parts)
    blocks = {
        name: f"<<<BEGIN {name.upper()} {boundary}>>>\n{text}\n<<<END {name.upper()} {boundary}>>>"
        for name, text in parts.items()
    }
    return fill(template, boundary=boundary, **blocks)


def _boundary(parts: Mapping[str, str]) -> str:
    """A mark that depends on nothing but the parts, and occurs in none of them."""
    content = "\x1f".join(parts.values())
    mark = content
    while (mark := hashlib.sha256(mark.encode("utf-8", "surrogatepass")).hexdigest()[:24]) in content:
        pass
    return mark


def read_verdict(answer: str, verdicts: tuple[str, ...]) -> tuple[str, str] | None:
    """The verdict and its reason, if the answer ends with its only verdict; markdown around it is forgiven."""
    lines = [line.strip() for line in answer.splitlines() if line.strip(" \t`~")]
    words = [word for word in map(_verdict_of, lines) if word in verdicts]
    if len(words) != 1 or _verdict_of(lines[-1]) != words[0]:
        return None
    return words[0], _reason(lines[:-1])


def _verdict_of(line: str) -> str | None:
    match = _VERDICT.match(line) if len(line) <= MAX_VERDICT_LINE else None
    return re.sub("[ -]", "_", match.group(1)).upper() if match else None


def _reason(lines: list[str]) -> str:
    """The line that says so, or else the last one before the verdict; one line, bounded."""
    stated = [match.group(1) for match in map(_REASON_LINE.match, lines) if match]
    reason = stated[-1] if stated else (lines[-1] if lines else "")
    return reason if len(reason) <= MAX_REASON else reason[: MAX_REASON - 1] + "…"
