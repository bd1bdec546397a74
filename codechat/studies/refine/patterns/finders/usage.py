"""Type annotations, docstrings, and what a program uses: built-ins, library functions, methods, collections."""

import ast
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Literal

from codechat.sandbox.languages.python.syntax import parameters
from codechat.studies.refine.patterns.base import Occurrence, Regex, at, each_of, of_functions, pair, pattern
from codechat.studies.refine.patterns.finders.functions import local_bindings
from codechat.studies.refine.patterns.finders.layout import followed, is_placeholder
from codechat.studies.refine.patterns.reading.code import Code, is_hint, read
from codechat.studies.refine.patterns.reading.tree import (
    COMPREHENSIONS,
    FUNCTIONS,
    LOOPS,
    Function,
    body_without_docstring,
    docstring,
    own_nodes,
    walk,
)
from codechat.studies.refine.patterns.reading.use import assignments

LEGACY = {"List", "Dict", "Set", "FrozenSet", "Tuple", "Type", "Deque", "DefaultDict"}
_QUOTED = re.compile(r"[\w., |\[\]]+")
"""An annotation in quotes."""
_GENERICS = {"list", "dict", "set", "frozenset", "tuple", "type", "deque", "defaultdict"}
_NO_TYPES = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Lambda, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.JoinedStr)
_NO_ARTICLE = r"(?! (?!and\b|or\b|is\b|to\b|by\b|in\b|from\b)\w)"
"""Words that follow the name `a` if it is a name: before any other word it would be the article."""
_CONSTANTS = {f"math.{name}" for name in ("pi", "e", "inf", "nan", "tau")} | {
    f"re.{name}" for name in ("I", "IGNORECASE", "M", "MULTILINE", "S", "DOTALL", "X", "VERBOSE", "Match", "Pattern")
}
_MAKERS: dict[str, tuple[tuple[type[ast.expr], ...], tuple[str, ...]]] = {
    "list": ((ast.List, ast.ListComp), ("list",)),
    "dict": (
        (ast.Dict, ast.DictComp),
        ("dict", "collections.defaultdict", "collections.Counter", "collections.OrderedDict"),
    ),
    "set": ((ast.Set, ast.SetComp), ("set", "frozenset")),
    "tuple": ((ast.Tuple,), ("tuple",)),
}
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift, ast.Invert)
TRAVERSING = [
    "sum", "min", "max", "any", "all", "map", "filter", "sorted", "reversed", "zip", "enumerate", "range", "list",
    "set", "tuple", "functools.reduce", ".join", ".sort", ".count", ".index", ".reverse",
]  # fmt: skip


@pair(
    ("parameter_hint", "parameter with a type hint", "parameters with a type hint"),
    ("bare_parameter", "parameter without a type hint", "parameters without a type hint"),
)
def parameter_hint(code: Code) -> Iterable[tuple[Occurrence, bool]]:
    """Parameters except `self` and `cls`, divided by whether they have a type hint; `...`, "" and 0 are no hints."""
    return ((at(one, f"'{one.arg}'"), _is_hinted(one.annotation)) for _, one in _parameters(code))


def _is_hinted(annotation: ast.expr | None) -> bool:
    if not isinstance(annotation, ast.Constant):
        return annotation is not None and not isinstance(annotation, _NO_TYPES)
    if not isinstance(annotation.value, str):
        return annotation.value is None
    body = tree.body if (tree := read(annotation.value.strip()).tree) else []
    value = body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else None
    return value is not None and _is_hinted(value)


def _parameters(code: Code) -> Iterator[tuple[Function, ast.arg]]:
    for function in code.functions:
        given = parameters(function)
        method = isinstance(code.parents.get(function), ast.ClassDef) and given and given[0].arg in ("self", "cls")
        yield from ((function, one) for one in given[bool(method) :])


@pair(
    ("return_hint", "function with a return type", "functions with a return type"),
    ("bare_function", "function without a return type", "functions without a return type"),
)
def return_hint(code: Code) -> Iterable[tuple[Occurrence, bool]]:
    """Functions, divided by whether they have a return type, in a type comment too; `...`, "" and 0 are no types."""
    for function in code.functions:
        head = code.lines[function.lineno - 1 : function.body[0].lineno] if "# type:" in code.text else []
        commented = any(re.search(r"#\s*type:\s*\(.*\)\s*->\s*\w", line) for line in head)
        yield at(function, function.name), _is_hinted(function.returns) or commented


pattern("local_hint", "annotated local variable")(lambda code: (
    at(node, f"'{node.target.id}'") for node in code.find(ast.AnnAssign)
    if isinstance(node.target, ast.Name) and code.function_of(node)
))  # fmt: skip


@pattern("bare_local", "local variable without a type hint", "local variables without a type hint")
def bare_local(code: Code) -> Iterable[Occurrence]:
    """Local variables first bound by `name = value` and annotated nowhere in their function."""
    targets = [node.target for node in code.find(ast.AnnAssign) if _is_hinted(node.annotation)]
    hinted = {(one.id, code.function_of(one)) for one in targets if isinstance(one, ast.Name)}
    for name, node, function in local_bindings(code):
        above = code.parents.get(node)
        given = above.targets if isinstance(above, ast.Assign) else [getattr(above, "target", None)]
        plain = isinstance(above, ast.Assign | ast.AnnAssign) and node in given
        if plain and (name, function) not in hinted:
            yield at(node, f"'{name}'")


@pattern("legacy_hint", "typing alias")
def legacy_hint(code: Code, kind: Literal["generic", "optional"]) -> Iterable[Occurrence]:
    """Uses of typing's `List`, `Dict`, … (`generic`) or of its `Optional` and `Union` (`optional`), also in quotes."""
    wanted = LEGACY if kind == "generic" else {"Optional", "Union"}
    for node in code.find(ast.Name, ast.Attribute):
        module, _, name = code.origin(node).rpartition(".")
        if module == "typing" and name in wanted:
            yield at(node, name)
    for part, place in parts(code):
        name = part.id if isinstance(part, ast.Name) else getattr(part, "attr", "")
        if part is not place and name in wanted and code.imports.get(name, "typing").startswith("typing"):
            yield at(place, name)


@pattern("modern_hint", "built-in hint")
def modern_hint(code: Code, kind: Literal["generic", "optional"]) -> Iterable[Occurrence]:
    """Annotations such as `list[int]` and `list` (`generic`) or `int | None` (`optional`), also in quotes."""
    for part, place in parts(code):
        either = isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitOr)
        if either if kind == "optional" else isinstance(part, ast.Name) and part.id in _GENERICS:
            yield at(place)


def parts(code: Code) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Every node of every annotation, quoted ones included, each with the node of the code where it stands."""
    for annotation in _annotations(code):
        for node in walk(annotation):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            tree = read(text).tree if _QUOTED.fullmatch(text) else None
            yield from ((part, node) for part in (walk(tree) if tree else [node]))


def _annotations(code: Code) -> Iterator[ast.expr]:
    for node in code.find(ast.arg, ast.AnnAssign):
        if node.annotation:
            yield node.annotation
    for function in code.functions:
        if function.returns:
            yield function.returns
    for call in code.find(ast.Call):
        yield from call.args[:1] if code.origin(call.func) == "typing.cast" else ()
    for statement in code.tree.body if code.tree else ():
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Subscript | ast.BinOp):
            yield from [statement.value] if _is_type(code, statement.value) else []


@pattern("type_alias", "type alias", "type aliases")
def type_alias(code: Code) -> Iterable[Occurrence]:
    """Module-level names for a type: `Row = list[int]`, `Row: TypeAlias = …`, `type Row = …`."""
    for statement in code.tree.body if code.tree else []:
        hint = statement.annotation if isinstance(statement, ast.AnnAssign) else None
        named = hint is not None and code.origin(hint).rpartition(".")[2] == "TypeAlias"
        plain = isinstance(statement, ast.Assign) and _is_type(code, statement.value)
        if named or plain or type(statement).__name__ == "TypeAlias":
            yield at(statement)


def _is_type(code: Code, value: ast.expr) -> bool:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        return _is_type(code, value.left) or _is_type(code, value.right)
    head = value.value if isinstance(value, ast.Subscript) else value
    origin = code.origin(head)
    generic = isinstance(value, ast.Subscript) and origin.rpartition(".")[2] in _GENERICS
    known = origin.startswith(("typing.", "collections.abc.")) or origin in {"int", "str", "float", "bool", *_GENERICS}
    return generic or known


@pair(
    ("docstring", "docstring", ""),
    ("no_docstring", "function without such a docstring", "functions without such a docstring"),
)
def docstrings(code: Code, matches: Regex = "", takes_parameters: bool = False) -> Iterable[tuple[Occurrence, bool]]:
    """Functions (or only functions with parameters), divided by whether a docstring has `matches` (`followed`)."""
    for function in code.functions:
        if parameters(function) or not takes_parameters:
            text = _prose(function)
            found = not is_placeholder(text) and (not matches or followed(text, re.search(matches, text)))
            yield at(function.body[0]) if found else at(function, function.name), found


def _prose(function: Function) -> str:
    text = docstring(function)
    return str(text.value) if text and str(text.value).strip() else ""


pattern("any_docstring", "docstring")(
    lambda code: map(at, filter(None, map(docstring, code.find(ast.Module, ast.ClassDef, *FUNCTIONS))))
)
pattern("module_docstring", "module docstring")(
    lambda code: map(at, filter(None, [code.tree and docstring(code.tree)]))
)


@pair(
    ("tall_docstring", "docstring of several lines", "docstrings of several lines"),
    ("short_docstring", "docstring of one line", "docstrings of one line"),
)
def tall_docstring(code: Code) -> Iterable[tuple[Occurrence, bool]]:
    """Function docstrings, divided by whether their text, or the lines between the quotes, take more than one line."""
    for function in code.functions:
        if _prose(function):
            first = function.body[0]
            yield at(first), "\n" in _prose(function).strip() or first.end_lineno != first.lineno


@pair(
    ("documented_parameter", "parameter named in its docstring", "parameters named in their docstring"),
    ("undocumented_parameter", "parameter missing from its docstring", "parameters missing from their docstring"),
)
def documented_parameter(code: Code, form: str = r"\b{}\b") -> Iterable[tuple[Occurrence, bool]]:
    """Parameters, divided by whether their function's docstring mentions them in that form; `{}` is the name."""
    for function, one in _parameters(code):
        name = re.escape(one.arg) + (_NO_ARTICLE if one.arg == "a" else "")
        text = _prose(function)
        marks = re.finditer(form.replace("{}", name), text)
        yield at(one, f"'{one.arg}'"), any(followed(text, mark) and not _names_only(text, mark) for mark in marks)


def _names_only(text: str, mark: re.Match[str]) -> bool:
    """Whether a parameter's entry is empty: `name:` ends the line and no deeper line follows."""
    rest, _, below = text[mark.end() :].partition("\n")
    if not re.fullmatch(r"\s*+(\([^)]*\))?\s*+(:|-+)\s*", rest):
        return False
    start = text[: mark.start()].rpartition("\n")[2]
    indent = len(re.match(r"[ ]*", below)[0])  # type: ignore[index]
    return indent <= len(re.match(r"[ ]*", start)[0]) or not below.partition("\n")[0].strip()  # type: ignore[index]


of_functions("function", "function", when=lambda _, one: bool(body_without_docstring(one)))


@pattern("use", "use of {names}", "uses of {names}")
def use(code: Code, names: list[str], in_hint: bool = False) -> Iterable[Occurrence]:
    """Reads of these names, however they were imported: `sorted`, `functools.reduce`, `itertools.*`, `.append`.

    An import alone is no use, nor is an annotation unless `in_hint` asks for annotations; a name that the program
    binds itself is its own. A module's constants are not among its functions (`math.*`); `typing.Final` inside a
    function does not count for one at module level; an `assert` is a use of `__debug__`, on which it depends.
    """
    for node in code.find(ast.Name, ast.Attribute):
        inner = isinstance(code.parents.get(node), ast.Attribute)
        origin = code.origin(node) if isinstance(node.ctx, ast.Load) and not inner else ""
        matched = origin and any(fnmatchcase(origin, name) for name in names) and is_hint(code, node) is in_hint
        statement = next((one for one in code.ancestors(node) if isinstance(one, ast.stmt)), None)
        valueless = isinstance(statement, ast.AnnAssign) and statement.value is None
        local = origin == "typing.Final" and (code.function_of(node) is not None or valueless)
        if matched and not local and (origin not in _CONSTANTS or origin in names) and not _is_own_method(code, node):
            yield at(node, origin.removeprefix("."))
    for part, place in parts(code) if in_hint else ():  # in quotes
        matched = part is not place and isinstance(part, ast.Name | ast.Attribute)
        dotted = ast.unparse(part) if matched and code.function_of(place) is None else ""
        root, _, rest = dotted.partition(".")
        if f"{code.imports.get(root, root)}{'.' if rest else ''}{rest}" in names:
            yield at(place, dotted)
    if "__debug__" in names:
        yield from (at(node, "assert") for node in code.find(ast.Assert))


def _is_own_method(code: Code, node: ast.Name | ast.Attribute) -> bool:
    """Whether a method belongs to a class of the program: its variable is bound once, to an instance."""
    base = node.value if isinstance(node, ast.Attribute) else None
    made = code.values.get(base.id) if isinstance(base, ast.Name) else base
    maker = made.func.id if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) else ""
    classes = [one for one in code.find(ast.ClassDef) if one.name == maker] if maker else []
    return any(getattr(each, "name", "") == getattr(node, "attr", None) for one in classes for each in one.body)


@pattern("call", "call of {names}", "calls of {names}")
def call(code: Code, names: list[str]) -> Iterable[Occurrence]:
    """Calls of these names, read as in `use`, also by a name that stands for one; `log(DEBUG, ...)` is `debug(...)`."""
    for node in code.find(ast.Call):
        origin = code.called(node.func)
        level = node.args[0] if origin in ("logging.log", ".log") and node.args else None
        if level is not None and (code.origin(level) == "logging.DEBUG" or ast.unparse(level) == "10"):
            origin = "logging.debug"
        if origin and any(fnmatchcase(origin, name) for name in names):
            yield at(node, origin.removeprefix("."))


@pattern("imported", "import of {modules}", "imports of {modules}")
def imported(code: Code, modules: list[str]) -> Iterable[Occurrence]:
    """Import statements that name one of these modules, or one of these names written `module.name`."""
    for node in code.find(ast.Import, ast.ImportFrom):
        named = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            named = [node.module or "", *(f"{node.module}.{name}" for name in named)]
        if any(fnmatchcase(name, module) for name in named for module in modules) and _is_on_top(code, node):
            yield at(node, named[0])


def _is_on_top(code: Code, node: ast.Import | ast.ImportFrom) -> bool:
    """Whether a `__future__` import stands at the top, which is the only place allowed."""
    if not isinstance(node, ast.ImportFrom) or node.module != "__future__":
        return True
    body = body_without_docstring(code.tree) if code.tree else []
    before = body[: body.index(node)] if node in body else [node]
    return all(isinstance(one, ast.ImportFrom) and one.module == "__future__" for one in before) and node in body


@pattern("collection", "{kind}")
def collection(code: Code, kind: Literal["list", "dict", "set", "tuple"]) -> Iterable[Occurrence]:
    """Collections that the program makes by a literal, a comprehension or a call; annotations and indices are none."""
    displays, makers = _MAKERS[kind]
    for node in code.find(ast.Call, *displays):
        if isinstance(node, ast.Call):
            made = code.called(node.func) in makers and not _gives_back_list(code, node)
        else:
            index = getattr(code.parents.get(node), "slice", None) is node
            made = isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and not index and not is_hint(code, node)
        above = code.parents.get(node)
        given = isinstance(above, ast.Call) and node in above.args and code.called(above.func) == "collections.deque"
        if made and not (kind == "list" and given):  # `deque([start])`: the list only fills the deque
            yield at(node)


def _gives_back_list(code: Code, node: ast.Call) -> bool:
    """Whether a deque of the program becomes a list only to be returned."""
    name = node.args[0].id if len(node.args) == 1 and isinstance(node.args[0], ast.Name) else ""
    made = [
        value for place, targets, value in assignments(code)
        if name and code.function_of(place) is code.function_of(node)
        and name in [getattr(one, "id", "") for one in targets]
    ]  # fmt: skip
    deques = [isinstance(one, ast.Call) and code.origin(one.func) == "collections.deque" for one in made]
    returned = any(isinstance(above, ast.Return) for above in code.ancestors(node))
    return returned and code.origin(node.func) == "list" and bool(deques) and all(deques)


each_of("bit_operation", "bitwise operation", ast.BinOp, ast.AugAssign, ast.UnaryOp,
        when=lambda code, node: isinstance(node.op, _BITS) and not is_hint(code, node))  # fmt: skip


@pattern("traversal", "walk through values", "walks through values")
def traversal(code: Code) -> Iterable[Occurrence]:
    """Loops, comprehensions, and calls that go through all elements."""
    yield from (at(node) for node in code.find(*LOOPS, *COMPREHENSIONS))
    yield from call(code, TRAVERSING)


@pattern("global_counter", "global counter")
def global_counter(code: Code) -> Iterable[Occurrence]:
    """Additions of 1 to a name declared global, to an object of the module, and `next(...)` of an `itertools.count`."""
    body = code.tree.body if code.tree else []
    outer = {
        one.id for each in body if isinstance(each, ast.Assign) for one in each.targets if isinstance(one, ast.Name)
    }
    outer |= {each.name for each in body if isinstance(each, FUNCTIONS)}
    for function in code.functions:
        declared: set[str] = set()
        updates: list[ast.stmt] = []
        for node in own_nodes(function):
            if isinstance(node, ast.Global):
                declared.update(node.names)
            elif isinstance(node, ast.AugAssign | ast.Assign) and isinstance(node.value, ast.Constant | ast.BinOp):
                updates.append(node)
            elif isinstance(node, ast.Call) and node.args and code.origin(node.func) == "next":
                made = code.values.get(getattr(node.args[0], "id", ""))
                if isinstance(made, ast.Call) and code.origin(made.func) == "itertools.count":
                    yield at(node)
        for update in updates:
            name = _raised_by_one(update, declared, outer)
            if name:
                yield at(update, f"'{name}'")


def _raised_by_one(update: ast.stmt, declared: set[str], outer: set[str]) -> str:
    text = ast.unparse(update)
    raised = re.fullmatch(r"(\w+) (?:\+= 1|= \1 \+ 1|= 1 \+ \1)", text)
    held = re.fullmatch(r"(\w+)(\.\w+|\[(\d+|'.*')\]) \+= 1", text)
    if raised is not None and raised[1] in declared:
        return raised[1]
    named = re.fullmatch(r"globals\(\)\['(\w+)'\] \+= 1", text)
    held = named or held
    return held[1] if held is not None and held[1] in outer else ""
