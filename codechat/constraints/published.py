"""The steps of the published harness before its rules: extraction, comments, and names by byte offsets."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from codechat.errors import UserError
from codechat.languages import language_of
from codechat.languages.grammar import REMEDY, Grammar, Parsed, Tree

_COMMENT_MARKS = ("//", "/*", "#", "--", "{-")  # what a comment of any language here begins with
_FENCE = re.compile(r"```\w*(.*?)```", re.DOTALL)

# The calls whose names the published rules look at. In Java that is any name in the call, also the object's.
CALLS = {
    "java": "(method_invocation (identifier) @name)",
    "javascript": """(call_expression function: [(identifier) @name (member_expression property: (_) @name)])""",
    "rust": """(call_expression function: [(identifier) @name (field_expression field: (_) @name)
      (scoped_identifier name: (_) @name)])""",
    "go": "(call_expression function: [(identifier) @name (selector_expression field: (_) @name)])",
    "cpp": """(call_expression function: [(identifier) @name (field_expression field: (_) @name)
      (qualified_identifier) @name])""",
    "csharp": """(invocation_expression function: [(identifier) @name
      (member_access_expression name: (identifier) @name)])""",
}


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
    nodes = captured(language, CALLS[language], code, "name")
    if language == "csharp":
        return {node.text.decode("utf-8", "replace") for node in nodes}
    names = {cut(code, node) for node in nodes}
    return {name.split("::")[-1] for name in names} if language == "cpp" else names
