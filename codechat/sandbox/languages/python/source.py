"""Text read as Python, without running it and without ever raising, and the names that it defines and lacks."""

import ast
import builtins
import re
import symtable
import textwrap
from collections import Counter
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


@dataclass(frozen=True, slots=True)
class _Variant:
    text: str
    how: str


def tidy(text: str) -> str:
    """The text with Unix line ends (as Python reads it), without byte order mark and without blank lines around."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    return _BLANK_LINES.sub("", text).rstrip()


def parse(text: str) -> Source:
    """Read `text` as a module.

    The compiler itself is not used: its time grows with the square of the number of functions, and doubles with every
    nested `finally`. The symbol table finds most errors that the grammar allows, `_misplaced` the rest. Making it takes
    longer than the tree, so it is made only if it may find something.
    """
    try:
        tree = tree_of(text)
        # the symbol table may find an error in it, besides parameters of one name
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
    """`text`, or the first repaired variant of it that is valid Python; the error is that of the unchanged text.

    `indent`: columns by which the text is indented because its fence is (in a list, say). `known`: the text as read
    before, which is not parsed again.
    """
    first: Source | None = None
    for variant in _variants(tidy(text), indent):
        source = known if known and known.text == variant.text else parse(variant.text)
        if source.tree is not None:
            return Source(source.text, source.tree, how=variant.how)
        first = first or source
    assert first is not None
    return first


def _variants(text: str, indent: int) -> Iterator[_Variant]:
    if indent:
        yield _Variant(tidy(textwrap.dedent(text)), "")
        if text[:1] in (" ", "\t"):
            yield _Variant(re.sub(rf"(?m)^[ \t]{{1,{min(indent, 99)}}}", "", text), "indentation removed")
    else:
        yield _Variant(text, "")
        if text[:1] in (" ", "\t"):
            yield _Variant(tidy(textwrap.dedent(text)), "indentation removed")
    if text.lstrip().startswith(">>>"):
        prompts = [match for line in text.split("\n") if (match := _PROMPT.match(line))]
        yield _Variant(tidy("\n".join(match.string[match.end() :] for match in prompts)), "prompts and output removed")
    before, _, after = text.partition("```")
    line = before[before.rfind("\n") + 1 :]
    if after and line.strip() and "#" not in line and after.lstrip("`").startswith("\n"):
        yield _Variant(tidy(before), "ended by a fence that has no line of its own")


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


_BUILTINS = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__"}


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


def strength(tree: ast.Module, name: str) -> Strength:
    """How well `name` is defined at module level, else as a method of the only class that has it.

    If `name` is empty: how well the module defines anything at all.
    """
    if not name:
        return max(map(_strength_of, module_level(tree)), default=Strength.NONE)
    at_module_level = max((_binds(node, name) for node in module_level(tree)), default=Strength.NONE)
    if at_module_level:
        return at_module_level
    found = wrapper(tree, name)
    return found.strength if found and not found.obstacle else Strength.NONE


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
    """The names one statement binds in its own scope, without those that its suites bind."""
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


def missing_names(text: str) -> set[str]:
    """Global names that a valid module reads, in any scope, and that are neither bound in it nor builtins."""
    module = symtable.symtable(text, "<reply>", "exec")
    bound = {symbol.get_name() for symbol in module.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    return global_reads(module) - bound - _BUILTINS


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


def wrapper(tree: ast.Module, name: str) -> Wrapper | None:
    """The class whose method answers the task (`class Solution:`), if exactly one top-level class has it."""
    found = [
        (node, method)
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.name == name
    ]
    classes = {node.name for node, _ in found}
    if not found:
        return None
    node, method = found[-1]
    decorators = {inner.id for inner in method.decorator_list if isinstance(inner, ast.Name)}
    unbound = bool(decorators & {"staticmethod", "classmethod"})
    obstacle = ""
    if len(classes) > 1:
        obstacle = f"several classes have a method '{name}': {', '.join(sorted(classes))}"
    elif not unbound and _needs_arguments(node):
        obstacle = f"'{name}' is a method of class {node.name}, whose constructor needs arguments"
    return Wrapper(node.name, not unbound, _body_strength(method.body), obstacle)


def _needs_arguments(node: ast.ClassDef) -> bool:
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name in ("__init__", "__new__"):
            arguments = method.args
            positional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
            itself = 1 if arguments.posonlyargs or arguments.args else 0
            if positional > itself or any(default is None for default in arguments.kw_defaults):
                return True
    return False


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


def acts(node: ast.stmt) -> bool:
    """Whether a statement does something; prose that parses by chance is a name, a tuple or a bare annotation."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    return not (isinstance(node, ast.AnnAssign) and node.value is None)


def _strength_of(node: ast.stmt) -> Strength:
    if isinstance(node, Definition):
        return Strength.PARTIAL if is_test(node) else _body_strength(node.body)
    if isinstance(node, ast.Import | ast.ImportFrom):
        return Strength.STUB
    return Strength.PARTIAL if acts(node) and not isinstance(node, ast.Pass) else Strength.NONE


def _binds(node: ast.stmt, name: str) -> Strength:
    if name not in bound_names(node) or is_main_guard(node):
        return Strength.NONE
    if isinstance(node, ast.Import | ast.ImportFrom):
        return Strength.PARTIAL
    return _body_strength(node.body) if isinstance(node, Definition) else Strength.FULL


def _body_strength(body: list[ast.stmt]) -> Strength:
    return Strength.STUB if all(_says_nothing(statement) for statement in body) else Strength.FULL


def _says_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Raise):
        error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return isinstance(error, ast.Name) and error.id == "NotImplementedError"
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
