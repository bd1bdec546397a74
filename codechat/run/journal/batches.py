"""Where a cell's batches stand, in its journal: `codechat.models.calls.batches` says what each state means."""

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from codechat.base.domain import BATCH, Usage
from codechat.models.calls.batches import Batch, Store
from codechat.run.journal.database import Database
from codechat.run.journal.ledger import Ledger

BATCHES = "batches (name, size, made, file, remote)"
REQUESTS = "batched (request, batch)"


class BatchStore(Store):
    """The tables `batches` and `batched`; `put` writes a row, and `expected` is called after tokens were announced."""

    def __init__(
        self,
        db: Database,
        put: Callable[[str, tuple[Any, ...]], Awaitable[None]],
        ledger: Ledger,
        expected: Callable[[], None],
    ) -> None:
        self._db, self._put, self._ledger, self._expected = db, put, ledger, expected

    def batch_of(self, key: str) -> Batch | None:
        query = "SELECT name, size, made, file, remote FROM batched JOIN batches ON batch = name WHERE request = ?"
        rows = self._db.read(query, (key,))
        return Batch(*rows[0]) if rows else None

    def keys_of(self, batch: Batch) -> list[str]:
        return [row[0] for row in self._db.read("SELECT request FROM batched WHERE batch = ?", (batch.name,))]

    async def begin(self, batch: Batch, keys: Collection[str]) -> None:
        written = [self._put(REQUESTS, (key, batch.name)) for key in keys]
        written.append(self._put(BATCHES, (batch.name, batch.size, batch.made, batch.file, batch.remote)))
        for each in written:
            await each

    async def update(self, batch: Batch) -> None:
        await self._put(BATCHES, (batch.name, batch.size, batch.made, batch.file, batch.remote))

    async def release(self, keys: Collection[str]) -> None:
        for each in [self._put(REQUESTS, (key, None)) for key in keys]:
            await each

    def expect(self, payer: str, usage: Usage) -> None:
        self._ledger.expected[payer] = self._ledger.expected.get(payer, Usage()) + usage.served_as(BATCH)
        self._expected()

    def expect_no_more(self, payer: str, usage: Usage) -> None:
        self._ledger.expected[payer] -= usage.served_as(BATCH)
