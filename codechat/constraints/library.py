"""A library that code must import: `language;name`."""

import ast
import re

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import read_values
from codechat.constraints.published import captured
from codechat.languages.markup import sources
from codechat.languages.python.syntax import parse

_STRINGS = """
(import_statement (string) @name)
(call_expression function: (_) @_require arguments: (arguments (string) @name) (#eq? @_require "require"))
"""
_PATHS = {
    "javascript": _STRINGS,
    "typescript": _STRINGS,
    "go": "(import_spec (interpreted_string_literal (interpreted_string_literal_content) @name))",
    "rust": "[(extern_crate_declaration) (use_declaration)] @name",
}

# Where the packages of Go's standard library begin: `sync` is no part of another path.
_GO_STANDARD = frozenset({
    "archive", "bufio", "bytes", "cmp", "compress", "container", "context", "crypto", "database", "embed",
    "encoding", "errors", "expvar", "flag", "fmt", "go", "hash", "html", "image", "io", "iter", "log", "maps",
    "math", "mime", "net", "os", "path", "plugin", "reflect", "regexp", "runtime", "slices", "sort", "strconv",
    "strings", "sync", "syscall", "testing", "text", "time", "unicode", "unsafe",
})  # fmt: skip


def read(raw: str) -> Answer:
    return read_values(raw, 1, "language;library")


def words(answer: Answer) -> str:
    return f"The code must use the library {answer.values[0]}."


def official(answer: Answer, code: str) -> Finding:
    """Part of any path will do, in the case it is asked for; in Python `import a.b` is no import of `a`."""
    name = answer.values[0]
    if answer.language == "python":
        found = name in _python(code)
    else:
        nodes = captured(answer.language, _PATHS[answer.language], code, "name")
        found = any(name in node.text.decode("utf-8", "replace") for node in nodes)
    return Finding(found, f"the published harness sees {'an' if found else 'no'} import of {name}")


def _python(code: str) -> set[str]:
    tree = parse(code)
    nodes = [] if tree is None else list(ast.walk(tree))
    whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return whole | {node.module.split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


def guarded(answer: Answer, code: str) -> Finding:
    name = answer.values[0]
    for path in answer.tree(code).imports:
        if _is(name, path.text.strip("\"'`<>"), answer.language):
            return Finding(True, f"line {path.line} imports {name}")
    if answer.language in ("javascript", "typescript"):
        for source, line in sources(code):
            if name.lower() in re.split(r"[/@?]|(?:\.min)?\.js\b", source.lower()):
                return Finding(True, f"line {line} loads {name}")
    return Finding(False, f"nothing in the code imports {name}")


def _is(name: str, path: str, language: str) -> bool:
    """Whether an imported path is of the library: whole parts of it, not a piece of a word."""
    path_lower, wanted = path.lower(), name.lower()
    if language == "rust":
        first = re.split(r"\W", path.strip("{ "))[0]
        return first == name.replace("-", "_")
    if language in ("javascript", "typescript"):
        package = "/".join(path.split("/")[: 2 if path.startswith("@") else 1])
        return package in (name, f"@{name}") or path.startswith((f"@{name}/", f"{name}/"))
    if language == "go":
        asked, count = wanted.split("/"), len(wanted.split("/"))
        if asked[0] in _GO_STANDARD:
            return path_lower == wanted
        parts = path_lower.split("/")
        return any(parts[start : start + count] == asked for start in range(len(parts)))
    return path_lower == wanted or path_lower.startswith((f"{wanted}.", f"{wanted}/"))


register(ConstraintType("library", "environment", ("syntax", "library"), "rule", read, words, official, guarded))
