"""Type annotations and docstrings."""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Literal

from codechat.languages.python.syntax import parameters
from codechat.patterns.base import Occurrence, Regex, at, pattern
from codechat.patterns.code import Code
from codechat.patterns.names import local_bindings
from codechat.patterns.tree import FUNCTIONS, Function, body_without_docstring, docstring, own_nodes, walk

_LEGACY = {"List", "Dict", "Set", "FrozenSet", "Tuple", "Type", "Deque", "DefaultDict"}
_GENERICS = {"list", "dict", "set", "frozenset", "tuple", "type", "deque", "defaultdict"}


@pattern("parameter_hint", "parameter with a type hint", "parameters with a type hint")
def parameter_hint(code: Code) -> Iterable[Occurrence]:
    """Annotated parameters."""
    return (at(parameter, f"'{parameter.arg}'") for parameter in _parameters(code) if parameter.annotation)


@pattern("bare_parameter", "parameter without a type hint", "parameters without a type hint")
def bare_parameter(code: Code) -> Iterable[Occurrence]:
    """The others; `self` and `cls` need none."""
    return (at(parameter, f"'{parameter.arg}'") for parameter in _parameters(code) if not parameter.annotation)


def _parameters(code: Code) -> Iterator[ast.arg]:
    for function in code.functions:
        method = isinstance(code.parents.get(function), ast.ClassDef)
        for index, parameter in enumerate(parameters(function)):
            if not (method and index == 0 and parameter.arg in ("self", "cls")):
                yield parameter


@pattern("return_hint", "function with a return type", "functions with a return type")
def return_hint(code: Code) -> Iterable[Occurrence]:
    """Functions whose return type is annotated."""
    return (at(function, function.name) for function in code.functions if function.returns)


@pattern("bare_function", "function without a return type", "functions without a return type")
def bare_function(code: Code) -> Iterable[Occurrence]:
    """The others."""
    return (at(function, function.name) for function in code.functions if not function.returns)


@pattern("local_hint", "annotated local variable")
def local_hint(code: Code) -> Iterable[Occurrence]:
    """Annotated assignments to names inside functions."""
    for node in code.find(ast.AnnAssign):
        if isinstance(node.target, ast.Name) and code.function_of(node):
            yield at(node, f"'{node.target.id}'")


@pattern("bare_local", "local variable without a type hint", "local variables without a type hint")
def bare_local(code: Code) -> Iterable[Occurrence]:
    """Local variables first bound by `name = value` and annotated nowhere in their function."""
    for name, node, function in local_bindings(code):
        above = code.parents.get(node)
        if isinstance(above, ast.Assign) and node in above.targets and not _annotated(function, name):
            yield at(node, f"'{name}'")


def _annotated(function: Function, name: str) -> bool:
    return any(
        isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name
        for node in own_nodes(function)
    )


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
            generic = (
                isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in _GENERICS
            )
            union = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)
            if (generic and kind == "generic") or (union and kind == "optional"):
                yield at(node)


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
    if isinstance(value, ast.Subscript) and origin.rpartition(".")[2] in _GENERICS:
        return True
    return origin.startswith(("typing.", "collections.abc.")) or origin in {"int", "str", "float", "bool", *_GENERICS}


@pattern("docstring", "docstring")
def docstrings(code: Code, matches: Regex = "") -> Iterable[Occurrence]:
    """Docstrings of functions that `matches` is found in."""
    return (at(text) for _, text in _docstrings(code) if text and re.search(matches, str(text.value)))


@pattern("no_docstring", "function without such a docstring", "functions without such a docstring")
def no_docstring(code: Code, matches: Regex = "", takes_parameters: bool = False) -> Iterable[Occurrence]:
    """The other functions; with `takes_parameters` only those that take any."""
    for function, text in _docstrings(code):
        if takes_parameters and not parameters(function):
            continue
        if not text or not re.search(matches, str(text.value)):
            yield at(function, function.name)


def _docstrings(code: Code) -> Iterator[tuple[Function, ast.Constant | None]]:
    for function in code.functions:
        text = docstring(function)
        yield function, text if text and str(text.value).strip() else None


@pattern("any_docstring", "docstring")
def any_docstring(code: Code) -> Iterable[Occurrence]:
    """Docstrings of functions, classes and the module."""
    return (at(text) for node in code.find(ast.Module, ast.ClassDef, *FUNCTIONS) if (text := docstring(node)))


@pattern("module_docstring", "module docstring")
def module_docstring(code: Code) -> Iterable[Occurrence]:
    """The module's docstring."""
    return [at(text)] if code.tree and (text := docstring(code.tree)) else []


@pattern("tall_docstring", "docstring of several lines", "docstrings of several lines")
def tall_docstring(code: Code) -> Iterable[Occurrence]:
    """Function docstrings whose text takes more than one line."""
    return (at(text) for _, text in _docstrings(code) if text and "\n" in str(text.value).strip())


@pattern("short_docstring", "docstring of one line", "docstrings of one line")
def short_docstring(code: Code) -> Iterable[Occurrence]:
    """The others."""
    return (at(text) for _, text in _docstrings(code) if text and "\n" not in str(text.value).strip())


@pattern("documented_parameter", "parameter named in its docstring", "parameters named in their docstring")
def documented_parameter(code: Code, form: str = r"\b{}\b") -> Iterable[Occurrence]:
    """Parameters that their function's docstring mentions in that form, `{}` standing for the name."""
    return (at(node, f"'{node.arg}'") for node, known in _documented(code, form) if known)


@pattern("undocumented_parameter", "parameter missing from its docstring", "parameters missing from their docstring")
def undocumented_parameter(code: Code, form: str = r"\b{}\b") -> Iterable[Occurrence]:
    """The others."""
    return (at(node, f"'{node.arg}'") for node, known in _documented(code, form) if not known)


def _documented(code: Code, form: str) -> Iterator[tuple[ast.arg, bool]]:
    for function, text in _docstrings(code):
        prose = str(text.value) if text else ""
        for parameter in parameters(function):
            if parameter.arg not in ("self", "cls"):
                yield parameter, re.search(form.replace("{}", re.escape(parameter.arg)), prose) is not None


@pattern("function", "function")
def function(code: Code) -> Iterable[Occurrence]:
    """Functions that do something."""
    return (at(node, node.name) for node in code.functions if body_without_docstring(node))
