"""New names in a program: its functions and their parameters, renamed on the syntax tree by edits of the text.

A name is followed through the scopes of Python: a nested function with a variable of the same name keeps it, as do
attributes, texts, and keyword arguments of other functions. The edited text must have the syntax tree that the renaming
should give, else the name is not renamed: so wrong positions, such as of early versions within f-strings, do no harm.
"""

import ast
import re
from collections.abc import Collection, Iterator
from itertools import accumulate

from codechat.sandbox.languages.python.syntax import fresh_tree_of, parameters, parse

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Scope = Function | Comprehension | ast.ClassDef
PLACED = ast.expr | ast.stmt | ast.arg | ast.keyword
LOOKS_UP = frozenset(("locals", "vars", "globals", "eval", "exec", "compile", "getattr"))
"""Builtins that may find a variable by its name in a text."""


NAMED: dict[type[ast.AST], str] = {
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler), "name"),
    **dict.fromkeys((ast.MatchAs, ast.MatchStar), "name"),
    ast.MatchMapping: "rest",
    ast.Name: "id",
    ast.arg: "arg",
}
"""The field that has a node's name."""


class Unclear(Exception):
    """A use of the name that no edit covers."""


def renamed(text: str, old: str, new: str, functions: Collection[str]) -> str | None:
    """The program with another name for one of its top-level `functions`, or for their parameters of that name.

    `functions` may be called in `text` and defined elsewhere: keyword arguments of their calls are parameters too.
    Returns None if it cannot be done for certain, and the same text if it has no such name. `new` must be a word that
    the text does not have.
    """
    tree = fresh_tree_of(text)
    try:
        nodes = [*_to_rename(tree, old, functions)]
        changed = _edited(text, tree, nodes, old, new)
    except Unclear:
        return None
    for node in nodes:
        _set(node, old, new)
    after = parse(changed)
    return changed if after is not None and ast.dump(after) == ast.dump(tree) else None


def _to_rename(tree: ast.Module, old: str, functions: Collection[str]) -> Iterator[ast.AST]:
    calls = {id(node) for name in functions for node in _uses(tree, name)}
    if old in functions:
        yield from _uses(tree, old)
        return
    own = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in functions]
    takers = [node for node in own if old in {each.arg for each in parameters(node)}]
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    if takers and any(node.id in LOOKS_UP for node in named):
        raise Unclear
    for function in takers:
        yield from _uses(function, old)
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        keywords = [keyword for keyword in call.keywords if keyword.arg == old]
        if id(call.func) in calls:
            yield from keywords
        elif keywords and any(id(each) in calls for each in call.args):  # as `partial` takes it
            raise Unclear


def _uses(root: ast.Module | Function, name: str) -> Iterator[ast.AST]:
    """The nodes in which the name is the variable of the root's scope. Raises `Unclear`."""
    nodes, nested = _own(root)
    yield from (node for node in nodes if _names(node, name))
    for scope in nested:
        yield from _uses_within(scope, name, of_module=isinstance(root, ast.Module))


def _uses_within(scope: Scope, name: str, *, of_module: bool) -> Iterator[ast.AST]:
    nodes, nested = _own(scope)
    if any(isinstance(node, ast.Global) and name in node.names for node in nodes):
        if not of_module:
            return
    elif _binds(scope, nodes, nested, name):
        if isinstance(scope, ast.ClassDef):  # an attribute, and before that the variable around the class
            raise Unclear
        return
    yield from (node for node in nodes if _names(node, name))
    for each in nested:
        yield from _uses_within(each, name, of_module=of_module)


def _own(scope: ast.Module | Scope) -> tuple[list[ast.AST], list[Scope]]:
    """The nodes that are evaluated in a scope, and the scopes directly within it."""
    match scope:
        case ast.Lambda():
            todo: list[ast.AST] = [*parameters(scope), scope.body]
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            todo = [*parameters(scope), *scope.body]
        case ast.Module() | ast.ClassDef():
            todo = [*scope.body]
        case _:
            todo = [node for node in ast.iter_child_nodes(scope) if node is not scope.generators[0]]
            first = scope.generators[0]
            todo += [first.target, *first.ifs]
    nodes, nested = list[ast.AST](), list[Scope]()
    while todo:
        node = todo.pop()
        nodes.append(node)
        if isinstance(node, Scope):
            nested.append(node)
            todo += _around(node)
        elif not isinstance(node, ast.arg):
            todo += ast.iter_child_nodes(node)
    return nodes, nested


def _around(scope: Scope) -> Iterator[ast.AST]:
    """The parts of a scope that are evaluated in the scope around it."""
    match scope:
        case ast.ClassDef():
            yield from (*scope.decorator_list, *scope.bases, *scope.keywords)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield scope.generators[0].iter
        case _:
            yield from (*scope.args.defaults, *filter(None, scope.args.kw_defaults))
            yield from filter(None, (each.annotation for each in parameters(scope)))
            if not isinstance(scope, ast.Lambda):
                yield from (*scope.decorator_list, *filter(None, [scope.returns]))


def _binds(scope: Scope, nodes: list[ast.AST], nested: list[Scope], name: str) -> bool:
    """Whether the name is a variable of the scope."""
    if isinstance(scope, Comprehension):
        targets = (node for each in scope.generators for node in ast.walk(each.target))
        return any(isinstance(node, ast.Name) and node.id == name for node in targets)
    if any(isinstance(node, ast.Nonlocal) and name in node.names for node in nodes):
        return False
    inner = (node for each in nested if isinstance(each, Comprehension) for node in ast.walk(each))
    walrus = (node.target for node in inner if isinstance(node, ast.NamedExpr))
    return any(
        _names(node, name) and not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
        for node in (*nodes, *walrus)
    )


def _names(node: ast.AST, name: str) -> bool:
    """Whether a node reads, binds or declares the name itself."""
    if isinstance(node, ast.Global | ast.Nonlocal):
        return name in node.names
    if isinstance(node, ast.alias):
        return (node.asname or node.name).partition(".")[0] == name
    return type(node) in NAMED and getattr(node, NAMED[type(node)]) == name


def _set(node: ast.AST, old: str, new: str) -> None:
    if isinstance(node, ast.Global | ast.Nonlocal):
        node.names = [new if name == old else name for name in node.names]
    else:  # a keyword is no name of the scope where it is written
        setattr(node, NAMED.get(type(node), "arg"), new)


def _edited(text: str, tree: ast.Module, nodes: list[ast.AST], old: str, new: str) -> str:
    """The text with the name changed at the nodes. Raises `Unclear` for a node without a known place."""
    data = text.encode()
    begins = [0, *accumulate(len(line) for line in data.splitlines(keepends=True))]
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    formatted = {id(node): each for each in reversed(strings) for node in ast.walk(each)}  # the outermost one
    word, places = re.compile(rb"(?<![\w.])" + re.escape(old.encode()) + rb"(?!\w)"), set[int]()
    for node in nodes:
        holder = formatted.get(id(node), node)
        if not isinstance(holder, PLACED) or isinstance(holder, ast.ClassDef) or holder.end_lineno is None:
            raise Unclear
        start = begins[holder.lineno - 1] + holder.col_offset
        part = data[start : begins[holder.end_lineno - 1] + (holder.end_col_offset or 0)]
        found = [each.start() for each in word.finditer(part)]
        if isinstance(holder, ast.JoinedStr):
            found = [place for place in found if _in_field(part[:place])]
        elif not isinstance(holder, ast.Global | ast.Nonlocal):  # a function's name comes before its parameters
            found = found[:1]
        places |= {start + place for place in found}
    for place in sorted(places, reverse=True):
        data = data[:place] + new.encode() + data[place + len(old.encode()) :]
    return data.decode()


def _in_field(before: bytes) -> bool:
    """Whether a formatted string that begins so is within a replacement field."""
    depth = 0
    for brace in re.findall(rb"\{\{|\}\}|\{|\}", before):
        if depth or len(brace) == 1:
            depth += brace.count(b"{") - brace.count(b"}")
    return depth > 0
