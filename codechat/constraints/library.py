"""A library that code must import: `language;name`."""

import re

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import read_values
from codechat.constraints.published_names import imports_seen


def read(raw: str) -> Answer:
    return read_values(raw, 1, "language;library")


def words(answer: Answer) -> str:
    return f"The code must use the library {answer.values[0]}."


def official(answer: Answer, code: str) -> Finding:
    """Any part of a path counts, in the case that is asked for; in Python `import a.b` does not count as one of `a`."""
    name = answer.values[0]
    found = imports_seen(name, code, answer.language)
    return Finding(found, f"the published harness sees {'an' if found else 'no'} import of {name}")


def guarded(answer: Answer, code: str) -> Finding:
    name, customs = answer.values[0], answer.grammar.customs
    for path in answer.tree(code).imports:
        if customs.imports(name, path.text.strip("\"'`<>")):
            return Finding(True, f"line {path.line} imports {name}")
    for source, line in customs.sources(code):
        if name.lower() in re.split(r"[/@?]|(?:\.min)?\.js\b", source.lower()):
            return Finding(True, f"line {line} loads {name}")
    return Finding(False, f"nothing in the code imports {name}")


register(ConstraintType("library", "environment", ("syntax", "library"), "rule", read, words, official, guarded))
