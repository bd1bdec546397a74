"""A construct of its language that code must use: `language;construct`."""

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import one_of, read_values
from codechat.constraints.published_structures import construct_seen
from codechat.languages import languages
from codechat.languages.grammar import Parsed


def read(raw: str) -> Answer:
    answer = read_values(raw, 1, "language;construct")
    known = {each.names[0]: each.grammar.customs.constructs for each in languages() if isinstance(each, Parsed)}
    if not known.get(answer.language):
        having = ", ".join(name for name, constructs in known.items() if constructs)
        raise ValueError(f"no construct of {answer.language} is known, but of {having}")
    return one_of(answer, answer.values[0], tuple(known[answer.language]))


def words(answer: Answer) -> str:
    return f"The code must use this construct of {answer.language}: {answer.values[0]}."


def official(answer: Answer, code: str) -> Finding:
    found = construct_seen(answer.values[0].lower(), code, answer.language)
    return Finding(found, f"the published harness sees {'' if found else 'no '}{answer.values[0]}")


def guarded(answer: Answer, code: str) -> Finding:
    construct = answer.values[0]
    tree = answer.tree(code)
    lines: dict[str, int] = {}
    for feature, found in tree.marked("feature"):
        lines[feature] = min(found.line, lines.get(feature, found.line))
    needed = answer.grammar.customs.constructs[construct.lower()]
    missing = [feature.replace("_", " ") for feature in needed if feature not in lines]
    if missing:
        return Finding(False, f"the code has no {' and no '.join(missing)}")
    return Finding(True, f"line {min(lines[feature] for feature in needed)} has {construct}")


register(
    ConstraintType(
        "advanced_syntax", "environment", ("syntax", "advanced_syntax"), "rule", read, words, official, guarded
    )
)
