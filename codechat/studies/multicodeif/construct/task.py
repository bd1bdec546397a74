"""A task in the making, and what its constraints demand of a prompt and of each other.

Demands are read by words, without a model: a paraphrase that shares no word with the constraint is not seen.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter

from codechat.base.files import content_hash
from codechat.run.construct import Item
from codechat.sandbox.languages import language_of
from codechat.studies.multicodeif.constraints import Constraint, constraint_type


@dataclass(frozen=True, slots=True)
class Demanded:
    """A constraint of a task: the type, the value drawn from the pool, the language, and the answer for the value.

    For a solved type the answer is the value, until a witness replaces it.
    """

    type: str
    value: str
    language: str
    answer: str

    @property
    def constraint(self) -> Constraint:
        """The constraint for rules and judges."""
        return Constraint.of(self.type, self.answer)

    @property
    def words(self) -> str:
        """The constraint in words, with the value of a solved type, which only the task states."""
        words = self.constraint.words
        return f"{words.rstrip('.')}: {self.value}." if constraint_type(self.type).solved else words


@dataclass(frozen=True, slots=True)
class Made:
    """What the stages know of a task.

    `type` and `number` belong to the first level, `round` is the round of its start; `level` counts from 1, `chain`
    is the id of the first level's item. `demanded` are all constraints, the level's own last. `previous` is the id of
    the level before.
    """

    type: str
    number: int
    round: int
    snippet: Mapping[str, str]
    concepts: tuple[str, ...] = ()
    drawn: Mapping[str, str] | None = None
    prompt: str = ""
    demanded: tuple[Demanded, ...] = ()
    level: int = 1
    chain: str = ""
    previous: str | None = None
    witness: str = ""
    reviewed: bool = False
    nearest: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, item: Item) -> "Made":
        """The task of an item."""
        return _ADAPTER.validate_python(dict(item.data))

    def data(self) -> dict[str, Any]:
        """The data of the item."""
        return {name: [*value] if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @property
    def own(self) -> Demanded:
        """The constraint of this level."""
        return self.demanded[-1]

    @property
    def language(self) -> str:
        """The language of the task."""
        return self.own.language

    @property
    def constraints(self) -> list[Constraint]:
        """All constraints for rules and judges."""
        return [each.constraint for each in self.demanded]

    @property
    def content(self) -> str:
        """A hash of what people review: the prompt and the answers."""
        return content_hash([self.prompt, [[each.type, each.value, each.answer] for each in self.demanded]])[:16]


_ADAPTER: TypeAdapter[Made] = TypeAdapter(Made)

Demand = tuple[str, ...]
"""Wordings of one demand: a prompt states it with any of them."""
Relation = Literal["repeated", "contradictory"]
SHORT = 8
"""The words of a judged demand: a longer one is an explanation, whose words need not be in the prompt."""
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
_SYNONYMS = {"str": "string", "dict": "map", "bool": "boolean", "int": "integer", "i32": "integer", "usize": "integer"}
_SYNONYMS |= {"float64": "float", "f64": "float", "double": "float"}
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
_FILLERS = re.findall(
    r"\w+",
    "a an and as at by for from in is it its more most no of on one or than that the their to with be must problem "
    "algorithm expression syntax sugar",
)
_COMMENTS = frozenset({"comment", "comments", "style"})
_NUMBERS = re.findall(r"\w+", "zero one two three four five six seven eight nine ten eleven twelve")


def unsaid(constraint: Constraint, prompt: str, value: str = "") -> list[str]:
    """The demands of a constraint that a prompt does not state.

    `value` is the drawn one of a type whose answer is a program; without it such a constraint has no demand in words.
    """
    return [each[0] for each in _demands(constraint, value) if not any(says(prompt, wording) for wording in each)]


def names_language(prompt: str, language: str) -> bool:
    """Whether a prompt has one of the names of a language."""
    return any(says(prompt, name) for name in language_of(language).names)


def says(prompt: str, words: str) -> bool:
    """Whether a prompt has these words in a row, in any case and spelling: `HashMap`, `hash map` and `hash_maps`."""
    return _wording(words).search(prompt) is not None


@cache
def _wording(words: str) -> re.Pattern[str]:
    tail = re.escape(words[len(words.rstrip("+#")) :])
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
        case "advanced_syntax":
            yield from _content(values[0])
        case "parameter_type" | "parameter_signature" | "return_type" | "return_cardinality":
            yield (values[0],)
            for name in (each.partition(":")[2].strip() or each for each in values[1:]):
                yield (*_KINDS.get(_SYNONYMS.get(name.lower(), name.lower()), ()), name)
        case "naming" | "indentation" | "brace" | "comment":
            yield from _style(constraint.type, values)
        case _:
            yield from map(_structure, values)


def _style(kind: str, values: Sequence[str]) -> Iterator[Demand]:
    match kind:
        case "naming":
            for named, _, case in (part.partition(":") for part in values[0].split(",")):
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
    """The words of a short demand except fillers; a term such as O(n log n) is one word."""
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
    """The relation of a constraint to the earlier ones of a chain, with the one that it repeats or contradicts.

    It repeats one that demands at least as much, and contradicts one that no program can keep with it.
    """
    related = [(stands, each) for each in earlier if (stands := _to_one(new, each))]
    return min(related, key=lambda pair: pair[0], default=None)  # contradictory before repeated


_ONE_VALUE = ("brace", "indentation", "language_type", "language_version")
_ONE_EACH = ("return_type", "parameter_signature", "return_cardinality")
"""Types of which code keeps one value alone, and types of which each function named in the answer does."""


def _to_one(new: Constraint, old: Constraint) -> Relation | None:
    if len({new.answer.language, old.answer.language} - {""}) > 1:
        return "contradictory"
    values, others = (
        [" ".join(value.lower().split()) for value in each.answer.values or (each.answer.raw,)] for each in (new, old)
    )
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
