"""What a cell used: tokens and, where a price is known, money."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from codechat.records import SessionRecord, UsageRecord

Payer = Literal["model", "judge"]


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. Cached input tokens are part of the input tokens, at their own price."""

    input: float
    output: float
    cached_input: float

    def cost(self, usage: UsageRecord) -> float:
        """The price of what was used, in US dollars."""
        fresh = usage.input_tokens - usage.cached_input_tokens
        paid = fresh * self.input + usage.cached_input_tokens * self.cached_input + usage.output_tokens * self.output
        return paid / 1_000_000


class Tokens(BaseModel):
    """Tokens of the model under test and of the judges."""

    model: UsageRecord
    judge: UsageRecord


class Costs(BaseModel):
    """US dollars; None where no price is known, which is not the same as free."""

    model: float | None
    judge: float | None


def tokens_of(sessions: Iterable[SessionRecord]) -> Tokens:
    """The tokens of all turns, those spent on checking candidates at a skipped turn included."""
    turns = [turn for session in sessions for turn in session.turns]
    return Tokens(model=_total(turn.usage for turn in turns), judge=_total(turn.judge_usage for turn in turns))


def _total(usages: Iterable[UsageRecord]) -> UsageRecord:
    total = UsageRecord()
    for usage in usages:
        total = UsageRecord(
            input_tokens=total.input_tokens + usage.input_tokens,
            output_tokens=total.output_tokens + usage.output_tokens,
            cached_input_tokens=total.cached_input_tokens + usage.cached_input_tokens,
        )
    return total


def costs_of(tokens: Tokens, prices: Mapping[Payer, Price]) -> Costs:
    """What the tokens cost."""
    return Costs(
        model=prices["model"].cost(tokens.model) if "model" in prices else None,
        judge=prices["judge"].cost(tokens.judge) if "judge" in prices else None,
    )
