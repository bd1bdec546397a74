"""A journal on a network's file system: one connection that has the file for itself, and the same guarantees."""

import asyncio
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from codechat.base.domain import Reply, Usage
from codechat.models.calls.cache import location, recall_endpoint_info, recall_or_ask, store_endpoint_info
from codechat.run.journal import Journal, account_of, merge_journal, read_values
from support.machine import write_mounts
from support.mistakes import mistake


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that counts as one on NFS."""
    folder = tmp_path / "nfs"
    folder.mkdir()
    monkeypatch.setattr("codechat.base.mounts.MOUNTS", write_mounts(tmp_path / "mounts", nfs4=folder))
    monkeypatch.setattr("codechat.run.journal.database.WAIT_S", 0.1)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def answer(journal: Journal, name: str, text: str) -> Reply:
    async def compute() -> Reply:
        return Reply(text, usage=Usage(10, 1))

    return await journal.step("s", name, "d", Reply, compute, payer="model")


async def test_no_memory_is_shared_and_what_is_recorded_comes_back(shared: Path) -> None:
    for _ in range(2):
        journal = Journal(shared / "journal.db")
        assert (await answer(journal, "0/model", "once")).text == "once"
        assert names(shared) == ["journal.db", "journal.db-wal"]
        assert journal.ledger.tokens == 11
        journal.close()
    assert names(shared) == ["journal.db"]


async def test_a_journal_that_was_begun_on_a_local_disk_goes_on(shared: Path, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "local.db")
    await answer(journal, "0/model", "before")
    assert (tmp_path / "local.db-shm").exists()
    journal.close()
    (tmp_path / "local.db").rename(shared / "journal.db")
    journal = Journal(shared / "journal.db")
    assert (await answer(journal, "0/model", "again")).text == "before"
    assert "journal.db-shm" not in names(shared)
    journal.close()


async def test_another_connection_is_locked_out_and_told_so(shared: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal = Journal(shared / "journal.db")
    await answer(journal, "0/model", "x")
    with mistake("another process", "nfs4") as told:
        Journal(shared / "journal.db")
    assert "wait for that process" in told.value.remedy
    assert list(read_values(shared / "journal.db", "model")) == []
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and "another process" in record.getMessage()
    journal.close()


async def test_a_finished_journal_is_read_without_being_changed(shared: Path) -> None:
    journal = Journal(shared / "journal.db")
    await answer(journal, "0/model", "x")
    journal.close()
    before = (shared / "journal.db").read_bytes()
    assert [name for _, name, _ in read_values(shared / "journal.db", "model")] == ["0/model"]
    assert names(shared) == ["journal.db"]
    assert (shared / "journal.db").read_bytes() == before
    assert list(read_values(shared / "none.db", "model")) == []
    assert names(shared) == ["journal.db"]


async def test_what_a_read_sees_is_committed(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one connection is shared with the thread that commits: a read waits for the commit under way."""
    journal = Journal(shared / "journal.db")
    under_way, go_on = threading.Event(), threading.Event()
    insert = Journal._insert

    def slowly(*row: object) -> None:
        insert(*row)  # type: ignore[arg-type]
        under_way.set()
        go_on.wait(10)

    monkeypatch.setattr(Journal, "_insert", staticmethod(slowly))
    writing = asyncio.create_task(journal.finish("s", "{whole}", "{slim}", completed=True))
    await asyncio.to_thread(under_way.wait, 10)
    reading = asyncio.create_task(asyncio.to_thread(journal.record, "s"))
    await asyncio.sleep(0.1)
    assert not reading.done()
    go_on.set()
    assert await reading == "{whole}"
    await writing
    journal.close()


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
import codechat.base.mounts
codechat.base.mounts.MOUNTS = Path(sys.argv[2])
from codechat.base.domain import Reply
from codechat.run.journal import Journal

async def work():
    journal = Journal(Path(sys.argv[1]))
    for number in range(20):
        async def compute():
            return Reply(str(number))
        await journal.step("s", f"{number}/model", "d", Reply, compute, payer="model")
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(work())
"""


async def test_all_that_was_recorded_before_a_kill_is_there(shared: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-c", KILLED, str(shared / "journal.db"), str(tmp_path / "mounts")]
    killed = await asyncio.to_thread(subprocess.run, words, env=dict(os.environ), check=False)
    assert killed.returncode == -signal.SIGKILL
    assert names(shared) == ["journal.db", "journal.db-wal"]
    assert len(list(read_values(shared / "journal.db", "model"))) == 20, "reading recovers it"
    journal = Journal(shared / "journal.db")
    assert [(await answer(journal, f"{number}/model", "paid twice")).text for number in range(20)] == [
        str(number) for number in range(20)
    ]
    journal.close()


async def test_journals_are_merged_there_too(shared: Path) -> None:
    for part in ("one", "two"):
        journal = Journal(shared / part / "journal.db")
        await answer(journal, f"{part}/model", part)
        journal.close()
        for _ in range(2):
            merge_journal(shared / "journal.db", shared / part / "journal.db", ["s"], part)
    journal = Journal(shared / "journal.db")
    assert [(await answer(journal, f"{part}/model", "")).text for part in ("one", "two")] == ["one", "two"]
    assert journal.ledger.tokens == 22
    journal.close()
    assert account_of(shared / "journal.db").own.tokens == 0
    assert names(shared) + names(shared / "one") == ["journal.db", "one", "two", "journal.db"]


async def test_the_response_cache_is_not_kept_there(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from codechat.models.calls.cache import CachedQuestion

    asked = 0

    async def ask() -> Reply:
        nonlocal asked
        asked += 1
        return Reply("x")

    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(shared))
    for _ in range(2):
        await recall_or_ask(CachedQuestion("a", "m", {"x": 1}, None), ask)
    store_endpoint_info("a", "m", "{}")
    assert recall_endpoint_info("a", "m") is None
    assert asked == 2
    assert not location().exists()
    (record,) = caplog.records
    assert "hardware.scratch" in record.getMessage() and "CODECHAT_CACHE_DIR" in record.getMessage()


def test_on_a_local_disk_a_journal_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    reader = sqlite3.connect(tmp_path / "journal.db")
    assert reader.execute("SELECT count(*) FROM steps").fetchone() == (0,)
    reader.close()
    journal.close()
