"""What a constraint demands of code: whether a prompt says it, and how it stands to earlier constraints of a chain.

Both are read by words, without a model: a paraphrase that shares no word with the constraint is not seen.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal

from codechat.sandbox.languages import language_of
from codechat.studies.multicodeif.constraints import Constraint, constraint_type

Demand = tuple[str, ...]
"""Wordings of one demand: a prompt says it if it has one of them."""
Relation = Literal["repeated", "contradictory"]
SHORT = 8
"""Words of a judged demand: a longer one is an explanation, whose words no prompt need have."""
_KINDS: dict[str, Demand] = {
    "string": ("string", "str", "text"),
    "integer": ("integer", "int", "number", "count", "i32", "i64", "usize", "long"),
    "float": ("float", "double", "decimal", "floating", "number", "f64"),
    "boolean": ("boolean", "bool", "true", "whether", "flag"),
    "list": ("list", "array", "vector", "vec", "slice", "sequence"),
    "map": ("map", "dictionary", "dict", "HashMap", "mapping", "object"),
    "set": ("set", "HashSet"),
    "matrix": ("matrix", "grid", "two dimensional", "2d"),
    "tuple": ("tuple", "pair"),
    "error": ("error", "err"),
}
_KINDS |= {"str": _KINDS["string"], "dict": _KINDS["map"], "bool": _KINDS["boolean"]}
_KINDS |= dict.fromkeys(("int", "i32", "usize"), _KINDS["integer"])
_KINDS |= dict.fromkeys(("float64", "f64", "double"), _KINDS["float"])
_NAMED: dict[str, Demand] = {
    "class": ("class", "struct", "type", "interface"),
    "struct": ("class", "struct", "type"),
    "function": ("function", "method"),
    "variable": ("variable", "field", "parameter", "identifier"),
    "k&r": ("K&R", "Kernighan"),
    "1tbs": ("1TBS", "one true brace"),
    "allman": ("Allman", "BSD"),
    "spacing": ("spacing", "spaces around", "space around", "around operator", "between operator"),
    "no spacing": ("no spacing", "no space", "without space", "without spacing", "without any space", "not around"),
}
_ALSO = {"dict": "dictionary", "chan": "channel", "unordered_map": "hash map", "kotlindoc": "KDoc"}
_FILLERS = frozenset(
    re.findall(
        r"\w+",
        "a an and as at by for from in is it its more most no of on one or than that the their to with be must problem "
        "algorithm expression syntax sugar",
    )
)
_COMMENTS = frozenset({"comment", "comments", "style"})
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def unsaid(constraint: Constraint, prompt: str, value: str = "") -> list[str]:
    """The demands of a constraint that a prompt does not say. `value` is the drawn one of a type whose answer is a
    program; without it such a constraint demands nothing in words."""
    return [each[0] for each in _demands(constraint, value) if not any(says(prompt, wording) for wording in each)]


def names_language(prompt: str, language: str) -> bool:
    """Whether a prompt names a language, in one of its names."""
    return any(says(prompt, name) for name in language_of(language).names)


def says(prompt: str, words: str) -> bool:
    """Whether a prompt has these words in a row, in any case and spelling: `HashMap`, `hash map` and `hash_maps`."""
    return _wording(words).search(prompt) is not None


@cache
def _wording(words: str) -> re.Pattern[str]:
    tail = "".join(re.escape(mark) for mark in (re.search(r"[+#]*$", words) or [""])[0])
    chunks = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+", words)
    text = r"[\W_]*".join(map(re.escape, chunks)) or re.escape(words)
    end = r"(?![\w+#])" if tail or len(words) == 1 else r"(?:s|es|d|ed|ing)?(?![^\W_])"
    return re.compile(rf"(?<![^\W_]){text}{tail}{end}", re.IGNORECASE)


def _demands(constraint: Constraint, value: str) -> Iterator[Demand]:
    kind, values = constraint_type(constraint.type), constraint.answer.values
    match constraint.type:
        case _ if kind.by == "judge":
            own = "" if kind.solved or ";" in constraint.answer.raw else constraint.answer.raw
            yield from _content(value or own)
        case "language_type":
            yield language_of(constraint.answer.language or constraint.answer.raw).names
        case "language_version":
            yield tuple(re.findall(r"\d[\d.]*", values[0])[:1])
        case "data_structure_size":
            yield from (_structure(values[0]), _number(values[1]))
        case "naming" | "indentation" | "brace" | "comment":
            yield from _style(constraint.type, values)
        case "advanced_syntax":
            yield from _content(values[0])
        case "parameter_type" | "parameter_signature" | "return_type" | "return_cardinality":
            yield (values[0],)
            names = [each.partition(":")[2].strip() or each for each in values[1:]]
            yield from ((*_KINDS.get(name.lower(), ()), name) for name in names)
        case _:
            yield from map(_structure, values)


def _style(kind: str, values: Sequence[str]) -> Iterator[Demand]:
    match kind:
        case "naming":
            for part in values[0].split(","):
                named, _, case = part.partition(":")
                yield (case,)
                yield _NAMED.get(named.strip(), (named,))
        case "indentation":
            yield ("tab" if "\t" in values[0] else "space",)
            yield from [_number(str(len(values[0])))] if " " in values[0] else []
            yield _NAMED.get(values[1], (values[1],))
        case "brace":
            yield _NAMED.get(values[0].lower(), (values[0],))
        case _:
            words = [word for word in re.findall(r"[A-Za-z]+", values[0]) if word.lower() not in _COMMENTS]
            yield from ((word, *filter(None, [_ALSO.get(word.lower())])) for word in words)


def _content(text: str) -> Iterator[Demand]:
    """The words of a short demand but those that any sentence has; a term such as O(n log n) is one word."""
    terms = re.findall(r"O\([^()]*(?:\([^()]*\))?[^()]*\)|[\w'-]+", text)
    if len(terms) <= SHORT or text.startswith("O("):
        yield from ((term,) for term in terms if term.lower() not in _FILLERS)


def _structure(name: str) -> Demand:
    last = re.split(r"\.|::|/", name.removesuffix("!").removesuffix(".h"))[-1]
    return (name, last, _ALSO.get(last.lower(), last))


def _number(digits: str) -> Demand:
    number = int(digits) if digits.isdigit() else 0
    return (digits, f"{number:,}", *(_NUMBERS[number : number + 1]))


def relation(new: Constraint, earlier: Sequence[Constraint]) -> tuple[Relation, Constraint] | None:
    """How a constraint stands to those before it in a chain, with the one that it repeats or contradicts.

    It repeats one that demands at least as much, and contradicts one that no program can keep with it.
    """
    found = [(each, _to_one(new, each)) for each in earlier]
    for wanted in ("contradictory", "repeated"):
        for each, stands in found:
            if stands == wanted:
                return stands, each
    return None


_ONE_VALUE = ("brace", "indentation", "language_type", "language_version")
_ONE_EACH = ("return_type", "parameter_signature", "return_cardinality")
"""Types of which code keeps one value alone, and of which each function that the answer names does."""


def _to_one(new: Constraint, old: Constraint) -> Relation | None:
    if len({new.answer.language, old.answer.language} - {""}) > 1:
        return "contradictory"
    values, others = _plain(new), _plain(old)
    if "data_structure" in new.type and "data_structure" in old.type:
        return _structures(new.type, values, old.type, others)
    if new.type != old.type:
        return None
    if values == others:
        return "repeated"
    if new.type == "naming":
        return _namings(values[0], others[0])
    one = new.type in _ONE_VALUE or (new.type in _ONE_EACH and values[0] == others[0])
    return "contradictory" if one else None


def _namings(new: str, old: str) -> Relation | None:
    asked, before = (dict(part.split(":") for part in each.split(",")) for each in (new, old))
    if any(before.get(kind, case) != case for kind, case in asked.items()):
        return "contradictory"
    return "repeated" if asked.items() <= before.items() else None


def _structures(new: str, values: Sequence[str], old: str, others: Sequence[str]) -> Relation | None:
    """A structure that is demanded already is no new one; two bounds of one structure contradict each other."""
    if values[0] != others[0]:
        return None
    if new.endswith("_type"):
        return "repeated"
    if new != old:
        return None
    if new.endswith("_size"):
        return "repeated" if values[1] == others[1] else "contradictory"
    return "repeated" if {*values[1:]} <= {*others[1:]} else None


def _plain(constraint: Constraint) -> tuple[str, ...]:
    values = constraint.answer.values or (constraint.answer.raw,)
    return tuple(" ".join(each.lower().split()) for each in values)
