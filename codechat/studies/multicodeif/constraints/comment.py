"""The style of comments: `language;style`."""

import re
from collections.abc import Mapping
from functools import cache

from codechat.sandbox.languages import languages
from codechat.sandbox.languages.grammar import Customs, Found, Parsed, Tree
from codechat.studies.multicodeif import constraints
from codechat.studies.multicodeif.constraints import Answer, ConstraintType, Finding, code_of, register
from codechat.studies.multicodeif.constraints.published import comments_kept

_OPTIONAL = frozenset({"main", "toString", "equals", "hashCode", "fmt", "init"})
_DOCUMENTED = (
    "a documentation comment of the language for each function and type, but for an entry point, a test and what"
    " overrides another"
)
_COMMENTS = {
    "single-line comment": "at least one comment, and each comment must end with its line",
    "multi-line comment": "at least one comment, and each must be written so that it may span lines",
    "inline comment": "at least one comment, and each must stand in a line with code",
    "block comment": "a comment in lines of its own above the code that it describes",
}


@cache
def _documentations() -> Mapping[str, str]:
    """The names of documentation comments, each with its language."""
    parsed = [each for each in languages() if isinstance(each, Parsed)]
    return {name: each.names[0] for each in parsed if (name := each.grammar.customs.documentation)}


def _read_comment(raw: str) -> Answer:
    answer = constraints.read_values(raw, 1, "language;style of comments")
    constraints.one_of(answer, answer.values[0], (*_COMMENTS, *_documentations()))
    if answer.language != _documentations().get(answer.values[0].lower(), answer.language):
        raise ValueError(f"{answer.language} has no {answer.values[0]}")
    return answer


def _official_comment(answer: Answer, code: str) -> Finding:
    """Code without comments passes for inline ones, and code without functions for docstrings and GoDoc."""
    met = comments_kept(answer.values[0].lower(), code, answer.language)
    return Finding(met, f"the published harness sees {'' if met else 'no '}{answer.values[0]}")


def guarded(answer: Answer, code: str) -> Finding:
    style = answer.values[0].lower()
    tree, joined = answer.tree(code), answer.grammar.customs.docstrings
    if style in _documentations():
        return _documented(answer, tree)
    comments = _spanning(tree) if joined and style == "multi-line comment" else list(tree.comments)
    if not comments:
        return Finding(False, "the code has no comment")
    if style == "block comment":
        return _above_code(tree, comments)
    for found in comments:
        if problem := _problem(tree, found, style):
            return Finding(False, f"line {found.line}: the comment {problem}")
    return Finding(True, f"all {len(comments)} comments are in the style {answer.values[0]}")


def _problem(tree: Tree, comment: Found, style: str) -> str:
    """The reason why a comment is not in a style; empty if it is."""
    spans = comment.text.startswith(("/*", "{-", '"', "'")) or "\n" in comment.text
    problems = {
        "inline comment": "" if _beside_code(tree, comment) else "stands in a line without code",
        "single-line comment": "is one that may span lines" if spans else "",
        "multi-line comment": "" if spans else "ends with its line",
    }
    return problems[style]


def _documented(answer: Answer, tree: Tree) -> Finding:
    """Whether all functions and types are documented, except an entry point, a test, and an overriding method."""
    customs = answer.grammar.customs
    names = [*tree.classes, *(function.name for function in tree.functions)]
    if not names:
        return Finding(False, "the code has no function or type that could be documented")
    asked = [found for found in names if found.text not in _OPTIONAL and not _overrides(tree, found)] or names
    for found in sorted(asked, key=lambda found: found.start):
        if not (_has_docstring(tree, found) if customs.docstrings else _has_comment(tree, found, customs)):
            return Finding(False, f"line {found.line}: {found.text} has no {answer.values[0]}")
    return Finding(True, f"all {len(asked)} functions and types have their {answer.values[0]}")


def _overrides(tree: Tree, name: Found) -> bool:
    line = tree.data.rfind(b"\n", 0, name.start)
    above = tree.data[:line][-200:].rstrip().rsplit(b"\n", 1)[-1]
    here = tree.data[line + 1 : name.start].split()
    return any(mark in above or mark in here for mark in (b"@Override", b"#[test]", b"@Test", b"override"))


def _has_docstring(tree: Tree, name: Found) -> bool:
    """Whether the first statement after the name's head is a documenting string."""
    between = next((constraints.text_of(tree, name.end, doc.start) for doc in tree.docs if doc.start > name.end), "")
    return bool(re.search(r":\s*(?:#[^\n]*\s*)*\Z", between)) and not re.search(r"\n\s*(?:def|class)\b", between)


def _has_comment(tree: Tree, name: Found, customs: Customs) -> bool:
    """Whether the last comment before the name is documentation, with only the name's own head between them."""
    before = [found for found in tree.comments if found.end <= name.start]
    if not before or not re.match(customs.documents, before[-1].text):
        return False
    between = constraints.text_of(tree, before[-1].end, name.start)
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
    ended = [each for each in before if each.end <= comment.start and each.line == comment.line - 1]
    return any(not tree.data[each.end : comment.start].strip() for each in ended)


def _spanning(tree: Tree) -> list[Found]:
    """The comments and the documenting strings; comments on consecutive lines count as one."""
    joined: list[Found] = []
    for found in tree.comments:
        last = joined[-1] if joined else None
        gap = tree.data[last.end : found.start] if last else b"-"
        if last and re.fullmatch(rb"\r?\n[ \t]*", gap) and not _beside_code(tree, last):
            joined[-1] = Found(f"{last.text}\n{found.text}", last.line, last.start, found.end)
        else:
            joined.append(found)
    return sorted((*joined, *tree.docs), key=lambda found: found.start)


def _beside_code(tree: Tree, comment: Found) -> bool:
    """Whether there is code in the comment's first or last line."""
    text = code_of(tree)
    first = text[text.rfind(b"\n", 0, comment.start) + 1 : comment.start]
    end = text.find(b"\n", comment.end)
    return bool(first.strip() or text[comment.end : end if end >= 0 else None].strip())


def _above_code(tree: Tree, comments: list[Found]) -> Finding:
    for found in comments:
        after = tree.data[found.end :].lstrip(b" \t\r")
        if after.startswith(b"\n") and after[1:].split(b"\n", 1)[0].strip() and not _beside_code(tree, found):
            return Finding(True, f"line {found.line}: a comment stands above the code that it describes")
    return Finding(False, "no comment stands in lines of its own right above code")


register(ConstraintType(
    "comment", "coding_style", ("code_convention", "comment_formatting"), "rule",
    _read_comment,
    lambda answer: f"The code must have comments in the style {answer.values[0]}: "
    f"{_COMMENTS.get(answer.values[0].lower(), _DOCUMENTED)}.",
    _official_comment, guarded,
    form="language;Single-line, Multi-line, Inline or Block comment, or the language's documentation",
    examples=("java;Single-line comment", "python;Python docstring"),
))  # fmt: skip
