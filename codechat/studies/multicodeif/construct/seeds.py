"""Stage seeds: snippets of code from which tasks are thought of (MultiCodeIF, section III-B, step 1)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.run.construct import read_rows
from codechat.sandbox.languages import Language, is_registered, language_of, languages
from codechat.sandbox.languages.classifier import guess, labels_of
from codechat.sandbox.languages.grammar import Parsed

LINES, CHARACTERS = (3, 400), 20_000
"""The smallest and largest number of lines that are not blank, and the largest number of characters."""
LICENCES = ("LICENSE", "LICENCE", "COPYING")
REMEDY = (
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
        raise UserError(f"seeds={path} has no snippet that serves: {why}", REMEDY)
    return Snippets(tuple(used), dict(sorted(left_out.items())))


def _of_file(path: Path) -> Iterator[Snippet]:
    for number, row in read_rows(path, SnippetRow, "seeds", REMEDY):
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
