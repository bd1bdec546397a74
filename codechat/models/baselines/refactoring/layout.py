"""What changes nothing but the look: blank lines, indentation, quotes, type hints, and names that only readers see."""

import ast

import libcst as cst

from codechat.models.baselines.refactoring.base import Source, define, insert, same_tree, transforms
from codechat.models.baselines.refactoring.trees import Made, rewrite, text_of, unjoin
from codechat.patterns import patterns


def _lines(source: Source, pattern: str, **options: str) -> set[int]:
    """The lines where a pattern is found."""
    return {found.line for found in patterns()[pattern].present(source.code, options)}


@transforms("cosmetic-insert-blank-before-returns", statement="return")
@transforms("cosmetic-insert-blank-before-loops", statement="loop")
@transforms("cosmetic-insert-blank-before-ifs", statement="if")
def blank_before(source: Source, statement: str) -> str:
    """A blank line above every statement of the kind, or above the comments that belong to it."""
    comments = _lines(source, "comment")
    places = []
    for line in _lines(source, "no_blank_before", statement=statement):
        above = (number for number in range(line, 0, -1) if number - 1 not in comments)
        places.append((next(above), ""))
    return same_tree(source, insert(source.code.lines, places))


@transforms("cosmetic-remove-blank-lines", pattern="blank_line")
@transforms("cosmetic-strip-trailing-spaces", pattern="trailing_space")
def strip_lines(source: Source, pattern: str) -> str:
    """No blank line inside functions, or no space at the end of a line; strings aside."""
    found = _lines(source, pattern)
    kept = [pair for pair in enumerate(source.code.lines, 1) if pattern != "blank_line" or pair[0] not in found]
    return same_tree(source, "\n".join(line.rstrip() if number in found else line for number, line in kept))


@transforms("cosmetic-change-indent-to-two", unit="  ")
@transforms("cosmetic-convert-indent-to-tabs", unit="\t")
def indent_by(source: Source, unit: str) -> str:
    """The program indented by another unit; strings that span lines keep theirs."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        return node.with_changes(indent=None) if isinstance(node, cst.IndentedBlock) else node

    return same_tree(source, rewrite(source.module, change).with_changes(default_indent=unit).code)


@transforms("cosmetic-convert-to-single-quotes", old='"', new="'")
@transforms("cosmetic-use-double-quotes", old="'", new='"')
@transforms("cosmetic-change-docstring-quotes", old='"""', new="'''")
def requote(source: Source, old: str, new: str) -> str:
    """Strings in other quotes, if they need no escape."""

    def fits(text: str) -> bool:
        return len(old) == 3 or not set("'\"\\") & set(text)

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if isinstance(node, cst.SimpleString) and node.quote == old and fits(str(node.raw_value)):
            return node.with_changes(value=f"{node.prefix}{new}{node.raw_value}{new}")
        if isinstance(original, cst.FormattedString) and isinstance(node, cst.FormattedString):
            if node.quote != old or not fits("".join(map(text_of, original.parts))):
                return original
            return node.with_changes(start=node.prefix + new, end=new)
        return node

    return same_tree(source, rewrite(source.module, change).code)


@transforms("cosmetic-prohibit-joined-statements")
def one_a_line(source: Source) -> str:
    """Every statement on a line of its own."""
    return unjoin(source.module).code


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
    while not text and line <= len(source.code.lines) and source.code.lines[line - 1].startswith("#"):
        line += 1
    return insert(source.code.lines, [(line, "from __future__ import annotations")])


@transforms("structural-define-all")
def define_all(source: Source) -> str:
    """`__all__` with every function of the module."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = {source.entry_point, *(node.name for node in source.tree.body if isinstance(node, functions))}
    return define(source, f"__all__ = {sorted(names)!r}")
