"""What a function computes: moved to a helper, checked, logged, named; numbers named; divisions by `divmod`."""

import ast
from collections.abc import Iterator

import libcst as cst

from codechat.languages.python.syntax import parameters
from codechat.models.baselines.refactoring.base import Refusal, Source, define, transforms
from codechat.models.baselines.refactoring.trees import (
    EFFECTS,
    LOOKERS,
    Made,
    assigned,
    entry,
    expression,
    has,
    nodes,
    reads,
    replace,
    rewrite,
    several,
    small,
    statements,
    text_of,
    unjoin,
    variables,
)
from codechat.patterns.tree import COMPREHENSIONS, FUNCTIONS, children


def _computed(tree: cst.CSTNode) -> Iterator[tuple[cst.SimpleStatementLine, cst.BaseExpression, str]]:
    """The lines in a statement or block, outside loops, that return or assign what they compute.

    Gives line, value and variable, which is empty for a return.
    """
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.SimpleStatementLine):
            found = small(node)
            value, target = (found.value, "") if isinstance(found, cst.Return) else (None, "")
            if isinstance(found, cst.Assign):
                target, value = assigned(node) or ("", None)
            plain = value is None or isinstance(value, cst.Name | cst.Integer | cst.SimpleString | cst.Float)
            if value is not None and not plain and not has(value, *EFFECTS):
                yield node, value, target
        elif not isinstance(node, cst.For | cst.While | cst.FunctionDef | cst.ClassDef):
            stack.extend(reversed(node.children))


_KINDS: dict[type[cst.CSTNode], str] = {
    cst.List: "list", cst.ListComp: "list", cst.Dict: "dict", cst.DictComp: "dict", cst.Set: "set", cst.SetComp: "set",
    cst.Tuple: "tuple", cst.FormattedString: "str", cst.Comparison: "",
}  # fmt: skip
_MAKERS = {"len": "int", "sorted": "list", "str": "str", "list": "list", "set": "set", "dict": "dict", "tuple": "tuple"}


def _kind(value: cst.BaseExpression) -> str:
    """The type of a value as far as its expression alone shows it."""
    return _MAKERS.get(text_of(value.func), "") if isinstance(value, cst.Call) else _KINDS.get(type(value), "")


@transforms("semantic-add-assertion", template="assert isinstance({name}, {kind})")
@transforms("semantic-add-debug-check", template="if __debug__:\n    assert isinstance({name}, {kind})")
def add_assertion(source: Source, template: str) -> str:
    """An assertion on the type of the first value whose type is sure."""
    source.builtin("isinstance", *_MAKERS)
    return _follow(source, {"list", "dict", "set", "tuple", "str", "int"}, template)


@transforms("semantic-log-progress")
def log_progress(source: Source) -> str:
    """The first value logged at debug level; a function that calls itself would pay for that too often."""
    if source.entry_point in reads(entry(source.module, source.entry_point).body):
        raise Refusal("the function calls itself")
    line = 'logging.getLogger(__name__).debug("{name} is %r", {name})'
    return _follow(source.with_text(define(source, imports=["logging"])), None, line)


def _follow(source: Source, kinds: set[str] | None, template: str) -> str:
    """A statement below the first value of these types; a value that is returned gets a name first."""
    source.without(*LOOKERS)
    module = unjoin(source.module)
    for line, value, target in _computed(entry(module, source.entry_point).body):
        if kinds is not None and _kind(value) not in kinds:
            continue
        name = target or source.namer()("result", "outcome", "returned")
        added = statements(template.format(name=name, kind=_kind(value)))
        if target:
            return replace(module, {line: several([line, *added], line.leading_lines)}).code
        made = [*statements(f"{name} = {_whole(value)}"), *added, *statements(f"return {name}")]
        return replace(module, {line: several(made, line.leading_lines)}).code
    raise Refusal("no value to work with")


def _whole(value: cst.BaseExpression) -> str:
    """An expression's text that can stand alone on a line."""
    return text_of(value) if value.lpar or "\n" not in text_of(value) else f"({text_of(value)})"


@transforms("structural-use-named-results")
def named_results(source: Source) -> str:
    """`result = …; return result` for every computed value that is returned."""
    name = source.namer()("result", "outcome", "returned")

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        found = small(node)
        if not isinstance(found, cst.Return) or found.value is None or isinstance(found.value, cst.Name):
            return node
        assert isinstance(node, cst.SimpleStatementLine)
        first, last = statements(f"{name} = {_whole(found.value)}\nreturn {name}")
        return several([first, last.with_changes(trailing_whitespace=node.trailing_whitespace)], node.leading_lines)

    return rewrite(unjoin(source.module), change).code


_WORK = (
    cst.BinaryOperation,
    cst.Call,
    cst.BooleanOperation,
    cst.Comparison,
    cst.ListComp,
)


@transforms("structural-create-helper", nested=False)
@transforms("structural-define-nested-helper", nested=True)
def extract_helper(source: Source, nested: bool) -> str:
    """The largest computation moved into a function, which is given the variables that it reads."""
    source.without(*LOOKERS, "global", "nonlocal", "del")
    module = unjoin(source.module)
    function = entry(module, source.entry_point)
    known, local = _locals(source.with_text(module.code))
    found = []
    for top in function.body.body:
        for line, value, target in _computed(top):
            bound = {one for node in nodes(value) if isinstance(node, cst.CompFor) for one in reads(node.target)}
            read = list(dict.fromkeys(one.value for one in variables(value) if one.value in local))
            lazy = has(value, cst.BooleanOperation, cst.IfExp, cst.ListComp, cst.SetComp, cst.DictComp)
            keeps = has(value, cst.Lambda, cst.GeneratorExp) or (bound & local) or source.entry_point in reads(value)
            if has(value, *_WORK) and not keeps and read and (not lazy or known >= set(read)):
                found.append((len(list(nodes(value))), line, value, target, read))
        known |= {pair[0] for pair in [assigned(top)] if pair}
    if not found:
        raise Refusal("no computation that can be moved")
    _, line, value, target, read = max(found, key=lambda one: one[0])
    name = source.namer()(f"compute_{target}" if target else f"compute_{source.entry_point.strip('_')}", "compute")
    given = ", ".join(read)
    call = expression(f"{name}({given})")
    helper = statements(f"def {name}({given}):\n    return {_whole(value)}")[0]
    first = small(line)
    assert isinstance(first, cst.Return | cst.Assign)
    space = {"whitespace_after_return": cst.SimpleWhitespace(" ")} if isinstance(first, cst.Return) else {}
    changed = line.with_changes(body=[first.with_changes(value=call, **space)])
    if nested:
        made = several([helper, changed.with_changes(leading_lines=[])], line.leading_lines)
        return replace(module, {line: made}).code
    gap = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    below = replace(function, {line: changed}).with_changes(leading_lines=[*gap, *function.leading_lines])
    return replace(module, {function: several([helper, below], gap)}).code


def _locals(source: Source) -> tuple[set[str], set[str]]:
    """The entry point's parameters, and all its names; what comprehensions bind is their own."""
    tops = [node for node in source.tree.body if isinstance(node, FUNCTIONS) and node.name == source.entry_point]
    given = {one.arg for one in parameters(tops[-1])}
    local = set(given)
    stack: list[ast.AST] = list(tops[-1].body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            local.add(node.id)
        local.update(
            filter(None, [getattr(node, "name", None), getattr(node, "rest", None), getattr(node, "asname", None)])
        )
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda, *COMPREHENSIONS)):
            stack += children(node)
    return given, {one for one in local if isinstance(one, str)}


_NUMBERS = (cst.Integer, cst.Float)
_FIXED = (cst.Parameters, cst.MatchCase, cst.FormattedString, cst.ConcatenatedString, cst.Decorator, cst.Annotation)


@transforms("structural-introduce-named-constants")
@transforms("structural-define-constant", only_first=True)
def named_constants(source: Source, only_first: bool = False) -> str:
    """A module-level constant for every number other than 0 and 1 (or the first): none in defaults and patterns."""
    namer = source.namer()
    names: dict[str, str] = {}
    swaps: dict[cst.CSTNode, cst.CSTNode] = {}
    stack: list[cst.CSTNode] = list(reversed(source.module.body))
    while stack and not (only_first and swaps):
        node = stack.pop()
        named = isinstance(node, cst.Assign) and all(text_of(target.target).isupper() for target in node.targets)
        if isinstance(node, _FIXED) or named:
            stack += [node.body] if isinstance(node, cst.MatchCase) else []
            continue
        if isinstance(node, _NUMBERS) and node.evaluated_value not in (0, 1):
            text = text_of(node).strip("()")
            if text not in names:
                names[text] = namer("NUMBER_" + "".join(c if c.isalnum() else "_" for c in text).upper())
            swaps[node] = cst.Name(names[text])
        stack.extend(reversed(node.children))
    if not swaps:
        raise Refusal("no number to name")
    made = source.with_text(replace(source.module, swaps).code)
    return define(made, "\n".join(f"{name} = {text}" for text, name in names.items()))


def _divides(node: cst.CSTNode) -> bool:
    """Whether it is `//`, or a `%` that surely is no formatting: with a number on a side."""
    if not isinstance(node, cst.BinaryOperation) or isinstance(node.operator, cst.FloorDivide):
        return isinstance(node, cst.BinaryOperation)
    text = isinstance(node.left, cst.SimpleString | cst.FormattedString | cst.ConcatenatedString)
    return isinstance(node.operator, cst.Modulo) and any(map(_is_number, (node.left, node.right))) and not text


def _is_number(node: cst.BaseExpression) -> bool:
    made = isinstance(node, cst.Call) and text_of(node.func) in ("len", "int", "abs", "ord", "float", "sum")
    return made or isinstance(node, _NUMBERS)


@transforms("semantic-use-divmod", only_first=True)
@transforms("semantic-replace-remainder-by-divmod")
def use_divmod(source: Source, only_first: bool = False) -> str:
    """`divmod(a, b)[0]` for `a // b` and `divmod(a, b)[1]` for `a % b`."""
    source.builtin("divmod")
    found = [node for node in nodes(source.module) if _divides(node)]
    chosen = set(found[:1] if only_first else found)

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if original not in chosen or not isinstance(node, cst.BinaryOperation):
            return node
        part = 0 if isinstance(node.operator, cst.FloorDivide) else 1
        return expression(f"divmod({text_of(node.left)}, {text_of(node.right)})[{part}]")

    return rewrite(source.module, change).code
