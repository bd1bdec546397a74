"""The groups `instructions` and `agenda`: what is asked at which turn, and whether the judge can decide about it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import SerializeAsAny

from codechat.base.config import Config, original_option
from codechat.base.domain import Instruction
from codechat.base.errors import UserError
from codechat.base.registry import Component
from codechat.base.seeding import generator
from codechat.judging import JUDGES, Judge, JudgeTraits
from codechat.run.cell.fitting import judges_without_rules
from codechat.run.settings.config import Group, add_group
from codechat.studies.refine.agendas import AGENDAS, AgendaConfig, draw, type_of
from codechat.studies.refine.instructions import INSTRUCTIONS, Pool

if TYPE_CHECKING:
    from codechat.run.cell import Cell


def check_instructions(cell: "Cell") -> Iterator[str]:
    """Remarks on instructions that are never drawn because the judge cannot decide about them.

    Raises `UserError` if the agenda has a type of which the pool holds nothing that the judge can decide: every turn of
    that type would be skipped, and its code counted as it was before.
    """
    pool = cell.contents["instructions"]
    assert isinstance(pool, Pool)
    judge = JUDGES.of(cell.config.judge)
    if "judge" not in cell.uses:
        return
    if cell.is_recorded:
        if pool.instructions and not any(_decides(judge, each) for each in pool.instructions):
            message = (
                f"judge={judge.name} cannot decide any of the {len(pool.instructions)} instructions: none has a rule"
            )
            raise UserError(message, f"choose a judge that can ({judges_without_rules(())})")
    elif "agenda" in cell.uses:
        _check_decidable(cell, pool, judge)
    languages = dict.fromkeys(task.target.language for task in cell.tasks)
    for language in languages if "agenda" in cell.uses else ():
        instructions = pool.of(language)
        count = sum(not _decides(judge, each) for each in instructions)
        left = f"leaves out {count} of {len(instructions)} instructions: they have no rule"
        left += f" for {language}" if len(languages) > 1 else ""
        if count:
            yield f"judge={judge.name} {left}; {judges_without_rules(())} decides those too"


def check_lengths(cell: "Cell") -> Iterator[str]:
    """No remark. Raises `UserError` for a cell that may end early, whose intervals are of sessions of one length."""
    if AGENDAS.of(cell.config.part("agenda")).traits.learns and cell.config.stop.is_set:
        raise UserError("stop.* needs sessions of one length, which agenda=learned does not draw", "leave it out")
    yield from ()


def label_agenda(agenda: AgendaConfig, choice: str) -> list[str]:
    """The agenda in a cell's name: its preset, and the turns if they are not the paper's."""
    return [choice, *([f"{agenda.turns} turns"] if agenda.turns != AgendaConfig().turns else ())]


def _decides(judge: Component[Judge, JudgeTraits], instruction: Instruction) -> bool:
    return instruction.rule is not None or not judge.traits.needs_rules


def _check_decidable(cell: "Cell", pool: Pool, judge: Component[Judge, JudgeTraits]) -> None:
    agenda: AgendaConfig = cell.config.part("agenda")
    for language in dict.fromkeys(task.target.language for task in cell.tasks):
        tasks = tuple(task for task in cell.tasks if task.target.language == language)
        instructions = pool.of(language)
        decidable = {type_of(one, agenda.axis) for one in instructions if _decides(judge, one)}
        seed = cell.config.seed if agenda.seed is None else agenda.seed
        drawn = {
            name for task in tasks for name in draw(agenda, generator(seed, task.task_id, "agenda"), pool.instructions)
        }
        if drawn <= decidable:
            continue
        known = {type_of(one, agenda.axis) for one in instructions}
        weights = agenda.weights()
        fixed = agenda.sequence is not None or AGENDAS.of(agenda).traits.learns
        possible = [name for name in weights if name in drawn or (not fixed and weights[name] > 0)]
        lacking = [name for name in possible if name not in decidable]
        empty = [name for name in lacking if name not in known]
        if empty:
            message = (
                f"the agenda asks for {_types(empty)}, and the pool has no such instruction: those turns are skipped"
            )
            remedy = "add some (instructions.path), or leave the type out: agenda.distribution='{TYPE: WEIGHT, …}'"
            raise UserError(message, remedy)
        raise UserError(
            f"judge={judge.name} cannot decide any of the pool's instructions for {_types(lacking)}, "
            "since none of them has a rule: those turns would be skipped",
            f"choose a judge that can ({judges_without_rules(tasks)}), or give some of them a rule",
        )


def _types(names: list[str]) -> str:
    return f"the type{'s' if len(names) > 1 else ''} {', '.join(names)}"


add_group(Group(
    INSTRUCTIONS, SerializeAsAny[Config], original_option(..., "the pool of refinement instructions"),
    behind="dataset", check=check_instructions, data="pool",
    load=lambda options, tasks: INSTRUCTIONS.build(options).among({task.target.language for task in tasks}),
))  # fmt: skip
add_group(Group(
    AGENDAS, SerializeAsAny[AgendaConfig], original_option(..., "how many turns, of which types"),
    behind="instructions", check=check_lengths, label=label_agenda,
))  # fmt: skip
