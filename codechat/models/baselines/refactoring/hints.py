"""Type hints taken away and modernised, and the imports that serve them."""

import ast
import re

import libcst as cst

from codechat.models.baselines.refactoring.base import Source, define, insert, transforms
from codechat.models.baselines.refactoring.trees import Made, rewrite, statements, text_of
from codechat.patterns.names import unused_import

_READERS = ("__annotations__", "get_type_hints", "singledispatch", "signature", "dataclass", "NamedTuple", "TypedDict")


@transforms("cosmetic-strip-parameter-hints", what=cst.Param)
@transforms("cosmetic-strip-return-hints", what=cst.FunctionDef)
def strip_hints(source: Source, what: type[cst.CSTNode]) -> str:
    """No hint on parameters, or on results."""
    source.without(*_READERS[:4])

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if isinstance(node, what) and isinstance(node, cst.FunctionDef):
            return node.with_changes(returns=None)
        if isinstance(node, what) and isinstance(node, cst.Param) and node.annotation:
            tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
            return node.with_changes(annotation=None, equal=tight if node.default else cst.MaybeSentinel.DEFAULT)
        return node

    return rewrite(source.module, change).code


@transforms("cosmetic-add-future-annotations")
def future_annotations(source: Source) -> str:
    """`from __future__ import annotations`, if nothing reads annotations while the program runs."""
    source.without(*_READERS)
    body = source.tree.body
    text = body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    line = (body[0].end_lineno or 0) + 1 if text else 1
    while not text and line <= len(source.lines) and source.lines[line - 1].startswith("#"):
        line += 1
    return insert(source.lines, [(line, "from __future__ import annotations")])


@transforms("structural-define-all")
def define_all(source: Source) -> str:
    """`__all__` with every function of the module."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = sorted({node.name for node in source.tree.body if isinstance(node, functions)} | {source.entry_point})
    return define(source, f"__all__ = {names!r}")


_BUILTIN = {"List": "list", "Dict": "dict", "Set": "set", "FrozenSet": "frozenset", "Tuple": "tuple", "Type": "type"}


@transforms("cosmetic-replace-typing-generics")
def modern_generics(source: Source) -> str:
    """`list` for `typing.List` and so on in every hint; imports that nothing reads any more go."""
    source.builtin(*_BUILTIN.values())
    origins = source.code.imports

    def swap(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        module, name = "", ""
        if isinstance(node, cst.Name):
            module, _, name = origins.get(node.value, "").rpartition(".")
        elif isinstance(node, cst.Attribute):
            module, name = origins.get(text_of(node.value), ""), node.attr.value
        if module != "typing" or name not in _BUILTIN or not isinstance(node, cst.Name | cst.Attribute):
            return node
        return cst.Name(_BUILTIN[name], lpar=node.lpar, rpar=node.rpar)

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        return rewrite(node, swap) if isinstance(node, cst.Annotation) else node

    return _drop_imports(source.with_text(rewrite(source.module, change).code), set(_BUILTIN))


@transforms("cosmetic-remove-unused-imports")
def drop_unused_imports(source: Source) -> str:
    """No import that nothing reads."""
    return _drop_imports(source, None)


@transforms("semantic-avoid-imports")
def no_imports(source: Source) -> str:
    """No imports, if all that they serve is hints with an equal among the built-ins."""
    return drop_unused_imports(source.with_text(modern_generics(source)))


def _drop_imports(source: Source, names: set[str] | None) -> str:
    unused = {found.what.strip("'") for found in unused_import(source.code)}
    unused = unused if names is None else unused & names

    def bound(alias: cst.ImportAlias) -> str:
        return alias.evaluated_alias or alias.evaluated_name.partition(".")[0]

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if isinstance(node, cst.IndentedBlock) and not node.body:
            return node.with_changes(body=statements("pass"))
        if isinstance(node, cst.ImportFrom) and node.module and text_of(node.module) == "__future__":
            return node
        if not isinstance(node, cst.Import | cst.ImportFrom) or isinstance(node.names, cst.ImportStar):
            return node
        kept = [alias for alias in node.names if bound(alias) not in unused]
        if len(kept) == len(node.names):
            return node
        if not kept:
            return cst.RemoveFromParent()
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return node.with_changes(names=kept)

    return re.sub(r"\A\n+", "", rewrite(source.module, change).code)
