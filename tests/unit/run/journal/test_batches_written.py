"""Where batches stand is on disk before anything is done that hangs on it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from codechat.models.calls.batches import Batch
from codechat.run.journal.ledger import Ledger
from codechat.run.journal.store import BatchStore

BATCH = Batch("name", 2, 0.0)
WORK: dict[str, Callable[[BatchStore], Coroutine[Any, Any, None]]] = {
    "begin": lambda store: store.begin(BATCH, ["a", "b"]),
    "update": lambda store: store.update(BATCH),
    "release": lambda store: store.release(["a", "b"]),
}


@pytest.mark.parametrize("name", WORK)
async def test_a_call_returns_when_everything_is_written(name: str) -> None:
    writes = list[asyncio.Future[None]]()

    def put(*row: Any) -> "asyncio.Future[None]":
        writes.append(asyncio.get_running_loop().create_future())
        return writes[-1]

    db: Any = None
    work = asyncio.create_task(WORK[name](BatchStore(db, put, Ledger(), lambda: None)))
    await asyncio.sleep(0)
    assert len(writes) == {"begin": 3, "update": 1, "release": 2}[name]
    for each in writes:
        for _ in range(3):
            await asyncio.sleep(0)
        assert not work.done()
        each.set_result(None)
    await work
