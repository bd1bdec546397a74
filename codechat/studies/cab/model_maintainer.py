"""The upper bound of CodeAssistBench: the answers of the thread's real maintainers, which a judge must call correct."""

from typing import ClassVar, Literal

from codechat.base.config import original_option
from codechat.base.domain import Reply
from codechat.base.errors import UserError
from codechat.models import MODELS, ModelConfig, Request
from codechat.models.baselines import view_of
from codechat.studies.cab.tasks import AssistTask

LOOK = "EXPLORE: ls\nEXPLORE: git log --oneline"
"""The commands before the first answer: enough to show that commands work."""
OFFER = "EXPLORE:"
REPEAT = "repeat in it all"  # words of an order to repeat earlier answers, as in the prompts `paper`


class MaintainerConfig(ModelConfig):
    kind: Literal["maintainer"] = original_option("maintainer", "which provider answers")
    name: str = original_option("maintainer", "the name that the records show", min_length=1)


class MaintainerByTurnsConfig(ModelConfig):
    version: ClassVar[int] = 2

    kind: Literal["maintainer_by_turns"] = original_option("maintainer_by_turns", "which provider answers")
    name: str = original_option("maintainer_by_turns", "the name that the records show", min_length=1)


class Maintainer:
    """Answers with every comment of others than the author; with `by_turns`, with the next one, as in the thread.

    With `by_turns` it repeats the earlier ones if ordered to, and if there is no further one.
    """

    def __init__(self, config: ModelConfig, *, by_turns: bool) -> None:
        self.config, self._by_turns = config, by_turns

    async def check(self) -> None:
        """Nothing outside is needed."""

    async def complete(self, request: Request) -> Reply:
        """Two commands, if commands can run, then the answer. Raises `UserError` if only the author wrote."""
        task = view_of(request).task
        thread = task.thread if isinstance(task, AssistTask) else ()
        comments = [comment.body for comment in thread if comment.user != task.author]  # type: ignore[attr-defined]
        if not comments:
            raise UserError(
                f"{task.task_id} has no thread in which a maintainer answers, as model=maintainer does",
                "choose an issue with one (dataset.tasks), or another model",
            )
        if request.turn == request.number == 0 and OFFER in request.messages[-1].content:
            return Reply(LOOK)
        shown = comments[: request.turn + 1] if self._by_turns else comments
        new = self._by_turns and request.turn < len(comments)
        if new and not any(REPEAT in each.content for each in request.messages if each.role == "user"):
            shown = shown[-1:]
        return Reply("ANSWER:\n" + "\n\n".join(shown))

    async def aclose(self) -> None:
        """Nothing to release."""


@MODELS.register("maintainer", MaintainerConfig, baseline=True)
def maintainer(config: MaintainerConfig) -> Maintainer:
    """All that the real maintainers said in an issue's thread, for protocol=assist (baseline; offline)."""
    return Maintainer(config, by_turns=False)


@MODELS.register("maintainer_by_turns", MaintainerByTurnsConfig, baseline=True)
def maintainer_by_turns(config: MaintainerByTurnsConfig) -> Maintainer:
    """What they said first, then the next comment at every turn, for protocol=assist (baseline; offline)."""
    return Maintainer(config, by_turns=True)
