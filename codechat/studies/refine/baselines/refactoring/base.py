"""The program that a transformation changes, and the small edits that many share."""

import ast
import builtins
import keyword
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from codechat.studies.refine.patterns import Code, read
from codechat.studies.refine.patterns.reading.tree import first_line

if TYPE_CHECKING:
    import libcst as cst


class Refusal(Exception):
    """The code has no place where the change is surely safe; the text says why."""


Transformation = Callable[["Source"], str]
registered: dict[str, Transformation] = {}


@dataclass(frozen=True)
class Source:
    """A program that parses, to be changed."""

    text: str
    entry_point: str

    @cached_property
    def code(self) -> Code:
        return read(self.text)

    @cached_property
    def tree(self) -> ast.Module:
        if self.code.tree is None:
            raise Refusal("the code does not parse")
        return self.code.tree

    @cached_property
    def module(self) -> "cst.Module":
        """The concrete syntax tree, which keeps every space and comment."""
        import libcst as cst

        try:
            return cst.parse_module(self.code.text)
        except cst.ParserSyntaxError as error:
            raise Refusal(f"libcst cannot read the code: {error.message}") from error

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word of the text, strings and comments included: a name that is none of them collides with nothing."""
        return frozenset(re.findall(r"[^\W\d]\w*", self.text))

    def with_text(self, text: str) -> "Source":
        return Source(text, self.entry_point)

    def namer(self) -> Callable[..., str]:
        """A function that gives the first of its arguments that is no name in the program; each name once."""
        taken = {*self.words, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)}

        def name(*wanted: str) -> str:
            free = [
                one
                for one in (*wanted, *(f"{wanted[0]}_{letter}" for letter in ascii_lowercase[1:]))
                if one not in taken
            ]
            if not free:
                raise Refusal(f"no free name like '{wanted[0]}'")
            taken.add(free[0])
            return free[0]

        return name

    def builtin(self, *names: str) -> None:
        """Refuse if the program binds one of these built-in names itself."""
        bound = {node.id for node in self.code.find(ast.Name) if not isinstance(node.ctx, ast.Load)}
        bound |= {node.arg for node in self.code.find(ast.arg)} | {one.name for one in self.code.functions}
        bound |= {*self.code.imports, *(node.name for node in self.code.find(ast.ClassDef))}
        if not bound.isdisjoint(names):
            raise Refusal(f"the program binds '{min(bound.intersection(names))}' itself")

    def without(self, *words: str) -> None:
        """Refuse if one of these words stands in the program: their result depends on things that change."""
        if not self.words.isdisjoint(words):
            raise Refusal(f"the program uses {min(self.words.intersection(words))}")


def transforms(instruction: str, **options: Any) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """Register the transformation of an instruction; stacked, one function serves several, told apart by options."""

    def remember(function: Callable[..., str]) -> Callable[..., str]:
        if instruction in registered:
            raise ValueError(f"'{instruction}' has two transformations")
        registered[instruction] = lambda source: function(source, **options)
        return function

    return remember


def same_tree(source: Source, text: str) -> str:
    """The text, if it is the same program in another layout; refuses if an edit went into a string."""
    tree = read(text).tree
    if tree is None or ast.dump(tree) != ast.dump(source.tree):
        raise Refusal("the layout cannot be changed without changing the program")
    return text


def insert(lines: list[str], insertions: Iterable[tuple[int, str]]) -> str:
    """The lines with others put in front of them: pairs of a 1-based line and the text that goes above it."""
    made = list(lines)
    for shift, (place, text) in enumerate(sorted(insertions, key=lambda pair: pair[0])):
        made.insert(place - 1 + shift, text)
    return "\n".join(made)


def top_line(source: Source) -> int:
    """The first line that may be anything: below a shebang and a coding declaration."""
    number = 1
    for line in source.code.lines[:2]:
        if (number == 1 and line.startswith("#!")) or re.match(r"^[ \t\f]*#.*?coding[:=]", line):
            number += 1
    return number


def define(source: Source, *definitions: str, imports: Iterable[str] = ()) -> str:
    """The program with definitions at module level below its imports, and with these modules imported."""
    body = source.tree.body
    first = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) if body else False
    others = [place for place, one in enumerate(body) if not isinstance(one, ast.Import | ast.ImportFrom)]
    head = next((place for place in others if place or not first), len(body))
    if head:
        line = (body[head - 1].end_lineno or 0) + 1
        if head < len(body) and body[head].lineno < line:
            raise Refusal("the imports share a line with other statements")
    else:
        line = first_line(body[0]) if body else 1
        while line > top_line(source) and source.code.lines[line - 2].startswith("#"):
            line -= 1
    needed = [f"import {name}" for name in imports if not _is_imported(source, name)]
    made = [*needed, *(f"\n{definition.strip(chr(10))}\n" for definition in definitions)]
    return insert(source.code.lines, [(line, text) for text in made])


def _is_imported(source: Source, name: str) -> bool:
    """Whether the module imports it as itself; refuses if the name means something else."""
    imports = [one for one in source.tree.body if isinstance(one, ast.Import)]
    if any(alias.name == name and alias.asname is None for one in imports for alias in one.names):
        return True
    source.builtin(name)
    if name in {node.id for node in source.code.find(ast.Name)}:
        raise Refusal(f"the program uses the name '{name}'")
    return False
