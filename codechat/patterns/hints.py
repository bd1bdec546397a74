"""Type annotations and docstrings."""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Literal

from codechat.languages.python.syntax import parameters
from codechat.patterns.base import Occurrence, Regex, at, pair, pattern
from codechat.patterns.code import Code
from codechat.patterns.names import local_bindings
from codechat.patterns.tree import FUNCTIONS, Function, body_without_docstring, docstring, walk

_LEGACY = {"List", "Dict", "Set", "FrozenSet", "Tuple", "Type", "Deque", "DefaultDict"}
_GENERICS = {"list", "dict", "set", "frozenset", "tuple", "type", "deque", "defaultdict"}


@pair(
    ("parameter_hint", "parameter with a type hint", "parameters with a type hint"),
    ("bare_parameter", "parameter without a type hint", "parameters without a type hint"),
)
def parameter_hint(code: Code) -> Iterable[tuple[Occurrence, bool]]:
    """Parameters, but for the `self` or `cls` of a method; whether they are annotated."""
    return ((at(one, f"'{one.arg}'"), one.annotation is not None) for _, one in _parameters(code))


def _parameters(code: Code) -> Iterator[tuple[Function, ast.arg]]:
    for function in code.functions:
        given = parameters(function)
        method = isinstance(code.parents.get(function), ast.ClassDef) and given and given[0].arg in ("self", "cls")
        yield from ((function, one) for one in given[bool(method) :])


@pair(
    ("return_hint", "function with a return type", "functions with a return type"),
    ("bare_function", "function without a return type", "functions without a return type"),
)
def return_hint(code: Code) -> Iterable[tuple[Occurrence, bool]]:
    """Functions; whether their return type is annotated."""
    return ((at(one, one.name), one.returns is not None) for one in code.functions)


@pattern("local_hint", "annotated local variable")
def local_hint(code: Code) -> Iterable[Occurrence]:
    """Annotated assignments to names inside functions."""
    for node in code.find(ast.AnnAssign):
        if isinstance(node.target, ast.Name) and code.function_of(node):
            yield at(node, f"'{node.target.id}'")


@pattern("bare_local", "local variable without a type hint", "local variables without a type hint")
def bare_local(code: Code) -> Iterable[Occurrence]:
    """Local variables first bound by `name = value` and annotated nowhere in their function."""
    targets = [node.target for node in code.find(ast.AnnAssign)]
    hinted = {(one.id, code.function_of(one)) for one in targets if isinstance(one, ast.Name)}
    for name, node, function in local_bindings(code):
        above = code.parents.get(node)
        if isinstance(above, ast.Assign) and node in above.targets and (name, function) not in hinted:
            yield at(node, f"'{name}'")


@pattern("legacy_hint", "typing alias")
def legacy_hint(code: Code, kind: Literal["generic", "optional"]) -> Iterable[Occurrence]:
    """Uses of typing's `List`, `Dict`, … (`generic`) or of its `Optional` and `Union` (`optional`)."""
    wanted = _LEGACY if kind == "generic" else {"Optional", "Union"}
    for node in code.find(ast.Name, ast.Attribute):
        module, _, name = code.origin(node).rpartition(".")
        if module == "typing" and name in wanted:
            yield at(node, name)


@pattern("modern_hint", "built-in hint")
def modern_hint(code: Code, kind: Literal["generic", "optional"]) -> Iterable[Occurrence]:
    """Hints of the form `list[int]` (`generic`) or `int | None` (`optional`) in annotations."""
    for annotation in _annotations(code):
        for node in walk(annotation):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and kind == "optional":
                yield at(node)
            elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and kind == "generic":
                yield from [at(node)] if node.value.id in _GENERICS else []


def _annotations(code: Code) -> Iterator[ast.expr]:
    for node in code.find(ast.arg, ast.AnnAssign):
        if node.annotation:
            yield node.annotation
    for function in code.functions:
        if function.returns:
            yield function.returns


@pattern("type_alias", "type alias", "type aliases")
def type_alias(code: Code) -> Iterable[Occurrence]:
    """Module-level names for a type: `Row = list[int]`, `Row: TypeAlias = …`, `type Row = …`."""
    for statement in code.tree.body if code.tree else []:
        if type(statement).__name__ == "TypeAlias":
            yield at(statement)
        elif isinstance(statement, ast.AnnAssign):
            if code.origin(statement.annotation).rpartition(".")[2] == "TypeAlias":
                yield at(statement)
        elif isinstance(statement, ast.Assign) and _is_type(code, statement.value):
            yield at(statement)


def _is_type(code: Code, value: ast.expr) -> bool:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        return _is_type(code, value.left) or _is_type(code, value.right)
    head = value.value if isinstance(value, ast.Subscript) else value
    origin = code.origin(head)
    generic = isinstance(value, ast.Subscript) and origin.rpartition(".")[2] in _GENERICS
    known = origin.startswith(("typing.", "collections.abc.")) or origin in {"int", "str", "float", "bool", *_GENERICS}
    return generic or known


@pair(
    ("docstring", "docstring", ""),
    ("no_docstring", "function without such a docstring", "functions without such a docstring"),
)
def docstrings(code: Code, matches: Regex = "", takes_parameters: bool = False) -> Iterable[tuple[Occurrence, bool]]:
    """Functions, or only those with parameters; whether they have a docstring that `matches` is found in."""
    for function in code.functions:
        if parameters(function) or not takes_parameters:
            found = _prose(function) != "" and re.search(matches, _prose(function)) is not None
            yield at(function.body[0]) if found else at(function, function.name), found


def _prose(function: Function) -> str:
    """What a function's docstring says; nothing if that is blank."""
    text = docstring(function)
    return str(text.value) if text and str(text.value).strip() else ""


@pattern("any_docstring", "docstring")
def any_docstring(code: Code) -> Iterable[Occurrence]:
    """Docstrings of functions, classes and the module."""
    return (at(text) for node in code.find(ast.Module, ast.ClassDef, *FUNCTIONS) if (text := docstring(node)))


@pattern("module_docstring", "module docstring")
def module_docstring(code: Code) -> Iterable[Occurrence]:
    """The module's docstring."""
    return [at(text)] if code.tree and (text := docstring(code.tree)) else []


@pair(
    ("tall_docstring", "docstring of several lines", "docstrings of several lines"),
    ("short_docstring", "docstring of one line", "docstrings of one line"),
)
def tall_docstring(code: Code) -> Iterable[tuple[Occurrence, bool]]:
    """Function docstrings; whether their text takes more than one line."""
    for function in code.functions:
        if _prose(function):
            yield at(function.body[0]), "\n" in _prose(function).strip()


@pair(
    ("documented_parameter", "parameter named in its docstring", "parameters named in their docstring"),
    ("undocumented_parameter", "parameter missing from its docstring", "parameters missing from their docstring"),
)
def documented_parameter(code: Code, form: str = r"\b{}\b") -> Iterable[tuple[Occurrence, bool]]:
    """Parameters; whether their function's docstring mentions them in that form, `{}` standing for the name."""
    for function, one in _parameters(code):
        found = re.search(form.replace("{}", re.escape(one.arg)), _prose(function))
        yield at(one, f"'{one.arg}'"), found is not None


@pattern("function", "function")
def function(code: Code) -> Iterable[Occurrence]:
    """Functions that do something."""
    return (at(node, node.name) for node in code.functions if body_without_docstring(node))
