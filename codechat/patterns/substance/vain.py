"""Calls that do nothing: they give back what they get, or what they give is the same for all."""

import ast
import re
from collections.abc import Callable

from codechat.patterns.reading.code import Code
from codechat.patterns.reading.tree import walk
from codechat.patterns.substance.dead import always_true
from codechat.patterns.substance.idle import is_read, names_of


def _takes_one(code: Code, node: ast.Call) -> bool:
    """`functools.partial(f)` fixes nothing."""
    return len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred)


def _says_no_value(code: Code, node: ast.Call) -> bool:
    """A message that is the same whatever the program does."""
    return not any(isinstance(each, ast.Name | ast.Call) for one in node.args for each in walk(one))


def _numbers_nothing(code: Code, node: ast.Call) -> bool:
    """`for _, x in enumerate(xs)`: nothing reads the numbers."""
    above = code.parents[node]
    target = above.target if isinstance(above, ast.For | ast.AsyncFor | ast.comprehension) else None
    first = target.elts[0] if isinstance(target, ast.Tuple) else None
    if isinstance(target, ast.Name):  # `pair[1]` alone
        reads = [one for one in code.find(ast.Name) if one.id == target.id and isinstance(one.ctx, ast.Load)]
        return bool(reads) and all(ast.unparse(code.parents[one]) == f"{target.id}[1]" for one in reads)
    statement = next((one for one in code.ancestors(node) if isinstance(one, ast.stmt)), None)
    return isinstance(first, ast.Name) and statement is not None and not is_read(code, statement, first.id)


def _pairs_nothing(code: Code, node: ast.Call) -> bool:
    """`zip(a)`, `zip(a, a)`, and `for i, _ in zip(range(n), a)`: nothing is put beside a."""
    above = code.parents[node]
    target = above.target if isinstance(above, ast.For | ast.AsyncFor | ast.comprehension) else None
    statement = next((one for one in code.ancestors(node) if isinstance(one, ast.stmt)), None)
    counted = any(isinstance(one, ast.Call) and code.origin(one.func) == "range" for one in node.args)
    if isinstance(target, ast.Tuple) and statement is not None and counted:
        names = [*names_of(target)]
        if sum(name is None or is_read(code, statement, name) for name in names) < min(2, len(names)):
            return True
    if len(node.args) == 1:
        return not isinstance(node.args[0], ast.Starred)
    same = len({ast.unparse(one) for one in node.args}) == 1
    return same and isinstance(node.args[0], ast.Name | ast.Attribute | ast.Subscript)


def _has_no_values(code: Code, node: ast.Call) -> bool:
    """`all([])`."""
    return bool(node.args) and isinstance(node.args[0], ast.List | ast.Tuple | ast.Set) and not node.args[0].elts


def _selects_all(code: Code, node: ast.Call) -> bool:
    return isinstance(node.args[0], ast.Lambda) and always_true(code, node.args[0].body) if node.args else False


def catches_nothing(code: Code, node: ast.AST) -> bool:
    """`with suppress(KeyError): found = []`: nothing there can raise."""
    above = next((one for one in code.ancestors(node) if isinstance(one, ast.stmt)), None)
    kinds = (ast.Call, ast.BinOp, ast.AugAssign, ast.Subscript, ast.Attribute, ast.Compare, ast.Raise, ast.Await)
    body = above.body if isinstance(above, ast.With) else []
    risky = any(isinstance(each, (*kinds, ast.For, ast.While)) for one in body for each in walk(one))
    return isinstance(above, ast.With) and not risky


def is_single(code: Code, node: ast.AST) -> bool:
    """Whether to go through it is to go through one value: `[x]`, `range(1)`, `repeat(x, 1)`."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return len(node.elts) == 1 and not isinstance(node.elts[0], ast.Starred)
    if not isinstance(node, ast.Call):
        return False
    numbers = [*map(ast.unparse, node.args)]
    return (code.origin(node.func), numbers[-1:]) in (("range", ["1"]), ("itertools.repeat", ["1"])) and (
        len(numbers) == (1 if code.origin(node.func) == "range" else 2)
    )


def _repeats_once(code: Code, node: ast.Call) -> bool:
    return is_single(code, node)


def _maps_one(code: Code, node: ast.Call) -> bool:
    return len(node.args) == 2 and is_single(code, node.args[1])


def _folds_nothing(code: Code, node: ast.Call) -> bool:
    """`reduce(lambda a, b: a, …)`, and what is folded of one value."""
    head = node.args[0] if node.args else None
    constant = isinstance(head, ast.Lambda) and isinstance(head.body, ast.Name | ast.Constant)
    return constant or (len(node.args) > 1 and is_single(code, node.args[1]) and len(node.args) == 2)


def _only_escapes(code: Code, node: ast.Call) -> bool:
    """`re.escape(x)` in a program that matches nothing."""
    others = [code.called(one.func) for one in code.find(ast.Call) if one is not node]
    return not any(name.startswith("re.") and name != "re.escape" for name in others)


def _counts_unread(code: Code, node: ast.Call) -> bool:
    """`for _, x in zip(count(), xs)`: nothing reads the count."""
    around = code.parents[node]
    above = code.parents.get(around)
    target = above.target if isinstance(above, ast.For | ast.comprehension) else None
    if not isinstance(around, ast.Call) or code.origin(around.func) != "zip" or not isinstance(target, ast.Tuple):
        return False
    place = around.args.index(node) if node in around.args else len(target.elts)
    name = target.elts[place] if place < len(target.elts) else None
    statement = next((one for one in code.ancestors(node) if isinstance(one, ast.stmt)), None)
    return isinstance(name, ast.Name) and statement is not None and not is_read(code, statement, name.id)


def _cuts_nothing(code: Code, node: ast.Call) -> bool:
    """`itertools.islice(x, None)`, `itertools.islice(x, len(x))`."""
    bounds = [*map(ast.unparse, node.args[1:])]
    if node.args and bounds == [f"len({ast.unparse(node.args[0])})"]:
        return True
    return bounds in (["None"], ["0", "None"], ["0", "None", "1"], ["None", "None"])


def _divides_by_one(code: Code, node: ast.Call) -> bool:
    return ast.unparse(node.args[-1]) == "1" if node.args else False


def _measures_nothing(code: Code, node: ast.Call) -> bool:
    """A clock that is read once."""
    return sum(code.called(call.func) == code.called(node.func) for call in code.find(ast.Call)) == 1


def _copies_literal(code: Code, node: ast.Call) -> bool:
    """A copy of what nobody else has."""
    return bool(node.args) and isinstance(node.args[0], ast.Constant | ast.List | ast.Dict | ast.Set | ast.Tuple)


def _is_put_in_order(code: Code, node: ast.Call) -> bool:
    """`sorted(reversed(x))`: the order is made anew, or there is none."""
    above = code.parents[node]
    return isinstance(above, ast.Call) and code.origin(above.func) in ("sorted", "set", "frozenset")


def _matches_nothing(code: Code, node: ast.Call) -> bool:
    """A pattern that is empty, that no text can match, `$^x`, `(?!)`, `x^`, or that every text does, `.*`."""
    pattern = node.args[0] if node.args else None
    text = pattern.value if isinstance(pattern, ast.Constant) else None
    return isinstance(text, str) and (
        text == "" or _NEVER.search(text) is not None or _ALWAYS.fullmatch(text) is not None
    )


_NEVER = re.compile(r"(?<!\\)\$\^?\w|\(\?!\)|^\w\^|\\Z\^?\w|\\b\\B|\\B\\b")
_ALWAYS = re.compile(r"(\(\?s\))?\^?\(?\.[*+]\??\)?(\$|\\Z)?")


VAIN: dict[str, Callable[[Code, ast.Call], bool]] = {
    "functools.partial": _takes_one, "zip": _pairs_nothing, "divmod": _divides_by_one,
    "logging.debug": _says_no_value, ".debug": _says_no_value,
    "enumerate": _numbers_nothing, "time.perf_counter": _measures_nothing,
    "any": _has_no_values, "all": _has_no_values, "filter": _selects_all, "itertools.islice": _cuts_nothing,
    "re.sub": _matches_nothing, "re.search": _matches_nothing, "re.match": _matches_nothing,
    "re.findall": _matches_nothing, "re.split": _matches_nothing, "re.compile": _matches_nothing,
    "re.fullmatch": _matches_nothing, "re.escape": _only_escapes, "itertools.repeat": _repeats_once,
    "itertools.count": _counts_unread, "map": _maps_one, "functools.reduce": _folds_nothing,
    "copy.copy": _copies_literal, "copy.deepcopy": _copies_literal, "reversed": _is_put_in_order,
}  # fmt: skip
"""The check of a call, by the origin of what is called."""
