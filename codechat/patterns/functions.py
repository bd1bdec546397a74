"""How a program is cut into functions and classes, and how these use each other."""

import ast
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from codechat.languages.python.syntax import parameters
from codechat.patterns.base import Occurrence, at, pattern
from codechat.patterns.code import Code
from codechat.patterns.names import bound_name
from codechat.patterns.tree import FUNCTIONS, Function, own_nodes, walk

MUTATORS = {"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "add", "discard"}


@pattern("recursion", "recursive function")
def recursion(code: Code) -> Iterable[Occurrence]:
    """Functions that call themselves, directly or through others of the program."""
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
    """The program's functions that one calls by name, or by attribute for methods; its nested ones run on their own."""
    calls = [node.func for node in _own(caller) if isinstance(node, ast.Call)]
    named = {one.id for one in calls if isinstance(one, ast.Name)}
    through = {one.attr for one in calls if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name)}
    hidden = {parameter.arg for parameter in parameters(caller)} | set(filter(None, map(bound_name, _own(caller))))
    for function in code.functions:
        method = isinstance(code.parents.get(function), ast.ClassDef)
        if function.name in (through if method else named - hidden):
            yield function


def _own(function: Function) -> Iterator[ast.AST]:
    for node in own_nodes(function):
        yield node
        if isinstance(node, ast.Lambda):
            yield from walk(node.body)


@pattern("helper", "helper function")
def helper(code: Code) -> Iterable[Occurrence]:
    """Functions outside any other and any class that another function of the program names."""
    for function in code.functions:
        if isinstance(code.parents.get(function), ast.ClassDef) or code.function_of(function):
            continue
        if any(node.id == function.name and _outside(code, node, function) for node in code.find(ast.Name)):
            yield at(function, function.name)


def _outside(code: Code, node: ast.AST, function: Function) -> bool:
    """Whether a name is read in some function, but not in that one itself."""
    around = [above for above in code.ancestors(node) if isinstance(above, FUNCTIONS)]
    decorates = bool(around) and node in [*around[0].decorator_list]
    return bool(around) and function not in around and not decorates


@pattern("nested_function", "nested function")
def nested_function(code: Code) -> Iterable[Occurrence]:
    """Functions defined inside a function."""
    return (at(function, function.name) for function in code.functions if code.function_of(function))


@pattern("long_function", "long function")
def long_function(code: Code, statements: int) -> Iterable[Occurrence]:
    """Functions with more than that many statements, nested ones included and the docstring left out."""
    for function in code.functions:
        inner = [node for node in walk(function) if isinstance(node, ast.stmt) and node is not function]
        if len(inner) - bool(ast.get_docstring(function)) > statements:
            yield at(function, function.name)


@pattern("generator_function", "generator function")
def generator_function(code: Code) -> Iterable[Occurrence]:
    """Functions with a yield of their own."""
    for function in code.functions:
        if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(function)):
            yield at(function, function.name)


@pattern("decorated", "decorated definition")
def decorated(code: Code, by: list[str] | None = None, own: bool = False, fields: bool = False) -> Iterable[Occurrence]:
    """Functions and classes decorated by one of these names, or with `own` by a function that the program defines.

    With `fields` only classes that declare one, `name: type`.
    """
    defined = {function.name for function in code.functions}
    for node in code.find(*FUNCTIONS, ast.ClassDef):
        if fields and not _declares(node):
            continue
        for decorator in node.decorator_list:
            head = decorator.func if isinstance(decorator, ast.Call) else decorator
            mine = isinstance(head, ast.Name) and head.id in defined
            if (own and mine) or any(fnmatchcase(code.origin(head), name) for name in by or []):
                yield at(node, node.name)


@pattern("subclass", "class derived from {of}", "classes derived from {of}")
def subclass(
    code: Code, of: list[str], fields: bool = False, derived: bool = False, raised: bool = False
) -> Iterable[Occurrence]:
    """Classes that derive from one of these or have it as metaclass; by option those alone that declare a field, that
    another class of the program derives from, that the program raises.
    """
    bases = {base.id for node in code.find(ast.ClassDef) for base in node.bases if isinstance(base, ast.Name)}
    raises = [node.exc.func if isinstance(node.exc, ast.Call) else node.exc for node in code.find(ast.Raise)]
    thrown = {name.id for name in raises if isinstance(name, ast.Name)}
    for node in code.find(ast.ClassDef):
        if (fields and not _declares(node)) or (derived and node.name not in bases):
            continue
        if raised and node.name not in thrown:
            continue
        kinds = [*node.bases, *(keyword.value for keyword in node.keywords)]
        if any(fnmatchcase(code.origin(kind), name) for kind in kinds for name in of):
            yield at(node, node.name)


def _declares(node: ast.AST) -> bool:
    """Whether a class body holds `name: type`."""
    return isinstance(node, ast.ClassDef) and any(isinstance(inner, ast.AnnAssign) for inner in node.body)


_SIZED = {"len", "sum", "min", "max", "sorted", "list", "tuple", "set", "enumerate", "zip", "map", "filter", "reversed"}


@pattern("cacheable", "function whose arguments can be hashed", "functions whose arguments can be hashed")
def cacheable(code: Code) -> Iterable[Occurrence]:
    """Functions that give a value, change nothing outside, and treat no parameter as what may be a list, set or dict.

    A parameter that is walked through, indexed, matched, unpacked, measured or hinted as such may be one, unless its
    hint or a method says that it is a text or another value that can be hashed.
    """
    for function in code.functions:
        names = {parameter.arg for parameter in parameters(function)} - _hashable(code, function)
        own = list(own_nodes(function))
        gives = any(isinstance(node, ast.Return) and node.value is not None for node in own)
        lasting = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.Global, ast.Nonlocal)
        if not gives or isinstance(function, ast.AsyncFunctionDef) or any(isinstance(node, lasting) for node in own):
            continue
        if not _stores_outside(function) and not any(names & _containers(code, node) for node in walk(function)):
            yield at(function, function.name)


def _stores_outside(function: Function) -> bool:
    """Whether it puts something into what is not a local of its own or of a function inside."""
    inside = walk(function)
    own = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own -= {parameter.arg for parameter in parameters(function)}
    stores = [
        node for node in inside if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store)
    ]
    return any(not isinstance(node.value, ast.Name) or node.value.id not in own for node in stores)


def _containers(code: Code, node: ast.AST) -> set[str]:
    """The names that a node treats as a collection."""
    if isinstance(node, ast.arg):
        return {node.arg} if node.annotation is not None and _head(code, node.annotation) in _UNHASHABLE else set()
    held: list[ast.expr] = []
    if isinstance(node, ast.For | ast.comprehension):
        held = [node.iter]
    elif isinstance(node, ast.Subscript | ast.Starred):
        held = [node.value]
    elif isinstance(node, ast.Match):
        held = [node.subject]
    elif isinstance(node, ast.Call):
        mutated = isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS
        held = [node.func.value] if mutated and isinstance(node.func, ast.Attribute) else []
        held += node.args if code.origin(node.func) in _SIZED else []
    elif isinstance(node, ast.Compare):
        pairs = zip(node.ops, node.comparators, strict=True)
        held = [right for sign, right in pairs if isinstance(sign, ast.In | ast.NotIn)]
    return {one.id for one in held if isinstance(one, ast.Name)}


_HASHABLE = {"str", "int", "float", "bool", "bytes", "complex", "tuple", "frozenset"}
_TEXTUAL = {"split", "lower", "upper", "strip", "startswith", "endswith", "isdigit", "isalpha", "isupper", "islower"}


def _hashable(code: Code, function: Function) -> set[str]:
    """The parameters that are hinted as what can be hashed, or used as texts."""
    hinted = {one.arg for one in parameters(function) if one.annotation and _head(code, one.annotation) in _HASHABLE}
    methods = [node for node in walk(function) if isinstance(node, ast.Attribute) and node.attr in _TEXTUAL]
    return hinted | {node.value.id for node in methods if isinstance(node.value, ast.Name)}


def _head(code: Code, hint: ast.expr) -> str:
    """`list` of `list[int]` and of `typing.List[int]`."""
    return code.origin(hint.value if isinstance(hint, ast.Subscript) else hint).rpartition(".")[2].lower()


_UNHASHABLE = {"list", "dict", "set", "sequence", "iterable", "mapping", "deque", "defaultdict", "counter", "bytearray"}


@pattern("working_class", "class that does the work", "classes that do the work")
def working_class(code: Code) -> Iterable[Occurrence]:
    """Classes with a method, whose name a function outside them reads."""
    for node in code.find(ast.ClassDef):
        named = [list(code.ancestors(name)) for name in code.find(ast.Name) if name.id == node.name]
        used = any(node not in around and any(isinstance(one, FUNCTIONS) for one in around) for around in named)
        if used and any(isinstance(inner, FUNCTIONS) for inner in node.body):
            yield at(node, node.name)


@pattern("mutated_parameter", "change to an argument", "changes to an argument")
def mutated_parameter(code: Code) -> Iterable[Occurrence]:
    """Statements that change a parameter's object in place; a parameter that is rebound anywhere counts as a copy."""
    for function in code.functions:
        names = {parameter.arg for parameter in parameters(function)} - {"self", "cls"}
        own = list(own_nodes(function))
        names -= {node.id for node in own if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        for node in own:
            target: ast.AST | None = None
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
                target = node.func.value
            elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                target = node.value
            if isinstance(target, ast.Name) and target.id in names:
                yield at(node, f"'{target.id}'")


@pattern("closure", "closure")
def closure(code: Code) -> Iterable[Occurrence]:
    """Functions that return a function or lambda made inside them."""
    for function in code.functions:
        inner = {node.name for node in own_nodes(function) if isinstance(node, FUNCTIONS)}
        for node in own_nodes(function):
            value = node.value if isinstance(node, ast.Return) else None
            if isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in inner):
                yield at(node, function.name)


@pattern("keyword_argument", "keyword argument")
def keyword_argument(code: Code) -> Iterable[Occurrence]:
    """Arguments passed by keyword."""
    for node in code.find(ast.keyword):
        if node.arg and isinstance(code.parents.get(node), ast.Call):
            yield at(node, f"'{node.arg}'")
