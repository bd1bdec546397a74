"""Where tasks come from: pools of values (`pools/TYPE.yaml`) and snippets of code (MultiCodeIF, III-B, step 1)."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from codechat.base.errors import UserError, nearest
from codechat.base.files import content_hash, from_yaml
from codechat.run.construct import read_rows
from codechat.sandbox.languages import Language, is_registered, language_of, languages
from codechat.sandbox.languages.grammar import Parsed
from codechat.studies.multicodeif.classifier import guess, labels_of
from codechat.studies.multicodeif.constraints import ConstraintType, constraint_type

HERE = Path(__file__).with_name("pools")
Text = Annotated[str, Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Example(_Part):
    """An example of a task for the author: the prompt, and the answer (for a solved type the value)."""

    prompt: Text
    answer: Text


class Values(_Part):
    """Values that fit the same languages; without languages, all of the pool."""

    values: list[Text] = Field(min_length=1)
    languages: list[Text] = []


class Pool(_Part):
    """The pool of one type of constraint.

    `name` is the type's; `range` describes the values in words. `answer` makes an answer of a value: `{language}`,
    `{function}` (a name that the author chooses) and `{value}` are filled in. A solved type has none: its answer is a
    program that keeps the value, and only the prompt states the value.
    """

    name: Text
    description: Text
    range: Text
    languages: list[Text] = Field(min_length=1)
    answer: Text | None = None
    example: Example
    values: list[Values] = Field(min_length=1)

    @field_validator("languages")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        return languages_of(names)

    @property
    def kind(self) -> ConstraintType:
        """The type of the pool."""
        return constraint_type(self.name)

    def pairs(self, languages: Collection[str] | None = None) -> Iterator[tuple[str, str]]:
        """Every value with every language that it fits, of the languages given by their canonical names."""
        for group in self.values:
            for language in languages_of(group.languages) or self.languages:
                if languages is None or language in languages:
                    yield from ((value, language) for value in group.values)

    def within(self, languages: Collection[str]) -> Self:
        """The pool for some languages alone, given by their canonical names."""
        fitting = (
            (group.values, [each for each in languages_of(group.languages) or self.languages if each in languages])
            for group in self.values
        )
        values = [Values(values=values, languages=names) for values, names in fitting if names]
        return self.model_copy(update={"values": values, "languages": [*languages]})

    def answer_to(self, value: str, language: str, function: str = "solve") -> str:
        """The answer that asks for a value; for a solved type the value itself, in place of a program."""
        filled = (self.answer or "{value}").replace("{language}", language).replace("{function}", function)
        return filled.replace("{value}", value)

    def holds(self, answer: str, value: str, language: str) -> bool:
        """Whether an answer asks for the drawn value in the drawn language.

        For a solved type every program may. Raises `ValueError` for a text that is no answer of the type.
        """
        found = self.kind.read(answer)
        if self.answer is None:
            return True
        if not found.language:
            return _plain(value) in _plain(answer)
        function = found.values[0] if "{function}" in self.answer else ""
        wanted = self.kind.read(self.answer_to(value, language, function))
        values, others = ([*map(_plain, each.values or (each.language,))] for each in (found, wanted))
        return found.language == wanted.language and values == others


def _plain(text: str) -> str:
    return " ".join(text.lower().split()) or text


def languages_of(names: Collection[str]) -> list[str]:
    """The canonical names. Raises `ValueError` for one that no language has."""
    for name in names:
        if not is_registered(name):
            raise ValueError(f"no language is called '{name:.60}'")
    return [language_of(name).names[0] for name in names]


def read_pools(folder: str | None = None) -> Mapping[str, Pool]:
    """The pools by type: the 27 pools of the package, and the pools of a folder, which take precedence.

    Raises `UserError` that names the file if it is empty, has an unknown type or language, or a value that the type's
    parser refuses.
    """
    paths = {path.stem: path for path in sorted(HERE.glob("*.yaml"))}
    if folder is not None:
        own = {path.stem: path for path in sorted(Path(folder).expanduser().glob("*.yaml"))}
        if not own:
            raise UserError(f"there is no pool in {folder}", "give a folder of files TYPE.yaml")
        paths |= own
    return {name: _read(path) for name, path in sorted(paths.items())}


def _read(path: Path) -> Pool:
    try:
        data: Any = from_yaml(path.read_text(encoding="utf-8"))
        pool = Pool.model_validate(data)
        if pool.name != path.stem:
            raise ValueError(f"its name '{pool.name:.60}' differs from the name of the file")
        for value, language in pool.pairs():
            if why := pool.kind.impossible(pool.kind.read(pool.answer_to(value, language))):
                raise ValueError(f"{value} in {language}: {why}")
        pool.kind.read(pool.example.answer)
    except (OSError, ValueError, yaml.YAMLError) as error:
        problem = str(error).splitlines()[0]
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            problem = f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}"
        raise UserError(f"the pool {path}: {problem}", "mend it: docs/multicodeif.md describes a pool") from error
    return pool


def choose_pools(
    pools: Mapping[str, Pool], types: Collection[str] | None, languages: Collection[str] | None
) -> Mapping[str, Pool]:
    """The pools of some types with the values for some languages; None: all languages, and all types that fit one.

    Types and languages may have any of their names. Raises `UserError` for an unknown one, and for a type that fits
    none of the languages.
    """
    wanted = [*pools] if types is None else [_named(name, pools) for name in types]
    try:
        known = None if languages is None else languages_of(languages)
    except ValueError as error:
        raise UserError(f"languages: {error}", "codechat list constraints shows the languages of rules") from None
    chosen = {name: pools[name] if known is None else pools[name].within(known) for name in wanted}
    for name, pool in () if types is None else chosen.items():
        if not pool.values:
            fitting = ", ".join(dict.fromkeys(language for _, language in pools[name].pairs()))
            raise UserError(f"none of the languages {', '.join(known or ())} fits the type {name}", f"it has {fitting}")
    return {name: pool for name, pool in chosen.items() if pool.values}


def _named(name: str, pools: Mapping[str, Pool]) -> str:
    """Resolve a type by its own name, or by its published name if that is unambiguous."""
    if name in pools:
        return name
    named = [pool.name for pool in pools.values() if name in ("/".join(pool.kind.published), pool.kind.published[1])]
    if len(named) != 1:
        raise UserError(f"no pool of constraints is called '{name:.60}'", nearest(name, pools))
    return named[0]


LINES, CHARACTERS = (3, 400), 20_000
"""The smallest and largest number of lines that are not blank, and the largest number of characters."""
LICENCES = ("LICENSE", "LICENCE", "COPYING")
SNIPPETS = (
    "a line has code (or a reference: canonical_solution, solution, witness) and optional id, language, origin, licence"
)


class SnippetRow(BaseModel):
    """A line of a user's file, or a row of a dataset whose reference serves as a snippet. Other fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    id: str = Field("", validation_alias=AliasChoices("id", "task_id"))
    code: str = Field("", validation_alias=AliasChoices("code", "solution", "witness"))
    prompt: str = ""
    canonical_solution: str = ""
    language: str | None = None
    origin: str = Field("", validation_alias=AliasChoices("origin", "source", "url"))
    licence: str = Field("", validation_alias=AliasChoices("licence", "license"))

    @model_validator(mode="after")
    def _has_code(self) -> Self:
        if not self.whole.strip():
            raise ValueError("it has no code")
        if self.language is not None and not is_registered(self.language):
            raise ValueError(f"language: no language is called '{self.language:.60}'")
        return self

    @property
    def whole(self) -> str:
        """The code; a reference that continues its prompt, with the prompt."""
        body = self.canonical_solution
        return self.code or (self.prompt + body if body[:1].isspace() else body)


@dataclass(frozen=True, slots=True)
class Snippet:
    """A snippet of code, with the origin and licence that the user gave."""

    id: str
    code: str
    language: str
    origin: str
    licence: str


@dataclass(frozen=True, slots=True)
class Snippets:
    """The snippets that can be used, and how many were left out, by reason."""

    used: tuple[Snippet, ...]
    left_out: Mapping[str, int]


def read_snippets(path: Path) -> Snippets:
    """The snippets of a JSONL file, or of a folder of source files. Raises `UserError` if none can be used."""
    used, seen, left_out = list[Snippet](), set[str](), Counter[str]()
    for each in _of_folder(path) if path.is_dir() else _of_file(path):
        lines = sum(bool(line.strip()) for line in each.code.splitlines())
        key = content_hash(each.code.split())
        reasons = {
            "language not recognised": not each.language,
            "too short": lines < LINES[0],
            "too long": lines > LINES[1] or len(each.code) > CHARACTERS,
            "duplicate": key in seen,
        }
        seen.add(key)
        if reason := next((reason for reason, holds in reasons.items() if holds), None):
            left_out[reason] += 1
        else:
            used.append(each)
    if not used:
        why = ", ".join(f"{count} {reason}" for reason, count in sorted(left_out.items())) or "there is none"
        raise UserError(f"seeds={path} has no snippet that serves: {why}", SNIPPETS)
    return Snippets(tuple(used), dict(sorted(left_out.items())))


def _of_file(path: Path) -> Iterator[Snippet]:
    for number, row in read_rows(path, SnippetRow, "seeds", SNIPPETS):
        language = row.language or _by_suffix(row.id) or _by_suffix(row.origin) or _by_content(row.whole)
        name = language_of(language).names[0] if language else ""
        yield Snippet(row.id or f"{path.name}:{number}", row.whole, name, row.origin, row.licence)


def _of_folder(folder: Path) -> Iterator[Snippet]:
    licence = next((path for name in LICENCES for path in sorted(folder.glob(f"{name}*"))), None)
    said = next(filter(str.strip, _text(licence).splitlines()), "").strip() if licence else ""
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        name = path.relative_to(folder).as_posix()
        if language := _by_suffix(name):
            yield Snippet(name, _text(path), language, name, said)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}", "save it as UTF-8, or take it out of the folder") from error


def _by_suffix(name: str) -> str:
    """The language whose name or alias is the suffix of a file, if a grammar reads it."""
    suffix = Path(name).suffix[1:]
    return language_of(suffix).names[0] if suffix and _is_code(language_of(suffix)) else ""


def _is_code(language: Language) -> bool:
    return is_registered(language.names[0]) and isinstance(language, Parsed)


def _by_content(code: str) -> str:
    """The classifier's guess of the language. Raises `UserError` if no classifier is installed."""
    label = guess(code).label
    return next((each.names[0] for each in languages() if label in labels_of(each) and _is_code(each)), "")
