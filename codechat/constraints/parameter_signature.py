"""The types of a function's parameters in order: `language;function;[type,…]`."""

from dataclasses import replace

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import listed, read_values
from codechat.constraints.published_types import PIECES, Seen, seen
from codechat.constraints.signatures import absent, asked, types_of, unwritten
from codechat.constraints.types import is_kind

_ALSO: dict[str, dict[str, tuple[str, ...]]] = {
    "java": {"tree": ("Tree", "BinaryTree", "Node", "node")},
    "cpp": {"graph": ("graph", "adj", "node")},
    "rust": {"graph": ("graph", "adj")},
}


def read(raw: str) -> Answer:
    answer = read_values(raw, 2, "language;function;[type,…]")
    return replace(answer, values=(answer.values[0], *listed(answer.values[1])))


def words(answer: Answer) -> str:
    name, *wanted = answer.values
    return f"{name} must take exactly these types of parameters, in this order: {', '.join(wanted)}."


def official(answer: Answer, code: str) -> Finding:
    """The parameters of overloaded methods count as one list; in Java a `[][]` is no matrix; `none` is unannotated."""
    name, *wanted = answer.values
    functions = seen(code, answer.language, name)
    if answer.language == "python":
        functions = functions[:1]
    met = _matches(functions, wanted, answer.language)
    return Finding(met, f"the published harness takes the parameters {'' if met else 'not '}for {', '.join(wanted)}")


def _matches(functions: list[Seen], wanted: list[str], language: str) -> bool:
    texts = [(text, array) for each in functions for text, array in zip(each.parameters, _arrays(each), strict=True)]
    return len(texts) == len(wanted) and all(
        _is_of(text, kind.lower(), language, array) for (text, array), kind in zip(texts, wanted, strict=True)
    )


def _arrays(function: Seen) -> tuple[bool, ...]:
    return function.arrays or (False,) * len(function.parameters)


def _is_of(text: str, wanted: str, language: str, array: bool) -> bool:
    """Whether the published harness takes a type's text for the wanted one, in lower case; kinds come before pieces."""
    lower, pieces = text.lower(), (*PIECES[language].get(wanted, ()), *_ALSO.get(language, {}).get(wanted, ()))
    nested = text.count("[" if language == "python" else "<") >= 2
    kinds = {
        ("python", "map"): lower.startswith(("dict", "map")),
        ("python", "matrix"): lower.startswith("list") and nested,
        ("python", "graph"): "graph" in lower or "adj" in lower,
        ("java", "matrix"): ("List" in text or "Array" in text) and nested and "[][]" not in text,
        ("java", "graph"): "graph" in lower and "adj" not in lower,
        ("cpp", "linkedlist"): lower.startswith(("node", "linkedlist", "list")),
        ("cpp", "matrix"): ("vector" in text and nested) or array,
    }
    for (of, kind), met in kinds.items():
        if of == language and kind in wanted:
            return met
    if language == "python":
        return (lower or "none").startswith(wanted)
    return any(piece.lower() in lower for piece in pieces)


def guarded(answer: Answer, code: str) -> Finding:
    name, *wanted = answer.values
    functions = asked(answer, code)
    for function in functions:
        kinds = types_of(function)
        if len(kinds) == len(wanted) and all(map(is_kind, kinds, wanted)):
            return Finding(True, f"line {function.name.line}: {name} takes {', '.join(wanted)}")
        if len(kinds) == len(wanted) and all(
            not kind or is_kind(kind, one) for kind, one in zip(kinds, wanted, strict=True)
        ):
            return Finding(None, unwritten(function))
    if not functions:
        return Finding(False, absent(answer))
    taken = ", ".join(kind[:40] or "a parameter without a type" for kind in types_of(functions[0])) or "nothing"
    return Finding(False, f"line {functions[0].name.line}: {name} takes {taken}, and not {', '.join(wanted)}")


register(
    ConstraintType(
        *("parameter_signature", "interface_specification", ("input_output", "input_order"), "rule"),
        *(read, words, official, guarded),
    )
)
