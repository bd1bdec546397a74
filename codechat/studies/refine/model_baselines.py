"""Baselines of refinement: the refactorer, which is right by construction, and the drifter, which breaks code."""

import random
from typing import ClassVar, Literal

from codechat.base.config import Config, original_option, result_option
from codechat.base.domain import Instruction
from codechat.base.seeding import generator
from codechat.datasets.tasks import Task
from codechat.models import MODELS, BaselineView, ModelConfig
from codechat.models.baselines import KIND, LABEL, Offline, reference_of
from codechat.sandbox.languages import language_of
from codechat.sandbox.suites.calls import Calls
from codechat.studies.refine.baselines.drifting import add_tree_defect, refactor_tree
from codechat.studies.refine.baselines.refactoring import add_defect, refactor
from codechat.studies.refine.baselines.unseen import add_unseen_defect
from codechat.studies.refine.patterns import READ

BASELINES_VERSION = 2
"""The version of the refactorer's and the drifter's answers; the echo repeats code and has none.

Raise it whenever one of them may answer a request with other code than before. It becomes part of the id of every cell
of such a model. Version 1: 204 transformations, many of which sent a value through a construct that does nothing.
"""


class RefactorerConfig(ModelConfig):
    """Nothing to choose but the label."""

    version: ClassVar[int] = BASELINES_VERSION

    kind: Literal["refactorer"] = original_option("refactorer", KIND)
    name: str = original_option("refactorer", LABEL, min_length=1)


@MODELS.register("refactorer", RefactorerConfig, baseline=True, languages=frozenset({"python"}))
class Refactorer(Offline):
    """Mechanical refactorings of the reference solution, no language model involved (baseline; offline).

    It is correct by construction. So Pass@1 stays flat, and its adherence is the share of requests that a program
    without understanding can fulfil. It never runs code; a change that its own check refuses is not made.
    """

    def code(self, view: BaselineView, turn: int) -> str:
        if view.instruction is None or view.code is None:
            return reference_of(view)
        code = view.code
        for instruction in view.instructions:
            code = refactor(code, instruction, view.task.target.entry_point).code
        return code


class ScopeRates(Config):
    """The probability of a defect per scope; the defaults are near the averages of the paper's models."""

    cosmetic: float = original_option(0.08, "probability of a defect in a cosmetic turn", ge=0, le=1)
    structural: float = original_option(0.13, "probability of a defect in a structural turn", ge=0, le=1)
    semantic: float = original_option(0.22, "probability of a defect in a semantic turn", ge=0, le=1)


class ChangeFactors(Config):
    """The factor, per change, by which the scope's probability is multiplied; 1 is the cap of the product."""

    add: float = original_option(1.0, "factor for turns that add", ge=0)
    remove: float = original_option(1.0, "factor for turns that remove", ge=0)
    modify: float = original_option(1.0, "factor for turns that modify", ge=0)


class DrifterConfig(ModelConfig):
    """How often it breaks the code, and how often it starts over."""

    version: ClassVar[int] = BASELINES_VERSION

    kind: Literal["drifter"] = original_option("drifter", KIND)
    name: str = original_option("drifter", LABEL, min_length=1)
    regression: ScopeRates = original_option(ScopeRates(), "probability of a defect per scope")
    change_factor: ChangeFactors = original_option(ChangeFactors(), "factor on that probability per change")
    self_correction: float = original_option(0.08, "probability of starting over from the solution", ge=0, le=1)
    unseen: float = result_option(0.0, "share of defects that no test sees (Python, tested by calls)", ge=0, le=1)

    def probability(self, instruction: Instruction) -> float:
        """The probability of a defect at a turn with this instruction."""
        rate: float = getattr(self.regression, instruction.scope)
        factor: float = getattr(self.change_factor, instruction.change)
        return min(1.0, rate * factor)


@MODELS.register("drifter", DrifterConfig, baseline=True, languages=READ)
class Drifter(Offline):
    """The refactorer with defects at configured rates, no language model involved (baseline; offline).

    At every follow-up turn one draw per (seed, task, turn, further try) decides: with the probability of the
    instruction's scope and change a defect is put into the refactored code; with the probability `self_correction` it
    starts over from the solution; else it refactors the current code, broken or not. A defect stays until it starts
    over.

    So the figures of a cell follow in closed form. Let d be the share of defects that a dataset's tests see, p the
    probability of a defect at a turn, and s the probability of starting over. Then the regression rate is p·d and the
    self-correction rate s; q(t+1) = q(t)·(1 − p·d) + (1 − q(t))·s for Pass@1; MST is the sum over the turns of the
    product of (1 − p·d) so far. Measured: d = 98.5 % on starter, 96.3 % on HumanEval+ and on MBPP+.

    With several instructions in a request each has its own draw, and only the first may start over: with their
    probabilities p and p' the regression rate is 1 − (1 − p·d)·(1 − p'·d). With `unseen`, this share of the defects
    passes every test of the task and is wrong on other valid inputs; where no such defect fits, none is added.

    Other languages than Python are changed by their grammar's tree; fewer changes are known there.
    """

    config: DrifterConfig

    def code(self, view: BaselineView, turn: int) -> str:
        if view.instruction is None or view.code is None:
            return reference_of(view)
        code, language = view.code, language_of(view.task.target.language).names[0]
        again = f"/again/{view.again}" if view.again else ""
        for place, instruction in enumerate(view.instructions):
            of_place = f"/{place}" if place else ""
            draw = generator(view.seed, view.task.task_id, f"drift {turn}{of_place}{again}")
            fate, breaks = draw.random(), self.config.probability(instruction)
            if not place and breaks <= fate < breaks + self.config.self_correction:
                code = reference_of(view)
            if language == "python":
                code = refactor(code, instruction, view.task.target.entry_point).code
            else:
                code = refactor_tree(code, instruction, language, view.task.target.entry_point)
            code = (self._broken(code, language, view.task, draw) or code) if fate < breaks else code
        return code

    def _broken(self, code: str, language: str, task: Task, draw: random.Random) -> str | None:
        """The code with one defect; None if none fits."""
        if language != "python":
            return add_tree_defect(code, language, draw)
        if self.config.unseen and draw.random() < self.config.unseen:
            inputs = task.suite.inputs if isinstance(task.suite, Calls) else ()
            return add_unseen_defect(code, task.target.entry_point, inputs, draw)
        return add_defect(code, draw)
