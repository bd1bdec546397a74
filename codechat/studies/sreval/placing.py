"""The place of a Python function in a file, and the file with another function, or with further tests.

All other bytes of the file stay the same. Files of a repository are trusted.
"""

import ast
import functools
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codechat.base.errors import UserError
from codechat.sandbox.inside.text import split_lines
from codechat.sandbox.languages.python.syntax import parse
from codechat.sandbox.suites.repository import file_content

OTHERS = "use the repositories that the tasks were made from"
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A Python file: its lines with their own line ends, and its syntax tree."""

    path: Path
    lines: tuple[str, ...]
    tree: ast.Module


@dataclass(frozen=True)
class Place:
    """A function in a file: the lines of its decorators and of itself, counted from 0, and its indentation."""

    source: Source
    decorators: range
    lines: range
    indent: str

    @property
    def above(self) -> str:
        """The code above the function and its decorators."""
        return "".join(self.source.lines[: min(self.decorators.start, self.lines.start)])


@functools.lru_cache(maxsize=64)
def read_source(path: Path) -> Source:
    """A file of a repository, read once a process. Raises `UserError` if it is no Python."""
    data = file_content(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its escape sequences
            tree = ast.parse(data)
        lines = tuple(split_lines(data.decode("utf-8")))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is no Python in UTF-8: {error}", "leave the task out: dataset.tasks") from None
    return Source(path, lines, tree)


def function_at(path: Path, name: str, lines: tuple[int, int]) -> Place:
    """The function of that name at its first (the `def`) and last line, from 1.

    Lines after the function's end belong to it if they contain nothing but comments. Raises `UserError` if it is
    not there.
    """
    source = read_source(path)
    for node in ast.walk(source.tree):
        if isinstance(node, Function) and (node.name, node.lineno) == (name, lines[0]):
            end = node.end_lineno or node.lineno
            rest = [line.strip() for line in source.lines[end : lines[1]]]
            if end <= lines[1] <= len(source.lines) and all(not line or line.startswith("#") for line in rest):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                indent = source.lines[node.lineno - 1][: node.col_offset]
                return Place(source, range(first - 1, node.lineno - 1), range(node.lineno - 1, lines[1]), indent)
    raise UserError(f"{path} has no function {name} at the lines {lines[0]} to {lines[1]}", OTHERS)


def place_function(place: Place, name: str, program: str) -> bytes:
    """The file with a program instead of the function; decorators stay if the program's function has none."""
    lines, code = place.source.lines, textwrap.dedent(program).strip("\n")
    tree = parse(code)
    found = [each for each in tree.body if isinstance(each, Function) and each.name == name] if tree else []
    node = found[-1] if found else None
    kept = list(lines[place.decorators.start : place.decorators.stop])
    own = indented(code, place.indent)
    if node is None:
        own = [*kept, *own]
    elif not node.decorator_list:
        own[node.lineno - 1 : node.lineno - 1] = kept
    before, after = lines[: place.decorators.start], lines[place.lines.stop :]
    return "".join([*before, *own, *after]).encode("utf-8", "surrogatepass")


def insert_tests(path: Path, owners: Sequence[str], tests: str) -> bytes:
    """The file with tests at the end of a class, named by itself and the classes around it, or at the file's own end.

    Raises `UserError` if the file has no such class.
    """
    source = read_source(path)
    body, end, indent = source.tree.body, len(source.lines), ""
    for name in owners:
        found = [node for node in body if isinstance(node, ast.ClassDef) and node.name == name]
        if not found:
            raise UserError(f"{path} has no class {'::'.join(owners)}", OTHERS)
        body, end = found[-1].body, found[-1].end_lineno or end
        line = source.lines[body[0].lineno - 1]
        indent = line[: len(line) - len(line.lstrip())]
    before = "".join(source.lines[:end])
    gap = "\n" if before.endswith(("\n", "\r")) or not before else "\n\n"
    new = "".join(indented(textwrap.dedent(tests).strip("\n"), indent))
    return "".join([before, gap, new, *source.lines[end:]]).encode("utf-8", "surrogatepass")


def names_of_tests(tests: str) -> list[str]:
    """The names of the test functions that tests define, in order. Raises `ValueError` if there are none."""
    tree = parse(textwrap.dedent(tests))
    if tree is None:
        raise ValueError("its test does not parse")
    names = [node.name for node in tree.body if isinstance(node, Function) and node.name.startswith("test")]
    if not names:
        raise ValueError("its test defines no function whose name begins with test")
    return list(dict.fromkeys(names))


def indented(code: str, indent: str) -> list[str]:
    """The lines of a code, indented, except lines that begin inside a string, whose value would change."""
    lines = [line + "\n" for line in code.split("\n")]
    tree = parse(code)
    values = (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.Constant)) if tree else ()
    texts = [node for node in values if isinstance(node, ast.JoinedStr) or isinstance(node.value, str | bytes)]
    within = {line for text in texts for line in range(text.lineno + 1, (text.end_lineno or text.lineno) + 1)}
    return [line if number in within or not line.strip() else indent + line for number, line in enumerate(lines, 1)]
