"""Text parsed as Python once, and questions about its tree."""

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

LONGEST_SOURCE = 50_000
"""Characters of a text that is parsed. Parsing takes up to half a second for so many; no answer to a task has them."""

_MANY_PARTS = 1000
_PART = r"\w\x80-\U0010ffff"
_LONG_IMPORT = rf"(?:(?<![{_PART}])(?:import|from)\.*|,)(?:[{_PART}]+\.){{{_MANY_PARTS}}}"  # compiled at first need
_IN_A_LINE = re.compile(r"[ \t\f]+|\\\r?\n")


@lru_cache(maxsize=320)  # 64 sessions at once read up to five texts each between two turns
def tree_of(text: str) -> ast.Module:
    """The syntax tree, shared by all callers: do not change it.

    Raises the parser's errors: `SyntaxError`, `ValueError`, `RecursionError`, `MemoryError` or `OverflowError`;
    `ValueError` also for more than `LONGEST_SOURCE` characters, and for an import of more than 1,000 dotted parts,
    whose parsing takes quadratic time.
    """
    return fresh_tree_of(text)


def fresh_tree_of(text: str) -> ast.Module:
    """As `tree_of`, for a caller who changes the tree."""
    if len(text) > LONGEST_SOURCE:
        raise ValueError(f"longer than the {LONGEST_SOURCE:,} characters that are read as Python")
    if text.count(".") >= _MANY_PARTS and re.search(_LONG_IMPORT, _IN_A_LINE.sub("", text)):
        raise ValueError(f"an import of more than {_MANY_PARTS} dotted parts")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def parse(text: str) -> ast.Module | None:
    """The syntax tree of `tree_of`, or None if the text is not Python."""
    try:
        return tree_of(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.arg]:
    """Every parameter in order of the signature, `*args` and `**kwargs` included."""
    a = function.args
    return [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs, *([a.kwarg] if a.kwarg else [])]


def assemble(prompt: str, solution: str, entry_point: str) -> str:
    """The complete program of a prompt and a canonical solution. Raises `ValueError` if there is none.

    EvalPlus has two styles. HumanEval+: the prompt is the beginning of the program and the solution continues it.
    MBPP+: the solution is complete and the prompt is a docstring or prose. The first reading that parses and defines
    the entry point is taken; a prompt that is only a docstring is not part of the program.
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
    """The `def` line of the entry point as in the source (possibly several lines), or None. A prompt that ends with the
    `def` line, without a body, has one too."""
    for text in (source, source.rstrip() + "\n    pass\n"):
        tree = parse(text)
        node = _definition(tree, entry_point) if tree is not None else None
        if node is not None:
            return _header(text, node)
    return None


def _definition(tree: ast.Module, name: str) -> ast.FunctionDef | None:
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


FORGIVING = frozenset(("ImportError", "ModuleNotFoundError", "Exception", "BaseException"))


def imported_modules(source: str, *, certain: bool = True) -> list[str]:
    """The dotted names of all modules that a program imports, each once; of `from a import b` both `a` and `a.b`, which
    may be a module too. Relative imports are left out, and what a `try` forgives the absence of, if only the `certain`
    ones are asked for. A text that does not parse imports nothing."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return list(dict.fromkeys(_imports(tree, certain)))


def _imports(node: ast.AST, certain: bool) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name != "*")
    for field, value in ast.iter_fields(node):
        if certain and field == "body" and isinstance(node, ast.Try) and any(map(_forgives, node.handlers)):
            continue
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, ast.AST):
                yield from _imports(inner, certain)


def _forgives(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in FORGIVING) for kind in kinds)


# By the imported module, if the package has another name.
PACKAGES: Mapping[str, str] = {
    "Crypto": "pycryptodome",
    "Levenshtein": "levenshtein",
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "tensorflow": "tensorflow-cpu",
    "yaml": "PyYAML",
}
# A module that works only with another package, or is brought by it.
BROUGHT_BY: Mapping[str, tuple[str, ...]] = {"keras": ("keras", "tensorflow-cpu"), "seaborn": ("seaborn", "matplotlib")}


def requirements(modules: Iterable[str], versions: Mapping[str, str]) -> list[str]:
    """The lines for pip of what modules without dots need, sorted; a package of `versions` in its version there."""
    packages: set[str] = set()
    for module in modules:
        packages.update(BROUGHT_BY.get(module) or (PACKAGES.get(module) or module.lower().replace("_", "-"),))
    return sorted(f"{name}=={versions[name]}" if name in versions else name for name in packages)
