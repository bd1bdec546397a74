"""What a language knows of the behaviour of its programs: which of them are bound to do the same."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Two hashes of what a program does, as everybody sees it who cannot read the program.

    Programs of equal `named` do the same and say the same, names of their local variables included. Those of equal
    `unnamed` may differ in these names, which they do not tell themselves; an uncaught exception may tell them.
    """

    unnamed: str
    named: str


@runtime_checkable
class Behaving(Protocol):
    """A language that can tell that two programs behave alike: what else a `Language` may be."""

    def behaviour(self, program: str) -> Behaviour | None:
        """What a program does; None if that is unknown, or the program could tell that it is written otherwise.

        It is pure, never raises, and takes a time that is bounded whatever the program says.
        """
