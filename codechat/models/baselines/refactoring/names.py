"""Local variables renamed: by scope, so that parameters, attributes and other functions' names stay."""

import re
from collections.abc import Callable

import libcst as cst

from codechat.models.baselines.refactoring.base import Refusal, Source, transforms
from codechat.models.baselines.refactoring.trees import LOOKERS, Made, has, nodes, replace, variables
from codechat.patterns.finders.names import local_bindings

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


def _long(name: str) -> str:
    return _WORDS.get(name.rstrip("0123456789").lower(), f"{name}_value")


def _camel(name: str) -> str:
    first, *others = name.strip("_").split("_")
    return first + "".join(part.capitalize() for part in others)


@transforms("cosmetic-avoid-single-letter-locals", matches="[A-Za-z]")
@transforms("cosmetic-rename-single-letter-locals", matches="[A-Za-z]")
@transforms("cosmetic-rename-short-locals", matches=r"\w{1,4}")
@transforms("cosmetic-rename-to-camel-case", matches="[a-z0-9]+(_[A-Za-z0-9]+)+", better=_camel)
@transforms(
    "cosmetic-rename-abbreviations",
    matches=r"(res|ret|te?mp|cnt|idx|ind|nums?|lst|arr|vals?|curr?|prev|elem|chars?|freqs?|pos|ans|ptr|str|msg|acc|dct|"
    r"tup|mx|mn)\d*",
)
def rename_locals(source: Source, matches: str, better: Callable[[str], str] = _long) -> str:
    """Every local variable whose name matches, in its function and those inside, under one better name.

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
    chosen = [one for one in local_bindings(source.code) if re.fullmatch(matches, one.name)]
    for name, _, function in sorted(chosen, key=lambda one: order.index(one.function)):
        body = functions[order.index(function)].body
        found = [one for one in variables(body) if one.value == name]
        if not found or found[0] in swaps:
            continue
        definitions = (cst.Param, cst.FunctionDef, cst.ClassDef, cst.NameItem, cst.ImportAlias)
        others = {one for node in nodes(body) if isinstance(node, definitions) for one in _names(node)}
        if name in others or has(body, cst.ClassDef):
            raise Refusal(f"'{name}' is more than a variable")
        wanted = better(name)
        new = namer(wanted, f"{wanted}_value", f"current_{wanted}", f"inner_{wanted}", f"further_{wanted}")
        if re.fullmatch(matches, new):
            raise Refusal(f"no better name than {new}")
        swaps |= {one: one.with_changes(value=new) for one in found}
    return replace(source.module, swaps).code


def _names(node: cst.CSTNode) -> set[str]:
    """What a definition or import names."""
    parts = nodes(node) if isinstance(node, cst.ImportAlias) else [getattr(node, "name", None)]
    return {one.value for one in parts if isinstance(one, cst.Name)}
