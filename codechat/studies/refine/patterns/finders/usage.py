"""Things that a program makes use of: built-ins, library functions, methods, collections."""

import ast
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

from codechat.studies.refine.patterns.base import Occurrence, at, pattern
from codechat.studies.refine.patterns.finders.hints import parts
from codechat.studies.refine.patterns.reading.code import Code, is_hint
from codechat.studies.refine.patterns.reading.tree import (
    COMPREHENSIONS,
    FUNCTIONS,
    LOOPS,
    body_without_docstring,
    own_nodes,
)
from codechat.studies.refine.patterns.reading.use import assignments


@pattern("use", "use of {names}", "uses of {names}")
def use(code: Code, names: list[str], in_hint: bool = False) -> Iterable[Occurrence]:
    """Reads of these names, however they were imported: `sorted`, `functools.reduce`, `itertools.*`, `.append`.

    An import alone is no use, nor is an annotation unless `in_hint` asks for annotations; a name that the program
    binds itself is its own. A module's constants are not among its functions (`math.*`); `typing.Final` inside a
    function does not count for one at module level; an `assert` is a use of `__debug__`, on which it depends.
    """
    for node in code.find(ast.Name, ast.Attribute):
        inner = isinstance(code.parents.get(node), ast.Attribute)
        origin = code.origin(node) if isinstance(node.ctx, ast.Load) and not inner else ""
        matched = origin and any(fnmatchcase(origin, name) for name in names) and is_hint(code, node) is in_hint
        local = origin == "typing.Final" and (code.function_of(node) is not None or _declares_nothing(code, node))
        if matched and not local and (origin not in _CONSTANTS or origin in names) and not _is_own_method(code, node):
            yield at(node, origin.removeprefix("."))
    for part, place in parts(code) if in_hint else ():  # in quotes
        matched = part is not place and isinstance(part, ast.Name | ast.Attribute)
        dotted = ast.unparse(part) if matched and code.function_of(place) is None else ""
        root, _, rest = dotted.partition(".")
        if f"{code.imports.get(root, root)}{'.' if rest else ''}{rest}" in names:
            yield at(place, dotted)
    if "__debug__" in names:
        yield from (at(node, "assert") for node in code.find(ast.Assert))


def _is_own_method(code: Code, node: ast.Name | ast.Attribute) -> bool:
    """Whether a method belongs to a class of the program, as the object's variable is bound once, to an instance."""
    base = node.value if isinstance(node, ast.Attribute) else None
    made = code.values.get(base.id) if isinstance(base, ast.Name) else base
    maker = made.func.id if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) else ""
    classes = [one for one in code.find(ast.ClassDef) if one.name == maker] if maker else []
    return any(getattr(each, "name", "") == getattr(node, "attr", None) for one in classes for each in one.body)


def _declares_nothing(code: Code, node: ast.AST) -> bool:
    """Whether an annotation at module level belongs to a name without a value."""
    statement = next((one for one in code.ancestors(node) if isinstance(one, ast.stmt)), None)
    return isinstance(statement, ast.AnnAssign) and statement.value is None


_CONSTANTS = {f"math.{name}" for name in ("pi", "e", "inf", "nan", "tau")} | {
    f"re.{name}" for name in ("I", "IGNORECASE", "M", "MULTILINE", "S", "DOTALL", "X", "VERBOSE", "Match", "Pattern")
}


@pattern("call", "call of {names}", "calls of {names}")
def call(code: Code, names: list[str]) -> Iterable[Occurrence]:
    """Calls of these names, read as in `use`, also by a name that stands for one; `log(DEBUG, ...)` is `debug(...)`."""
    for node in code.find(ast.Call):
        origin = code.called(node.func)
        level = node.args[0] if origin in ("logging.log", ".log") and node.args else None
        if level is not None and (code.origin(level) == "logging.DEBUG" or ast.unparse(level) == "10"):
            origin = "logging.debug"
        if origin and any(fnmatchcase(origin, name) for name in names):
            yield at(node, origin.removeprefix("."))


@pattern("imported", "import of {modules}", "imports of {modules}")
def imported(code: Code, modules: list[str]) -> Iterable[Occurrence]:
    """Import statements that name one of these modules, or one of these names written `module.name`."""
    for node in code.find(ast.Import, ast.ImportFrom):
        named = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            named = [node.module or "", *(f"{node.module}.{name}" for name in named)]
        if any(fnmatchcase(name, module) for name in named for module in modules) and _is_on_top(code, node):
            yield at(node, named[0])


def _is_on_top(code: Code, node: ast.Import | ast.ImportFrom) -> bool:
    """Whether a `__future__` import stands at the top, under the docstring at most: nothing else is allowed."""
    if not isinstance(node, ast.ImportFrom) or node.module != "__future__":
        return True
    body = body_without_docstring(code.tree) if code.tree else []
    before = body[: body.index(node)] if node in body else [node]
    return all(isinstance(one, ast.ImportFrom) and one.module == "__future__" for one in before) and node in body


_MAKERS: dict[str, tuple[tuple[type[ast.expr], ...], tuple[str, ...]]] = {
    "list": ((ast.List, ast.ListComp), ("list",)),
    "dict": (
        (ast.Dict, ast.DictComp),
        ("dict", "collections.defaultdict", "collections.Counter", "collections.OrderedDict"),
    ),
    "set": ((ast.Set, ast.SetComp), ("set", "frozenset")),
    "tuple": ((ast.Tuple,), ("tuple",)),
}


@pattern("collection", "{kind}")
def collection(code: Code, kind: Literal["list", "dict", "set", "tuple"]) -> Iterable[Occurrence]:
    """Collections that the program makes by a literal, a comprehension or a call; annotations and indices are none."""
    displays, makers = _MAKERS[kind]
    for node in code.find(ast.Call, *displays):
        if isinstance(node, ast.Call):
            made = code.called(node.func) in makers and not _gives_back_list(code, node)
        else:
            index = getattr(code.parents.get(node), "slice", None) is node
            made = isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and not index and not is_hint(code, node)
        if made and not (kind == "list" and _becomes_deque(code, node)):
            yield at(node)


def _becomes_deque(code: Code, node: ast.AST) -> bool:
    """Whether a list only fills a new deque, as in `deque([start])`."""
    above = code.parents.get(node)
    return isinstance(above, ast.Call) and node in above.args and code.called(above.func) == "collections.deque"


def _gives_back_list(code: Code, node: ast.Call) -> bool:
    """Whether a deque that the program made becomes a list only to be returned."""
    name = node.args[0].id if len(node.args) == 1 and isinstance(node.args[0], ast.Name) else ""
    made = [
        value for place, targets, value in assignments(code)
        if name and code.function_of(place) is code.function_of(node)
        and name in [getattr(one, "id", "") for one in targets]
    ]  # fmt: skip
    deques = [isinstance(one, ast.Call) and code.origin(one.func) == "collections.deque" for one in made]
    returned = any(isinstance(above, ast.Return) for above in code.ancestors(node))
    return returned and code.origin(node.func) == "list" and bool(deques) and all(deques)


@pattern("bit_operation", "bitwise operation")
def bit_operation(code: Code) -> Iterable[Occurrence]:
    """Uses of `&`, `|`, `^`, `~`, `<<` and `>>` outside annotations."""
    operators = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift, ast.Invert)
    for node in code.find(ast.BinOp, ast.AugAssign, ast.UnaryOp):
        if isinstance(node.op, operators) and not is_hint(code, node):
            yield at(node)


TRAVERSING = [
    "sum", "min", "max", "any", "all", "map", "filter", "sorted", "reversed", "zip", "enumerate", "range", "list",
    "set", "tuple", "functools.reduce", ".join", ".sort", ".count", ".index", ".reverse",
]  # fmt: skip


@pattern("traversal", "walk through values", "walks through values")
def traversal(code: Code) -> Iterable[Occurrence]:
    """Loops, comprehensions, and calls that go through all elements."""
    yield from (at(node) for node in code.find(*LOOPS, *COMPREHENSIONS))
    yield from call(code, TRAVERSING)


@pattern("global_counter", "global counter")
def global_counter(code: Code) -> Iterable[Occurrence]:
    """Statements that add one to a name that their function declares global: `n += 1` or `n = n + 1`.

    `calls[0] += 1` and `f.calls += 1` on an object of the module, and `next(...)` of an `itertools.count`, count
    too.
    """
    body = code.tree.body if code.tree else []
    outer = {
        one.id for each in body if isinstance(each, ast.Assign) for one in each.targets if isinstance(one, ast.Name)
    }
    outer |= {each.name for each in body if isinstance(each, FUNCTIONS)}
    for function in code.functions:
        declared: set[str] = set()
        updates: list[ast.stmt] = []
        for node in own_nodes(function):
            if isinstance(node, ast.Global):
                declared.update(node.names)
            elif isinstance(node, ast.AugAssign | ast.Assign) and isinstance(node.value, ast.Constant | ast.BinOp):
                updates.append(node)
            elif isinstance(node, ast.Call) and node.args and code.origin(node.func) == "next":
                made = code.values.get(getattr(node.args[0], "id", ""))
                if isinstance(made, ast.Call) and code.origin(made.func) == "itertools.count":
                    yield at(node)
        for update in updates:
            name = _raised_by_one(update, declared, outer)
            if name:
                yield at(update, f"'{name}'")


def _raised_by_one(update: ast.stmt, declared: set[str], outer: set[str]) -> str:
    """The global name, or the module's object, to which a statement adds one; empty if it does not."""
    text = ast.unparse(update)
    raised = re.fullmatch(r"(\w+) (?:\+= 1|= \1 \+ 1|= 1 \+ \1)", text)
    held = re.fullmatch(r"(\w+)(\.\w+|\[(\d+|'.*')\]) \+= 1", text)
    if raised is not None and raised[1] in declared:
        return raised[1]
    named = re.fullmatch(r"globals\(\)\['(\w+)'\] \+= 1", text)
    held = named or held
    return held[1] if held is not None and held[1] in outer else ""
