"""What has the form of a construct and does nothing: no use of it, whatever becomes of its result.

A `with` around `pass` manages nothing, a `functools.partial` without an argument to fix is the function itself, an
assertion that is true of anything checks nothing, and code behind a `return` is never run. Only what surely does
nothing counts as hollow.
"""

import ast
from collections.abc import Callable, Iterable
from typing import Any

from codechat.patterns.reading.code import Code
from codechat.patterns.reading.tree import (
    COMPREHENSIONS,
    FUNCTIONS,
    LOOPS,
    Function,
    blocks,
    body_without_docstring,
    own_nodes,
    walk,
)
from codechat.patterns.substance.dead import always_true, dead, settled
from codechat.patterns.substance.effects import acts
from codechat.patterns.substance.idle import given, idle, is_read, names_of
from codechat.patterns.substance.vain import VAIN, catches_nothing, is_single

_ERRORS = ("Error", "Exception", "Warning", "Exit", "Interrupt")


def hollow(code: Code) -> frozenset[ast.AST]:
    """The nodes of constructs that do nothing, and of code that never runs."""
    if hollow not in code.found:
        found = set(dead(code))
        for node in code.nodes:
            check = _CHECKS.get(type(node))
            if check is not None:
                found.update(check(code, node))
        for _, targets, value in given(code) if found else ():
            names = {name for target in targets for name in names_of(target)}
            loads = [one for one in code.find(ast.Name) if one.id in names and isinstance(one.ctx, ast.Load)]
            if loads and None not in names and found.issuperset(loads) and not acts(code, value):
                found.update(walk(value))  # what is read where nothing is done
        code.found[hollow] = frozenset(found)
    nodes: frozenset[ast.AST] = code.found[hollow]
    return nodes


def does_nothing(code: Code, block: Iterable[ast.stmt]) -> bool:
    """Whether no statement of a block has any effect: `pass`, `...`, texts, values and variables that nothing reads."""
    return all(_is_nothing(code, statement) for statement in block)


def _is_nothing(code: Code, statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return not acts(code, statement.value)
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        itself = isinstance(statement.value, ast.Name) and [*map(_dump, targets)] == [statement.value.id]
        return itself or statement.value in idle(code)
    if isinstance(statement, ast.If):
        return not acts(code, statement.test) and does_nothing(code, [*statement.body, *statement.orelse])
    if isinstance(statement, ast.Continue):
        return _is_last(code, statement)
    return isinstance(statement, ast.Pass | ast.Global | ast.Nonlocal)


def _is_last(code: Code, statement: ast.stmt) -> bool:
    """Whether nothing of the loop's body follows a statement."""
    inner: ast.AST = statement
    for above in code.ancestors(statement):
        if any(inner in block[:-1] for block in blocks(above)):
            return False
        if isinstance(above, LOOPS):
            break
        inner = above
    return True


def _dump(node: ast.AST | None) -> str:
    """What is written there; equal for equal expressions."""
    return ast.unparse(node) if node is not None else ""


def does_no_work(code: Code, function: Function) -> bool:
    """Whether a function's body is empty, or only says that it gives nothing."""
    body = body_without_docstring(function)
    return does_nothing(code, (one for one in body if not isinstance(one, ast.Return) or _gives(one.value)))


def _gives(value: ast.expr | None) -> bool:
    return value is not None and not (isinstance(value, ast.Constant) and value.value is None)


def _function(code: Code, node: Any) -> Iterable[ast.AST]:
    return walk(node) if does_no_work(code, node) else ()


def _class(code: Code, node: ast.ClassDef) -> Iterable[ast.AST]:
    """A class without members; an exception needs none."""
    error = any(_dump(base).endswith(_ERRORS) for base in node.bases)
    return [node] if not error and does_nothing(code, body_without_docstring(node)) else ()


def _with(code: Code, node: Any) -> Iterable[ast.AST]:
    """A `with` around nothing, or one that nothing manages, `nullcontext()`."""
    if does_nothing(code, node.body):
        return walk(node)
    empty = all(_manages_nothing(code, one.context_expr) for one in node.items)
    return [node] if empty else ()


def _manages_nothing(code: Code, manager: ast.expr) -> bool:
    """`nullcontext()`, and `suppress(...)` around what cannot raise."""
    caught = isinstance(manager, ast.Call) and code.called(manager.func) == "contextlib.suppress"
    null = isinstance(manager, ast.Call) and _dump(manager.func).endswith("nullcontext")
    return null or (caught and catches_nothing(code, manager))


def _try(code: Code, node: Any) -> Iterable[ast.AST]:
    if does_nothing(code, node.body):
        return walk(node)
    if not node.handlers and does_nothing(code, node.finalbody):
        return [node, *node.finalbody]
    return node.finalbody if does_nothing(code, node.finalbody) else ()


def _for(code: Code, node: Any) -> Iterable[ast.AST]:
    """A loop that does nothing, unless what it ends with is read."""
    if is_single(code, node.iter):
        return [node, *walk(node.iter), *_breaks(node)]
    names = [name or "" for name in names_of(node.target)]
    body = [one for one in [*node.body, *node.orelse] if not isinstance(one, ast.Break)]
    empty = does_nothing(code, body) and not acts(code, node.iter)
    read = any(name == "" or _is_read_after(code, node, name) for name in names)
    return [node, *walk(node.iter), *_breaks(node)] if empty and not read else ()


def _is_read_after(code: Code, loop: Any, name: str) -> bool:
    """Whether a name is read behind a loop that gives it a value, before it gets another one."""
    if not is_read(code, loop, name) or any(isinstance(one, LOOPS) for one in code.ancestors(loop)):
        return is_read(code, loop, name)
    uses = [one for one in code.find(ast.Name) if one.id == name and one.lineno > (loop.end_lineno or 0)]
    return bool(uses) and isinstance(min(uses, key=lambda one: one.lineno).ctx, ast.Load)


def _comprehension(code: Code, node: Any) -> Iterable[ast.AST]:
    """A comprehension over a single value: `[x * x for _ in range(1)]`."""
    return [node] if len(node.generators) == 1 and is_single(code, node.generators[0].iter) else ()


def _breaks(loop: ast.AST) -> Iterable[ast.AST]:
    return (each for each in own_nodes(loop) if isinstance(each, ast.Break))


def _while(code: Code, node: ast.While) -> Iterable[ast.AST]:
    """A loop that does nothing, or `while True` around what is run once and then left."""
    last = node.body[-1]
    if isinstance(last, ast.If) and settled(last.test):
        last = last.body[-1]
    body = [one for one in [*node.body, *node.orelse] if not isinstance(one, ast.Break)]
    if does_nothing(code, body) and not acts(code, node.test):
        return [node, *_breaks(node)]
    if not isinstance(node.test, ast.Constant) or not isinstance(last, ast.Return | ast.Raise | ast.Break):
        return ()
    again = any(isinstance(each, ast.Continue) for each in own_nodes(node))
    return () if again else [node, last]


def _if(code: Code, node: ast.If) -> Iterable[ast.AST]:
    """An `if` that does nothing, does the same either way, or whose condition is settled."""
    if isinstance(node.test, ast.Constant) or _is_nothing(code, node):
        return walk(node)
    if settled(node.test) is not None:
        return [node, *walk(node.test)]
    if acts(code, node.test):
        return ()
    other = node.orelse or (_after(code, node) if isinstance(node.body[-1], ast.Return | ast.Raise) else [])
    return walk(node) if other and _same(node.body, other[: len(node.body)]) else ()


def _after(code: Code, node: ast.stmt) -> list[ast.stmt]:
    """The statements that follow in the block."""
    found = (block for block in blocks(code.parents[node]) if node in block)
    return next((block[block.index(node) + 1 :] for block in found), [])


def _same(one: list[ast.stmt], other: list[ast.stmt]) -> bool:
    return len(one) == len(other) and all(_dump(a) == _dump(b) for a, b in zip(one, other, strict=True))


def _match(code: Code, node: ast.Match) -> Iterable[ast.AST]:
    """A `match` whose cases do nothing, or whose one case takes anything."""
    first = node.cases[0]
    anything = isinstance(first.pattern, ast.MatchAs) and first.pattern.pattern is None and first.guard is None
    anything = anything or (len(node.cases) > 1 and all(_same(one.body, first.body) for one in node.cases))
    return [node] if anything or does_nothing(code, [one for case in node.cases for one in case.body]) else ()


def _ternary(code: Code, node: ast.IfExp) -> Iterable[ast.AST]:
    same = _dump(node.body) == _dump(node.orelse)
    return [node] if same or settled(node.test) is not None or always_true(code, node.test) else ()


def _walrus(code: Code, node: ast.NamedExpr) -> Iterable[ast.AST]:
    """A name that nothing reads, or that could be given by a plain assignment right there."""
    statement = next(one for one in code.ancestors(node) if isinstance(one, ast.stmt))
    plain = code.parents.get(node) is statement and isinstance(statement, ast.Expr)
    tests = isinstance(statement, ast.If | ast.While) and not isinstance(node.value, ast.Constant)
    unread = not tests and not is_read(code, statement, node.target.id)
    return [node, node.target] if plain or unread or _dump(node.target) == _dump(node.value) else ()


def _assert(code: Code, node: ast.Assert) -> Iterable[ast.AST]:
    return walk(node) if always_true(code, node.test) else ()


def _compare(code: Code, node: ast.Compare) -> Iterable[ast.AST]:
    """A membership test in a display of one value: an equality by another name."""
    inside, places = isinstance(node.ops[0], ast.In | ast.NotIn), node.comparators[0]
    single = isinstance(places, ast.List | ast.Tuple | ast.Set) and len(places.elts) == 1
    return [node] if inside and single else ()


def _bits(code: Code, node: Any) -> Iterable[ast.AST]:
    """An operation on bits that gives its operand back: `x | 0`, `x << 0`, `x & x`, `~~x`."""
    if isinstance(node, ast.UnaryOp):
        inner = node.operand if isinstance(node.op, ast.Invert) else None
        return [node, inner] if isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.Invert) else ()
    if not isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor | ast.LShift | ast.RShift):
        return ()
    left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
    same = isinstance(node.op, ast.BitAnd | ast.BitOr) and _dump(left) == _dump(right)
    zero = isinstance(node.op, ast.BitOr | ast.BitXor | ast.LShift | ast.RShift) and _dump(right) in ("0", "False")
    first = isinstance(node.op, ast.BitOr | ast.BitXor) and _dump(left) in ("0", "False")
    true = isinstance(left, ast.Compare | ast.BoolOp)
    ones = isinstance(node.op, ast.BitAnd) and (
        "-1" in (_dump(left), _dump(right)) or (true and _dump(right) == "True")
    )
    back = isinstance(node.op, ast.BitXor) and isinstance(left, ast.BinOp) and isinstance(left.op, ast.BitXor)
    back = back and isinstance(left, ast.BinOp) and _dump(left.right) == _dump(right)
    return [node] if same or zero or first or ones else [node, left] if back else ()


def _lambda(code: Code, node: ast.Lambda) -> Iterable[ast.AST]:
    """`lambda x: x`, `lambda x: f(x)`, and a key that is the same for all."""
    key = getattr(code.parents.get(node), "arg", None) == "key" and isinstance(node.body, ast.Constant)
    return [node] if key or _dump(node.args) == _dump(node.body) or _forwards(node) else ()


def _forwards(node: ast.Lambda) -> bool:
    """Whether a lambda only calls a function by its name with all that it is given, in that order."""
    call = node.body
    plain = not (node.args.defaults or node.args.kw_defaults) and _dump(node.args) != ""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or not plain:
        return False
    handed = ", ".join([*map(_dump, call.args), *(_dump(one) for one in call.keywords)])
    return handed == _dump(node.args) and call.func.id not in {
        one.arg for one in walk(node.args) if isinstance(one, ast.arg)
    }


def _call(code: Code, node: ast.Call) -> Iterable[ast.AST]:
    check = VAIN.get(code.called(node.func))
    return [node, *walk(node.func)] if check is not None and check(code, node) else ()


_CHECKS: dict[type[ast.AST], Callable[[Code, Any], Iterable[ast.AST]]] = {
    **dict.fromkeys(FUNCTIONS, _function), **dict.fromkeys((ast.With, ast.AsyncWith), _with),
    **dict.fromkeys((ast.Try, ast.TryStar), _try), **dict.fromkeys((ast.BinOp, ast.AugAssign, ast.UnaryOp), _bits),
    **dict.fromkeys(LOOPS, _for), ast.While: _while, ast.ClassDef: _class, ast.If: _if, ast.Match: _match,
    ast.IfExp: _ternary, ast.NamedExpr: _walrus, ast.Assert: _assert, ast.Compare: _compare, ast.Call: _call,
    ast.Lambda: _lambda, **dict.fromkeys(COMPREHENSIONS, _comprehension),
}  # fmt: skip
