"""Paid replies, kept across cells and processes: the same question is not asked twice.

One SQLite file in WAL mode, in `CODECHAT_CACHE_DIR` or else in the user's cache folder. It holds replies under a hash
of everything that determines them; it contains neither conversations nor keys. The journal is the truth: the cache is
written later, in groups, and an unusable file causes one warning and nothing else.

A provider uses it in one line, and calls `settle` when it closes::

    reply = await recall_or_ask(CachedQuestion(address, name, body, sample), lambda: self._ask(request))
"""

import asyncio
import contextlib
import json
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codechat.calls.traffic import COUNTERS
from codechat.domain import Reply, Usage
from codechat.environment import cache_root
from codechat.errors import UserError
from codechat.files import content_hash

log = logging.getLogger(__name__)

SCHEMA = 1
GROUPING_S = 0.25
"""Replies within so many seconds share a transaction."""

_TABLE = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, model TEXT NOT NULL, reply TEXT NOT NULL)"
_ENDPOINTS = "CREATE TABLE IF NOT EXISTS endpoints (address TEXT, model TEXT, said TEXT, PRIMARY KEY (address, model))"
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@dataclass(frozen=True, slots=True)
class CachedQuestion:
    """Everything that determines an answer: the address of the API, the model, and the request's whole body.

    `sample` numbers independent draws; None if decoding is greedy, so that there is only one answer. `weights` says
    which weights answer to the model's name, empty if nothing is known of them.
    """

    address: str
    model: str
    body: Mapping[str, Any]
    sample: int | None
    weights: str = ""

    def key(self) -> str:
        """The key of the reply in the cache."""
        parts = [self.address, self.model, self.body, self.sample]
        return content_hash([*parts, self.weights] if self.weights else parts)


def location() -> Path:
    """The cache's file, in its own folder that only this user may enter."""
    return cache_root() / "replies" / "replies.db"


def is_final(reply: Reply) -> bool:
    """Whether the same question would get this answer again; a provider's filter differs from day to day."""
    return reply.finish_reason != "content_filter"


async def recall_or_ask(
    question: CachedQuestion | None, ask: Callable[[], Awaitable[Reply]], keep: Callable[[Reply], bool] = is_final
) -> Reply:
    """The cached reply, with its recorded usage and latency; else that of `ask`, cached if `keep` agrees.

    A question of None is never cached. Raises only what `ask` raises.
    """
    if question is None:
        return await ask()
    key, path = question.key(), location()
    known = _shelf(path).get(key)
    if known is not None:
        COUNTERS.cache_hits += 1
        return known
    reply = await ask()
    if keep(reply):
        _shelf(path).put(key, question.model, reply)
    return reply


def has(question: CachedQuestion) -> bool:
    """Whether the cache has a reply."""
    return _shelf(location()).get(question.key()) is not None


async def settle() -> None:
    """Write what is pending and close the files; the next question opens them again."""
    for path, shelf in list(_SHELVES.items()):
        await shelf.settle()
        if not shelf.broken and _SHELVES.get(path) is shelf:  # a broken one stays, so that it is reported once
            del _SHELVES[path]


class _Shelf:
    """One process's use of the file. After an error the file is not touched again, as if it were empty."""

    def __init__(self, path: Path) -> None:
        self.broken = False
        self._path = path
        self._pending: list[tuple[str, str, str]] = []
        self._writing: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._files = contextlib.ExitStack()
        try:
            self._writer = self._files.enter_context(contextlib.closing(open_file(path)))
            self._reader = self._files.enter_context(contextlib.closing(open_file(path, wait_s=0.05)))
        except (sqlite3.Error, OSError, WrongSchema) as problem:
            self._files.close()
            self._give_up(problem)

    def get(self, key: str) -> Reply | None:
        """An indexed read of some 20 µs; None if the file is busy."""
        if self.broken:
            return None
        try:
            row = self._reader.execute("SELECT reply FROM replies WHERE key=?", (key,)).fetchone()
            return None if row is None else _reply(row[0])
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode not in _BUSY:
                self._give_up(problem)
        except (sqlite3.Error, ValueError, TypeError) as problem:
            self._give_up(problem)
        return None

    def put(self, key: str, model: str, reply: Reply) -> None:
        """Keep a reply; a thread writes it a moment later."""
        if self.broken:
            return
        self._pending.append((key, model, _text(reply)))
        if self._writing is None or self._writing.done():
            self._hurry = asyncio.Event()
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        while self._pending:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), GROUPING_S)
            batch, self._pending = self._pending, []
            await asyncio.to_thread(self._commit, batch)

    def _commit(self, batch: list[tuple[str, str, str]]) -> None:
        try:
            with self._writer:
                self._writer.executemany("INSERT OR IGNORE INTO replies VALUES (?,?,?)", batch)
        except sqlite3.Error as problem:
            self._give_up(problem)

    async def settle(self) -> None:
        """Write what is pending, and close."""
        if self._writing is not None and not self._writing.done():
            self._hurry.set()
            await self._writing
        batch, self._pending = self._pending, []
        if batch:  # the write was lost with an event loop that ended
            await asyncio.to_thread(self._commit, batch)
        self._files.close()

    def _give_up(self, problem: Exception) -> None:
        if not self.broken:
            self.broken = True
            log.warning("the response cache %s is not used: %s; `codechat cache clear` renews it", self._path, problem)


class WrongSchema(Exception):
    """The file was written by another version."""


def open_file(path: Path, wait_s: float = 10.0) -> sqlite3.Connection:
    """A connection to the cache's file, made if missing. Raises `sqlite3.Error`, `OSError` or `WrongSchema`."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    db = sqlite3.connect(path, timeout=wait_s, check_same_thread=False)
    try:
        if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        found = db.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, SCHEMA):
            raise WrongSchema(f"it has schema {found}, this codechat reads {SCHEMA}")
        if found == 0:
            db.execute(_TABLE)
            db.execute(f"PRAGMA user_version={SCHEMA}")
        db.execute(_ENDPOINTS)  # later than schema 1, which does without
    except BaseException:
        db.close()
        raise
    return db


def _text(reply: Reply) -> str:
    usage = reply.usage
    counted = [usage.input_tokens, usage.output_tokens, usage.cached_input_tokens]
    return json.dumps([reply.text, reply.finish_reason, counted, reply.latency_s])


def _reply(text: str) -> Reply:
    answer, finish_reason, counted, latency_s = json.loads(text)
    return Reply(answer, finish_reason, latency_s, usage=Usage(*counted), cached=True)


_SHELVES: dict[Path, _Shelf] = {}


def _shelf(path: Path) -> _Shelf:
    if path not in _SHELVES:
        _SHELVES[path] = _Shelf(path)
    return _SHELVES[path]


@dataclass(frozen=True, slots=True)
class Contents:
    """The cache's entries, bytes on disk, and per model its name, entries and bytes of replies."""

    path: Path
    entries: int
    size: int
    models: tuple[tuple[str, int, int], ...] = ()


def contents() -> Contents:
    """Read the cache's figures without changing it. Raises `UserError` if the file cannot be read."""
    path = location()
    if not path.exists():
        return Contents(path, 0, 0)
    try:
        with contextlib.closing(open_file(path)) as db:
            rows = db.execute("SELECT model, count(*), sum(length(reply)) FROM replies GROUP BY model ORDER BY model")
            models = tuple((str(name), int(entries), int(size)) for name, entries, size in rows)
    except (sqlite3.Error, OSError, WrongSchema) as problem:
        raise UserError(f"cannot read the response cache {path}: {problem}", "renew it: codechat cache clear") from None
    return Contents(path, sum(entries for _, entries, _ in models), _size(path), models)


def clear() -> Contents:
    """Empty the cache and free its space, even while runs use it; returns what was removed.

    A file that cannot be read is removed. Raises `UserError` if that fails too.
    """
    path, before, entries = location(), _size(location()), 0
    try:
        try:
            if path.exists():
                entries = _empty(path)
        except (sqlite3.DatabaseError, WrongSchema) as problem:
            if getattr(problem, "sqlite_errorcode", None) in _BUSY:
                raise OSError(str(problem)) from None
            for file in _files(path):
                file.unlink(missing_ok=True)
    except OSError as problem:
        raise UserError(f"cannot clear the response cache {path}: {problem}", "try again, or remove the file") from None
    return Contents(path, entries, before - _size(path))


def _empty(path: Path) -> int:
    with contextlib.closing(open_file(path)) as db:
        with db:
            entries = int(db.execute("SELECT count(reply) FROM replies").fetchone()[0])
            db.execute("DELETE FROM replies")
            db.execute("DELETE FROM endpoints")
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return entries


def _files(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in _files(path) if file.exists())
