"""What the use of a library's function or class has to do to be one, by its name.

A lock that is made anew at each call locks nothing, a `defaultdict` without a factory is a `dict`.
"""

import ast
from collections.abc import Callable

from codechat.languages.python.syntax import parameters
from codechat.patterns.reading.code import Code
from codechat.patterns.reading.tree import FUNCTIONS, Function, blocks, own_nodes, walk
from codechat.patterns.substance.hollow import does_nothing, hollow
from codechat.patterns.substance.idle import is_read, names_of


def _is_shared(code: Code, node: ast.expr) -> bool:
    """Whether a lock outlives the call that makes it, or is known to a function inside."""
    above = code.parents[node]
    function = code.function_of(node)
    if function is None or getattr(above, "func", None) is not node or node in walk(function.args):
        return True
    around = code.parents[above]
    while isinstance(around, ast.IfExp | ast.BoolOp):
        around = code.parents[around]
    if isinstance(around, ast.withitem | ast.Expr | ast.Attribute):
        return False
    if not isinstance(around, ast.Assign | ast.AnnAssign | ast.NamedExpr):
        return True
    targets = around.targets if isinstance(around, ast.Assign) else [around.target]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    shared = [each for each in own_nodes(function) if isinstance(each, ast.Global | ast.Nonlocal)]
    outer = len(names) < len(targets) or any(names & {*each.names} for each in shared)
    return outer or any(_handed_on(code, function, name) for name in names)


def _handed_on(code: Code, function: Function, name: str) -> bool:
    """Whether a local variable gets to anything beside its own function's statements."""
    for node in walk(function):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            above = code.parents[node]
            inner = next((one for one in code.ancestors(node) if isinstance(one, (*FUNCTIONS, ast.Lambda))), None)
            if inner is not function or not isinstance(above, ast.withitem | ast.Attribute):
                return True
    return False


def _copies_argument(code: Code, node: ast.expr) -> bool:
    """Whether what is copied is an argument, a part of one or something of an object's, no local of the function."""
    call = code.parents[node]
    given = call.args[0] if isinstance(call, ast.Call) and call.func is node and call.args else None
    if isinstance(given, ast.Name) and isinstance(code.parents.get(call), ast.Return):
        return False  # what is given away is no copy to work on
    value, seen = given, set[str]()
    while isinstance(value, ast.Name) and value.id in code.values and value.id not in seen:
        seen.add(value.id)
        value = code.values[value.id]
    made = (ast.Call, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.Constant, ast.BinOp, ast.ListComp, ast.DictComp)
    if isinstance(value, ast.Name) and not seen and _is_computed(code, node, value.id):
        return False
    return not isinstance(value, (*made, ast.SetComp)) or not seen


def _is_computed(code: Code, node: ast.AST, name: str) -> bool:
    """Whether a variable of the function, no parameter, gets nothing but new values."""
    function = code.function_of(node)
    if function is None or any(one.arg == name for one in parameters(function)):
        return False
    stores = [
        one for one in walk(function) if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)
    ]
    above = [code.parents[one] for one in stores]
    fresh = (ast.Constant, ast.BinOp, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.Call)
    return bool(above) and all(
        isinstance(one, ast.AugAssign) or (isinstance(one, ast.Assign) and isinstance(one.value, fresh))
        for one in above
    )


def _runs_in_debug(code: Code, node: ast.expr) -> bool:
    """Whether something that may complain depends on `__debug__`."""
    for above in code.ancestors(node):
        if isinstance(above, ast.BoolOp) and isinstance(above.op, ast.Or):
            return False
        if isinstance(above, ast.If):
            negated = isinstance(above.test, ast.UnaryOp) and isinstance(above.test.op, ast.Not)
            inside = (each for one in (above.orelse if negated else above.body) for each in walk(one))
            bare = [*map(ast.unparse, (above.test,))] in (["__debug__"], ["not __debug__"])
            return any(
                _complains(each) and each not in hollow(code) and not (bare and _only_prints(code, above, each))
                for each in inside
            )
        if isinstance(above, ast.stmt):
            return isinstance(above, ast.Assert)
    return False


def _only_prints(code: Code, test: ast.If, node: ast.AST) -> bool:
    """Whether a value is shown, whatever it is."""
    call = node.value if isinstance(node, ast.Expr) else None
    shown = isinstance(call, ast.Call) and code.called(call.func) in _SHOWING
    return shown and code.parents.get(node) is test


_SHOWING = ("print", "logging.debug", "logging.info", ".debug", ".info")


def _complains(node: ast.AST) -> bool:
    """An assertion, `raise`, or a call for its effect."""
    stated = node.value if isinstance(node, ast.Expr) else None
    return isinstance(node, ast.Assert | ast.Raise) or isinstance(stated, ast.Call)


def _measures_work(code: Code, node: ast.expr) -> bool:
    """Whether anything runs between the clock's readings of a function."""
    function = code.function_of(node)
    if function is None:
        return True
    names = [each for each in code.find(ast.Name, ast.Attribute) if code.origin(each) == "time.perf_counter"]
    if any(code.function_of(each) is not function for each in names) or len(names) < 2:
        return True
    clocks = {next(above for above in code.ancestors(each) if isinstance(above, ast.stmt)) for each in names}
    if all(isinstance(each, ast.Assign) and each.value in _unread_clocks(code, each) for each in clocks):
        return False
    lines = [each.lineno for each in clocks]
    between = [
        each for each in own_nodes(function)
        if isinstance(each, ast.stmt) and each not in clocks and min(lines) < each.lineno <= max(lines)
    ]  # fmt: skip
    return len(lines) < 2 or not does_nothing(code, between)


def _unread_clocks(code: Code, statement: ast.Assign) -> list[ast.expr]:
    """The reading of a clock that an assignment keeps, if nothing reads it."""
    names = [name for target in statement.targets for name in names_of(target)]
    unread = isinstance(statement.value, ast.Call) and not any(
        name is None or is_read(code, statement, name) for name in names
    )
    return [statement.value] if unread else []


def keeps_section(code: Code, node: ast.expr) -> bool:
    """Whether a lock is held while something is done: in a `with`, or from `acquire` to `release`."""
    above = code.parents.get(code.parents[node])
    name = above.targets[0] if isinstance(above, ast.Assign) else None
    if isinstance(name, ast.Attribute):
        return any(one.attr == name.attr and isinstance(one.ctx, ast.Load) for one in code.find(ast.Attribute))
    if not isinstance(name, ast.Name):
        return True
    loads = [one for one in code.find(ast.Name) if one.id == name.id and isinstance(one.ctx, ast.Load)]
    for load in loads:
        around = code.parents[load]
        if not isinstance(around, ast.Attribute) or around.attr not in ("locked", "acquire", "release", "__enter__"):
            return True
        if around.attr in ("acquire", "__enter__") and _goes_on(code, load, name.id):
            return True
    return False


def _goes_on(code: Code, load: ast.Name, name: str) -> bool:
    """Whether something stands between taking a lock and giving it back."""
    statement = next(each for each in code.ancestors(load) if isinstance(each, ast.stmt))
    block = next((one for one in blocks(code.parents[statement]) if statement in one), [statement])
    after = block[block.index(statement) + 1 :]
    until = [place for place, each in enumerate(after) if ast.unparse(each).startswith(f"{name}.release")]
    return not after or not until or not does_nothing(code, after[: until[0]])


def makes_missing(code: Code, node: ast.expr) -> bool:
    """Whether a `defaultdict` has a factory, and missing keys are not asked for by `get`."""
    call = code.parents[node]
    if not isinstance(call, ast.Call) or call.func is not node:
        return True
    if not call.args or ast.unparse(call.args[0]) == "None":
        return False
    above = code.parents.get(call)
    targets = above.targets if isinstance(above, ast.Assign) else [getattr(above, "target", None)]
    for name in {one.id for one in targets if isinstance(one, ast.Name)}:
        for each in code.find(ast.Assign):
            text = ast.unparse(each.value)
            stored = any(ast.unparse(one).startswith(f"{name}[") for one in each.targets)
            if stored and (f"{name}.get(" in text or f"{name}.setdefault(" in text):
                return False
        if _is_guarded(code, name):
            return False
    return True


def counts_missing(code: Code, node: ast.expr) -> bool:
    """Whether an empty `Counter` is used as one: missing keys count as 0, nobody puts them in by hand."""
    call = code.parents[node]
    above = code.parents.get(call)
    if not isinstance(call, ast.Call) or call.func is not node or call.args or call.keywords:
        return True
    targets = above.targets if isinstance(above, ast.Assign) else [getattr(above, "target", None)]
    return not any(_is_guarded(code, one.id) for one in targets if isinstance(one, ast.Name))


def _is_guarded(code: Code, name: str) -> bool:
    """Whether the program puts missing keys into a dictionary by hand: `if k not in d: d[k] = []`, `setdefault`."""
    for node in code.find(ast.If):
        inside = f"not in {name}" not in ast.unparse(node.test)
        block = node.orelse if inside else node.body
        stores = [ast.unparse(part) for each in block if isinstance(each, ast.Assign) for part in each.targets]
        if f" in {name}" in ast.unparse(node.test) and any(text.startswith(f"{name}[") for text in stores):
            return True
    set_by = [one for one in code.find(ast.Attribute) if one.attr == "setdefault" and ast.unparse(one.value) == name]
    return bool(set_by)


def is_kept(code: Code, node: ast.expr) -> bool:
    """Whether a function that changes a list gets one that has a name."""
    call = code.parents[node]
    origin = code.origin(node)
    if not isinstance(call, ast.Call) or call.func is not node or origin not in _CHANGING or not call.args:
        return True
    if origin.startswith("heapq.") and not _is_taken_from(code, ast.unparse(call.args[0])):
        return False
    return not isinstance(call.args[0], ast.Call | ast.List | ast.ListComp)


def _is_taken_from(code: Code, heap: str) -> bool:
    """Whether the order of a heap, which nothing sorts, is read: by a function of heapq or as its first item."""
    if any(ast.unparse(one.func) == f"{heap}.sort" for one in code.find(ast.Call)):
        return False
    taking = {ast.unparse(one.args[0]) for one in code.find(ast.Call) if one.args and code.called(one.func) in _TAKING}
    first = (one for one in code.find(ast.Subscript) if ast.unparse(one.slice) == "0")
    names = {*taking, *(ast.unparse(one.value) for one in first)}
    made = {name: ast.unparse(value) for name, value in code.values.items()}
    return heap in names or any(made.get(name) == heap for name in names) or "." in heap or bool(taking)


_TAKING = {
    "heapq.heappop", "heapq.heappushpop", "heapq.heapreplace", "heapq.nsmallest", "heapq.nlargest", "heapq.merge",
}  # fmt: skip
_CHANGING = {"heapq.heapify", "heapq.heappush", "bisect.insort", "bisect.insort_left", "bisect.insort_right"}


def is_only_walked(code: Code, node: ast.expr) -> bool:
    """Whether a `deque` of what is there is made right where a loop walks through it."""
    call = code.parents[node]
    above = code.parents.get(call)
    walked = isinstance(above, ast.For | ast.comprehension) and above.iter is call
    shown = isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.List | ast.ListComp | ast.Tuple)
    return walked and not shown


USES: dict[str, Callable[[Code, ast.expr], bool]] = {
    "threading.Lock": lambda code, node: _is_shared(code, node) and keeps_section(code, node),
    "collections.Counter": counts_missing,
    "collections.defaultdict": makes_missing, "collections.deque": lambda code, node: not is_only_walked(code, node),
 "copy.copy": _copies_argument, "__debug__": _runs_in_debug,
    "time.perf_counter": _measures_work, "heapq.*": is_kept, "bisect.*": is_kept,
}  # fmt: skip
