"""A pattern with its options, and which of its occurrences count."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codechat.patterns.base import Occurrence, Pattern
from codechat.patterns.purpose.constructs import serves
from codechat.patterns.purpose.prose import telling
from codechat.patterns.reading.code import Code
from codechat.patterns.substance.carrying import carriers
from codechat.patterns.substance.hollow import hollow
from codechat.patterns.substance.idle import idle

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Clause:
    """A pattern with its options. One object is one key of what it finds."""

    pattern: Pattern
    options: Mapping[str, Any]

    def present(self, code: Code) -> tuple[Occurrence, ...]:
        if self not in code.found:
            code.found[self] = self.pattern.present(code, self.options)
        found: tuple[Occurrence, ...] = code.found[self]
        return found

    def used(self, code: Code, earlier: Code | None = None) -> tuple[Occurrence, ...]:
        """Its occurrences but for idle ones; with `earlier`, new definitions that nothing names are idle too."""
        found = self.present(code)
        unused = idle(code, earlier) if any(one.node is not None for one in found) else frozenset()
        return tuple(one for one in found if one.node not in unused)

    def working(self, code: Code, earlier: Code | None = None) -> tuple[Occurrence, ...]:
        """Its occurrences that are used, do anything at all, and do more than to carry a value."""
        found = self.used(code, earlier)
        if not any(one.node is not None for one in found):
            return found
        carrying, empty, name = carriers(code), hollow(code), self.pattern.name
        found = tuple(one for one in found if one.node not in carrying and one.node not in empty)
        return tuple(one for one in found if serves(name, code, one, self.options))

    def telling(self, code: Code) -> tuple[Occurrence, ...]:
        """Its occurrences that say something, as what is added to be read."""
        return tuple(one for one in self.present(code) if telling(self.pattern.name, code, one, self.options))

    def count(self, number: int) -> str:
        """`1 comment`, `2 comments`, `no comment`."""
        noun = self.pattern.noun if number < 2 else self.pattern.plural
        named = {key: ", ".join(value) if isinstance(value, list) else value for key, value in self.options.items()}
        return f"{number or 'no'} {noun.format(**named)}"

    def list(self, found: tuple[Occurrence, ...]) -> str:
        """`2 comments: lines 3, 9`."""
        shown = [f"{one.what} (line {one.line})" if one.what else str(one.line) for one in found[:_SHOWN]]
        more = ", …" if len(found) > _SHOWN else ""
        lines = "" if found and found[0].what else "line " if len(found) == 1 else "lines "
        return f"{lines}{', '.join(shown)}{more}"
