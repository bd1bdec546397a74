"""Types as any language writes them, their kinds of data, and the types of values that Python code returns."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from codechat.sandbox.languages.grammar import Function, Written, parts
from codechat.sandbox.languages.python.syntax import parse
from codechat.studies.multicodeif.constraints import words_of

# Types around another type that do not change its kind.
_WRAPPERS = words_of(
    "optional option box rc arc refcell cell mutex rwlock shared_ptr unique_ptr future completablefuture task promise "
    "result union annotated final awaitable cow pin"
)
_KINDS = {
    "list": words_of(
        "list vec vector arraylist linkedlist sequence iterable collection slice array deque vecdeque smallvec "
        "arrayvec span mutablesequence"
    ),
    "set": words_of(
        "set hashset treeset linkedhashset btreeset unordered_set frozenset sortedset abstractset mutableset multiset "
        "unordered_multiset"
    ),
    "map": words_of(
        "map dict hashmap treemap linkedhashmap btreemap unordered_map mapping sortedmap concurrenthashmap defaultdict "
        "ordereddict counter mutablemapping multimap concurrentmap"
    ),
    "tuple": words_of("tuple pair triple entry simpleentry simpleimmutableentry namedtuple"),
    "string": words_of("str string string_view charsequence wstring cstr"),
    "json": words_of("jsonobject objectnode jsonnode json ordered_json jsonvalue"),
    "boolean": words_of("bool boolean"),
    "integer": words_of("int integer long short byte size_t usize isize biginteger unsigned rune uint")
    | {f"{sign}{size}" for sign in "iu" for size in (8, 16, 32, 64, 128)}
    | {f"{sign}int{size}{tail}" for sign in ("", "u") for size in (8, 16, 32, 64) for tail in ("", "_t")},
    "float": words_of("float double f32 f64 float32 float64 decimal bigdecimal") | {"long double"},
}
_WHOLE_WORDS = words_of("unsigned signed long short int")
_ANYTHING = words_of("any object value interface interface{} unknown json jsonvalue jsonnode ?")
_ADJACENT = words_of("list vector vec arraylist")
_NAMES = {"dict": "map", "dictionary": "map", "str": "string", "bool": "boolean", "int": "integer"}
_NAMES |= {"jsonobject": "json"}
_LEADING = re.compile(
    r"(?:&\s*'\w+\s*|&&?|\*|'\w+\s+|(?:const|mut|final|struct|static|inline|virtual|impl|dyn|typename|constexpr|extern)\b\s*"
    r"|@\w+\s*|->\s*)+"
)
_TAIL = re.compile(r"(?:\s|\*|&|\bconst\b|\.\.\.)+$")
_LONGEST = 1000  # characters of a type that are read
_DEEPEST = 5  # types within each other that are read
_PLAIN = ("integer", "float", "boolean", "string")
_PLAIN_TYPES = Written()


def stripped(text: str) -> str:
    """A type's text without marks of reference, constness and lifetime around it."""
    text = " ".join(text[:_LONGEST].strip().strip("\"'").split())
    text = _LEADING.sub("", text, count=1) if _LEADING.match(text) else text
    return _TAIL.sub("", text).strip()


def head_of(text: str) -> tuple[str, list[str]]:
    """A type's name without its package, in lower case, and its arguments: `map` and two for `std::map<A, B>`.

    An array has the name `array` and its elements' type, a tuple in round brackets `tuple` and its parts.
    """
    text = stripped(text)
    if text.startswith("(") and text.endswith(")"):
        inside = parts(text[1:-1], ",")
        return ("tuple", inside) if len(inside) != 1 or text.endswith(",)") else head_of(text[1:-1])
    if match := re.match(r"\[\d*\](?=.)", text):  # of Go
        return "array", [text[match.end() :]]
    if text.startswith("[") and text.endswith("]"):
        return "array", [parts(text[1:-1], ";")[0]] if text[1:-1].strip() else []
    if match := re.search(r"(?: \[[^\[\]]*\]|\[\d*\])(?:\[[^\[\]]*\])*$", text):  # of C, where a space precedes them
        return "array", [text[: match.start()] + " []" * (match[0].count("[") > 1) + "[]" * (match[0].count("[") - 2)]
    if match := re.match(r"map\[", text):  # of Go
        return "map", parts(text[4:].replace("]", ",", 1), ",")
    match = re.match(r"[\w.:\s]+?(?=[<\[]|$)", text)
    name = re.split(r"\.|::", match[0].strip())[-1].lower() if match else text.lower()
    rest = text[match.end() :] if match else ""
    return name, parts(rest[1:-1], ",") if rest[:1] in ("<", "[") and rest[-1:] in (">", "]") else []


@cache
def _names(written: Written) -> dict[str, frozenset[str]]:
    """The names of each kind in a language, in lower case: the general ones, and the language's own."""
    kinds = {"wrapper": _WRAPPERS, "inferred": words_of("auto var decltype"), **_KINDS}
    return {kind: names | set(written.kinds.get(kind, "").split()) for kind, names in kinds.items()}


@dataclass(frozen=True)
class Types:
    """The types of a program: how the language writes them, and the types behind the program's own names.

    An imported name has no type behind it: its kind may be unknown.
    """

    written: Written = _PLAIN_TYPES
    aliases: Mapping[str, str] = field(default_factory=dict)

    def heads(self, text: str, depth: int = 0) -> Iterator[tuple[str, list[str]]]:
        """The types within a type: without `Optional` and the like around it, and each member of a union."""
        text = self.written.form(text.strip()[:_LONGEST])
        members = parts(text, "|")
        if len(members) > 1 and depth < _DEEPEST:
            for member in members:
                yield from self.heads(member, depth + 1)
            return
        name, arguments = head_of(text)
        meant = self.aliases.get(re.split(r"[<\[]", stripped(text), maxsplit=1)[0], text)
        yield ("integer" if name and set(name.split()) <= _WHOLE_WORDS else name), arguments
        if depth < _DEEPEST and meant != text:
            yield from self.heads(meant, depth + 1)
        if depth < _DEEPEST and name in self.names("wrapper"):
            for argument in arguments[:1] if name == "result" else arguments:
                yield from self.heads(argument, depth + 1)

    def names(self, kind: str) -> frozenset[str]:
        """The names of a kind's types, in lower case."""
        return _names(self.written).get(kind, frozenset())

    def is_kind(self, text: str, wanted: str) -> bool | None:
        """Whether a written type is of the wanted kind, such as `Matrix`, `Struct:Name`, or a type's own name.

        None if that is unknown: the type is inferred or imported, or the language does not mark such kinds.
        """
        lower, heads = wanted.strip().lower(), list(self.heads(text))
        if lower.startswith("struct:"):
            return any(name == lower.partition(":")[2].strip() for name, _ in heads)
        kind = _NAMES.get(lower, lower)
        if any(self._is(name, arguments, kind, text) for name, arguments in heads):
            return True
        return None if any(self._may_be(name, kind, text) for name, _ in heads) else False

    def infers(self, function: Function) -> bool:
        """Whether a function's result has no written type, and may have any."""
        inferred = self.written.inferred
        return bool(inferred) and not function.returns and re.match(inferred, function.whole.text) is not None

    def _may_be(self, name: str, kind: str, text: str) -> bool:
        """Whether the kind of a type with that name is unknown."""
        if kind in self.written.untold.split():
            return bool(re.search(r"[*\[]", text)) or not any(name in self.names(each) for each in _PLAIN)
        imported = any(name == own.lower() and own == meant for own, meant in self.aliases.items())
        known = any(name in names for names in _names(self.written).values())
        return name in self.names("inferred") or (imported and not known)

    def _is(self, name: str, arguments: list[str], kind: str, text: str) -> bool:
        nested = {inner for argument in arguments[-1:] for inner, _ in self.heads(argument)}
        lists, maps = self.names("list"), self.names("map")
        collections = lists | self.names("set") | maps
        anything = name in maps and (name == "dict" or not arguments or bool(nested & _ANYTHING))
        special = {
            "matrix": "matrix" in name or name in ("ndarray", "array2") or (name in lists and bool(nested & lists)),
            "tree": "tree" in name or "node" in name,
            "graph": "graph" in name or "adj" in name or (name in maps | _ADJACENT and bool(nested & collections)),
            "json": name in self.names("json") or (name == "value" and "json" in text.lower()) or anything,
            "none": name in ("", "none"),
            "node": "node" in name,
            "struct": name != "tuple" and all(name not in self.names(each) for each in _KINDS),
            "heapq": name in ("heapq", "list"),  # a heap of Python is a list
            "linkedlist": "node" in name or "list" in name,
        }
        return special[kind] if kind in special else name in self.names(kind) or name == kind


Values = list[str]
"""The types of the values of one `return`, as they would be written; empty for one that is unknown."""

_CALLS = {
    **{name: name for name in words_of("int float str bool list dict set tuple frozenset bytes defaultdict deque")},
    **dict.fromkeys(words_of("len ord hash id"), "int"),
    **dict.fromkeys(words_of("any all isinstance issubclass callable hasattr"), "bool"),
    **dict.fromkeys(words_of("startswith endswith isdigit isalpha isalnum isupper islower exists"), "bool"),
    **dict.fromkeys(words_of("sorted split rsplit splitlines readlines most_common findall tolist"), "list"),
    **dict.fromkeys(words_of("join strip lower upper title replace format hexdigest input dumps"), "str"),
    **dict.fromkeys(words_of("time perf_counter mean sqrt total_seconds"), "float"),
}
# Kinds that nothing but themselves can be, unlike a graph or a tree, which may be built of anything.
_ALONE = words_of("int integer float str string bool boolean list set dict map tuple collections.counter queue.queue")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_METHODS_ONLY = words_of("join strip lower upper title replace format split time")
_LITERALS: dict[type[ast.expr], str] = {
    **dict.fromkeys((ast.Dict, ast.DictComp), "dict"), **dict.fromkeys((ast.Set, ast.SetComp), "set"),
    ast.List: "list", ast.Tuple: "tuple", ast.JoinedStr: "str", ast.Compare: "bool",
}  # fmt: skip


def without_annotation(code: str, name: str, fits: Callable[[Values], bool | None]) -> tuple[bool | None, str]:
    """Whether everything that a function returns fits, by its statements; and the reason, in one line.

    The first function of the name counts. `fits` decides on the values of one `return`, None if unknown.
    """
    tree = parse(code)
    nodes = (node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)) if tree else iter(())
    function = next((node for node in nodes if node.name == name), None)
    if function is None:
        return None, f"the type that {name} returns is not written, and the code does not parse"
    known = _variables(function)
    returns = [each for each in _own(function) if isinstance(each, ast.Return)]
    if not returns:
        return False, f"{name} returns nothing"
    found = [(each.lineno, _values(each.value, known)) for each in returns]
    fitting = [(line, None if values is None else fits(values)) for line, values in found]
    line, fit = min(fitting, key=lambda pair: (False, True, None).index(pair[1]))  # the first of the worst
    texts = {
        False: f"{name} returns something else, as far as its statements tell",
        True: f"{name} returns what is asked for",
        None: f"what {name} returns has no written type, and its statements do not tell it",
    }
    return fit, f"line {line}: {texts[fit]}"


def fits(kind: str, wanted: str) -> bool | None:
    """Whether a type that the statements show is of the wanted kind; None if that is unknown or possible.

    A whole number may be meant as another number, None as a missing value, a collection as any shape built of it.
    """
    types = Types()
    if not kind or types.is_kind(kind, wanted) or head_of(kind) == head_of(wanted):
        return bool(kind) or None
    if kind == "None" or (kind == "int" and types.is_kind("float", wanted)):
        return None
    return False if kind in ("int", "float", "str", "bool", "bytes") or wanted.lower() in _ALONE else None


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without the functions and classes within it."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            yield from _own(child)


def _values(value: ast.expr | None, known: dict[str, str]) -> Values | None:
    if isinstance(value, ast.Tuple):
        return [_type_of(each, known) for each in value.elts]
    if value is None:
        return []
    kind = _type_of(value, known)
    return [kind] if kind else None


def _variables(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """The types of a function's variables; empty for an unknown type, and for several."""
    arguments = function.args
    known = {
        each.arg: ast.unparse(each.annotation) if each.annotation else ""
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    }
    for node in _own(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _note(known, target, _type_of(node.value, known))
        elif isinstance(node, ast.AnnAssign):
            _note(known, node.target, ast.unparse(node.annotation))
        elif isinstance(node, ast.AugAssign):
            kind = _type_of(ast.BinOp(ast.Name(getattr(node.target, "id", "")), node.op, node.value), known)
            _note(known, node.target, kind)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            _note(known, node.target, "")
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            _note(known, node.optional_vars, "")
    return known


def _note(known: dict[str, str], target: ast.expr, kind: str) -> None:
    if isinstance(target, ast.Name):
        before = known.get(target.id, kind)
        lists = before.startswith("list") and kind.startswith("list")
        known[target.id] = kind if before == kind else "list" if lists else ""
    elif isinstance(target, ast.Tuple | ast.List | ast.Starred):
        for child in ast.iter_child_nodes(target):
            if isinstance(child, ast.expr):
                _note(known, child, "")


def _type_of(node: ast.expr, known: dict[str, str]) -> str:
    """The type of an expression as it would be written; empty if it is unknown."""
    kind = _LITERALS.get(type(node), "")
    match node:
        case ast.Constant(value=value):
            kind = "None" if value is None else type(value).__name__
        case ast.Name(id=name):
            kind = known.get(name, "")
        case ast.List(elts=[first, *_]) | ast.ListComp(elt=first):
            inner = _type_of(first, known)
            kind = f"list[{inner}]" if inner else "list"
        case ast.UnaryOp(op=op, operand=operand):
            kind = "bool" if isinstance(op, ast.Not) else _type_of(operand, known)
        case ast.IfExp(body=body, orelse=other):
            kind = _common(_type_of(body, known), _type_of(other, known))
        case ast.BoolOp(values=values):
            kind = _common(*(_type_of(each, known) for each in values))
        case ast.BinOp(left=left, op=op, right=right):
            kind = _computed(_type_of(left, known), op, _type_of(right, known))
        case ast.Call(func=function):
            kind = _called(function, node, known)
    return kind


def _common(*kinds: str) -> str:
    return kinds[0] if len(set(kinds)) == 1 else ""


def _computed(left: str, op: ast.operator, right: str) -> str:
    if isinstance(op, ast.Div) or "float" in (left, right):
        return "float" if {left, right} <= {"int", "float", "", "bool"} else ""
    if left == "str" and isinstance(op, ast.Mod):
        return "str"
    return left if left == right or (left and left.startswith("list") and right.startswith("list")) else ""


def _called(function: ast.expr, call: ast.Call, known: dict[str, str]) -> str:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name == "round":
        return "float" if len(call.args) > 1 else "int"
    if name == "copy" and isinstance(function, ast.Attribute):
        return _type_of(function.value, known)
    if name in _METHODS_ONLY and not isinstance(function, ast.Attribute):
        return ""
    return name if name[:1].isupper() else _CALLS.get(name, "")
