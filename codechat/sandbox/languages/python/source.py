"""Text read as Python, without running it and without ever raising, and the names that it defines and lacks."""

import ast
import re
import symtable
import textwrap
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeGuard, get_args

from codechat.sandbox.languages.python.syntax import parameters, tree_of

LONGEST_ERROR = 200
_BLANK_LINES = re.compile(r"\A(?:[ \t\f]*\n)+")
_SCOPING_WORDS = ("__future__", "global", "nonlocal", "yield", "await", "lambda", ":=")
_SCOPING = tuple(  # one by one: patterns that begin with a word are fast to search
    map(re.compile, (r"import[\s\\]*\*", r"type[\s\\]+\w", r"def[\s\\]+\w+[\s\\]*\[", r"class[\s\\]+\w+[\s\\]*\["))
)
_PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.)(?: |$)")

Compound = ast.If | ast.For | ast.AsyncFor | ast.While | ast.With | ast.AsyncWith | ast.Try | ast.TryStar | ast.Match
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_PLACED = {ast.Return, ast.Break, ast.Continue, *get_args(Definition), *get_args(Compound)}
"""The statements that can be misplaced, or hold one that is."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text read as Python: `tree` if it is a valid module, else `error`, one line. `how`: the repair, if any."""

    text: str
    tree: ast.Module | None
    error: str = ""
    how: str = ""


def tidy(text: str) -> str:
    """The text with Unix line ends (as Python reads it), without byte order mark and without blank lines around."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    return _BLANK_LINES.sub("", text).rstrip()


def parse(text: str) -> Source:
    """Read `text` as a module. The compiler itself is not used: its time grows with the square of the number of
    functions, and doubles with every nested `finally`. The symbol table finds most errors that the grammar allows,
    `_misplaced` the rest. Making it takes longer than the tree, so it is made only if it may find something."""
    try:
        tree = tree_of(text)
        # the symbol table may find an error, as may the search for repeated parameters
        if any(word in text for word in _SCOPING_WORDS) or any(pattern.search(text) for pattern in _SCOPING):
            symtable.symtable(text, "<reply>", "exec")
    except SyntaxError as error:
        return Source(text, None, _one_line(f"line {error.lineno}: {error.msg}" if error.lineno else error.msg))
    except (RecursionError, MemoryError):
        return Source(text, None, "nested too deeply to be parsed")
    except UnicodeEncodeError:
        return Source(text, None, "holds half of a surrogate pair, which is no text")
    except (ValueError, OverflowError) as error:
        return Source(text, None, _one_line(str(error)))
    misplaced = _misplaced(tree)
    return Source(text, None if misplaced else tree, misplaced)


def read(text: str, indent: int = 0, known: Source | None = None) -> Source:
    """`text`, or the first repaired variant that is valid Python; the error is about the unchanged text. `indent`:
    columns of the fence's indentation (in a list, say). `known`: the text as parsed before."""
    first: Source | None = None
    for variant, how in _variants(tidy(text), indent):
        source = known if known and known.text == variant else parse(variant)
        if source.tree is not None:
            return Source(source.text, source.tree, how=how)
        first = first or source
    assert first is not None
    return first


def _variants(text: str, indent: int) -> Iterator[tuple[str, str]]:
    yield tidy(textwrap.dedent(text)) if indent else text, ""
    if text[:1] in (" ", "\t"):
        outdented = re.sub(rf"(?m)^[ \t]{{1,{min(indent, 99)}}}", "", text) if indent else tidy(textwrap.dedent(text))
        yield outdented, "indentation removed"
        yield text.lstrip(" \t"), "indentation of the first line removed"
    if text.lstrip().startswith(">>>"):
        prompts = [match for line in text.split("\n") if (match := _PROMPT.match(line))]
        yield tidy("\n".join(match.string[match.end() :] for match in prompts)), "prompts and output removed"
    before, fence, after = text.partition("```")
    line = before[before.rfind("\n") + 1 :]
    if fence and line.strip() and "#" not in line and after.lstrip("`")[:1] in ("", "\n"):
        yield tidy(before), "ended by a fence that has no line of its own"


def _one_line(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= LONGEST_ERROR else line[: LONGEST_ERROR - 1] + "…"


def suites(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The statement lists of a compound statement that opens no scope; none for any other statement."""
    if not is_compound(statement):
        return []
    if isinstance(statement, ast.Match):
        return [case.body for case in statement.cases]
    found = [statement.body]
    if not isinstance(statement, ast.With | ast.AsyncWith):
        found.append(statement.orelse)
    if isinstance(statement, ast.Try | ast.TryStar):
        found += [*(handler.body for handler in statement.handlers), statement.finalbody]
    return found


def is_compound(statement: ast.stmt) -> TypeGuard[Compound]:
    """Whether a statement contains statements but opens no scope."""
    return isinstance(statement, Compound)


def _misplaced(tree: ast.Module) -> str:
    preamble = True
    for position, statement in enumerate(tree.body):
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__" and not statement.level
        if future and not preamble:
            return f"line {statement.lineno}: from __future__ imports must occur at the beginning of the file"
        docstring = position == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        preamble = preamble and (future or docstring)
    stack = [(statement, False, False) for statement in reversed(tree.body)]
    while stack:
        node, in_function, in_loop = stack.pop()
        if type(node) not in _PLACED:
            continue
        if isinstance(node, ast.Return) and not in_function:
            return f"line {node.lineno}: 'return' outside function"
        if isinstance(node, ast.Break | ast.Continue) and not in_loop:
            return f"line {node.lineno}: '{type(node).__name__.lower()}' outside loop"
        if isinstance(node, Definition):
            names = [] if isinstance(node, ast.ClassDef) else [parameter.arg for parameter in parameters(node)]
            if twice := next((name for name, count in Counter(names).items() if count > 1), None):
                return f"line {node.lineno}: duplicate argument '{twice}' in function definition"
            stack += [(inner, not isinstance(node, ast.ClassDef), False) for inner in node.body]
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            stack += [(inner, in_function, True) for inner in node.body]
            stack += [(inner, in_function, in_loop) for inner in node.orelse]
        else:
            stack += [(inner, in_function, in_loop) for suite in suites(node) for inner in suite]
    return ""


class Strength(IntEnum):
    """How well a text defines the entry point; more is better."""

    NONE = 0
    STUB = 1  # A body of nothing but a docstring, `pass`, `...` or `raise NotImplementedError`: only a signature
    PARTIAL = 2
    """By import: a real alias, or the head of a test file that imports the answer.

    If no name is asked for: statements that define only tests.
    """
    FULL = 3


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The one class that defines the entry point as a method. `obstacle`: why it cannot be called as a function."""

    name: str
    needs_instance: bool
    strength: Strength
    obstacle: str = ""


def module_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Every statement run in the module's own scope, also under `if`, `try`, loops and `with`; not in main guards."""
    stack = list(reversed(tree.body))
    while stack:
        node = stack.pop()
        yield node
        if not is_main_guard(node):
            stack += [inner for suite in suites(node) for inner in reversed(suite)]


def is_main_guard(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":` without an else part, either way round."""
    if not isinstance(node, ast.If) or node.orelse or not isinstance(node.test, ast.Compare):
        return False
    test = node.test
    sides = [test.left, *test.comparators]
    names = [side.id for side in sides if isinstance(side, ast.Name)]
    texts = [side.value for side in sides if isinstance(side, ast.Constant)]
    return names == ["__name__"] and texts == ["__main__"] and isinstance(test.ops[0], ast.Eq)


def bound_names(node: ast.stmt) -> set[str]:
    """The names that one statement binds, inner suites left out."""
    if isinstance(node, Definition):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names} - {"*"}
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.For | ast.AsyncFor) or (isinstance(node, ast.AnnAssign) and node.value):
        targets = [node.target]
    elif isinstance(node, ast.With | ast.AsyncWith):
        targets = [item.optional_vars for item in node.items if item.optional_vars]
    return {
        inner.id
        for target in targets
        for inner in ast.walk(target)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    }


def module_names(tree: ast.Module) -> set[str]:
    """All names that the module binds in its own scope."""
    return {name for node in module_level(tree) for name in bound_names(node)}


def global_reads(scope: symtable.SymbolTable) -> set[str]:
    """The module's names, and the builtins, that a scope or one inside it reads or declares global."""
    read: set[str] = set()
    stack = [scope]
    while stack:
        table = stack.pop()
        stack += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_global() and (symbol.is_referenced() or symbol.is_declared_global()):
                read.add(symbol.get_name())
    return read


def is_test(node: Definition) -> bool:
    """Whether a function or a class is a test by its name or its base class."""
    if isinstance(node, ast.ClassDef):
        return node.name.startswith("Test") or any(dotted_name(base).endswith("TestCase") for base in node.bases)
    return node.name.startswith("test") or node.name == "check"


def dotted_name(value: ast.expr) -> str:
    """`a.b.c` of a name or an attribute chain; a call in it counts as the called name; empty for anything else."""
    parts: list[str] = []
    while isinstance(value, ast.Attribute | ast.Call):
        if isinstance(value, ast.Attribute):
            parts.append(value.attr)
        value = value.value if isinstance(value, ast.Attribute) else value.func
    return ".".join([value.id, *reversed(parts)]) if isinstance(value, ast.Name) else ""


_TRIAL_CALLS = frozenset(
    {"print", "pprint", "pprint.pprint", "check", "main", "unittest.main", "doctest.testmod", "pytest.main"}
)
_TEST_MODULES = frozenset({"doctest", "hypothesis", "nose", "pytest", "unittest"})
_REST_OF_LINE_EMPTY = re.compile(rb"[ \t\f]*(?:#|\n|\Z)")


def program(source: Source, entry_point: str, wrapper: Wrapper | None) -> tuple[str, int]:
    """The statements of a valid module except tests and demonstrations of the entry point, on their lines; and the
    number left out.

    Left out: main guards; bare asserts; calls, as statements, of print, the entry point, `check`, a test function or
    a test runner; and, if no remaining statement reads the names they bind: loops, conditions and `try`s of only these,
    test functions and classes, imports of test frameworks, and variables that hold a result of the entry point or of
    `input()`. All other statements stay, because the function may need them. A wrapper's method is bound at the end.
    If `entry_point` is empty, nothing is left out.
    """
    if not entry_point:
        return f"{source.text}\n", 0
    assert source.tree is not None
    dropped = _trials(source, entry_point, wrapper)
    text = _without(source, dropped) if dropped else source.text
    if dropped and "\\\n" in text and parse(text).tree is None:  # a line continuation lost its next line
        text, dropped = source.text, set()
    if wrapper:
        owner = f"{wrapper.name}()" if wrapper.needs_instance else wrapper.name
        text = f"{text}\n\n{entry_point} = {owner}.{entry_point}"
    return f"{text}\n", len(dropped)


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
    """Drop also the optional statements whose names no remaining statement reads, until nothing changes. A statement is
    checked once, and again for every dropped reader of its names: linear."""
    assert source.tree is not None
    scopes: dict[int, list[symtable.SymbolTable]] = {}  # by the line of their head
    for table in symtable.symtable(source.text, "<reply>", "exec").get_children():
        scopes.setdefault(table.get_lineno(), []).append(table)
    reads = {id(node): _reads(node, scopes) for node in source.tree.body}
    binds = {id(node): _all_bound(node) for node in source.tree.body}
    readers = Counter(name for key, names in reads.items() if key not in dropped for name in names)
    binders: dict[str, list[int]] = {}
    for node in optional:
        for name in binds[id(node)]:
            binders.setdefault(name, []).append(id(node))
    queue = deque(id(node) for node in optional)
    gone = set(dropped)
    while queue:
        key = queue.popleft()
        if key in gone or any(readers[name] - (name in reads[key]) > 0 for name in binds[key]):
            continue
        gone.add(key)
        readers.subtract(reads[key])
        for name in reads[key]:
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
    """The text without these statements; the others keep their lines. A statement that shares its line with another
    becomes `pass`. Columns count bytes of UTF-8."""
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
