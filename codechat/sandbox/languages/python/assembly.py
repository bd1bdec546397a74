"""The Python program made of a dataset's texts, and the signature that it must keep."""

import ast
import io
import tokenize

from codechat.sandbox.languages.python.syntax import parse


def assemble(prompt: str, solution: str, entry_point: str) -> str:
    """The complete program of a prompt and a canonical solution.

    EvalPlus has two styles. HumanEval+: the prompt is the beginning of the program and the solution continues it.
    MBPP+: the solution is complete and the prompt is a docstring or prose. The first reading that parses and defines
    the entry point is taken; a prompt that is only a docstring is not part of the program. Raises `ValueError` if
    neither reading does.
    """
    joined = prompt if prompt.endswith("\n") else prompt + "\n"
    joined += solution
    alone = parse(prompt)
    is_docstring = alone is not None and all(isinstance(node, ast.Expr) for node in alone.body)
    readings = [solution, joined] if is_docstring else [joined, solution]
    for source in readings:
        tree = parse(source)
        if tree is not None and _definition(tree, entry_point) is not None:
            return source
    raise ValueError(
        f"canonical_solution: neither alone nor after the prompt is it Python that defines '{entry_point}' at top level"
    )


def signature_of(source: str, entry_point: str) -> str | None:
    """The `def` line of the entry point as in the source (possibly several lines), or None.

    A prompt that ends with the `def` line, without a body, has one too.
    """
    for text in (source, source.rstrip() + "\n    pass\n"):
        tree = parse(text)
        node = _definition(tree, entry_point) if tree is not None else None
        if node is not None:
            return _header(text, node)
    return None


def _definition(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """The last top-level function of that name: the one a call would reach."""
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    return found[-1] if found else None


def _header(source: str, node: ast.FunctionDef) -> str:
    """From `def` to the colon that opens the body: the first one outside brackets."""
    lines = list(io.StringIO(source, newline=""))[node.lineno - 1 :]  # `splitlines` knows other ends than Python
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO("".join(lines)).readline):
        if token.type == tokenize.OP and token.string in "([{":
            depth += 1
        elif token.type == tokenize.OP and token.string in ")]}":
            depth -= 1
        elif token.type == tokenize.OP and token.string == ":" and depth == 0:
            row, column = token.end
            return "".join([*lines[: row - 1], lines[row - 1][:column]])
    raise AssertionError(f"no colon ends the header of {node.name}")  # pragma: no cover
