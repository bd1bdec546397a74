"""Parts of a cell that processes run by themselves, on one machine or several, and their merge.

Shard `i` of `n` is every `n`-th task from the `i`-th on, under the id of the whole cell, in `<cell>/shards/i-of-n` with
its lock and journal. A run of the cell without a shard merges: it takes in the journals of all its shards, runs what is
missing, and writes and tracks the results.
"""

import contextlib
import json
import math
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from codechat.base.errors import UserError
from codechat.base.files import write_atomically
from codechat.base.texts import read_json
from codechat.models.endpoints import EndpointInfo
from codechat.run.answering.endpoints import refuse_other_weights
from codechat.run.cell import SHARDS, Cell, is_held, lock, session_id
from codechat.run.cell.budget import Budget
from codechat.run.cell.examining import units
from codechat.run.journal import Account, Journal, Ledger, account_of, copy_sessions, merge_journal, origin_name
from codechat.run.protocols.kit import DESKS
from codechat.run.running.sessions import SessionsInJournal
from codechat.run.settings.config import ShardConfig

ENDED = "ended.json"
"""The file in a shard's folder that counts its sessions, once its process came to the end."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One part of a cell's tasks: `index`, from 0, of `count`."""

    index: int
    count: int

    @classmethod
    def of(cls, shard: ShardConfig) -> Self | None:
        """The part that the options ask for; None if they ask for the whole cell."""
        return None if shard.index is None or shard.count is None else cls(shard.index, shard.count)

    @property
    def name(self) -> str:
        """The shard's name, also of its folder."""
        return f"{self.index}-of-{self.count}"

    def part_of(self, cell: Cell) -> Cell:
        """The cell with this part of its tasks, in the shard's folder; ids stay the same."""
        tasks, folder = cell.tasks[self.index :: self.count], cell.folder / SHARDS / self.name
        return replace(cell, tasks=tasks, name=f"{cell.name}, shard {self.name}", begun=folder)

    def overlaps(self, other: Self) -> bool:
        """Whether two shards have tasks in common, if there are enough tasks."""
        return (self.index - other.index) % math.gcd(self.count, other.count) == 0


@dataclass(frozen=True)
class ShardResult:
    """The counts of one shard's sessions. `error` is the first error, with its task."""

    shard: Shard
    completed: int
    errored: int
    error: str

    @classmethod
    def of(cls, part: Cell, shard: Shard, journal: Journal) -> Self:
        """Count the sessions in a shard's journal."""
        status, error = Counter[str](), ""
        for session in SessionsInJournal(part, journal):
            status[session.status] += 1
            if session.error is not None:
                error = error or f"{session.task_id}: {session.error}"
        return cls(shard, status["completed"], status["errored"], error)

    def write(self, folder: Path) -> None:
        """Note in the shard's folder that its process came to the end, so that a sweep does not run it again."""
        write_atomically(folder / ENDED, json.dumps({"completed": self.completed, "errored": self.errored}) + "\n")


@contextlib.contextmanager
def lock_shard(cell: Cell, shard: Shard) -> Iterator[None]:
    """Lock a shard. Raises `UserError` if another process runs it, alone or within another shard or the cell."""
    folder = shard.part_of(cell).folder
    with lock(folder):
        (folder / ENDED).unlink(missing_ok=True)
        for other, path in _shards(cell).items():
            if other != shard and other.overlaps(shard) and is_held(path):
                problem = f"shard {shard.name} has tasks in common with {path}, which another process is running"
                raise UserError(problem, "wait for it, or stop it; its results are kept, and are not paid for again")
        # Checked last: a run of the whole cell first takes its lock, then checks the locks of the shards.
        if is_held(cell.folder):
            raise UserError(
                f"the cell {cell.folder} is in use by another process, which runs all that is missing",
                "wait for it, or stop it and run the shards again: what it recorded is not paid for again",
            )
        yield


def errors_in(cell: Cell, shard: Shard) -> int | None:
    """The errored sessions of a shard whose process came to the end; None if it did not."""
    path = shard.part_of(cell).folder / ENDED
    return int(read_json(path.read_bytes())["errored"]) if path.is_file() else None


def import_steps(cell: Cell, shard: Shard) -> Ledger:
    """Import the shard's sessions from the journals of the cell and of shards of another count.

    Returns the usage of the cell outside shards of this count. Raises `UserError`.
    """
    part, shards, accounts = shard.part_of(cell), _shards(cell), dict[str, Ledger]()
    others = {each.name: at for each, at in shards.items() if each.count != shard.count and not is_held(at)}
    for name, folder in {"": cell.folder, **others}.items():
        source = folder / "journal.db"
        if source.exists():
            _bring_desks(folder, part.folder)
            copy_sessions(part.folder / "journal.db", source, [*_sessions(part), *units()])
            account = account_of(source)
            accounts |= {**account.taken, origin_name(name, account.origin): account.own}
    same, before = {each.name for each in shards if each.count == shard.count}, Ledger()
    for name, ledger in accounts.items():
        if name.partition("/")[0] not in same:
            for charge in ledger.charges():
                before.add(charge)
    return before


def merge(cell: Cell) -> None:
    """Merge the journals of all shards into the cell's, whose lock is held. A merged journal may be merged again.

    Raises `UserError` if a shard is being run, or was answered by another checkpoint than the rest of the cell.
    """
    shards, into = _shards(cell), cell.folder / "journal.db"
    if running := next(filter(is_held, shards.values()), None):
        remedy = "run this command again when it has ended: it merges all shards and does what is missing"
        raise UserError(f"another process is still running the shard {running}", remedy)
    for shard, folder in shards.items():
        source = folder / "journal.db"
        if source.exists():
            if into.exists():
                _refuse_other_checkpoint(cell, account_of(into), account_of(source), folder)
            _bring_desks(folder, cell.folder)
            merge_journal(into, source, [*_sessions(shard.part_of(cell)), *units()], shard.name)
            shutil.rmtree(folder / DESKS, ignore_errors=True)


def _bring_desks(source: Path, into: Path) -> None:
    """Copy what agents keep of sessions that are not complete, which go on from it."""
    for path in source.glob(f"{DESKS}/*/*"):
        target = into / path.relative_to(source)
        if path.is_file() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, path.read_bytes())


def share_of(budget: Budget, shard: Shard, before: Ledger) -> Budget:
    """A shard's equal share of what is left of a cell's budget after `before` was spent."""
    paid = budget.spent_usd(before) or 0.0
    usd = None if budget.usd is None else max(0.0, budget.usd - paid) / shard.count
    tokens = None if budget.tokens is None else max(0, budget.tokens - before.tokens) // shard.count
    return replace(budget, usd=usd, tokens=tokens, shards=shard.count)


def without_shard(words: Sequence[str]) -> list[str]:
    """The command that merges: a shard's command without the words that choose the shard."""
    return [word for word in words if word.lstrip("+~").partition("=")[0].partition(".")[0] != "shard"]


def _shards(cell: Cell) -> dict[Shard, Path]:
    shards: dict[Shard, Path] = {}
    for folder in (cell.folder / SHARDS).glob("*-of-*"):
        index, _, count = folder.name.partition("-of-")
        if index.isdecimal() and count.isdecimal() and int(index) < int(count):
            shards[Shard(int(index), int(count))] = folder
    return dict(sorted(shards.items(), key=lambda each: (each[0].count, each[0].index)))


def _sessions(cell: Cell) -> list[str]:
    return [session_id(cell.id, task.task_id) for task in cell.tasks]


def _refuse_other_checkpoint(cell: Cell, whole: Account, part: Account, folder: Path) -> None:
    for record in part.endpoints:
        if (model := cell.endpoints.get(record.place)) is None:
            continue
        earlier = [each for each in whole.endpoints if each.place == record.place]
        try:
            refuse_other_weights(record.place, model, earlier, EndpointInfo(record.base_url, record.facts))
        except UserError as mistake:
            remedy = "remove that folder, and run this shard again at the checkpoint that answered the others"
            raise UserError(f"{folder} cannot be merged. {mistake.message}", remedy) from mistake
