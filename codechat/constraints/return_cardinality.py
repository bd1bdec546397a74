"""The types of the several values that a function returns: `language;function;[type,…]`."""

from dataclasses import replace
from functools import partial

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import listed, read_values
from codechat.constraints.published_types import values_seen
from codechat.constraints.python_values import fits, without_annotation
from codechat.constraints.signatures import absent, asked
from codechat.constraints.types import head_of, heads, is_kind, split
from codechat.languages.customs import Customs

_BEGINS_TYPE = frozenset({"chan", "struct", "func", "interface"})


def read(raw: str) -> Answer:
    answer = read_values(raw, 2, "language;function;[type,…]")
    return replace(answer, values=(answer.values[0], *listed(answer.values[1])))


def words(answer: Answer) -> str:
    name, *wanted = answer.values
    return f"{name} must return exactly these values, in this order: {', '.join(wanted)}."


def official(answer: Answer, code: str) -> Finding:
    """Of two types one must be a part of the other's text; commas within a type divide it too."""
    wanted = answer.raw.split(";")[2].strip("[]").split(",")
    returned = values_seen(code, answer.language, answer.values[0])
    met = (
        returned is not None
        and len(returned) == len(wanted)
        and all(text in kind or kind in text for text, kind in zip(returned, wanted, strict=True))
    )
    return Finding(met, f"the published harness sees {returned or 'nothing'} returned")


def guarded(answer: Answer, code: str) -> Finding:
    name, *wanted = answer.values
    functions = asked(answer, code)
    for function in functions:
        for values in _values(function.returns, answer.grammar.customs):
            if len(values) == len(wanted) and all(map(_is_value, values, wanted)):
                return Finding(True, f"line {function.name.line}: {name} returns {', '.join(values)[:80]}")
    if not functions:
        return Finding(False, absent(answer))
    if not answer.grammar.customs.typed and not functions[0].returns:
        return Finding(*without_annotation(code, name, partial(_fit, wanted)))
    returned = functions[0].returns[:80] or "nothing, or a type that is not written"
    return Finding(False, f"line {functions[0].name.line}: {name} returns {returned}, and not {', '.join(wanted)}")


def _values(returns: str, customs: Customs) -> list[list[str]]:
    """The types that a return type stands for: a tuple's parts, also within `Result` and the like."""
    if customs.results_named and returns.startswith("("):
        return [_without_names(split(returns.strip()[1:-1]))]
    if customs.results_listed and returns.startswith("["):
        return [split(returns.strip()[1:-1])]  # no right annotation, but it says what is returned
    return [arguments for name, arguments in heads(returns) if name == "tuple"] or [[returns]]


def _without_names(parts: list[str]) -> list[str]:
    """The types of results that may have names before them: `low, high int` are two integers."""
    named = [
        name if kind and name.isidentifier() and name not in _BEGINS_TYPE else "" for name, _, kind in map(_cut, parts)
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
    """Whether the values of a `return` are the wanted ones; None if some are unknown."""
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
