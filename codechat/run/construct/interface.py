"""An item, the outcomes that a stage can decide, and the files that users write: rows, and answers of people."""

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.texts import read_json, writable

SEVERAL = "; "
"""Separates the reasons of an item that is dropped for several; each is counted."""
OnQuestion = Literal["wait", "suggestion", "keep", "drop"]
"""What becomes of an item with an unanswered question."""


@dataclass(frozen=True, slots=True)
class Item:
    """A task in the making, with a unique `id`; `data` is a JSON mapping that stages read and replace.

    `provenance` is a JSON mapping for the item's line, to which the engine adds entries.
    """

    id: str
    data: Mapping[str, Any]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def having(self, **data: Any) -> Self:
        """The item with some entries of its data replaced."""
        return replace(self, data={**self.data, **data})

    def noting(self, **provenance: Any) -> Self:
        """The item with some entries of its provenance replaced."""
        return replace(self, provenance={**self.provenance, **provenance})


@dataclass(frozen=True, slots=True)
class Kept:
    """The item goes to the next stage."""

    item: Item


@dataclass(frozen=True, slots=True)
class Dropped:
    """The item ends here. `reason` is a category to count by, such as `not passable`; `detail` a sentence."""

    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Spread:
    """The item becomes several with new ids; the `dropped` ones end in this stage, each for its reason."""

    items: Sequence[Item]
    dropped: Sequence[tuple[Item, Dropped]] = ()


@dataclass(frozen=True, slots=True)
class Waits:
    """The item waits for people. With their answer it goes to the next stage.

    The answer is then in `data["answers"]`, by the stage's name. A stage that needs the answer itself calls
    `Kit.people`.
    """

    question: str
    suggestion: str = ""


Outcome = Kept | Spread | Dropped | Waits


class Settled(Exception):
    """Raised within the kit to end a stage by an outcome, for a question without an answer."""

    def __init__(self, outcome: Dropped | Waits) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


R = TypeVar("R", bound=BaseModel)


def read_rows(path: Path, model: type[R], key: str, remedy: str = "") -> Iterator[tuple[int, R]]:
    """The rows of a file, `.jsonl` or `.jsonl.gz`, each with its line. `key` is the setting that names the file.

    Raises `UserError` with file and line for one that is no row of this kind, such as a file's torn last line.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    text = line.decode("utf-8-sig")
                    yield number, _row(text, model, f"{path}:{number}", remedy or f"mend {key}={path}")
    except OSError as error:
        raise UserError(f"cannot read {key}={path}: {error.strerror or error}", "name a readable file") from error
    except (UnicodeDecodeError, EOFError, zlib.error) as error:
        raise UserError(
            f"{key}={path} is no JSONL in UTF-8: {error}", "save it as UTF-8, one JSON object a line"
        ) from error


def _row(line: str, model: type[R], place: str, remedy: str) -> R:
    try:
        return model.model_validate(writable(read_json(line)))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(
            f"{place}: {where}: {first['msg'].removeprefix('Value error, ')}".replace(": : ", ": "), remedy
        ) from error
    except ValueError as error:
        raise UserError(f"{place} is no JSON object: {str(error)[:100]}", remedy) from error


class Answer(BaseModel):
    """A line of `answers=FILE`: the text of the answer, or what to do without one. Other keys are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    question: str
    answer: str | None = None
    do: Literal["suggestion", "keep", "drop"] | None = None

    @model_validator(mode="after")
    def _is_one(self) -> "Answer":
        if (self.answer is None) == (self.do is None):
            raise ValueError('give one of "answer" (a text) and "do" (suggestion, keep or drop)')
        return self


def question_id(item: str, stage: str, number: int, question: str) -> str:
    """A question's id: the same on every run, and another if the question is worded otherwise."""
    return content_hash([item, stage, number, question])[:12]


def read_answers(path: str | None) -> Mapping[str, Answer]:
    """People's answers by question. Raises `UserError` for a line that is none, and for a second answer."""
    found: dict[str, Answer] = {}
    if path is None:
        return found
    remedy = 'a line for each: {"question": ID of questions.jsonl, "answer": TEXT}, or "do": suggestion, keep or drop'
    for number, row in read_rows(Path(path), Answer, "answers", remedy):
        if row.question in found:
            raise UserError(f"{path}:{number}: question {row.question} is answered twice", "leave one of them")
        found[row.question] = row
    return found
