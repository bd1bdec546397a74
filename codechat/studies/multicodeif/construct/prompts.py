"""The prompts of `recipe=constraints`, each with the fields that it must have."""

from pydantic import ValidationInfo, field_validator

from codechat.base.config import Config, original_option
from codechat.base.template import require

_SIX = ("code", "concepts", "example", "constraint", "validation", "pool")
_WRITTEN = (*_SIX, "language", "description", "range", "answer")
_FIELDS: dict[str, tuple[str, ...]] = {
    "concepts": ("code",),
    "write": _WRITTEN,
    "expand": (*_WRITTEN, "base", "earlier"),
    "solve": ("task", "constraints", "language"),
    "again": ("attempt", "feedback"),
    "without": ("task", "constraint", "language"),
    "judge": ("task", "constraint", "code"),
    "rejudge": ("verdicts",),
    "reask": ("problem",),
}


class ConstraintsPrompts(Config):
    """The prompts; `{{name}}` is filled in. The mark `{{boundary}}` and `{{language}}` may stand in any."""

    concepts: str = original_option(..., "asks for the concepts of {{code}}")
    write: str = original_option(..., "asks for a task with one constraint: the six parts of Figure 4")
    expand: str = original_option(..., "asks for the task {{base}} with one constraint more than the {{earlier}} ones")
    solve: str = original_option(..., "asks for a program that does the {{task}} and keeps its {{constraints}}")
    again: str = original_option(..., "follows it after a failed {{attempt}} with {{feedback}}")
    without: str = original_option(..., "asks for a program that does the {{task}} and breaks the {{constraint}}")
    judge: str = original_option(..., "asks whether {{code}}, written for {{task}}, keeps {{constraint}}")
    rejudge: str = original_option(..., "follows an unreadable verdict; fills {{verdicts}}")
    reask: str = original_option(..., "follows an answer in another form; fills {{problem}}")

    @field_validator("*")
    @classmethod
    def _has_its_fields(cls, text: str, info: ValidationInfo) -> str:
        may = () if info.field_name in ("reask", "rejudge") else ("language", "boundary")
        return require(text, *_FIELDS[info.field_name or ""], may=may)
