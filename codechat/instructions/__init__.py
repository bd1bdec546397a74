"""Instructions: the pool of refinement requests that an agenda draws from."""

from dataclasses import dataclass

from codechat.domain import Instruction, Scope
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
    """Accepted instructions in order, with the hash of their whole content, and the rejected candidates."""

    instructions: tuple[Instruction, ...]
    content_hash: str
    rejected: tuple[Rejected, ...] = ()


INSTRUCTIONS: Registry[Pool, NoTraits] = Registry("instructions", "codechat.instructions", NoTraits)

__all__ = ["INSTRUCTIONS", "Pool", "Rejected"]
