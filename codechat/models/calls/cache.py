"""Paid replies, kept across cells and processes: equal questions are asked once, also by concurrent calls.

One SQLite file in WAL mode, in `CODECHAT_CACHE_DIR` or else in the user's cache folder. It holds replies under a hash
of everything that determines them, and the endpoints' descriptions of their models, so that a cell answered from the
cache knows which weights replied; it contains neither conversations nor keys. The journal is the truth: an unusable
file causes one warning and nothing else. A provider calls `recall_or_ask`, and `settle` when it closes.
"""

import asyncio
import contextlib
import json
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codechat.base.domain import Reply, Usage
from codechat.base.environment import cache_root
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.mounts import file_system, is_network
from codechat.base.texts import read_json
from codechat.models.calls.answers import is_final, usage_of
from codechat.models.calls.limits import COUNTERS

log = logging.getLogger(__name__)

GROUPING_S = 0.25
AT_ONCE_MS = 50
"""A call waits so long for another process: a miss costs a call, and an entry is written later."""
SCHEMA = 1
BOUND = 4_000_000_000
"""Most bytes of all replies: about two million replies."""
ENDPOINT = ""
"""The model name of entries that are endpoints' descriptions."""
RENEWED = "`codechat cache clear` renews it"
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
UNUSABLE = (sqlite3.Error, OSError)
_TABLE = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, model TEXT NOT NULL, reply TEXT NOT NULL)"


@dataclass(frozen=True, slots=True)
class CachedQuestion:
    """Everything that determines an answer: the address of the API, the model, and the request's whole body.

    `sample` numbers independent draws; None for greedy decoding, which has one answer. `weights` identifies the weights
    behind the model's name; empty if unknown. `again` numbers the further draws of a request whose answer was refused.
    """

    address: str
    model: str
    body: Mapping[str, Any]
    sample: int | None
    weights: str = ""
    again: int = 0

    def key(self) -> str:
        parts = [self.address, self.model, self.body, self.sample]
        parts += [self.weights] if self.weights else []
        return content_hash([*parts, {"again": self.again}] if self.again else parts)


async def recall_or_ask(
    question: CachedQuestion | None, ask: Callable[[], Awaitable[Reply]], keep: Callable[[Reply], bool] = is_final
) -> Reply:
    """The cached reply, with its recorded usage and latency; else the reply of `ask`, cached if `keep` agrees.

    A call whose question is already under way waits for that reply, which counts as cached. If it is not kept, this
    call asks too; if the other call is cancelled, this call takes its place. A question of None is never cached. Raises
    only what `ask` raises.
    """
    if question is None:
        return await ask()
    place = (asyncio.get_running_loop(), location(), question.key())
    while (known := recall(question)) is None and (other := _UNDER_WAY.get(place)) is not None:
        await asyncio.wait({other})
        if not other.cancelled():
            known = other.result()
            break
    if known is not None:
        COUNTERS.cache_hits += 1
        return known
    under_way: asyncio.Future[Reply | None] = place[0].create_future()
    _UNDER_WAY.setdefault(place, under_way)
    shared: Reply | None = None
    try:
        reply = await ask()
        if keep(reply):
            store(question, reply)
            shared = _reply(_text(reply))
        return reply
    except asyncio.CancelledError:
        under_way.cancel()
        raise
    finally:
        if _UNDER_WAY.get(place) is under_way:
            del _UNDER_WAY[place]
        if not under_way.done():
            under_way.set_result(shared)


_UNDER_WAY: dict[tuple[asyncio.AbstractEventLoop, Path, str], "asyncio.Future[Reply | None]"] = {}
"""Questions under way, by loop, file and key: the reply as from the cache; None if it is not kept."""


def recall(question: CachedQuestion) -> Reply | None:
    """The cached reply; None for an answer that another call may change, which older versions kept too."""
    file = _file()
    text = file.get(question.key())
    try:
        reply = None if text is None else _reply(text)
    except (ValueError, TypeError, AttributeError) as problem:
        file.give_up(f"{problem}; {RENEWED}")
        return None
    return reply if reply is not None and is_final(reply) else None


def store(question: CachedQuestion, reply: Reply) -> None:
    """Keep a reply; `settle` writes it at the latest."""
    _file().put(question.key(), question.model, _text(reply))


def recall_endpoint_info(address: str, model: str) -> str | None:
    """The last description of the endpoint that serves a model at an address; None if there is none."""
    return _file().get(content_hash(["endpoint", address, model])) if location().exists() else None


def store_endpoint_info(address: str, model: str, text: str) -> None:
    """Keep an endpoint's description of a model."""
    _file().put(content_hash(["endpoint", address, model]), ENDPOINT, text)


async def settle() -> None:
    """Write pending entries and close the files; the next question opens them again."""
    for path, file in list(_FILES.items()):
        file.settle()
        if not file.broken:  # else it would be reported again
            del _FILES[path]


class _File:
    """One process's use of the file. After an error the file counts as empty and is not touched again."""

    def __init__(self, path: Path) -> None:
        self.broken, self._written_s = False, -GROUPING_S
        self._path, self._pending, self._open = path, dict[str, tuple[str, str]](), contextlib.ExitStack()
        if is_network(kind := file_system(path)):  # WAL needs shared memory
            where = "hardware.scratch (or CODECHAT_CACHE_DIR)"
            self.give_up(f"it is on a file system of type {kind}; set {where} to a folder of this machine")
            return
        try:
            self._db = self._open.enter_context(contextlib.closing(open_file(path)))
            self._db.execute(f"PRAGMA busy_timeout={AT_ONCE_MS}")
        except UNUSABLE as problem:
            self.give_up(f"{problem}; {RENEWED}")

    def get(self, key: str) -> str | None:
        """The text of an entry, by an indexed read of some 20 µs; None if the file is busy."""
        if not self.broken:
            with self._guarded():
                query = "SELECT model, reply FROM replies WHERE key=?"
                entry = self._pending.get(key) or self._db.execute(query, (key,)).fetchone()
                return None if entry is None else str(entry[1])
        return None

    def put(self, key: str, model: str, text: str) -> None:
        """Keep an entry; the entries of a quarter of a second are written together, at the latest by `settle`."""
        self._pending[key] = (model, text)
        if time.monotonic() >= self._written_s + GROUPING_S:
            self._write()

    def _write(self) -> None:
        if self._pending and not self.broken:
            self._written_s = time.monotonic()
            entries = [(key, *entry) for key, entry in self._pending.items()]
            oldest = "DELETE FROM replies WHERE rowid IN (SELECT rowid FROM replies ORDER BY rowid LIMIT 10)"
            with self._guarded():
                with self._db:
                    self._db.executemany("INSERT OR REPLACE INTO replies VALUES (?,?,?)", entries)
                    while _bytes_used(self._db) > BOUND and self._db.execute(oldest).rowcount:
                        pass
                self._pending.clear()

    def settle(self) -> None:
        self._write()
        self._open.close()

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as problem:
            if getattr(problem, "sqlite_errorcode", None) not in BUSY:
                self.give_up(f"{problem}; {RENEWED}")

    def give_up(self, why: str) -> None:
        """Use the file no more, and warn."""
        self.broken = True
        self._open.close()
        log.warning("the response cache %s is not used: %s", self._path, why)


def _text(reply: Reply) -> str:
    counts = reply.usage.fields()
    counted = counts if len(counts) > 3 else [*counts.values()]  # older versions read lists
    thoughts = [reply.reasoning] if reply.reasoning else []
    return json.dumps([reply.text, reply.finish_reason, counted, reply.latency_s, *thoughts])


def _reply(text: str) -> Reply:
    answer, finish_reason, counted, latency_s, *thoughts = read_json(text)
    if not (isinstance(answer, str) and isinstance(finish_reason, str | None) and isinstance(latency_s, int | float)):
        raise TypeError("a row holds no reply")
    reasoning = "".join(thoughts)
    return Reply(answer, finish_reason, latency_s, reasoning=reasoning, usage=_usage(counted), cached=True)


def _usage(counted: Any) -> Usage:
    """The counts of a row; older versions wrote an endpoint's counts unchecked."""
    if not isinstance(counted, dict):
        return usage_of(*counted)
    names = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens")
    tiers = {str(name): _usage(part) for name, part in counted.get("tiers", {}).items()}
    return replace(usage_of(*map(counted.get, names)), tiers=tiers)


_FILES: dict[Path, _File] = {}


def _file() -> _File:
    path = location()
    if path not in _FILES:
        _FILES[path] = _File(path)
    return _FILES[path]


# -- the file ----------------------------------------------------------------------------------------------------


def location() -> Path:
    """The cache's file, in a folder that only this user may enter."""
    return cache_root() / "replies" / "replies.db"


def open_file(path: Path) -> sqlite3.Connection:
    """A connection to the cache's file, made if missing. Raises one of `UNUSABLE`."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    db = sqlite3.connect(path, timeout=10.0, check_same_thread=False)
    try:
        if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        schema = db.execute("PRAGMA user_version").fetchone()[0]
        if schema not in (0, SCHEMA):
            raise sqlite3.DatabaseError(f"it has schema {schema}, this codechat reads {SCHEMA}")
        db.execute(_TABLE)
        if schema == 0:
            db.execute(f"PRAGMA user_version={SCHEMA}")
        db.execute("SELECT key, model, reply FROM replies LIMIT 0")
    except BaseException:
        db.close()
        raise
    return db


def _bytes_used(db: sqlite3.Connection) -> int:
    counts = ("page_count", "freelist_count", "page_size")
    pages, free, size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in counts)
    return int((pages - free) * size)


@dataclass(frozen=True, slots=True)
class Contents:
    """The cache's entries, bytes on disk, and (name, entries, bytes of replies) per model."""

    path: Path
    entries: int
    size: int
    models: tuple[tuple[str, int, int], ...] = ()


def contents() -> Contents:
    """The present contents. Raises `UserError` if the file cannot be read."""
    path = location()
    if not path.exists():
        return Contents(path, 0, 0)
    query = "SELECT model, count(*), sum(length(reply)) FROM replies WHERE model<>? GROUP BY model ORDER BY model"
    try:
        with contextlib.closing(open_file(path)) as db:
            models = tuple(db.execute(query, (ENDPOINT,)).fetchall())
    except UNUSABLE as problem:
        raise UserError(f"cannot read the response cache {path}: {problem}", "renew it: codechat cache clear") from None
    return Contents(path, sum(entries for _, entries, _ in models), size_of(path), models)


def clear() -> Contents:
    """Empty the cache and free its space, even while runs use it; returns the removed contents.

    An unreadable file is deleted. Raises `UserError` if that fails too.
    """
    path, before, entries = location(), size_of(location()), 0
    try:
        try:
            if path.exists():
                with contextlib.closing(open_file(path)) as db:
                    with db:
                        entries = db.execute("DELETE FROM replies WHERE model<>?", (ENDPOINT,)).rowcount
                        db.execute("DELETE FROM replies")
                    db.execute("VACUUM")
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.DatabaseError as problem:
            if getattr(problem, "sqlite_errorcode", None) in BUSY:
                raise OSError(str(problem)) from None
            for file in files_of(path):
                file.unlink(missing_ok=True)
    except OSError as problem:
        raise UserError(f"cannot clear the response cache {path}: {problem}", "try again, or remove the file") from None
    return Contents(path, entries, before - size_of(path))


def files_of(path: Path) -> list[Path]:
    """The files of a SQLite database in WAL mode, whether they exist or not."""
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]


def size_of(path: Path) -> int:
    """The bytes of a database on disk."""
    return sum(file.stat().st_size for file in files_of(path) if file.exists())
