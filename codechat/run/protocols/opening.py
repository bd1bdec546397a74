"""The opening of a dialogue: the task."""

from pydantic import field_validator

from codechat.base.config import Config, original_option
from codechat.base.domain import Message
from codechat.base.template import fill, require
from codechat.datasets.tasks import Task


class OpeningPrompt(Config):
    """The first prompt; `{{name}}` is filled in."""

    initial: str = original_option(..., "the task; fills {{prompt}}, {{signature}} and {{language}}")

    @field_validator("initial")
    @classmethod
    def _check_initial(cls, text: str) -> str:
        return require(text, "prompt", may=("signature", "language"))

    def opening(self, task: Task) -> Message:
        """The first message of a dialogue over a task."""
        target = task.target
        fields = {"prompt": task.prompt.strip("\n"), "signature": target.signature, "language": target.language}
        return Message("user", fill(self.initial, **fields))
