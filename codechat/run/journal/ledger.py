"""Running sums of a cell's usage by role, kept in the journal over all processes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from codechat.base.domain import NO_USAGE, STANDARD, Reply, Spent, Usage

APART = "@"
"""Comes between a payer and the tier that served its tokens, if that is not the standard one: `model@batch`."""


class Charge(NamedTuple):
    """The usage of one call, or of all of a payer's calls.

    `payer` is the role that was asked, and the tier that served it. A reply of the response cache counts no tokens.
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
        """The tokens, in the tier that is named behind the payer."""
        used = Usage(self.input_tokens, self.output_tokens, self.cached_input_tokens, self.cache_write_tokens)
        return used.served_as(self.payer.partition(APART)[2] or STANDARD)

    def plus(self, other: "Charge") -> "Charge":
        """The sum, with this charge's payer."""
        return Charge(self.payer, *(mine + its for mine, its in zip(self[1:], other[1:], strict=True)))


COUNTS = Charge._fields[1:]


def charges_of(payer: str, value: Any) -> tuple[Charge, ...]:
    """The charges of a step's value, apart by the tier that served its tokens; none if no model was asked for it.

    The calls and attempts are counted in the payer's own charge.
    """
    if not isinstance(value, Spent):
        return ()
    asked = isinstance(value, Reply) or value.usage != NO_USAGE
    if not (asked or value.retries or value.rate_limited):
        return ()
    own = Charge(payer, int(asked), int(value.cached), retries=value.retries, rate_limited=value.rate_limited)
    if value.cached:
        return (own,)
    if not value.usage.tiers:
        return (own.plus(Charge(payer, **value.usage.counts())),)
    return (own, *(charge_for(payer, part.served_as(tier)) for tier, part in value.usage.by_tier()))


def charge_for(payer: str, usage: Usage) -> Charge:
    """The charge of tokens that one tier served."""
    (tier,) = usage.tiers or (STANDARD,)
    return Charge(payer if tier == STANDARD else f"{payer}{APART}{tier}", **usage.counts())


@dataclass
class Ledger:
    """The sums of all payers, by role.

    `expected` are the tokens that calls under way will take, as far as they are paid as soon as they are submitted.
    """

    of: dict[str, Charge] = field(default_factory=dict)
    expected: dict[str, Usage] = field(default_factory=dict)

    def add(self, charge: Charge) -> None:
        """Add a charge."""
        known = self.of.get(charge.payer)
        self.of[charge.payer] = charge if known is None else known.plus(charge)

    @property
    def spent(self) -> dict[str, Usage]:
        """Each payer's tokens, with their tiers."""
        found: dict[str, Usage] = {}
        for name, sums in self.of.items():
            payer = name.partition(APART)[0]
            found[payer] = found[payer] + sums.usage if payer in found else sums.usage
        return found

    @property
    def committed(self) -> dict[str, Usage]:
        """Each payer's tokens, with those that are expected."""
        found = self.spent
        for payer, usage in self.expected.items():
            found[payer] = found.get(payer, Usage()) + usage
        return found

    @property
    def tokens(self) -> int:
        """All tokens, in and out."""
        return sum(sums.input_tokens + sums.output_tokens for sums in self.of.values())

    def total(self, count: str) -> int:
        """The sum of a count over all payers."""
        return sum(int(getattr(sums, count)) for sums in self.of.values())

    def charges(self) -> Iterator[Charge]:
        """One charge for every payer that has any."""
        return (sums for sums in self.of.values() if any(sums[1:]))
