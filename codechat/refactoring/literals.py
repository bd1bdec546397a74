"""Literals under names, and the small calls and operators around them."""

from collections.abc import Iterator

import libcst as cst

from codechat.patterns.expressions import named_constant
from codechat.refactoring.base import Refusal, Source, transforms, with_definitions
from codechat.refactoring.detours import detour
from codechat.refactoring.trees import expression, nodes, reads, replaced, text_of

_NUMBERS = (cst.Integer, cst.Float, cst.Imaginary)


_FIXED = (cst.Parameters, cst.MatchCase, cst.FormattedString, cst.ConcatenatedString, cst.Decorator, cst.Annotation)


def _value(node: cst.CSTNode) -> complex:
    return node.evaluated_value  # type: ignore[attr-defined,no-any-return]


def _literals(tree: cst.CSTNode, *kinds: type[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """Literals that a name can stand for: none in defaults, patterns, f-strings, docstrings, and named constants."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, kinds):
            yield node
        if isinstance(node, cst.MatchCase):
            stack.append(node.body)
        if isinstance(node, _FIXED):
            continue
        if isinstance(node, cst.Expr) and isinstance(node.value, cst.SimpleString):
            continue
        if isinstance(node, cst.Assign) and all(text_of(target.target).isupper() for target in node.targets):
            continue
        stack.extend(reversed(node.children))


@transforms("structural-introduce-named-constants")
def named_constants(source: Source) -> str:
    """A module-level constant for every number other than 0 and 1."""
    namer = source.namer()
    names: dict[str, str] = {}
    swaps: dict[cst.CSTNode, cst.CSTNode] = {}
    for node in _literals(source.module, *_NUMBERS):
        if _value(node) not in (0, 1):
            text = text_of(node).strip("()")
            if text not in names:
                names[text] = namer("NUMBER_" + "".join(c if c.isalnum() else "_" for c in text).upper())
            swaps[node] = cst.Name(names[text])
    made = source.with_text(replaced(source.module, swaps).code)
    return with_definitions(made, "\n".join(f"{name} = {text}" for text, name in names.items()))


def _one_literal(source: Source) -> cst.CSTNode:
    """A literal in a function: a number that deserves a name if there is one, else any number or text."""
    functions = [node for node in source.module.body if isinstance(node, cst.FunctionDef)]
    found = [one for function in functions for one in _literals(function.body, *_NUMBERS, cst.SimpleString)]
    found.sort(key=lambda one: not isinstance(one, _NUMBERS) or _value(one) in (0, 1))
    if not found:
        raise Refusal("no literal to name")
    return found[0]


@transforms("structural-define-constant")
def define_constant(source: Source) -> str:
    """One literal of the function under a name at module level."""
    node = _one_literal(source)
    name = source.namer()("NUMBER" if isinstance(node, _NUMBERS) else "TEXT", "FIXED")
    made = replaced(source.module, {node: cst.Name(name)}).code
    return with_definitions(source.with_text(made), f"{name} = {text_of(node)}")


@transforms("structural-declare-final")
def declare_final(source: Source) -> str:
    """A constant declared final: one that is there, or a new one for a literal."""
    for found in named_constant(source.code):
        name, equal, value = source.lines[found.line - 1].partition(" = ")
        if equal and name.isidentifier():
            lines = list(source.lines)
            lines[found.line - 1] = f"{name}: typing.Final = {value}"
            return with_definitions(source, imports=["typing"]).replace(
                source.lines[found.line - 1], lines[found.line - 1], 1
            )
    node = _one_literal(source)
    name = source.namer()("NUMBER" if isinstance(node, _NUMBERS) else "TEXT", "FIXED")
    imported = source.with_text(with_definitions(source, f"{name}: typing.Final = {text_of(node)}", imports=["typing"]))
    first = _one_literal(imported)
    return replaced(imported.module, {first: cst.Name(name)}).code  # type: ignore[no-any-return]


@transforms("semantic-apply-cache")
def cached_constant(source: Source) -> str:
    """One literal given by a cached function that takes nothing."""
    node = _one_literal(source)
    name = source.namer()("fixed_value", "fixed")
    made = f"@functools.cache\ndef {name}():\n    return {text_of(node)}"
    imported = source.with_text(with_definitions(source, imports=["functools"]))
    changed = replaced(imported.module, {_one_literal(imported): expression(f"{name}()")}).code
    return with_definitions(imported.with_text(changed), made)


@transforms("semantic-use-bit-operations")
def bit_operation(source: Source) -> str:
    """A whole number written as a shift, or as itself or nothing."""
    functions = [node for node in source.module.body if isinstance(node, cst.FunctionDef)]
    for function in functions:
        for node in _literals(function.body, cst.Integer):
            assert isinstance(node, cst.Integer)
            number = node.evaluated_value
            shift = number.bit_length() - 1
            text = f"(1 << {shift})" if number > 1 and number == 1 << shift else f"({node.value} | 0)"
            return replaced(source.module, {node: expression(text)}).code  # type: ignore[no-any-return]
    raise Refusal("no whole number to write by bits")


@transforms("semantic-use-math")
def use_math(source: Source) -> str:
    """A whole number sent through `math.trunc`, which gives it back."""
    imported = source.with_text(with_definitions(source, imports=["math"]))
    functions = [node for node in imported.module.body if isinstance(node, cst.FunctionDef)]
    for function in functions:
        for node in _literals(function.body, cst.Integer):
            made = expression(f"math.trunc({text_of(node)})")
            return replaced(imported.module, {node: made}).code  # type: ignore[no-any-return]
    raise Refusal("no whole number")


def _calls(source: Source) -> Iterator[cst.Call]:
    """Calls of built-ins and methods with positional arguments alone, outside decorators."""
    own = reads(source.module) & {one.name for one in source.code.functions}
    special = {"super", "locals", "globals", "vars", "dir", "eval", "exec"}
    functions = [node for node in source.module.body if isinstance(node, cst.FunctionDef)]
    for function in functions:
        for node in nodes(function.body):
            if isinstance(node, cst.Call) and node.args and not any(one.star or one.keyword for one in node.args):
                name = text_of(node.func)
                generated = any(isinstance(one.value, cst.GeneratorExp) for one in node.args)
                if name not in own | special and not generated and isinstance(node.func, cst.Name | cst.Attribute):
                    yield node


@transforms("structural-use-partial")
def use_partial(source: Source) -> str:
    """The first call with its first argument fixed before; else a value handed on so."""
    source.runs_once()
    imported = source.with_text(with_definitions(source, imports=["functools"]))
    for node in _calls(imported):
        first, *others = [text_of(one.value) for one in node.args]
        made = expression(f"functools.partial({text_of(node.func)}, {first})({', '.join(others)})")
        return replaced(imported.module, {node: made}).code  # type: ignore[no-any-return]
    return detour(source, value="functools.partial(lambda $given: $given, $value)()", imports=["functools"])


@transforms("structural-use-starred")
def use_starred(source: Source) -> str:
    """The first call with its arguments unpacked from a tuple."""
    for node in _calls(source):
        values = ", ".join(text_of(one.value) for one in node.args)
        made = expression(f"{text_of(node.func)}(*({values},))")
        return replaced(source.module, {node: made}).code  # type: ignore[no-any-return]
    return detour(source, value="[*[$value]][0]")


_KEYWORDS = {"sorted": "reverse=False", "enumerate": "start=0", "max": "key=None", "min": "key=None", "sum": "start=0"}


@transforms("structural-use-keyword-arguments")
def keyword_argument(source: Source) -> str:
    """An optional argument of a built-in given by its name with its default, or `str` with its argument named."""
    source.builtin(*_KEYWORDS, "str", "print")
    for node in nodes(source.module):
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name):
            continue
        if any(one.star or one.keyword for one in node.args) or len(node.args) != 1:
            continue
        name, value = node.func.value, text_of(node.args[0].value)
        value = (
            f"({value})" if isinstance(node.args[0].value, cst.GeneratorExp) and not node.args[0].value.lpar else value
        )
        made = f"str(object={value})" if name == "str" else f"{name}({value}, {_KEYWORDS.get(name)})"
        if name == "str" or name in _KEYWORDS:
            return replaced(source.module, {node: expression(made)}).code  # type: ignore[no-any-return]
    return _own_call_by_keyword(source)


def _own_call_by_keyword(source: Source) -> str:
    """A call of one of the program's functions with its last argument named."""
    for function in source.module.body:
        if not isinstance(function, cst.FunctionDef) or function.params.posonly_params or function.decorators:
            continue
        if isinstance(function.params.star_arg, cst.Param):
            continue
        names = [one.name.value for one in function.params.params]
        for node in nodes(source.module):
            called = isinstance(node, cst.Call) and text_of(node.func) == function.name.value
            if called and isinstance(node, cst.Call) and 0 < len(node.args) <= len(names):
                if any(one.star or one.keyword for one in node.args):
                    continue
                last = node.args[-1]
                tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
                named = last.with_changes(keyword=cst.Name(names[len(node.args) - 1]), equal=tight)
                return replaced(source.module, {last: named}).code  # type: ignore[no-any-return]
    raise Refusal("no call whose parameters are known")
