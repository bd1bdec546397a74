"""A refactoring tool that makes mistakes at known rates: what the metrics say of it can be worked out beforehand.

At every follow-up turn one draw per (seed, task, turn) decides. With the probability of the instruction's scope and
change a defect is put into the refactored code; with the probability `self_correction` the tool starts over from the
solution instead and drops what earlier turns changed; else it refactors the current code, broken or not. A defect
stays until the tool starts over.

Expected of a cell, with d the share of defects that a dataset's tests see, p the probability of a turn's cell and s
that of starting over: a regression rate of p·d; a self-correction rate of s; Pass@1 that follows from one turn to the
next as q(t+1) = q(t)·(1 − p·d) + (1 − q(t))·s; MST the sum over the turns of the product of (1 − p·d) so far.
Measured by `python benchmarks/defect_visibility.py DATASET PATH`: d = 98.5 % on starter, 96.3 % on HumanEval+ and
96.3 % on MBPP+ (4, 2 and 1 defects per reference).
"""

from typing import ClassVar, Literal

from codechat.config import Config, original_option
from codechat.domain import Instruction, Reply
from codechat.models import MODELS, BaselineView, ModelConfig, Request
from codechat.models.baselines.answering import BASELINES_VERSION, answer, reference_of, view_of
from codechat.models.baselines.refactoring import add_defect, refactor
from codechat.seeding import generator


class ScopeRates(Config):
    """The probability of a defect per scope; the defaults are near the averages of the paper's models."""

    cosmetic: float = original_option(0.08, "probability of a defect in a cosmetic turn", ge=0, le=1)
    structural: float = original_option(0.13, "probability of a defect in a structural turn", ge=0, le=1)
    semantic: float = original_option(0.22, "probability of a defect in a semantic turn", ge=0, le=1)


class ChangeFactors(Config):
    """What the scope's probability is multiplied by, per change; 1 is the cap of the product."""

    add: float = original_option(1.0, "factor for turns that add", ge=0)
    remove: float = original_option(1.0, "factor for turns that remove", ge=0)
    modify: float = original_option(1.0, "factor for turns that modify", ge=0)


class DrifterConfig(ModelConfig):
    """How often it breaks the code, and how often it starts over."""

    version: ClassVar[int] = BASELINES_VERSION

    kind: Literal["drifter"] = original_option("drifter", "which provider answers")
    name: str = original_option("drifter", "the name that the records show", min_length=1)
    regression: ScopeRates = original_option(ScopeRates(), "probability of a defect per scope")
    change_factor: ChangeFactors = original_option(ChangeFactors(), "factor on that probability per change")
    self_correction: float = original_option(0.08, "probability of starting over from the solution", ge=0, le=1)

    def probability(self, instruction: Instruction) -> float:
        """Of a defect at a turn with this instruction."""
        rate: float = getattr(self.regression, instruction.scope)
        factor: float = getattr(self.change_factor, instruction.change)
        return min(1.0, rate * factor)


@MODELS.register("drifter", DrifterConfig, baseline=True, languages=frozenset({"python"}))
class Drifter:
    """The refactorer with defects at configured rates, no language model involved (baseline; offline)."""

    def __init__(self, config: DrifterConfig) -> None:
        self.config = config

    async def check(self) -> None:
        """Nothing outside is needed."""

    async def complete(self, request: Request) -> Reply:
        """The solution at first, then the current code refactored, broken or started over, as the draw says."""
        view = view_of(request)
        if view.instruction is None or view.code is None:
            return answer(reference_of(view), view)
        return answer(self._revised(view, view.instruction, view.code, request.turn), view)

    def _revised(self, view: BaselineView, instruction: Instruction, code: str, turn: int) -> str:
        draw = generator(view.seed, view.task.task_id, f"drift {turn}")
        fate = draw.random()
        breaks = self.config.probability(instruction)
        if breaks <= fate < breaks + self.config.self_correction:
            code = reference_of(view)
        made = refactor(code, instruction, view.task.target.entry_point).code
        return (add_defect(made, draw) or made) if fate < breaks else made

    async def aclose(self) -> None:
        """Nothing to release."""
