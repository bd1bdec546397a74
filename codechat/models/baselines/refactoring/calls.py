"""What is done around a call of the function: counted, timed, locked, logged, cached; and `append` done otherwise."""

from string import Template

import libcst as cst

from codechat.models.baselines.refactoring import trees
from codechat.models.baselines.refactoring.base import Refusal, Source, define, transforms
from codechat.models.baselines.refactoring.trees import Made, entry, replace, statements, text_of


def _ordinary(source: Source) -> cst.FunctionDef:
    """The entry point, if it neither calls itself, which would multiply what is done around it, nor is a generator."""
    function = entry(source.module, source.entry_point)
    if source.entry_point in trees.reads(function.body) or trees.has(function.body, cst.Yield, into_functions=False):
        raise Refusal("the function calls itself or is a generator")
    return function


_LOG = "logging.getLogger(__name__).debug"
_FAILED = f"try:\n    pass\nexcept Exception:\n    {_LOG}('$entry failed', exc_info=True)\n    raise"
_DONE = f"try:\n    pass\nfinally:\n    {_LOG}('$entry is done')"
_LOCKED = "with $LOCK:\n    pass"
_BEGIN = "$started = time.perf_counter()"
_TOOK = f"try:\n    pass\nfinally:\n    {_LOG}('$entry took %.6f s', time.perf_counter() - $started)"


@transforms("semantic-add-try", template=_FAILED, imports=["logging"])
@transforms("semantic-include-finally", template=_DONE, imports=["logging"])
@transforms("semantic-include-timing", before=_BEGIN, template=_TOOK, imports=["logging", "time"])
@transforms("semantic-use-lock", module="$LOCK = threading.RLock()", template=_LOCKED, imports=["threading"])
@transforms("semantic-include-call-counter", module="$calls = 0", before="global $calls\n$calls += 1")
def wrap(source: Source, before: str = "", template: str = "", module: str = "", imports: tuple[str, ...] = ()) -> str:
    """Statements in front of the function's own, or another statement around them."""
    source.builtin("Exception")
    if template:
        _ordinary(source)
    namer = source.namer()
    names = {name: namer(name, f"call_{name}") for name in ("started", "LOCK", "calls")} | {"entry": source.entry_point}
    definitions = [Template(module).substitute(names)] if module else []
    tree = trees.unjoin(source.with_text(define(source, *definitions, imports=imports)).module)
    function = entry(tree, source.entry_point)
    doc, rest = trees.docstring_split(function.body.body)
    if template:
        rest = [statements(Template(template).substitute(names))[0].with_changes(body=trees.block(rest))]
    first = statements(Template(before).substitute(names))
    return replace(tree, {function.body: trees.block([*doc, *first, *rest])}).code


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
    module = source.with_text(define(source, *definitions, imports=imports)).module
    made = statements(f"{decorator}\ndef f():\n    pass")[0].decorators
    function = entry(module, source.entry_point)
    return replace(module, {function: function.with_changes(decorators=made)}).code


_HASHABLE = {"int", "str", "float", "bool", "bytes"}
_IMPURE = {"global", "nonlocal", "print", "open", "input", "random", "time", "secrets", "datetime", "os", "sys"}


def _is_cacheable(source: Source) -> bool:
    source.without(*_IMPURE)
    source.builtin(*_HASHABLE)
    function = entry(source.module, source.entry_point)
    hints = [node.annotation for node in trees.nodes(function.params) if isinstance(node, cst.Param)]
    return {text_of(one.annotation) if one else "" for one in (*hints, function.returns)} <= _HASHABLE


@transforms("semantic-avoid-append")
def extend(source: Source) -> str:
    """`values.extend([value])` for `values.append(value)`, if no class of the program's own may be meant."""
    source.without("class")

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        method = node.func if isinstance(node, cst.Call) and len(node.args) == 1 else None
        if not isinstance(node, cst.Call) or not isinstance(method, cst.Attribute) or method.attr.value != "append":
            return node
        given = cst.List([cst.Element(node.args[0].value)])
        return node.with_changes(func=method.with_changes(attr=cst.Name("extend")), args=[cst.Arg(given)])

    return trees.rewrite(source.module, change).code
