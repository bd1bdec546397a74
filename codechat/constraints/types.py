"""Types as they are written in any language, and the kinds of data that they stand for."""

import re
from collections.abc import Iterator

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
_ANYTHING = frozenset({"any", "object", "value", "interface", "unknown", "json", "jsonvalue", "jsonnode", "?"})
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
_OPEN, _CLOSE = "[(<{", "])>}"


def stripped(text: str) -> str:
    """A type's text without marks of reference, constness and lifetime around it."""
    text = " ".join(text[:_LONGEST].strip().strip("\"'").split())
    text = _LEADING.sub("", text, count=1) if _LEADING.match(text) else text
    return _TAIL.sub("", text).strip()


def split(text: str, marks: str = ",") -> list[str]:
    """The parts of a text between the marks; marks within brackets divide nothing."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in _OPEN) - (character in _CLOSE)
        if character in marks and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def head_of(text: str) -> tuple[str, list[str]]:
    """A type's name without its package, in lower case, and its arguments: `map` and two for `std::map<A, B>`.

    An array has the name `array` and its elements' type, a tuple in round brackets `tuple` and its parts.
    """
    text = stripped(text)
    if text.startswith("(") and text.endswith(")"):
        parts = split(text[1:-1])
        return ("tuple", parts) if len(parts) != 1 or text.endswith(",)") else head_of(text[1:-1])
    if match := re.match(r"\[\d*\](?=.)", text):  # of Go
        return "array", [text[match.end() :]]
    if text.startswith("[") and text.endswith("]"):
        return "array", [split(text[1:-1], ";")[0]] if text[1:-1].strip() else []
    if match := re.search(r"(?: \[[^\[\]]*\]|\[\d*\])(?:\[[^\[\]]*\])*$", text):  # of C, where a space precedes them
        return "array", [text[: match.start()] + " []" * (match[0].count("[") > 1) + "[]" * (match[0].count("[") - 2)]
    if match := re.match(r"map\[", text):  # of Go
        return "map", split(text[4:].replace("]", ",", 1))
    match = re.match(r"[\w.:\s]+?(?=[<\[]|$)", text)
    name = re.split(r"\.|::", match[0].strip())[-1].lower() if match else text.lower()
    rest = text[match.end() :] if match else ""
    return name, split(rest[1:-1]) if rest[:1] in ("<", "[") and rest[-1:] in (">", "]") else []


def heads(text: str, depth: int = 0) -> Iterator[tuple[str, list[str]]]:
    """The types that a type stands for: without `Optional` and the like around it, and each member of a union."""
    members = split(text, "|")
    if len(members) > 1 and depth < 5:
        for member in members:
            yield from heads(member, depth + 1)
        return
    name, arguments = head_of(text)
    yield ("integer" if name and set(name.split()) <= _WHOLE_WORDS else name), arguments
    if name in _WRAPPERS and depth < 5:
        for argument in arguments[:1] if name == "result" else arguments:
            yield from heads(argument, depth + 1)


def is_kind(text: str, wanted: str) -> bool:
    """Whether a written type is of the wanted kind, such as `Matrix`, `Struct:Name`, or a type's own name."""
    lower = wanted.strip().lower()
    if lower.startswith("struct:"):
        own = lower.partition(":")[2].strip()
        return any(name == own for name, _ in heads(text))
    kind = _NAMES.get(lower, lower)
    return any(_is(name, arguments, kind, text) for name, arguments in heads(text))


def _is(name: str, arguments: list[str], kind: str, text: str) -> bool:
    nested = {inner for argument in arguments[-1:] for inner, _ in heads(argument)}
    collects = bool(nested & (_KINDS["list"] | _KINDS["set"] | _KINDS["map"]))
    special = {
        "matrix": "matrix" in name or name == "ndarray" or (name in _KINDS["list"] and bool(nested & _KINDS["list"])),
        "tree": "tree" in name or "node" in name,
        "graph": "graph" in name or "adj" in name or (name in _KINDS["map"] | _ADJACENT and collects),
        "json": name in _KINDS["json"] or (name == "value" and "json" in text.lower()) or _holds_any(name, arguments),
        "none": name in ("", "none"),
        "node": "node" in name,
        "struct": name != "tuple" and all(name not in names for names in _KINDS.values()),
        "heapq": name in ("heapq", "list"),  # a heap of Python is a list
        "linkedlist": "node" in name or "list" in name,
    }
    return special[kind] if kind in special else name in _KINDS.get(kind, ()) or name == kind


def _holds_any(name: str, arguments: list[str]) -> bool:
    """Whether a type is a map that may hold any value, as a JSON object does; Python's `dict` is one."""
    held = {inner for argument in arguments[-1:] for inner, _ in heads(argument)}
    return name == "dict" or (name in _KINDS["map"] and (not arguments or bool(held & _ANYTHING)))
