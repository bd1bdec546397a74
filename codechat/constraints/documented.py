"""Whether the functions and types of a program are documented in the way of their language."""

import re

from codechat.languages.customs import Customs
from codechat.languages.grammar import Found, Tree

_OPTIONAL = frozenset({"main", "toString", "equals", "hashCode", "fmt", "init"})


def undocumented(tree: Tree, customs: Customs) -> tuple[int, list[Found]]:
    """The number of functions and types, and the names of those that have no documentation.

    An entry point, a test, and a method that overrides one need none.
    """
    names = [*tree.classes, *(function.name for function in tree.functions)]
    asked = [found for found in names if found.text not in _OPTIONAL and not _overrides(tree, found)] or names
    if customs.docstrings:
        missing = [found for found in asked if not _has_docstring(tree, found)]
    else:
        missing = [found for found in asked if not _has_comment(tree, found, customs)]
    return len(asked), sorted(missing, key=lambda found: found.start)


def _overrides(tree: Tree, name: Found) -> bool:
    line = tree.data.rfind(b"\n", 0, name.start)
    above = tree.data[:line][-200:].rstrip().rsplit(b"\n", 1)[-1]
    here = tree.data[line + 1 : name.start]
    return any(mark in above or mark in here.split() for mark in (b"@Override", b"#[test]", b"@Test", b"override"))


def _has_docstring(tree: Tree, name: Found) -> bool:
    """Whether the first statement behind the name's head is a documenting string."""
    for doc in tree.docs:
        if doc.start > name.end:
            between = tree.data[name.end : doc.start].decode("utf-8", "replace")
            return bool(re.search(r":\s*(?:#[^\n]*\s*)*\Z", between)) and not re.search(
                r"\n\s*(?:def|class)\b", between
            )
    return False


def _has_comment(tree: Tree, name: Found, customs: Customs) -> bool:
    """Whether the last comment before the name is documentation, with nothing between but the name's own head."""
    before = [found for found in tree.comments if found.end <= name.start]
    if not before or not re.match(customs.documents, before[-1].text):
        return False
    between = tree.data[before[-1].end : name.start].decode("utf-8", "replace")
    if re.search(r"[;{}]", between) or len(between) > 500:
        return False
    if not customs.named:
        return True
    if re.search(r"\n[ \t\r]*\n", between):
        return False
    start = next((found for found in reversed(before) if not _joined(tree, found, before)), before[-1])
    return bool(re.match(rf"(?:{customs.documents})\s*(?:A |An |The )?{re.escape(name.text)}\b", start.text))


def _joined(tree: Tree, comment: Found, before: list[Found]) -> bool:
    """Whether a comment continues the one on the line above it."""
    return any(
        other.end <= comment.start
        and not tree.data[other.end : comment.start].strip()
        and other.line == comment.line - 1
        for other in before
    )
