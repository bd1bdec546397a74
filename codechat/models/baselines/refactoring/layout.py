"""Blank lines, indentation, quotes, lines: what changes nothing but the look."""

import libcst as cst

from codechat.models.baselines.refactoring.base import Source, insert, same_tree, transforms
from codechat.models.baselines.refactoring.trees import Made, rewrite, text_of, unjoin
from codechat.patterns.layout import blank_line, no_blank_before, trailing_space


@transforms("cosmetic-insert-blank-before-returns", statement="return")
@transforms("cosmetic-insert-blank-before-loops", statement="loop")
@transforms("cosmetic-insert-blank-before-ifs", statement="if")
def blank_before(source: Source, statement: str) -> str:
    """A blank line above every statement of the kind, or above the comments that belong to it."""
    own = {found.line for found in source.code.comments if found.own_line}
    made = []
    for found in no_blank_before(source.code, statement):
        line = found.line
        while line - 1 in own:
            line -= 1
        made.append((line, ""))
    return same_tree(source, insert(source.lines, made))


@transforms("cosmetic-remove-blank-lines")
def no_blank_lines(source: Source) -> str:
    """No blank line inside functions."""
    gone = {found.line for found in blank_line(source.code)}
    return same_tree(source, "\n".join(line for number, line in enumerate(source.lines, 1) if number not in gone))


@transforms("cosmetic-strip-trailing-spaces")
def no_trailing_spaces(source: Source) -> str:
    """No space at the end of a line, strings aside."""
    spaced = {found.line for found in trailing_space(source.code)}
    lines = [line.rstrip() if number in spaced else line for number, line in enumerate(source.lines, 1)]
    return same_tree(source, "\n".join(lines))


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
