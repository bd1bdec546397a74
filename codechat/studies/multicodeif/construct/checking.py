"""Finished tasks that no program can pass, found without a call: `check=FILE`.

The dropped items are a list that `dataset.exclude=FILE` takes.
"""

from collections.abc import Iterator
from pathlib import Path

from codechat.base.errors import UserError
from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome
from codechat.studies.multicodeif.constraints import Constraint
from codechat.studies.multicodeif.construct.writing import NOT_PASSABLE
from codechat.studies.multicodeif.dataset import cut, read_part


class Check:
    """The tasks of a file: single ones, chains, and each level of a chain, by the ids that the dataset gives them."""

    def __init__(self, path: Path) -> None:
        chains = read_part(path, "levels").tasks
        levels = [cut(chain, number) for chain in chains for number in range(1, len(chain.levels) + 1)]
        self._tasks = [*read_part(path, "single").tasks, *chains, *levels]
        if not self._tasks:
            raise UserError(f"check={path} holds no task", "give a file that dataset=multicodeif reads")

    def items(self) -> Iterator[Item]:
        """Every task as an item, with its constraints."""
        for task in self._tasks:
            each = dict.fromkeys((c.type, c.answer.raw) for level in task.levels for c in level.constraints)
            yield Item(task.task_id, {"constraints": [[*pair] for pair in each]})

    async def work(self, item: Item, kit: Kit) -> Outcome:
        """Drops a task with a constraint that the syntax of its language rules out."""
        constraints = [Constraint.of(*pair) for pair in item.data["constraints"]]
        found = dict.fromkeys(f"{each.type}: {each.impossible}" for each in constraints if each.impossible)
        return Dropped(NOT_PASSABLE, "; ".join(found)) if found else Kept(item)
