"""The program to run: the code's lines without those that only try it out."""

import ast
import re
import symtable
from collections import Counter, deque
from dataclasses import dataclass

from codechat.sandbox.languages.python.source import (
    Definition,
    Source,
    Wrapper,
    bound_names,
    dotted_name,
    global_reads,
    is_compound,
    is_main_guard,
    is_test,
    module_level,
    parse,
    suites,
)

_TRIAL_CALLS = frozenset(
    {"print", "pprint", "pprint.pprint", "check", "main", "unittest.main", "doctest.testmod", "pytest.main"}
)
_TEST_MODULES = frozenset({"doctest", "hypothesis", "nose", "pytest", "unittest"})
_REST_OF_LINE_EMPTY = re.compile(rb"[ \t\f]*(?:#|\n|\Z)")


@dataclass(frozen=True, slots=True)
class Trimmed:
    """`text` has the line numbers of the code it comes from; `dropped` counts the statements left out."""

    text: str
    dropped: int


@dataclass(frozen=True, slots=True)
class _Statement:
    node: ast.stmt
    reads: frozenset[str]
    binds: frozenset[str]


def program(source: Source, entry_point: str, wrapper: Wrapper | None) -> Trimmed:
    """The statements of a valid module except those that test or demonstrate the entry point.

    Left out: main guards; bare asserts; calls, as statements, of print, the entry point, `check`, a test function or
    a test runner; and, if no remaining statement reads the names they bind: loops, conditions and `try`s of only these,
    test functions and classes, imports of test frameworks, and variables that hold a result of the entry point or of
    `input()`. All other statements stay, because the function may need them. A wrapper's method is bound at the end.
    If `entry_point` is empty, nothing is left out.
    """
    if not entry_point:
        return Trimmed(f"{source.text}\n", 0)
    assert source.tree is not None
    dropped = _trials(source, entry_point, wrapper)
    text = _without(source, dropped) if dropped else source.text
    if dropped and "\\\n" in text and parse(text).tree is None:  # a line continuation lost its next line
        text, dropped = source.text, set()
    if wrapper:
        owner = f"{wrapper.name}()" if wrapper.needs_instance else wrapper.name
        text = f"{text}\n\n{entry_point} = {owner}.{entry_point}"
    return Trimmed(f"{text}\n", len(dropped))


def _trials(source: Source, entry_point: str, wrapper: Wrapper | None) -> set[int]:
    assert source.tree is not None
    tree = source.tree
    entry_calls = {entry_point} | ({f"{wrapper.name}.{entry_point}"} if wrapper else set())
    protected = {entry_point} | ({wrapper.name} if wrapper else set())
    tests = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and is_test(node)}
    trial_calls = (entry_calls | _TRIAL_CALLS | tests) - _keeping_state(tree, entry_point)
    dropped = {
        id(node)
        for node in tree.body
        if _tries(node, trial_calls) and (is_main_guard(node) or not _all_bound(node) & protected)
    }
    optional = [node for node in tree.body if id(node) not in dropped and _may_go(node, entry_calls, protected)]
    binding = [node for node in tree.body if id(node) in dropped and not is_main_guard(node) and _all_bound(node)]
    return _settle(source, dropped.difference(map(id, binding)), optional + binding) if optional or binding else dropped


def _keeping_state(tree: ast.Module, entry_point: str) -> set[str]:
    """Functions with names of trials that set globals: the entry point may need a call of one."""
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and node.name != entry_point
        and (is_test(node) or node.name in _TRIAL_CALLS)
        and any(isinstance(inner, ast.Global) for inner in ast.walk(node))
    }


def _settle(source: Source, dropped: set[int], optional: list[ast.stmt]) -> set[int]:
    """Drop also the optional statements whose names no remaining statement reads, until nothing changes.

    A statement is checked once, and again for every dropped reader of its names: linear.
    """
    assert source.tree is not None
    scopes: dict[int, list[symtable.SymbolTable]] = {}  # by the line of their head
    for table in symtable.symtable(source.text, "<reply>", "exec").get_children():
        scopes.setdefault(table.get_lineno(), []).append(table)
    statements = {id(node): _Statement(node, _reads(node, scopes), _all_bound(node)) for node in source.tree.body}
    readers = Counter(name for key, item in statements.items() if key not in dropped for name in item.reads)
    binders: dict[str, list[int]] = {}
    for node in optional:
        for name in statements[id(node)].binds:
            binders.setdefault(name, []).append(id(node))
    queue = deque(id(node) for node in optional)
    gone = set(dropped)
    while queue:
        key = queue.popleft()
        item = statements[key]
        if key in gone or any(readers[name] - (name in item.reads) > 0 for name in item.binds):
            continue
        gone.add(key)
        readers.subtract(item.reads)
        for name in item.reads:
            if readers[name] <= 1:
                queue.extend(binders.get(name, ()))
    return gone


def _tries(node: ast.stmt, trial_calls: set[str]) -> bool:
    """Whether a statement only tries the code out; one that binds a name by `:=` may do more."""
    stack, calls_something = [node], False
    while stack:
        current = stack.pop()
        if isinstance(current, ast.Expr):
            if not isinstance(current.value, ast.Call) or dotted_name(current.value.func) not in trial_calls:
                return False
            calls_something = True
        elif isinstance(current, ast.For | ast.If | ast.Try | ast.With):
            calls_something |= is_main_guard(current)
            stack += [] if is_main_guard(current) else [inner for suite in suites(current) for inner in suite]
        elif isinstance(current, ast.Assert):
            calls_something = True
        elif current is node or not (isinstance(current, ast.Pass) or _only_names(current)):
            return False
    trial = calls_something and not any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node))
    return is_main_guard(node) or trial


def _only_names(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets)


def _may_go(node: ast.stmt, entry_calls: set[str], protected: set[str]) -> bool:
    if bound_names(node) & protected:
        return False
    if isinstance(node, Definition):
        return is_test(node)
    if isinstance(node, ast.Import | ast.ImportFrom):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        return all(module.split(".")[0] in _TEST_MODULES for module in modules)
    if isinstance(node, ast.Assign) and _only_names(node):
        calls = {dotted_name(inner.func) for inner in ast.walk(node.value) if isinstance(inner, ast.Call)}
        return bool(calls & (entry_calls | {"input"}))
    return False


def _all_bound(node: ast.stmt) -> frozenset[str]:
    if not is_compound(node):
        return frozenset(bound_names(node))
    return frozenset(name for inner in module_level(ast.Module([node], [])) for name in bound_names(inner))


def _reads(node: ast.stmt, scopes: dict[int, list[symtable.SymbolTable]]) -> frozenset[str]:
    """The module's names that a statement reads, changes in place or declares global; a function's own are not."""
    names: set[str] = set()
    parts: list[ast.AST] = [node]
    if isinstance(node, Definition) and any(table.get_name() == node.name for table in scopes.get(node.lineno, [])):
        for table in scopes[node.lineno]:
            names |= global_reads(table)
        parts = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
    for inner in (inner for part in parts for inner in ast.walk(part)):
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Store):
            names.add(inner.id)
        elif isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
            names.add(inner.target.id)
        elif isinstance(inner, ast.Global):
            names.update(inner.names)
    return frozenset(names)


def _without(source: Source, dropped: set[int]) -> str:
    """The text without these statements; the others keep their lines.

    A statement that shares its line with another becomes `pass`. Columns count bytes of UTF-8.
    """
    assert source.tree is not None
    text = source.text.encode()
    line_starts = [0, *(match.end() for match in re.finditer(b"\n", text))]
    pieces: list[bytes] = []
    position, last_line_before = 0, -1
    for node in source.tree.body:
        first = min([node.lineno, *(inner.lineno for inner in getattr(node, "decorator_list", []))]) - 1
        last = (node.end_lineno or node.lineno) - 1
        if id(node) in dropped:
            end = line_starts[last] + (node.end_col_offset or 0)
            alone = first > last_line_before and _REST_OF_LINE_EMPTY.match(text, end)
            pieces += [text[position : line_starts[first] + node.col_offset], b"\n" * (last - first)]
            pieces += [] if alone else [b"pass"]
            position = end
        last_line_before = last
    return b"".join([*pieces, text[position:]]).decode()
