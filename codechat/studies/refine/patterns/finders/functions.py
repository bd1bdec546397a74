"""Names that a program binds, and how it is divided into functions and classes."""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from codechat.sandbox.languages.python.syntax import parameters
from codechat.studies.refine.patterns.base import Occurrence, Regex, at, of_functions, pattern
from codechat.studies.refine.patterns.reading.code import Code, is_hint
from codechat.studies.refine.patterns.reading.tree import FUNCTIONS, Function, body_without_docstring, own_nodes, walk
from codechat.studies.refine.patterns.reading.use import idle, is_read

_JOINING = (ast.BoolOp, ast.Tuple)  # `assert os and re` names variables and uses none
_BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_"))


class Binding(NamedTuple):
    """A name's first binding in a function, parameters excepted."""

    name: str
    node: ast.AST
    function: Function


def local_bindings(code: Code) -> Iterator[Binding]:
    """Every local variable once: targets, loop and comprehension variables, `as` names, captures; `_` is none."""
    for function in code.functions:
        taken = {parameter.arg for parameter in parameters(function)} | {"_"}
        for node in own_nodes(function):
            if isinstance(node, ast.Global | ast.Nonlocal):
                taken.update(node.names)
        for node in own_nodes(function):
            name = bound_name(node)
            if name and name not in taken:
                taken.add(name)
                yield Binding(name, node, function)


def bound_name(node: ast.AST) -> str | None:
    """The variable that a node binds; None if it binds none."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else None
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return node.name
    return node.rest if isinstance(node, ast.MatchMapping) else None


@pattern("local_name", "local variable with such a name", "local variables with such names")
def local_name(code: Code, matches: Regex) -> Iterable[Occurrence]:
    """Local variables whose whole name matches."""
    for name, node, _ in local_bindings(code):
        if re.fullmatch(matches, name):
            yield at(node, f"'{name}'")


pattern("shadowing_local", "local variable that hides a built-in", "local variables that hide built-ins")(
    lambda code: (at(node, f"'{name}'") for name, node, _ in local_bindings(code) if name in _BUILTINS)
)


@pattern("unused_local", "unused local variable")
def unused_local(code: Code) -> Iterable[Occurrence]:
    """Local variables that are assigned and never read; a bare `name`, `_ = name` and `name = name` are no reads."""
    for name, node, function in local_bindings(code):
        above = code.parents.get(node)
        assigned = isinstance(above, ast.Assign | ast.AnnAssign | ast.NamedExpr)
        if isinstance(above, ast.Tuple | ast.List | ast.Starred) and not name.startswith("_"):
            assigned = any(isinstance(one, ast.Assign | ast.For) for one in code.ancestors(node))
        others = [one for one in walk(function) if isinstance(one, ast.Name) and one.id == name] if assigned else []
        if assigned and not any(isinstance(one.ctx, ast.Del) or is_real_read(code, one) for one in others):
            yield at(node, f"'{name}'")


def is_real_read(code: Code, name: ast.Name) -> bool:
    """Whether a name is read by more than a statement of the name alone, `_ = name` or `name = name`."""
    if name in idle(code):
        return False
    above = code.parents.get(name)
    targets = [getattr(target, "id", "") for target in above.targets] if isinstance(above, ast.Assign) else []
    return isinstance(name.ctx, ast.Load) and not isinstance(above, ast.Expr) and targets not in ([name.id], ["_"])


@pattern("unused_import", "unused import")
def unused_import(code: Code) -> Iterable[Occurrence]:
    """Imported names that are never read, or only by a statement of the name alone; `__future__` and `*` excepted."""
    whole = code.whole
    read = {
        node.id for node in whole.find(ast.Name)
        if is_real_read(code, node) and not whole.is_own(node, inner=True)
        and not isinstance(next((n for n in code.ancestors(node) if not isinstance(n, _JOINING)), None), ast.Assert)
    }  # fmt: skip
    exported = set[str]()
    for text in code.find(ast.Constant):
        if isinstance(text.value, str):
            around = next((one for one in code.ancestors(text) if isinstance(one, ast.stmt)), None)
            listed = around is not None and "__all__" in ast.unparse(around).partition("[")[0]
            exported.update(re.findall(r"\w+", text.value) if listed or is_hint(code, text) else ())
    for node in code.find(ast.Import, ast.ImportFrom):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            if name != "*" and name not in read | exported:
                yield at(node, f"'{name}'")


@pattern("assignment_to", "assignment to {matches}", "assignments to {matches}")
def assignment_to(code: Code, matches: Regex) -> Iterable[Occurrence]:
    """Module-level variables whose whole name matches and that are given a value."""
    body = code.tree.body if code.tree else []
    for statement in body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        given = getattr(statement, "value", None) is not None
        for target in (each for one in targets for each in (one.elts if isinstance(one, ast.Tuple) else [one])):
            if given and isinstance(target, ast.Name) and re.fullmatch(matches, target.id):
                yield at(statement, f"'{target.id}'")


@pattern("recursion", "recursive function")
def recursion(code: Code) -> Iterable[Occurrence]:
    """Functions and named lambdas that call themselves, also through others, or pass themselves on to be called."""
    for name, value in code.values.items():
        if isinstance(value, ast.Lambda):
            heads = [node.func for node in walk(value.body) if isinstance(node, ast.Call)]
            yield from [at(value, name)] if any(isinstance(one, ast.Name) and one.id == name for one in heads) else []
    bits = {function: 1 << number for number, function in enumerate(code.functions)}
    reached = [sum(bits[callee] for callee in set(_called(code, function))) for function in code.functions]
    for number in range(len(reached)):  # through the functions up to this one
        for caller, known in enumerate(reached):
            if known >> number & 1:
                reached[caller] = known | reached[number]
    for number, function in enumerate(code.functions):
        if reached[number] >> number & 1:
            yield at(function, function.name)


def _called(code: Code, caller: Function) -> Iterator[Function]:
    """The functions that a function calls by name, methods by attribute; without the calls of nested functions."""
    own = [
        node for outer in own_nodes(caller)
        for node in (outer, *(walk(outer.body) if isinstance(outer, ast.Lambda) else ()))
    ]  # fmt: skip
    calls = [node for node in own if isinstance(node, ast.Call)]
    heads = [each for node in calls for each in (node.func, *node.args)]
    named = {one.id for one in heads if isinstance(one, ast.Name)}
    through = {
        node.func.attr for node in calls
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    }  # fmt: skip
    hidden = {parameter.arg for parameter in parameters(caller)} | set(filter(None, map(bound_name, own)))
    named |= {value.id for name in named if isinstance(value := code.values.get(name), ast.Name)}
    for function in code.functions:
        method = isinstance(code.parents.get(function), ast.ClassDef)
        if function.name in (through if method else named - hidden):
            yield function


@pattern("helper", "helper function")
def helper(code: Code) -> Iterable[Occurrence]:
    """Functions at module level that another function of the program names."""
    for function in code.functions:
        if isinstance(code.parents.get(function), ast.ClassDef) or code.function_of(function):
            continue
        for node in code.find(ast.Name):
            if node.id != function.name or not is_real_read(code, node) or code.is_own(node, inner=True):
                continue
            around = [above for above in code.ancestors(node) if isinstance(above, FUNCTIONS)]
            if around and function not in around and node not in around[0].decorator_list:
                yield at(function, function.name)
                break


of_functions("nested_function", "nested function", when=lambda code, one: code.function_of(one) is not None)
of_functions("generator_function", "generator function", when=lambda _, one: any(
    isinstance(node, ast.Yield | ast.YieldFrom) and node.value is not None for node in own_nodes(one)
))  # fmt: skip


@pattern("long_function", "long function")
def long_function(code: Code, statements: int) -> Iterable[Occurrence]:
    """Functions with more statements than the limit, nested functions included and the docstring not counted."""
    for function in code.functions:
        inner = [node for node in walk(function) if isinstance(node, ast.stmt) and node is not function]
        if len(inner) - bool(ast.get_docstring(function)) > statements:
            yield at(function, function.name)


@pattern("decorated", "decorated definition")
def decorated(code: Code, by: list[str] | None = None, own: bool = False, fields: bool = False) -> Iterable[Occurrence]:
    """Functions and classes decorated `by` a name or an `own` function, also `f = cache(f)`; `fields`: with a field."""
    definitions = {node.name: node for node in code.find(*FUNCTIONS, ast.ClassDef)}
    decorations = [(node, one) for node in code.find(*FUNCTIONS, ast.ClassDef) for one in node.decorator_list]
    for call in code.find(ast.Call):
        given = call.args[0] if len(call.args) == 1 else None
        if isinstance(given, ast.Name) and given.id in definitions and _is_kept(code, call, given.id if own else ""):
            decorations.append((definitions[given.id], call.func))
    for call in code.find(ast.Call) if by and not own else ():  # `area = cached_property(lambda self: …)`
        given = call.args[0] if len(call.args) == 1 else None
        named = isinstance(given, ast.Name) and given.id in definitions
        if isinstance(code.parents.get(code.parents[call]), ast.ClassDef) and (named or isinstance(given, ast.Lambda)):
            yield from [at(call)] if any(fnmatchcase(code.called(call.func), name) for name in by or ()) else []
    for call in code.find(ast.Call) if "dataclasses.dataclass" in (by or ()) else ():
        if code.origin(call.func) == "dataclasses.make_dataclass" and len(call.args) > 1 and _is_kept(code, call):
            yield at(call)
    for node, decorator in decorations:
        head = decorator.func if isinstance(decorator, ast.Call) else decorator
        mine = (head.id if isinstance(head, ast.Name) else getattr(head, "attr", "")) in definitions
        if isinstance(node, FUNCTIONS) and by == ["staticmethod"] and not isinstance(code.parents[node], ast.ClassDef):
            continue
        wanted = (own and mine) or any(fnmatchcase(code.called(head), name) for name in by or [])
        if wanted and (_declares(node) or not fields):
            yield at(node, node.name)


@pattern("subclass", "class derived from {of}", "classes derived from {of}")
def subclass(
    code: Code, of: list[str], fields: bool = False, derived: bool = False, raised: bool = False
) -> Iterable[Occurrence]:
    """Classes with one of these as base or metaclass; options: with a field, with a derived class, raised."""
    bases = {base.id for node in code.find(ast.ClassDef) for base in node.bases if isinstance(base, ast.Name)}
    thrown = set(_raised(code)) if raised else set()
    for call in code.find(ast.Call) if not (derived or raised) else ():  # `Grade = Enum("Grade", "A B")`
        wanted = len(call.args) > 1 and any(fnmatchcase(code.origin(call.func), name) for name in of)
        yield from [at(call)] if wanted and _is_kept(code, call) else []
    for node in code.find(ast.ClassDef):
        heads = [head for one in node.body if isinstance(one, FUNCTIONS) for head in one.decorator_list]
        abstract = any(code.origin(head).rpartition(".")[2].startswith("abstract") for head in heads)
        if (fields and not _declares(node)) or (
            derived and (node.name not in bases or not (abstract or _says_abstract(node)))
        ):
            continue
        if raised and node.name not in thrown:
            continue
        kinds = [*node.bases, *(keyword.value for keyword in node.keywords)]
        kinds = [kind.value if isinstance(kind, ast.Subscript) else kind for kind in kinds]
        wanted = any(fnmatchcase(code.origin(kind), name) for kind in kinds for name in of)
        if wanted or (derived and not kinds and _says_abstract(node)):
            yield at(node, node.name)


def _is_kept(code: Code, call: ast.Call, name: str = "") -> bool:
    """Whether the result of a call is assigned to `name`, or if none is given to any name that is read."""
    above = code.parents[call]
    target = above.targets[0] if isinstance(above, ast.Assign) else None
    if not isinstance(above, ast.Assign) or not isinstance(target, ast.Name):
        return False
    return target.id == name if name else is_read(code, above, target.id)


def _raised(code: Code) -> Iterator[str]:
    for node in code.find(ast.Raise):
        value: ast.AST | None = node.exc
        if isinstance(value, ast.Name):
            value = code.values.get(value.id, value)
        head = value.func if isinstance(value, ast.Call) else value
        name = head.attr if isinstance(head, ast.Attribute) else getattr(head, "id", "")
        yield from [name] if name and not _is_caught(code, node, name) else []


def _is_caught(code: Code, node: ast.Raise, name: str) -> bool:
    inner: ast.AST = node
    for above in code.ancestors(node):
        if isinstance(above, ast.Try) and inner in above.body:
            texts = [ast.unparse(one.type) for one in above.handlers if one.type is not None]
            return name in texts
        inner = above
    return False


def _says_abstract(node: ast.ClassDef) -> bool:
    """Whether a name or docstring calls a class abstract or a base, and a method only raises."""
    said = "abstract" in f"{node.name} {ast.get_docstring(node)}".lower() or re.search(r"^Base|Base$", node.name)
    methods = [body_without_docstring(one) for one in node.body if isinstance(one, FUNCTIONS)]
    first = [ast.unparse(body[0]) for body in methods if body]
    return bool(said) and any(text.startswith("raise NotImplementedError") for text in first)


def _declares(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(isinstance(inner, ast.AnnAssign) for inner in node.body)


@pattern("working_class", "class that does the work", "classes that do the work")
def working_class(code: Code) -> Iterable[Occurrence]:
    """Classes with a method that does something, whose name is read outside of them in a function."""
    for node in code.find(ast.ClassDef):
        named = [list(code.ancestors(name)) for name in code.find(ast.Name) if name.id == node.name]
        used = any(node not in around and any(isinstance(one, FUNCTIONS) for one in around) for around in named)
        methods = (one for one in node.body if isinstance(one, FUNCTIONS) and one.name != "__init__")
        if used and any(not isinstance(one, ast.Pass | ast.Expr) for method in methods for one in method.body):
            yield at(node, node.name)


@pattern("closure", "closure")
def closure(code: Code) -> Iterable[Occurrence]:
    """Functions that return a function or lambda made inside them, alone or among other values."""
    for function in code.functions:
        inner = {node.name for node in own_nodes(function) if isinstance(node, FUNCTIONS)}
        inner |= {name for name, value in code.values.items() if isinstance(value, ast.Lambda)}
        for node in own_nodes(function):
            value = node.value if isinstance(node, ast.Return) else None
            values = value.elts if isinstance(value, ast.Tuple) else [value]
            if any(isinstance(one, ast.Lambda) or (isinstance(one, ast.Name) and one.id in inner) for one in values):
                yield at(node, function.name)


@pattern("keyword_argument", "keyword argument")
def keyword_argument(code: Code) -> Iterable[Occurrence]:
    """Arguments passed by keyword."""
    for node in code.find(ast.keyword):
        value = code.values.get(node.value.id) if isinstance(node.value, ast.Name) else node.value
        if (node.arg or (isinstance(value, ast.Dict) and value.keys)) and isinstance(code.parents.get(node), ast.Call):
            yield at(node, f"'{node.arg or '**'}'")
