"""Running sums of a cell's usage by role, kept in the journal over all processes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from codechat.base.domain import NO_USAGE, STANDARD, Reply, Spent, Usage

APART = "@"
"""Separates a payer from the tier that served its tokens, unless it is the standard one: `model@batch`."""


class Charge(NamedTuple):
    """The usage of one call, or of all calls of a payer: a role with its tier.

    A reply of the response cache counts no tokens.
    """

    payer: str
    calls: int = 0
    cached_replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    retries: int = 0
    rate_limited: int = 0
    cache_write_tokens: int = 0

    @property
    def usage(self) -> Usage:
        """The tokens, in the payer's tier."""
        used = Usage(self.input_tokens, self.output_tokens, self.cached_input_tokens, self.cache_write_tokens)
        return used.served_as(self.payer.partition(APART)[2] or STANDARD)

    def plus(self, other: "Charge") -> "Charge":
        """The sum, with this charge's payer."""
        return Charge(self.payer, *(a + b for a, b in zip(self[1:], other[1:], strict=True)))


COUNTS = Charge._fields[1:]


def charges_of(payer: str, value: Any) -> tuple[Charge, ...]:
    """The charges of a step's value, one for each tier; none if no model was asked for it.

    Calls and attempts are in the charge of the standard tier.
    """
    if not isinstance(value, Spent):
        return ()
    asked = isinstance(value, Reply) or value.usage != NO_USAGE
    if not (asked or value.retries or value.rate_limited):
        return ()
    attempts = Charge(payer, int(asked), int(value.cached), retries=value.retries, rate_limited=value.rate_limited)
    if value.cached:
        return (attempts,)
    if not value.usage.tiers:
        return (attempts.plus(Charge(payer, **_paid(value.usage))),)
    return (attempts, *(charge_for(payer, part.served_as(tier)) for tier, part in value.usage.by_tier()))


def charge_for(payer: str, usage: Usage) -> Charge:
    """The charge of tokens that one tier served."""
    (tier,) = usage.tiers or (STANDARD,)
    return Charge(payer if tier == STANDARD else f"{payer}{APART}{tier}", **_paid(usage))


def _paid(usage: Usage) -> dict[str, int]:
    """The tokens that are paid; output tokens include the tokens of thoughts."""
    return {name: count for name, count in usage.counts().items() if name in COUNTS}


@dataclass
class Ledger:
    """The sums of all payers. `expected` are tokens of submitted batches, by role: they are paid at submission.

    `unrecorded` are tokens of steps of many calls that this process did not finish, by role.
    """

    of: dict[str, Charge] = field(default_factory=dict)
    expected: dict[str, Usage] = field(default_factory=dict)
    unrecorded: Mapping[str, Usage] = field(default_factory=dict)

    def add(self, charge: Charge) -> None:
        known = self.of.get(charge.payer)
        self.of[charge.payer] = charge if known is None else known.plus(charge)

    @property
    def spent(self) -> dict[str, Usage]:
        """Each role's tokens, with their tiers."""
        return self._by_role(self.unrecorded)

    @property
    def committed(self) -> dict[str, Usage]:
        """Each role's tokens, expected ones included."""
        return self._by_role(self.expected)

    def _by_role(self, expected: Mapping[str, Usage]) -> dict[str, Usage]:
        sums: dict[str, Usage] = {}
        used = ((name.partition(APART)[0], charge.usage) for name, charge in self.of.items())
        for role, usage in (*used, *expected.items()):
            sums[role] = sums[role] + usage if role in sums else usage
        return sums

    @property
    def tokens(self) -> int:
        return sum(each.input_tokens + each.output_tokens for each in self.spent.values())

    def total(self, count: str) -> int:
        """The sum of a count over all payers."""
        return sum(int(getattr(charge, count)) for charge in self.of.values())

    def charges(self) -> Iterator[Charge]:
        """The charges that are not zero."""
        return (charge for charge in self.of.values() if any(charge[1:]))
