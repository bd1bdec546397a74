"""The published harness: the code it takes from a reply, and the comments, names, structures and constructs it sees."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from codechat.base.errors import UserError
from codechat.base.files import from_yaml
from codechat.sandbox.languages import language_of
from codechat.sandbox.languages.grammar import REMEDY, Grammar, Parsed, Tree
from codechat.sandbox.languages.python.syntax import parse

_COMMENT_MARKS = ("//", "/*", "#", "--", "{-")  # what a comment of any language here begins with
_FENCE = re.compile(r"```\w*(.*?)```", re.DOTALL)

TABLES: Mapping[str, Any] = from_yaml(Path(__file__).with_name("published.yaml").read_text(encoding="utf-8"))
"""What is looked for, by language."""


def extracted(reply: str) -> str:
    """The code of a reply: the content of its first closed fence, whatever its tag, or the whole reply.

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


@lru_cache(maxsize=8)
def tokens(code: str, language: str) -> tuple[tuple[str, str], ...]:
    """The tokens of a code: their kinds, such as `Token.Comment.Single`, and texts. The latest codes are remembered."""
    return tuple((_name(kind), text) for kind, text in _lexer(language).get_tokens(code))


@cache
def _name(kind: Any) -> str:
    return str(kind)


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


@cache
def grammar_of(language: str) -> Grammar:
    """The grammar of a language that has one."""
    known = language_of(language)
    assert isinstance(known, Parsed)
    return known.grammar


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


def calls(language: str, code: str) -> set[str]:
    """The names that are called, cut by byte offsets (except in C#)."""
    nodes = captured(language, TABLES["calls"][language], code, "name")
    if language == "csharp":
        return {node.text.decode("utf-8", "replace") for node in nodes}
    names = {cut(code, node) for node in nodes}
    return {name.split("::")[-1] for name in names} if language == "cpp" else names


_SINGLE, _MULTI = "Token.Comment.Single", "Token.Comment.Multiline"
_DECLARED = re.compile(r"(?:func|type|var|const)\s+(\w+)")
_BEGINNINGS = ("//", "#", "/*")


def comments_kept(style: str, code: str, language: str) -> bool:
    """Whether the published harness finds comments in a style, which is given in lower case."""
    checks: dict[str, Callable[[], bool]] = {
        "single-line comment": lambda: _kinds(code, language) == {_SINGLE},
        "multi-line comment": lambda: _kinds(code, language) == {_MULTI},
        "inline comment": lambda: _inline(code, language),
        "block comment": lambda: _block(code.splitlines()),
        "python docstring": lambda: _docstrings(code),
        "godoc": lambda: _godoc(code.split("\n")),
        "rustdoc": lambda: _rustdoc(code),
        "javadoc": lambda: _javadoc(code, language),
        "kotlindoc": lambda: _javadoc(code, language),
    }
    return checks[style]()


def _kinds(code: str, language: str) -> set[str]:
    return {kind for kind, _ in tokens(code, language)} & {_SINGLE, _MULTI}


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


def _block(lines: list[str]) -> bool:
    """Whether a line that is neither blank nor a comment follows a comment that begins its line."""
    number = 0
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
        if following and not following.startswith(_BEGINNINGS):
            return True
        number += 1
    return False


def _docstrings(code: str) -> bool:
    tree = parse(code)
    return tree is not None and all(
        ast.get_docstring(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    )


def _godoc(lines: list[str]) -> bool:
    """Whether the line above each declared name begins with that name; methods are not examined."""
    for before, line in zip(["", *lines], lines, strict=False):
        declared = _DECLARED.match(line.strip())
        above = before.strip()
        if declared and not (above.startswith("//") and above.lstrip("/").strip().startswith(declared[1])):
            return False
    return True


def _rustdoc(code: str) -> bool:
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
    classes, functions = (
        {node.text.decode("utf-8", "replace") for node in captured(language, query, code, "name")}
        for query in (TABLES[kind][language] for kind in ("classes", "functions"))
    )
    if language == "python":
        functions = {name for name in functions if not re.fullmatch(r"__.*__", name)}
    if language == "javascript":
        functions = {name for name in functions - {*TABLES["methods_of_react"]} if not name.startswith("__")}
    others = {text for kind, text in tokens(code, language) if kind == "Token.Name"} - classes - functions
    variables = {name for name in others if len(name) >= 5 and not re.match(r"_|[A-Z0-9_]+\Z", name)}
    return {"class": classes, "function": functions, "variable": variables}


def imports_seen(name: str, code: str, language: str) -> bool:
    """Whether the published harness sees an import of a library."""
    if language == "python":
        return name in _imported(code)
    nodes = captured(language, TABLES["imports"][language], code, "name")
    return any(name in node.text.decode("utf-8", "replace") for node in nodes)


def _imported(code: str) -> set[str]:
    tree = parse(code)
    nodes = [] if tree is None else list(ast.walk(tree))
    whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return whole | {node.module.split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


def structures_seen(code: str, language: str) -> set[str]:
    """The names, in lower case, that the published harness takes for data structures in a code without comments.

    In Python these are only calls of a few names, and imports from `collections`; elsewhere type names without
    their package or namespace. So it never finds Python's `[]` and `{}`, nor Go's own `map` and slices.
    """
    if language == "python":
        return {name.lower() for name in _python_seen(code)}
    nodes = captured(language, "(type_identifier) @type", code, "type")
    return {node.text.decode("utf-8", "replace").lower() for node in nodes}


def _python_seen(code: str) -> set[str]:
    tree = parse(code)
    if tree is None:
        return set()
    nodes = list(ast.walk(tree))
    aliases = {
        alias.asname or alias.name: "collections"
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "collections"
    }
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.ImportFrom(module="collections"):
                found |= {f"collections.{alias.name}" for alias in node.names}
            case ast.Call(func=ast.Name(id=name)) if name in TABLES["python_built_in"]:
                found.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
                found |= {f"{aliases.get(module, module)}.{name}"} & {*TABLES["python_library"]}
    return found


def operations_seen(code: str, language: str, names: list[str]) -> bool:
    """Whether the published harness finds a call of every name."""
    code = without_comments(code, language)
    if language != "python":
        found = calls(language, code)
    else:
        tree = parse(code)
        nodes = [] if tree is None else [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        found = {node.id for node in nodes if isinstance(node, ast.Name)}
        found |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        if tree is None:
            return False
    mark = ":" if language in ("rust", "cpp") else "."
    return all(name.split(mark)[-1] in found for name in names)


def structure_seen(name: str, code: str, language: str) -> bool:
    """The same for a structure that is bounded: Rust's and Go's names are searched as they are written."""
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
        found = all(
            any(text == word and (kind.startswith(of) if of.endswith(".") else kind == of) for kind, text in words_of)
            for of, word in TABLES["tokens"][construct]
        )
    elif construct in _PYTHON:
        tree = parse(code)
        found = tree is not None and any(isinstance(node, _PYTHON[construct]) for node in ast.walk(tree))
    else:
        found = bool(captured(language, TABLES["nodes"][construct], code, "name"))
    return found
