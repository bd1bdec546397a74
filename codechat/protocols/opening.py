"""How a dialogue of any protocol begins: with the task."""

from pydantic import field_validator

from codechat.config import Config, result_option
from codechat.template import require


class OpeningPrompt(Config):
    """What is said to the model first; `{{name}}` is filled in."""

    initial: str = result_option(..., "the task; fills {{prompt}} and {{signature}}")

    @field_validator("initial")
    @classmethod
    def _initial_asks_for_the_task(cls, text: str) -> str:
        return require(text, "prompt", may=("signature",))
