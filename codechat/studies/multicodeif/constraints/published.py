"""The published harness: the code it takes from a reply, and the comments, names, structures and types it sees."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from codechat.base.errors import UserError
from codechat.base.files import from_yaml
from codechat.sandbox.languages.grammar import REMEDY, Grammar, Tree
from codechat.sandbox.languages.python.syntax import parse
from codechat.studies.multicodeif.constraints import Answer, words_of

_COMMENT_MARKS = ("//", "/*", "#", "--", "{-")  # what a comment of any language here begins with
_FENCE = re.compile(r"```\w*(.*?)```", re.DOTALL)

TABLES: Mapping[str, Any] = from_yaml(Path(__file__).with_name("published.yaml").read_text(encoding="utf-8"))
"""What is looked for, by language."""


def extracted(reply: str) -> str:
    """The code of a reply: the content of its first closed fence with any tag, or the whole reply.

    `++` or `#` of a tag stay in the code.
    """
    reply = reply.strip()
    found = _FENCE.search(reply)
    return found[1].strip() if found else reply


@cache
def _lexer(language: str) -> Any:
    try:
        from pygments.lexers import get_lexer_by_name
    except ModuleNotFoundError as error:
        raise UserError(f"constraints need the package {error.name}, which is not installed", REMEDY) from error
    return get_lexer_by_name(language)


_name = cache(str)  # of a kind of tokens, of which there are few


@lru_cache(maxsize=8)
def tokens(code: str, language: str) -> tuple[tuple[str, str], ...]:
    """The tokens of a code: the kinds, such as `Token.Comment.Single`, and texts. The latest codes are remembered."""
    return tuple((_name(kind), text) for kind, text in _lexer(language).get_tokens(code))


@lru_cache(maxsize=16)
def without(kind: str, code: str, language: str) -> str:
    """The code without the tokens of a kind, such as `Token.Comment`; in C these include preprocessor lines."""
    within = f"{kind}."
    return "".join(text for each, text in tokens(code, language) if each != kind and not each.startswith(within))


def without_comments(code: str, language: str) -> str:
    """The code without its comments."""
    if not any(mark in code for mark in _COMMENT_MARKS):  # nothing to lex it for, but its ends and its line ends
        return code.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").strip("\n") + "\n"
    return without("Token.Comment", code, language)


def grammar_of(language: str) -> Grammar:
    """The grammar of a language. Raises `ValueError` if it has none."""
    return Answer("", language).grammar


def cut(code: str, node: Any) -> str:
    """The characters of the code at a node's byte offsets: after one that is not ASCII these are wrong."""
    return code[node.start_byte : node.end_byte]


def walk(tree: Tree) -> Iterator[Any]:
    """The nodes of a tree in the order of their beginnings, parents first; without recursion."""
    waiting = [tree.root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def captured(language: str, query: str, code: str, name: str) -> list[Any]:
    """The nodes that a query captures under a name."""
    grammar = grammar_of(language)
    return [node for match in grammar.matches(query, grammar.parse(code)) for node in match.get(name, [])]


def _texts(language: str, query: str, code: str, name: str = "name") -> set[str]:
    """The texts of the captured nodes."""
    return {node.text.decode("utf-8", "replace") for node in captured(language, query, code, name)}


_SINGLE, _MULTI = "Token.Comment.Single", "Token.Comment.Multiline"
_DECLARED = re.compile(r"(?:func|type|var|const)\s+(\w+)")


def comments_kept(style: str, code: str, language: str) -> bool:
    """Whether the published harness finds comments in a style, which is given in lower case."""
    checks: dict[str, Callable[[str, str], bool]] = {
        "single-line comment": partial(_only, _SINGLE),
        "multi-line comment": partial(_only, _MULTI),
        "inline comment": _inline,
        "block comment": _block,
        "python docstring": _docstrings,
        "godoc": _godoc,
        "rustdoc": _rustdoc,
        "javadoc": _javadoc,
        "kotlindoc": _javadoc,
    }
    return checks[style](code, language)


def _only(wanted: str, code: str, language: str) -> bool:
    """Whether there are comments of the wanted kind, and no others."""
    return {kind for kind, _ in tokens(code, language)} & {_SINGLE, _MULTI} == {wanted}


def _inline(code: str, language: str) -> bool:
    """Whether every line with a comment has another token too, white space excepted."""
    line, lines = 1, dict[int, list[str]]()
    for kind, text in tokens(code, language):
        count = text.count("\n")
        if not f"{kind}.".startswith("Token.Text."):
            for number in range(line, line + count + 1):
                lines.setdefault(number, []).append(kind)
        line += count
    return all({_SINGLE, _MULTI}.isdisjoint(kinds) or set(kinds) - {_SINGLE, _MULTI} for kinds in lines.values())


def _block(code: str, language: str) -> bool:
    """Whether a line that is neither blank nor a comment follows a comment that begins its line."""
    lines, number = code.splitlines(), 0
    while number < len(lines) - 1:
        line = lines[number].strip()
        if line.startswith("/*"):
            while number < len(lines) and "*/" not in lines[number]:
                number += 1
        elif line.startswith(("//", "#")):
            while number + 1 < len(lines) and lines[number + 1].strip().startswith(("//", "#")):
                number += 1
        else:
            number += 1
            continue
        following = lines[number + 1].strip() if number + 1 < len(lines) else ""
        if following and not following.startswith(("//", "#", "/*")):
            return True
        number += 1
    return False


def _nodes(code: str) -> list[ast.AST]:
    """The nodes of Python code; empty if it does not parse."""
    tree = parse(code)
    return [] if tree is None else list(ast.walk(tree))


def _docstrings(code: str, language: str) -> bool:
    documented = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    nodes = _nodes(code)
    return bool(nodes) and all(ast.get_docstring(node) for node in nodes if isinstance(node, documented))


def _godoc(code: str, language: str) -> bool:
    """Whether the line above each declared name begins with that name; methods are not examined."""
    lines = code.split("\n")
    for before, line in zip(["", *lines], lines, strict=False):
        declared = _DECLARED.match(line.strip())
        above = before.strip()
        if declared and not (above.startswith("//") and above.lstrip("/").strip().startswith(declared[1])):
            return False
    return True


def _rustdoc(code: str, language: str) -> bool:
    """Whether there is a documentation comment and no other."""
    found = tokens(code, "rust")
    documented = any(kind == "Token.Literal.String.Doc" and text.strip().startswith("///") for kind, text in found)
    return documented and not any(kind in (_SINGLE, _MULTI) for kind, _ in found)


def _javadoc(code: str, language: str) -> bool:
    """Whether there is a documentation comment, and none has a `@return` without a `@param`."""
    texts = [text.strip() for kind, text in tokens(code, language) if kind == _MULTI]
    found = [text for text in texts if text.startswith("/**") and text.endswith("*/")]
    return bool(found) and not any("@return" in text and "@param" not in text for text in found)


def names_seen(code: str, language: str) -> dict[str, set[str]]:
    """The names of classes, functions and variables in a code."""
    classes, functions = (_texts(language, TABLES[kind][language], code) for kind in ("classes", "functions"))
    if language == "python":
        functions = {name for name in functions if not re.fullmatch(r"__.*__", name)}
    if language == "javascript":
        functions = {name for name in functions - {*TABLES["methods_of_react"]} if not name.startswith("__")}
    others = {text for kind, text in tokens(code, language) if kind == "Token.Name"} - classes - functions
    variables = {name for name in others if len(name) >= 5 and not re.match(r"_|[A-Z0-9_]+\Z", name)}
    return {"class": classes, "function": functions, "variable": variables}


def imports_seen(name: str, code: str, language: str) -> bool:
    """Whether the published harness sees an import of a library."""
    if language != "python":
        return any(name in text for text in _texts(language, TABLES["imports"][language], code))
    for node in _nodes(code):
        if isinstance(node, ast.Import) and name in {alias.name for alias in node.names}:
            return True
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == name:
            return True
    return False


def structures_seen(code: str, language: str) -> set[str]:
    """The names, in lower case, that the published harness takes for data structures in a code without comments.

    In Python these are only calls of a few names, and imports from `collections`; elsewhere type names without
    their package or namespace. So it never finds Python's `[]` and `{}`, nor Go's own `map` and slices.
    """
    if language != "python":
        return {text.lower() for text in _texts(language, "(type_identifier) @type", code, "type")}
    nodes = _nodes(code)
    imported = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    aliases = {alias.asname or alias.name: "collections" for alias in imported if alias.name == "collections"}
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.ImportFrom(module="collections"):
                found |= {f"collections.{alias.name}" for alias in node.names}
            case ast.Call(func=ast.Name(id=name)) if name in TABLES["python_built_in"]:
                found.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
                found |= {f"{aliases.get(module, module)}.{name}"} & {*TABLES["python_library"]}
    return {name.lower() for name in found}


def operations_seen(code: str, language: str, names: list[str]) -> bool:
    """Whether the published harness finds a call of every name."""
    code = without_comments(code, language)
    if language == "csharp":
        found = _texts(language, TABLES["calls"][language], code)
    elif language != "python":  # cut by byte offsets
        found = {cut(code, node) for node in captured(language, TABLES["calls"][language], code, "name")}
        found = {name.split("::")[-1] for name in found} if language == "cpp" else found
    else:
        nodes = _nodes(code)
        called = [node.func for node in nodes if isinstance(node, ast.Call)]
        found = {node.id for node in called if isinstance(node, ast.Name)}
        found |= {node.attr for node in called if isinstance(node, ast.Attribute)}
        if not nodes:
            return False
    mark = ":" if language in ("rust", "cpp") else "."
    return all(name.split(mark)[-1] in found for name in names)


def structure_named(answer: Answer, code: str) -> bool:
    """Whether the structure of an answer is found in a code, whose comments are left out."""
    return answer.values[0].lower() in structures_seen(without_comments(code, answer.language), answer.language)


def structure_seen(name: str, code: str, language: str) -> bool:
    """Whether a bounded structure is found: Rust's and Go's names are searched as written, among lower-case names."""
    return (name if language in ("rust", "go") else name.lower()) in structures_seen(code, language)


_PYTHON = {
    "generator and yield": (ast.Yield, ast.YieldFrom),
    "list comprehension": (ast.ListComp,),
    "dictionary comprehension": (ast.DictComp,),
    "set comprehension": (ast.SetComp,),
}


def construct_seen(construct: str, code: str, language: str) -> bool:
    """Whether the published harness finds a construct, which is given in lower case."""
    code = without_comments(code, language)
    if construct in TABLES["tokens"]:
        words_of = tokens(code, language)
        return all(
            any(text == word and (kind.startswith(of) if of.endswith(".") else kind == of) for kind, text in words_of)
            for of, word in TABLES["tokens"][construct]
        )
    if construct in _PYTHON:
        return any(isinstance(node, _PYTHON[construct]) for node in _nodes(code))
    return bool(captured(language, TABLES["nodes"][construct], code, "name"))


SUPPORTED = words_of("List Set Map Tuple Matrix Tree Graph Struct String JSONObject Boolean Integer Float")


@dataclass(frozen=True, slots=True)
class Seen:
    """A function as the published harness sees it: the texts of its types; None if no return type is written."""

    typed: tuple[tuple[str, bool], ...]
    """The text of each parameter's type, and whether it is declared as an array, which only C++ has."""
    returns: str | None


def seen(code: str, language: str, name: str) -> list[Seen]:
    """The functions of a name, in order. In C++ functions that return a pointer or a reference are not found."""
    code = without_comments(code, language)
    return _python_functions(code, name) if language == "python" else _other_functions(code, language, name)


def _python_functions(code: str, name: str) -> list[Seen]:
    found = []
    for node in _nodes(code):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            written = [ast.unparse(each.annotation) if each.annotation else "" for each in node.args.args]
            typed = tuple((text, False) for text in written)
            found.append(Seen(typed, ast.unparse(node.returns) if node.returns else None))
    return found


_FUNCTIONS = {"java": "method_declaration", "cpp": "function_definition", "rust": "function_item"}
_PARAMETERS = {"java": "formal_parameter", "cpp": "parameter_declaration", "rust": "parameter"}


def _other_functions(code: str, language: str, name: str) -> list[Seen]:
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
        kinds = [(each, each.child_by_field_name("type")) for each in inside]
        typed = tuple((cut(code, kind).strip(), _is_array(each)) for each, kind in kinds if kind is not None)
        found.append(Seen(typed, cut(code, returns) if returns is not None else None))
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
            listed = [each for each in result.children if each.type == "parameter_declaration"]
            return [cut(code, each.child_by_field_name("type")) for each in listed]
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
