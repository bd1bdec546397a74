"""Code read once: its syntax tree, its tokens, and the few derived views that patterns share."""

import ast
import builtins
import io
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, TypeVar, overload

from codechat.languages.python.syntax import tree_of
from codechat.patterns.tree import FUNCTIONS, Function, children, walk

MAX_NODES = 20_000  # some patterns compare nodes with each other; no program for a task has so many
MAX_BITS = 10_000  # of a whole number: Python refuses to write longer ones in decimal digits
MAX_DEPTH = 180  # deeper trees are no code a person wrote, and would exhaust the stack of recursive readers
_DIRECTIVES = ("type:", "noqa", "pylint:", "pragma:", "fmt:", "mypy:", "ruff:", "isort:", "flake8:", "-*-", "pyright:")

N = TypeVar("N", bound=ast.AST)
M = TypeVar("M", bound=ast.AST)
L = TypeVar("L", bound=ast.AST)


@dataclass(frozen=True)
class Comment:
    """A comment that speaks to people; what speaks to tools (`# type:`, `# noqa`, a shebang) is none."""

    line: int
    column: int
    text: str
    own_line: bool


@dataclass(frozen=True, eq=False)
class Code:
    """One version of a program. `tree` is None where it does not parse, and `problem` says why.

    `nodes` leaves out the main guard. `text` has line ends normalised and no byte order mark. `tokens_problem` tells
    why the token stream is incomplete.
    """

    text: str
    tree: ast.Module | None
    problem: str
    nodes: tuple[ast.AST, ...]
    parents: dict[ast.AST, ast.AST]
    found: dict[object, Any] = field(default_factory=dict, repr=False)
    """What was looked for before, by what asked for it: a turn's code is the next turn's code before."""

    @overload
    def find(self, one: type[N], /) -> Iterator[N]: ...
    @overload
    def find(self, one: type[N], two: type[M], /) -> Iterator[N | M]: ...
    @overload
    def find(self, one: type[N], two: type[M], three: type[L], /) -> Iterator[N | M | L]: ...
    @overload
    def find(self, *kinds: type[N]) -> Iterator[N]: ...
    def find(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """The nodes of these kinds, in source order."""
        for node in self.nodes:
            if isinstance(node, kinds):
                yield node

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def _tokenized(self) -> tuple[tuple[tokenize.TokenInfo, ...], str]:
        found: list[tokenize.TokenInfo] = []
        try:
            found.extend(_with_whole_strings(tokenize.generate_tokens(io.StringIO(self.text).readline), self.lines))
        except (tokenize.TokenError, SyntaxError, ValueError, SystemError) as error:  # a NUL, in Python 3.13's own code
            return tuple(found), f"cannot be read as Python tokens: {error.args[0]}"
        return tuple(found), ""

    @property
    def tokens(self) -> tuple[tokenize.TokenInfo, ...]:
        return self._tokenized[0]

    @property
    def tokens_problem(self) -> str:
        return self._tokenized[1] if self.tree is None else ""

    @cached_property
    def comments(self) -> tuple[Comment, ...]:
        found = []
        for line, column in self._comment_places():
            written = self.lines[line - 1]
            string = written[column:]
            text = string.lstrip("#").strip()
            shebang = (line, column) == (1, 0) and string.startswith("#!")
            if not shebang and not text.lower().startswith(_DIRECTIVES):
                found.append(Comment(line, column, string, not written[:column].strip()))
        return tuple(found)

    def _comment_places(self) -> Iterator[tuple[int, int]]:
        """Line and column of every comment: the first # of a line; where a string may hold one, what the tokens say."""
        if "#" not in self.text:
            return
        if self.tree is None or any(map(_may_quote_hash, walk(self.tree))):
            yield from (token.start for token in self.tokens if token.type == tokenize.COMMENT)
        else:
            yield from ((line, text.index("#")) for line, text in enumerate(self.lines, 1) if "#" in text)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        return tuple(node for node in self.nodes if isinstance(node, FUNCTIONS))

    @cached_property
    def string_lines(self) -> frozenset[int]:
        """The lines that begin inside a string that spans lines: their layout is content."""
        strings = (token for token in self.tokens if token.type == tokenize.STRING)
        return frozenset(line for token in strings for line in range(token.start[0] + 1, token.end[0] + 1))

    @cached_property
    def imports(self) -> dict[str, str]:
        """The dotted origin of every imported name: `{"np": "numpy", "reduce": "functools.reduce"}`."""
        origin: dict[str, str] = {}
        for node in self.find(ast.Import, ast.ImportFrom):
            for alias in node.names:
                if isinstance(node, ast.ImportFrom):
                    origin[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
                else:
                    root = alias.name if alias.asname else alias.name.partition(".")[0]
                    origin[alias.asname or root] = root
        return origin

    @cached_property
    def _bound(self) -> dict[ast.AST, set[str]]:
        """The names that each function, lambda and the module bind by assignment, definition or parameter."""
        names: dict[ast.AST, set[str]] = {}
        for node in self.nodes:
            name = getattr(node, "name", None) if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else None
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            elif isinstance(node, ast.arg):
                name = node.arg
            if name is not None:
                names.setdefault(self._scope(node), set()).add(name)
        return names

    @cached_property
    def _names(self) -> frozenset[str]:
        """All names that are bound anywhere."""
        return frozenset().union(*self._bound.values())

    def _scope(self, node: ast.AST) -> ast.AST:
        kinds = (*FUNCTIONS, ast.Lambda, ast.ClassDef, ast.Module)
        return next((above for above in self.ancestors(node) if isinstance(above, kinds)), node)

    def _is_own(self, node: ast.Name) -> bool:
        """Whether a name is one that the program binds in a scope around it."""
        return node.id in self._names and any(node.id in self._bound.get(above, ()) for above in self.ancestors(node))

    @cached_property
    def _star_modules(self) -> list[str]:
        """The modules whose names are all imported by `from module import *`."""
        return [node.module or "" for node in self.find(ast.ImportFrom) if node.names[0].name == "*"]

    def origin(self, expression: ast.AST) -> str:
        """What a name or attribute stands for: `functools.reduce`, `sorted`, `.append` for a method; "" if unknown."""
        if isinstance(expression, ast.Name):
            if self._is_own(expression):
                return ""
            if expression.id not in self.imports and not hasattr(builtins, expression.id):
                return next((f"{module}.{expression.id}" for module in self._star_modules), expression.id)
            return self.imports.get(expression.id, expression.id)
        if isinstance(expression, ast.Attribute):
            base = expression.value
            parts = [expression.attr]
            while isinstance(base, ast.Attribute):
                parts.append(base.attr)
                base = base.value
            if isinstance(base, ast.Name) and base.id in self.imports and not self._is_own(base):
                return ".".join([self.imports[base.id], *reversed(parts)])
            return f".{expression.attr}"
        return ""

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around one, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function_of(self, node: ast.AST) -> Function | None:
        """The innermost function around a node (its defaults and decorators count as inside)."""
        return next((above for above in self.ancestors(node) if isinstance(above, FUNCTIONS)), None)


def _may_quote_hash(node: ast.AST) -> bool:
    """A literal # in a string's text is in its value; an f-string of several lines may have comments of its own."""
    if isinstance(node, ast.Constant):
        value = node.value
        return "#" in value if isinstance(value, str) else isinstance(value, bytes) and b"#" in value
    return isinstance(node, ast.JoinedStr) and node.lineno != node.end_lineno


def _with_whole_strings(tokens: Iterable[tokenize.TokenInfo], lines: Sequence[str]) -> Iterator[tokenize.TokenInfo]:
    """The tokens with each f-string as one STRING, as Python 3.11 gives them; later ones give its parts."""
    opened: list[tokenize.TokenInfo] = []
    for token in tokens:
        name = tokenize.tok_name[token.type]
        if name in ("FSTRING_START", "TSTRING_START"):
            opened.append(token)
        elif name in ("FSTRING_END", "TSTRING_END"):
            start = opened.pop()
            if not opened:
                text = _between(lines, start.start, token.end)
                yield tokenize.TokenInfo(tokenize.STRING, text, start.start, token.end, start.line)
        elif not opened:
            yield token


def _between(lines: Sequence[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    if start[0] == end[0]:
        return lines[start[0] - 1][start[1] : end[1]]
    return "\n".join([lines[start[0] - 1][start[1] :], *lines[start[0] : end[0] - 1], lines[end[0] - 1][: end[1]]])


def is_hint(code: Code, node: ast.AST) -> bool:
    """Whether a node stands in a type hint."""
    inner = node
    for above in code.ancestors(node):
        if inner in (getattr(above, "annotation", None), getattr(above, "returns", None)):
            return True
        if isinstance(above, ast.stmt):
            return False
        inner = above
    return False


def _is_main_guard(node: ast.AST) -> bool:
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left, *node.test.comparators]
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)


def _beyond_reading(node: ast.AST, depth: int, before: int) -> str:
    """Why a tree is not read further than a node that so many were read before; empty if it is."""
    if depth > MAX_DEPTH:
        return "nested too deeply to read"
    if before >= MAX_NODES:
        return f"more than {MAX_NODES:,} parts"
    number = node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else 0
    return "a number with too many digits" if number.bit_length() > MAX_BITS else ""


@lru_cache(maxsize=256)
def read(text: str) -> Code:
    """Parse a program. Never raises, whatever the text."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        tree = tree_of(text)
    except SyntaxError as error:
        place = f" (line {error.lineno})" if error.lineno else ""
        return Code(text, None, f"does not parse: {error.msg}{place}", (), {})
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return Code(text, None, f"does not parse: {error or type(error).__name__}", (), {})
    nodes: list[ast.AST] = []
    parents: dict[ast.AST, ast.AST] = {}
    stack: list[tuple[ast.AST, int]] = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        if problem := _beyond_reading(node, depth, len(nodes)):
            return Code(text, None, f"does not parse: {problem}", (), {})
        if depth == 1 and _is_main_guard(node):  # not the program's own: it is dropped before anything runs
            continue
        nodes.append(node)
        below = children(node)
        for child in below:
            parents[child] = node
        below.reverse()
        stack += [(child, depth + 1) for child in below]
    return Code(text, tree, "", tuple(nodes), parents)
