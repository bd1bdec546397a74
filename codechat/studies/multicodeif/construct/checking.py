"""Finished tasks held to the checks that made ones must pass, without a call: `check=FILE`.

What is dropped is a list that `dataset.exclude=FILE` takes.
"""

from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from codechat.base.errors import UserError
from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome
from codechat.run.construct.interface import SEVERAL
from codechat.studies.multicodeif.constraints import Constraint, Harness, constraint_type
from codechat.studies.multicodeif.construct.attempts import attempts, plain_programs
from codechat.studies.multicodeif.construct.task import relation, unsaid
from codechat.studies.multicodeif.dataset import cut, read_part
from codechat.studies.multicodeif.rows import ConstrainedTask

Fault = Literal[
    "unpassable, official", "unpassable", "vacuous, official", "vacuous", "repeated", "contradictory", "not stated"
]
FAULTS: tuple[Fault, ...] = get_args(Fault)
HARNESSES: dict[Harness, str] = {"official": ", official", "guarded": ""}


class Check:
    """The tasks of a file: single ones, chains, and each level of a chain, by the ids that the dataset gives them."""

    def __init__(self, path: Path, faults: Collection[Fault]) -> None:
        self._faults = faults
        chains = read_part(path, "levels").tasks
        levels = [cut(chain, number) for chain in chains for number in range(1, len(chain.levels) + 1)]
        self._whole = {chain.task_id: chain for chain in chains}
        self._tasks = {task.task_id: task for task in (*read_part(path, "single").tasks, *chains, *levels)}
        if not self._tasks:
            raise UserError(f"check={path} holds no task", "give a file that dataset=multicodeif reads")

    def items(self) -> Iterator[Item]:
        """Every task as an item."""
        for name, task in self._tasks.items():
            levels = [
                {"prompt": level.prompt, "constraints": [[each.type, each.answer.raw] for each in level.constraints]}
                for level in task.levels
            ]
            yield Item(name, {"levels": levels})

    async def work(self, item: Item, kit: Kit) -> Outcome:
        """The faults of a task that are asked for."""
        found = [each for each in self._found(self._tasks[item.id]) if each[0] in self._faults]
        if not found:
            return Kept(item)
        names = [fault for fault in FAULTS if any(fault == each for each, _ in found)]
        details = dict.fromkeys(f"{fault}: {detail}" for fault, detail in found)
        return Dropped(SEVERAL.join(names), "; ".join(details))

    def _found(self, task: ConstrainedTask) -> Iterator[tuple[Fault, str]]:
        """Every fault of every level, with what it is seen by."""
        for level in task.levels:
            for place, constraint in enumerate(level.constraints):
                said = f"{constraint.type} {constraint.answer.raw.strip():.80}"
                if related := relation(constraint, level.constraints[:place]):
                    yield related[0], f"{level.name} {said} after {related[1].answer.raw.strip():.80}"
                yield from ((fault, said) for fault in _by_rules(constraint))
                if lacking := unsaid(constraint, level.prompt):
                    yield "not stated", f"{level.name} does not say {', '.join(lacking)}"


@cache
def _by_rules(constraint: Constraint) -> tuple[Fault, ...]:
    """Whether no program that tries to keep the constraint is accepted, or every program is, by each harness."""
    if constraint_type(constraint.type).guarded is None:
        return ()
    language = constraint.answer.language
    tries, found = dict.fromkeys(attempts(constraint)), list[Fault]()
    plain = plain_programs(language) if constraint_type(constraint.type).by == "rule" else ()
    for harness, mark in HARNESSES.items():
        if tries and not any(constraint.check(code, harness).met for code in tries):
            found.append("unpassable, official" if mark else "unpassable")
        if plain and all(constraint.check(code, harness).met for code in plain):
            found.append("vacuous, official" if mark else "vacuous")
    return tuple(found)
