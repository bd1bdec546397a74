"""A mechanical refactoring tool: correct by construction, and adhering wherever it knows how.

It shows what a score means: Pass@1 stays flat, and instruction adherence is the share of requests that a program
without understanding can fulfil. It never runs code; what its own check refuses it leaves as it was.
"""

from typing import ClassVar, Literal

from codechat.config import original_option
from codechat.domain import Reply
from codechat.models import MODELS, ModelConfig, Request
from codechat.models.baselines.answering import BASELINES_VERSION, answer, reference_of, view_of
from codechat.models.baselines.refactoring import refactor


class RefactorerConfig(ModelConfig):
    """Nothing to choose but the label."""

    version: ClassVar[int] = BASELINES_VERSION

    kind: Literal["refactorer"] = original_option("refactorer", "which provider answers")
    name: str = original_option("refactorer", "the name that the records show", min_length=1)


@MODELS.register("refactorer", RefactorerConfig, baseline=True, languages=frozenset({"python"}))
class Refactorer:
    """Mechanical refactorings of the reference solution, no language model involved (baseline; offline)."""

    def __init__(self, config: RefactorerConfig) -> None:
        self.config = config

    async def check(self) -> None:
        """Nothing outside is needed."""

    async def complete(self, request: Request) -> Reply:
        """The current code changed as asked, or unchanged where no transformation is surely safe."""
        view = view_of(request)
        if view.instruction is None or view.code is None:
            return answer(reference_of(view), view)
        return answer(refactor(view.code, view.instruction, view.task.target.entry_point).code, view)

    async def aclose(self) -> None:
        """Nothing to release."""
