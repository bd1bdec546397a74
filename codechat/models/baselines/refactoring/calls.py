"""What is done around a call of the function: counted, timed, locked, logged, cached; the sort that it calls."""

from string import Template

import libcst as cst

from codechat.models.baselines.refactoring.base import Refusal, Source, define, transforms
from codechat.models.baselines.refactoring.trees import (
    Made,
    block,
    docstring_split,
    entry,
    has,
    nodes,
    reads,
    replace,
    rewrite,
    statements,
    text_of,
    unjoin,
    variables,
)


def _ordinary(source: Source) -> cst.FunctionDef:
    """The entry point, if it neither calls itself, which would multiply what is done around it, nor is a generator."""
    function = entry(source.module, source.entry_point)
    if source.entry_point in reads(function.body) or has(function.body, cst.Yield, into_functions=False):
        raise Refusal("the function calls itself or is a generator")
    return function


_LOG = "logging.getLogger(__name__).debug"


@transforms(
    "semantic-add-try",
    template=f"try:\n    pass\nexcept Exception:\n    {_LOG}('$entry failed', exc_info=True)\n    raise",
    imports=["logging"],
)
@transforms(
    "semantic-include-finally", template=f"try:\n    pass\nfinally:\n    {_LOG}('$entry is done')", imports=["logging"]
)
@transforms(
    "semantic-include-timing",
    before="$started = time.perf_counter()",
    template=f"try:\n    pass\nfinally:\n    {_LOG}('$entry took %.6f s', time.perf_counter() - $started)",
    imports=["logging", "time"],
)
@transforms(
    "semantic-use-lock", module="$LOCK = threading.RLock()", template="with $LOCK:\n    pass", imports=["threading"]
)
@transforms("semantic-include-call-counter", module="$calls = 0", before="global $calls\n$calls += 1")
def wrap(source: Source, before: str = "", template: str = "", module: str = "", imports: tuple[str, ...] = ()) -> str:
    """Statements in front of the function's own, or another statement around them."""
    source.builtin("Exception")
    if template:
        _ordinary(source)
    namer = source.namer()
    names = {
        "started": namer("started", "began"),
        "LOCK": namer("LOCK", "CALL_LOCK"),
        "calls": namer("calls", "called"),
    }
    names["entry"] = source.entry_point
    definitions = [Template(module).substitute(names)] if module else []
    source = source.with_text(define(source, *definitions, imports=imports))
    tree = unjoin(source.module)
    function = entry(tree, source.entry_point)
    doc, rest = docstring_split(function.body.body)
    if template:
        rest = [statements(Template(template).substitute(names))[0].with_changes(body=block(rest))]
    first = statements(Template(before).substitute(names))
    return replace(tree, {function.body: block([*doc, *first, *rest])}).code


_DECORATOR = f"""
def $logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        result = function(*args, **kwargs)
        {_LOG}("%s is done", function.__name__)
        return result

    return wrapper
"""


@transforms("structural-implement-decorator", text=_DECORATOR, imports=["functools", "logging"])
@transforms("structural-use-closure", text=_DECORATOR, imports=["functools", "logging"])
@transforms("semantic-apply-cache", text="", imports=["functools"])
def decorate(source: Source, text: str, imports: tuple[str, ...]) -> str:
    """A decorator that logs every call; or the results cached, if hints say that neither they nor arguments change.

    Values that are equal and of different types, such as 1 and True, are cached apart.
    """
    if _ordinary(source).decorators or not (text or _is_cacheable(source)):
        raise Refusal("the function is decorated, or its arguments and results may be changed")
    name = source.namer()("logged", "log_calls")
    decorator = f"@{name}" if text else "@functools.lru_cache(maxsize=None, typed=True)"
    definitions = [Template(text).substitute(logged=name)] if text else []
    source = source.with_text(define(source, *definitions, imports=imports))
    made = statements(f"{decorator}\ndef f():\n    pass")[0].decorators
    function = entry(source.module, source.entry_point)
    return replace(source.module, {function: function.with_changes(decorators=made)}).code


_HASHABLE = {"int", "str", "float", "bool", "bytes"}
_IMPURE = {"global", "nonlocal", "print", "open", "input", "random", "time", "secrets", "datetime", "os", "sys"}


def _is_cacheable(source: Source) -> bool:
    source.without(*_IMPURE)
    source.builtin(*_HASHABLE)
    function = entry(source.module, source.entry_point)
    hints = [node.annotation for node in nodes(function.params) if isinstance(node, cst.Param)]
    return {text_of(one.annotation) if one else "" for one in (*hints, function.returns)} <= _HASHABLE


_SORT = """
def {name}(values, *, key=None, reverse=False):
    pairs = [(value if key is None else key(value), value) for value in values]
    if reverse:
        pairs.reverse()
    width = 1
    while width < len(pairs):
        merged = []
        for start in range(0, len(pairs), 2 * width):
            left, right = pairs[start : start + width], pairs[start + width : start + 2 * width]
            first = second = 0
            while first < len(left) and second < len(right):
                if right[second][0] < left[first][0]:
                    merged.append(right[second])
                    second += 1
                else:
                    merged.append(left[first])
                    first += 1
            merged += left[first:] + right[second:]
        pairs = merged
        width *= 2
    if reverse:
        pairs.reverse()
    return [value for _, value in pairs]
"""


@transforms("semantic-avoid-sorting")
@transforms("semantic-replace-builtin-sort")
def own_sort(source: Source) -> str:
    """A merge sort, stable as the built-in one and comparing by `<` alone, for `sorted` and `list.sort`."""
    source.builtin("sorted", "len", "range")
    name = source.namer()("in_order", "merge_sorted")

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        call = node.value if isinstance(node, cst.Expr) else None
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.func.attr.value != "sort":
            return node
        if has(call.func.value, cst.Call):
            raise Refusal("what is sorted would be computed twice")
        values = text_of(call.func.value)
        args = "".join(f", {text_of(one).rstrip(', ')}" for one in call.args)
        made = cst.parse_statement(f"{values}[:] = {name}({values}{args})")
        assert isinstance(made, cst.SimpleStatementLine)
        return made.body[0]

    module = rewrite(source.module, change)
    swaps: dict[cst.CSTNode, Made] = {node: cst.Name(name) for node in variables(module) if node.value == "sorted"}
    return define(source.with_text(replace(module, swaps).code), _SORT.format(name=name))
