"""The program that a transformation changes, small edits of its text, and work on concrete syntax trees."""

import ast
import builtins
import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_lowercase
from typing import Any, TypeAlias, TypeVar

import libcst as cst

from codechat.studies.refine.patterns import Code, read
from codechat.studies.refine.patterns.reading.tree import first_line

Transformation = Callable[["Source"], str]
registered: dict[str, Transformation] = {}
Made: TypeAlias = cst.CSTNode | cst.FlattenSentinel[Any] | cst.RemovalSentinel
"""A node, several in its place, or none."""
Change: TypeAlias = Callable[[cst.CSTNode, cst.CSTNode], Made]
"""Called with an original node and the same with changed children; gives the node for its place."""
T = TypeVar("T", bound=cst.CSTNode)
EFFECTS = (cst.Await, cst.Yield, cst.NamedExpr)
LOOKERS = ("locals", "vars", "eval", "exec", "globals", "dir", "super")
"""Functions that look at the scope they are called in."""
SPACE = cst.SimpleWhitespace(" ")


class Refusal(Exception):
    """The code has no place where the change is surely safe; the text says why."""


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
    def module(self) -> cst.Module:
        """The concrete syntax tree, which keeps every space and comment."""
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


def transforms(*instructions: str, **options: Any) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """Register the transformation of instructions with options; stacked, one function serves several options."""

    def remember(function: Callable[..., str]) -> Callable[..., str]:
        for instruction in instructions:
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


def rewrite(tree: T, change: Change) -> T:
    """The tree with every node below its root, innermost first, and the root replaced by a node of its kind."""

    class Rewrite(cst.CSTTransformer):
        def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> Any:
            return change(original_node, updated_node)

    made = tree.visit(Rewrite())
    assert isinstance(made, type(tree))
    return made


def replace(tree: T, swaps: Mapping[cst.CSTNode, Made]) -> T:
    """The tree with some of its nodes replaced."""
    return rewrite(tree, lambda original, updated: swaps.get(original, updated))  # noqa: PLW0108


def text_of(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def whole(node: cst.BaseExpression) -> str:
    """An expression's text that can stand alone on a line."""
    text = text_of(node)
    return text if node.lpar or "\n" not in text else f"({text})"


def statements(text: str) -> list[Any]:
    """The statements of a text that is put together from parts; refuses if their layout does not allow it."""
    try:
        return list(cst.parse_module(text).body)
    except cst.ParserSyntaxError as error:
        raise Refusal("the layout of a statement is in the way") from error


def several(made: Sequence[cst.CSTNode], leading: Sequence[cst.EmptyLine] = ()) -> Made:
    """Statements that replace one, the first of them below the comments and blank lines."""
    return cst.FlattenSentinel([made[0].with_changes(leading_lines=leading), *made[1:]])


def block(body: Sequence[Any]) -> cst.IndentedBlock:
    return cst.IndentedBlock(body=list(body) or statements("pass"))


def body_of(node: Any) -> list[Any]:
    """The statements of a compound statement, one a line."""
    assert isinstance(node.body, cst.IndentedBlock)
    return list(node.body.body)


def small(line: object) -> cst.BaseSmallStatement | None:
    """The statement of a line that holds one."""
    return line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None


def assigned(line: object) -> tuple[str, cst.BaseExpression] | None:
    """Name and value of a line that assigns to one name."""
    found = small(line)
    target = found.targets[0].target if isinstance(found, cst.Assign) and len(found.targets) == 1 else None
    return (target.value, found.value) if isinstance(found, cst.Assign) and isinstance(target, cst.Name) else None


def nodes(tree: cst.CSTNode, *, into_functions: bool = True) -> Iterator[cst.CSTNode]:
    """The node and all below it in source order; if asked, without what belongs to inner functions and classes."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        if into_functions or node is tree or not isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Lambda):
            stack.extend(reversed(node.children))


def has(tree: cst.CSTNode, *kinds: type[cst.CSTNode], into_functions: bool = True) -> bool:
    return any(isinstance(node, kinds) for node in nodes(tree, into_functions=into_functions))


def reads(tree: cst.CSTNode) -> set[str]:
    """Every identifier in a tree, attribute and keyword names included."""
    return {node.value for node in nodes(tree) if isinstance(node, cst.Name)}


def variables(tree: cst.CSTNode) -> list[cst.Name]:
    """The names that stand for variables: no attributes, keywords, parameters or names of definitions and imports."""
    other: set[cst.CSTNode] = set()
    found: list[cst.Name] = []
    for node in nodes(tree):
        if isinstance(node, cst.Attribute):
            other.add(node.attr)
        elif isinstance(node, cst.Arg) and node.keyword is not None:
            other.add(node.keyword)
        elif isinstance(node, cst.Param | cst.FunctionDef | cst.ClassDef):
            other.add(node.name)
        elif isinstance(node, cst.ImportAlias):
            other.update(nodes(node))
        elif isinstance(node, cst.Name) and node not in other:
            found.append(node)
    return found


def entry(module: cst.Module, name: str) -> cst.FunctionDef:
    """The module-level function of that name, or a refusal."""
    found = [node for node in module.body if isinstance(node, cst.FunctionDef) and node.name.value == name]
    if not found or found[-1].asynchronous is not None:
        raise Refusal(f"'{name}' is no plain function of the module")
    return found[-1]


def unjoin(module: cst.Module) -> cst.Module:
    """One statement a line: no semicolons, no statement behind the colon of a header."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if isinstance(node, cst.SimpleStatementSuite):
            return cst.IndentedBlock(body=_apart(node))
        if isinstance(node, cst.SimpleStatementLine) and len(node.body) > 1:
            return several(_apart(node), node.leading_lines)
        return node

    return rewrite(module, change)


def _apart(joined: cst.SimpleStatementSuite | cst.SimpleStatementLine) -> list[cst.SimpleStatementLine]:
    alone = (one.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for one in joined.body)
    lines = [cst.SimpleStatementLine(body=[one]) for one in alone]
    return [*lines[:-1], lines[-1].with_changes(trailing_whitespace=joined.trailing_whitespace)]
