"""Blank lines, indentation, quotes, parentheses, spaces: what changes nothing but the look."""

import io
import tokenize
from typing import Any

import libcst as cst

from codechat.patterns.layout import backslash, blank_line, no_blank_after_docstring, no_blank_before, trailing_space
from codechat.refactoring.base import Refusal, Source, first_line, same_tree, transforms, with_insertions


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
    return same_tree(source, with_insertions(source.lines, made))


@transforms("cosmetic-insert-blank-after-docstrings")
def blank_after_docstring(source: Source) -> str:
    """A blank line below every function's docstring."""
    starts = {found.line for found in no_blank_after_docstring(source.code)}
    ends = [function.body[0].end_lineno or 0 for function in source.code.functions if function.body[0].lineno in starts]
    return same_tree(source, with_insertions(source.lines, [(end + 1, "") for end in ends]))


@transforms("cosmetic-delete-blanks-after-docstrings")
def no_blank_below_docstring(source: Source) -> str:
    """No blank line between a function's docstring and the code below it."""
    gone: set[int] = set()
    for function in source.code.functions:
        line = (function.body[0].end_lineno or 0) + 1
        while len(function.body) > 1 and line < first_line(function.body[1]) and not source.lines[line - 1].strip():
            gone.add(line)
            line += 1
    return same_tree(source, "\n".join(line for number, line in enumerate(source.lines, 1) if number not in gone))


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


class _Indent(cst.CSTTransformer):
    """Blocks that take the module's indentation."""

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        return updated_node.with_changes(indent=None)


@transforms("cosmetic-change-indent-to-two", unit="  ")
@transforms("cosmetic-convert-indent-to-four", unit="    ")
@transforms("cosmetic-convert-indent-to-tabs", unit="\t")
def indent_by(source: Source, unit: str) -> str:
    """The program indented by another unit; strings that span lines keep theirs."""
    made = source.module.visit(_Indent()).with_changes(default_indent=unit)
    return same_tree(source, made.code)


class _Quotes(cst.CSTTransformer):
    """Strings in other quotes, where they need no escape."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self.old, self.new = old, new

    def _fits(self, text: str) -> bool:
        return len(self.old) == 3 or not set("'\"\\") & set(text)

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.BaseExpression:
        node = updated_node
        if node.quote != self.old or not self._fits(node.value[len(node.prefix) + len(node.quote) : -len(node.quote)]):
            return node
        body = node.value[len(node.prefix) + len(self.old) : -len(self.old)]
        return node.with_changes(value=f"{node.prefix}{self.new}{body}{self.new}")

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.BaseExpression:
        node = updated_node
        inner = "".join(cst.Module([]).code_for_node(part) for part in original_node.parts)
        if node.quote != self.old or not self._fits(inner):
            return original_node
        return node.with_changes(start=node.prefix + self.new, end=self.new)


@transforms("cosmetic-use-double-quotes", old="'", new='"')
@transforms("cosmetic-convert-to-single-quotes", old='"', new="'")
@transforms("cosmetic-convert-triple-quotes", old="'''", new='"""')
@transforms("cosmetic-change-docstring-quotes", old='"""', new="'''")
def requote(source: Source, old: str, new: str) -> str:
    """Strings in other quotes."""
    return same_tree(source, source.module.visit(_Quotes(old, new)).code)


class _WrapReturns(cst.CSTTransformer):
    """Every returned value in parentheses."""

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.BaseSmallStatement:
        value = updated_node.value
        if value is None or value.lpar:
            return updated_node
        wrapped = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return updated_node.with_changes(value=wrapped, whitespace_after_return=cst.SimpleWhitespace(" "))


@transforms("cosmetic-put-returns-in-parentheses")
def wrap_returns(source: Source) -> str:
    """Every returned value in parentheses."""
    return same_tree(source, source.module.visit(_WrapReturns()).code)


class _Unwrap(cst.CSTTransformer):
    """Conditions and returned values without parentheses around the whole."""

    def _bare(self, value: cst.BaseExpression | None) -> cst.BaseExpression | None:
        needed = (cst.Tuple, cst.NamedExpr, cst.Yield, cst.GeneratorExp)
        if value is None or not value.lpar or isinstance(value, needed):
            return None
        return None if "\n" in cst.Module([]).code_for_node(value) else value.with_changes(lpar=[], rpar=[])

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.BaseSmallStatement:
        value = self._bare(updated_node.value)
        if value is None:
            return updated_node
        return updated_node.with_changes(value=value, whitespace_after_return=cst.SimpleWhitespace(" "))

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.BaseStatement:
        value = self._bare(updated_node.test)
        space = cst.SimpleWhitespace(" ")
        return updated_node.with_changes(test=value, whitespace_before_test=space) if value else updated_node

    def leave_CompIf(self, original_node: cst.CompIf, updated_node: cst.CompIf) -> cst.CompIf:
        value = self._bare(updated_node.test)
        space = cst.SimpleWhitespace(" ")
        return updated_node.with_changes(test=value, whitespace_before_test=space) if value else updated_node

    def leave_While(self, original_node: cst.While, updated_node: cst.While) -> cst.BaseStatement:
        value = self._bare(updated_node.test)
        space = cst.SimpleWhitespace(" ")
        return updated_node.with_changes(test=value, whitespace_after_while=space) if value else updated_node


@transforms("cosmetic-eliminate-redundant-parentheses")
def unwrap(source: Source) -> str:
    """Conditions and returned values without parentheses that do nothing."""
    return same_tree(source, source.module.visit(_Unwrap()).code)


@transforms("cosmetic-avoid-backslashes")
def no_backslashes(source: Source) -> str:
    """Lines continued in brackets: a backslash inside brackets goes, elsewhere it stays and the result is refused."""
    continued = {found.line for found in backslash(source.code)}
    lines = [line[:-1].rstrip() if number in continued else line for number, line in enumerate(source.lines, 1)]
    return same_tree(source, "\n".join(lines))


_SPACED = {"==", "!=", "<=", ">=", "<", ">", "+=", "-=", "*=", "/=", "//=", "%=", "->", ":="}


@transforms("cosmetic-reformat-commas", commas=True)
@transforms("cosmetic-reformat-operators", commas=False)
def respace(source: Source, commas: bool) -> str:
    """A space after every comma, or around every comparison and assignment."""
    cuts: set[tuple[int, int]] = set()
    tokens = list(tokenize.generate_tokens(io.StringIO(source.code.text).readline))
    depth = 0
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if before.type == tokenize.OP:
            depth += (before.string in "([{") - (before.string in ")]}")
        if token.type != tokenize.OP:
            continue
        closes = after.string in (")", "]", "}") or after.type in (tokenize.NEWLINE, tokenize.NL)
        if commas and token.string == "," and token.end == after.start and not closes:
            cuts.add(token.end)
        if not commas and (token.string in _SPACED or (token.string == "=" and depth == 0)):
            cuts |= {token.start} if before.end == token.start else set()
            cuts |= {token.end} if token.end == after.start else set()
    lines = list(source.lines)
    for row, column in sorted(cuts, reverse=True):
        lines[row - 1] = f"{lines[row - 1][:column]} {lines[row - 1][column:]}"
    return same_tree(source, "\n".join(lines))


class _SplitSignatures(cst.CSTTransformer):
    """Signatures with one parameter on a line."""

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.BaseStatement:
        gap = cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace("    "))
        last = cst.ParenthesizedWhitespace(indent=True)
        params = updated_node.params
        if not list(params.children):
            return updated_node
        if "\n" in cst.Module([]).code_for_node(params):
            raise Refusal("a signature spans lines already")
        changes: dict[str, Any] = {}
        for kind in ("posonly_params", "params", "kwonly_params"):
            changes[kind] = [one.with_changes(comma=cst.Comma(whitespace_after=gap)) for one in getattr(params, kind)]
        for kind in ("star_arg", "star_kwarg", "posonly_ind"):
            node = getattr(params, kind)
            if isinstance(node, cst.Param | cst.ParamStar | cst.ParamSlash):
                changes[kind] = node.with_changes(comma=cst.Comma(whitespace_after=gap))
        made = params.with_changes(**changes)
        made = self._last(made, last)
        return updated_node.with_changes(params=made, whitespace_before_params=gap)

    @staticmethod
    def _last(params: cst.Parameters, space: cst.ParenthesizedWhitespace) -> cst.Parameters:
        """No parameter begins below the last one: its comma is followed by the closing line."""
        closing = cst.Comma(whitespace_after=space)
        if params.star_kwarg:
            return params.with_changes(star_kwarg=params.star_kwarg.with_changes(comma=closing))
        for kind in ("kwonly_params", "star_arg", "params", "posonly_ind", "posonly_params"):
            held = getattr(params, kind)
            if isinstance(held, cst.Param | cst.ParamSlash):
                return params.with_changes(**{kind: held.with_changes(comma=closing)})
            if isinstance(held, list | tuple) and held:
                return params.with_changes(**{kind: [*held[:-1], held[-1].with_changes(comma=closing)]})
        raise Refusal("no parameter to put on a line")


@transforms("cosmetic-split-signatures")
def split_signatures(source: Source) -> str:
    """Every parameter on a line of its own."""
    return same_tree(source, source.module.visit(_SplitSignatures()).code)
