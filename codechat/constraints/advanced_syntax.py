"""A construct of its language that code must use: `language;construct`."""

import ast

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import one_of, read_values
from codechat.constraints.published import captured, tokens, without_comments
from codechat.languages.python.syntax import parse

# For every construct the features that the code must have, all of them; see the grammars.
_FEATURES: dict[str, dict[str, tuple[str, ...]]] = {
    "javascript": {
        "async/await": ("async", "await"),
        "arrow functions": ("arrow_function",),
        "spread operator": ("spread",),
    },
    "python": {
        "generator and yield": ("yield",),
        "list comprehension": ("list_comprehension",),
        "dictionary comprehension": ("dictionary_comprehension",),
        "set comprehension": ("set_comprehension",),
    },
    "go": {"goroutine and channel": ("goroutine", "channel"), "defer statement": ("defer",)},
    "kotlin": {"lambda expression": ("lambda",), "when expression": ("when",)},
    "rust": {"match expression": ("match",), "if let syntax sugar": ("if_let",), "closures": ("closure",)},
}
_PYTHON = {
    "generator and yield": (ast.Yield, ast.YieldFrom),
    "list comprehension": (ast.ListComp,),
    "dictionary comprehension": (ast.DictComp,),
    "set comprehension": (ast.SetComp,),
}
_NODES = {
    "lambda expression": "(lambda_literal) @name",
    "when expression": "(when_expression) @name",
    "match expression": "(match_expression) @name",
    "if let syntax sugar": "(if_expression (let_condition)) @name",
    "closures": "(closure_expression) @name",
}
# The words of which all must be tokens of that kind; Go's `chan` is of another kind from Pygments 2.21 on.
_TOKENS = {
    "async/await": (("Token.Keyword", "async"), ("Token.Keyword", "await")),
    "arrow functions": (("Token.Punctuation", "=>"),),
    "spread operator": (("Token.Punctuation", "..."),),
    "goroutine and channel": (("Token.Keyword", "go"), ("Token.Keyword.", "chan"), ("Token.Operator", "<-")),
    "defer statement": (("Token.Keyword", "defer"),),
}


def read(raw: str) -> Answer:
    answer = read_values(raw, 1, "language;construct")
    if answer.language not in _FEATURES:
        raise ValueError(f"no construct of {answer.language} is known, but of {', '.join(sorted(_FEATURES))}")
    return one_of(answer, answer.values[0], tuple(_FEATURES[answer.language]))


def words(answer: Answer) -> str:
    return f"The code must use this construct of {answer.language}: {answer.values[0]}."


def official(answer: Answer, code: str) -> Finding:
    construct = answer.values[0].lower()
    code = without_comments(code, answer.language)
    if construct in _TOKENS:
        words_of = tokens(code, answer.language)
        found = all(
            any(text == word and (kind.startswith(of) if of.endswith(".") else kind == of) for kind, text in words_of)
            for of, word in _TOKENS[construct]
        )
    elif construct in _PYTHON:
        tree = parse(code)
        found = tree is not None and any(isinstance(node, _PYTHON[construct]) for node in ast.walk(tree))
    else:
        found = bool(captured(answer.language, _NODES[construct], code, "name"))
    return Finding(found, f"the published harness sees {'' if found else 'no '}{answer.values[0]}")


def guarded(answer: Answer, code: str) -> Finding:
    construct = answer.values[0]
    tree = answer.tree(code)
    lines: dict[str, int] = {}
    for feature, found in tree.marked("feature"):
        lines[feature] = min(found.line, lines.get(feature, found.line))
    needed = _FEATURES[answer.language][construct.lower()]
    missing = [feature.replace("_", " ") for feature in needed if feature not in lines]
    if missing:
        return Finding(False, f"the code has no {' and no '.join(missing)}")
    return Finding(True, f"line {min(lines[feature] for feature in needed)} has {construct}")


register(
    ConstraintType(
        "advanced_syntax", "environment", ("syntax", "advanced_syntax"), "rule", read, words, official, guarded
    )
)
