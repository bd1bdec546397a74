"""Code read once: its syntax tree, its tokens, and the few derived views that patterns share."""

import ast
import builtins
import io
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, TypeAlias, TypeVar, overload

from codechat.syntax import tree_of

MAX_DEPTH = 180  # deeper trees are no code a person wrote, and would exhaust the stack of recursive readers
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_MARKS = ("ctx", "op", "ops")  # shared singletons, which have no place
_TEXTS = ("arg", "asname", "attr", "conversion", "id", "kind", "level", "module", "rest", "simple", "type_comment")
_LEAVES = (ast.Constant, ast.Global, ast.Nonlocal, ast.alias)
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    kind: () if kind in _LEAVES else tuple(name for name in kind._fields if name not in (*_MARKS, *_TEXTS))
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
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
        except (tokenize.TokenError, SyntaxError, ValueError) as error:
            return tuple(found), f"cannot be read as Python tokens: {error.args[0]}"
        return tuple(found), ""

    @property
    def tokens(self) -> tuple[tokenize.TokenInfo, ...]:
        return self._tokenized[0]

    @property
    def tokens_problem(self) -> str:
        return self._tokenized[1]

    @cached_property
    def comments(self) -> tuple[Comment, ...]:
        found = []
        for token in self.tokens:
            if token.type != tokenize.COMMENT:
                continue
            text = token.string.lstrip("#").strip()
            shebang = token.start == (1, 0) and token.string.startswith("#!")
            if not shebang and not text.lower().startswith(_DIRECTIVES):
                before = token.line[: token.start[1]]
                found.append(Comment(token.start[0], token.start[1], token.string, not before.strip()))
        return tuple(found)

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


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's or loop's body without those of nested functions, lambdas and classes."""
    stack: list[ast.AST] = list(reversed(getattr(scope, "body", [])))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            stack.extend(reversed(children(node)))


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The statement lists directly under a node: body, else, handlers' bodies, finally, cases."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block


def docstring(node: ast.AST) -> ast.Constant | None:
    """The docstring's node of a function, class or module."""
    body = getattr(node, "body", None)
    if not isinstance(body, list) or not body or not isinstance(body[0], ast.Expr):
        return None
    value = body[0].value
    return value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def body_without_docstring(node: ast.Module | Function | ast.ClassDef) -> list[ast.stmt]:
    return node.body[1:] if docstring(node) else node.body


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


def parameters(function: Function | ast.Lambda) -> list[ast.arg]:
    """Every parameter in order of the signature, `*args` and `**kwargs` included."""
    a = function.args
    return [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs, *([a.kwarg] if a.kwarg else [])]


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right under one, in source order, without operators and contexts; quicker than `ast`'s."""
    found: list[ast.AST] = []
    for name in _FIELDS[type(node)]:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [each for each in value if isinstance(each, ast.AST)]
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all under it, in the order of `ast.walk`, without operators and contexts."""
    found = [node]
    for each in found:
        found += children(each)
    return found


def _is_main_guard(node: ast.AST) -> bool:
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left, *node.test.comparators]
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)


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
        if depth > MAX_DEPTH:
            return Code(text, None, "does not parse: nested too deeply to read", (), {})
        if depth == 1 and _is_main_guard(node):  # not the program's own: it is dropped before anything runs
            continue
        nodes.append(node)
        below = children(node)
        for child in below:
            parents[child] = node
        below.reverse()
        stack += [(child, depth + 1) for child in below]
    return Code(text, tree, "", tuple(nodes), parents)
