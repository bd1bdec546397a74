"""Shards part a cell's tasks, share its budget, and are taken in any number of times without counting twice."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codechat.base.domain import Reply, Usage
from codechat.report.metrics.spending import Price, Tariff
from codechat.run.cell import Cell, build_cell, session_id
from codechat.run.cell.budget import Budget
from codechat.run.journal import Charge, Journal, Ledger, account_of, merge_journal
from codechat.run.running.shards import Shard, _shards, import_steps, merge, share_of, without_shard
from codechat.run.settings.compose import compose

shards = st.integers(1, 7).flatmap(lambda count: st.builds(Shard, st.integers(0, count - 1), st.just(count)))


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    return build_cell(compose(["model=echo", "dataset.limit=10", f"runs_dir={tmp_path}"]))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 10, 13])
def test_every_task_is_in_one_shard_under_the_id_of_the_whole_cell(cell: Cell, count: int) -> None:
    parts = [Shard(index, count).part_of(cell) for index in range(count)]
    assert sorted(task.task_id for part in parts for task in part.tasks) == sorted(task.task_id for task in cell.tasks)
    assert max(len(part.tasks) for part in parts) - min(len(part.tasks) for part in parts) <= 1
    assert {part.id for part in parts} == {cell.id}
    assert parts[-1].folder == cell.folder / "shards" / f"{count - 1}-of-{count}"


@given(shards, shards)
def test_shards_overlap_if_they_have_a_task_in_common(one: Shard, other: Shard) -> None:
    tasks = range(one.count * other.count)
    mine, its = (set(tasks[each.index :: each.count]) for each in (one, other))
    assert one.overlaps(other) == bool(mine & its)


def test_the_shares_of_a_budget_sum_to_what_is_left() -> None:
    tariff = Tariff({"model": Price(input=1_000_000, output=0, cached_input=0)})
    before = Ledger()
    before.add(Charge("model", calls=1, input_tokens=4))
    budget = Budget(10.0, 1000, tariff)
    share = share_of(budget, Shard(0, 3), before)
    assert (share.usd, share.tokens) == (2.0, 332)
    assert share_of(replace(budget, usd=3.0), Shard(0, 3), before).usd == 0, "more was spent than the budget allows now"
    assert share_of(Budget(None, None, tariff), Shard(0, 3), before).reason_to_stop(before) == ""
    assert "$2.00 (budget_usd / 3 shards)" in share.reason_to_stop(before)


def test_the_merging_command_is_that_of_a_shard_without_its_words() -> None:
    words = ["codechat", "seed=1", "shard.index=0", "++shard.count=4", "shard={index: 0}", "model.name=shard.index=2"]
    assert without_shard(words) == ["codechat", "seed=1", "model.name=shard.index=2"]


def test_only_the_folders_of_shards_are_shards(cell: Cell) -> None:
    for name in ("0-of-3", "2-of-3", "3-of-3", "x-of-3", "1-of-y", "0-of-2"):
        (cell.folder / "shards" / name).mkdir(parents=True)
    assert list(_shards(cell)) == [Shard(0, 2), Shard(0, 3), Shard(2, 3)]


async def _record(path: Path, sessions: dict[str, bool], text: str = "said") -> None:
    """Record a call of ten tokens for each session, and whether it was completed, in three seconds."""
    journal = Journal(path)

    async def compute() -> Reply:
        return Reply(text, usage=Usage(10, 0))

    for session, completed in sessions.items():
        await journal.step(session, "0/model", "d", Reply, compute, payer="model")
        await journal.finish(session, f"{text} {session}", "{}", completed=completed)
    journal.add_wall(3.0)
    journal.close()


async def test_what_is_taken_in_again_counts_once_and_what_is_new_is_added(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.db", tmp_path / "part.db"
    await _record(part, {"a": True, "b": False, "not asked for": True})
    for _ in range(2):
        merge_journal(whole, part, ["a", "b"], "0-of-2")
    await _record(part, {"b": True, "c": True})
    merge_journal(whole, part, ["a", "b", "c"], "0-of-2")
    journal = Journal(whole)
    assert [journal.record(name) for name in ("a", "b", "c", "not asked for")] == ["said a", "said b", "said c", None]
    assert journal.outline("b", completed=True) is not None, "it was completed since"
    assert journal.ledger.of["model"] == Charge("model", 4, 0, 40), "b was paid for once"
    assert journal.add_wall(1.0) == 7.0
    journal.close()


async def test_what_the_cell_has_stays_and_a_journal_that_was_made_anew_adds_to_the_earlier_one(
    tmp_path: Path,
) -> None:
    whole, part = tmp_path / "whole.db", tmp_path / "part.db"
    await _record(whole, {"a": True}, "mine")
    await _record(part, {"a": True}, "its")
    merge_journal(whole, part, ["a"], "0-of-2")
    part.unlink()
    await _record(part, {"b": True})
    merge_journal(whole, part, ["a", "b"], "0-of-2")
    journal = Journal(whole)
    assert journal.record("a") == "mine a"
    assert journal.ledger.tokens == 30
    journal.close()
    account = account_of(whole)
    assert account.own.tokens == 10
    assert sorted(ledger.tokens for ledger in account.taken.values()) == [10, 10]


async def test_a_shard_counts_as_spent_before_what_shards_of_its_split_did_not_spend(cell: Cell) -> None:
    await _record(cell.folder / "journal.db", {"x": True})
    for name, sessions in (("0-of-2", {"a": True}), ("1-of-2", {"b": True}), ("2-of-3", {"c": True, "d": True})):
        await _record(cell.folder / "shards" / name / "journal.db", sessions)
    assert import_steps(cell, Shard(0, 2)).tokens == 10 + 20, "the cell's own, and those of three"
    merge(cell)
    assert import_steps(cell, Shard(0, 2)).tokens == 10 + 20, "the merge changes nothing of it"
    shutil.rmtree(cell.folder / "shards")
    assert import_steps(cell, Shard(0, 2)).tokens == 10 + 40, "what a removed folder's shards spent is spent"


async def test_a_shard_begins_with_its_own_sessions_of_the_cell(cell: Cell) -> None:
    shard = Shard(0, 2)
    names = [session_id(cell.id, task.task_id) for task in cell.tasks[:2]]
    await _record(cell.folder / "journal.db", dict.fromkeys(names, True))
    import_steps(cell, shard)
    journal = Journal(shard.part_of(cell).folder / "journal.db")
    assert [journal.record(name) for name in names] == [f"said {names[0]}", None]
    journal.close()
