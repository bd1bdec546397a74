"""The data structures that the published harness sees, the calls of their operations, and constructs."""

import ast

from codechat.constraints.published import calls, captured, tokens, without_comments
from codechat.languages.python.syntax import parse

_PYTHON_BUILT_IN = {"list", "dict", "set", "tuple", "heapq"}
_PYTHON_LIBRARY = {
    *("collections.deque", "collections.defaultdict", "collections.OrderedDict", "collections.Counter", "queue.Queue"),
}


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
            case ast.Call(func=ast.Name(id=name)) if name in _PYTHON_BUILT_IN:
                found.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
                found |= {f"{aliases.get(module, module)}.{name}"} & _PYTHON_LIBRARY
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
_NODES = {
    "lambda expression": "(lambda_literal) @name",
    "when expression": "(when_expression) @name",
    "match expression": "(match_expression) @name",
    "if let syntax sugar": "(if_expression (let_condition)) @name",
    "closures": "(closure_expression) @name",
}
# The words of which all must be tokens of that kind; Go's `chan` is of another kind from Pygments 2.21 on.
_TOKENS = {
    "async/await": (("Token.Keyword", "async"), ("Token.Keyword", "await")),
    "arrow functions": (("Token.Punctuation", "=>"),),
    "spread operator": (("Token.Punctuation", "..."),),
    "goroutine and channel": (("Token.Keyword", "go"), ("Token.Keyword.", "chan"), ("Token.Operator", "<-")),
    "defer statement": (("Token.Keyword", "defer"),),
}


def construct_seen(construct: str, code: str, language: str) -> bool:
    """Whether the published harness finds a construct, which is given in lower case."""
    code = without_comments(code, language)
    if construct in _TOKENS:
        words_of = tokens(code, language)
        found = all(
            any(text == word and (kind.startswith(of) if of.endswith(".") else kind == of) for kind, text in words_of)
            for of, word in _TOKENS[construct]
        )
    elif construct in _PYTHON:
        tree = parse(code)
        found = tree is not None and any(isinstance(node, _PYTHON[construct]) for node in ast.walk(tree))
    else:
        found = bool(captured(language, _NODES[construct], code, "name"))
    return found
