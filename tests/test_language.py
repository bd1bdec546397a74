"""Docstrings, comments and messages are plain technical English: none of these words stands in them.

A string counts as a message if it holds a space. Texts that reach a model, a record or an id may not change: EXEMPT.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "codechat"
WORDS = (
    "whence|whoever|whichever|told|tells?|besides?|no more than|nobody|somebody|as it is|of its own|of their own|"
    "of one that|by one that|made ready|lest|hangs? on|whatever|wherever|nor do(?:es)?|that of|those of|"
    "those that|those which|those with|with those|goes on|takes? it for|taken for|what is not|what was|as far as|"
    "is due|has come to|in the place of"
)
PLAIN = re.compile(rf"\b(?:{WORDS})\b", re.IGNORECASE)
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__")
EXEMPT: dict[str, tuple[str, ...]] = {
    "datasets/__init__.py": ("tasks of your own have", ": compare no figure", " are not "),
    "report/audit/made.py": ("Can this task be done",),
    "report/generic/repeats.py": ("What repeated samples tell", "The variance of one", "Told apart"),
    "sandbox/inside/encode.py": ("a set of what is not plain data",),
    "sandbox/languages/python/source.py": ("ended by a fence that has no line of its own",),
    "sandbox/suites/assertions/__init__.py": ("a class or a variable in the place", "an exception with attributes, a"),
    "studies/cab/construct/roles.py": ("what it clones", "Did somebody", "solved by nobody", "Does the thread hold"),
    "studies/cab/environments/build_files.py": (": the base cannot be told", ": the image cannot be told"),
    "studies/cab/stage.py": ("The repository builds as it is",),
    "studies/codeif/metrics.py": ("IFE of what",),
    "studies/multicodeif/constraints/coding_style.py": (
        "an opening brace stands in a line",
        "in a line of its own",
        ": the opening brace is not in",
    ),
    "studies/multicodeif/constraints/comment.py": ("a comment in lines", "no comment stands in lines"),
    "studies/multicodeif/constraints/environment.py": ("the code is too short", "the classifier takes it"),
    "studies/multicodeif/constraints/interface.py": (": nothing tells",),
    "studies/multicodeif/constraints/structures.py": (", but nothing tells",),
    "studies/multicodeif/constraints/types.py": (" returns something else", " returns has no written type"),
    "studies/refine/baselines/drifting/changes.py": ("NOTE: an empty input",),
    "studies/refine/metrics.py": ("nobody could decide",),
    "studies/refine/patterns/rules.py": ("nothing uses what", "what was there", "the decorator may do"),
    "studies/refine/patterns/trees/flow.py": ("loop without an end", "loops without an end"),
    "studies/sreval/construct/agents.py": ("They are functions of pytest",),
    "studies/sreval/construct/algorithm.py": ("Nobody could judge", "The requirement stays as it is"),
}
"""By file, beginnings of texts that reach a model, a record or an id."""


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The lines and texts of comments, docstrings and messages of a module."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@pytest.mark.parametrize("room", ROOMS)
def test_prose_is_plain(room: str) -> None:
    found = []
    for path in sorted((PACKAGE / room).rglob("*.py")):
        exempt = EXEMPT.get(str(path.relative_to(PACKAGE)), ())
        for line, text in prose(path):
            if not text.startswith(exempt or ("\0",)):
                found += [f"{path.relative_to(PACKAGE)}:{line}: {word}" for word in PLAIN.findall(text)]
    assert not found, "\n".join(found)


def test_the_list_finds_words() -> None:
    assert PLAIN.findall("Whoever told it, of its own") == ["Whoever", "told", "of its own"]
    assert not PLAIN.findall("The record of a turn.")
