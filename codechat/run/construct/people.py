"""Questions to people: their answers, as they are given in a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.run.construct.rows import read_rows


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
