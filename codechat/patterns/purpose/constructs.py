"""What a construct has to do to be what was asked for, where its form alone does not tell.

A lock that is made anew at each call locks nothing, an assertion about an argument checks no intermediate result, and a
cache of size 0 keeps nothing. Each check looks at one occurrence of one pattern.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from codechat.patterns.base import Occurrence
from codechat.patterns.finders.loops import turns_around
from codechat.patterns.finders.structures import asks, follows, is_called
from codechat.patterns.finders.usage import looks_at_work
from codechat.patterns.purpose.definitions import CHECKS, Check, is_unread
from codechat.patterns.purpose.libraries import USES
from codechat.patterns.purpose.turned import lasts, stay_whole, tells_apart
from codechat.patterns.reading.code import Code
from codechat.patterns.reading.tree import FUNCTIONS, LOOPS, blocks, own_nodes, walk
from codechat.patterns.substance.carrying import is_identity
from codechat.patterns.substance.hollow import does_nothing


def serves(name: str, code: Code, one: Occurrence, options: Mapping[str, Any]) -> bool:
    """Whether an occurrence of a pattern does what such a thing is for."""
    checks = [table[name] for table in (_CHECKS, CHECKS, _WHOLE) if name in table] if one.node is not None else []
    return all(check(code, one, options) for check in checks)


def _selects(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether a comprehension does more than to copy, and more than to call a method that fills something."""
    node = one.node
    if not isinstance(node, ast.ListComp | ast.GeneratorExp):
        return True
    first = node.generators[0]
    conditions = [test for test in first.ifs if not isinstance(test, ast.Constant)]
    copies = len(node.generators) == 1 and not conditions and ast.unparse(node.elt) == ast.unparse(first.target)
    return not (copies or is_identity(node) or isinstance(code.parents.get(node), ast.Expr))


def _checks_work(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    node = one.node
    if not isinstance(node, ast.Assert):
        return True
    inside = code.function_of(node) is not None
    return inside and not _is_just_set(code, node) and looks_at_work(code, node, node.test)


def _is_just_set(code: Code, node: ast.Assert) -> bool:
    """Whether an assertion compares a variable with what the statement before gives it."""
    block = next((one for one in blocks(code.parents[node]) if node in one), [node])
    place = block.index(node)
    before = block[place - 1] if place else None
    if not isinstance(before, ast.Assign) or not isinstance(
        before.value, ast.Constant | ast.List | ast.Dict | ast.Name
    ):
        return False
    return ast.unparse(node.test) in [f"{ast.unparse(one)} == {ast.unparse(before.value)}" for one in before.targets]


def _does_work(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether a `try` holds a computation, not just an assignment of what is there."""
    kinds = (ast.Call, ast.BinOp, ast.AugAssign, ast.Subscript, ast.Compare, ast.Raise, ast.Await, *LOOPS)
    body = getattr(one.node, "body", [])
    return any(isinstance(each, kinds) for statement in body for each in walk(statement))


def _yields_each(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether a generator function may yield more than one value."""
    yields = [each for each in own_nodes(one.node or ast.Pass()) if isinstance(each, ast.Yield | ast.YieldFrom)]
    alone = yields[0] if len(yields) == 1 else None
    return not isinstance(alone, ast.Yield) or any(isinstance(each, LOOPS) for each in code.ancestors(alone))


def _runs_backward(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether what is turned around is not turned around once more, right there."""
    node = one.node
    if isinstance(node, ast.Slice):
        node = code.parents[node]
    inner = node.args[:1] if isinstance(node, ast.Call) else [node.value] if isinstance(node, ast.Subscript) else []
    around = code.parents.get(node) if node is not None else None
    held = node
    while isinstance(around, ast.Call) and code.origin(around.func) in ("list", "tuple"):
        held, around = around, code.parents.get(around)
    outer = turns_around(code, around) if isinstance(around, ast.Call) else False
    outer = outer or (isinstance(around, ast.Subscript) and around.value is held and turns_around(code, around.slice))
    return not outer and not any(_turned(code, each) for each in inner)


def _turned(code: Code, node: ast.expr) -> bool:
    while isinstance(node, ast.Call) and code.origin(node.func) in ("list", "tuple") and node.args:
        node = node.args[0]
    return turns_around(code, node.slice if isinstance(node, ast.Subscript) else node)


def _counts_calls(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether a counter is raised once at each call: in no branch and no loop, before the function can be left."""
    node = one.node
    function = code.function_of(node) if node is not None else None
    if node is None or function is None:
        return True
    inner = node
    for above in code.ancestors(node):
        if above is function:
            break
        if isinstance(above, (ast.If, ast.Match, ast.ExceptHandler, *LOOPS)):
            return False
        if isinstance(above, ast.Try) and inner in above.finalbody:
            return True
        inner = above
    lines = [each.lineno for each in own_nodes(function) if isinstance(each, ast.Return)]
    return all(line >= getattr(node, "lineno", 0) for line in lines)


def _chooses(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether a table is looked up by a key that is not the same at each call."""
    node = one.node
    key = node.slice if isinstance(node, ast.Subscript) else node.args[0] if isinstance(node, ast.Call) else None
    return not isinstance(key, ast.Constant)


def _is_kept(code: Code, one: Occurrence, options: Mapping[str, Any]) -> bool:
    """Whether a tuple is one, not just the two sides of an assignment to several variables."""
    above = code.parents.get(one.node) if one.node is not None else None
    targets = above.targets if options["kind"] == "tuple" and isinstance(above, ast.Assign) else []
    return not any(isinstance(target, ast.Tuple | ast.List) for target in targets)


def _is_used(code: Code, one: Occurrence, options: Mapping[str, Any]) -> bool:
    for name, check in USES.items():
        if name in options["names"] and isinstance(one.node, ast.expr) and not check(code, one.node):
            return False
    return True


def _is_looked_for(code: Code, node: ast.expr) -> bool:
    """Whether what `object()` makes is compared with anything, or tells `iter` where to end."""
    above = code.parents.get(node)
    if isinstance(above, ast.Call) and code.origin(above.func) == "iter":
        return True
    targets = above.targets if isinstance(above, ast.Assign) else [getattr(above, "target", None)]
    names = {getattr(one, "id", getattr(one, "attr", "")) for one in targets}
    return not names - {""} or any(names & compared for compared in _compared(code))


def _compared(code: Code) -> Iterator[set[str]]:
    for node in code.find(ast.Compare, ast.Call, ast.match_case):
        if isinstance(node, ast.Compare) and any(
            isinstance(one, ast.Constant) for one in (node.left, *node.comparators)
        ):
            continue
        if not isinstance(node, ast.Call) or code.origin(node.func) == "iter":
            inside = [each for each in walk(node) if isinstance(each, ast.Name | ast.Attribute)]
            yield {each.id if isinstance(each, ast.Name) else each.attr for each in inside}


def _is_called(code: Code, one: Occurrence, options: Mapping[str, Any]) -> bool:
    """Whether a call does what is asked of it, where its name alone does not tell."""
    node, names = one.node, options["names"]
    if not isinstance(node, ast.Call):
        return True
    if names == ["next"]:
        value = node.args[0] if node.args else None
        value = code.values.get(value.id) if isinstance(value, ast.Name) else value
        return not isinstance(value, ast.GeneratorExp) and not is_unread(code, node)
    if names == ["object"]:
        return _is_looked_for(code, node)
    if "logging.debug" in names:
        base = node.func.value if isinstance(node.func, ast.Attribute) else None
        made = code.values.get(base.id) if isinstance(base, ast.Name) else base
        maker = made.func if isinstance(made, ast.Call) else None
        if isinstance(maker, ast.Name) and any(each.name == maker.id for each in code.find(ast.ClassDef)):
            return False
        values = [*node.args, *(one.value for one in node.keywords)]
        return any(looks_at_work(code, node, value, calls=True) for value in values)
    return True


def _decorates(code: Code, one: Occurrence, options: Mapping[str, Any]) -> bool:
    """Whether a decorated method is read, and a cache keeps anything."""
    node = one.node
    heads = node.decorator_list if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else []
    for head in heads:
        size = [ast.unparse(each) for each in walk(head) if isinstance(each, ast.Constant)]
        if code.called(getattr(head, "func", head)) == "functools.lru_cache" and size == ["0"]:
            return False
    return is_called(code, one, options)


def _calls_entries(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether a table of functions is more than measured or asked for its keys."""
    above = code.parents.get(one.node) if one.node is not None else None
    targets = above.targets if isinstance(above, ast.Assign) else [getattr(above, "target", None)]
    names = {getattr(target, "id", getattr(target, "attr", "")) for target in targets} - {""}
    reads = [each for each in code.find(ast.Name, ast.Attribute) if isinstance(each.ctx, ast.Load)]
    held = [each for each in reads if getattr(each, "id", getattr(each, "attr", "")) in names]
    decided = any(code.find(ast.If, ast.IfExp, ast.Match))
    if decided and names and held and all(_is_settled_read(code, base) for base in held):
        return False
    for base in held if names else [one.node]:
        around = code.parents.get(base) if base is not None else None
        measured = isinstance(around, ast.Call) and code.origin(around.func) in ("len", "list", "sorted", "bool")
        if not measured and not isinstance(around, ast.Compare):
            return True
    return False


def _is_settled_read(code: Code, base: ast.AST) -> bool:
    """Whether an entry is taken by a literal key, the same at each call."""
    above = code.parents.get(base)
    return isinstance(above, ast.Subscript) and above.value is base and isinstance(above.slice, ast.Constant)


def _is_no_method(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    return not isinstance(code.parents.get(one.node), ast.ClassDef) if one.node is not None else True


def _comes_early(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether a guard leaves before the function's work is done: more than a return follows, or no loop came before."""
    function = code.function_of(one.node) if one.node is not None else None
    if function is None or one.node not in function.body:
        return True
    place = function.body.index(one.node)
    worked = any(isinstance(each, LOOPS) for each in function.body[:place])
    return not worked or len(function.body) - place > 2 or not isinstance(function.body[-1], ast.Return)


def _has_else(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    return not does_nothing(code, getattr(one.node, "orelse", []))


def _is_asked(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether anything reads what a stack holds: what it pops, its last entry, or whether it is empty."""
    name = one.what.strip("'")
    for node in code.find(ast.Name, ast.Attribute):
        if ast.unparse(node) == name and isinstance(node.ctx, ast.Load):
            above = code.parents[node]
            call = code.parents.get(above) if isinstance(above, ast.Attribute) else None
            changes = isinstance(above, ast.Attribute) and above.attr in ("append", "pop", "extend", "clear")
            if not changes or (getattr(above, "attr", "") == "pop" and not isinstance(_around(code, call), ast.Expr)):
                return True
    return not name.isidentifier()


def _around(code: Code, node: ast.AST | None) -> ast.AST | None:
    return code.parents.get(node) if node is not None else None


_WHOLE: dict[str, Check] = {
    "collection": lasts,
    "use": lasts,
    "decorated": stay_whole,
    "subclass": lambda *given: stay_whole(*given) and tells_apart(*given),
}
_CHECKS: dict[str, Check] = {
    "module_cache": asks, "node_class": follows, "decorated": _decorates, "dispatch_table": _calls_entries,
    "loop_else": _has_else, "nested_function": _is_no_method, "guard": _comes_early, "list_comprehension": _selects,
    "generator_expression": _selects, "assert": _checks_work, "try": _does_work, "generator_function": _yields_each,
    "backward_iteration": _runs_backward, "global_counter": _counts_calls, "table_lookup": _chooses,
    "stack": _is_asked, "collection": _is_kept, "use": _is_used, "call": _is_called,
}  # fmt: skip
