"""The response cache: what is kept, for whom, and that it never gets in anybody's way."""

import asyncio
import contextlib
import json
import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Reply, Usage
from codechat.base.errors import InfrastructureError, UserError
from codechat.models.calls import cache, traffic
from codechat.models.calls.cache import (
    CachedQuestion,
    clear,
    contents,
    is_final,
    location,
    recall,
    recall_endpoint_info,
    recall_or_ask,
    settle,
    size_of,
    store_endpoint_info,
)

ROOT = Path(__file__).parents[4]
QUESTION = CachedQuestion("http://here/v1/chat", "m", {"messages": [{"role": "user", "content": "a\ud800"}]}, None)
REPLY = Reply("x\ud800\u00e9", "length", 0.125, usage=Usage(1, 2, 1), retries=3, rate_limited=2)


class Endpoint:
    """Answers, and counts how often it was asked."""

    def __init__(self, reply: Reply = REPLY) -> None:
        self.reply, self.asked = reply, 0

    async def ask(self) -> Reply:
        self.asked += 1
        return self.reply


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    asyncio.run(settle())


async def test_a_reply_is_kept_with_its_usage_and_latency_and_says_so() -> None:
    endpoint, before = Endpoint(), traffic().cache_hits
    first = await recall_or_ask(QUESTION, endpoint.ask)
    await settle()
    again = await recall_or_ask(QUESTION, endpoint.ask)
    assert (first, endpoint.asked) == (REPLY, 1)
    assert again == replace(REPLY, retries=0, rate_limited=0, cached=True)
    assert traffic().cache_hits - before == 1


@pytest.mark.parametrize(
    "other",
    [
        replace(QUESTION, address="http://there/v1/chat"),
        replace(QUESTION, model="n"),
        replace(QUESTION, body={**QUESTION.body, "temperature": 0}),
        replace(QUESTION, body={"messages": [{"role": "system", "content": "a\ud800"}]}),
        replace(QUESTION, sample=0),
    ],
)
async def test_everything_that_determines_the_answer_counts(other: CachedQuestion) -> None:
    endpoint = Endpoint()
    await recall_or_ask(QUESTION, endpoint.ask)
    await settle()
    await recall_or_ask(other, endpoint.ask)
    assert endpoint.asked == 2


async def test_samples_are_told_apart() -> None:
    endpoint = Endpoint()
    for sample in (0, 1, 0, 1):
        await recall_or_ask(replace(QUESTION, sample=sample), endpoint.ask)
        await settle()
    assert endpoint.asked == 2


async def test_the_order_of_fields_does_not_count() -> None:
    assert replace(QUESTION, body={"a": 1, "b": 2}).key() == replace(QUESTION, body={"b": 2, "a": 1}).key()


async def test_what_is_no_question_is_never_kept() -> None:
    endpoint = Endpoint()
    for _ in range(2):
        await recall_or_ask(None, endpoint.ask)
    assert endpoint.asked == 2
    assert not location().exists()


async def test_errors_and_filtered_replies_are_not_kept() -> None:
    async def fail() -> Reply:
        raise InfrastructureError("down")

    with pytest.raises(InfrastructureError):
        await recall_or_ask(QUESTION, fail)
    filtered = Endpoint(replace(REPLY, finish_reason="content_filter"))
    await recall_or_ask(QUESTION, filtered.ask)
    await recall_or_ask(replace(QUESTION, model="n"), Endpoint().ask, keep=lambda reply: False)
    await settle()
    assert contents().entries == 0


async def test_it_holds_no_conversation_and_only_the_user_may_look() -> None:
    await recall_or_ask(replace(QUESTION, body={"messages": "a very private question"}), Endpoint().ask)
    await settle()
    assert b"private" not in location().read_bytes()
    assert location().parent.stat().st_mode & 0o077 == 0


def test_one_event_loop_after_another_finds_it() -> None:
    endpoint = Endpoint()
    asyncio.run(recall_or_ask(QUESTION, endpoint.ask))  # the loop ends before anything is written
    asyncio.run(settle())
    asyncio.run(recall_or_ask(QUESTION, endpoint.ask))
    assert endpoint.asked == 1


# -- what can go wrong -------------------------------------------------------------------------------------------


def spoil_with_rubbish(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"this is no database, whatever its name says" * 100)


def spoil_with_another_schema(file: Path) -> None:
    file.parent.mkdir()
    with contextlib.closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version=99")


def spoil_with_another_table(file: Path) -> None:
    file.parent.mkdir()
    with contextlib.closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE replies (something TEXT)")
        db.execute("PRAGMA user_version=1")


def spoil_with_a_file_in_its_place(file: Path) -> None:
    file.parent.write_text("no folder")


SPOILS = [spoil_with_rubbish, spoil_with_another_schema, spoil_with_another_table, spoil_with_a_file_in_its_place]


@pytest.mark.parametrize("spoil", SPOILS)
async def test_a_file_that_cannot_be_used_costs_one_warning(spoil: Any, caplog: pytest.LogCaptureFixture) -> None:
    spoil(location())
    endpoint = Endpoint()
    for _ in range(3):
        assert (await recall_or_ask(QUESTION, endpoint.ask)).text == REPLY.text
        await settle()
    assert endpoint.asked == 3
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert str(location()) in warnings[0]


@pytest.mark.parametrize("spoil", SPOILS[:3])
def test_clearing_mends_what_cannot_be_read(spoil: Any) -> None:
    spoil(location())
    with pytest.raises(UserError, match="codechat cache clear"):
        contents()
    clear()
    assert contents().entries == 0


async def test_a_folder_that_cannot_be_written_costs_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    if os.geteuid() == 0:
        pytest.skip("needs a user other than root, who may write everywhere")
    location().parent.mkdir(mode=0o500)
    assert (await recall_or_ask(QUESTION, Endpoint().ask)).text == REPLY.text
    assert len(caplog.records) == 1


async def test_a_damaged_reply_costs_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    await recall_or_ask(QUESTION, Endpoint().ask)
    await settle()
    with contextlib.closing(sqlite3.connect(location())) as db, db:
        db.execute("UPDATE replies SET reply='[1, 2'")
    endpoint = Endpoint()
    await recall_or_ask(QUESTION, endpoint.ask)
    await recall_or_ask(QUESTION, endpoint.ask)
    assert (endpoint.asked, len(caplog.records)) == (2, 1)


async def test_a_write_that_fails_costs_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    await recall_or_ask(QUESTION, Endpoint().ask)
    await settle()
    for sample in (1, 2):  # the second is about to be written
        await recall_or_ask(replace(QUESTION, sample=sample), Endpoint().ask)
    with contextlib.closing(sqlite3.connect(location())) as db:
        db.execute("DROP TABLE replies")
    await settle()
    assert (await recall_or_ask(replace(QUESTION, sample=3), Endpoint().ask)).text == REPLY.text
    assert len(caplog.records) == 1


async def test_a_file_that_others_hold_has_no_answer_now_and_is_not_given_up(caplog: pytest.LogCaptureFixture) -> None:
    await recall_or_ask(QUESTION, Endpoint().ask)
    await settle()
    endpoint = Endpoint()
    await recall_or_ask(QUESTION, endpoint.ask)
    with contextlib.closing(sqlite3.connect(location(), isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        await recall_or_ask(QUESTION, endpoint.ask)  # a writer does not hinder who reads
        assert endpoint.asked == 0
        later = replace(QUESTION, sample=1)
        assert not (await recall_or_ask(later, endpoint.ask)).cached
        assert (await recall_or_ask(later, endpoint.ask)).cached, "it is kept until it can be written"
        db.execute("ROLLBACK")
    await settle()
    assert contents().entries == 2
    assert caplog.records == []


# -- others at the same time ---------------------------------------------------------------------------------------

WRITER = """
import asyncio, sys
from codechat.models.calls.cache import CachedQuestion, recall_or_ask, settle
from codechat.base.domain import Reply

async def main(name):
    async def ask():
        return Reply("x" * 1000)
    for number in range(200):
        await recall_or_ask(CachedQuestion("here", name, {"n": number}, None), ask)
        await recall_or_ask(CachedQuestion("here", "both", {"n": number}, None), ask)
        if number % 20 == 0:
            await settle()
    await settle()

asyncio.run(main(sys.argv[1]))
"""


def test_processes_share_it_from_the_first_moment() -> None:
    words = [sys.executable, "-c", WRITER]
    writers = [
        subprocess.Popen([*words, name], stderr=subprocess.PIPE, text=True, cwd=ROOT) for name in ("a", "b", "c")
    ]
    said = [writer.communicate()[1] for writer in writers]
    assert said == ["", "", ""]
    assert contents().models == tuple((name, 200, 200 * 1028) for name in ("a", "b", "both", "c"))


def cleared_by_another_process() -> tuple[int, int]:
    """How many entries and bytes it gave back."""
    script = "from codechat.models.calls.cache import clear; gone = clear(); print(gone.entries, gone.size)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    entries, freed = map(int, done.stdout.split())
    return entries, freed


async def test_clearing_beside_a_run_gives_the_space_back_and_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    large = Endpoint(Reply("x" * 100_000))
    for sample in range(20):
        await recall_or_ask(replace(QUESTION, sample=sample), large.ask)
    await settle()
    small = Endpoint()
    await recall_or_ask(replace(QUESTION, sample=0), small.ask)  # the run has it open
    before = contents()
    assert (before.entries, before.size > 2_000_000) == (20, True)
    entries, freed = await asyncio.to_thread(cleared_by_another_process)
    assert (entries, contents().entries) == (20, 0)
    assert freed > 1_900_000
    assert location().stat().st_size < 100_000
    await recall_or_ask(replace(QUESTION, sample=0), small.ask)
    await settle()
    assert (await recall_or_ask(replace(QUESTION, sample=0), small.ask)).cached
    assert (small.asked, caplog.records) == (1, [])


# -- questions under way -------------------------------------------------------------------------------------------


class Slow(Endpoint):
    """Answers when it is told to, or fails; `begun` counts calls that were not answered at once."""

    def __init__(self, *failures: BaseException) -> None:
        super().__init__()
        self.failures, self.go = list(failures), asyncio.Event()

    async def ask(self) -> Reply:
        self.asked += 1
        failure = self.failures.pop(0) if self.failures else None
        await self.go.wait()
        if failure is not None:
            raise failure
        return self.reply


async def begun(endpoint: Endpoint, callers: int, keep: Any = is_final) -> list[asyncio.Task[Reply]]:
    """So many callers with the same question, all of whom wait."""
    tasks = [asyncio.create_task(recall_or_ask(QUESTION, endpoint.ask, keep)) for _ in range(callers)]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


async def test_equal_questions_at_the_same_time_make_one_call_that_counts_once() -> None:
    endpoint, before = Slow(), traffic().cache_hits
    tasks = await begun(endpoint, 4)
    endpoint.go.set()
    first, *others = await asyncio.gather(*tasks)
    assert (first, endpoint.asked) == (REPLY, 1)
    assert others == [replace(REPLY, retries=0, rate_limited=0, cached=True)] * 3
    assert traffic().cache_hits - before == 3
    assert (await recall_or_ask(QUESTION, endpoint.ask)).cached  # also before it is written


async def test_questions_of_different_samples_share_no_call() -> None:
    endpoint = Slow()
    asked = [recall_or_ask(replace(QUESTION, sample=sample), endpoint.ask) for sample in (None, 0, 1, 2)]
    unkept = [recall_or_ask(None, endpoint.ask) for _ in range(2)]
    endpoint.go.set()
    replies = await asyncio.gather(*asked, *unkept)
    assert endpoint.asked == 6
    assert not any(reply.cached for reply in replies)


async def test_when_the_first_fails_the_others_ask_for_themselves_and_at_once() -> None:
    endpoint = Slow(InfrastructureError("down"))
    tasks = await begun(endpoint, 3)
    endpoint.go.set()
    failed, *others = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(failed, InfrastructureError)
    assert others == [REPLY, REPLY]
    assert endpoint.asked == 3


async def test_a_reply_that_is_not_kept_is_not_shared() -> None:
    endpoint = Slow()
    tasks = await begun(endpoint, 3, keep=lambda reply: False)
    assert endpoint.asked == 1
    endpoint.go.set()
    assert await asyncio.gather(*tasks) == [REPLY] * 3
    assert endpoint.asked == 3


async def test_a_cancelled_caller_cancels_no_other() -> None:
    endpoint = Slow()
    tasks = await begun(endpoint, 4)
    tasks[0].cancel()  # the first: the next asks in its place, and the others wait for that one
    tasks[2].cancel()  # one that waits
    await asyncio.sleep(0.01)
    assert endpoint.asked == 2
    endpoint.go.set()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError, Reply, asyncio.CancelledError, Reply]
    assert [end.cached for end in ends if isinstance(end, Reply)] == [False, True]
    assert endpoint.asked == 2


# -- the bound -----------------------------------------------------------------------------------------------------


async def kept(*samples: int) -> None:
    """Ask for so many replies of 20 kB each, and wait until they are written."""
    large = Endpoint(Reply("x" * 20_000))
    for sample in samples:
        await recall_or_ask(replace(QUESTION, sample=sample), large.ask)
        await settle()  # one after the other, so that it is known which is the oldest


def held() -> set[int]:
    return {sample for sample in range(200) if recall(replace(QUESTION, sample=sample))}


async def test_the_oldest_replies_are_deleted_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "BOUND", 1_000_000)
    await kept(*range(40))
    assert held() == set(range(40))
    await kept(*range(40, 60))
    left = held()
    assert left == set(range(60 - len(left), 60))
    assert 30 < len(left) < 50
    assert contents().entries * 20_000 < 1_000_000
    assert location().stat().st_size < 1_300_000


async def test_a_cleared_cache_gives_its_space_back() -> None:
    await kept(*range(100))
    store_endpoint_info("here", "m", "said")
    assert contents().entries == 100, "what an endpoint said is no reply"
    before = size_of(location())
    gone = clear()
    assert (gone.entries, contents().entries) == (100, 0)
    assert gone.size == before - size_of(location()) > 500_000
    assert recall_endpoint_info("here", "m") is None


async def test_a_file_of_an_older_codechat_is_used_as_it_is() -> None:
    """It noted by triggers when replies were used last; it may still write, too."""
    location().parent.mkdir(parents=True)
    text = json.dumps(["x" * 20_000, "stop", [1, 2, 0], 0.5])
    with contextlib.closing(sqlite3.connect(location())) as db, db:
        db.execute("CREATE TABLE replies (key TEXT PRIMARY KEY, model TEXT NOT NULL, reply TEXT NOT NULL)")
        db.execute("CREATE TABLE uses (key TEXT PRIMARY KEY, used INTEGER NOT NULL) WITHOUT ROWID")
        db.execute(
            "CREATE TRIGGER reply_kept AFTER INSERT ON replies BEGIN INSERT OR REPLACE INTO uses VALUES (new.key, 1); END"
        )
        db.execute("CREATE TRIGGER reply_left AFTER DELETE ON replies BEGIN DELETE FROM uses WHERE key = old.key; END")
        db.execute("PRAGMA user_version=1")
        old = [(replace(QUESTION, sample=sample).key(), "m", text) for sample in range(20)]
        db.executemany("INSERT INTO replies VALUES (?,?,?)", old)
    await kept(*range(100, 120))
    assert held() == {*range(20), *range(100, 120)}
    with contextlib.closing(sqlite3.connect(location())) as db, db:  # as the older one writes
        db.execute("INSERT OR IGNORE INTO replies VALUES (?,?,?)", (replace(QUESTION, sample=150).key(), "m", text))
        assert db.execute("SELECT count(*) FROM uses").fetchone() == (41,)
    assert 150 in held()


BOUNDED = """
import asyncio, sys
from codechat.models.calls import cache
from codechat.models.calls.cache import CachedQuestion, recall_or_ask, settle
cache.BOUND = 1_000_000
from codechat.base.domain import Reply

async def main(name):
    async def ask():
        return Reply("x" * 20_000)
    for number in range(150):
        await recall_or_ask(CachedQuestion("here", name, {"n": number}, None), ask)
        if number % 5 == 0:
            await settle()
    await settle()

asyncio.run(main(sys.argv[1]))
"""


def test_several_processes_keep_to_the_bound() -> None:
    words = [sys.executable, "-c", BOUNDED]
    writers = [subprocess.Popen([*words, name], stderr=subprocess.PIPE, text=True, cwd=ROOT) for name in ("a", "b")]
    assert [writer.communicate()[1] for writer in writers] == ["", ""]
    found = contents()
    assert 20 < found.entries < 50
    assert location().stat().st_size < 1_500_000
    with contextlib.closing(sqlite3.connect(location())) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_an_empty_cache_is_no_mistake() -> None:
    assert (contents().entries, clear().entries) == (0, 0)
    assert not location().exists()


def test_a_reply_is_kept_as_json() -> None:
    asyncio.run(recall_or_ask(QUESTION, Endpoint().ask))
    asyncio.run(settle())
    with contextlib.closing(sqlite3.connect(location())) as db:
        model, reply = db.execute("SELECT model, reply FROM replies").fetchone()
    assert (model, json.loads(reply)) == ("m", [REPLY.text, "length", [1, 2, 1], 0.125])


def test_what_an_endpoint_said_is_kept_and_asking_makes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path / "new" / "folders"))
    assert recall_endpoint_info("here", "m") is None and not location().exists()
    store_endpoint_info("here", "m", "first")
    store_endpoint_info("here", "m", "last")
    assert (recall_endpoint_info("here", "m"), recall_endpoint_info("there", "m")) == ("last", None)


# -- what older versions kept ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row",
    [
        ["def ", "error", [5, 2, 0], 0.1],
        ["", "insufficient_system_resource", [5, 0, 0], 0.1],
        ["x", "content_filter", [5, 2, 0], 0.1],
        ["", "MALFORMED_FUNCTION_CALL", {"input_tokens": 5, "output_tokens": 0}, 0.1],
        ["", None, [5, 2, 0], 0.1],
        ["", "stop", [0, 0, 0], 0.1],
    ],
)
async def test_an_answer_that_is_not_final_is_asked_for_again_and_replaced(row: list[Any]) -> None:
    await recall_or_ask(QUESTION, Endpoint().ask)
    await settle()
    replace_row(json.dumps(row))
    endpoint = Endpoint(replace(REPLY, finish_reason="stop"))
    await recall_or_ask(QUESTION, endpoint.ask)
    await settle()
    assert (await recall_or_ask(QUESTION, endpoint.ask)).finish_reason == "stop"
    assert endpoint.asked == 1


@pytest.mark.parametrize("count", [-7, 2**63, "many", None])
async def test_counts_that_are_none_count_nothing(count: Any) -> None:
    for row in (["x", "stop", [count, 2, 0], 0.1], ["x", "stop", {"input_tokens": count, "output_tokens": 2}, 0.1]):
        await recall_or_ask(QUESTION, Endpoint().ask)
        await settle()
        replace_row(json.dumps(row))
        known = recall(QUESTION)
        await settle()
        assert known is not None and known.usage == Usage(0, 2)


def replace_row(text: str) -> None:
    with contextlib.closing(sqlite3.connect(location())) as db, db:
        db.execute("UPDATE replies SET reply=?", (text,))
