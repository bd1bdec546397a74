"""What a request asked for and what is left of it, where that turns on whether to remove or to modify.

A comment that moved to a line of its own is not removed, and a docstring that is gone is not converted.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from codechat.patterns.base import Occurrence, at
from codechat.patterns.finders.comments import is_elif, spoken_code
from codechat.patterns.finders.loops import index_loop
from codechat.patterns.finders.names import local_bindings
from codechat.patterns.finders.usage import call
from codechat.patterns.reading.code import Code
from codechat.patterns.reading.tree import COMPREHENSIONS, FUNCTIONS, docstring, walk
from codechat.patterns.remnants.remains import remains


def words_of(text: str) -> str:
    """A text's words in lower case, one blank between them."""
    return " ".join(re.findall(r"\w+", text.lower()))


@remains("remove comment")
def moved_comments(code: Code, old: Code, options: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Comments that say what one said that was to go, beside its code or with another mark."""
    if code is old:
        return iter(())
    if options.get("own_line") is False:
        went = {words_of(one.text) for one in old.comments if not one.own_line}
        found = [one for one in code.comments if one.own_line and words_of(one.text) in went]
    elif "TODO" in options.get("matches", ""):
        marked = [one for one in old.comments if re.search(options["matches"], one.text, re.IGNORECASE)]
        went = {words_of(re.sub(options["matches"], "", one.text, flags=re.IGNORECASE)) for one in marked}
        went = {text for text in went if " " in text}
        found = [
            one for one in code.comments
            if _DISGUISED.search(one.text) or any(text in words_of(one.text) for text in went)
        ]  # fmt: skip
    else:
        found = []
    return (Occurrence(one.line) for one in found)


_DISGUISED = re.compile(r"\bto[ _-]+do\b|\bfix[ _-]+me\b|\bt-o-d-o\b|\bt\.o\.d\.o", re.IGNORECASE)


@remains("remove code_in_comment")
def quoted_code(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Comments that hold code which a comment held before, with more around it, or a stub of such code."""
    if code is old:
        return
    texts = {one.line: one.text.lstrip("# \t").strip() for one in old.comments}
    held = {texts[line] for line in spoken_code(old) if len(texts[line]) > 4}
    stubs = [{*words_of(texts[line]).split()} for line in spoken_code(old)]
    known = {*texts.values()}
    for one in code.comments:
        words = {*words_of(one.text).split()}
        cut = words and one.text.lstrip("# \t").strip() not in known and any(words <= stub for stub in stubs)
        yield from [Occurrence(one.line)] if cut or any(text in one.text for text in held) else []


@remains("any_docstring", "docstring", "module_docstring")
def kept_texts(code: Code, old: Code, options: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Strings that say what a docstring said, and are none; examples that lost their prompt or became comments."""
    if code is old:
        return
    nodes = [*old.find(ast.Module, ast.ClassDef, *FUNCTIONS)]
    texts = [str(text.value) for one in nodes if (text := docstring(one))]
    if options.get("matches") == ">>>":
        lines = {line.strip() for text in texts for line in re.findall(r">>>(.+)", text)}
        prose = [(one.line, one.text) for one in code.comments]
        prose += [(text.lineno, str(text.value)) for one in code.nodes if (text := docstring(one))]
        yield from (Occurrence(line) for line, text in prose if any(one in text for one in lines if len(one) > 3))
        return
    said = {words_of(text) for text in texts} - {""}
    own = {id(docstring(one)) for one in code.find(ast.Module, ast.ClassDef, *FUNCTIONS)}
    for node in code.find(ast.Constant):
        if isinstance(node.value, str) and id(node) not in own and words_of(node.value) in said:
            yield at(node)


@remains("modify any_docstring")
def lost_docstrings(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Docstrings whose words no comment has."""
    if code is old:
        return
    said = {*words_of(" ".join(one.text for one in code.comments)).split()}
    for node in old.find(ast.Module, ast.ClassDef, *FUNCTIONS):
        text = docstring(node)
        first = words_of(str(text.value).strip().partition("\n")[0]).split() if text else []
        if first and 2 * len(said.intersection(first)) < len({*first}):
            yield at(node)


@remains("modify local_name")
def empty_names(code: Code, old: Code, options: Mapping[str, Any]) -> Iterator[Occurrence]:
    """New names that describe nothing: `i_1`, `var1`, `rslt`, or a short form with something around it."""
    known = {name for name, _, _ in local_bindings(old)}
    if code is old:
        return
    short = "res|" in options["matches"]
    for name, node, _ in local_bindings(code):
        if name in known:
            continue
        parts = [part for part in re.split(r"_|\d+|(?<=[a-z])(?=[A-Z])", name) if part]
        same = len({*"".join(parts).lower()}) < 2
        numbered = re.fullmatch(r"(var|variable|local)(_?[\da-z])?|(name|tmp|temp|x)_?\d", name) is not None
        cut = short and any(
            re.fullmatch(options["matches"], part.lower()) or not re.search("[aeiouy]", part.lower()) for part in parts
        )
        if same or numbered or cut:
            yield at(node, f"'{name}'")


@remains("return_hint", "parameter_hint")
def hints_without_type(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Annotations that name no type."""
    for node in code.functions:
        yield from [at(node)] if isinstance(node.returns, ast.Constant) and node.returns.value is not None else []


@remains("joined_import")
def shared_lines(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Imports behind a semicolon."""
    for node in code.find(ast.Import, ast.ImportFrom):
        if code.lines[node.lineno - 1].encode()[: node.col_offset].strip():
            yield at(node)


@remains("tall_docstring")
def further_strings(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """String statements that are no docstring."""
    for node in code.find(ast.Expr):
        text = node.value.value if isinstance(node.value, ast.Constant) else None
        if isinstance(text, str) and docstring(code.parents[node]) is not node.value:
            yield at(node)


@remains("every")
def code_in_texts(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Calls that run a text as code."""
    for one in call(code, ["exec", "eval", "compile"]):
        if isinstance(one.node, ast.Call) and isinstance(one.node.args[0], ast.Constant | ast.JoinedStr):
            yield one


@remains("modify if_chain")
def unmatched_ifs(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Tests of a chain that no `match` took: each chain has two at least."""
    chains = sum(1 for one in old.find(ast.If) if one.orelse and is_elif(old, one.orelse[0]) and not is_elif(old, one))
    tests, left = len([*old.find(ast.If)]), [*code.find(ast.If)]
    kept = len(left) > tests - 2 * chains
    yield from (at(node) for node in left if kept and code is not old and "match" not in _kinds_around(code, node))


def _kinds_around(code: Code, node: ast.AST) -> set[str]:
    return {"match" for above in code.ancestors(node) if isinstance(above, ast.Match)}


@remains("else_after_exit")
def passed_over(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Branches of `pass` with an `else` or `elif` behind them."""
    for node in code.find(ast.If):
        yield from [at(node)] if node.orelse and [*map(type, node.body)] == [ast.Pass] else []


@remains("index_loop")
def loops_up_to_length(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`while` loops that count up to a length."""
    for node in code.find(ast.While):
        counted = {ast.unparse(one.target) for one in walk(node) if isinstance(one, ast.AugAssign)}
        compared = [one.id for one in walk(node.test) if isinstance(one, ast.Name)]
        measured = re.search(r" <=? len\(|^len\(.*\) >=? ", ast.unparse(node.test))
        yield from [at(node)] if measured and counted.intersection(compared) else []


@remains("modify for")
def loops_of_another_kind(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Comprehensions that took the place of a loop, where too few `while` loops did."""
    fors, whiles = (len([*old.find(kind)]) - len([*code.find(kind)]) for kind in (ast.For, ast.While))
    if code is not old and -whiles < fors:
        yield from (at(node) for node in code.find(*COMPREHENSIONS, ast.Call) if _walks(code, node))


def _walks(code: Code, node: ast.AST) -> bool:
    return not isinstance(node, ast.Call) or code.origin(node.func) in (
        "sum",
        "map",
        "max",
        "min",
        "any",
        "all",
        "list",
    )


@remains("modify use")
def borrowed_algorithms(code: Code, old: Code, options: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Library functions that sort, where a sorting algorithm of one's own was asked for."""
    names = ["heapq.*", "bisect.insort*", "numpy.sort", "numpy.argsort", "numpy.sorted", "queue.PriorityQueue"]
    yield from call(code, names) if "sorted" in options["names"] else ()


@remains("equality_choice")
def mixed_choices(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`x in (a, b) or x == c`."""
    for node in code.find(ast.BoolOp):
        compared = [one for one in node.values if isinstance(one, ast.Compare)]
        kinds: dict[str, set[type]] = {}
        for one in compared:
            kinds.setdefault(ast.unparse(one.left), set()).add(type(one.ops[0]))
        if isinstance(node.op, ast.Or) and any(found >= {ast.In, ast.Eq} for found in kinds.values()):
            yield at(node)


@remains("index_loop")
def other_ranges(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Loops over a range with a length in it."""
    found = {one.node for one in index_loop(code)}
    for node in code.find(ast.For, ast.comprehension):
        text = ast.unparse(node.iter)
        if text.startswith("range(") and ("len(" in text or ".__len__()" in text) and node.iter not in found:
            yield at(node.iter)


@remains("comparison_with_boolean", "emptiness_test")
def called_comparisons(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`x.__eq__(None)`, comparisons with a name that stands for None, and with one that stands for a length of 0."""
    for node in code.find(ast.Call, ast.Compare):
        if isinstance(node, ast.Call):
            yield from (
                [at(node)] if code.origin(node.func) in (".__eq__", ".__ne__", "operator.eq", "operator.ne") else []
            )
            continue
        names = [one for one in (node.left, *node.comparators) if isinstance(one, ast.Name) and one.id in code.values]
        texts = [ast.unparse(code.values[one.id]) for one in names]
        equal = len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq)
        measured = any(text.startswith("len(") for text in texts) and ast.unparse(node.comparators[0]) == "0"
        if equal and (measured or {"None", "True", "False"} & {*texts}):
            yield at(node)


@remains("collecting_loop")
def further_filling(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Loops that extend or insert, by `+=` too."""
    for node in code.find(ast.For):
        calls = [one for one in walk(node) if isinstance(one, ast.Call)]
        sums = [one.value for one in walk(node) if isinstance(one, ast.AugAssign)]
        added = any(isinstance(one, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.Tuple) for one in sums)
        if added or any(code.called(one.func) in (".extend", ".insert", ".appendleft", ".update") for one in calls):
            yield at(node)


@remains("nested_function")
def called_lambdas(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Lambdas in functions."""
    return (at(node) for node in code.find(ast.Lambda) if code.function_of(node) is not None)


@remains("call")
def written_output(code: Code, old: Code, options: Mapping[str, Any]) -> Iterator[Occurrence]:
    """What prints by another name."""
    for node in code.find(ast.Call) if "print" in options["names"] else ():
        if ast.unparse(node.func) in _PRINTING or code.origin(node.func) in _PRINTING:
            yield at(node)


_PRINTING = {
    "sys.stdout.write", "sys.stderr.write", "sys.__stdout__.write", "stdout.write", "os.write", "pprint.pprint",
    "builtins.print", "sys.stdout.writelines",
}  # fmt: skip


@remains("collection")
def derived_collections(code: Code, old: Code, options: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Classes derived from the collection that was to go."""
    for node in code.find(ast.ClassDef):
        yield from [at(node)] if options["kind"] in {code.origin(one) for one in node.bases} else []
