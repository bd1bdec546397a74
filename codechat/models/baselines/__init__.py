"""Baselines: models that see a task's reference and involve no language model. They show what a score means."""

from typing import ClassVar, Literal

from codechat.base.config import Config, original_option
from codechat.base.domain import Instruction, Reply
from codechat.base.errors import UserError
from codechat.base.seeding import generator
from codechat.models import MODELS, BaselineView, ModelConfig, Request
from codechat.sandbox.languages import fence, language_of
from codechat.studies.refine.baselines.drifting import add_tree_defect, refactor_tree
from codechat.studies.refine.baselines.refactoring import add_defect, refactor
from codechat.studies.refine.patterns import READ

BASELINES_VERSION = 2
"""The version of the refactorer's and the drifter's answers; the echo repeats code and has none.

Raise it whenever one of them may answer a request with other code than before. It becomes part of the id of every cell
of such a model. Version 1: 204 transformations, many of which sent a value through a construct that does nothing.
"""
LABEL = "the name that the records show"
KIND = "which provider answers"


def view_of(request: Request) -> BaselineView:
    """The task and the session's state, which only a baseline may see. A call without it is a bug of the caller."""
    if request.view is None:
        raise RuntimeError("a baseline was called without its view of the task")
    return request.view


def reference_of(view: BaselineView) -> str:
    """The right answer to the request. Raises `UserError` if the task has none."""
    reference = view.reference if view.reference is not None else view.task.reference
    if reference is None:
        raise UserError(
            f"{view.task.task_id} has no reference solution, which a baseline model answers with",
            "add canonical_solution to the task, or choose a model that is not a baseline",
        )
    return reference


def answer(code: str, view: BaselineView) -> Reply:
    """The code in a fence of the task's language."""
    return Reply(fence(code, view.task.target.language))


class Offline:
    """The parts of a baseline that need nothing outside. A baseline overrides `code`."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    async def check(self) -> None:
        """Nothing outside is needed."""

    async def complete(self, request: Request) -> Reply:
        """The baseline's code in a fence. Raises `UserError` if the task has no reference."""
        view = view_of(request)
        return answer(self.code(view, request.turn), view)

    def code(self, view: BaselineView, turn: int) -> str:
        """The code that answers a turn, counted from 0."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Nothing to release."""


class EchoConfig(ModelConfig):
    """Nothing to choose but the label."""

    kind: Literal["echo"] = original_option("echo", KIND)
    name: str = original_option("echo", LABEL, min_length=1)


@MODELS.register("echo", EchoConfig, baseline=True)
class Echo(Offline):
    """The reference solution at turn 0, then the current code unchanged (baseline; offline).

    The control: its adherence is 0, and its correctness stays as it was at turn 0.
    """

    def code(self, view: BaselineView, turn: int) -> str:
        return view.code or reference_of(view)


class ReferenceConfig(ModelConfig):
    """Nothing to choose but the label."""

    kind: Literal["reference"] = original_option("reference", KIND)
    name: str = original_option("reference", LABEL, min_length=1)


class PreviousConfig(ModelConfig):
    """Nothing to choose but the label."""

    kind: Literal["previous"] = original_option("previous", KIND)
    name: str = original_option("previous", LABEL, min_length=1)


class References(Offline):
    """A turn's own reference, or if `late` that of the turn before; the first turn has none before it.

    On tasks that grow with every turn the one is the upper bound, and the other should fail.
    """

    def __init__(self, config: ModelConfig, *, late: bool) -> None:
        self.config, self._late = config, late

    def code(self, view: BaselineView, turn: int) -> str:
        before = view.task.reference_at(turn - 1) if self._late and turn else None
        return reference_of(view) if before is None else before


@MODELS.register("reference", ReferenceConfig, baseline=True)
def reference(config: ReferenceConfig) -> References:
    """The right answer to every turn's request (baseline; offline)."""
    return References(config, late=False)


@MODELS.register("previous", PreviousConfig, baseline=True)
def previous(config: PreviousConfig) -> References:
    """The reference of the turn before: it passes the turns whose tests do not tell the step (baseline; offline)."""
    return References(config, late=True)


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
        return refactor(view.code, view.instruction, view.task.target.entry_point).code


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

    def probability(self, instruction: Instruction) -> float:
        """The probability of a defect at a turn with this instruction."""
        rate: float = getattr(self.regression, instruction.scope)
        factor: float = getattr(self.change_factor, instruction.change)
        return min(1.0, rate * factor)


@MODELS.register("drifter", DrifterConfig, baseline=True, languages=READ)
class Drifter(Offline):
    """The refactorer with defects at configured rates, no language model involved (baseline; offline).

    At every follow-up turn one draw per (seed, task, turn) decides. With the probability of the instruction's scope and
    change a defect is put into the refactored code; with the probability `self_correction` it starts over from the
    solution instead and drops all changes of earlier turns; else it refactors the current code, broken or not. A defect
    stays until it starts over.

    So the figures of a cell can be worked out beforehand. Let d be the share of defects that a dataset's tests see, p
    the probability of a defect at a turn, and s that of starting over. Then the regression rate is p·d and the
    self-correction rate s; Pass@1 goes from one turn to the next as q(t+1) = q(t)·(1 − p·d) + (1 − q(t))·s; MST is the
    sum over the turns of the product of (1 − p·d) so far. Measured: d = 98.5 % on starter, 96.3 %
    on HumanEval+ and 96.3 % on MBPP+ (4, 2 and 1 defects per reference).

    In another language than Python it changes the text by the tree that the language's grammar gives: comments, names,
    layout, the order of functions, constants and some statements. It knows fewer changes there than for Python.
    """

    config: DrifterConfig

    def code(self, view: BaselineView, turn: int) -> str:
        if view.instruction is None or view.code is None:
            return reference_of(view)
        draw = generator(view.seed, view.task.task_id, f"drift {turn}")
        fate = draw.random()
        breaks = self.config.probability(view.instruction)
        starts_over = breaks <= fate < breaks + self.config.self_correction
        before = reference_of(view) if starts_over else view.code
        language, entry_point = language_of(view.task.target.language).names[0], view.task.target.entry_point
        if language != "python":
            made = refactor_tree(before, view.instruction, language, entry_point)
            return (add_tree_defect(made, language, draw) or made) if fate < breaks else made
        made = refactor(before, view.instruction, entry_point).code
        return (add_defect(made, draw) or made) if fate < breaks else made
