"""What functions, classes and variables that were added have to do to be what was asked for.

A decorator that gives its function back decorates nothing, a tuple of variables that nothing reads unpacks nothing, a
stack whose top is taken off as soon as it is put there holds nothing.
"""

import ast
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from codechat.languages.python.syntax import parameters
from codechat.patterns.base import Occurrence
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
from codechat.patterns.substance.carrying import hands_back
from codechat.patterns.substance.dead import settled
from codechat.patterns.substance.hollow import does_no_work
from codechat.patterns.substance.idle import is_overwritten, is_read, names_of

Check = Callable[[Code, Occurrence, Mapping[str, Any]], bool]


def _function(code: Code, name: str) -> Function | None:
    return next((one for one in code.functions if one.name == name), None)


def _works(code: Code, one: Occurrence, options: Mapping[str, Any]) -> bool:
    """Whether what is decorated does something of its own, and so does a decorator of the program's."""
    node = one.node
    if isinstance(node, ast.Call):
        value = node.args[0] if node.args else None
        return not isinstance(value, ast.Lambda) or not hands_back(code, value)
    if not isinstance(node, FUNCTIONS):
        return True
    if options.get("own"):
        heads = [ast.unparse(getattr(each, "func", each)) for each in node.decorator_list]
        heads += [
            ast.unparse(call.func) for call in code.find(ast.Call) if [*map(ast.unparse, call.args)] == [node.name]
        ]
        makers = [found for head in heads if (found := _function(code, head))]
        vain = [hands_back(code, maker) or only_wraps(code, maker) for maker in makers]
        return _is_main(code, node, heads) and not (makers and all(vain))
    cached = any(name.endswith("cache") for name in options.get("by") or ())
    return not hands_back(code, node) and (not cached or (_is_asked(code, node) and _outlives(code, node)))


def _outlives(code: Code, function: Function) -> bool:
    """Whether a cache is asked more than once: it is not made anew for a single call."""
    if code.function_of(function) is None:
        return True
    names = [one for one in code.find(ast.Name) if one.id == function.name and isinstance(one.ctx, ast.Load)]
    around = [{*code.ancestors(one)} for one in names]
    return any(function in each or any(isinstance(one, _REPEATING) for one in each) for each in around) or any(
        not isinstance(code.parents[one], ast.Call) or getattr(code.parents[one], "func", None) is not one
        for one in names
    )


_REPEATING = (*LOOPS, *COMPREHENSIONS, ast.Lambda)


def only_wraps(code: Code, maker: Function) -> bool:
    """Whether a decorator's function does nothing but call what it decorates, with what it is given."""
    inner = [one for one in maker.body if isinstance(one, FUNCTIONS)]
    taken = [one.arg for one in parameters(maker)]
    rest = [one for one in body_without_docstring(maker) if one not in inner]
    if len(inner) != 1 or len(taken) != 1 or [*map(type, rest)] != [ast.Return]:
        return False
    texts = [ast.unparse(one) for one in body_without_docstring(inner[0])]
    given = inner[0].args
    handed = [one.arg for one in (*given.posonlyargs, *given.args)]
    handed += [f"*{given.vararg.arg}"] if given.vararg else []
    handed += [f"{one.arg}={one.arg}" for one in given.kwonlyargs] + ([f"**{given.kwarg.arg}"] if given.kwarg else [])
    call = f"{taken[0]}({', '.join(handed)})"
    named = re.fullmatch(rf"(\w+) = {re.escape(call)}", texts[0]) if len(texts) == 2 else None
    return texts == [f"return {call}"] or (named is not None and texts[1] == f"return {named[1]}")


def _is_asked(code: Code, function: Function) -> bool:
    """Whether a cached function's name is read for more than to look at or clear its cache."""
    reads = [one for one in code.find(ast.Name) if one.id == function.name and isinstance(one.ctx, ast.Load)]
    told = [getattr(code.parents[one], "attr", "").startswith("cache_") for one in reads]
    return not told or not all(told)


def _is_main(code: Code, function: Function, decorators: list[str]) -> bool:
    """Whether no other function of the program calls it, decorators aside."""
    for name in code.find(ast.Name):
        if name.id == function.name and isinstance(name.ctx, ast.Load):
            around = [one for one in code.ancestors(name) if isinstance(one, FUNCTIONS)]
            if around and function not in around and around[-1].name not in decorators:
                return False
    return True


def _keeps_more(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether the function that a closure returns computes anything."""
    value = one.node.value if isinstance(one.node, ast.Return) else None
    inner = _function(code, value.id) if isinstance(value, ast.Name) else value
    return not isinstance(inner, (*FUNCTIONS, ast.Lambda)) or not hands_back(code, inner)


def _is_delegated_to(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether anything outside a class calls one of its working methods, or reads what making an object computes."""
    node = one.node
    if not isinstance(node, ast.ClassDef):
        return True
    names = {
        method.name for method in node.body
        if isinstance(method, FUNCTIONS) and not does_no_work(code, method) and not _only_forwards(code, method)
    }  # fmt: skip
    names.update(name for each in node.body if isinstance(each, ast.Assign) for name in map(ast.unparse, each.targets))
    if any(name.startswith("__") and name not in ("__init__", "__new__") for name in names):
        return True
    if "__new__" in names and any(_gives_result(method) for method in node.body if isinstance(method, FUNCTIONS)):
        return True
    attributes = [each for each in code.find(ast.Attribute) if isinstance(each.ctx, ast.Load)]
    outside = [each for each in attributes if node not in code.ancestors(each)]
    return any(each.attr in names for each in outside) or ("__init__" in names and bool(outside))


def _only_forwards(code: Code, method: Function) -> bool:
    """Whether a method only calls a function of the program, no method of another class, with what it is given."""
    body = body_without_docstring(method)
    call = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return | ast.Expr) else None
    head = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
    known = any(one.name == head and isinstance(code.parents.get(one), ast.Module) for one in code.functions)
    taken = [one.arg for one in parameters(method) if one.arg not in ("self", "cls")]
    handed = [*map(ast.unparse, call.args)] if isinstance(call, ast.Call) else []
    kept = [f"self.{text.removeprefix('self.')}" for text in handed]
    return known and bool(handed) and (handed in (taken, kept))


def _gives_result(method: Function) -> bool:
    """Whether making an object computes what is given in place of one."""
    returns = [each.value for each in own_nodes(method) if isinstance(each, ast.Return)]
    return method.name == "__new__" and any(
        one is not None and "__new__" not in ast.unparse(one) and not isinstance(one, ast.Name) for one in returns
    )


def _is_derived_for_use(code: Code, one: Occurrence, options: Mapping[str, Any]) -> bool:
    """Whether a method of a class that is derived from an abstract one is called."""
    if not options.get("derived") or not isinstance(one.node, ast.ClassDef):
        return True
    name = one.node.name
    derived = [each for each in code.find(ast.ClassDef) if name in map(ast.unparse, each.bases)]
    methods = {each.name for known in derived for each in known.body if isinstance(each, FUNCTIONS)} - {"__init__"}
    if any(name.startswith("__") for name in methods):
        return True
    used = {each.attr for each in code.find(ast.Attribute) if isinstance(each.ctx, ast.Load)}
    return bool(methods & used)


def _unpacks(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether at least two of the variables that get values at once are read, or are no plain variables."""
    if not isinstance(one.node, ast.Assign):
        return True
    for target in one.node.targets:
        names = [*names_of(target)]
        live = [name for name in names if name is None or _is_live(code, one.node, name)]
        if len(names) > 1 and len(live) > 1:
            return True
        if len(names) > 1 and live and any(isinstance(each, ast.Starred) for each in walk(target)):
            return True
    return False


def _is_live(code: Code, statement: ast.stmt, name: str) -> bool:
    return is_read(code, statement, name) and not is_overwritten(code, statement, name)


def _spreads(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether a star does more than to copy a collection, and gets what is read."""
    node = one.node
    above = code.parents.get(node) if node is not None else None
    if isinstance(above, ast.List | ast.Tuple | ast.Set) and isinstance(
        above.ctx if hasattr(above, "ctx") else None, ast.Store
    ):
        statement = next(each for each in code.ancestors(above) if isinstance(each, ast.stmt))
        return any(name is None or _is_live(code, statement, name) for name in names_of(above))
    alone = isinstance(above, ast.List | ast.Tuple | ast.Set) and len(above.elts) == 1
    return not (alone and isinstance(getattr(node, "value", None), ast.Name | ast.Attribute | ast.Subscript))


def _holds_values(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether what is put on a stack is not taken off by the next statement, unseen or as it was put there."""
    name = one.what.strip("'")
    for owner in code.nodes:
        for block in blocks(owner):
            texts = [ast.unparse(each) for each in block if not hasattr(each, "body")]
            pairs = pairwise(texts)
            for text, after in pairs:
                if text.startswith(f"{name}.append(") and re.search(rf"(= |, ){re.escape(name)}\.pop\(\)\)?$", after):
                    return False
    return True


def _ends(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether an endless loop has an exit of its own, or an exception that is caught around it."""
    inside = [*own_nodes(one.node)] if one.node is not None else []
    leaves = any(isinstance(each, ast.Break | ast.Return | ast.Raise) for each in inside)
    return leaves or any(isinstance(each, ast.Try) for each in code.ancestors(one.node or ast.Pass()))


def _follows_work(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether a `finally` comes after a computation, not after an assignment of what is there."""
    above = code.parents.get(one.node) if one.node is not None else None
    kinds = (ast.Call, ast.BinOp, ast.AugAssign, ast.Subscript, ast.Compare, ast.Raise, ast.Await, *LOOPS)
    return not isinstance(above, ast.Try) or any(isinstance(each, kinds) for part in above.body for each in walk(part))


def _counts_up(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether nothing else in the function gives the counter another value."""
    function = code.function_of(one.node) if one.node is not None else None
    target = getattr(one.node, "target", None) or next(iter(getattr(one.node, "targets", [])), None)
    if function is None or target is None:
        return True
    text = ast.unparse(target)
    others = [
        each for each in own_nodes(function) if isinstance(each, ast.Assign | ast.AugAssign) and each is not one.node
    ]
    stores = [part for each in others for part in (each.targets if isinstance(each, ast.Assign) else [each.target])]
    return text not in map(ast.unparse, stores)


def _chooses_branch(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether what a conditional, guard or break depends on is not settled."""
    above = code.parents.get(one.node) if one.node is not None else None
    return not isinstance(above, ast.If) or settled(above.test) is None


def is_unread(code: Code, call: ast.Call) -> bool:
    """Whether nothing reads what `next(...)` gives, and nothing else takes from its iterator."""
    value = call.args[0] if call.args else None
    above = code.parents.get(call)
    if not isinstance(value, ast.Name) or not isinstance(above, ast.Assign | ast.Expr):
        return False
    loads = [one for one in code.find(ast.Name) if one.id == value.id and isinstance(one.ctx, ast.Load)]
    names = [name for target in getattr(above, "targets", []) for name in names_of(target)]
    return len(loads) == 1 and not any(name is None or is_read(code, above, name) for name in names)


def has_value(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    """Whether a variable such as `__version__` gets more than an empty value, and `__all__` a name that there is."""
    value = getattr(one.node, "value", None)
    texts = [each.value for each in walk(value) if isinstance(each, ast.Constant)] if value is not None else []
    if "__all__" in one.what and texts and code.tree is not None:
        bound = {getattr(each, "name", "") for each in code.tree.body} | {*code.values}
        return any(text in bound for text in texts)
    if texts and all(isinstance(text, str) and not text.strip() for text in texts) and isinstance(value, ast.Constant):
        return False
    return value is not None and ast.unparse(value) not in ("None", "''", "[]", "()", "set()", "list()", "{}")


CHECKS: dict[str, Check] = {
    "assignment_to": has_value,
    "decorated": _works, "closure": _keeps_more, "working_class": _is_delegated_to, "subclass": _is_derived_for_use,
    "tuple_assignment": _unpacks, "starred": _spreads, "stack": _holds_values, "endless_loop": _ends,
    "finally": _follows_work, "global_counter": _counts_up, "break": _chooses_branch,
}  # fmt: skip
"""Further checks of `codechat.patterns.purpose.constructs`, by the pattern's name."""
