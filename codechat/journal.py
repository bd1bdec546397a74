"""The durable journal of a cell: every reply, decision and verdict, on disk before anything depends on it.

A step is found again by session, name and the digest of what it was computed from, so a resumed session
replays what it has and computes only what is missing.
"""

import asyncio
import functools
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from codechat.errors import UserError

SCHEMA = 1
T = TypeVar("T")
_Put = tuple[str, tuple[str, ...], "asyncio.Future[None]"]

_TABLES = """
CREATE TABLE IF NOT EXISTS steps (
    session TEXT, name TEXT, digest TEXT, value TEXT, PRIMARY KEY (session, name, digest)
);
CREATE TABLE IF NOT EXISTS sessions (session TEXT PRIMARY KEY, record TEXT);
CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY, wall_s REAL);
"""


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Building one costs more than a step."""
    return TypeAdapter(kind)


class Journal:
    """One SQLite file in WAL mode. All puts of one moment share a transaction and one fsync."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._reader = sqlite3.connect(path, isolation_level=None)  # reads never wait for a commit's fsync
            found = self._db.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, SCHEMA):
                raise UserError(
                    f"{path} was written with journal schema {found}, this codechat reads {SCHEMA}",
                    "use the codechat that wrote it, or choose another runs_dir",
                )
            self._db.executescript(_TABLES)
            self._db.execute(f"PRAGMA user_version={SCHEMA}")
        except (sqlite3.Error, OSError) as error:
            raise UserError(
                f"cannot open the journal {path}: {error}", "make the folder writable, or set runs_dir"
            ) from error
        self._path = path
        self._pending: list[_Put] = []
        self._flusher: asyncio.Task[None] | None = None

    async def step(self, session: str, name: str, digest: str, kind: Any, compute: Callable[[], Awaitable[T]]) -> T:
        """The recorded value of a step, or the computed one once it is on disk."""
        adapter = _adapter(kind)
        row = self._reader.execute(
            "SELECT value FROM steps WHERE session=? AND name=? AND digest=?", (session, name, digest)
        ).fetchone()
        if row is not None:
            recorded: T = adapter.validate_json(row[0])
            return recorded
        value = await compute()
        text = adapter.dump_json(value).decode()
        await self._put("INSERT OR REPLACE INTO steps VALUES (?,?,?,?)", (session, name, digest, text))
        return value

    def retries(self) -> int:
        """Calls of model and judge that had to be repeated, over all steps and processes."""
        row = self._reader.execute("SELECT total(json_extract(value, '$.retries')) FROM steps").fetchone()
        return int(row[0])

    def finished(self, session: str) -> str | None:
        """A finished session's record as JSON; None for one that is still to run."""
        row = self._reader.execute("SELECT record FROM sessions WHERE session=?", (session,)).fetchone()
        return None if row is None else str(row[0])

    async def finish(self, session: str, record: str) -> None:
        """Record a session as finished: it is never run again."""
        await self._put("INSERT OR REPLACE INTO sessions VALUES (?,?)", (session, record))

    def add_wall(self, seconds: float) -> float:
        """Add this process's time to the cell's; returns the sum over all processes, in seconds."""
        with self._guard():
            self._db.execute("INSERT INTO runs (wall_s) VALUES (?)", (seconds,))
        return float(self._db.execute("SELECT total(wall_s) FROM runs").fetchone()[0])

    async def _put(self, statement: str, values: tuple[str, ...]) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append((statement, values, done))
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush())
        await asyncio.shield(done)

    async def _flush(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, []
            try:
                await asyncio.to_thread(self._commit, batch)
            except UserError as error:
                for _, _, done in batch:
                    done.set_exception(error)
                    done.exception()  # a waiter that was cancelled must not leave a warning behind
            else:
                for _, _, done in batch:
                    done.set_result(None)

    def _commit(self, batch: list[_Put]) -> None:
        with self._guard():
            self._db.execute("BEGIN")
            for statement, values, _ in batch:
                self._db.execute(statement, values)
            self._db.execute("COMMIT")

    def _guard(self) -> "_DiskGuard":
        return _DiskGuard(self._path, self._db)

    async def settle(self) -> None:
        """Wait until everything pending is on disk."""
        if self._flusher is not None:
            await self._flusher

    def close(self) -> None:
        """Release the files; `settle` comes first."""
        self._reader.close()
        self._db.close()


class _DiskGuard:
    """Turns a failed write (full disk, read-only folder) into words, with what was committed kept."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self._path, self._db = path, db

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise UserError(
                f"cannot write the journal {self._path}: {error}",
                "free some space or choose another runs_dir, then run the same command again: it resumes",
            ) from error
