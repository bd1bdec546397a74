"""Local variables renamed: by scope, so that parameters, attributes and other functions' names stay."""

import builtins
import re
from collections.abc import Callable

import libcst as cst

from codechat.models.baselines.refactoring.base import Namer, Refusal, Source, transforms
from codechat.models.baselines.refactoring.trees import LOOKERS, Made, has, nodes, replace, variables
from codechat.patterns.names import local_bindings
from codechat.patterns.tree import Function

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
    "max": "largest", "min": "smallest", "sum": "total", "list": "sequence", "dict": "mapping", "set": "unique",
    "len": "length", "type": "category", "id": "identifier", "input": "given", "next": "following", "iter": "walker",
}  # fmt: skip


def _long(name: str) -> str:
    stem = name.rstrip("0123456789").lower()
    return _WORDS.get(stem, f"{name}_value")


def _camel(name: str) -> str:
    first, *others = name.strip("_").split("_")
    return first + "".join(part.capitalize() for part in others)


@transforms("cosmetic-avoid-single-letter-locals", matches="[A-Za-z]", better=_long)
@transforms("cosmetic-rename-single-letter-locals", matches="[A-Za-z]", better=_long)
@transforms("cosmetic-rename-short-locals", matches=r"\w{1,4}", better=_long)
@transforms("cosmetic-rename-to-camel-case", matches="[a-z0-9]+(_[A-Za-z0-9]+)+", better=_camel)
@transforms(
    "cosmetic-rename-abbreviations",
    matches=r"(?i)(res|ret|tmp|temp|cnt|idx|ind|num|nums|lst|arr|val|vals|cur|curr|prev|elem|char|chars|freq|freqs|pos|"
    r"ans|ptr|str|msg|acc|dct|tup|mx|mn)\d*",
    better=_long,
)
def rename_locals(source: Source, matches: str, better: Callable[[str], str]) -> str:
    """Every local variable whose name matches, under a better one."""
    chosen = [(one.function, one.name) for one in local_bindings(source.code) if re.fullmatch(matches, one.name)]
    return _rename(source, chosen, better, matches)


@transforms("cosmetic-avoid-builtin-names")
def rename_shadowing(source: Source) -> str:
    """Every local variable that hides a built-in, under another name."""
    chosen = [(one.function, one.name) for one in local_bindings(source.code) if hasattr(builtins, one.name)]
    return _rename(source, chosen, _long, None)


def _rename(
    source: Source, chosen: list[tuple[Function, str]], better: Callable[[str], str], matches: str | None
) -> str:
    """Every occurrence of a local in its function, inner functions included, under one new name.

    Refuses a name that is more than a variable somewhere in the function: a parameter, a definition, an import, an
    attribute of a class, or one that is declared global or nonlocal.
    """
    source.without(*LOOKERS)
    functions = [node for node in nodes(source.module) if isinstance(node, cst.FunctionDef)]
    order = sorted(source.code.functions, key=lambda one: (one.lineno, one.col_offset))
    if [one.name for one in order] != [one.name.value for one in functions]:
        raise Refusal("the functions cannot be told apart")
    namer = source.namer()
    swaps: dict[cst.CSTNode, Made] = {}
    for function, name in sorted(chosen, key=lambda one: order.index(one[0])):
        body = functions[order.index(function)].body
        found = [one for one in variables(body) if one.value == name]
        if not found or found[0] in swaps:
            continue
        others = [
            one for one in nodes(body) if isinstance(one, cst.Param | cst.FunctionDef | cst.ClassDef | cst.NameItem)
        ]
        imports = [one for node in nodes(body) if isinstance(node, cst.ImportAlias) for one in nodes(node)]
        named = {one.name for one in others} | {one for one in imports if isinstance(one, cst.Name)}
        if name in {one.value for one in named} or has(body, cst.ClassDef):
            raise Refusal(f"'{name}' is more than a variable")
        new = _choose(namer, better(name), matches)
        swaps |= {one: one.with_changes(value=new) for one in found}
    return replace(source.module, swaps).code


def _choose(namer: Namer, wanted: str, matches: str | None) -> str:
    name = namer(wanted, f"{wanted}_value", f"current_{wanted}", f"inner_{wanted}", f"further_{wanted}")
    if matches and re.fullmatch(matches, name):
        raise Refusal(f"no better name than {name}")
    return name
