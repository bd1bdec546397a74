"""The modules that programs import, and what to install for them."""

import ast
from collections.abc import Iterable, Iterator, Mapping

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
BROUGHT_BY: Mapping[str, tuple[str, ...]] = {
    "keras": ("keras", "tensorflow-cpu"),
    "seaborn": ("seaborn", "matplotlib"),
}


def requirements(modules: Iterable[str], versions: Mapping[str, str]) -> list[str]:
    """The lines for pip of what modules without dots need, sorted; a package of `versions` in its version there."""
    packages: set[str] = set()
    for module in modules:
        packages.update(BROUGHT_BY.get(module) or (PACKAGES.get(module) or module.lower().replace("_", "-"),))
    return sorted(f"{name}=={versions[name]}" if name in versions else name for name in packages)
