"""Instructions: the pool of refinement requests that an agenda draws from."""

from dataclasses import dataclass

from codechat.domain import Instruction, Scope
from codechat.errors import UserError
from codechat.registry import NoTraits, Registry


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that curation rejected, with the reason: it is never drawn."""

    id: str
    text: str
    scope: Scope
    reason: str


@dataclass(frozen=True, slots=True)
class Pool:
    """Accepted instructions in order, with the hash of their whole content, and the rejected candidates.

    `warnings` are sentences about what the author may have meant otherwise; they change nothing.
    """

    instructions: tuple[Instruction, ...]
    content_hash: str
    rejected: tuple[Rejected, ...] = ()
    warnings: tuple[str, ...] = ()


_NOTHING = Pool((), "")


class WrongPool(UserError):
    """A pool file with mistakes: all of them, and the pool that its other rows make."""

    def __init__(
        self, message: str, remedy: str, mistakes: tuple[UserError, ...] = (), understood: Pool = _NOTHING
    ) -> None:
        super().__init__(message, remedy)
        self.mistakes = mistakes
        self.understood = understood


INSTRUCTIONS: Registry[Pool, NoTraits] = Registry("instructions", "codechat.instructions", NoTraits, Pool)

__all__ = ["INSTRUCTIONS", "Pool", "Rejected", "WrongPool"]
