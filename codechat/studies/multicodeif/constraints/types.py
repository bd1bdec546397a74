"""Types as they are written in any language, and the kinds of data that they stand for."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from codechat.sandbox.languages.grammar import Function, Written, parts

# What may surround a type without changing what it is of.
_WRAPPERS = frozenset({
    "optional", "option", "box", "rc", "arc", "refcell", "cell", "mutex", "rwlock", "shared_ptr", "unique_ptr",
    "future", "completablefuture", "task", "promise", "result", "union", "annotated", "final", "awaitable", "cow",
    "pin",
})  # fmt: skip
_KINDS: dict[str, frozenset[str]] = {
    "list": frozenset({
        "list", "vec", "vector", "arraylist", "linkedlist", "sequence", "iterable", "collection", "slice", "array",
        "deque", "vecdeque", "smallvec", "arrayvec", "span", "mutablesequence",
    }),
    "set": frozenset({
        "set", "hashset", "treeset", "linkedhashset", "btreeset", "unordered_set", "frozenset", "sortedset",
        "abstractset", "mutableset", "multiset", "unordered_multiset",
    }),
    "map": frozenset({
        "map", "dict", "hashmap", "treemap", "linkedhashmap", "btreemap", "unordered_map", "mapping", "sortedmap",
        "concurrenthashmap", "defaultdict", "ordereddict", "counter", "mutablemapping", "multimap", "concurrentmap",
    }),
    "tuple": frozenset({"tuple", "pair", "triple", "entry", "simpleentry", "simpleimmutableentry", "namedtuple"}),
    "string": frozenset({"str", "string", "string_view", "charsequence", "wstring", "cstr"}),
    "json": frozenset({"jsonobject", "objectnode", "jsonnode", "json", "ordered_json", "jsonvalue"}),
    "boolean": frozenset({"bool", "boolean"}),
    "integer": frozenset({
        "int", "integer", "long", "short", "byte", "size_t", "usize", "isize", "biginteger", "unsigned", "rune", "uint",
        *(f"{sign}{size}" for sign in "iu" for size in (8, 16, 32, 64, 128)),
        *(f"{sign}int{size}{tail}" for sign in ("", "u") for size in (8, 16, 32, 64) for tail in ("", "_t")),
    }),
    "float": frozenset({"float", "double", "f32", "f64", "float32", "float64", "decimal", "bigdecimal", "long double"}),
}  # fmt: skip
_WHOLE_WORDS = frozenset({"unsigned", "signed", "long", "short", "int"})
_ANYTHING = frozenset(
    {"any", "object", "value", "interface", "interface{}", "unknown", "json", "jsonvalue", "jsonnode", "?"}
)
_ADJACENT = frozenset({"list", "vector", "vec", "arraylist"})
_NAMES = {
    "dict": "map", "dictionary": "map", "str": "string", "bool": "boolean", "int": "integer", "jsonobject": "json",
}  # fmt: skip
_LEADING = re.compile(
    r"(?:&\s*'\w+\s*|&&?|\*|'\w+\s+|(?:const|mut|final|struct|static|inline|virtual|impl|dyn|typename|constexpr|extern)\b\s*"
    r"|@\w+\s*|->\s*)+"
)
_TAIL = re.compile(r"(?:\s|\*|&|\bconst\b|\.\.\.)+$")
_LONGEST = 1000  # characters of a type that are looked at
_DEEPEST = 5  # types within each other that are looked at
_PLAIN = ("integer", "float", "boolean", "string")
_PLAIN_TYPES = Written()
_INFERRED = frozenset({"auto", "var", "decltype"})


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
    """The names of each kind in a language, in lower case: those of every language, and its own."""
    kinds = {"wrapper": _WRAPPERS, "inferred": _INFERRED, **_KINDS}
    return {kind: names | set(written.kinds.get(kind, "").split()) for kind, names in kinds.items()}


@dataclass(frozen=True)
class Types:
    """The types of a program: how its language writes them, and the types that its own names stand for.

    A name that the program imports stands for itself: what it is of may be unknown.
    """

    written: Written = _PLAIN_TYPES
    aliases: Mapping[str, str] = field(default_factory=dict)

    def heads(self, text: str, depth: int = 0) -> Iterator[tuple[str, list[str]]]:
        """The types that a type stands for: without `Optional` and the like around it, and each member of a union."""
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

        None if that is unknown: the type is inferred or imported, or the language does not tell such kinds.
        """
        lower, heads = wanted.strip().lower(), list(self.heads(text))
        if lower.startswith("struct:"):
            own = lower.partition(":")[2].strip()
            return any(name == own for name, _ in heads)
        kind = _NAMES.get(lower, lower)
        if any(self._is(name, arguments, kind, text) for name, arguments in heads):
            return True
        return None if any(self._may_be(name, kind, text) for name, _ in heads) else False

    def infers(self, function: Function) -> bool:
        """Whether a function's result has no written type, and may be of any."""
        inferred = self.written.inferred
        return bool(inferred) and not function.returns and re.match(inferred, function.whole.text) is not None

    def _may_be(self, name: str, kind: str, text: str) -> bool:
        """Whether nothing tells what a type of that name is."""
        if kind in self.written.untold.split():
            return bool(re.search(r"[*\[]", text)) or not any(name in self.names(each) for each in _PLAIN)
        imported = any(name == own.lower() and own == meant for own, meant in self.aliases.items())
        return name in self.names("inferred") or (
            imported and not any(name in names for names in _names(self.written).values())
        )

    def _inner(self, arguments: list[str]) -> set[str]:
        """The names of what a collection holds."""
        return {inner for argument in arguments[-1:] for inner, _ in self.heads(argument)}

    def _is(self, name: str, arguments: list[str], kind: str, text: str) -> bool:
        nested, lists = self._inner(arguments), self.names("list")
        maps = self.names("map")
        special = {
            "matrix": "matrix" in name or name in ("ndarray", "array2") or (name in lists and bool(nested & lists)),
            "tree": "tree" in name or "node" in name,
            "graph": "graph" in name
            or "adj" in name
            or (name in maps | _ADJACENT and bool(nested & (lists | self.names("set") | maps))),
            "json": name in self.names("json")
            or (name == "value" and "json" in text.lower())
            or (name in maps and (name == "dict" or not arguments or bool(nested & _ANYTHING))),
            "none": name in ("", "none"),
            "node": "node" in name,
            "struct": name != "tuple" and all(name not in self.names(each) for each in _KINDS),
            "heapq": name in ("heapq", "list"),  # a heap of Python is a list
            "linkedlist": "node" in name or "list" in name,
        }
        return special[kind] if kind in special else name in self.names(kind) or name == kind
