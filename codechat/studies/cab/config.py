"""The options, roles and prompts of `protocol=assist`."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import SerializeAsAny, ValidationInfo, field_validator, model_validator

from codechat.base.config import SCORING, Config, original_option, result_option
from codechat.base.template import require
from codechat.models import ModelConfig
from codechat.models.roles import Roles, role

USER, JUDGE = "user", "judge"

_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "opening": (("question", "means"), ("repository", "language", "boundary")),
    "explore": ((), ("steps", "commands")),
    "blind": ((), ()),
    "files": (("dockerfile",), ("boundary",)),
    "outputs": (("outputs",), ("boundary",)),
    "unread": ((), ()),
    "more": ((), ("left",)),
    "answer": ((), ()),
    "followup": (("reply",), ("boundary",)),
    "again": ((), ()),
    "user": (("conditions", "dialogue"), ("references", "build", "boundary")),
    "reask_user": ((), ()),
    "judge": (("question", "thread", "conditions", "answer", "form"), ("build", "boundary")),
    "reask_judge": (("form",), ()),
}  # of each prompt the fields that it must have, and that it may have


class AssistRoles(Roles):
    """Who plays beside the maintainer, which is the model under test."""

    user: SerializeAsAny[ModelConfig] = role("rehearsed_user", "model that speaks for the user who asked")
    judge: SerializeAsAny[ModelConfig] = role(
        "rehearsed_judge", "model that judges the answer in the end", marks=SCORING
    )


class AssistPrompts(Config):
    """The prompts; `{{name}}` is filled in."""

    opening: str = original_option(..., "the maintainer's first message; fills {{question}} and {{means}}")
    explore: str = original_option(..., "its means where commands can run; fills {{steps}} and {{commands}}")
    blind: str = original_option(..., "its means where none can run")
    files: str = original_option(..., "its further means where a build can change; fills {{dockerfile}}")
    outputs: str = original_option(..., "feeds {{outputs}} back")
    unread: str = original_option(..., "follows a reply with neither commands nor an answer")
    more: str = original_option(..., "ends a message while {{left}} steps are left")
    answer: str = original_option(..., "ends a message when no step is left: asks for the answer")
    followup: str = original_option(..., "passes on the user's {{reply}}")
    again: str = result_option("", "orders, before later answers, to repeat all that was said; empty: nothing")
    user: str = original_option(..., "asks for the user's reply; fills {{conditions}}, {{dialogue}}, {{references}}")
    reask_user: str = original_option(..., "asks the user's model again after a reply that could not be read")
    judge: str = original_option(
        ..., "asks for the judgement; fills {{answer}}, {{thread}}, {{conditions}}, {{form}}", json_schema_extra=SCORING
    )
    reask_judge: str = original_option(..., "asks the judge again for the lines of {{form}}", json_schema_extra=SCORING)

    @field_validator("*")
    @classmethod
    def _has_its_fields(cls, text: str, info: ValidationInfo) -> str:
        must, may = _FIELDS[info.field_name or ""]
        return require(text, *must, may=may)


class AssistConfig(Config):
    """Options of the protocol."""

    kind: Literal["assist"] = original_option("assist", "the protocol")
    steps: int = original_option(5, "how often the maintainer may explore before an answer", ge=0, le=100)
    explore: Literal["every", "first"] = original_option(
        "every", "before which answers it may take all steps; first: before later answers it may take one"
    )
    rounds: int = original_option(10, "the most replies of the user, and so of the maintainer's answers", ge=1, le=100)
    commands: int = original_option(10, "the most commands of one step; further ones are not run", ge=1, le=1_000)
    references: int = original_option(3, "replies of other issues that show the user's model the tone", ge=0, le=100)
    judged: Literal["answer", "dialogue"] | None = original_option(
        None,
        "what the judge sees: the last answer, or all; null: the last if the prompts order to repeat, else all",
        json_schema_extra=SCORING,
    )
    max_reasks: int = original_option(2, "how often a reply of user or judge is asked for again", ge=0, le=10)
    roles: AssistRoles = original_option(..., "the further models")
    prompts: AssistPrompts = original_option(..., "a preset by its name, or each prompt as a text or @FILE")

    @model_validator(mode="before")
    @classmethod
    def _judges_what_holds_all(cls, values: Any) -> Any:
        """Decide what the judge sees: an answer alone only if it repeats the earlier ones."""
        if not isinstance(values, Mapping) or values.get("judged") is not None:
            return values
        prompts = values.get("prompts")
        again = prompts.get("again") if isinstance(prompts, Mapping) else getattr(prompts, "again", "")
        return {**values, "judged": "answer" if again else "dialogue"}

    def steps_before(self, turn: int) -> int:
        """How often the maintainer may explore before the answer of a turn."""
        return self.steps if turn == 0 or self.explore == "every" else min(self.steps, 1)
