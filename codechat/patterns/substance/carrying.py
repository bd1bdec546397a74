"""What only carries a value: it is built around one value, which is taken out again unchanged.

`Counter({"result": total})["result"]` is no use of `Counter`, nor is `deque([v]).popleft()`, `Node(v).value` or
`(lambda: v)()`; neither is the same through a variable: `stack = []`, `stack.append(v)`, `return stack.pop()`. One
mechanism finds them all: what an expression *holds*, if it makes a holder of a single value, and what it *gives*, if it
takes a value out of such a holder or calls what computes nothing. What lies around that value has done nothing.

A holder that gets a second value, is walked through, measured, passed on or returned does something, and so does a
function that computes: both are left alone, and so is whatever cannot be told by reading.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from codechat.languages.python.syntax import parameters
from codechat.patterns.reading.code import Code
from codechat.patterns.reading.tree import COMPREHENSIONS, FUNCTIONS, LOOPS, Function, body_without_docstring, walk

Given: TypeAlias = tuple[ast.expr, ...] | None
"""The values that an expression gives back unchanged; None if it does something."""
Scoped: TypeAlias = tuple[Function | None, str]

_COPIERS = {
    "list", "tuple", "set", "frozenset", "dict", "iter", "reversed", "sorted", "collections.deque",
    "collections.Counter", "collections.OrderedDict", "collections.defaultdict", "itertools.chain",
}  # fmt: skip
_SPACE = "types.SimpleNamespace"
_WRAPPERS = {"io.StringIO", "io.BytesIO", _SPACE, "itertools.repeat", "dict"}
_PUTS = {".append", ".appendleft", ".add", ".insert", ".write", ".put", ".push", "heapq.heappush", "bisect.insort"}
_TAKES = {
    ".pop", ".popleft", ".get", ".getvalue", ".read", ".join", ".__next__", ".__getitem__", "next", "any", "all", "sum",
    "min", "max", "heapq.heappop", "functools.reduce",
}  # fmt: skip
_METHODS = ("staticmethod", "classmethod")
_WITH_FIELDS = {"dataclasses.dataclass", "attr.s", "attrs.define", "typing.NamedTuple"}
_KEEPS = re.compile(r"pass|[\w.]+(: [^=]+)?( = ([\w.]+|'[^']*'))?|return self\.\w+(\(\))?")
"""A statement of a class that only keeps: `self.value = value`, `value: int = 0`, `return self.value`."""


def carriers(code: Code) -> frozenset[ast.AST]:
    """The nodes that only carry a value, without those of the value; definitions that nothing else names."""
    if carriers not in code.found:
        code.found[carriers] = frozenset(_Reader(code).carriers())
    found: frozenset[ast.AST] = code.found[carriers]
    return found


class _Reader:
    """One program, read for what its expressions hold and give.

    `bound`: the value of every name that its function binds once, by a plain assignment, and None for the others.
    `known`: what variables hold; `supposed`: what the one variable holds that is being looked at.
    """

    def __init__(self, code: Code) -> None:
        self.code = code
        self.classes = {one.name for one in code.find(ast.ClassDef) if _keeps_only(code, one)}
        self.known: dict[Scoped, Given] = {}
        self.supposed: dict[Scoped, Given] | None = None
        self.bound: dict[Scoped, ast.expr | None] = {}
        self.loads: dict[str, list[ast.Name]] = {}
        for node in code.find(ast.Name, ast.arg):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.loads.setdefault(node.id, []).append(node)
                continue
            above = code.parents.get(node)
            key = code.function_of(node), node.id if isinstance(node, ast.Name) else node.arg
            alone = isinstance(above, ast.Assign | ast.AnnAssign) and key not in self.bound
            self.bound[key] = getattr(above, "value", None) if alone else None

    def _function(self, called: ast.expr) -> Function | None:
        """The one function of the program, outside classes, that a name stands for; None if a variable has the name."""
        name = called.id if isinstance(called, ast.Name) else ""
        found = [one for one in self.code.functions if one.name == name]
        around = [None, *(one for one in self.code.ancestors(called) if isinstance(one, FUNCTIONS))]
        if len(found) != 1 or any((scope, name) in self.bound for scope in around):
            return None
        return None if isinstance(self.code.parents.get(found[0]), ast.ClassDef) else found[0]

    def carriers(self) -> Iterator[ast.AST]:
        """Expressions that carry, then the variables and definitions that serve them alone."""
        found: set[ast.AST] = set()
        for node in self.code.find(ast.expr):
            given = self.gives(node)
            found |= _between(node, given) if given is not None else set()
        for key, value in self.bound.items():
            loads = self.loads.get(key[1], [])
            if value is not None and self._kept(key) is not None:
                found |= _between(value, self.holds(value) or ())
                for put, item in filter(None, map(self._put, loads)):
                    found |= _between(put, (item,))
            elif isinstance(value, ast.Lambda) and loads and found.issuperset(loads):
                found.update(walk(value))
        yield from found
        for definition in self.code.find(*FUNCTIONS, ast.ClassDef):
            named = [one for one in self.loads.get(definition.name, ()) if definition not in self.code.ancestors(one)]
            if named and found.issuperset(named):
                yield from walk(definition)

    def holds(self, node: ast.AST) -> Given:
        """The single value in a holder that the expression makes or names; no value if the holder is empty."""
        if isinstance(node, ast.Name):
            key = self.code.function_of(node), node.id
            return self._kept(key) if self.supposed is None else self.supposed.get(key)
        copies, items = False, list[ast.expr]()
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            items = node.elts
        elif isinstance(node, ast.Dict) and None not in node.keys:
            items = node.values
        elif isinstance(node, COMPREHENSIONS) and is_identity(node):
            copies, items = True, [node.generators[0].iter]
        elif isinstance(node, ast.Call) and not any(isinstance(one, ast.Starred) for one in node.args):
            if any(one.arg is None for one in node.keywords):
                return None
            origin = self.code.origin(node.func)
            copies = not self._is_object(node) and (origin not in _WRAPPERS or (origin == "dict" and not node.keywords))
            items = [*node.args, *(one.value for one in node.keywords if one.arg not in ("key", "reverse", "maxlen"))]
            items = items[origin == "collections.defaultdict" :]
            if copies and origin not in _COPIERS:
                return None
        else:
            return None
        if len(items) != 1:
            return None if items else ()
        item = items[0].value if isinstance(items[0], ast.Starred) else items[0]
        return self.holds(item) if copies or item is not items[0] else (item,)

    def _is_object(self, node: ast.expr | None) -> bool:
        """Whether it makes or names an instance of a class that does nothing but keep what it is given."""
        if isinstance(node, ast.Name):
            node = self.bound.get((self.code.function_of(node), node.id))
        func = node.func if isinstance(node, ast.Call) else None
        return func is not None and (self.code.origin(func) == _SPACE or getattr(func, "id", None) in self.classes)

    def _kept(self, key: Scoped) -> Given:
        """The only value that ever gets into a variable's holder, if all its uses put that in or take it out."""
        if key not in self.known:
            self.supposed = {}
            item = self._only_item(key)
            self.supposed = {key: (item,) if item is not None else None}
            used = item is not None and all(self._put(one) or self._is_taken(one, item) for one in self.loads[key[1]])
            self.known[key] = self.supposed[key] if used else None
            self.supposed = None
        return self.known[key]

    def _only_item(self, key: Scoped) -> ast.expr | None:
        """The one value that is put into a holder when it is made or later, and nowhere but in its own function."""
        value, loads = self.bound.get(key), self.loads.get(key[1], [])
        if (
            value is None
            or isinstance(value, ast.Name)
            or any(self.code.function_of(one) is not key[0] for one in loads)
        ):
            return None
        puts, held = [*filter(None, map(self._put, loads))], self.holds(value)
        loops = {one for put, _ in puts for one in self.code.ancestors(put) if isinstance(one, LOOPS)}
        items = [*(item for _, item in puts), *(held or ())]
        once = loops <= {*self.code.ancestors(value)} and len(items) == 1 and len(puts) < len(loads)
        return items[0] if once and held is not None else None

    def _put(self, load: ast.Name) -> tuple[ast.AST, ast.expr] | None:
        """The node that puts something into the variable's holder here, and what it puts in."""
        above = self.code.parents[load]
        around = self.code.parents.get(above)
        if isinstance(above, ast.Subscript) and isinstance(around, ast.Assign) and around.targets == [above]:
            return around, around.value
        method = isinstance(above, ast.Attribute)
        call = around if method else above
        if not isinstance(call, ast.Call) or not isinstance(self.code.parents[call], ast.Expr) or not call.args:
            return None
        origin, into = self.code.origin(call.func), call.func is above if method else len(call.args) == 2
        putting = origin in _PUTS and (origin[0] == ".") is method and into and call.args[-1] is not load
        return (call, call.args[-1]) if putting else None

    def _is_taken(self, load: ast.Name, item: ast.expr) -> bool:
        """Whether what stands around the variable takes the item out of its holder, or out of a copy of that."""
        node: ast.AST = load
        while isinstance(node, ast.Attribute) or self.holds(node) == (item,):
            node = self.code.parents[node]
            if isinstance(node, ast.expr) and item in (self.gives(node) or ()):
                return True
        return False

    def gives(self, node: ast.expr) -> Given:
        """The values that come out of the expression as they went in."""
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and not isinstance(node.slice, ast.Slice):
            return self.holds(node.value) or None
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            called = getattr(self.code.parents.get(node), "func", None) is node
            return self.holds(node.value) or None if self._is_object(node.value) and not called else None
        if isinstance(node, ast.Starred) and isinstance(node.value, ast.List | ast.Tuple):
            return tuple(node.value.elts) if isinstance(node.ctx, ast.Load) else None
        if isinstance(node, ast.GeneratorExp):
            return (node.generators[0].iter,) if is_identity(node) else None
        return self._taken(node) or self._called(node) if isinstance(node, ast.Call) else None

    def _taken(self, node: ast.Call) -> Given:
        """The value that a method or function takes out of a holder, or hands on one by one."""
        origin, args = self.code.origin(node.func), node.args
        if isinstance(node.func, ast.Attribute) and origin[:1] == "." and origin in _TAKES:
            return self.holds(args[0] if origin == ".join" and args else node.func.value)
        if origin in _TAKES and args:
            return self.holds(args[1 if origin == "functools.reduce" and len(args) > 1 else 0])
        if origin in ("map", "filter") and len(args) == 2 and isinstance(args[0], ast.Lambda):
            same = ast.unparse(args[0].body) == ("True" if origin == "filter" else ast.unparse(args[0].args))
            return (args[1],) if same else None
        single = origin == "itertools.chain" and len(args) == 1 and not isinstance(args[0], ast.Starred)
        return (args[0],) if single else None

    def _called(self, node: ast.Call) -> Given:
        """What a call gives of a function that computes nothing, or of one that is made for this call alone."""
        given, func = (*node.args, *(one.value for one in node.keywords)), node.func
        if isinstance(func, ast.Name):
            value = self.bound.get((self.code.function_of(node), func.id))
            function = value if isinstance(value, ast.Lambda) else self._function(func)
            return given if function is not None and hands_back(self.code, function) else None
        if isinstance(func, ast.Call) and self.code.origin(func.func) == "functools.partial":
            return (*func.args, *(one.value for one in func.keywords), *given)
        made = (func,) if isinstance(func, ast.Lambda) else self.gives(func)
        maker = self._function(func.func) if isinstance(func, ast.Call) and made is None else None
        if maker is not None and len(body_without_docstring(maker)) == 1:
            made = tuple(filter(None, [getattr(maker.body[-1], "value", None)]))
        alone = made[0] if made and len(made) == 1 else None
        return (alone.body, *given) if isinstance(alone, ast.Lambda) and not _computes(alone) else None


def _computes(function: ast.Lambda) -> bool:
    """Whether a lambda computes something of a parameter: it is more than what is wrapped."""
    names = {one.arg for one in parameters(function)}
    read = {one.id for one in walk(function.body) if isinstance(one, ast.Name)} & names
    return bool(read) and not isinstance(function.body, ast.Name | ast.List | ast.Tuple)


def _between(node: ast.AST, kept: Iterable[ast.expr]) -> set[ast.AST]:
    """The nodes of an expression without those of the values in it."""
    return {*walk(node)} - {each for one in kept for each in walk(one)}


def is_identity(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> bool:
    """Whether a comprehension hands on every value as it is."""
    first = node.generators[0]
    plain = len(node.generators) == 1 and not first.ifs and not first.is_async and isinstance(first.target, ast.Name)
    return plain and not isinstance(node, ast.DictComp) and ast.unparse(node.elt) == ast.unparse(first.target)


def hands_back(code: Code, function: Function | ast.Lambda) -> bool:
    """Whether a function gives back one and the same name or literal, whatever it is asked.

    `yield from values` gives back `values`; a call of the function by itself that hands this parameter on adds nothing.
    """
    if isinstance(function, ast.Lambda):
        return isinstance(function.body, ast.Name | ast.Constant)
    ahead: list[ast.AST | None] = [*body_without_docstring(function)]
    calls: list[ast.Call] = []
    plain: set[str] = set()
    while ahead:
        node = ahead.pop()
        if isinstance(node, ast.If):
            ahead += [*node.body, *node.orelse]
        elif isinstance(node, ast.IfExp):
            ahead += [node.body, node.orelse]
        elif isinstance(node, ast.Return):
            ahead.append(node.value)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.YieldFrom):
            ahead.append(node.value.value)
        elif isinstance(node, ast.For) and [f"yield {ast.unparse(node.target)}"] == [*map(ast.unparse, node.body)]:
            ahead.append(node.iter)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == function.name:
            calls.append(node)
        elif not isinstance(node, ast.Pass):
            plain.add(ast.unparse(node) if isinstance(node, ast.Name | ast.Constant) else "")
    heads = [code.origin(getattr(one, "func", one)) for one in function.decorator_list]
    if len(plain) != 1 or "" in plain or not all(one.startswith("functools.") or one in _METHODS for one in heads):
        return False
    name, names = plain.pop(), [one.arg for one in parameters(function)]
    place = names.index(name) if name in names else len(names)
    return all(len(call.args) > place and ast.unparse(call.args[place]) == name for call in calls)


def _keeps_only(code: Code, node: ast.ClassDef) -> bool:
    """Whether a class does nothing but keep what its instances are given and give it back."""
    bases = {code.origin(one) for one in node.bases}
    heads = {code.origin(getattr(one, "func", one)) for one in node.decorator_list}
    methods = [one for one in node.body if isinstance(one, FUNCTIONS)]
    made = any(one.name == "__init__" for one in methods) or not _WITH_FIELDS.isdisjoint(bases | heads)
    statements = [one for one in body_without_docstring(node) if one not in methods]
    statements += [one for method in methods for one in body_without_docstring(method)]
    return made and bases <= {"object", *_WITH_FIELDS} and all(_KEEPS.fullmatch(ast.unparse(one)) for one in statements)
