"""The types that a function must take and return: `language;function;type`, or `[type,…]` for several in order."""

from functools import partial

from codechat.sandbox.languages.grammar import Customs, Function, parts
from codechat.studies.multicodeif import constraints
from codechat.studies.multicodeif.constraints import Answer, ConstraintType, Finding, published, register
from codechat.studies.multicodeif.constraints.types import Types, fits, head_of, without_annotation

_RECEIVERS = frozenset({"self", "cls", "this"})
_BEGINS_TYPE = frozenset({"chan", "struct", "func", "interface"})


def _functions_of(answer: Answer, code: str) -> list[Function]:
    """The functions of the answer's name in the code, without a Python method's `self`, in order."""
    return [each for each in answer.tree(code).functions if each.name.text.split("::")[-1] == answer.values[0]]


def _types(answer: Answer, code: str) -> Types:
    """How the code's types are written; a language without that is undecided before."""
    written = answer.grammar.customs.types
    assert written is not None
    return Types(written, answer.tree(code).aliases)


def _unknown(answer: Answer) -> str:
    """Why nothing is known of any code in the answer's language; empty if something is."""
    known = answer.grammar.customs.types is not None
    no_types = "" if known else f"no rule knows how {answer.language} writes types"
    return constraints.lacks("function")(answer) or no_types


def _types_of(function: Function) -> list[str]:
    """The types of its parameters as written, without the receiver's; empty if none is written."""
    return [each.type for each in function.parameters if each.name not in _RECEIVERS]


def _unwritten(function: Function) -> str:
    """The reason why nothing can be said of the parameters, if their types are not written; else empty."""
    return f"line {function.name.line}: not all types of {function.name.text}'s parameters are written"


def _unsure(function: Function, kind: str) -> str:
    return f"line {function.name.line}: nothing tells what kind of data {kind[:60]} is"


def _absent(answer: Answer) -> Finding:
    return Finding(False, f"the code has no function {answer.values[0]}")


def _read_type(raw: str) -> Answer:
    """The answer, if its type is one that both rules know. Raises `ValueError` otherwise."""
    answer = constraints.read_values(raw, 2, "language;function;type")
    kind = answer.values[1]
    if kind not in published.SUPPORTED and not kind.startswith("Struct:"):
        raise ValueError(f"the type '{kind}' is none of {', '.join(sorted(published.SUPPORTED))} and Struct:NAME")
    return answer


def _wanted_as_written(answer: Answer) -> str:
    """The type with its spaces, as the published harness looks for it in `Struct: Name`."""
    return answer.raw.split(";")[2]


def _official_parameter(answer: Answer, code: str) -> Finding:
    """A piece of a type's text is enough: `Point` is an integer."""
    wanted = _wanted_as_written(answer)
    for function in published.seen(code, answer.language, answer.values[0]):
        for text, array in function.typed:
            if published.is_of(text, wanted, answer.language, array=array):
                return Finding(True, f"the published harness takes {text} for {wanted}")
    return Finding(False, f"the published harness takes no parameter for {wanted}")


def _guarded_parameter(answer: Answer, code: str) -> Finding:
    name, wanted = answer.values
    functions, types = _functions_of(answer, code), _types(answer, code)
    unsure = ""
    for function in functions:
        for kind in _types_of(function):
            met = types.is_kind(kind, wanted) if kind else None
            if met:
                return Finding(True, f"line {function.name.line}: {name} takes {kind[:60]}")
            if met is None:
                unsure = unsure or (_unsure(function, kind) if kind else _unwritten(function))
    if not functions:
        return _absent(answer)
    if unsure:
        return Finding(None, unsure)
    taken = ", ".join(kind[:40] or "a parameter without a type" for kind in _types_of(functions[0])) or "nothing"
    return Finding(False, f"line {functions[0].name.line}: {name} takes {taken}, and no {wanted}")


register(ConstraintType(
    "parameter_type", "interface_specification", ("input_output", "input_type"), "rule",
    _read_type, lambda answer: f"A parameter of {answer.values[0]} must be of the type {answer.values[1]}.",
    _official_parameter, _guarded_parameter, unknown=_unknown,
    form=f"language;function;type, one of {', '.join(sorted(published.SUPPORTED))} or Struct:NAME",
    examples=("typescript;countWords;Integer",),
))  # fmt: skip


_read_types = partial(constraints.read_listed, form="language;function;[type,…]")


def _official_parameters(answer: Answer, code: str) -> Finding:
    """The parameters of overloaded methods count as one list; `none` is a parameter without a type."""
    name, *wanted = answer.values
    met = published.takes(code, answer.language, name, wanted)
    return Finding(met, f"the published harness takes the parameters {'' if met else 'not '}for {', '.join(wanted)}")


def _guarded_parameters(answer: Answer, code: str) -> Finding:
    name, *wanted = answer.values
    functions, types = _functions_of(answer, code), _types(answer, code)
    for function in functions:
        kinds = _types_of(function)
        if len(kinds) == len(wanted):
            met = [types.is_kind(kind, one) if kind else None for kind, one in zip(kinds, wanted, strict=True)]
            if all(met):
                return Finding(True, f"line {function.name.line}: {name} takes {', '.join(wanted)}")
            if False not in met:
                kind = kinds[met.index(None)]
                return Finding(None, _unsure(function, kind) if kind else _unwritten(function))
    if not functions:
        return _absent(answer)
    taken = ", ".join(kind[:40] or "a parameter without a type" for kind in _types_of(functions[0])) or "nothing"
    return Finding(False, f"line {functions[0].name.line}: {name} takes {taken}, and not {', '.join(wanted)}")


register(ConstraintType(
    "parameter_signature", "interface_specification", ("input_output", "input_order"), "rule",
    _read_types,
    lambda answer: f"{answer.values[0]} must take exactly these types of parameters, in this order: "
    f"{', '.join(answer.values[1:])}.",
    _official_parameters, _guarded_parameters, unknown=_unknown,
    form="language;function;[type,…]", examples=("rust;paginate;[List,Integer]",),
))  # fmt: skip


def _official_result(answer: Answer, code: str) -> Finding:
    """A piece of the type's text is enough; of Rust's functions only the first with a return type is looked at."""
    wanted = _wanted_as_written(answer)
    text = published.returned_as(code, answer.language, answer.values[0], wanted)
    said = "no return type" if text is None else text
    return Finding(text is not None, f"the published harness takes {said} for {wanted}")


def _guarded_result(answer: Answer, code: str) -> Finding:
    name, wanted = answer.values
    functions, types = _functions_of(answer, code), _types(answer, code)
    met = [types.is_kind(_one_value(each.returns, answer.grammar.customs), wanted) for each in functions]
    if True in met:
        function = functions[met.index(True)]
        return Finding(True, f"line {function.name.line}: {name} returns {function.returns[:60]}")
    if not functions:
        return _absent(answer)
    if not answer.grammar.customs.typed and not functions[0].returns:
        return Finding(*without_annotation(code, name, partial(_fits_one, wanted)))
    if None in met or types.infers(functions[0]):
        return Finding(None, _unsure(functions[0], functions[0].returns or f"that {name} returns"))
    returned = functions[0].returns[:60] or "a type that is not written"
    return Finding(False, f"line {functions[0].name.line}: {name} returns {returned}, and not {wanted}")


register(ConstraintType(
    "return_type", "interface_specification", ("input_output", "output_type"), "rule",
    _read_type, lambda answer: f"{answer.values[0]} must return the type {answer.values[1]}.",
    _official_result, _guarded_result, unknown=_unknown,
    form=f"language;function;type, one of {', '.join(sorted(published.SUPPORTED))} or Struct:NAME",
    examples=("kotlin;load;Map",),
))  # fmt: skip


def _official_results(answer: Answer, code: str) -> Finding:
    """Of two types one must be a part of the other's text; commas within a type divide it too."""
    wanted = answer.raw.split(";")[2].strip("[]").split(",")
    returned = published.values_seen(code, answer.language, answer.values[0])
    met = (
        returned is not None
        and len(returned) == len(wanted)
        and all(text in kind or kind in text for text, kind in zip(returned, wanted, strict=True))
    )
    return Finding(met, f"the published harness sees {returned or 'nothing'} returned")


def _guarded_results(answer: Answer, code: str) -> Finding:
    name, *wanted = answer.values
    functions, types = _functions_of(answer, code), _types(answer, code)
    unsure = False
    for function in functions:
        for values in _values(function.returns, answer.grammar.customs, types):
            met = [_is_value(types, *pair) for pair in zip(values, wanted, strict=False)]
            if len(values) == len(wanted) and all(met):
                return Finding(True, f"line {function.name.line}: {name} returns {', '.join(values)[:80]}")
            unsure |= (len(values) == len(wanted) and False not in met) or values == ["auto"]
    if not functions:
        return _absent(answer)
    if not answer.grammar.customs.typed and not functions[0].returns:
        return Finding(*without_annotation(code, name, partial(_fit_all, wanted)))
    if unsure or types.infers(functions[0]):
        return Finding(None, _unsure(functions[0], functions[0].returns or f"that {name} returns"))
    returned = functions[0].returns[:80] or "nothing, or a type that is not written"
    return Finding(False, f"line {functions[0].name.line}: {name} returns {returned}, and not {', '.join(wanted)}")


def _fits_one(wanted: str, values: list[str]) -> bool | None:
    """Whether the value of a `return` is of the type; None if that is unknown."""
    return fits("tuple" if len(values) > 1 else values[0] if values else "None", wanted)


def _one_value(returns: str, customs: Customs) -> str:
    """The type of the only returned value, without an error, which is left out as in a `Result`."""
    if not (customs.results_named and returns.startswith("(")):
        return returns
    values = _without_names(parts(returns.strip()[1:-1], ","))
    return values[0] if len(values) == 1 or values[1:] == ["error"] else returns


def _values(returns: str, customs: Customs, types: Types) -> list[list[str]]:
    """The types that a return type stands for: a tuple's parts, also within `Result` and the like."""
    if customs.results_named and returns.startswith("("):
        return [_without_names(parts(returns.strip()[1:-1], ","))]
    if customs.results_listed and returns.startswith("["):
        return [parts(returns.strip()[1:-1], ",")]  # no right annotation, but it says what is returned
    return [arguments for name, arguments in types.heads(returns) if name in types.names("tuple")] or [[returns]]


def _without_names(parts: list[str]) -> list[str]:
    """The types of results that may have names before them: `low, high int` are two integers."""
    named = [
        name if kind and name.isidentifier() and name not in _BEGINS_TYPE else ""
        for name, _, kind in (part.partition(" ") for part in parts)
    ]
    if not any(named):
        return parts
    kinds: list[str] = []
    for part, name in zip(reversed(parts), reversed(named), strict=True):
        kinds.append(part.removeprefix(name).strip() if name else kinds[-1] if kinds else part)
    return kinds[::-1]


def _fit_all(wanted: list[str], values: list[str]) -> bool | None:
    """Whether the values of a `return` are the wanted ones; None if some are unknown."""
    if values == ["tuple"]:  # of unknown values
        return None
    if len(values) != len(wanted):
        return False
    fitting = {fits(kind, one) for kind, one in zip(values, wanted, strict=True)}
    return False if False in fitting else None if None in fitting else True


def _is_value(types: Types, text: str, wanted: str) -> bool | None:
    same = head_of(text) == head_of(wanted) or text.replace(" ", "") == wanted.replace(" ", "")
    return same or types.is_kind(text, wanted)


register(ConstraintType(
    "return_cardinality", "interface_specification", ("input_output", "output_order"), "rule",
    _read_types,
    lambda answer: f"{answer.values[0]} must return exactly these values, in this order: "
    f"{', '.join(answer.values[1:])}.",
    _official_results, _guarded_results, unknown=_unknown,
    form="language;function;[type,…]", examples=("go;divide;[int,error]",),
))  # fmt: skip
