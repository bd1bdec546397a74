"""How a starter task is written: a function with its inputs. Prompt and reference are the function's own source."""

import ast
import copy
import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from codechat.datasets.reading.rows import TaskRow

Function = TypeVar("Function", bound=Callable[..., Any])
Call = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One task as written: `base` and `plus` hold one argument tuple per call, of values that JSON has."""

    function: Callable[..., Any]
    base: Sequence[Call]
    plus: Sequence[Call]
    atol: float


@dataclass(frozen=True, slots=True)
class Topic:
    """The tasks of one module, in the order in which they are written."""

    entries: list[Entry] = field(default_factory=list)

    def task(self, *, base: Sequence[Call], plus: Sequence[Call], atol: float = 0.0) -> Callable[[Function], Function]:
        """Decorator: the function is the reference, its docstring the problem. The function stays what it was."""

        def remember(function: Function) -> Function:
            self.entries.append(Entry(function, base, plus, atol))
            return function

        return remember

    def rows(self) -> list[TaskRow]:
        """The tasks as rows, HumanEval style: the prompt ends with the docstring, the solution is the rest."""
        return [_row(entry) for entry in self.entries]


@functools.lru_cache(maxsize=1)
def _module(name: str) -> tuple[list[str], ast.Module]:
    """The lines of a module that is loaded, and its tree, which its tasks share: they come one after another."""
    source = inspect.getsource(sys.modules[name])
    return source.splitlines(keepends=True), ast.parse(source)


def _row(entry: Entry) -> TaskRow:
    name = entry.function.__name__
    lines, tree = _module(entry.function.__module__)
    node = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
    docstring_end = node.body[0].end_lineno
    imports = "".join(f"{line}\n" for line in _imports(tree, node))
    return TaskRow(
        task_id=f"starter/{name}",
        prompt=(imports + "\n\n" if imports else "") + "".join(lines[node.lineno - 1 : docstring_end]),
        entry_point=name,
        canonical_solution="".join(lines[docstring_end : node.end_lineno]),
        base_input=[list(call) for call in entry.base],
        plus_input=[list(call) for call in entry.plus],
        atol=entry.atol,
    )


def _imports(tree: ast.Module, node: ast.FunctionDef) -> list[str]:
    """The module's imports that the function uses, its decorators aside."""
    parts = [node.args, *node.body, *([node.returns] if node.returns else [])]
    used = {name.id for part in parts for name in ast.walk(part) if isinstance(name, ast.Name)}
    kept = []
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            names = [alias for alias in statement.names if (alias.asname or alias.name).partition(".")[0] in used]
            if names:
                needed = copy.copy(statement)
                needed.names = names
                kept.append(ast.unparse(needed))
    return kept
