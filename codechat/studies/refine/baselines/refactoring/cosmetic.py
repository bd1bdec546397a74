"""Cosmetic changes: comments and docstrings, layout and type hints, names of local variables."""

import ast
import re
from collections.abc import Callable

import libcst as cst

from codechat.sandbox.languages.python.syntax import parameters
from codechat.studies.refine.baselines.refactoring import trees
from codechat.studies.refine.baselines.refactoring.trees import Made, Refusal, Source, insert, same_tree, transforms
from codechat.studies.refine.patterns import patterns
from codechat.studies.refine.patterns.finders.functions import local_bindings
from codechat.studies.refine.patterns.finders.layout import Place, Statement, commented
from codechat.studies.refine.patterns.reading.tree import Function, docstring, first_line

_READERS = ("__annotations__", "get_type_hints", "singledispatch", "signature", "dataclass", "NamedTuple", "TypedDict")
_WORDS = {
    "res": "result", "ret": "result", "tmp": "temporary", "temp": "temporary", "cnt": "count", "idx": "index",
    "ind": "index", "num": "number", "nums": "numbers", "lst": "sequence", "arr": "sequence", "val": "value",
    "vals": "values", "cur": "current", "curr": "current", "prev": "previous", "elem": "element",
    "char": "character", "chars": "characters", "freq": "frequency", "freqs": "frequencies", "pos": "position",
    "ans": "answer", "ptr": "pointer", "str": "content", "msg": "message", "acc": "accumulated", "dct": "mapping",
    "tup": "group", "mx": "largest", "mn": "smallest", "i": "index", "j": "second_index", "k": "third_index",
    "n": "number", "m": "other_number", "x": "value", "y": "other_value", "s": "content", "c": "character",
    "ch": "character", "l": "sequence", "d": "mapping", "t": "total", "p": "position", "q": "pending",
    "a": "first", "b": "second", "r": "result", "f": "outcome", "v": "value", "e": "element", "w": "word",
}  # fmt: skip


def _above(source: Source, node: ast.stmt, text: str) -> tuple[int, str]:
    line = first_line(node)
    return line, re.sub(r"\S.*", "", source.code.lines[line - 1]) + f"# {text}"


@transforms("cosmetic-put-comment-above-loops", statement="loop")
@transforms("cosmetic-put-comment-above-ifs", statement="if")
@transforms("cosmetic-explain-returns", statement="return", place="either")
def comment_above(source: Source, statement: Statement, place: Place = "above") -> str:
    """A line with a comment above every statement of the kind that has none."""
    bare = [one.node for one, has in commented(source.code, statement, place) if not has]
    made = [_above(source, node, _say(node)) for node in bare if isinstance(node, ast.stmt)]
    return same_tree(source, insert(source.code.lines, made))


def _say(node: ast.stmt) -> str:
    if isinstance(node, ast.For | ast.AsyncFor):
        return f"Go through {_short(node.iter)}, one {_short(node.target)} at a time."
    if isinstance(node, ast.While):
        return f"Repeat as long as this holds: {_short(node.test)}."
    if isinstance(node, ast.If):
        return f"Treat the case apart in which {_short(node.test)}."
    value = getattr(node, "value", None)
    return f"The result is {_short(value)}." if value is not None else "There is no result."


def _short(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 40 else f"{text[:37]}..."


@transforms("cosmetic-insert-header-comment", text="# {entry}: a solution in plain Python.")
@transforms("cosmetic-add-licence-line", text="# SPDX-License-Identifier: Apache-2.0")
@transforms("cosmetic-state-python-version", text="# Needs Python 3.11 or later.")
@transforms("cosmetic-add-todo", text="# TODO: measure where the time goes.")
@transforms("cosmetic-add-module-docstring", text='"""{entry} and what it needs."""\n')
def text_at_top(source: Source, text: str) -> str:
    """A comment or docstring at the top of the file."""
    if not text.startswith("#"):
        source.without("__doc__")
    return insert(source.code.lines, [(trees.top_line(source), text.format(entry=source.entry_point))])


@transforms("cosmetic-add-comment", "cosmetic-add-more-comments")
def comment_in_function(source: Source) -> str:
    """A comment above the first statement of a function."""
    for function in source.code.functions:
        body = function.body[1:] if isinstance(function.body[0], ast.Expr) else function.body
        if body and first_line(body[0]) > function.lineno:
            text = f"Work out {function.name.replace('_', ' ')} step by step."
            return same_tree(source, insert(source.code.lines, [_above(source, body[0], text)]))
    raise Refusal("no function has a line for it")


@transforms("cosmetic-remove-comments")
def remove_comments(source: Source) -> str:
    """The program without comments."""
    kept: dict[int, str] = dict(enumerate(source.code.lines, 1))
    for found in source.code.comments:
        kept[found.line] = kept[found.line][: found.column].rstrip()
        if found.own_line:
            del kept[found.line]
    return same_tree(source, "\n".join(kept.values()))


def _begun(function: Function, old: str) -> str:
    words = function.name.strip("_").replace("_", " ")
    return old or f"{words[:1].upper()}{words[1:]}."


def _args(function: Function, old: str) -> str:
    hints = {one.arg: one.annotation for one in parameters(function) if one.arg not in ("self", "cls")}
    lines = [f"    {name}: {ast.unparse(hint) if hint else 'see above'}." for name, hint in hints.items()]
    return "\n".join([_begun(function, old), "\nArgs:", *lines]) if lines and "Args:" not in old else old


def _returns(function: Function, old: str) -> str:
    result = ast.unparse(function.returns) if function.returns else "The result"
    return old if "Returns:" in old else f"{_begun(function, old)}\n\nReturns:\n    {result}."


def _no_examples(function: Function, old: str) -> str:
    text = re.sub(r"(?m)^[ \t]*>>>.*\n?(?:[ \t]*\S.*(?:\n|$))*", "", old)
    return _begun(function, re.sub(r"\n{3,}", "\n\n", text).strip()) if ">>>" in old else old


@transforms("cosmetic-add-docstrings", write=_begun)
@transforms("cosmetic-include-args-section", write=_args)
@transforms("cosmetic-include-returns-section", write=_returns)
@transforms("cosmetic-shorten-docstrings", write=lambda function, old: old.strip().split("\n")[0].strip().rstrip('"\\'))
@transforms("cosmetic-drop-doctests", write=_no_examples)
@transforms("cosmetic-delete-docstrings", write=lambda function, old: "")
def write_docstrings(source: Source, write: Callable[[Function, str], str]) -> str:
    """Every function's docstring set to `write(function, text so far)`, without indentation; an empty text is none."""
    source.without("__doc__")
    lines = list(source.code.lines)
    for function in sorted(source.code.functions, key=lambda one: -one.body[0].lineno):
        node, first = docstring(function), function.body[0]
        old = (ast.get_docstring(function) or "") if node else ""
        new = write(function, old)
        if new == old:
            continue
        start = first_line(first)
        indent, end = lines[start - 1][: first.col_offset], (first.end_lineno or start) if node else start - 1
        behind = lines[end - 1].encode()[first.end_col_offset or 0 :] if node else b""
        if indent.strip() or behind.strip():
            raise Refusal("a docstring would share its line")
        body = [indent + _literal(new, indent)] if new else [f"{indent}pass"] * (len(function.body) == 1)
        lines[start - 1 : end] = body
    return "\n".join(lines)


def _literal(text: str, indent: str) -> str:
    """A docstring's source for a text with its own indentation below the first line."""
    if "\\" in text or '"""' in text or text.endswith('"'):
        raise Refusal("the docstring needs escapes")
    first, *others = text.rstrip().split("\n")
    body = "\n".join([first, *(f"{indent}{line}".rstrip() for line in others)])
    return f'"""{body}\n{indent}"""' if others else f'"""{body}"""'


def _lines(source: Source, pattern: str, **options: str) -> set[int]:
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

    return same_tree(source, trees.rewrite(source.module, change).with_changes(default_indent=unit).code)


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
            if node.quote != old or not fits("".join(map(trees.text_of, original.parts))):
                return original
            return node.with_changes(start=node.prefix + new, end=new)
        return node

    return same_tree(source, trees.rewrite(source.module, change).code)


@transforms("cosmetic-prohibit-joined-statements")
def one_a_line(source: Source) -> str:
    """One statement a line."""
    return trees.unjoin(source.module).code


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

    return trees.rewrite(source.module, change).code


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
    return trees.define(source, f"__all__ = {sorted(names)!r}")


def _long(name: str) -> str:
    return _WORDS.get(name.rstrip("0123456789").lower(), f"{name}_value")


def _camel(name: str) -> str:
    first, *others = name.strip("_").split("_")
    return first + "".join(part.capitalize() for part in others)


@transforms("cosmetic-avoid-single-letter-locals", "cosmetic-rename-single-letter-locals", matches="[A-Za-z]")
@transforms("cosmetic-rename-short-locals", matches=r"\w{1,4}")
@transforms("cosmetic-rename-to-camel-case", matches="[a-z0-9]+(_[A-Za-z0-9]+)+", better=_camel)
@transforms(
    "cosmetic-rename-abbreviations",
    matches=r"(res|ret|te?mp|cnt|idx|ind|nums?|lst|arr|vals?|curr?|prev|elem|chars?|freqs?|pos|ans|ptr|str|msg|acc|dct|"
    r"tup|mx|mn)\d*",
)
def rename_locals(source: Source, matches: str, better: Callable[[str], str] = _long) -> str:
    """A better name for every matching local variable; refuses a name that is more than a variable in the function."""
    source.without(*trees.LOOKERS)
    functions = [node for node in trees.nodes(source.module) if isinstance(node, cst.FunctionDef)]
    order = sorted(source.code.functions, key=lambda one: (one.lineno, one.col_offset))
    if [one.name for one in order] != [one.name.value for one in functions]:
        raise Refusal("the functions are ambiguous")
    namer = source.namer()
    swaps: dict[cst.CSTNode, Made] = {}
    chosen = [one for one in local_bindings(source.code) if re.fullmatch(matches, one.name)]
    for name, _, function in sorted(chosen, key=lambda one: order.index(one.function)):
        body = functions[order.index(function)].body
        found = [one for one in trees.variables(body) if one.value == name]
        if not found or found[0] in swaps:
            continue
        definitions = (cst.Param, cst.FunctionDef, cst.ClassDef, cst.NameItem, cst.ImportAlias)
        bound = [node for node in trees.nodes(body) if isinstance(node, definitions)]
        parts = [
            each for one in bound for each in (trees.nodes(one) if isinstance(one, cst.ImportAlias) else [one.name])
        ]
        others = {one.value for one in parts if isinstance(one, cst.Name)}
        if name in others or trees.has(body, cst.ClassDef):
            raise Refusal(f"'{name}' is more than a variable")
        wanted = better(name)
        new = namer(wanted, f"{wanted}_value", f"current_{wanted}", f"inner_{wanted}", f"further_{wanted}")
        if re.fullmatch(matches, new):
            raise Refusal(f"no better name than {new}")
        swaps |= {one: one.with_changes(value=new) for one in found}
    return trees.replace(source.module, swaps).code
