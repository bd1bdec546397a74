"""What only carries a value: it is built around one value, which is taken out again unchanged.

`Counter({"result": total})["result"]` is no use of `Counter`, nor is `deque([v]).popleft()`, `Node(v).value` or
`(lambda: v)()`; neither is the same through a variable: `stack = []`, `stack.append(v)`, `return stack.pop()`. One
mechanism finds them all. It asks of an expression what it *holds*, if it makes a holder of a single value, and what it
*gives*, if it takes a value out of such a holder or calls something that computes nothing. What lies between the
expression and the value that it gives has done nothing.

A holder that gets a second value, is walked through, measured, passed on or returned does something, and so does a
function that computes: both are left alone, and so is whatever cannot be told by reading.
"""

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

from codechat.languages.python.syntax import parameters
from codechat.patterns.code import Code
from codechat.patterns.keeping import computes_nothing, is_identity, keeps_only
from codechat.patterns.tree import COMPREHENSIONS, FUNCTIONS, LOOPS, Function, walk

Given: TypeAlias = tuple[ast.expr, ...] | None
"""The values that an expression gives back unchanged; None if it does something."""
Scoped: TypeAlias = tuple[Function | None, str]

_COPIERS = {
    "list", "tuple", "set", "frozenset", "dict", "iter", "reversed", "sorted", "collections.deque",
    "collections.Counter", "collections.OrderedDict", "collections.defaultdict", "itertools.chain",
}  # fmt: skip
_WRAPPERS = {"io.StringIO", "io.BytesIO", "types.SimpleNamespace", "itertools.repeat", "dict"}
_OPTIONS = {"key", "reverse", "maxlen"}
_PUTS = {"append", "appendleft", "add", "insert", "write", "put", "push"}
_PUT_FUNCTIONS = {"heapq.heappush", "bisect.insort", "bisect.insort_left", "bisect.insort_right"}
_TAKES = {"pop", "popleft", "get", "getvalue", "read", "join", "__next__", "__getitem__"}
_TAKE_FUNCTIONS = {"next", "any", "all", "sum", "min", "max", "heapq.heappop", "functools.reduce"}


def carriers(code: Code) -> frozenset[ast.AST]:
    """The nodes that only carry a value, without those of the value; definitions that nothing else names."""
    if carriers not in code.found:
        code.found[carriers] = frozenset(_Reader(code).carriers())
    found: frozenset[ast.AST] = code.found[carriers]
    return found


class _Reader:
    """One program, read for what its expressions hold and give."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.known: dict[Scoped, ast.expr | None] = {}
        self.given: dict[ast.expr, Given] = {}

    @cached_property
    def bound(self) -> dict[Scoped, ast.expr | None]:
        """The value of every name that its function binds once, by a plain assignment; None for the others."""
        found: dict[Scoped, ast.expr | None] = {}
        for node in self.code.find(ast.Name, ast.arg):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                continue
            key = self.code.function_of(node), node.id if isinstance(node, ast.Name) else node.arg
            above = self.code.parents.get(node)
            plain = isinstance(above, ast.Assign) or (isinstance(above, ast.AnnAssign) and above.target is node)
            value = getattr(above, "value", None) if plain and key not in found else None
            found[key] = value if isinstance(value, ast.expr) else None
        return found

    @cached_property
    def loads(self) -> dict[str, list[ast.Name]]:
        found: dict[str, list[ast.Name]] = {}
        for node in self.code.find(ast.Name):
            if isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).append(node)
        return found

    @cached_property
    def functions(self) -> dict[str, Function]:
        """The functions outside classes, if no other has the name."""
        names = [one.name for one in self.code.functions]
        plain = [one for one in self.code.functions if not isinstance(self.code.parents.get(one), ast.ClassDef)]
        return {one.name: one for one in plain if names.count(one.name) == 1}

    def _function(self, called: ast.expr) -> Function | None:
        """The function of the program that a name stands for, if no variable around it has the name."""
        name = called.id if isinstance(called, ast.Name) else ""
        above = [one for one in self.code.ancestors(called) if isinstance(one, FUNCTIONS)]
        hidden = any((scope, name) in self.bound for scope in (*above, None))
        return None if hidden else self.functions.get(name)

    @cached_property
    def classes(self) -> set[str]:
        return {one.name for one in self.code.find(ast.ClassDef) if keeps_only(self.code, one)}

    def carriers(self) -> Iterator[ast.AST]:
        """Expressions that carry, then the variables and definitions that serve them alone."""
        found: set[ast.AST] = set()
        for node in self.code.find(ast.expr):
            given = self.gives(node)
            if given is not None:
                found.update(_between(node, given))
        for (scope, name), value in self.bound.items():
            if value is None:
                continue
            loads = [one for one in self.loads.get(name, ()) if self.code.function_of(one) is scope]
            if self._kept((scope, name)) is not None:
                found.update(node for load in loads for node in _between(*(self._put(load) or (None, ()))))
                found.update(_between(value, self.holds(value) or ()))
            elif isinstance(value, ast.Lambda) and loads and all(one in found for one in loads):
                found.update(walk(value))
        yield from found
        for definition in self.code.find(*FUNCTIONS, ast.ClassDef):
            named = [one for one in self.loads.get(definition.name, ()) if definition not in self.code.ancestors(one)]
            if named and all(one in found for one in named):
                yield from walk(definition)

    # -- holders ---------------------------------------------------------------------------------------------------

    def holds(self, node: ast.expr) -> Given:
        """The single value in a holder that the expression makes or names."""
        if isinstance(node, ast.List | ast.Tuple | ast.Set) and len(node.elts) == 1:
            item = node.elts[0]
            return self.holds(item.value) if isinstance(item, ast.Starred) else (item,)
        if isinstance(node, ast.Dict) and len(node.keys) == 1 and node.keys[0] is not None:
            return (node.values[0],)
        if isinstance(node, COMPREHENSIONS) and is_identity(node):
            return self.holds(node.generators[0].iter)
        if isinstance(node, ast.Name):
            return self._kept((self.code.function_of(node), node.id))
        return self._constructed(node) if isinstance(node, ast.Call) else None

    def _constructed(self, node: ast.Call) -> Given:
        origin = self.code.origin(node.func)
        skipped = 1 if origin == "collections.defaultdict" else 0
        items = [*node.args[skipped:], *(one.value for one in node.keywords if one.arg not in _OPTIONS)]
        if len(items) != 1 or isinstance(items[0], ast.Starred):
            return None
        if self._is_object(node) or (origin in _WRAPPERS and (node.keywords or origin != "dict")):
            return (items[0],)
        return self.holds(items[0]) if origin in _COPIERS else None

    def _is_object(self, node: ast.expr) -> bool:
        """Whether it makes or names an instance of a class that does nothing but keep what it is given."""
        if isinstance(node, ast.Name):
            value = self.bound.get((self.code.function_of(node), node.id))
            return isinstance(value, ast.Call) and self._is_object(value)
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.classes
        return called or (isinstance(node, ast.Call) and self.code.origin(node.func) == "types.SimpleNamespace")

    def _kept(self, key: Scoped) -> Given:
        """The only value that ever gets into a variable's holder, if all its uses put that in or take it out."""
        if key not in self.known:
            self.known[key] = None  # for a variable that holds itself
            given = self._worked_out(key)
            self.known[key] = given[0] if given else None
        value = self.known[key]
        return None if value is None else (value,)

    def _worked_out(self, key: Scoped) -> Given:
        value, (scope, name) = self.bound.get(key), key
        loads = self.loads.get(name, [])
        if value is None or isinstance(value, ast.Name) or not loads:
            return None
        if any(self.code.function_of(one) is not scope or self._is_deferred(one) for one in loads):
            return None
        puts = [put for one in loads if (put := self._put(one)) is not None]
        taken = all(self._put(one) is not None or self._is_taken(one) for one in loads)
        if not taken or len(puts) == len(loads) or any(self._repeats(put[0], value) for put in puts):
            return None
        items = [item for put in puts for item in put[1]] + list(self.holds(value) or ())
        empty = self.holds(value) is not None or _is_empty(self.code, value)
        return (items[0],) if empty and len(items) == 1 else None

    def _is_deferred(self, node: ast.AST) -> bool:
        return any(isinstance(above, ast.Lambda) for above in self.code.ancestors(node))

    def _repeats(self, put: ast.AST, value: ast.AST) -> bool:
        """Whether a loop stands around what puts something in, and not around what makes the holder."""
        around = [one for one in self.code.ancestors(put) if isinstance(one, (*LOOPS, *COMPREHENSIONS))]
        return any(one not in self.code.ancestors(value) for one in around)

    def _put(self, load: ast.Name) -> tuple[ast.AST, tuple[ast.expr, ...]] | None:
        """The node that puts something into the variable's holder here, and what it puts in."""
        above = self.code.parents[load]
        around = self.code.parents.get(above)
        outer = self.code.parents.get(around) if around is not None else None
        if isinstance(above, ast.Subscript) and isinstance(around, ast.Assign) and around.targets == [above]:
            return around, (around.value,)
        if isinstance(above, ast.Call) and self.code.origin(above.func) in _PUT_FUNCTIONS and len(above.args) == 2:
            return above, (above.args[1],)
        method = isinstance(above, ast.Attribute) and above.attr in _PUTS and isinstance(outer, ast.Expr)
        if method and isinstance(around, ast.Call) and around.func is above and around.args:
            return around, (around.args[-1],)
        return None

    def _is_taken(self, load: ast.Name) -> bool:
        """Whether the value is taken out of the variable's holder here."""
        node: ast.AST = load
        above = self.code.parents[node]
        while isinstance(above, ast.Call) and above.args == [node] and self.code.origin(above.func) in _COPIERS:
            node, above = above, self.code.parents[above]
        if isinstance(above, ast.Subscript):
            return isinstance(above.ctx, ast.Load) and above.value is node and not isinstance(above.slice, ast.Slice)
        if isinstance(above, ast.Call):
            return self.code.origin(above.func) in _TAKE_FUNCTIONS and node in above.args
        if not isinstance(above, ast.Attribute) or not isinstance(above.ctx, ast.Load):
            return False
        called = getattr(self.code.parents.get(above), "func", None) is above
        return called and above.attr in _TAKES if not self._is_object(load) else not called

    # -- what is given back ----------------------------------------------------------------------------------------

    def gives(self, node: ast.expr) -> Given:
        """The values that come out of the expression as they went in."""
        if node not in self.given:
            self.given[node] = self._read(node)
        return self.given[node]

    def _read(self, node: ast.expr) -> Given:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and not isinstance(node.slice, ast.Slice):
            return (node.slice,) if self._is_identity_table(node.value) else self.holds(node.value)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            called = getattr(self.code.parents.get(node), "func", None) is node
            return self.holds(node.value) if self._is_object(node.value) and not called else None
        if isinstance(node, ast.Starred) and isinstance(node.value, ast.List | ast.Tuple):
            return tuple(node.value.elts) if isinstance(node.ctx, ast.Load) else None
        if isinstance(node, ast.GeneratorExp):
            return (node.generators[0].iter,) if is_identity(node) else None
        return self._taken(node) or self._called(node) if isinstance(node, ast.Call) else None

    def _is_identity_table(self, node: ast.expr) -> bool:
        """Whether it is a dictionary, perhaps under a name, that maps every literal to itself."""
        scopes = (self.code.function_of(node), None) if isinstance(node, ast.Name) else ()
        table = next((value for one in scopes if (value := self.bound.get((one, getattr(node, "id", ""))))), node)
        pairs = list(zip(table.keys, table.values, strict=True)) if isinstance(table, ast.Dict) else []
        literal = [key for key, value in pairs if isinstance(key, ast.Constant) and ast.dump(key) == ast.dump(value)]
        return bool(pairs) and len(literal) == len(pairs)

    def _taken(self, node: ast.Call) -> Given:
        """The value that a method or function takes out of a holder, or hands on one by one."""
        origin = self.code.origin(node.func)
        if isinstance(node.func, ast.Attribute) and origin == f".{node.func.attr}" and node.func.attr in _TAKES:
            holder = node.args[0] if node.func.attr == "join" and node.args else node.func.value
            return self.holds(holder)
        if origin in _TAKE_FUNCTIONS and node.args:
            return self.holds(node.args[1 if origin == "functools.reduce" and len(node.args) > 1 else 0])
        if origin in ("map", "filter") and len(node.args) == 2 and isinstance(node.args[0], ast.Lambda):
            body, names = node.args[0].body, [one.arg for one in parameters(node.args[0])]
            kept = isinstance(body, ast.Constant) and body.value is True
            if kept if origin == "filter" else isinstance(body, ast.Name) and [body.id] == names:
                return (node.args[1],)
        if origin == "itertools.chain" and len(node.args) == 1 and not isinstance(node.args[0], ast.Starred):
            return (node.args[0],)
        return None

    def _called(self, node: ast.Call) -> Given:
        """What a call gives of a function that computes nothing, or of one that is made for this call alone."""
        given = (*node.args, *(one.value for one in node.keywords))
        func = node.func
        if isinstance(func, ast.Call) and self.code.origin(func.func) == "functools.partial":
            return (*func.args, *(one.value for one in func.keywords), *given)
        made = self.gives(func) if isinstance(func, ast.Subscript | ast.Call | ast.Attribute) else (func,)
        if isinstance(func, ast.Call) and made is None:
            made = self._made_by(func)
        if made and len(made) == 1 and isinstance(made[0], ast.Lambda):
            return (made[0].body, *given)
        if not isinstance(func, ast.Name):
            return None
        value = self.bound.get((self.code.function_of(node), func.id))
        if isinstance(value, ast.Lambda):
            return given if isinstance(value.body, ast.Name | ast.Constant) else None
        function = self._function(func)
        return given if function is not None and computes_nothing(self.code, function) else None

    def _made_by(self, call: ast.Call) -> Given:
        """The lambda that a function of the program does nothing but return."""
        function = self._function(call.func)
        body = [one for one in function.body if not isinstance(one, ast.Expr)] if function is not None else []
        value = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
        return (value,) if isinstance(value, ast.Lambda) else None


def _between(node: ast.AST | None, kept: Iterable[ast.expr]) -> set[ast.AST]:
    """The nodes of an expression without those of the values in it."""
    inside = {each for one in kept for each in walk(one)}
    return {each for each in walk(node) if each not in inside} if node is not None else set()


def _is_empty(code: Code, node: ast.expr) -> bool:
    """Whether it makes a holder with nothing in it."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return not node.elts
    if isinstance(node, ast.Dict):
        return not node.keys
    if not isinstance(node, ast.Call) or node.keywords:
        return False
    origin = code.origin(node.func)
    return origin in _COPIERS | _WRAPPERS and len(node.args) == (origin == "collections.defaultdict")
