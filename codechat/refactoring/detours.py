"""Values that take a detour: through a container, a small function, a class; what arrives is the same object."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from string import Template

import libcst as cst

from codechat.refactoring.base import Refusal, Source, transforms, with_definitions
from codechat.refactoring.hints import hint_for
from codechat.refactoring.trees import EFFECTS, entry, expression, has, inside, replaced, several, statements, unjoined

LOOKERS = ("locals", "vars", "eval", "exec", "globals", "dir", "super")
"""What looks at the scope it is called in."""


@dataclass(frozen=True)
class Site:
    """A statement of a function's own that returns or assigns a value, on a line of its own."""

    line: cst.SimpleStatementLine
    statement: cst.Return | cst.Assign
    value: cst.BaseExpression
    looping: bool

    @property
    def rank(self) -> tuple[bool, bool, bool]:
        plain = isinstance(self.value, cst.Name | cst.Integer | cst.SimpleString | cst.Float)
        return self.looping, plain, not isinstance(self.statement, cst.Return)

    def valued(self, value: cst.BaseExpression) -> cst.SimpleStatementLine:
        """The line with another value."""
        space = cst.SimpleWhitespace(" ")
        made = self.statement.with_changes(value=value)
        if isinstance(made, cst.Return):
            made = made.with_changes(whitespace_after_return=space)
        return self.line.with_changes(body=[made], leading_lines=[])


def sites(function: cst.FunctionDef) -> list[Site]:
    """The sites of a function, those that run once and compute something first; later ones before earlier ones."""
    found = [site for site in _sites(function.body, looping=False) if not has(site.value, *EFFECTS)]
    found.reverse()
    return sorted(found, key=lambda site: site.rank)


def _sites(tree: cst.CSTNode, looping: bool) -> Iterator[Site]:
    for child in tree.children:
        if isinstance(child, cst.SimpleStatementLine) and len(child.body) == 1:
            small = child.body[0]
            starred = isinstance(small, cst.Return | cst.Assign) and isinstance(small.value, cst.Tuple)
            if isinstance(small, cst.Return | cst.Assign) and small.value and not (starred and not small.value.lpar):
                yield Site(child, small, small.value, looping)
        elif isinstance(child, (*_HOLDERS, cst.Match)):
            yield from _sites(child, looping)
        elif isinstance(child, cst.For | cst.While):
            yield from _sites(child, looping=True)


def best_site(source: Source) -> tuple[cst.Module, Site]:
    """The tree, with one statement a line where that is needed to have a site, and its best site."""
    for module in (source.module, unjoined(source.module)):
        found = sites(entry(module, source.entry_point))
        if found:
            return module, found[0]
    raise Refusal("no value to work with")


_HOLDERS = (
    cst.BaseSuite,
    cst.Else,
    cst.ExceptHandler,
    cst.Finally,
    cst.MatchCase,
    cst.If,
    cst.With,
    cst.Try,
    cst.Match,
)
_NODE = "class $Node:\n    def __init__(self, value):\n        self.value = value\n"


@transforms("structural-use-lambda", value="(lambda: $value)()")
@transforms("structural-define-nested-helper", before="def $compute():\n    return $value", value="$compute()")
@transforms(
    "structural-use-closure", before="def $prepare():\n    return lambda: $value", value="$prepare()()", dear=True
)
@transforms("semantic-use-dict", before="$results = {'result': $value}", value="$results['result']")
@transforms("semantic-use-tuple", before="$values = ($value,)", value="$values[0]")
@transforms("semantic-use-stack", before="$stack = []\n$stack.append($value)", value="$stack.pop()")
@transforms(
    "semantic-use-dispatch-table",
    before="$steps = {'finish': lambda: $value}",
    value="$steps['finish']()",
    dear=True,
)
@transforms("semantic-use-backward-iteration", value="next(reversed([$value]))")
@transforms(
    "semantic-use-recursion",
    module="def $descend(value, depth):\n    return $descend(value, depth - 1) if depth else value",
    value="$descend($value, 1)",
)
@transforms(
    "semantic-add-debug-check",
    before="$result = $value\nif __debug__:\n    assert isinstance($result, object)",
    value="$result",
)
@transforms(
    "semantic-define-exception",
    module="class $ImpossibleState(Exception):\n    pass\n\n\n$MISSING = object()",
    before="$result = $value\nif $result is $MISSING:\n    raise $ImpossibleState",
    value="$result",
)
@transforms(
    "semantic-use-cached-property",
    imports=["functools"],
    module="class $Computed:\n    def __init__(self, compute):\n        self.compute = compute\n\n"
    "    @functools.cached_property\n    def value(self):\n        return self.compute()",
    value="$Computed(lambda: $value).value",
    dear=True,
)
@transforms(
    "semantic-use-deque",
    imports=["collections"],
    before="$queue = collections.deque([$value])",
    value="$queue.popleft()",
)
@transforms(
    "semantic-use-counter",
    imports=["collections"],
    before="$tally = collections.Counter({'result': $value})",
    value="$tally['result']",
    dear=True,
)
@transforms(
    "semantic-use-defaultdict",
    imports=["collections"],
    before="$parts = collections.defaultdict(list)\n$parts['result'] = $value",
    value="$parts['result']",
)
@transforms(
    "semantic-use-heapq",
    imports=["heapq"],
    before="$heap = []\nheapq.heappush($heap, $value)",
    value="heapq.heappop($heap)",
)
@transforms(
    "semantic-use-bisect",
    imports=["bisect"],
    before="$ordered = []\nbisect.insort($ordered, $value)",
    value="$ordered[0]",
)
@transforms(
    "semantic-use-reduce",
    imports=["functools"],
    value="functools.reduce(lambda $earlier, $later: $later, [$value], None)",
)
@transforms(
    "semantic-implement-linked-list",
    module=_NODE + "        self.next = None",
    value="$Node($value).value",
)
@transforms(
    "semantic-implement-binary-tree",
    module=_NODE + "        self.left = None\n        self.right = None",
    value="$Node($value).value",
)
@transforms(
    "structural-define-dataclass",
    imports=["dataclasses"],
    module="@dataclasses.dataclass\nclass $Outcome:\n    value: object",
    value="$Outcome($value).value",
)
@transforms(
    "structural-define-named-tuple",
    dear=True,
    imports=["typing"],
    module="class $Outcome(typing.NamedTuple):\n    value: object",
    value="$Outcome($value).value",
)
@transforms(
    "structural-define-protocol",
    imports=["typing"],
    module="class $Comparable(typing.Protocol):\n    def __eq__(self, other: object, /) -> bool: ...",
    before="$result: $Comparable = $value",
    value="$result",
)
@transforms(
    "semantic-include-timing",
    imports=["time"],
    before="$started = time.perf_counter()\n$result = $value\n$elapsed = time.perf_counter() - $started",
    value="$result",
)
@transforms(
    "semantic-log-progress",
    dear=True,
    imports=["logging"],
    before="$result = $value\nlogging.getLogger('steps').debug('the value is %r', $result)",
    value="$result",
)
@transforms(
    "semantic-use-sentinel",
    module="$MISSING = object()",
    before="$found = $MISSING\n$found = $value",
    value="$found",
)
@transforms(
    "structural-use-with",
    dear=True,
    imports=["contextlib"],
    before="with contextlib.nullcontext():\n    $result = $value",
    value="$result",
)
def detour(
    source: Source,
    value: str,
    before: str = "",
    module: str = "",
    *,
    imports: list[str] | None = None,
    dear: bool = False,
) -> str:
    """The best site's value sent through what the templates say; every `$name` but `$value` is a fresh name.

    `dear`: it costs so much that a function which often calls itself would no longer end in time.
    """
    source.without(*LOOKERS)
    if dear:
        source.runs_once(source.entry_point)
    namer = source.namer()
    holes = {hole for text in (before, value, module) for hole in Template(text).get_identifiers()} - {"value"}
    names = {hole: namer(hole, f"{hole}_made") for hole in sorted(holes)}
    if module or imports:
        source = source.with_text(with_definitions(source, *_filled(module, names), imports=imports or []))
    tree, site = best_site(source)
    names["value"] = inside(site.value)
    made = statements("".join(_filled(before, names)))
    line = site.valued(expression("".join(_filled(value, names))))
    lines = [*made, line]
    lines[0] = lines[0].with_changes(leading_lines=site.line.leading_lines)
    return replaced(tree, {site.line: several(lines)}).code  # type: ignore[no-any-return]


def _filled(template: str, names: dict[str, str]) -> list[str]:
    return [Template(template).substitute(names)] if template else []


@transforms("semantic-add-assertion")
def assertion(source: Source) -> str:
    """An assertion on the type of a value: of the literal or built-in that makes it, of any object otherwise."""
    source.builtin("isinstance", "object", "list", "dict", "set", "tuple", "str", "int", "float", "bool", "bytes")
    _, site = best_site(source)
    tree = ast.parse(inside(site.value), mode="eval").body
    kind = hint_for(source, tree)
    return detour(source, before=f"$result = $value\nassert isinstance($result, {kind})", value="$result")


@transforms("semantic-use-string-buffer")
def string_buffer(source: Source) -> str:
    """A text that is surely a `str` (a literal's join, an f-string, `str(...)`) read back from a buffer."""
    source.builtin("str")
    wanted = [site for site in sites(entry(unjoined(source.module), source.entry_point)) if _is_text(site.value)]
    _, best = best_site(source)
    if not wanted or not _is_text(best.value):
        raise Refusal("no value that is surely a text")
    return detour(source, value="io.StringIO($value).getvalue()", imports=["io"])


def _is_text(value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Call):
        func = value.func
        if isinstance(func, cst.Attribute) and isinstance(func.value, cst.SimpleString):
            return func.attr.value == "join" and func.value.prefix == ""
        return isinstance(func, cst.Name) and func.value == "str"
    return isinstance(value, cst.FormattedString)
