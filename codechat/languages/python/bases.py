"""Classes that would tell how they are written: by what stands as their base, and by the fields of data classes."""

import ast
import builtins
from collections.abc import Mapping

from codechat.languages.python.nodes import Nodes

_KEPT_CLASSES = frozenset({"dataclass", "final", "runtime_checkable", "total_ordering"})
"""Decorators that give back a class."""
_MAKING = frozenset({"NamedTuple", "namedtuple"})
"""Functions that make a class to inherit from."""
_OF_FIELDS = frozenset({"Field", "field", "fields"})


def bases_that_tell(code: Nodes, modules: Mapping[str, str]) -> str:
    """A base that might be no class; empty if there is none.

    The type of an object that stands as a base is called with all that the body of the class binds, its docstring too.
    """
    bases = _Bases(code, modules)
    for each in code.of(ast.ClassDef):
        assert isinstance(each.node, ast.ClassDef)
        if not all(map(bases.is_class, each.node.bases)):
            return f"class {each.node.name}(…)"
    return ""


def renamed_field(code: Nodes) -> str:
    """What gives a field of a data class another name; empty for nothing.

    The methods of a data class are compiled from the names of its fields, and `asdict` reads attributes by them.
    """
    if "dataclass" not in code.identifiers or not code.identifiers & _OF_FIELDS:
        return ""
    for each in code.of(ast.Attribute, ast.Call):
        node = each.node
        if isinstance(node, ast.Attribute) and node.attr == "name" and not isinstance(node.ctx, ast.Load):
            return ".name"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
            return "setattr"
    return ""


class _Bases:
    """Which expressions are surely classes: names that are bound once, by a class or an import, and built-in ones."""

    def __init__(self, code: Nodes, modules: Mapping[str, str]) -> None:
        self._bound, self._modules = code.bound, modules
        self._imported: dict[str, str] = {
            alias.asname or alias.name: alias.name
            for each in code.of(ast.ImportFrom)
            for alias in each.node.names  # type: ignore[attr-defined]
        }
        self._classes = {
            each.node.name  # type: ignore[attr-defined]
            for each in code.of(ast.ClassDef)
            if all(map(self._keeps_class, each.node.decorator_list))  # type: ignore[attr-defined]
        }

    def is_class(self, base: ast.expr) -> bool:
        """Whether a base is a class, or what a module offers as one."""
        if isinstance(base, ast.Subscript):
            return self.is_class(base.value)
        if isinstance(base, ast.Call):
            return self._meant(base.func) in _MAKING
        if isinstance(base, ast.Name) and not self._bound[base.id]:
            return isinstance(getattr(builtins, base.id, object), type)  # what is not known ends the program
        if isinstance(base, ast.Name) and base.id in self._classes:
            return self._bound[base.id] == 1
        return bool(self._meant(base))

    def _keeps_class(self, decorator: ast.expr) -> bool:
        return self._meant(decorator.func if isinstance(decorator, ast.Call) else decorator) in _KEPT_CLASSES

    def _meant(self, node: ast.expr) -> str:
        """The name that a module has for what is imported or taken from it; empty for anything else."""
        if isinstance(node, ast.Name) and self._bound[node.id] == 1:
            return self._imported.get(node.id, "")
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self._modules:
            return node.attr
        return ""
