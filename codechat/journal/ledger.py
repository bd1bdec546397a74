"""Running sums of a cell's usage by role, kept in the journal over all processes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from codechat.domain import Reply, Spent, Usage


class Charge(NamedTuple):
    """The usage of one call, or of all of a payer's calls.

    `payer` is the role that was asked. A reply of the response cache counts no tokens.
    """

    payer: str
    calls: int = 0
    cached_replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    retries: int = 0
    rate_limited: int = 0

    @property
    def usage(self) -> Usage:
        """The tokens."""
        return Usage(self.input_tokens, self.output_tokens, self.cached_input_tokens)

    def plus(self, other: "Charge") -> "Charge":
        """The sum, with this charge's payer."""
        return Charge(self.payer, *(mine + its for mine, its in zip(self[1:], other[1:], strict=True)))


COUNTS = Charge._fields[1:]


def charge_of(payer: str, value: Any) -> Charge | None:
    """The charge of a step's value; None if no model was asked for it."""
    if not isinstance(value, Spent):
        return None
    asked = isinstance(value, Reply) or value.usage != Usage()
    if not (asked or value.retries or value.rate_limited):
        return None
    usage = Usage() if value.cached else value.usage
    return Charge(
        payer,
        int(asked),
        int(value.cached),
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_input_tokens,
        value.retries,
        value.rate_limited,
    )


@dataclass
class Ledger:
    """The sums of all payers, by role."""

    of: dict[str, Charge] = field(default_factory=dict)

    def add(self, charge: Charge) -> None:
        """Add a charge."""
        known = self.of.get(charge.payer)
        self.of[charge.payer] = charge if known is None else known.plus(charge)

    @property
    def spent(self) -> dict[str, Usage]:
        """Each payer's tokens."""
        return {payer: sums.usage for payer, sums in self.of.items()}

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
