"""Reading text as Python without running it, and without ever raising."""

import ast
import re
import symtable
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from codechat.languages.python.syntax import parameters, tree_of

LONGEST_ERROR = 200
_BLANK_LINES = re.compile(r"\A(?:[ \t\f]*\n)+")
_SCOPING_WORDS = ("__future__", "global", "nonlocal", "yield", "await", "lambda", ":=")
_SCOPING = tuple(  # one by one: patterns that begin with a word are fast to search
    map(re.compile, (r"import[\s\\]*\*", r"type[\s\\]+\w", r"def[\s\\]+\w+[\s\\]*\[", r"class[\s\\]+\w+[\s\\]*\["))
)
_PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.)(?: |$)")

Compound = ast.If | ast.For | ast.AsyncFor | ast.While | ast.With | ast.AsyncWith | ast.Try | ast.TryStar | ast.Match
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Source:
    """A text read as Python: `tree` if it is a valid module, else `error`, one line. `how`: the repair, if any."""

    text: str
    tree: ast.Module | None
    error: str = ""
    how: str = ""


@dataclass(frozen=True, slots=True)
class _Variant:
    text: str
    how: str


def tidy(text: str) -> str:
    """The text with Unix line ends (as Python reads it), without byte order mark and without blank lines around."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    return _BLANK_LINES.sub("", text).rstrip()


def parse(text: str) -> Source:
    """Read `text` as a module.

    The compiler itself is not used: its time grows with the square of the number of functions, and doubles with every
    nested `finally`. The symbol table finds most errors that the grammar allows, `_misplaced` the rest. Making it takes
    longer than the tree, so it is made only if it may find something.
    """
    try:
        tree = tree_of(text)
        if _has_scoping(text):
            symtable.symtable(text, "<reply>", "exec")
    except SyntaxError as error:
        return Source(text, None, _one_line(f"line {error.lineno}: {error.msg}" if error.lineno else error.msg))
    except (RecursionError, MemoryError):
        return Source(text, None, "nested too deeply to be parsed")
    except UnicodeEncodeError:
        return Source(text, None, "holds half of a surrogate pair, which is no text")
    except (ValueError, OverflowError) as error:
        return Source(text, None, _one_line(str(error)))
    misplaced = _misplaced(tree)
    return Source(text, None if misplaced else tree, misplaced)


def read(text: str, indent: int = 0, known: Source | None = None) -> Source:
    """`text`, or the first repaired variant of it that is valid Python; the error is that of the unchanged text.

    `indent`: columns by which the text is indented because its fence is (in a list, say). `known`: the text as read
    before, which is not parsed again.
    """
    first: Source | None = None
    for variant in _variants(tidy(text), indent):
        source = known if known and known.text == variant.text else parse(variant.text)
        if source.tree is not None:
            return Source(source.text, source.tree, how=variant.how)
        first = first or source
    assert first is not None
    return first


def _variants(text: str, indent: int) -> Iterator[_Variant]:
    if indent:
        yield _Variant(tidy(textwrap.dedent(text)), "")
        yield _Variant(re.sub(rf"(?m)^[ \t]{{1,{min(indent, 99)}}}", "", text), "")
    else:
        yield _Variant(text, "")
        if text[:1] in (" ", "\t"):
            yield _Variant(tidy(textwrap.dedent(text)), "indentation removed")
    if text.lstrip().startswith(">>>"):
        prompts = [match for line in text.split("\n") if (match := _PROMPT.match(line))]
        yield _Variant(tidy("\n".join(match.string[match.end() :] for match in prompts)), "prompts and output removed")
    before, _, after = text.partition("```")
    line = before[before.rfind("\n") + 1 :]
    if after and line.strip() and "#" not in line and after.lstrip("`").startswith("\n"):
        yield _Variant(tidy(before), "ended by a fence that has no line of its own")


def _one_line(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= LONGEST_ERROR else line[: LONGEST_ERROR - 1] + "…"


def suites(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The statement lists of a compound statement that opens no scope; none for any other statement."""
    if not is_compound(statement):
        return []
    if isinstance(statement, ast.Match):
        return [case.body for case in statement.cases]
    found = [statement.body]
    if not isinstance(statement, ast.With | ast.AsyncWith):
        found.append(statement.orelse)
    if isinstance(statement, ast.Try | ast.TryStar):
        found += [*(handler.body for handler in statement.handlers), statement.finalbody]
    return found


def is_compound(statement: ast.stmt) -> TypeGuard[Compound]:
    """Whether a statement contains statements but opens no scope."""
    return isinstance(statement, Compound)


def _has_scoping(text: str) -> bool:
    """Whether the symbol table may find an error in the text, except parameters of one name."""
    return any(word in text for word in _SCOPING_WORDS) or any(pattern.search(text) for pattern in _SCOPING)


def _misplaced(tree: ast.Module) -> str:
    """The error of a misplaced statement or parameter, or an empty text."""
    preamble = True
    for position, statement in enumerate(tree.body):
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__" and not statement.level
        if future and not preamble:
            return f"line {statement.lineno}: from __future__ imports must occur at the beginning of the file"
        docstring = position == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        preamble = preamble and (future or docstring)
    stack = [(statement, False, False) for statement in reversed(tree.body)]
    while stack:
        node, in_function, in_loop = stack.pop()
        if isinstance(node, ast.Return) and not in_function:
            return f"line {node.lineno}: 'return' outside function"
        if isinstance(node, ast.Break | ast.Continue) and not in_loop:
            return f"line {node.lineno}: '{type(node).__name__.lower()}' outside loop"
        if isinstance(node, Definition):
            if twice := _repeated_parameter(node):
                return f"line {node.lineno}: duplicate argument '{twice}' in function definition"
            stack += [(inner, not isinstance(node, ast.ClassDef), False) for inner in node.body]
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            stack += [(inner, in_function, True) for inner in node.body]
            stack += [(inner, in_function, in_loop) for inner in node.orelse]
        else:
            stack += [(inner, in_function, in_loop) for suite in suites(node) for inner in suite]
    return ""


def _repeated_parameter(node: Definition) -> str | None:
    if isinstance(node, ast.ClassDef):
        return None
    counts = Counter(parameter.arg for parameter in parameters(node))
    return next((name for name, count in counts.items() if count > 1), None)
