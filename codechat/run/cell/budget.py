"""The prices of a cell's calls, and its budget over all its processes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from codechat.base.config import Config
from codechat.base.domain import Usage
from codechat.base.errors import UserError
from codechat.judging import ADHERENCE, APPLICABILITY
from codechat.models import MODELS, UNDER_TEST, ModelConfig
from codechat.models.calls import Brake
from codechat.models.calls.purse import plus
from codechat.models.prices import Price, price_of, prices_of
from codechat.models.roles import models_in, role_of
from codechat.report.metrics.spending import Tariff, spent_usd
from codechat.run.journal import Ledger
from codechat.run.settings.config import CellConfig


@dataclass(frozen=True, slots=True)
class Budget:
    """US dollars and tokens of all roles together; None is no limit. Replies from the response cache are free.

    A shard's budget is its share of the cell's: `shards` is their number, 1 for a whole cell.
    """

    usd: float | None
    tokens: int | None
    tariff: Tariff
    shards: int = 1

    def __post_init__(self) -> None:
        """Raises `UserError` for a budget in dollars if an endpoint's price is unknown."""
        if self.usd is not None and self.tariff.unpriced:
            place = self.tariff.unpriced[0]
            raise UserError(
                f"budget_usd needs the prices of {', '.join(self.tariff.unpriced)}",
                f"set dollars per million tokens, e.g. {place}.prices='{{input: 1.25, output: 10}}' "
                "(0 if it costs nothing), or use budget_tokens",
            )

    @classmethod
    def of(cls, config: CellConfig) -> "Budget":
        """The budget of a cell. Raises `UserError` for dollars without prices."""
        judge = config.judge if "judge" in config.uses else None
        tariff = tariff_of(config.model, judge, config.protocol, config.questions)
        return cls(config.budget_usd, config.budget_tokens, tariff)

    def spent_usd(self, ledger: Ledger) -> float | None:
        """The dollars spent so far on models with a known price; None if no price is known."""
        return self._known_usd(ledger.spent)

    def progress(self, ledger: Ledger) -> dict[str, float]:
        """The tokens and known dollars spent so far. May be called in another thread than the one that counts."""
        sums = Ledger(dict(ledger.of))  # a payer may be added meanwhile
        dollars = self.spent_usd(sums)
        return {"tokens": sums.tokens} | ({} if dollars is None else {"dollars": dollars})

    def _known_usd(self, used: Mapping[str, Usage]) -> float | None:
        known = [cost for cost in spent_usd(used, self.tariff).values() if cost is not None]
        return sum(known) if known else None

    @property
    def is_limited(self) -> bool:
        return self.usd is not None or self.tokens is not None

    def left(self, ledger: Ledger, reserved: Mapping[str, Usage] = MappingProxyType({})) -> float:
        """The part that is left, 1 of the whole, after reserved tokens by role; infinity without a limit.

        Of dollars and tokens the one of which less is left counts.
        """
        if not self.is_limited:
            return math.inf
        return 1.0 - self.part(plus(ledger.committed, reserved))

    def part(self, used: Mapping[str, Usage]) -> float:
        """The part of the budget that some tokens are, by role."""
        tokens = sum(each.input_tokens + each.output_tokens for each in used.values())
        by_tokens = 0.0 if self.tokens is None else tokens / max(self.tokens, 1)
        return by_tokens if self.usd is None else max(by_tokens, (self._known_usd(used) or 0.0) / max(self.usd, 1e-12))

    def reason_to_stop(self, ledger: Ledger, spent: Mapping[str, Usage] = MappingProxyType({})) -> str:
        """The budget that is used up, in words; empty if none is. A batch counts when it is submitted.

        `spent` are tokens by role that the ledger does not have yet.
        """
        divided, used = f" / {self.shards} shards" if self.shards > 1 else "", plus(ledger.committed, spent)
        tokens = sum(each.input_tokens + each.output_tokens for each in used.values())
        if self.tokens is not None and tokens >= self.tokens:
            return f"the budget of {self.tokens:,} tokens (budget_tokens{divided}) is reached"
        if self.usd is not None and (self._known_usd(used) or 0.0) >= self.usd:
            return f"the budget of ${self.usd:,.2f} (budget_usd{divided}) is reached"
        return ""

    def words_on_stop(self, ledger: Ledger, brake: Brake) -> str:
        """A message for the user if a budget, or an unreadable judge, ended the cell early, else empty."""
        if not brake.refused:
            return ""
        if brake.remedy:
            return f"{brake.reason}. The cell stopped there; everything finished is kept.\n{brake.remedy}"
        paid = self.spent_usd(ledger)
        spent = f"{ledger.tokens:,} tokens" + (f", ${paid:,.2f}" if paid is not None else "")
        key = brake.reason.partition("(")[2].partition(")")[0]
        return (
            f"{brake.reason}: {spent} spent, and everything finished is kept.\n"
            f"To go on, run the same command with a higher {key}: it resumes."
        )


def tariff_of(
    model: ModelConfig,
    judge: Config | None = None,
    protocol: Config | None = None,
    questions: tuple[str, ...] = (APPLICABILITY, ADHERENCE),
) -> Tariff:
    """The prices of a cell's models, by role; a `judge` is asked the `questions`.

    A judge's model serves the role of its option's name, or all roles if no role has that name.
    """
    judging = dict(models_in(judge, "judge")) if judge else {}
    further = dict(models_in(protocol, "protocol")) if protocol else {}
    roles = questions if judge else ()
    prices: dict[str, Price | None] = {UNDER_TEST: price_of(model)}
    for name in roles:
        serving = (each for place, each in judging.items() if role_of(place) == name or role_of(place) not in roles)
        first, *others = [price_of(each) for each in serving] or [None]
        prices[name] = first if all(price == first for price in others) else None
    prices.update(tariff_of_roles(further).prices)
    return Tariff(prices, roles, tariff_of_roles({"model": model, **judging, **further}).unpriced)


def tariff_of_roles(models: Mapping[str, ModelConfig]) -> Tariff:
    """The prices of models by role: the last part of a model's place in the config."""
    unpriced = [place for place, each in models.items() if prices_of(each) is None and not is_free(each)]
    return Tariff({role_of(place): price_of(each) for place, each in models.items()}, (), tuple(unpriced))


def is_free(model: ModelConfig) -> bool:
    """Whether a model calls no endpoint and has no price."""
    traits = MODELS.of(model).traits
    return traits.baseline or (traits.offline and model.prices is None)
