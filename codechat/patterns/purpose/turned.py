"""What is made only to be turned into something else at once: a tuple for `list(...)`, objects that are taken apart.

`list((1, 2))` is a list, `dict(defaultdict(list))` a plain dict, and `[(p.x, p.y) for p in [Point(*q) for q in rows]]`
the rows that there were.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from codechat.patterns.base import Occurrence
from codechat.patterns.reading.code import Code
from codechat.patterns.reading.tree import COMPREHENSIONS, blocks, walk

_KINDS = {"list", "tuple", "set", "frozenset", "dict", "collections.deque"}
_APART = {"dataclasses.astuple", "dataclasses.asdict", "tuple", "list"}


def lasts(code: Code, one: Occurrence, options: Mapping[str, Any]) -> bool:
    """Whether a collection is more than what another one is made of, right there or in the next statement."""
    node = one.node
    above = code.parents.get(node) if node is not None else None
    value = above if isinstance(above, ast.Call) and above.func is node else node
    if not isinstance(value, ast.expr):
        return True
    if _is_forgotten(code, value):
        return False
    if not _is_turned(code, value):
        return True
    made = options.get("kind") or code.origin(getattr(value, "func", value))
    parts = [*getattr(value, "args", ()), *getattr(value, "keywords", ())]
    if made in ("tuple", "collections.deque"):
        return any(isinstance(part, ast.keyword) or ast.unparse(part).isdigit() for part in parts[1:])
    if made in ("set", "collections.Counter", "collections.OrderedDict", "dict"):
        shown = isinstance(value, ast.Set) and all(isinstance(each, ast.Constant) for each in value.elts)
        return not shown and not (isinstance(value, ast.Call) and not parts)
    return made != "collections.defaultdict" or len(parts) > 1


def _is_forgotten(code: Code, value: ast.expr) -> bool:
    """Whether it is given to an attribute of `self` that the program reads nowhere, by its name or by a text."""
    above = code.parents.get(value)
    targets = above.targets if isinstance(above, ast.Assign) else [getattr(above, "target", None)]
    if not targets or not all(isinstance(one, ast.Attribute) and ast.unparse(one.value) == "self" for one in targets):
        return False
    names = {one.attr for one in targets if isinstance(one, ast.Attribute)}
    if any(one.attr in names and isinstance(one.ctx, ast.Load) for one in code.find(ast.Attribute)):
        return False
    return not any(code.origin(one.func) in ("getattr", "vars", "operator.attrgetter") for one in code.find(ast.Call))


def _is_turned(code: Code, value: ast.expr) -> bool:
    """Whether the value is the one argument of a call that makes a collection, or what such a call is given next."""
    above = code.parents.get(value)
    if _converts(code, above, value):
        return True
    name = above.targets[0] if isinstance(above, ast.Assign) and len(above.targets) == 1 else None
    if not isinstance(above, ast.Assign) or not isinstance(name, ast.Name):
        return False
    block = next((each for each in blocks(code.parents[above]) if above in each), [above])
    after = block[block.index(above) + 1 :][:1]
    if not after or not isinstance(after[0], ast.Assign):
        return False
    call, again = after[0].value, ast.unparse(after[0].targets[0]) == name.id
    reads = [each for each in code.find(ast.Name) if each.id == name.id and isinstance(each.ctx, ast.Load)]
    given = call.args[0] if isinstance(call, ast.Call) and call.args else None
    return given in reads and _converts(code, call, given) and (again or len(reads) == 1)


def _converts(code: Code, call: ast.AST | None, value: ast.AST | None) -> bool:
    return isinstance(call, ast.Call) and call.args == [value] and code.origin(call.func) in _KINDS


def stay_whole(code: Code, one: Occurrence, options: Mapping[str, Any]) -> bool:
    """Whether any object of a class that declares fields is more than packed and taken apart at once."""
    node = one.node
    if not options.get("fields") or not isinstance(node, ast.ClassDef):
        return True
    makes = [each for each in code.find(ast.Call) if getattr(each.func, "id", "") == node.name]
    return not makes or not all(_is_taken_apart(code, call) for call in makes)


def _is_taken_apart(code: Code, call: ast.Call) -> bool:
    """`astuple(Point(...))`, `x, y = Point(...)`, and a comprehension that gives the fields of each object."""
    above = code.parents.get(call)
    if isinstance(above, ast.Call) and call in above.args and code.origin(above.func) in _APART:
        return True
    if isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Tuple):
        return True
    if not isinstance(above, COMPREHENSIONS):
        return False
    return any(_gives_fields(walker) for walker in _walkers(code, above))


def _walkers(code: Code, made: ast.expr) -> Iterator[ast.AST]:
    """The comprehension that goes through the objects, there or by the one read of their name."""
    around = code.parents.get(made)
    target = around.targets[0] if isinstance(around, ast.Assign) else None
    if isinstance(target, ast.Name):
        reads = [each for each in code.find(ast.Name) if each.id == target.id and isinstance(each.ctx, ast.Load)]
        around = code.parents.get(reads[0]) if len(reads) == 1 else None
    if isinstance(around, ast.comprehension):
        yield code.parents[around]


def _gives_fields(walker: ast.AST) -> bool:
    if not isinstance(walker, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        return False
    if walker.generators[0].ifs:
        return False  # what decides is read from the object
    name = ast.unparse(walker.generators[0].target)
    parts = walker.elt.elts if isinstance(walker.elt, ast.Tuple | ast.List) else [walker.elt]
    return bool(parts) and all(isinstance(each, ast.Attribute) and ast.unparse(each.value) == name for each in parts)


def tells_apart(code: Code, one: Occurrence, options: Mapping[str, Any]) -> bool:
    """Whether the members of an enumeration are compared with or looked up, where the program does that with anything.

    `State.OPEN.value`, while the code goes on to compare with `"open"`, tells nothing apart.
    """
    node = one.node
    if options.get("of") != ["enum.*"] or not isinstance(node, ast.ClassDef):
        return True
    inside = {*walk(node)}
    values = {each.value for each in inside if isinstance(each, ast.Constant) and isinstance(each.value, str | int)}
    tests: list[ast.AST] = [each.test for each in code.find(ast.If, ast.IfExp, ast.While) if each not in inside]
    tests += [each.pattern for each in code.find(ast.match_case)]
    parts = [each for test in tests for each in walk(test)]
    literal = any(isinstance(each, ast.Constant) and each.value in values - {0, 1, ""} for each in parts)
    named = {each.id for each in code.find(ast.Name) if each.id == node.name and each not in inside}
    members = {each.id for each in parts if isinstance(each, ast.Name)}
    return not literal or not named or bool(members & (named | _held_members(code, node.name)))


def _held_members(code: Code, name: str) -> set[str]:
    """Variables that the members of an enumeration are given to, in a table too."""
    return {
        target.id for each in code.find(ast.Assign) for target in each.targets if isinstance(target, ast.Name)
        and any(isinstance(part, ast.Attribute) and ast.unparse(part.value) == name for part in walk(each.value))
        and ".value" not in ast.unparse(each.value)
    }  # fmt: skip
