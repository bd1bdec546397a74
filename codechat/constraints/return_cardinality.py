"""The types of the several values that a function returns: `language;function;[type,…]`."""

import re
from dataclasses import replace
from functools import partial

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import listed, read_values
from codechat.constraints.published import cut, grammar_of, walk, without_comments
from codechat.constraints.published_types import seen
from codechat.constraints.python_values import fits, without_annotation
from codechat.constraints.signatures import absent, asked
from codechat.constraints.types import head_of, heads, is_kind, split

_GO_TYPES = frozenset({"chan", "struct", "func", "interface"})


def read(raw: str) -> Answer:
    answer = read_values(raw, 2, "language;function;[type,…]")
    return replace(answer, values=(answer.values[0], *listed(answer.values[1])))


def words(answer: Answer) -> str:
    name, *wanted = answer.values
    return f"{name} must return exactly these values, in this order: {', '.join(wanted)}."


def official(answer: Answer, code: str) -> Finding:
    """Of two types one must be part of the other's text; commas within a type divide it, too."""
    wanted = answer.raw.split(";")[2].strip("[]").split(",")
    returned = _returned(answer, code)
    met = (
        returned is not None
        and len(returned) == len(wanted)
        and all(text in kind or kind in text for text, kind in zip(returned, wanted, strict=True))
    )
    return Finding(met, f"the published harness sees {returned or 'nothing'} returned")


def _returned(answer: Answer, code: str) -> list[str] | None:
    """The texts of the values that the published harness sees; None if it sees no function."""
    name, language = answer.values[0], answer.language
    if language == "go":
        return _go_returned(without_comments(code, language), name)
    returns = [each.returns for each in seen(code, language, name) if each.returns is not None]
    if language == "python":
        inner = next((found for text in returns if (found := re.search(r"\[(.*?)\]", text))), None)
        return None if inner is None else [part.strip() for part in inner[1].split(",")]
    return [part.strip() for part in returns[0].strip().strip("()").split(",")] if returns else None


def _go_returned(code: str, name: str) -> list[str] | None:
    for node in walk(grammar_of("go").parse(code)):
        named = node.child_by_field_name("name") if node.type == "function_declaration" else None
        if named is None or cut(code, named) != name:
            continue
        result = node.child_by_field_name("result")
        if result is None or result.type == "type_identifier":
            return [] if result is None else [cut(code, result)]
        if result.type == "parameter_list":
            kinds = [
                each.child_by_field_name("type") for each in result.children if each.type == "parameter_declaration"
            ]
            return [cut(code, kind) for kind in kinds]
    return None


def guarded(answer: Answer, code: str) -> Finding:
    name, *wanted = answer.values
    functions = asked(answer, code)
    for function in functions:
        for values in _values(function.returns, answer.language):
            if len(values) == len(wanted) and all(map(_is_value, values, wanted)):
                return Finding(True, f"line {function.name.line}: {name} returns {', '.join(values)[:80]}")
    if not functions:
        return Finding(False, absent(answer))
    if answer.language == "python" and not functions[0].returns:
        return Finding(*without_annotation(code, name, partial(_fit, wanted)))
    returned = functions[0].returns[:80] or "nothing, or a type that is not written"
    return Finding(False, f"line {functions[0].name.line}: {name} returns {returned}, and not {', '.join(wanted)}")


def _values(returns: str, language: str) -> list[list[str]]:
    """The values that a return type may stand for: a tuple's, also within `Result` and the like."""
    if language == "go" and returns.startswith("("):
        return [_go_values(split(returns.strip()[1:-1]))]
    if language == "python" and returns.startswith("["):
        return [split(returns.strip()[1:-1])]  # no right annotation, but it says what is returned
    return [arguments for name, arguments in heads(returns) if name == "tuple"] or [[returns]]


def _go_values(parts: list[str]) -> list[str]:
    """The types of results in Go, which may have names before them: `low, high int` are two integers."""
    named = [
        name if kind and name.isidentifier() and name not in _GO_TYPES else "" for name, _, kind in map(_cut, parts)
    ]
    if not any(named):
        return parts
    kinds: list[str] = []
    for part, name in zip(reversed(parts), reversed(named), strict=True):
        kinds.append(part.removeprefix(name).strip() if name else kinds[-1] if kinds else part)
    return kinds[::-1]


def _cut(part: str) -> tuple[str, str, str]:
    return part.partition(" ")


def _fit(wanted: list[str], values: list[str]) -> bool | None:
    """Whether the values of a `return` are those wanted; None if some cannot be told."""
    if values == ["tuple"]:  # of values that are not told
        return None
    if len(values) != len(wanted):
        return False
    fitting = [fits(kind, one) for kind, one in zip(values, wanted, strict=True)]
    return False if False in fitting else None if None in fitting else True


def _is_value(text: str, wanted: str) -> bool:
    return is_kind(text, wanted) or head_of(text) == head_of(wanted) or text.replace(" ", "") == wanted.replace(" ", "")


register(
    ConstraintType(
        *("return_cardinality", "interface_specification", ("input_output", "output_order"), "rule"),
        *(read, words, official, guarded),
    )
)
