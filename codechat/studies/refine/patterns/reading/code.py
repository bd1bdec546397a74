"""Code read once: its syntax tree, its tokens, and the derived views that patterns share."""

import ast
import builtins
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, TypeVar, overload

from codechat.sandbox.languages.python.syntax import tree_of
from codechat.studies.refine.patterns.reading.tree import FUNCTIONS, Function, children, is_main_guard, may_quote_hash

MAX_NODES = 20_000  # some patterns compare nodes with each other; no program for a task has so many
MAX_BITS = 10_000  # of a whole number: Python refuses to write longer ones in decimal digits
MAX_DEPTH = 180  # deeper trees are no code a person wrote, and would exhaust the stack of recursive readers
_SAME = {"builtins": "", "typing_extensions": "typing."}  # modules that give what another one has
_BUILT_IN = ("bool", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple")
_WRITTEN = (ast.Constant, ast.UnaryOp, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.JoinedStr)
_DIRECTIVES = ("type:", "noqa", "pylint:", "pragma:", "fmt:", "mypy:", "ruff:", "isort:", "flake8:", "-*-", "pyright:")

N = TypeVar("N", bound=ast.AST)
M = TypeVar("M", bound=ast.AST)
L = TypeVar("L", bound=ast.AST)


@dataclass(frozen=True)
class Comment:
    """A comment for people: those for tools (`# type:`, `# noqa`, a shebang) are not counted."""

    line: int
    column: int
    text: str
    own_line: bool


@dataclass(frozen=True, eq=False)
class Code:
    """One version of a program.

    `tree` is None if the program does not parse, and `problem` says why. `nodes` does not contain the main guard.
    `text` has normalised line ends and no byte order mark. `tokens_problem` says why the list of tokens is
    incomplete.
    """

    text: str
    tree: ast.Module | None
    problem: str
    nodes: tuple[ast.AST, ...]
    parents: dict[ast.AST, ast.AST]
    found: dict[object, Any] = field(default_factory=dict, repr=False)
    """Results of earlier searches, by the search: a turn's code afterwards is the next turn's code before."""

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
        wanted = [kind for kind in _with_subclasses(kinds) if kind in self._by_kind]
        if len(wanted) < 2:
            return iter(self._by_kind[wanted[0]] if wanted else ())
        return iter([node for node in self.nodes if type(node) in wanted])

    @cached_property
    def _by_kind(self) -> dict[type[ast.AST], list[Any]]:
        found = defaultdict[type[ast.AST], list[Any]](list)
        for node in self.nodes:
            found[type(node)].append(node)
        return found

    @property
    def whole(self) -> "Code":
        """The program with its main guard; this same object if there is none, or if its tree is too deep to read."""
        return self._guarded or self

    @cached_property
    def _guarded(self) -> "Code | None":  # never itself: a program that held itself would wait for the collector
        if self.tree is None or not any(map(is_main_guard, self.tree.body)):
            return None
        nodes, parents, problem = _gathered(self.tree, guarded=True)
        return None if problem else Code(self.text, self.tree, "", nodes, parents)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def _tokenized(self) -> tuple[tuple[tokenize.TokenInfo, ...], str]:
        found: list[tokenize.TokenInfo] = []
        try:
            found.extend(with_whole_strings(tokenize.generate_tokens(io.StringIO(self.text).readline), self.lines))
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
        """Line and column of every comment: the first # of a line if no string can hold one, else by tokens."""
        if "#" not in self.text:
            return
        if self.tree is None or any(map(may_quote_hash, self.whole.find(ast.Constant, ast.JoinedStr))):
            yield from (token.start for token in self.tokens if token.type == tokenize.COMMENT)
        else:
            yield from ((line, text.index("#")) for line, text in enumerate(self.lines, 1) if "#" in text)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        return tuple(self.find(*FUNCTIONS))

    @cached_property
    def string_lines(self) -> frozenset[int]:
        """The lines that begin inside a string of several lines: their layout is content."""
        strings = (token for token in self.tokens if token.type == tokenize.STRING)
        return frozenset(line for token in strings for line in range(token.start[0] + 1, token.end[0] + 1))

    @cached_property
    def imports(self) -> dict[str, str]:
        """The dotted origin of every imported name: `{"np": "numpy", "reduce": "functools.reduce"}`."""
        origin: dict[str, str] = {}
        for node in self.find(ast.Import, ast.ImportFrom):
            for alias in node.names:
                if isinstance(node, ast.ImportFrom):
                    module = _SAME.get(node.module or "", f"{node.module or ''}.")
                    origin[alias.asname or alias.name] = f"{module}{alias.name}"
                else:
                    root = alias.name if alias.asname else alias.name.partition(".")[0]
                    origin[alias.asname or root] = root
        return origin

    @cached_property
    def _bound(self) -> dict[ast.AST, set[str]]:
        """The names that each function, each lambda and the module bind."""
        names: dict[ast.AST, set[str]] = {}
        for node in self.find(*FUNCTIONS, ast.ClassDef, ast.Name, ast.arg):
            name = getattr(node, "name", None) or getattr(node, "arg", None)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            if name is not None:
                names.setdefault(self._scope(node), set()).add(name)
        return names

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset().union(*self._bound.values())

    def _scope(self, node: ast.AST) -> ast.AST:
        kinds = (*FUNCTIONS, ast.Lambda, ast.ClassDef, ast.Module)
        return next((above for above in self.ancestors(node) if isinstance(above, kinds)), node)

    def is_own(self, node: ast.Name, *, inner: bool = False) -> bool:
        """Whether the program binds a name in a scope around it; with `inner` in one other than the module."""
        scopes = self.ancestors(node) if node.id in self._names else ()
        return any(node.id in self._bound.get(one, ()) for one in scopes if not inner or one is not self.tree)

    def origin(self, expression: ast.AST) -> str:
        """The full name of a name or attribute: `functools.reduce`, `sorted`, `.append`; empty if unknown."""
        if isinstance(expression, ast.Name):
            if self.is_own(expression):
                return ""
            if expression.id not in self.imports and not hasattr(builtins, expression.id):
                stars = (one.module or "" for one in self.find(ast.ImportFrom) if one.names[0].name == "*")
                return next((f"{module}.{expression.id}" for module in stars), expression.id)
            return self.imports.get(expression.id, expression.id)
        if isinstance(expression, ast.Attribute):
            base = expression.value
            parts = [expression.attr]
            while isinstance(base, ast.Attribute):
                parts.append(base.attr)
                base = base.value
            if isinstance(base, ast.Name) and base.id in self.imports and not self.is_own(base):
                module = _SAME.get(self.imports[base.id], f"{self.imports[base.id]}.")
                return module + ".".join(reversed(parts))
            loaded = self._module_of(base)
            return f"{loaded}.{'.'.join(reversed(parts))}" if loaded else f".{expression.attr}"
        return ""

    def _module_of(self, base: ast.AST) -> str:
        """The module that `__import__("math")` or `importlib.import_module("math")` gives, also by a variable."""
        if isinstance(base, ast.Name):
            base = self.values.get(base.id, base)
        name = base.args[0] if isinstance(base, ast.Call) and len(base.args) == 1 else None
        if not isinstance(base, ast.Call) or not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            return ""
        loads = self.origin(base.func) in ("__import__", "importlib.import_module")
        return name.value if loads else ""

    @cached_property
    def values(self) -> dict[str, ast.expr]:
        """The values of the names that the program binds exactly once, by an assignment."""
        found: dict[str, ast.expr | None] = {}
        for node in self.find(ast.Name, ast.arg, *FUNCTIONS, ast.ClassDef):
            if isinstance(node, ast.Name):
                above, name = self.parents.get(node), node.id
                if isinstance(node.ctx, ast.Store):
                    assigned = isinstance(above, ast.Assign | ast.AnnAssign | ast.NamedExpr)
                    found[name] = getattr(above, "value", None) if assigned and name not in found else None
            else:
                found[node.arg if isinstance(node, ast.arg) else getattr(node, "name", "")] = None
        return {name: value for name, value in found.items() if value is not None}

    def called(self, expression: ast.AST) -> str:
        """The full name of a called function, also by a variable: after `show = print`, `show(x)` calls `print`."""
        origin, seen = self.origin(expression), set[str]()
        while not origin and isinstance(expression, ast.Name) and expression.id not in seen:
            seen.add(expression.id)
            expression = self.values.get(expression.id, expression)
            origin = self.origin(expression)
        return origin

    def is_literal(self, node: ast.AST) -> bool:
        """Whether an expression is a value that is written out, however it has to be written.

        `-1`, `1 - 2j`, `not True`, a text, an f-string without fields, a display of literals such as `[]` or `1, 2`,
        `math.pi`, `Color.RED`, and a built-in type called with literals, such as `set()` or `float("inf")`.
        """
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if isinstance(one, ast.Call) and self.origin(one.func) in _BUILT_IN:
                waiting += [*one.args, *(each.value for each in one.keywords)]
            elif isinstance(one, ast.Attribute) and (one.attr.isupper() or self.origin(one).startswith("math.")):
                continue
            elif isinstance(one, _WRITTEN) or (isinstance(one, ast.BinOp) and _is_complex(one)):
                waiting += children(one)
            else:
                return False
        return True

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around one, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function_of(self, node: ast.AST) -> Function | None:
        """The innermost function around a node; its defaults and decorators count as inside."""
        return next((above for above in self.ancestors(node) if isinstance(above, FUNCTIONS)), None)


@lru_cache(maxsize=1024)
def _with_subclasses(kinds: tuple[type[ast.AST], ...]) -> list[type[ast.AST]]:
    every = (kind for kind in vars(ast).values() if isinstance(kind, type))
    return [kind for kind in every if issubclass(kind, kinds)]


def is_hint(code: Code, node: ast.AST) -> bool:
    """Whether a node stands in a type annotation."""
    inner = node
    for above in code.ancestors(node):
        if inner in (getattr(above, "annotation", None), getattr(above, "returns", None)):
            return True
        if isinstance(above, ast.stmt):
            return False
        inner = above
    return False


def _is_complex(node: ast.BinOp) -> bool:
    """Whether a sum may be a complex number, which has an imaginary part at its end."""
    imaginary = isinstance(node.right, ast.Constant) and isinstance(node.right.value, complex)
    return imaginary and isinstance(node.op, ast.Add | ast.Sub)


def _gathered(tree: ast.Module, *, guarded: bool) -> tuple[tuple[ast.AST, ...], dict[ast.AST, ast.AST], str]:
    """The nodes in source order, their parents, and why the tree cannot be read; `guarded`: with the main guard."""
    nodes: list[ast.AST] = [tree]
    parents: dict[ast.AST, ast.AST] = {}
    problem, depth = "", 1
    below = children(tree) if guarded else [each for each in children(tree) if not is_main_guard(each)]
    parents.update(dict.fromkeys(below, tree))
    stack: list[ast.AST | None] = [*reversed(below)]  # None ends what is below a node
    while stack:
        node = stack.pop()
        if node is None:
            depth -= 1
            continue
        nodes.append(node)
        if type(node) is ast.Constant:
            if isinstance(node.value, int) and node.value.bit_length() > MAX_BITS:
                problem = "a number with too many digits"
        elif type(node) is not ast.Name and (below := children(node)):
            parents.update(dict.fromkeys(below, node))
            stack.append(None)
            below.reverse()
            stack += below
            depth += 1
            if depth > MAX_DEPTH:
                problem = "nested too deeply to read"
                break
    if len(nodes) > MAX_NODES:
        problem = f"more than {MAX_NODES:,} parts"
    return ((), {}, f"does not parse: {problem}") if problem else (tuple(nodes), parents, "")


@lru_cache(maxsize=512)  # 64 sessions at once come back to a program after some 400 others
def read(text: str) -> Code:
    """Read a program. Never raises."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        tree = tree_of(text)
    except SyntaxError as error:
        place = f" (line {error.lineno})" if error.lineno else ""
        return Code(text, None, f"does not parse: {error.msg}{place}", (), {})
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return Code(text, None, f"does not parse: {error or type(error).__name__}", (), {})
    nodes, parents, problem = _gathered(tree, guarded=False)
    return Code(text, None if problem else tree, problem, nodes, parents)


def with_whole_strings(tokens: Iterable[tokenize.TokenInfo], lines: Sequence[str]) -> Iterator[tokenize.TokenInfo]:
    """The tokens with each f-string as one STRING, as Python 3.11 gives them: later versions give its parts."""
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
