"""A function or method that code must call: `language;name`."""

import re

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import read_values
from codechat.constraints.published_structures import operations_seen
from codechat.languages.grammar import Found, Tree

# What precedes these names is their one holder; of others (`str.upper`, `Vec::push`) it is a type of values.
_HOLDERS = frozenset({"Collections", "Math", "JSON", "Object", "File", "fmt", "math", "strings", "os", "time"})


def read(raw: str) -> Answer:
    return read_values(raw, 1, "language;function")


def words(answer: Answer) -> str:
    return f"The code must call {answer.values[0]}."


def official(answer: Answer, code: str) -> Finding:
    """In Java the object of a call counts as called too; macros, keywords and properties count in no language."""
    found = operations_seen(code, answer.language, [answer.values[0]])
    return Finding(found, f"the published harness sees {'a' if found else 'no'} call of {answer.values[0]}")


def guarded(answer: Answer, code: str) -> Finding:
    name = answer.values[0]
    *before, wanted = re.split(r"\.|::", name)
    holder = before[-1] if before and before[-1] in _HOLDERS else ""
    tree = answer.tree(code)
    called = (*tree.calls, *(found for _, found in tree.marked("property")))
    for call in sorted(called, key=lambda found: found.start):
        if call.text == wanted and _held(call, holder, tree):
            return Finding(True, f"line {call.line} calls {name}")
    return Finding(False, f"nothing in the code calls {name}")


def _held(call: Found, holder: str, tree: Tree) -> bool:
    """Whether a call belongs to the holder, or to nothing, as after a static import."""
    before = tree.data[max(0, call.start - 200) : call.start].decode("utf-8", "replace").rstrip()
    return not holder or not before.endswith((".", "::")) or bool(re.search(rf"\b{holder}\s*(?:\.|::)$", before))


register(ConstraintType("invocation", "environment", ("syntax", "function"), "rule", read, words, official, guarded))
