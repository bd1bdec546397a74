"""The journal: a step is found by its unit of work, its name and the digest of its inputs.

A unit is a session of a cell, or an item of a construction (the tables call both a session). A resumed unit replays its
recorded steps and computes only the missing ones.
"""

import asyncio
import functools
import itertools
import sqlite3
import time
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

from pydantic import TypeAdapter

from codechat.base.domain import BATCH, STANDARD, Tier, Usage
from codechat.base.errors import InfrastructureError, UserError
from codechat.base.texts import writable
from codechat.models.calls import HELD_SLOTS, HeldSlots
from codechat.models.calls.batches import Batch, Store
from codechat.run.journal.database import ALL_ENDPOINTS, CHARGE, INTO, WORK, Database, EndpointRecord, all_empty
from codechat.run.journal.ledger import COUNTS, Charge, Ledger, charge_for, charges_of

WALL_EVERY_S = 1.0
"""Seconds between two notes of a process's time, each with a write: a killed process lacks at most so many."""
BATCHES = "batches (name, size, made, file, remote)"
REQUESTS = "batched (request, batch)"


class BatchStore(Store):
    """The tables `batches` and `batched`: the states of a cell's batches, see `codechat.models.calls.batches`.

    `put` writes a row and charges; `expected` is called after `expect`.
    """

    def __init__(
        self,
        db: Database,
        put: Callable[..., Awaitable[None]],
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

    async def charge(self, payer: str, usage: Usage) -> None:
        await self._put(charges=(charge_for(payer, usage.served_as(BATCH)),))


ROWS_AT_ONCE = (64, 8, 1)
"""Rows of one statement: few sizes, because SQLite caches a statement for each."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()

T = TypeVar("T")
_TOKENS = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens")
_TIERS = tuple(tier for tier in get_args(Tier) if tier != STANDARD)
_SUMS = ", ".join(
    f"CAST(total(json_extract(value, '$.usage.{part}{name}')) AS INTEGER)"
    for part in ("", *(f"tiers.{tier}." for tier in _TIERS))
    for name in _TOKENS
)
_USED = f"SELECT payer, {_SUMS} FROM steps WHERE payer IS NOT NULL GROUP BY payer"
_USED_BY_COMPLETED = _USED.replace("WHERE", "JOIN sessions USING (session) WHERE completed AND")


STEPS = "steps (session, name, digest, value, payer)"


def _fail(done: "asyncio.Future[None]", error: Exception) -> None:
    """Raise an error to the caller that waits for a write; asyncio warns of no unread error."""
    if not done.done():
        done.set_exception(error)
        done.exception()


class _Put(NamedTuple):
    """One write: a row for a table, or only charges."""

    done: "asyncio.Future[None]"
    into: str
    row: tuple[Any, ...]
    charges: tuple[Charge, ...]


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Building one costs more than a step."""
    return TypeAdapter(kind)


def _as_json(kind: Any, value: T) -> tuple[T, str]:
    """The value as it will be read again (`writable`), and its JSON.

    Searching for halves of surrogate pairs costs more than writing JSON, which refuses them in values and writes U+FFFD
    in keys.
    """
    try:
        text = _adapter(kind).dump_json(value)
        if REPLACEMENT not in text:
            return value, text.decode()
    except ValueError:
        pass
    value = writable(value)
    return value, _adapter(kind).dump_json(value).decode()


class Journal:
    """One SQLite file in WAL mode. Concurrent puts share a transaction and one fsync.

    A step that was begun is finished and recorded even if its caller was cancelled: a paid reply is not lost. `ledger`
    sums the usage of all processes; `watch` is called with it after every call.
    """

    def __init__(self, path: Path) -> None:
        self._db, self.folder = Database(path), path.parent
        try:
            self.ledger = Ledger()
            for table in ("ledger", "taken"):
                for row in self._db.read(f"SELECT payer, {', '.join(COUNTS)} FROM {table}"):
                    self.ledger.add(Charge(*row))
        except BaseException as error:
            self._db.close()
            if isinstance(error, sqlite3.Error):
                remedy = "make the folder writable, or set runs_dir"
                raise UserError(f"cannot open the journal {path}: {error}", remedy) from error
            raise
        self.watch: Callable[[Ledger], None] = lambda _: None
        self.batches = BatchStore(self._db, self._put, self.ledger, lambda: self.watch(self.ledger))
        self._begun: set[asyncio.Task[Any]] = set()
        self._steps: dict[str, set[tuple[str, str]]] = {}  # of unfinished units
        self._unwritten: dict[str, asyncio.Future[None]] = {}  # the last free step of a unit
        self._pending: list[_Put] = []
        self._flusher: asyncio.Task[None] | None = None
        self._failed: Exception | None = None  # the first failed write, which every later one repeats
        self._opened, self._noted_s = time.monotonic(), 0.0
        self._run: int | None = None  # this process's row of the table runs
        self._thread = ThreadPoolExecutor(1, "journal")

    # -- steps -----------------------------------------------------------------------------------------------------

    async def step(
        self,
        unit: str,
        name: str,
        digest: str,
        kind: Any,
        compute: Callable[[], Awaitable[T]],
        *,
        payer: str | None = None,
        free: bool = False,
    ) -> T:
        """The recorded value of a step, or the computed value once it is on disk, equal either way (`writable`).

        `payer` is the role that the step asks and that its value (`Spent`) is charged to. A `free` step returns before
        it is written; it is on disk before the unit's next step that is not free begins. If the caller is cancelled, a
        free step is dropped, others are finished and recorded.
        """
        key = (unit, name, digest)
        if unit not in self._steps:  # read once, so that a new step costs no query
            query = "SELECT name, digest FROM steps WHERE session=?"
            self._steps[unit] = set(self._db.read(query, (unit,)))
        if key[1:] in self._steps[unit]:
            query = "SELECT value FROM steps WHERE session=? AND name=? AND digest=?"
            recorded: T = _adapter(kind).validate_json(self._db.read(query, key)[0][0])
            return recorded
        if free:
            value, text = _as_json(kind, await compute())
            self._unwritten[unit] = self._record(key, value, text, payer)
            return value
        begun = asyncio.create_task(self._compute(key, kind, compute, payer))
        self._begun.add(begun)
        begun.add_done_callback(self._forget)
        return await asyncio.shield(begun)

    async def _compute(
        self, key: tuple[str, str, str], kind: Any, compute: Callable[[], Awaitable[T]], payer: str | None
    ) -> T:
        """Compute and record a step. A call keeps its slot until it is on disk: a kill loses at most one call."""
        slots = HeldSlots(key[0], "/".join(key), payer or "")
        HELD_SLOTS.set(slots)
        if key[0] in self._unwritten:
            await asyncio.shield(self._unwritten[key[0]])
        try:
            value, text = _as_json(kind, await compute())
            await self._record(key, value, text, payer)
        except InfrastructureError as error:
            if payer is not None and (error.retries or error.rate_limited):
                # the tokens of a failed call are not known
                await self._put(charges=(Charge(payer, retries=error.retries, rate_limited=error.rate_limited),))
            raise
        finally:
            slots.leave()
        return value

    def _record(self, key: tuple[str, str, str], value: Any, text: str, payer: str | None) -> "asyncio.Future[None]":
        """Write a step's value, `text` as JSON; the future is done when it is on disk."""
        charges = () if payer is None else charges_of(payer, value)
        return self._put(STEPS, (*key, text, payer), charges)

    def _forget(self, step: "asyncio.Task[Any]") -> None:
        self._begun.discard(step)
        if not step.cancelled():
            step.exception()  # prevents asyncio's warning about a step whose caller was cancelled

    async def finish_steps(self, seconds: float) -> None:
        """Wait for the steps under way, for at most so many seconds."""
        if self._begun:
            await asyncio.wait(set(self._begun), timeout=seconds)

    async def abandon(self) -> None:
        """Cancel the steps under way; recorded ones stay."""
        for step in self._begun:
            step.cancel()
        await asyncio.gather(*self._begun, return_exceptions=True)

    # -- units --------------------------------------------------------------------------------------------------

    def record(self, unit: str) -> str | None:
        """A unit's whole record as JSON, completed or errored; None without one."""
        rows = self._db.read("SELECT record FROM sessions WHERE session=?", (unit,))
        return str(rows[0][0]) if rows else None

    def outline(self, unit: str, *, completed: bool = False) -> str | None:
        """A unit's record without its texts; None without one, or, with `completed`, if it did not complete."""
        query = "SELECT coalesce(slim, record) FROM sessions WHERE session=? AND completed>=?"
        rows = self._db.read(query, (unit, int(completed)))
        return str(rows[0][0]) if rows else None

    async def finish(self, unit: str, record: str, outline: str, *, completed: bool) -> None:
        """Record a unit: a completed one is never run again, an errored one resumes in the next process."""
        values = (unit, record, int(completed), outline, time.time())
        await self._put("sessions (session, record, completed, slim, ended)", values)
        self._steps.pop(unit, None)
        self._unwritten.pop(unit, None)

    @property
    def is_empty(self) -> bool:
        """Whether no step, unit, charge or batch is recorded."""
        return bool(self._db.read(all_empty(WORK))[0][0])

    def recorded(self, unit: str, name: str, digest: str | None = None) -> str | None:
        """The value of a step as JSON, None if it is not recorded; without a digest, of any inputs."""
        query = "SELECT value FROM steps WHERE session=? AND name=? AND digest=coalesce(?, digest)"
        rows = self._db.read(query, (unit, name, digest))
        return str(rows[0][0]) if rows else None

    def answers(self, session: str, payer: str) -> int:
        """The number of turns in a session that have recorded answers of a role."""
        query = "SELECT count(DISTINCT substr(name, 1, instr(name, '/'))) FROM steps WHERE session=? AND payer=?"
        return int(self._db.read(query, (session, payer))[0][0])

    def ended(self) -> float | None:
        """When the last session was completed, in seconds since 1970; None if unknown."""
        ended = self._db.read("SELECT max(ended) FROM sessions WHERE completed")[0][0]
        return None if ended is None else float(ended)

    # -- endpoints -------------------------------------------------------------------------------------------------

    def endpoints(self) -> list[EndpointRecord]:
        """The endpoints that answered the cell, in order of their last answer."""
        return [EndpointRecord.of(row) for row in self._db.read(ALL_ENDPOINTS)]

    async def record_endpoint(self, record: EndpointRecord) -> None:
        """Record an endpoint, replacing an earlier record with the same description."""
        await self._put(INTO, record.row())

    # -- sums ------------------------------------------------------------------------------------------------------

    def used(self, *, completed: bool = True) -> dict[str, Usage]:
        """Each payer's tokens, including replies of the response cache; if `completed`, of completed sessions alone."""
        used: dict[str, Usage] = {}
        for payer, *row in self._db.read(_USED_BY_COMPLETED if completed else _USED):
            total, *by_tier = [Usage(*row[start : start + len(_TOKENS)]) for start in range(0, len(row), len(_TOKENS))]
            tiers = {tier: usage for tier, usage in zip(_TIERS, by_tier, strict=True) if usage != Usage()}
            used[payer] = replace(total, tiers=tiers)
        return used

    def add_wall(self, seconds: float) -> float:
        """Add this process's time to the cell's; returns the sum over all processes, in seconds.

        Of a killed process the time up to its last write counts, from the opening of the journal on.
        """
        with self._db.writing() as db:
            self._note_wall(db, seconds)
        self._run = None
        return float(self._db.read("SELECT total(wall_s) FROM runs")[0][0])

    # -- writing ---------------------------------------------------------------------------------------------------

    def _put(
        self, into: str = "", row: tuple[Any, ...] = (), charges: tuple[Charge, ...] = ()
    ) -> "asyncio.Future[None]":
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._failed is not None:
            _fail(done, self._failed)
            return done
        self._pending.append(_Put(done, into, row, charges))
        for charge in charges:
            self.ledger.add(charge)
        if charges:
            self.watch(self.ledger)
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush())
        return done

    async def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        while self._pending:
            batch, self._pending = self._pending, []
            try:
                await loop.run_in_executor(self._thread, self._commit, batch)
            except Exception as error:  # noqa: BLE001  raised to all that wait, a bug too: else they would wait for ever
                self._failed = error
                batch, self._pending = [*batch, *self._pending], []
                for put in batch:
                    _fail(put.done, error)
            else:
                for put in batch:
                    if put.into == STEPS and put.row[0] in self._steps:
                        self._steps[put.row[0]].add(put.row[1:3])
                    if not put.done.cancelled():
                        put.done.set_result(None)

    def _commit(self, batch: list[_Put]) -> None:
        charges = Ledger()
        rows: dict[str, list[tuple[Any, ...]]] = {}
        for put in batch:
            if put.into:
                rows.setdefault(put.into, []).append(put.row)
            for charge in put.charges:
                charges.add(charge)
        with self._db.writing() as db:
            db.execute("BEGIN")
            for into, values in rows.items():
                self._insert(db, into, values)
            db.executemany(CHARGE, charges.charges())
            if (seconds := time.monotonic() - self._opened) >= self._noted_s + WALL_EVERY_S:
                self._note_wall(db, seconds)
            db.execute("COMMIT")

    def _note_wall(self, db: sqlite3.Connection, seconds: float) -> None:
        self._run = db.execute("INSERT OR REPLACE INTO runs (id, wall_s) VALUES (?, ?)", (self._run, seconds)).lastrowid
        self._noted_s = seconds

    @staticmethod
    def _insert(db: sqlite3.Connection, into: str, rows: list[tuple[Any, ...]]) -> None:
        """Insert many rows by one statement: at each statement the thread releases and regains the GIL."""
        start = 0
        for size in ROWS_AT_ONCE:
            row = f"({','.join('?' * len(rows[0]))})"
            statement = f"INSERT OR REPLACE INTO {into} VALUES {','.join([row] * size)}"
            while start + size <= len(rows):
                db.execute(statement, tuple(itertools.chain.from_iterable(rows[start : start + size])))
                start += size

    async def settle(self) -> None:
        """Wait until all pending writes are on disk."""
        if self._flusher is not None:
            await self._flusher

    def close(self) -> None:
        """Release the files, after `settle`."""
        for step in self._begun:
            step.cancel()
        self._thread.shutdown()
        self._db.close()
