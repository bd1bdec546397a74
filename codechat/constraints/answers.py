"""Published answers: the demand of a constraint, written as `language;value;…`."""

from dataclasses import dataclass

from codechat.constraints.unfinished import tree_of
from codechat.languages import language_of
from codechat.languages.grammar import Grammar, Parsed, Tree


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as written, its language's canonical name (empty if it names none), and its values after that."""

    raw: str
    language: str = ""
    values: tuple[str, ...] = ()

    @property
    def grammar(self) -> Grammar:
        """The grammar of the language. Raises `ValueError` if it has none."""
        language = language_of(self.language)
        if not isinstance(language, Parsed):
            raise ValueError(f"no grammar is known for the language '{self.language}'")
        return language.grammar

    def tree(self, code: str) -> Tree:
        """The tree of a code in the language; code that breaks off is closed first."""
        return tree_of(self.grammar, code)


def read_values(raw: str, count: int, form: str) -> Answer:
    """The answer with `count` values after its language. Raises `ValueError` that quotes the `form` of a right one."""
    language, *values = (part.strip() for part in raw.strip().strip(";").split(";"))
    if len(values) != count or not language or not all(values):
        raise ValueError(f"the answer '{raw:.60}' is not of the form {form}")
    answer = Answer(raw, language_of(language).names[0], tuple(values))
    if not isinstance(language_of(language), Parsed):
        raise ValueError(f"no rule reads the language '{language}'")
    return answer


def one_of(answer: Answer, value: str, known: tuple[str, ...] | frozenset[str]) -> Answer:
    """The answer, if its value is one that is known. Raises `ValueError` otherwise."""
    if value.lower() not in {each.lower() for each in known}:
        raise ValueError(f"'{value}' is none of {', '.join(sorted(known))}")
    return answer


def listed(text: str) -> tuple[str, ...]:
    """The entries of a list such as `[int, map[string]bool]`; commas within brackets divide nothing."""
    inner = text.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        raise ValueError(f"'{text:.60}' is not a list in square brackets")
    entries, depth = [""], 0
    for character in inner[1:-1]:
        depth += (character in "[(<{") - (character in "])>}")
        if character == "," and depth == 0:
            entries.append("")
        else:
            entries[-1] += character
    found = tuple(entry.strip().strip("'\"") for entry in entries)
    if not all(found):
        raise ValueError(f"'{text:.60}' has an empty entry")
    return found
