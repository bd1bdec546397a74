"""Test snippets as code: whatever they only define is run as its framework would run it.

That holds for classes of `unittest`, functions and classes that pytest would find, `async` ones included, for
`check(candidate)` as in HumanEval, and for what stands under `if __name__ == "__main__"`.
"""

import ast
import contextlib
import symtable
import unittest
from collections.abc import Collection, Iterator, Sequence
from types import CodeType
from typing import Any

CASES, CLASS, AWAIT = "(cases)", "(class)", "(await)"  # names that no text can have
HOOKS = ("setup_method", "teardown_method", "setup_class", "teardown_class")
MAINS = ("unittest.main", "main", "pytest.main")
Function = ast.FunctionDef | ast.AsyncFunctionDef


class _Kept(unittest.TestResult):
    """Results with the exceptions themselves, whose tracebacks name the failing lines of the tests."""

    def _exc_info_to_string(self, err: Any, test: Any) -> Any:
        return err[1]


class NotRun(ValueError):
    """A snippet with tests that nothing here runs; the text says which."""


def run_cases(*classes: Any) -> None:
    """Run the tests of `unittest` classes; raises `AssertionError` unless each of them passed and there is one."""
    for cases in classes:
        found = _Kept()
        unittest.defaultTestLoader.loadTestsFromTestCase(cases).run(found)
        wrong = [*found.failures, *found.errors, *found.skipped, *found.expectedFailures]  # skipped has not passed
        if wrong:
            test, cause = wrong[0]  # why a test was skipped is a text
            trace = getattr(cause, "__traceback__", None)
            said = str(cause).strip().split("\n", 1)[0]
            said = f"{type(cause).__name__}: {said}" if trace else said
            raise AssertionError(f"{'.'.join(str(test.id()).split('.')[-2:])}: {said}").with_traceback(trace)
        if not found.testsRun or not found.wasSuccessful():
            raise AssertionError("no test ran")


def run_class(tests: Any) -> None:
    """Run the tests of a class as pytest does: one object for every test."""
    getattr(tests, "setup_class", lambda: None)()
    for test in [name for name in vars(tests) if name.startswith("test")]:
        one = tests()
        getattr(one, "setup_method", lambda: None)()
        ended = getattr(one, test)()
        if hasattr(ended, "__await__"):
            run_awaitable(ended)
        getattr(one, "teardown_method", lambda: None)()
    getattr(tests, "teardown_class", lambda: None)()


def run_awaitable(coroutine: Any) -> None:
    """Run a coroutine to its end."""
    import asyncio  # seldom needed, and slow to load

    asyncio.run(coroutine)


RUNNERS = {CASES: run_cases, CLASS: run_class, AWAIT: run_awaitable}
"""What the code of snippets uses besides their own names."""


def compile_snippet(
    snippet: str, name: str, entry_point: str, used: Collection[str], visitor: ast.NodeTransformer | None = None
) -> CodeType | str:
    """The code of a snippet, with calls of the tests that it only defines.

    `used` are the names that all snippets use; `visitor` changes the tree. The text itself if it does not parse:
    running it raises the error.
    """
    try:
        tree = read_snippet(snippet, name)
        tree.body += find_calls(tree, entry_point, used)
        return compile(tree if visitor is None else visitor.visit(tree), name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        try:
            compile(snippet, name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return snippet
        raise  # the text alone would only define its tests


def refuse_unrun(snippets: Sequence[str], entry_point: str) -> set[str]:
    """The names that the snippets use. Raises `NotRun` if nothing would run some of their tests."""
    trees = []
    for snippet in snippets:
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):  # no program passes that
            trees.append(read_snippet(snippet, "<assertion>"))
    used = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for tree in trees:
        calls = find_calls(tree, entry_point, used)
        defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | Function)}
        if defined and not calls and not defined & used and all(map(_only_defines, tree.body)):
            raise NotRun(f"it only defines {min(defined)}, and nothing runs that")
    return used


def imports_of(snippets: Sequence[str]) -> str:
    """The import statements at the top level of snippets, a line each."""
    lines: dict[str, None] = {}
    for snippet in snippets:
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            body = ast.parse(snippet).body
            lines |= {ast.unparse(node): None for node in body if isinstance(node, ast.Import | ast.ImportFrom)}
    return "".join(f"{line}\n" for line in lines if "__future__" not in line)


def shares_names(snippets: Sequence[str]) -> bool:
    """Whether snippets read or set the variables of the file they stand in as such."""
    for snippet in snippets:
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            for node in ast.walk(ast.parse(snippet)):
                if isinstance(node, ast.Global) or (isinstance(node, ast.Name) and node.id == "globals"):
                    return True
    return False


def names_read(snippets: Sequence[str]) -> tuple[set[str], list[str]]:
    """The names that snippets read from the namespace that they share with the program, and those that none binds."""
    read, free, bound = set[str](), dict[str, None](), set[str]()
    for snippet in snippets:
        reads, binds = set[str](), set[str]()
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            tables = [symtable.symtable(snippet, "<assertion>", "exec")]
            while tables:
                table = tables.pop()
                tables += table.get_children()
                symbols = [one for one in table.get_symbols() if one.is_global() or table.get_type() == "module"]
                reads |= {one.get_name() for one in symbols if one.is_referenced()}
                binds |= {one.get_name() for one in symbols if one.is_assigned() or one.is_imported()}
        read, bound = read | reads, bound | binds
        free |= dict.fromkeys(sorted(reads - bound))
    return read, list(free)


def uses_of(snippets: Sequence[str], name: str, used: Collection[str]) -> list[bool]:
    """For each snippet, whether it uses a name."""
    found = []
    for snippet in snippets:
        names = set[str]()
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            tree = read_snippet(snippet, "<assertion>")
            tree.body += find_calls(tree, name, used)
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        found.append(name in names)
    return found


def class_level_names(snippet: str) -> list[str]:
    """The names that statements of classes use, and that the snippet does not bind itself."""
    try:
        tree = ast.parse(snippet)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    if not any(isinstance(node, ast.ClassDef) for node in ast.walk(tree)):
        return []
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    bound |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | Function)}
    aliases = (node for node in ast.walk(tree) if isinstance(node, ast.alias))
    bound |= {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return list(dict.fromkeys(node.id for node in names if node.id not in bound))


def read_snippet(snippet: str, name: str) -> ast.Module:
    """The snippet's tree, with what stands under a main guard; raises what `ast.parse` raises."""
    tree = ast.parse(snippet, name)
    tree.body = list(_opened(tree.body))
    return tree


def _opened(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements with those under a main guard, and without the calls of test runners."""
    for node in body:
        if isinstance(node, ast.If) and ast.unparse(node.test) in (
            "__name__ == '__main__'",
            "'__main__' == __name__",
        ):
            yield from _opened(node.body)
            continue
        value = node.value if isinstance(node, ast.Expr) else None
        if not (isinstance(value, ast.Call) and ast.unparse(value.func) in MAINS):
            yield node


def _only_defines(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return not any(isinstance(part, ast.Call) for part in ast.walk(node))
    return isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef | ast.Pass | Function)


def find_calls(tree: ast.Module, entry_point: str, used: Collection[str]) -> list[ast.stmt]:
    """Statements that run the tests a snippet only defines. Raises `NotRun`."""
    cases, calls = _cases(tree), list[ast.expr]()
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test") and node.name not in (*cases, *used):
            calls += _run_class(node)
        elif isinstance(node, Function) and node.name not in used:
            if node.name.startswith("test"):
                calls.append(_run_function(node))
            elif node.name == "check" and len(node.args.args) == 1:
                if not entry_point or entry_point == node.name:
                    raise NotRun("it defines check(), and there is no entry point to check")
                calls.append(_call("check", entry_point))
    if cases:
        calls.append(_call(CASES, *cases))
    last = max((node.lineno for node in tree.body), default=1)  # of a statement that defines tests, not of its runner
    place = {"lineno": last, "col_offset": 0, "end_lineno": last, "end_col_offset": 0}
    return [ast.fix_missing_locations(ast.Expr(call, **place)) for call in calls]


def _call(name: str, *arguments: str) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), [ast.Name(one, ast.Load()) for one in arguments], [])


def _run_function(node: Function) -> ast.expr:
    if any(_required(node)):
        raise NotRun(f"{node.name}() needs arguments, such as fixtures, which only pytest gives")
    _refuse_marks(node)
    call = _call(node.name)
    return ast.Call(ast.Name(AWAIT, ast.Load()), [call], []) if isinstance(node, ast.AsyncFunctionDef) else call


def _run_class(node: ast.ClassDef) -> list[ast.expr]:
    methods = [one for one in node.body if isinstance(one, Function)]
    if not any(method.name.startswith("test") for method in methods):
        return []
    _refuse_marks(node)
    for method in methods:
        wanted = _required(method)[1:]
        if (method.name.startswith("test") or method.name in HOOKS) and wanted:
            raise NotRun(f"{node.name}.{method.name}() needs arguments, such as fixtures, which only pytest gives")
        _refuse_marks(method)
    return [_call(CLASS, node.name)]


def _required(node: Function) -> list[str]:
    """The parameters that a call must give."""
    given = [*node.args.posonlyargs, *node.args.args]
    named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    plain = given[: len(given) - len(node.args.defaults)]
    return [one.arg for one in plain] + [one.arg for one, default in named if default is None]


def _refuse_marks(node: Function | ast.ClassDef) -> None:
    for decorator in map(ast.unparse, node.decorator_list):
        if "pytest" in decorator and not decorator.startswith("pytest.mark.asyncio"):
            raise NotRun(f"{node.name} has the mark @{decorator.partition('(')[0]}, which only pytest understands")


def _cases(tree: ast.Module) -> list[str]:
    """The names of the classes with tests that `unittest` runs. Raises `NotRun`."""
    known: dict[str, tuple[bool, bool]] = {}  # whether it has tests, whether it awaits them
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        bases = [ast.unparse(base) for base in node.bases]
        if not any(base.endswith("TestCase") or base in known for base in bases):
            continue
        tests = [one for one in node.body if isinstance(one, Function) and one.name.startswith("test")]
        awaits = any(base.endswith("AsyncioTestCase") or known.get(base, (0, False))[1] for base in bases)
        if not awaits and any(isinstance(one, ast.AsyncFunctionDef) for one in tests):
            raise NotRun(f"{node.name} has async tests, which only unittest.IsolatedAsyncioTestCase runs")
        known[node.name] = bool(tests) or any(known.get(base, (False, 0))[0] for base in bases), awaits
    cases = [name for name, (tests, _) in known.items() if tests]
    if known and not cases:
        raise NotRun(f"{next(iter(known))} has no test")
    return cases
