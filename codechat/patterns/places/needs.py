"""Further places where something could sensibly be added, each for what it takes there to be of use.

A dataclass takes several values that belong together, a sentinel a value that may be missing, a keyword a function
that accepts one; `codechat.patterns.places.sense` has the places that turn on what the program changes.
"""

import ast
from collections.abc import Iterator

from codechat.languages.python.syntax import parameters
from codechat.patterns.base import Occurrence, at, pattern
from codechat.patterns.finders.names import local_bindings
from codechat.patterns.finders.wider import flag_loop
from codechat.patterns.reading.code import Code, is_hint
from codechat.patterns.reading.tree import Function, own_nodes, walk

_WORDS = """
    abs all any ascii bin bool callable chr classmethod delattr divmod eval filter float format frozenset getattr
    hasattr hash hex id input int isinstance issubclass iter len list map next object oct ord range repr reversed set
    setattr slice staticmethod super tuple type vars zip
    .add .append .appendleft .capitalize .casefold .clear .copy .count .difference .discard .endswith .extend
    .extendleft .find .fromkeys .get .index .insert .intersection .isalnum .isalpha .isdecimal .isdigit .islower
    .isnumeric .isspace .isupper .issubset .issuperset .items .join .keys .ljust .rjust .center .lower .lstrip .pop
    .popitem .popleft .remove .replace .reverse .rfind .rotate .rstrip .setdefault .startswith .strip .swapcase .title
    .union .upper .values .zfill .partition .rpartition
"""
_POSITIONAL = frozenset(_WORDS.split())
_WITH_KEYWORDS = {"math.isclose", "math.prod", "math.dist"}


@pattern("keyed_call", "call that takes keywords", "calls that take keywords")
def keyed_call(code: Code) -> Iterator[Occurrence]:
    """Calls but for those of what takes no keyword, as `len` and `.append` do, or of a function without parameters."""
    for node in code.find(ast.Call):
        origin = code.called(node.func)
        fixed = origin in _POSITIONAL or (origin.startswith("math.") and origin not in _WITH_KEYWORDS)
        own = origin == "" and not (node.args or node.keywords)
        if not fixed and not own:
            yield at(node)


@pattern("joinable_assignment", "function that assigns several variables", "functions that assign several variables")
def joinable_assignment(code: Code) -> Iterator[Occurrence]:
    """Functions that assign to several variables or attributes, or to one beside several parameters, or read several
    entries of one by their index.
    """
    for function in code.functions:
        names, entries = set[str](), dict[str, set[str]]()
        for node in own_nodes(function):
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names.update(ast.unparse(one) for one in targets if not isinstance(one, ast.Tuple | ast.List))
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                entries.setdefault(ast.unparse(node.value), set()).add(ast.unparse(node.slice))
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call | ast.Subscript):
                entries.setdefault("", set()).update(names if len(names) > 1 else ())
        taken = len(parameters(function)) > 1 and bool(names)
        if taken or len(names) > 1 or any(len(found) > 1 for found in entries.values()):
            yield at(function, function.name)


@pattern("testing", "condition")
def testing(code: Code) -> Iterator[Occurrence]:
    """Conditions of `if`, of `while` where they can change, of comprehensions and of conditional expressions."""
    tests = [node.test for node in code.find(ast.If, ast.IfExp, ast.While)]
    tests += [test for node in code.find(ast.comprehension) for test in node.ifs]
    yield from (at(test) for test in tests if not isinstance(test, ast.Constant))


@pattern("valued_function", "function of several values", "functions of several values")
def valued_function(code: Code) -> Iterator[Occurrence]:
    """Functions with two parameters or local variables at least, and methods."""
    for function in code.functions:
        names = [one.arg for one in parameters(function)]
        names += [binding.name for binding in local_bindings(code) if binding.function is function]
        if len(names) > 1 or isinstance(code.parents.get(function), ast.ClassDef):
            yield at(function, function.name)


@pattern("expecting_function", "function that expects something of a value", "functions that expect something")
def expecting_function(code: Code) -> Iterator[Occurrence]:
    """Functions that read an attribute or method of what they are given, call it, or go through it."""
    for function in code.functions:
        given = {one.arg for one in parameters(function)}
        if isinstance(code.parents.get(function), ast.ClassDef) or given & _asked(code, function):
            yield at(function, function.name)


def _asked(code: Code, function: Function) -> set[str]:
    """The names whose value a function asks for more than a comparison, texts aside."""
    held: list[ast.AST] = []
    for node in walk(function):
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            held += [node.value] if getattr(node, "attr", "") not in _OF_TEXTS else []
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            held += [node.iter, *getattr(node.iter, "args", [])]
        elif isinstance(node, ast.BinOp) and not _is_of_texts(node):
            held += [node.left, node.right]
        elif isinstance(node, ast.Call):
            held += [node.func, *(node.args if code.origin(node.func) not in _OF_NUMBERS else ())]
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            held += node.comparators
    return {one.id for one in held if isinstance(one, ast.Name)}


def _is_of_texts(node: ast.BinOp) -> bool:
    return any(isinstance(getattr(one, "value", None), str | int) for one in (node.left, node.right))


_OF_NUMBERS = ("int", "float", "str", "abs", "range", "round", "divmod")
_OF_TEXTS = {"upper", "lower", "title", "strip", "capitalize", "format", "split", "replace"}


@pattern("managing", "work that can be managed", "pieces of work that can be managed")
def managing(code: Code) -> Iterator[Occurrence]:
    """What opens, closes, locks, prints, fails or is caught: a `with` has something to enter, to leave or to catch."""
    for node in code.find(ast.Try, ast.Raise, ast.With, ast.Call, ast.Global, ast.Await, ast.BinOp):
        if isinstance(node, ast.Call):
            origin = code.called(node.func)
            own = origin == "" or any(one.name == origin for one in code.functions)
            if not own and (origin in _MAY_FAIL or (origin not in _POSITIONAL and origin not in _QUIET)):
                yield at(node)
        elif not isinstance(node, ast.BinOp) or isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
            yield at(node)


_MAY_FAIL = {"int", "float", "min", "max", "input", "next", ".index", ".remove", "getattr"}
_QUIET = {"sum", "sorted", "enumerate", "str", "round", "dict", "pow", ".sort", ".split", ".update",
          ".splitlines", ".format", ".encode"}  # fmt: skip


@pattern("missing_value", "value that may be missing", "values that may be missing")
def missing_value(code: Code) -> Iterator[Occurrence]:
    """`None`, a default of a parameter or of `.get`, a caught `KeyError`, a -1 or "" that stands for nothing found."""
    for node in code.find(ast.Constant, ast.arguments):
        if isinstance(node, ast.Constant):
            yield from [at(node)] if node.value is None and not is_hint(code, node) else []
        else:
            yield from [at(one) for one in (*node.defaults, *node.kw_defaults) if one is not None]
    for left in code.find(ast.Call, ast.ExceptHandler, ast.Return):
        if isinstance(left, ast.Call):
            yield from [at(left)] if code.origin(left.func) in _ASKING else []
        elif isinstance(left, ast.ExceptHandler):
            yield from [at(left)] if left.type is not None and "Error" in ast.unparse(left.type) else []
        elif left.value is None or ast.unparse(left.value) in ("-1", "''"):
            yield at(left)
    for test in code.find(ast.Compare):
        looked = isinstance(test.ops[0], ast.In | ast.NotIn)
        stored = looked and any(
            ast.unparse(one.value) == ast.unparse(test.comparators[0]) and not isinstance(one.slice, ast.Constant)
            for one in code.find(ast.Subscript)
        )
        yield from [at(test)] if stored else []
    yield from flag_loop(code)


_ASKING = {".get", ".pop", "next", "getattr", ".find", ".setdefault", "iter"}
_CHANGING = {"append", "add", "insert", "extend", "pop", "remove", "sort", "reverse", "clear", "update"}


@pattern("fixed_values", "values that are not changed", "values that are not changed")
def fixed_values(code: Code) -> Iterator[Occurrence]:
    """Lists and sets that nothing changes, arguments that are looked in, several literals, attributes set together."""
    changed = {
        ast.unparse(one.value) for one in code.find(ast.Attribute) if one.attr in _CHANGING
    }  # fmt: skip
    changed |= {ast.unparse(one.value) for one in code.find(ast.Subscript) if not isinstance(one.ctx, ast.Load)}
    changed |= {ast.unparse(one.target) for one in code.find(ast.AugAssign)}
    for node in code.find(ast.List, ast.Set):
        loaded = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        yield from [at(node)] if len(node.elts) > 1 and loaded and not _given_to(code, node) & changed else []
    for made in code.find(ast.Call, ast.ListComp):
        names = _given_to(code, made)
        listed = isinstance(made, ast.ListComp) or code.called(made.func) in _MAKING
        yield from [at(made)] if listed and names and not names & changed else []
    for test in code.find(ast.Compare):
        looked = isinstance(test.ops[0], ast.In | ast.NotIn) and isinstance(test.comparators[0], ast.Name)
        looked = looked and not isinstance(test.left, ast.Constant)
        yield from [at(test)] if looked and ast.unparse(test.comparators[0]) not in changed | {*code.values} else []
    for function in code.functions:
        for one in parameters(function):
            hint = ast.unparse(one.annotation).lower() if one.annotation is not None else ""
            yield from [at(one)] if hint.startswith("list") and one.arg not in changed else []
        inside = [*own_nodes(function)]
        texts = {one.value for one in inside if isinstance(one, ast.Constant) and _is_telling(one.value)}
        kept = [one for one in inside if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)]
        if len(texts) > 2 or (len(kept) > 1 and function.name == "__init__"):
            yield at(function, function.name)


def _given_to(code: Code, node: ast.AST) -> set[str]:
    """The variables and attributes that a value is given to right there."""
    above = code.parents.get(node)
    targets = above.targets if isinstance(above, ast.Assign) else [getattr(above, "target", None)]
    return {ast.unparse(one) for one in targets if isinstance(one, ast.Name | ast.Attribute)}


_MAKING = ("list", "sorted", ".split", ".splitlines")


def _is_telling(value: object) -> bool:
    return not isinstance(value, bool) and value is not None and value not in (0, 1, -1, 2, "", " ")


@pattern("changeable_argument", "argument that could be changed", "arguments that could be changed")
def changeable_argument(code: Code) -> Iterator[Occurrence]:
    """Parameters that a function goes through, indexes, measures, or reads an attribute or method of, texts aside."""
    for function in code.functions:
        asked = _asked(code, function)
        for one in parameters(function):
            hint = ast.unparse(one.annotation) if one.annotation is not None else ""
            plain = hint in ("int", "float", "str", "bool", "bytes")
            if one.arg in asked - {"self", "cls"} and not plain and not _is_passed(code, function, one):
                yield at(one, f"'{one.arg}'")


def _is_passed(code: Code, function: Function, one: ast.arg) -> bool:
    """Whether a parameter is only handed to calls, or called itself."""
    for name in walk(function):
        if isinstance(name, ast.Name) and name.id == one.arg and isinstance(name.ctx, ast.Load):
            above = code.parents[name]
            handed = isinstance(above, ast.Call) and code.called(above.func) not in _MEASURING
            counted = isinstance(above, ast.BinOp | ast.Compare | ast.UnaryOp | ast.Return)
            if not handed and not (counted and not _looks_in(above, name)):
                return False
    return True


def _looks_in(node: ast.AST, name: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and name in node.comparators and isinstance(node.ops[0], ast.In | ast.NotIn)


_MEASURING = {"len", "sum", "min", "max", "sorted", "list", "set", "enumerate", "zip", "reversed", "any", "all"}
