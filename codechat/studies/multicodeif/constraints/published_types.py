"""How the published harness compares the types of parameters and results: by pieces of their texts."""

import ast
import re
from dataclasses import dataclass
from typing import Any

from codechat.sandbox.languages.python.syntax import parse
from codechat.studies.multicodeif.constraints.published import TABLES, cut, grammar_of, walk, without_comments

SUPPORTED = frozenset(
    {
        *("List", "Set", "Map", "Tuple", "Matrix", "Tree", "Graph", "Struct", "String", "JSONObject"),
        *("Boolean", "Integer", "Float"),
    }
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A function as the published harness sees it: the texts of its types; None if no return type is written."""

    parameters: tuple[str, ...]
    returns: str | None
    arrays: tuple[bool, ...] = ()
    """Whether each parameter is declared as an array; only in C++."""

    @property
    def typed(self) -> list[tuple[str, bool]]:
        """The text of each parameter's type, and whether it is declared as an array."""
        return list(zip(self.parameters, self.arrays or (False,) * len(self.parameters), strict=True))


def seen(code: str, language: str, name: str) -> list[Seen]:
    """The functions of a name, in order. In C++ those that return a pointer or a reference are not found."""
    code = without_comments(code, language)
    return _python(code, name) if language == "python" else _others(code, language, name)


def _python(code: str, name: str) -> list[Seen]:
    tree = parse(code)
    found = []
    for node in [] if tree is None else ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            written = [ast.unparse(each.annotation) if each.annotation else "" for each in node.args.args]
            found.append(Seen(tuple(written), ast.unparse(node.returns) if node.returns else None))
    return found


_FUNCTIONS = {"java": "method_declaration", "cpp": "function_definition", "rust": "function_item"}
_PARAMETERS = {"java": "formal_parameter", "cpp": "parameter_declaration", "rust": "parameter"}


def _others(code: str, language: str, name: str) -> list[Seen]:
    found = []
    for node in walk(grammar_of(language).parse(code)):
        if node.type != _FUNCTIONS[language]:
            continue
        head, returns = node, node.child_by_field_name("return_type" if language == "rust" else "type")
        if language == "cpp":
            head = node.child_by_field_name("declarator")
            if head is None or head.type != "function_declarator":
                continue
        named = head.child_by_field_name("declarator" if language == "cpp" else "name")
        listed = head.child_by_field_name("parameters")
        if named is None or cut(code, named) != name:
            continue
        inside = [] if listed is None else [each for each in listed.children if each.type == _PARAMETERS[language]]
        typed = [(each, each.child_by_field_name("type")) for each in inside]
        texts = tuple(cut(code, kind).strip() for _, kind in typed if kind is not None)
        arrays = tuple(_is_array(each) for each, kind in typed if kind is not None)
        found.append(Seen(texts, cut(code, returns) if returns is not None else None, arrays))
    return found


def _is_array(parameter: Any) -> bool:
    """Whether any part of a C++ parameter's declarator is of an array."""
    waiting = [parameter.child_by_field_name("declarator")]
    while waiting:
        node = waiting.pop()
        if node is not None and node.type == "array_declarator":
            return True
        waiting.extend(node.children if node is not None else ())
    return False


def is_of(text: str, wanted: str, language: str, *, array: bool = False) -> bool:
    """Whether the published harness takes a type's text for the wanted type."""
    lower = text.lower()
    if wanted == "Matrix":
        nested = text.count("[" if language == "python" else "<") >= 2
        kinds = {"python": "list" in lower, "java": "List" in text or "Array" in text, "cpp": "vector" in text}
        return (kinds.get(language, "Vec" in text) and nested) or array or (language == "java" and "[][]" in text)
    if wanted == "Tree":
        return "tree" in lower
    if wanted == "Graph":
        return "graph" in lower or "adj" in lower
    if wanted.startswith("Struct:"):
        return wanted.removeprefix("Struct:") in text
    pieces = TABLES["pieces"][language].get(wanted.lower(), ())
    if language == "python":
        return text.startswith(tuple(pieces))
    return any(piece in text for piece in pieces) or (array and wanted == "List")


def values_seen(code: str, language: str, name: str) -> list[str] | None:
    """The texts of the returned values that the published harness finds; None if it finds no function."""
    if language == "go":
        return _go_returned(without_comments(code, language), name)
    returns = [each.returns for each in seen(code, language, name) if each.returns is not None]
    if language == "python":
        inner = next((found for text in returns if (found := re.search(r"\[(.*?)\]", text))), None)
        return None if inner is None else [part.strip() for part in inner[1].split(",")]
    return [part.strip() for part in returns[0].strip().strip("()").split(",")] if returns else None


def _go_returned(code: str, name: str) -> list[str] | None:
    for node in walk(grammar_of("go").parse(code)):
        named = node.child_by_field_name("name") if node.type == "function_declaration" else None
        if named is None or cut(code, named) != name:
            continue
        result = node.child_by_field_name("result")
        if result is None or result.type == "type_identifier":
            return [] if result is None else [cut(code, result)]
        if result.type == "parameter_list":
            kinds = [
                each.child_by_field_name("type") for each in result.children if each.type == "parameter_declaration"
            ]
            return [cut(code, kind) for kind in kinds]
    return None


def takes(code: str, language: str, name: str, wanted: list[str]) -> bool:
    """Whether the published harness takes a function's parameters for these types; in Java a `[][]` is no matrix."""
    functions = seen(code, language, name)[: 1 if language == "python" else None]
    texts = [typed for each in functions for typed in each.typed]
    return len(texts) == len(wanted) and all(
        _is_parameter_of(text, kind.lower(), language, array) for (text, array), kind in zip(texts, wanted, strict=True)
    )


def _is_parameter_of(text: str, wanted: str, language: str, array: bool) -> bool:
    """Whether the published harness takes a type's text for the wanted one, in lower case; kinds precede pieces."""
    lower, further = text.lower(), TABLES["further_pieces"].get(language, {})
    pieces = [*TABLES["pieces"][language].get(wanted, ()), *further.get(wanted, ())]
    nested = text.count("[" if language == "python" else "<") >= 2
    kinds = {
        ("python", "map"): lower.startswith(("dict", "map")),
        ("python", "matrix"): lower.startswith("list") and nested,
        ("python", "graph"): "graph" in lower or "adj" in lower,
        ("java", "matrix"): ("List" in text or "Array" in text) and nested and "[][]" not in text,
        ("java", "graph"): "graph" in lower and "adj" not in lower,
        ("cpp", "linkedlist"): lower.startswith(("node", "linkedlist", "list")),
        ("cpp", "matrix"): ("vector" in text and nested) or array,
    }
    for (of, kind), met in kinds.items():
        if of == language and kind in wanted:
            return met
    if language == "python":
        return (lower or "none").startswith(wanted)
    return any(piece.lower() in lower for piece in pieces)


def returned_as(code: str, language: str, name: str, wanted: str) -> str | None:
    """The return type of a function that the published harness takes for the wanted one; None if it takes none."""
    returns = [each.returns for each in seen(code, language, name) if each.returns is not None]
    for text in returns[:1] if language == "rust" else returns:
        if is_of(text.strip(), wanted, language) or (language == "cpp" and wanted == "Matrix" and "[][]" in text):
            return text
    return None
