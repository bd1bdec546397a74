"""A mechanical refactoring tool: correct by construction, and adhering wherever it knows how.

It shows what a score means: Pass@1 stays flat, and instruction adherence is the share of requests that a program
without understanding can fulfil. It never runs code; what its own check refuses it leaves as it was.
"""

from typing import Literal

from codechat.config import result_option
from codechat.domain import Reply
from codechat.models import MODELS, ModelConfig, Request
from codechat.models.baselines.answering import answer, crib_of, reference_of
from codechat.models.baselines.refactoring import refactor


class RefactorerConfig(ModelConfig):
    """Nothing to choose but the label."""

    kind: Literal["refactorer"] = result_option("refactorer", "which provider answers")
    name: str = result_option("refactorer", "the name that the records show", min_length=1)


@MODELS.register("refactorer", RefactorerConfig, baseline=True)
class Refactorer:
    """Mechanical refactorings of the reference solution, no language model involved (baseline; offline)."""

    def __init__(self, config: RefactorerConfig) -> None:
        self.config = config

    async def check(self) -> None:
        """Nothing outside is needed."""

    async def complete(self, request: Request) -> Reply:
        """The current code changed as asked, or unchanged where no transformation is surely safe."""
        crib = crib_of(request)
        if crib.instruction is None or crib.code is None:
            return answer(reference_of(crib))
        return answer(refactor(crib.code, crib.instruction, crib.task.entry_point).code)

    async def aclose(self) -> None:
        """Nothing to release."""
