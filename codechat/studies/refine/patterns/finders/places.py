"""Places where something could sensibly be added: an instruction to add something applies only if there is one."""

import ast
from collections.abc import Iterator

from codechat.sandbox.languages.python.syntax import parameters
from codechat.studies.refine.patterns.base import Occurrence, at, each_of, pattern
from codechat.studies.refine.patterns.finders.functions import local_bindings
from codechat.studies.refine.patterns.finders.usage import TRAVERSING, call
from codechat.studies.refine.patterns.reading.code import Code, is_hint
from codechat.studies.refine.patterns.reading.tree import COMPREHENSIONS, LOOPS, Function, own_nodes, walk

_POSITIONAL = """
    abs all any ascii bin bool callable chr classmethod delattr divmod eval filter float format frozenset getattr
    hasattr hash hex id input int isinstance issubclass iter len list map next object oct ord range repr reversed set
    setattr slice staticmethod super tuple type vars zip
    .add .append .appendleft .capitalize .casefold .clear .copy .count .difference .discard .endswith .extend
    .extendleft .find .fromkeys .get .index .insert .intersection .isalnum .isalpha .isdecimal .isdigit .islower
    .isnumeric .isspace .isupper .issubset .issuperset .items .join .keys .ljust .rjust .center .lower .lstrip .pop
    .popitem .popleft .remove .replace .reverse .rfind .rotate .rstrip .setdefault .startswith .strip .swapcase .title
    .union .upper .values .zfill .partition .rpartition
"""
_WITHOUT_KEYWORDS = frozenset(_POSITIONAL.split())
_MEASURING = ("len", "sum", "min", "max", "sorted", "list", "set", "enumerate", "zip", "reversed", "any", "all")
_OF_TEXTS = {"upper", "lower", "title", "strip", "capitalize", "format", "split", "replace"}
_MAY_FAIL = {"int", "float", "min", "max", "input", "next", ".index", ".remove", "getattr"}
_QUIET = {"sum", "sorted", "enumerate", "str", "round", "dict", "pow", ".sort", ".split", ".update",
          ".splitlines", ".format", ".encode"}  # fmt: skip
_ASKING = {".get", ".pop", "next", "getattr", ".find", ".setdefault", "iter"}
_CHANGING = {"append", "add", "insert", "extend", "pop", "remove", "sort", "reverse", "clear", "update", "setdefault",
             "popleft", "popitem", "appendleft", "discard", "write"}  # fmt: skip
_DECIDING = (ast.If, ast.IfExp, ast.Return, ast.Break, ast.Raise, ast.Match, ast.BoolOp, ast.Compare)
_KEYED = {"dict", ".get", ".items", ".keys", ".setdefault", ".count", "collections.Counter", "collections.OrderedDict"}
_TAKING = (".pop", ".popleft", "next", ".append", ".readline")


@pattern("keyed_call", "call that takes keywords", "calls that take keywords")
def keyed_call(code: Code) -> Iterator[Occurrence]:
    """Calls that could pass an argument by keyword: `len` and `.append` take none."""
    for node in code.find(ast.Call):
        origin = code.called(node.func)
        fixed = origin in _WITHOUT_KEYWORDS or origin.startswith("math.")
        if not fixed and (origin or node.args or node.keywords):
            yield at(node)


@pattern("valued_function", "function of several values", "functions of several values")
def valued_function(code: Code) -> Iterator[Occurrence]:
    """Methods, and functions with at least two parameters or local variables."""
    for function in code.functions:
        names = [one.arg for one in parameters(function)]
        names += [binding.name for binding in local_bindings(code) if binding.function is function]
        if len(names) > 1 or isinstance(code.parents.get(function), ast.ClassDef):
            yield at(function, function.name)


@pattern("asked_argument", "argument that is asked for something", "arguments that are asked for something")
def asked_argument(code: Code) -> Iterator[Occurrence]:
    """Parameters other than texts that a function goes through, indexes or measures, or whose attributes it reads."""
    for function in code.functions:
        asked = _names_looked_into(code, function)
        for one in parameters(function):
            hint = ast.unparse(one.annotation) if one.annotation is not None else ""
            if one.arg in asked - {"self", "cls"} and hint not in ("int", "float", "str", "bool", "bytes"):
                yield at(one, f"'{one.arg}'")


def _names_looked_into(code: Code, function: Function) -> set[str]:
    held: list[ast.AST] = []
    for node in walk(function):
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            held += [node.value] if getattr(node, "attr", "") not in _OF_TEXTS else []
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            held += [node.iter, *getattr(node.iter, "args", [])]
        elif isinstance(node, ast.Call) and code.called(node.func) in _MEASURING:
            held += node.args
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            held += node.comparators
    return {one.id for one in held if isinstance(one, ast.Name)}


@pattern("managing", "work that can be managed", "pieces of work that can be managed")
def managing(code: Code) -> Iterator[Occurrence]:
    """Places for a `with`: code that opens, closes, locks, prints, fails or is caught."""
    for node in code.find(ast.Try, ast.Raise, ast.With, ast.Call, ast.Global, ast.Await, ast.BinOp):
        if isinstance(node, ast.Call):
            origin = code.called(node.func)
            own = origin == "" or any(one.name == origin for one in code.functions)
            if not own and (origin in _MAY_FAIL or (origin not in _WITHOUT_KEYWORDS and origin not in _QUIET)):
                yield at(node)
        elif not isinstance(node, ast.BinOp) or isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
            yield at(node)


@pattern("flag_loop", "loop that finds a truth value", "loops that find truth values")
def flag_loop(code: Code) -> Iterator[Occurrence]:
    """Loops that return a literal, raise, or set a variable to a Boolean: they find whether something is so."""
    for node in code.find(*LOOPS):
        for inner in own_nodes(node):
            value = inner.value if isinstance(inner, ast.Return | ast.Assign) else None
            flag = isinstance(value, ast.Constant) and isinstance(value.value, bool)
            found = flag or (isinstance(inner, ast.Return) and value is not None and code.is_literal(value))
            if found or isinstance(inner, ast.Raise):
                yield at(node)
                break


@pattern("missing_value", "value that may be missing", "values that may be missing")
def missing_value(code: Code) -> Iterator[Occurrence]:
    """`None`, a default of a parameter or of `.get`, a caught `KeyError`, a -1 or "" in place of a result."""
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
    stored = {ast.unparse(one.value) for one in code.find(ast.Subscript)
              if not isinstance(one.slice, ast.Slice) and not code.is_literal(one.slice)}  # fmt: skip
    for test in code.find(ast.Compare):
        if isinstance(test.ops[0], ast.In | ast.NotIn) and ast.unparse(test.comparators[0]) in stored:
            yield at(test)
    yield from flag_loop(code)


@pattern("fixed_values", "values that are not changed", "values that are not changed")
def fixed_values(code: Code) -> Iterator[Occurrence]:
    """Lists and sets that nothing changes, arguments only searched in, several literals, attributes set together."""
    changed = {ast.unparse(one.value) for one in code.find(ast.Attribute) if one.attr in _CHANGING}
    changed |= {ast.unparse(one.value) for one in code.find(ast.Subscript) if not isinstance(one.ctx, ast.Load)}
    changed |= {ast.unparse(one.target) for one in code.find(ast.AugAssign)}
    for node in code.find(ast.List, ast.Set):
        loaded = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        yield from [at(node)] if len(node.elts) > 1 and loaded and not _given_to(code, node) & changed else []
    for made in code.find(ast.Call, ast.ListComp):
        names = _given_to(code, made)
        listed = isinstance(made, ast.ListComp) or code.called(made.func) in ("list", "sorted", ".split", ".splitlines")
        yield from [at(made)] if listed and names and not names & changed else []
    for test in code.find(ast.Compare):
        looked = isinstance(test.ops[0], ast.In | ast.NotIn) and isinstance(test.comparators[0], ast.Name)
        looked = looked and not isinstance(test.left, ast.Constant)
        yield from [at(test)] if looked and ast.unparse(test.comparators[0]) not in changed | {*code.values} else []
    for function in code.functions:
        texts = {one.value for one in own_nodes(function) if isinstance(one, ast.Constant)}
        texts = {one for one in texts if not isinstance(one, bool) and one not in (None, 0, 1, -1, 2, "", " ")}
        kept = [one for one in own_nodes(function) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)]
        if len(texts) > 2 or (len(kept) > 1 and function.name == "__init__"):
            yield at(function, function.name)


def _given_to(code: Code, node: ast.AST) -> set[str]:
    above = code.parents.get(node)
    targets = above.targets if isinstance(above, ast.Assign) else [getattr(above, "target", None)]
    return {ast.unparse(one) for one in targets if isinstance(one, ast.Name | ast.Attribute)}


@pattern("shared_state", "function that changes what outlives a call", "functions that change what outlives a call")
def shared_state(code: Code) -> Iterator[Occurrence]:
    """Functions that change a global name, an attribute, or an object of a parameter, a closure or the module."""
    for function in code.functions:
        inside = [*own_nodes(function)]
        own = {one.id for one in inside if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        if any(isinstance(node, ast.Global | ast.Nonlocal) or _changed(node) - own for node in inside):
            yield at(function, function.name)


def _changed(node: ast.AST) -> set[str]:
    """The name of the object that a node changes in place: `rows` for `rows[0].append(x)`; empty if it has none."""
    base: ast.AST | None = None
    if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        base = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
        base = node.func.value
    while isinstance(base, ast.Attribute | ast.Subscript):
        base = base.value
    return {base.id} if isinstance(base, ast.Name) else set()


each_of("leaving_loop", "loop that may end early", *LOOPS, plural="loops that may end early",
        when=lambda _, node: isinstance(node, ast.While) or any(
            isinstance(one, _DECIDING) for each in node.body for one in walk(each)))  # fmt: skip


@pattern("keyed_work", "values kept by a key", "values kept by a key")
def keyed_work(code: Code) -> Iterator[Occurrence]:
    """Work by keys: dicts, counts or values kept by an index, `for` loops that fill them, several counters together."""
    for node in code.find(ast.Dict, ast.DictComp, ast.Call, ast.AugAssign):
        if isinstance(node, ast.Call):
            yield from [at(node)] if code.called(node.func) in _KEYED else []
        elif not isinstance(node, ast.AugAssign) or isinstance(node.target, ast.Subscript):
            yield at(node)
    for loop in code.find(ast.For, ast.AsyncFor):
        inside = [*own_nodes(loop)]
        raised = {ast.unparse(one.target) for one in inside if isinstance(one, ast.AugAssign)}
        heads = [one.func for one in inside if isinstance(one, ast.Call)]
        filled = any(isinstance(one, ast.Attribute) and one.attr in ("append", "add") for one in heads)
        if filled or (len(raised) > 1 and any(isinstance(one, ast.If) for one in inside)):
            yield at(loop)


@pattern("item_walk", "walk through items", "walks through items")
def item_walk(code: Code) -> Iterator[Occurrence]:
    """Loops, comprehensions and calls that go through values; loops that only count are left out."""
    for node in code.find(*LOOPS, *COMPREHENSIONS):
        head = getattr(node, "iter", None)
        counted = isinstance(node, ast.While) or (isinstance(head, ast.Call) and code.origin(head.func) == "range")
        if not counted or any(
            isinstance(one, ast.Subscript) or (isinstance(one, ast.Call) and code.called(one.func) in _TAKING)
            for one in walk(node)
        ):
            yield at(node)
    yield from call(code, [name for name in TRAVERSING if name != "range"])


@pattern("selecting", "walk that selects", "walks that select")
def selecting(code: Code) -> Iterator[Occurrence]:
    """Those walks through items in which a condition decides."""
    for node in code.find(*LOOPS, *COMPREHENSIONS):
        inside = walk(node)
        tested = any(isinstance(one, ast.If | ast.IfExp | ast.Compare | ast.BoolOp) for one in inside)
        if tested and (not isinstance(node, ast.While) or any(isinstance(one, ast.Subscript) for one in inside)):
            yield at(node)
    yield from call(code, ["filter", "itertools.filterfalse"])
