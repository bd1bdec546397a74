"""Type hints added, taken away and modernised; aliases and the future import."""

import ast
import re
from typing import Any

import libcst as cst

from codechat.patterns.hints import bare_local
from codechat.patterns.names import unused_import
from codechat.refactoring.base import Refusal, Source, transforms, with_definitions, with_insertions
from codechat.refactoring.trees import Made, expression, nodes, rewritten, statements, text_of

_READERS = ("__annotations__", "get_type_hints", "singledispatch", "signature", "dataclass", "NamedTuple", "TypedDict")


@transforms("cosmetic-annotate-parameters", what="parameters")
@transforms("cosmetic-annotate-return-types", what="returns")
def annotate(source: Source, what: str) -> str:
    """`object` for every parameter or result without a hint: the one hint that is right for any value."""
    source.without(*_READERS[:4])
    source.builtin("object")
    owners: set[cst.CSTNode] = set()
    for node in nodes(source.module):
        if isinstance(node, cst.ClassDef):
            owners.update(node.body.body)

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.FunctionDef):
            return node
        hint = cst.Annotation(expression("object"))
        if what == "returns":
            return node if node.returns else node.with_changes(returns=hint)
        params = node.params
        changes: dict[str, Any] = {}
        for kind in ("posonly_params", "params", "kwonly_params"):
            changes[kind] = [_hinted(one, hint) for one in getattr(params, kind)]
        first = "posonly_params" if changes["posonly_params"] else "params"
        if original in owners and changes[first] and getattr(params, first)[0].name.value in ("self", "cls"):
            changes[first][0] = getattr(params, first)[0]
        for kind in ("star_arg", "star_kwarg"):
            if isinstance(getattr(params, kind), cst.Param):
                changes[kind] = _hinted(getattr(params, kind), hint)
        return node.with_changes(params=params.with_changes(**changes))

    return rewritten(source.module, change).code  # type: ignore[no-any-return]


def _hinted(param: cst.Param, hint: cst.Annotation) -> cst.Param:
    if param.annotation:
        return param
    space = cst.SimpleWhitespace(" ")
    equal = cst.AssignEqual(space, space) if param.default else cst.MaybeSentinel.DEFAULT
    return param.with_changes(annotation=hint, equal=equal)


@transforms("cosmetic-strip-parameter-hints", what="parameters")
@transforms("cosmetic-strip-return-hints", what="returns")
def strip_hints(source: Source, what: str) -> str:
    """No hint on parameters, or on results."""
    source.without(*_READERS[:4])

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if what == "returns" and isinstance(node, cst.FunctionDef):
            return node.with_changes(returns=None)
        if what == "parameters" and isinstance(node, cst.Param) and node.annotation:
            tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
            return node.with_changes(annotation=None, equal=tight if node.default else cst.MaybeSentinel.DEFAULT)
        return node

    return rewritten(source.module, change).code  # type: ignore[no-any-return]


@transforms("cosmetic-drop-local-hints")
def drop_local_hints(source: Source) -> str:
    """Annotated assignments in functions as plain ones; a bare annotation is refused, it makes its name local."""
    local: set[cst.CSTNode] = set()
    for function in nodes(source.module):
        if isinstance(function, cst.FunctionDef):
            for node in nodes(function.body):
                if isinstance(node, cst.AnnAssign) and isinstance(node.target, cst.Name):
                    local.add(node)
    for owner in nodes(source.module):
        if isinstance(owner, cst.ClassDef):
            local.difference_update(node for node in nodes(owner))

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if original not in local or not isinstance(node, cst.AnnAssign):
            return node
        if node.value is None:
            raise Refusal("an annotation without a value makes its name local")
        return cst.Assign(targets=[cst.AssignTarget(target=node.target)], value=node.value, semicolon=node.semicolon)

    return rewritten(source.module, change).code  # type: ignore[no-any-return]


_LITERALS: list[tuple[tuple[type[ast.expr], ...], str]] = [
    ((ast.List, ast.ListComp), "list"),
    ((ast.Dict, ast.DictComp), "dict"),
    ((ast.Set, ast.SetComp), "set"),
    ((ast.Tuple,), "tuple"),
    ((ast.JoinedStr,), "str"),
]
_MAKERS = {"len": "int", "sorted": "list", "str": "str", "list": "list", "set": "set", "dict": "dict", "tuple": "tuple"}


def hint_for(source: Source, value: ast.expr) -> str:
    """The type of a value as far as its expression alone tells it, `object` otherwise."""
    if isinstance(value, ast.Constant):
        return type(value.value).__name__ if isinstance(value.value, int | float | str | bytes) else "object"
    for kinds, name in _LITERALS:
        if isinstance(value, kinds):
            return name
    return _MAKERS.get(source.code.origin(value.func), "object") if isinstance(value, ast.Call) else "object"


@transforms("cosmetic-annotate-locals")
def annotate_locals(source: Source) -> str:
    """`name: type = value` at the first assignment of every local variable."""
    wanted = {(found.line, found.what.strip("'")) for found in bare_local(source.code)}
    lines = [line.encode() for line in source.lines]
    edits: list[tuple[int, int, bytes]] = []
    for node in source.code.find(ast.Assign):
        names = [one for one in node.targets if isinstance(one, ast.Name) and (one.lineno, one.id) in wanted]
        if not names:
            continue
        if len(node.targets) > 1:
            raise Refusal("one assignment binds several names")
        edits.append((names[0].lineno, names[0].end_col_offset or 0, f": {hint_for(source, node.value)}".encode()))
    for line, column, text in sorted(edits, reverse=True):
        lines[line - 1] = lines[line - 1][:column] + text + lines[line - 1][column:]
    return "\n".join(line.decode() for line in lines)


@transforms("cosmetic-add-future-annotations")
def future_annotations(source: Source) -> str:
    """`from __future__ import annotations`, where nothing reads annotations while the program runs."""
    source.without(*_READERS)
    body = source.tree.body
    text = body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    line = (body[0].end_lineno or 0) + 1 if text else 1
    while not text and line <= len(source.lines) and source.lines[line - 1].startswith("#"):
        line += 1
    return with_insertions(source.lines, [(line, "from __future__ import annotations")])


@transforms("cosmetic-define-author", text='__author__ = "unknown"')
@transforms("cosmetic-define-version", text='__version__ = "0.1.0"')
def module_variable(source: Source, text: str) -> str:
    """A variable about the module."""
    return with_definitions(source, text)


@transforms("structural-define-all")
def define_all(source: Source) -> str:
    """`__all__` with every function of the module."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = sorted({node.name for node in source.tree.body if isinstance(node, functions)} | {source.entry_point})
    return with_definitions(source, f"__all__ = {names!r}")


@transforms("cosmetic-declare-type-alias")
def type_alias(source: Source) -> str:
    """An alias for a type that the code holds: of its lists, its texts or its numbers."""
    namer = source.namer()
    if any(True for _ in source.code.find(ast.List, ast.ListComp)):
        name, kind = namer("Values"), "list"
    elif any(isinstance(node.value, str) for node in source.code.find(ast.Constant)):
        name, kind = namer("Text"), "str"
    else:
        name, kind = namer("Number"), "int"
    source.builtin(kind)
    return with_definitions(source, f"{name} = {kind}")


_BUILTIN = {"List": "list", "Dict": "dict", "Set": "set", "FrozenSet": "frozenset", "Tuple": "tuple", "Type": "type"}


@transforms("cosmetic-replace-typing-generics")
def modern_generics(source: Source) -> str:
    """`list` for `typing.List` and so on in every hint; imports that nothing reads any more go."""
    source.builtin(*_BUILTIN.values())
    origins = {name: origin for name, origin in source.code.imports.items() if origin.startswith("typing")}

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.Annotation):
            return node

        def swap(_: cst.CSTNode, inner: cst.CSTNode) -> Made:
            if isinstance(inner, cst.Name) and origins.get(inner.value, "").removeprefix("typing.") in _BUILTIN:
                return cst.Name(
                    _BUILTIN[origins[inner.value].removeprefix("typing.")], lpar=inner.lpar, rpar=inner.rpar
                )
            if isinstance(inner, cst.Attribute) and origins.get(text_of(inner.value)) == "typing":
                return cst.Name(_BUILTIN[inner.attr.value]) if inner.attr.value in _BUILTIN else inner
            return inner

        return rewritten(node, swap)

    made = rewritten(source.module, change).code
    return _drop_imports(source.with_text(made), set(_BUILTIN))


@transforms("cosmetic-replace-optional")
def modern_optional(source: Source) -> str:
    """`X | None` for `Optional[X]` and `X | Y` for `Union[X, Y]` in every hint; a quoted name is refused."""
    origins = {name: origin for name, origin in source.code.imports.items() if origin.startswith("typing")}

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.Subscript):
            return node
        head = text_of(node.value)
        kind = origins.get(head, "") if "." not in head else head
        if kind not in ("typing.Optional", "typing.Union"):
            return node
        parts = [text_of(one.slice) for one in node.slice]
        if any('"' in part or "'" in part or "\n" in part for part in parts):
            raise Refusal("a hint holds a quoted name")
        return expression(" | ".join([*parts, *(["None"] if kind == "typing.Optional" else [])]))

    made = rewritten(source.module, change).code
    return _drop_imports(source.with_text(made), {"Optional", "Union"})


@transforms("cosmetic-remove-unused-imports")
def drop_unused_imports(source: Source) -> str:
    """No import that nothing reads."""
    return _drop_imports(source, None)


def _drop_imports(source: Source, names: set[str] | None) -> str:
    unused = {found.what.strip("'") for found in unused_import(source.code)}
    unused = unused if names is None else unused & names

    def bound(alias: cst.ImportAlias) -> str:
        return alias.evaluated_alias or alias.evaluated_name.partition(".")[0]

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
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

    def filled(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if isinstance(node, cst.IndentedBlock) and not node.body:
            return node.with_changes(body=statements("pass"))
        return change(original, node)

    return re.sub(r"\A\n+", "", rewritten(source.module, filled).code)
