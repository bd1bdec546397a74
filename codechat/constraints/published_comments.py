"""How the published harness looks at comments."""

import ast
import re
from collections.abc import Callable

from codechat.constraints.published import tokens
from codechat.languages.python.syntax import parse

_SINGLE, _MULTI = "Token.Comment.Single", "Token.Comment.Multiline"
_DECLARED = re.compile(r"(?:func|type|var|const)\s+(\w+)")
_BEGINNINGS = ("//", "#", "/*")


def kept(style: str, code: str, language: str) -> bool:
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
