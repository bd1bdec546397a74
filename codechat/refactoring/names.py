"""Local variables renamed: by scope, so that parameters, attributes and other functions' names stay."""

import ast
import builtins
import re
from collections.abc import Callable

import libcst as cst

from codechat.languages.python.syntax import parameters
from codechat.patterns.names import local_bindings
from codechat.patterns.tree import FUNCTIONS, Function, own_nodes
from codechat.refactoring.base import Namer, Refusal, Source, transforms
from codechat.refactoring.trees import Made, nodes, rewritten

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


def _without_digits(name: str) -> str:
    stem = re.sub("[0-9]+", "", name).strip("_")
    return _WORDS.get(stem, f"{stem or 'value'}_next")


@transforms("cosmetic-avoid-single-letter-locals", matches="[A-Za-z]", better=_long)
@transforms("cosmetic-rename-single-letter-locals", matches="[A-Za-z]", better=_long)
@transforms("cosmetic-rename-short-locals", matches=r"\w{1,4}", better=_long)
@transforms("cosmetic-avoid-digits-in-names", matches=".*[0-9].*", better=_without_digits)
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
    return _renamed(source, chosen, better, matches)


@transforms("cosmetic-avoid-builtin-names")
def rename_shadowing(source: Source) -> str:
    """Every local variable that hides a built-in, under another name."""
    chosen = [(one.function, one.name) for one in local_bindings(source.code) if hasattr(builtins, one.name)]
    return _renamed(source, chosen, _long, None)


def _renamed(
    source: Source, chosen: list[tuple[Function, str]], better: Callable[[str], str], matches: str | None
) -> str:
    source.without("locals", "eval", "exec", "vars", "globals")
    functions = [node for node in nodes(source.module) if isinstance(node, cst.FunctionDef)]
    order = sorted(source.code.functions, key=lambda one: (one.lineno, one.col_offset))
    if [one.name for one in order] != [one.name.value for one in functions]:
        raise Refusal("the functions cannot be told apart")
    namer = source.namer()
    changes: dict[cst.CSTNode, dict[str, str]] = {}
    for function, name in chosen:
        _check(function, name)
        changes.setdefault(functions[order.index(function)], {})[name] = _fresh(namer, better(name), matches)
    return _Rename(changes).apply(source.module)


def _fresh(namer: Namer, wanted: str, matches: str | None) -> str:
    name = namer(wanted, f"{wanted}_value", f"current_{wanted}", f"inner_{wanted}", f"further_{wanted}")
    if matches and re.fullmatch(matches, name):
        raise Refusal(f"no better name than {name}")
    return name


def _check(function: Function, name: str) -> None:
    """Refuse a name that is bound by more than variables, or shared with an inner scope by declaration."""
    for node in own_nodes(function):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name == name:
            raise Refusal(f"'{name}' is a definition too")
        if isinstance(node, ast.Import | ast.ImportFrom) and any(name in (a.asname, a.name) for a in node.names):
            raise Refusal(f"'{name}' is an import too")
        if isinstance(node, ast.ClassDef):
            raise Refusal("a class inside the function reads its names")
    for inner in ast.walk(function):
        if isinstance(inner, (*FUNCTIONS, ast.Lambda)) and inner is not function:
            defaults = [*inner.args.defaults, *(one for one in inner.args.kw_defaults if one)]
            held = {node.id for one in defaults for node in ast.walk(one) if isinstance(node, ast.Name)}
            if name in held and name in {one.arg for one in parameters(inner)}:
                raise Refusal(f"'{name}' is a default of its namesake")
        if isinstance(inner, ast.Nonlocal) and name in inner.names:
            raise Refusal(f"'{name}' is declared nonlocal")


class _Rename:
    """Renames per function, inherited by the inner functions that do not bind the name themselves."""

    def __init__(self, changes: dict[cst.CSTNode, dict[str, str]]) -> None:
        self.changes = changes

    def apply(self, module: cst.Module) -> str:
        swaps: dict[cst.CSTNode, Made] = {}
        self._walk(module, {}, swaps)

        def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
            return node.with_changes(value=swaps[original]) if original in swaps else node

        return rewritten(module, change).code  # type: ignore[no-any-return]

    def _walk(self, node: cst.CSTNode, names: dict[str, str], swaps: dict[cst.CSTNode, Made]) -> None:
        if isinstance(node, cst.Name) and node.value in names:
            swaps[node] = names[node.value]
        skipped: tuple[cst.CSTNode | None, ...] = ()
        if isinstance(node, cst.Attribute):
            skipped = (node.attr,)
        elif isinstance(node, cst.Arg):
            skipped = (node.keyword,)
        elif isinstance(node, cst.Param):
            skipped = (node.name,)
        elif isinstance(node, cst.FunctionDef | cst.Lambda):
            self._function(node, names, swaps)
            return
        for child in node.children:
            if not any(child is one for one in skipped):
                self._walk(child, names, swaps)

    def _function(
        self, node: cst.FunctionDef | cst.Lambda, names: dict[str, str], swaps: dict[cst.CSTNode, Made]
    ) -> None:
        inner = {name: new for name, new in names.items() if name not in _bound(node)} | self.changes.get(node, {})
        for child in node.children:
            if child is node.body:
                self._walk(child, inner, swaps)
            elif not isinstance(node, cst.FunctionDef) or child is not node.name:
                self._walk(child, names, swaps)


def _bound(function: cst.FunctionDef | cst.Lambda) -> set[str]:
    """The names that a function binds itself, its parameters included."""
    try:
        tree = ast.parse(cst.Module([]).code_for_node(function).strip())
    except SyntaxError as error:
        raise Refusal("an inner function cannot be read") from error
    top = tree.body[0]
    node: ast.AST = top.value if isinstance(top, ast.Expr) else top
    if not isinstance(node, (*FUNCTIONS, ast.Lambda)):
        raise Refusal("an inner function cannot be read")
    held = {one.arg for one in parameters(node)}
    body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(own_nodes(node))
    for inner in body:
        for one in ast.walk(inner) if isinstance(node, ast.Lambda) else [inner]:
            if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
                held.add(one.id)
            elif isinstance(one, (*FUNCTIONS, ast.ClassDef, ast.ExceptHandler)) and one.name:
                held.add(one.name)
    return held
