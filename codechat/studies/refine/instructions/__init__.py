"""Instructions: the pool of refinement requests that an agenda draws from."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from codechat.base.domain import Instruction, Scope
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.registry import NoTraits, Registry
from codechat.sandbox.languages import language_of
from codechat.studies.refine.patterns import states

PYTHON = "python"
_HASHES = {
    "ea6c50e9b1c8ae46ba93e1b3b6ca14b5e71853656a6ea142c63730334b920583": (
        "14cd9c041cdbe93f485d8653a4e4dde10deaffccc42837fb41f9d5aa7ca7e104"
    )
}
"""The hash of the embedded pool, and the one it had until its rules were reworded for version 6 of the rules.

The earlier hash stays in the ids of cells. Cells whose judge uses rules have the rules' version in their ids too; for
all others nothing changed.
"""
__all__ = ["INSTRUCTIONS", "PYTHON", "Pool", "Rejected", "WrongPool", "hash_of"]


def hash_of(instructions: Sequence[Instruction]) -> str:
    """The hash of instructions as a cell's id has it. The languages that they hold for are no part of it."""
    digest = content_hash([[one.id, one.text, one.scope, one.change, one.rule] for one in instructions])
    if digest in _HASHES.values():  # a copy of the earlier pool, whose rules differ from today's
        digest = content_hash(["earlier", digest])
    return _HASHES.get(digest, digest)


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

    `instructions` hold for the languages at hand (at first Python), `others` are the rest. `languages` has the
    languages of an instruction by its id; an instruction without an entry holds for all. `warnings` change nothing.
    """

    instructions: tuple[Instruction, ...]
    content_hash: str
    rejected: tuple[Rejected, ...] = ()
    warnings: tuple[str, ...] = ()
    others: tuple[Instruction, ...] = ()
    languages: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def of(self, language: str) -> tuple[Instruction, ...]:
        """The instructions that hold for code in a language, without the rules that cannot be stated in it."""
        name = language_of(language).names[0]
        made = (one if one.language == name else replace(one, language=name) for one in self._holding(name))
        return tuple(one if one.rule is None or states(one) else replace(one, rule=None) for one in made)

    def among(self, languages: Collection[str]) -> "Pool":
        """The pool for tasks in some languages; its hash does not depend on what holds for others alone."""
        names = sorted({language_of(language).names[0] for language in languages})
        held = {name: self._holding(name) for name in names}
        wanted = {one.id for each in held.values() for one in each}
        rows = (*self.instructions, *self.others)
        hashes = sorted({hash_of(each) for each in held.values()})
        return replace(
            self,
            instructions=tuple(one for one in rows if one.id in wanted),
            others=tuple(one for one in rows if one.id not in wanted),
            content_hash=hashes[0] if len(hashes) == 1 else content_hash([names, hashes]),
        )

    def texts(self) -> Iterable[tuple[str, str]]:
        """The ids and texts of the instructions at hand."""
        return ((one.id, one.text) for one in self.instructions)

    def _holding(self, name: str) -> list[Instruction]:
        return [one for one in (*self.instructions, *self.others) if name in self.languages.get(one.id, (name,))]


class WrongPool(UserError):
    """A pool file with mistakes: all of them, and the pool that its other rows make."""

    def __init__(self, message: str, remedy: str, mistakes: tuple[UserError, ...], understood: Pool) -> None:
        super().__init__(message, remedy)
        self.mistakes = mistakes
        self.understood = understood


INSTRUCTIONS: Registry[Pool, NoTraits] = Registry(
    "instructions", "codechat.studies.refine.instructions", NoTraits, Pool
)
