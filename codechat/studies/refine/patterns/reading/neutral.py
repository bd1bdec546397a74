"""A program in a language that has `kinds` in its grammar, read once: the nodes of its neutral tree, and its names."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from codechat.sandbox.languages import language_of, too_much
from codechat.sandbox.languages.grammar import Grammar, Parsed

LONGEST = 20_000
"""Characters of a program that is read: for broken code a grammar's time grows faster than its length."""
DEEPEST = 200
"""Nodes within each other: deeper trees are no code that a person wrote, and take long to search."""
MOST_STEPS = 10_000
"""Hundreds of operations of a parser: ten times the need of the densest program of `LONGEST` characters that parses.
Broken code of that length takes up to 300,000, which is half a minute."""
CONTROL = ("for", "while", "if", "switch", "try")
LOOPS = ("for", "while")


def grammar_of(language: str) -> Grammar | None:
    """The grammar of a language whose trees can be read; None if nothing says what its nodes are."""
    known = language_of(language)
    return known.grammar if isinstance(known, Parsed) and known.grammar.kinds else None


@dataclass(frozen=True, eq=False)
class TreeCode:
    """One version of a program. `problem` says why it cannot be read; empty if it can. `found` is a clause's memory.

    Nodes are tree-sitter's; `Grammar.kinds` has their neutral kinds.
    """

    text: str
    grammar: Grammar
    found: dict[Any, Any] = field(default_factory=dict)

    @property
    def whole(self) -> "TreeCode":
        """The program: no part of it is a guard against being imported."""
        return self

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        return self.text.split("\n")

    @cached_property
    def problem(self) -> str:
        """Why its tree says nothing."""
        if self._too_much:
            return f"is longer than {LONGEST:,} characters, or has too many brackets within each other"
        if self.unread:
            return self.unread
        if self._tree.broken:
            return "does not parse"
        return "is nested too deeply to read" if self._walked[1] > DEEPEST else ""

    @cached_property
    def unread(self) -> str:
        """Why nothing is known of the program: its parser gave up; empty if it did not, or was not asked."""
        return "could not be parsed within the parser's limit" if not self._too_much and self._tree is None else ""

    @cached_property
    def _too_much(self) -> bool:
        return len(self.text) > LONGEST or bool(too_much(self.text))

    @cached_property
    def _tree(self) -> Any:
        return self.grammar.parse_within(self.grammar.within(self.text), MOST_STEPS)

    @cached_property
    def nodes(self) -> tuple[Any, ...]:
        """All nodes of the tree in source order, each before those within it; none of a program with a problem."""
        return () if self.problem else self._walked[0]

    @cached_property
    def _walked(self) -> tuple[tuple[Any, ...], int]:
        """The nodes and their greatest depth; of a tree that is too deep only a part."""
        found, deepest, waiting = [], 0, [(self._tree.root, 1)]
        while waiting and deepest <= DEEPEST:
            node, depth = waiting.pop()
            found.append(node)
            deepest = max(deepest, depth)
            waiting.extend((child, depth + 1) for child in reversed(node.children))
        return tuple(found), deepest

    @cached_property
    def _kinds(self) -> dict[str, frozenset[str]]:
        kinds = defaultdict[str, set[str]](set)
        for kind, types in self.grammar.kinds.items():
            for name in types.split():
                kinds[name].add(kind)
        return {name: frozenset(each) for name, each in kinds.items()}

    def is_a(self, node: Any, *kinds: str) -> bool:
        """Whether a node is of one of the neutral kinds."""
        return node is not None and not self._kinds.get(node.type, frozenset()).isdisjoint(kinds)

    def all(self, *kinds: str) -> Iterator[Any]:
        """The nodes of some neutral kinds, in source order."""
        return (node for node in self.nodes if self.is_a(node, *kinds))

    def within(self, node: Any, *kinds: str) -> Iterator[Any]:
        """The nodes of some kinds below a node, in source order."""
        waiting = list(reversed(node.children))
        while waiting:
            each = waiting.pop()
            if self.is_a(each, *kinds):
                yield each
            waiting.extend(reversed(each.children))

    def around(self, node: Any, *kinds: str) -> Any:
        """The nearest node of some kinds around a node; None if there is none."""
        above = node.parent
        while above is not None and not self.is_a(above, *kinds):
            above = above.parent
        return above

    def of(self, node: Any) -> str:
        """The text of a node."""
        return "" if node is None else str(node.text.decode("utf-8", "replace"))

    def name_of(self, function: Any) -> str:
        """The name of a function: its own, or the variable's that it is given to; empty if it has none."""
        own = function.child_by_field_name("name")
        holder = function.parent
        if own is None and self.is_a(holder, "declarator"):
            own = holder.child_by_field_name("name")
        return self.of(own)

    @cached_property
    def functions(self) -> dict[str, Any]:
        """The functions that have a name and a body, by that name; of two of a name the later."""
        named = ((self.name_of(node), node) for node in self.all("function") if node.child_by_field_name("body"))
        return {name: node for name, node in named if name}

    def parameters(self, function: Any) -> list[Any]:
        """The parameters of a function, whole."""
        listed = function.child_by_field_name("parameters")
        if listed is None:
            only = function.child_by_field_name("parameter")  # of an arrow function without brackets
            return [only] if only is not None else []
        return [each for each in listed.named_children if not self.is_a(each, "comment")]

    @cached_property
    def outer(self) -> dict[str, list[str]]:
        """The names of the parameters of the functions that are within no other, by the function's name."""
        functions = self.functions.items()
        return {name: self.parameter_names(node) for name, node in functions if self.around(node, "function") is None}

    def parameter_names(self, function: Any) -> list[str]:
        """The names of a function's parameters, or what stands in their places."""
        given = self.parameters(function)
        return [self.of(each.child_by_field_name("name") or each.child_by_field_name("left") or each) for each in given]

    def statements(self, block: Any) -> list[Any]:
        """The statements of a block, comments left out."""
        return [each for each in block.named_children if not self.is_a(each, "comment")]

    @cached_property
    def locals(self) -> list[Any]:
        """The names of local variables where they are declared, loop variables included and functions left out."""
        found = []
        for node in self.nodes:
            name = node.child_by_field_name("left" if node.type == "for_in_statement" else "name")
            if not self.is_a(node, "declarator", "each") or not self.is_a(name, "name"):
                continue
            if self.around(node, "function") is not None and not self.is_function(node):
                found.append(name)
        return found

    def is_function(self, declarator: Any) -> bool:
        """Whether a function is declared."""
        return self.is_a(declarator.child_by_field_name("value"), "function")

    @cached_property
    def constants(self) -> dict[str, Any]:
        """The constants outside of all functions whose names are in upper case: their declarators by name."""
        found = {}
        for node in self.all("declarator"):
            name, head = self.of(node.child_by_field_name("name")), self.of(node.parent)
            fixed = head.startswith("const ") or "final " in head.partition("=")[0]
            if name.isupper() and fixed and self.around(node, "function") is None:
                found[name] = node
        return found

    def uses(self, name: str) -> int:
        """How often a name stands anywhere in the program."""
        return self._uses[name]

    @cached_property
    def _uses(self) -> Counter[str]:
        return Counter(map(self.of, self.all("name")))

    @cached_property
    def comments(self) -> list["TreeComment"]:
        """The comments that are no mere marks."""
        return [
            TreeComment(row + 1, node.end_point[0] + 1, self.of(node), not self._before(row, column).strip())
            for node in self.all("comment") for row, column in [node.start_point]
        ]  # fmt: skip

    def _before(self, row: int, column: int) -> str:
        before: bytes = self.lines[row].encode("utf-8", "surrogatepass")[:column]
        return before.decode("utf-8", "replace")

    def column(self, node: Any) -> int | None:
        """The characters before a node on its line, None if they are not blank."""
        row, column = node.start_point
        before = self._before(row, column)
        return len(before) if not before.strip() else None

    def head(self, node: Any) -> tuple[int, Any]:
        """The first line, from 0, of a node with the comments directly above it, and the node before them."""
        row, before = node.start_point[0], node.prev_named_sibling
        while self.is_a(before, "comment") and before.end_point[0] == row - 1:
            row, before = before.start_point[0], before.prev_named_sibling
        return row, before

    def margin(self, node: Any) -> str:
        """The white space that a node's line begins with."""
        line: str = self.lines[node.start_point[0]]
        return line[: len(line) - len(line.lstrip())]


@dataclass(frozen=True, slots=True)
class TreeComment:
    """A comment: its first and last line, from 1, and its text with its marks; `own_line` if no code is before it."""

    line: int
    last: int
    text: str
    own_line: bool

    @property
    def documents(self) -> bool:
        """Whether it is a documentation comment, `/** … */`."""
        return self.text.startswith("/**") and self.text != "/**/"

    @property
    def words(self) -> str:
        """Its text without marks."""
        if self.text.startswith("//"):
            return self.text.lstrip("/").strip()
        inside = self.text.removeprefix("/").strip("*").removesuffix("*/").split("\n")
        return "\n".join(line.strip().lstrip("*").strip() for line in inside).strip().removesuffix("*/").strip()

    @property
    def form(self) -> str:
        """Its words as patterns match them in every language: behind a `#`."""
        return f"# {self.words}"


@lru_cache(maxsize=256)
def read_tree(text: str, language: str) -> TreeCode:
    """Read a program in a language that has a grammar with kinds. Raises `UserError` if the grammar is missing."""
    grammar = grammar_of(language)
    assert grammar is not None, f"no kinds for {language}"
    return TreeCode(text.replace("\r\n", "\n").replace("\r", "\n"), grammar)
