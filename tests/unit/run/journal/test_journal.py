"""The journal gives back what it was given, survives a kill, and refuses in words."""

import asyncio
import contextlib
import gc
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from codechat.base.domain import Adherence, Applicability, Failure, Reply, Usage, Verdict
from codechat.base.errors import InfrastructureError, UserError
from codechat.run.journal import Journal, read_values
from codechat.run.journal.database import EndpointRecord
from support.mistakes import mistake
from support.processes import open_files


class Counting:
    def __init__(self, value: object) -> None:
        self.calls, self.value = 0, value

    async def __call__(self) -> object:
        self.calls += 1
        await asyncio.sleep(0)
        return self.value


VALUES = [
    Reply("text \x00 \u2028 ü", "length", 0.5, usage=Usage(1, 2, 3), retries=2),
    Verdict("fail", True, Failure("wrong", "plus", 3, "f(1)", "2", "3"), 0.25),
    Adherence("undecided", "llm", "unreadable", usage=Usage(5, 6)),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
async def test_a_step_is_computed_once_and_outlives_the_process(tmp_path: Path, value: object) -> None:
    compute = Counting(value)
    for _ in range(2):
        journal = Journal(tmp_path / "journal.db")
        for _ in range(2):
            assert await journal.step("s", "0/x", "digest", type(value), compute) == value
        journal.close()
    assert compute.calls == 1


async def test_another_digest_or_session_is_another_step(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    compute = Counting(Reply("x"))
    for session, digest in (("a", "1"), ("a", "2"), ("b", "1")):
        await journal.step(session, "0/reply", digest, Reply, compute)
    assert compute.calls == 3
    journal.close()


async def test_many_steps_at_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    replies = [Counting(Reply(str(number), retries=1)) for number in range(200)]
    got = await asyncio.gather(
        *(journal.step("s", f"{n}/model", "d", Reply, each, payer="model") for n, each in enumerate(replies))
    )
    assert [reply.text for reply in got] == [str(number) for number in range(200)]
    assert journal.ledger.total("retries") == 200
    journal.close()
    again = Journal(tmp_path / "journal.db")
    assert (await again.step("s", "7/model", "d", Reply, Counting(None))).text == "7"
    again.close()


async def test_a_process_that_never_ended_counts_up_to_its_last_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("codechat.run.journal.store.time", SimpleNamespace(monotonic=lambda: now[0], time=time.time))
    killed = Journal(tmp_path / "journal.db")
    for number, moment in enumerate((100.5, 107.0, 107.5, 112.0)):
        now[0] = moment
        await killed.step("s", f"{number}/model", "d", Reply, Counting(Reply("x")), payer="model")
    await killed.settle()
    now[0] = 150.0
    killed.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "journal.db")) as db:
        assert db.execute("SELECT wall_s FROM runs").fetchall() == [(12.0,)], "one row for each process"
    with contextlib.closing(Journal(tmp_path / "journal.db")) as journal:
        now[0] = 155.0
        await journal.step("s", "9/model", "d", Reply, Counting(Reply("x")), payer="model")
        assert journal.add_wall(6.0) == 18.0


async def test_wall_time_adds_up_and_finished_sessions_come_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    assert journal.add_wall(1.5) == 1.5
    assert journal.add_wall(2.0) == 3.5
    await journal.finish("s", "{whole}", "{slim}", completed=True)
    await journal.finish("broken", "{whole}", "{slim}", completed=False)
    assert (journal.record("s"), journal.record("broken"), journal.record("other")) == ("{whole}",) * 2 + (None,)
    assert journal.outline("s", completed=True) == journal.outline("broken") == "{slim}"
    assert journal.outline("broken", completed=True) is None, "what errored is run again"
    journal.close()


async def test_what_calls_used_is_summed_over_processes_and_cache_hits_are_free(tmp_path: Path) -> None:
    seen: list[int] = []
    payers = ["model", "model", "applicability", "adherence", None]
    values = [
        Reply("a", usage=Usage(100, 10, 40), retries=2, rate_limited=1),
        Reply("b", usage=Usage(100, 10, 40), cached=True),
        Applicability(True, "llm", usage=Usage(7, 3)),
        Adherence("adhered", "rules"),
        Verdict("pass", True),
    ]
    for _ in range(2):
        journal = Journal(tmp_path / "journal.db")
        journal.watch = lambda ledger: seen.append(ledger.tokens)
        for number, (payer, value) in enumerate(zip(payers, values, strict=True)):
            await journal.step("s", f"{number}/x", "d", type(value), Counting(value), payer=payer)
        journal.close()
    ledger = journal.ledger
    assert ledger.spent == {"model": Usage(100, 10, 40), "applicability": Usage(7, 3)}
    assert (ledger.of["model"].calls, ledger.of["applicability"].calls, "adherence" in ledger.of) == (2, 1, False)
    counts = [ledger.total(name) for name in ("retries", "rate_limited", "cached_replies")]
    assert counts == [2, 1, 1]
    assert seen == [110, 110, 120], "told after every call, not of a decision for which none was made, nor of a replay"


async def test_the_attempts_of_a_call_that_failed_are_counted(tmp_path: Path) -> None:
    async def fails() -> Reply:
        error = InfrastructureError("gave up")
        error.retries, error.rate_limited = 6, 4
        raise error

    journal = Journal(tmp_path / "journal.db")
    with pytest.raises(InfrastructureError):
        await journal.step("s", "0/model", "d", Reply, fails, payer="model")
    journal.close()
    again = Journal(tmp_path / "journal.db")
    assert (again.ledger.total("retries"), again.ledger.total("rate_limited")) == (6, 4)
    assert await again.step("s", "0/model", "d", Reply, Counting(Reply("x"))) == Reply("x"), "and it is asked again"
    again.close()


async def test_a_step_that_nobody_waits_for_any_more_is_kept(tmp_path: Path) -> None:
    answered = asyncio.Event()

    async def slow() -> Reply:
        await answered.wait()
        return Reply("paid for")

    journal = Journal(tmp_path / "journal.db")
    waiting = asyncio.create_task(journal.step("s", "0/reply", "d", Reply, slow))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    answered.set()
    await journal.finish_steps(10)
    assert await journal.step("s", "0/reply", "d", Reply, Counting(None)) == Reply("paid for")
    answered.clear()
    waiting = asyncio.create_task(journal.step("s", "1/reply", "d", Reply, slow))
    await asyncio.sleep(0.01)
    await journal.finish_steps(0.01)
    await journal.abandon()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    journal.close()


async def test_a_step_that_fails_when_nobody_waits_or_is_dropped_is_no_unheard_error(tmp_path: Path) -> None:
    journal, told = Journal(tmp_path / "journal.db"), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    go = asyncio.Event()

    async def fail() -> None:
        await go.wait()
        raise InfrastructureError("the server is gone")

    waiting = [asyncio.create_task(journal.step(name, "x", "d", Reply, fail)) for name in "ab"]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])
    go.set()
    with pytest.raises(InfrastructureError):
        await waiting[1]
    await journal.finish_steps(5.0)
    go.clear()
    waiting = [asyncio.create_task(journal.step("c", "x", "d", Reply, fail))]
    await asyncio.sleep(0.01)
    await journal.abandon()
    await asyncio.wait(waiting)
    del waiting
    gc.collect()
    await asyncio.sleep(0)
    assert told == []
    journal.close()


def test_a_killed_process_loses_nothing_that_was_committed(tmp_path: Path) -> None:
    script = f"""
import asyncio, os, sys
from pathlib import Path
from codechat.base.domain import Reply
from codechat.run.journal import Journal, read_values
from codechat.run.journal.database import EndpointRecord
async def main():
    journal = Journal(Path({str(tmp_path / "journal.db")!r}))
    async def compute(): return Reply("kept")
    await journal.step("s", "0/reply", "d", Reply, compute)
    print("committed", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "committed\n"
        os.kill(process.pid, signal.SIGKILL)

    async def read() -> Reply:
        journal = Journal(tmp_path / "journal.db")
        try:
            return await journal.step("s", "0/reply", "d", Reply, Counting(Reply("lost")))  # type: ignore[arg-type]
        finally:
            journal.close()

    assert asyncio.run(read()).text == "kept"


def test_another_schema_is_refused_in_words(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "journal.db")
    database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(UserError, match="schema 99") as refusal:
        Journal(tmp_path / "journal.db")
    assert refusal.traceback and not open_files(tmp_path), "closed, although the traceback keeps the journal alive"


def test_the_first_schema_is_brought_up_to_date(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "journal.db")
    database.executescript(OLD)
    database.close()
    for _ in range(2):
        journal = Journal(tmp_path / "journal.db")
        assert journal.record("done") == journal.outline("done", completed=True) == '{"task_id": "t"}'
        assert journal.ledger.spent["model"] == Usage(12, 5, 2)
        assert journal.ledger.spent["adherence"] == Usage(3, 4)
        assert (journal.ledger.total("retries"), journal.ledger.of["model"].calls) == (2, 2)
        assert journal.add_wall(0) == 7.0
        journal.close()


OLD = """
CREATE TABLE steps (session TEXT, name TEXT, digest TEXT, value TEXT, PRIMARY KEY (session, name, digest));
CREATE TABLE sessions (session TEXT PRIMARY KEY, record TEXT);
CREATE TABLE runs (id INTEGER PRIMARY KEY, wall_s REAL);
INSERT INTO steps VALUES
  ('s', '0/reply', 'a', '{"text":"x","usage":{"input_tokens":10,"output_tokens":5,"cached_input_tokens":2},"retries":2}'),
  ('s', '1/reply', 'b', '{"text":"y","usage":{"input_tokens":2,"output_tokens":0,"cached_input_tokens":0}}'),
  ('s', '1/i/applicable', 'b', '{"applicable":true,"by":"rules"}'),
  ('s', '1/adherence', 'c', '{"verdict":"adhered","usage":{"input_tokens":3,"output_tokens":4}}'),
  ('s', '1/verdict', 'c', '{"outcome":"pass"}');
INSERT INTO sessions VALUES ('done', '{"task_id": "t"}');
INSERT INTO runs (wall_s) VALUES (7.0);
PRAGMA user_version=1;
"""


def test_a_file_that_is_no_database_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "journal.db").write_text("not a database " * 100)
    with pytest.raises(UserError, match="cannot open the journal") as refusal:
        Journal(tmp_path / "journal.db")
    assert refusal.traceback and not open_files(tmp_path)


def test_a_database_with_other_tables_is_refused_in_words(tmp_path: Path) -> None:
    Journal(tmp_path / "journal.db").close()
    with contextlib.closing(sqlite3.connect(tmp_path / "journal.db")) as database:
        database.executescript("DROP TABLE taken; CREATE TABLE taken (other TEXT)")
    with mistake("journal.db") as refusal:
        Journal(tmp_path / "journal.db")
    assert "runs_dir" in str(refusal.value)


async def test_the_answers_and_tokens_of_a_payer(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    await journal.step("s", "0/model", "d", Reply, Counting(Reply("x", usage=Usage(5, 2, 3))), payer="model")
    await journal.step("s", "0/user", "d", Reply, Counting(Reply("y", usage=Usage(7, 1))), payer="user")
    await journal.finish("s", "{whole}", "{slim}", completed=True)
    assert journal.used() == {"model": Usage(5, 2, 3), "user": Usage(7, 1)}
    journal.close()
    (read,) = read_values(tmp_path / "journal.db", "user")
    assert read[:2] == ("s", "0/user") and '"text":"y"' in read[2]


async def test_a_full_disk_is_told_and_what_was_written_stays(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    await journal.step("s", "0/reply", "d", Reply, Counting(Reply("kept")))  # type: ignore[arg-type]
    pages = journal._db._writer.execute("PRAGMA page_count").fetchone()[0]
    journal._db._writer.execute(f"PRAGMA max_page_count={pages + 1}")
    with pytest.raises(UserError, match="cannot write the journal"):
        await journal.step("s", "1/reply", "d", Reply, Counting(Reply("x" * 100_000)))  # type: ignore[arg-type]
    assert (await journal.step("s", "0/reply", "d", Reply, Counting(None))).text == "kept"  # type: ignore[arg-type]
    journal.close()


FREE = Applicability(True, "rules", "1 loop")


async def test_a_free_decision_is_on_disk_before_the_next_call_begins(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal, reader, seen = Journal(path), sqlite3.connect(path), []

    async def call() -> Reply:
        seen.append(reader.execute("SELECT count(*) FROM steps WHERE name LIKE '%/applicable'").fetchone()[0])
        return Reply("x")

    for turn in range(5):
        assert await journal.step("s", f"{turn}/a/applicable", "d", Applicability, Counting(FREE), free=True) == FREE
        assert await journal.step("s", f"{turn}/b/applicable", "d", Applicability, Counting(FREE), free=True) == FREE
        await journal.step("s", f"{turn}/reply", "d", Reply, call)
    assert seen == [2, 4, 6, 8, 10]
    again = Counting(None)
    assert await journal.step("s", "0/a/applicable", "d", Applicability, again, free=True) == FREE
    assert again.calls == 0, "what is recorded is not decided again"
    reader.close()
    journal.close()


async def test_a_free_decision_that_cannot_be_written_stops_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, call = Journal(tmp_path / "journal.db"), Counting(Reply("x"))

    def full(batch: object) -> None:
        raise UserError("cannot write the journal: the disk is full")

    monkeypatch.setattr(journal, "_commit", full)
    await journal.step("s", "0/a/applicable", "d", Applicability, Counting(FREE), free=True)
    with pytest.raises(UserError, match="the disk is full"):
        await journal.step("s", "0/reply", "d", Reply, call)
    assert call.calls == 0
    journal.close()


async def test_a_journal_from_before_shards_goes_on_with_its_charges_and_times(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = Journal(path)
    await journal.step("s", "0/model", "d", Reply, Counting(Reply("x", usage=Usage(5, 1))), payer="model")  # type: ignore[arg-type]
    journal.add_wall(2.0)
    journal.close()
    database = sqlite3.connect(path)
    database.executescript(
        "DROP TABLE taken; DROP TABLE origin; ALTER TABLE runs DROP COLUMN origin; PRAGMA user_version=4;"
    )
    database.close()
    journal = Journal(path)
    assert journal.ledger.tokens == 6
    assert journal.add_wall(1.0) == 3.0
    journal.close()


POISON = [
    (Reply("x", usage=Usage(2**63)), OverflowError),
    (Reply("x", retries=-(2**70)), OverflowError),
]


@pytest.mark.parametrize(("value", "error"), POISON, ids=["tokens", "retries"])
async def test_a_bug_in_a_write_reaches_all_that_wait_and_every_later_write(
    tmp_path: Path, value: Reply, error: type[Exception]
) -> None:
    journal = Journal(tmp_path / "journal.db")
    await journal.step("before", "0/model", "d", Reply, Counting(Reply("kept")), payer="model")
    steps = [("bad", value), ("beside", Reply("y")), ("free", Reply("z"))]
    tasks = [
        journal.step(unit, "0/model", "d", Reply, Counting(each), payer="model", free=unit == "free")
        for unit, each in steps
    ]
    async with asyncio.timeout(10):
        bad, beside, _ = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(bad, error) and isinstance(beside, error)
        with pytest.raises(error):
            await journal.finish("s", "{}", "{}", completed=True)
        with pytest.raises(error):
            await journal.step("later", "0/model", "d", Reply, Counting(Reply("late")))
        await journal.settle()
    assert journal.add_wall(1.0) == 1.0, "no transaction of the failed write is left open"
    journal.close()
    again = Journal(tmp_path / "journal.db")
    assert (await again.step("before", "0/model", "d", Reply, Counting(None))).text == "kept"
    assert again.add_wall(1.0) == 2.0
    again.close()


async def test_half_a_surrogate_in_an_endpoints_words_reaches_the_caller(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    record = EndpointRecord("model", "http://x", '{"root": "\ud800"}', (), 1.0)
    async with asyncio.timeout(10):
        with pytest.raises(UnicodeEncodeError):
            await journal.record_endpoint(record)
    journal.close()
