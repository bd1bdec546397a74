"""Edits of a program's text by the places of its tree's nodes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from codechat.studies.refine.patterns.reading.neutral import TreeCode


class Edit(NamedTuple):
    """What replaces the bytes from `start` up to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Program:
    """A program to be changed."""

    tree: TreeCode
    language: str
    entry_point: str

    @property
    def main(self) -> Any:
        """The function that the tests call: the entry point, else the last that is within no other; None without."""
        functions = self.tree.functions
        outer = [name for name in functions if name in self.tree.outer]
        return functions.get(self.entry_point) or (functions[outer[-1]] if outer else None)

    def free(self, *wanted: str) -> str:
        """The first of the names that the program does not use, with a number if it uses them all."""
        numbered = (f"{wanted[0]}{number}" for number in range(2, 1000))
        return next(name for name in (*wanted, *numbered) if not self.tree.uses(name))


Change = Callable[[Program], Sequence[Edit]]
AnyChange = Callable[..., Sequence[Edit]]


def registering(changes: dict[str, Change]) -> Callable[..., Callable[[AnyChange], AnyChange]]:
    """A decorator that registers a change under the ids of instructions, each with options of its own."""

    def serves(*ids: str, **options: Any) -> Callable[[AnyChange], AnyChange]:
        def remember(change: AnyChange) -> AnyChange:
            changes.update({each: partial(change, **options) for each in ids})
            return change

        return remember

    return serves


def applied(tree: TreeCode, edits: Iterable[Edit]) -> str:
    """The text with all edits made; of two that overlap the later is left out."""
    data, made, place = tree.text.encode("utf-8", "surrogatepass"), [], 0
    for edit in sorted(edits):
        if edit.start >= place:
            made += [data[place : edit.start], edit.text.encode()]
            place = edit.end
    return b"".join([*made, data[place:]]).decode("utf-8", "surrogatepass")


def line_start(tree: TreeCode, row: int) -> int:
    """The byte at which a line begins, from 0."""
    return sum(len(line.encode("utf-8", "surrogatepass")) + 1 for line in tree.lines[:row])


def above(tree: TreeCode, node: Any, text: str) -> Edit:
    """A line put above a node's line, with its margin."""
    start = line_start(tree, node.start_point[0])
    margin = tree.margin(node) if text.strip() else ""
    return Edit(start, start, f"{margin}{text}\n")


def beside(tree: TreeCode, row: int, text: str) -> Edit:
    """A text put at the end of a line."""
    end = line_start(tree, row) + len(tree.lines[row].encode("utf-8", "surrogatepass"))
    return Edit(end, end, text)


def instead(node: Any, text: str) -> Edit:
    """A text in the place of a node."""
    return Edit(node.start_byte, node.end_byte, text)
