"""What a transformation works on, and the small edits that many share."""

import ast
import builtins
import keyword
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from codechat.patterns import Code, read

if TYPE_CHECKING:
    import libcst as cst


class Refusal(Exception):
    """The code has no place where the change is surely safe; the text says why."""


Transformation = Callable[["Source"], str]
registered: dict[str, Transformation] = {}
_WORD = re.compile(r"[^\W\d]\w*")


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
    def lines(self) -> list[str]:
        return self.code.text.split("\n")

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word of the text, strings and comments included: a name that is none of them collides with nothing."""
        return frozenset(_WORD.findall(self.text))

    def with_text(self, text: str) -> "Source":
        return Source(text, self.entry_point)

    def namer(self) -> "Namer":
        return Namer(set(self.words) | set(keyword.kwlist) | set(keyword.softkwlist) | set(dir(builtins)))

    def builtin(self, *names: str) -> None:
        """Refuse if the program binds one of these built-in names itself."""
        bound = {node.id for node in self.code.find(ast.Name) if not isinstance(node.ctx, ast.Load)}
        bound |= {node.arg for node in self.code.find(ast.arg)} | {one.name for one in self.code.functions}
        bound |= set(self.code.imports) | {node.name for node in self.code.find(ast.ClassDef)}
        for name in names:
            if name in bound:
                raise Refusal(f"the program binds '{name}' itself")

    def without(self, *words: str) -> None:
        """Refuse if one of these words stands in the program: they look at what the change would touch."""
        for word in words:
            if word in self.words:
                raise Refusal(f"the program uses {word}")


@dataclass
class Namer:
    """Gives names that the program does not hold, each once."""

    taken: set[str]

    def __call__(self, *wanted: str) -> str:
        """The first of the wanted names that is free, else the first with a letter."""
        candidates = [*wanted, *(f"{wanted[0]}_{letter}" for letter in "bcdefghijklmnopqrstuvwxyz")]
        for name in candidates:
            if name not in self.taken:
                self.taken.add(name)
                return name
        raise Refusal(f"no free name like '{wanted[0]}'")


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


def first_line(node: ast.stmt) -> int:
    """The line where a statement begins, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def insert(lines: list[str], insertions: Iterable[tuple[int, str]]) -> str:
    """The lines with others put in front of them: pairs of a 1-based line and the text that goes above it."""
    above: dict[int, list[str]] = {}
    for place, text in insertions:
        above.setdefault(place, []).append(text)
    made: list[str] = []
    for number, line in enumerate(lines, 1):
        made += [*above.get(number, []), line]
    return "\n".join([*made, *above.get(len(lines) + 1, [])])


def indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def top_line(source: Source) -> int:
    """The first line that may be anything: below a shebang and a coding declaration."""
    number = 1
    for line in source.lines[:2]:
        if (number == 1 and line.startswith("#!")) or re.match(r"^[ \t\f]*#.*?coding[:=]", line):
            number += 1
    return number


def define(source: Source, *definitions: str, imports: Iterable[str] = ()) -> str:
    """The program with definitions at module level below its imports, and with these modules imported."""
    body = source.tree.body
    head = 0
    for statement in body:
        text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not isinstance(statement, ast.Import | ast.ImportFrom) and not (text and head == 0):
            break
        head += 1
    needed = [f"import {name}" for name in imports if not _is_imported(source, name)]
    if head:
        line = (body[head - 1].end_lineno or 0) + 1
        if head < len(body) and body[head].lineno < line:
            raise Refusal("the imports share a line with other statements")
    else:
        line = first_line(body[0]) if body else 1
        while line > top_line(source) and source.lines[line - 2].startswith("#"):
            line -= 1
    made = [*needed, *(f"\n{definition.strip(chr(10))}\n" for definition in definitions)]
    return insert(source.lines, [(line, text) for text in made])


def _is_imported(source: Source, name: str) -> bool:
    """Whether the module imports it as itself; refuses if the name means something else."""
    for statement in source.tree.body:
        if isinstance(statement, ast.Import) and any(a.name == name and a.asname is None for a in statement.names):
            return True
    if name in source.code.imports or name in {node.id for node in source.code.find(ast.Name)}:
        raise Refusal(f"the program uses the name '{name}'")
    source.builtin(name)
    return False
