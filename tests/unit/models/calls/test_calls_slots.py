"""A call keeps its slot until its reply is on disk."""

import asyncio
import sqlite3
from pathlib import Path

from codechat.base.domain import Reply, Usage
from codechat.base.errors import InfrastructureError
from codechat.models.calls import Endpoint, Limits, Policy, call_with_retries
from codechat.run.journal import Journal

POLICY = Policy("m at here", 10.0, 10.0, 0)


def _one_at_a_time() -> Endpoint:
    endpoint = Endpoint()
    endpoint.join(Limits(max_concurrency=1))
    return endpoint


async def _answer() -> Reply:
    return Reply("x", usage=Usage(1, 1))


async def test_nobody_calls_before_the_reply_before_is_recorded(tmp_path: Path) -> None:
    endpoint, path = _one_at_a_time(), tmp_path / "journal.db"
    journal, reader, recorded = Journal(path), sqlite3.connect(path), []

    async def attempt() -> Reply:
        recorded.append(reader.execute("SELECT count(*) FROM steps").fetchone()[0])
        await asyncio.sleep(0)
        return Reply("x", usage=Usage(1, 1))

    def step(number: int) -> "asyncio.Future[Reply]":
        async def ask() -> Reply:
            return await call_with_retries(attempt, POLICY, endpoint)

        return asyncio.ensure_future(journal.step("s", f"{number}/reply", "d", Reply, ask))

    await asyncio.gather(*(step(number) for number in range(20)))
    assert recorded == list(range(20))
    reader.close()
    journal.close()


async def test_a_record_of_several_calls_does_not_wait_for_itself(tmp_path: Path) -> None:
    endpoint, journal = _one_at_a_time(), Journal(tmp_path / "journal.db")

    async def ask_twice() -> Reply:
        await call_with_retries(_answer, POLICY, endpoint)
        return await call_with_retries(_answer, POLICY, endpoint)

    steps = [journal.step("s", f"{number}/reply", "d", Reply, ask_twice) for number in range(5)]
    async with asyncio.timeout(10):
        assert len(await asyncio.gather(*steps)) == 5
    journal.close()


async def test_a_step_that_fails_after_its_call_gives_the_slot_back(tmp_path: Path) -> None:
    endpoint, journal = _one_at_a_time(), Journal(tmp_path / "journal.db")

    async def fail() -> Reply:
        await call_with_retries(_answer, POLICY, endpoint)
        raise InfrastructureError("no use")

    for number in range(3):
        async with asyncio.timeout(10):
            results = await asyncio.gather(
                journal.step("s", f"{number}/reply", "d", Reply, fail), return_exceptions=True
            )
        assert isinstance(results[0], InfrastructureError)
    journal.close()
