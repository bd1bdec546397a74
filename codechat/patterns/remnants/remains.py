"""What was to be removed and is still there in another form: `else` as `elif not …`, a comment as a string statement.

A finder here looks, in the code after, for the other forms of what one pattern finds. They count if there are more of
them than before: what stood there already has nothing to do with the change.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from codechat.patterns.base import Occurrence, at
from codechat.patterns.finders.comments import is_elif
from codechat.patterns.finders.names import local_bindings
from codechat.patterns.reading.code import Code, is_hint, read
from codechat.patterns.reading.tree import docstring, own_nodes
from codechat.patterns.substance.dead import always_true, canonical

Finder = Callable[[Code, Code, Mapping[str, Any]], Iterable[Occurrence]]
"""Finds the other forms in a code, the code before and the pattern's options given."""

_finders: dict[str, list[Finder]] = {}


def remaining(name: str, change: str, options: Mapping[str, Any], old: Code, new: Code) -> tuple[Occurrence, ...]:
    """The other forms of what a pattern finds that there are more of than before."""
    for find in (find for key in (name, f"{change} {name}", "every") for find in _finders.get(key, ())):
        now = tuple(find(new, old, options))
        if len(now) > len(tuple(find(old, old, options))):
            return tuple(sorted(now))
    return ()


def remains(*names: str) -> Callable[[Finder], Finder]:
    """Register a finder for patterns by their names, a name after `remove` or `modify` for that change alone."""

    def remember(finder: Finder) -> Finder:
        for name in names:
            _finders.setdefault(name, []).append(finder)
        return finder

    return remember


@remains("comment", "code_in_comment", "header_comment")
def texts(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """String statements that are no docstring, and strings anywhere that say what a comment said."""
    said = {words for one in old.comments if " " in (words := _words(one.text))}
    for node in code.find(ast.Constant):
        if isinstance(node.value, str):
            above = code.parents[node]
            stated = isinstance(above, ast.Expr) and docstring(code.parents[above]) is not node
            if stated or (said and any(words in _words(node.value) for words in said)):
                yield at(node)


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


@remains("code_in_comment")
def revived_code(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Statements that a comment held."""
    trees = [read(one.text.lstrip("#").strip()).tree for one in old.comments]
    held = {ast.unparse(tree) for tree in trees if tree is not None and tree.body}
    return (at(node) for node in code.find(ast.stmt) if held and ast.unparse(node) in held)


@remains("any_docstring", "docstring", "module_docstring")
def moved_docstrings(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """String statements that are no docstring, and assignments to `__doc__`."""
    for node in code.find(ast.Expr):
        text = node.value.value if isinstance(node.value, ast.Constant) else None
        if isinstance(text, str) and docstring(code.parents[node]) is not node.value:
            yield at(node)
    yield from _stores(code, "__doc__")


def _stores(code: Code, name: str) -> Iterator[Occurrence]:
    for node in code.find(ast.Name, ast.Attribute):
        if (node.id if isinstance(node, ast.Name) else node.attr) == name:
            yield at(node, name)


@remains("parameter_hint", "return_hint", "local_hint")
def other_hints(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Type comments, and uses of `__annotations__`."""
    for number, line in enumerate(code.lines, 1):
        if re.search(r"#\s*type:(?!\s*ignore)", line):
            yield Occurrence(number)
    yield from _stores(code, "__annotations__")


@remains("blank_line", "blank_after_docstring")
def empty_comments(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Lines that hold nothing but the sign of a comment."""
    return (Occurrence(one.line) for one in code.comments if one.own_line and not one.text.strip("# \t"))


@remains("modify local_name")
def names_in_disguise(code: Code, old: Code, options: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Locals whose name is of that kind but for underscores around it, or a letter that is repeated."""
    for name, node, _ in local_bindings(code):
        bare = re.sub(r"^(\w)\1{2,}$", r"\1", name.strip("_"))
        if bare != name and re.fullmatch(options["matches"], bare):
            yield at(node, f"'{name}'")


@remains("if_with_else")
def closing_elif(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Chains whose last `elif` always holds where the tests before it do not."""
    for node in code.find(ast.If):
        tests, last = [canonical(node.test)], node
        while len(last.orelse) == 1 and isinstance(last.orelse[0], ast.If) and is_elif(code, last.orelse[0]):
            last = last.orelse[0]
            if not last.orelse and _holds(code, last.test, tests):
                yield at(last)
            tests.append(canonical(last.test))


def _holds(code: Code, test: ast.expr, failed: list[str]) -> bool:
    """Whether a condition is true where all of others are false."""
    if isinstance(test, ast.BoolOp):
        return (all if isinstance(test.op, ast.And) else any)(_holds(code, value, failed) for value in test.values)
    inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
    if isinstance(inner, ast.BoolOp) and isinstance(inner.op, ast.Or):
        return all(_holds(code, ast.UnaryOp(ast.Not(), value), failed) for value in inner.values)
    return always_true(code, test) or canonical(test, negated=True) in failed


@remains("if_statement", "if_with_else", "elif")
def loops_run_once(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`while` loops that are always left at their end: an `if` by another name."""
    for node in code.find(ast.While):
        left = isinstance(node.body[-1], ast.Break | ast.Return | ast.Raise)
        if left and not any(isinstance(one, ast.Continue) for one in own_nodes(node)):
            yield at(node)


@remains("import")
def hidden_imports(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Modules that are loaded by a call, or by code in a text."""
    for node in code.find(ast.Call):
        name = code.called(node.func)
        text = ast.unparse(node.args[0]) if name in ("exec", "eval") and node.args else ""
        if name == "__import__" or name.endswith("import_module") or "import" in text:
            yield at(node)


@remains("assert")
def spelled_assertions(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`raise AssertionError`."""
    for node in code.find(ast.Raise):
        head = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if head is not None and code.origin(head) == "AssertionError":
            yield at(node)


@remains("collecting_loop")
def filled_by_call(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Collections that a method fills from a generator expression: `out.extend(x for x in …)`."""
    for node in code.find(ast.Expr):
        call = node.value
        if isinstance(call, ast.Call) and code.called(call.func) in (".extend", ".update", ".extendleft"):
            yield from (at(node) for one in call.args if isinstance(one, ast.GeneratorExp))
        elif isinstance(call, ast.ListComp) and isinstance(call.elt, ast.Call):
            yield from [at(node)] if code.called(call.elt.func) in (".append", ".add", ".extend", ".update") else []


@remains("nested_function")
def named_lambdas(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Lambdas under a name in a function."""
    for node in code.find(ast.Assign, ast.AnnAssign, ast.NamedExpr):
        if isinstance(node.value, ast.Lambda) and code.function_of(node) is not None:
            yield at(node)


@remains("unused_local")
def dropped_values(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Assignments to `_`, and deleted names."""
    for node in code.find(ast.Assign, ast.Delete):
        if isinstance(node, ast.Delete) or [ast.unparse(target) for target in node.targets] == ["_"]:
            yield at(node)


@remains("slice")
def called_slices(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`slice(...)`."""
    return (at(node) for node in code.find(ast.Call) if code.called(node.func) == "slice")


@remains("use", "call")
def handed_on(code: Code, old: Code, options: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Functions that are read without being called, and methods that are called by a text."""
    names = options["names"]
    for node in code.find(ast.Name, ast.Attribute, ast.Call):
        if isinstance(node, ast.Call):
            texts = [
                f".{one.value}" for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
            by_text = code.called(node.func) in ("getattr", "operator.methodcaller") and texts[:1] != []
            yield from [at(node)] if by_text and not {texts[0], texts[0][1:]}.isdisjoint(names) else []
        elif code.origin(node) in names and getattr(code.parents.get(node), "func", None) is not node:
            yield from [at(node)] if isinstance(node.ctx, ast.Load) and not is_hint(code, node) else []


@remains("collection")
def made_otherwise(code: Code, old: Code, options: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`dict.fromkeys(...)`, and types that are handed on to be called, as in `defaultdict(set)`."""
    kind = options["kind"]
    for node in code.find(ast.Call):
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr == "fromkeys" and code.origin(called.value) == kind:
            yield at(node)
        elif code.called(called) not in ("isinstance", "issubclass", "cast", "typing.cast"):
            yield from (at(node) for one in node.args if isinstance(one, ast.Name) and code.origin(one) == kind)


@remains("swallowing_handler")
def suppressed(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`contextlib.suppress(Exception)`."""
    for node in code.find(ast.Call):
        if code.called(node.func) == "contextlib.suppress":
            wide = {code.called(one) for one in node.args} & {"Exception", "BaseException"}
            yield from [at(node)] if wide else []


@remains("tuple_assignment")
def loops_over_one(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`for a, b in [(1, 2)]:`, which assigns once."""
    for node in code.find(ast.For):
        single = isinstance(node.iter, ast.List | ast.Tuple | ast.Set) and len(node.iter.elts) == 1
        if single and isinstance(node.target, ast.Tuple):
            yield at(node)


@remains("passing_variable")
def named_in_return(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`return (x := …)`, where nothing else reads x."""
    for node in code.find(ast.Return):
        named = node.value.target.id if isinstance(node.value, ast.NamedExpr) else ""
        reads = [one for one in code.find(ast.Name) if one.id == named and isinstance(one.ctx, ast.Load)]
        if named and not reads:
            yield at(node, f"'{named}'")


@remains("emptiness_test")
def lengths_compared(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`len(x) < 1`, `x == list()`, and the like."""
    return (at(node) for node in code.find(ast.Compare) if _OTHER_LENGTH.search(ast.unparse(node)))


_OTHER_LENGTH = re.compile(
    r"^len\(.*\) (< 1|>= 1|<= 0)$|^(1 >|1 <=|0 >=) len\(|\.__len__\(\)|(^| )(list|dict|set|tuple|str)\(\)( |$)"
)


@remains("equality_choice", "comparison_with_boolean")
def single_memberships(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`x in (1,)`."""
    for node in code.find(ast.Compare):
        places = node.comparators[0]
        if isinstance(node.ops[0], ast.In | ast.NotIn) and isinstance(places, ast.Tuple | ast.List | ast.Set):
            yield from [at(node)] if len(places.elts) == 1 else []


@remains("negation")
def called_negations(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`operator.not_(x)`."""
    return (at(node) for node in code.find(ast.Call) if code.called(node.func) == "operator.not_")


@remains("try")
def managed_errors(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Context managers that catch: `contextlib.suppress`, and an `ExitStack`'s callbacks."""
    names = ("contextlib.suppress", "contextlib.ExitStack", "contextlib.AsyncExitStack")
    return (at(node) for node in code.find(ast.Call) if code.called(node.func) in names)
