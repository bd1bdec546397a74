"""Paid replies, kept across cells and processes: the same question is asked once, also if two calls ask it at a time.

One SQLite file in WAL mode, in `CODECHAT_CACHE_DIR` or else in the user's cache folder. It holds replies under a hash
of everything that determines them, and the endpoints' descriptions of their models, so that a cell that is answered
from it knows which weights replied; it contains neither conversations nor keys. The journal is the truth: an unusable
file causes one warning and nothing else.

A provider uses it in one line, and calls `settle` when it closes::

    reply = await recall_or_ask(CachedQuestion(address, name, body, sample), lambda: self._ask(request))
"""

import asyncio
import contextlib
import json
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codechat.base.domain import Reply, Usage
from codechat.base.environment import cache_root
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.mounts import file_system, is_network
from codechat.models.calls.limits import COUNTERS

log = logging.getLogger(__name__)

GROUPING_S = 0.25
AT_ONCE_MS = 50
"""A call waits so long for another process: a miss costs a call, and what is not written now is written later."""
SCHEMA = 1
BOUND = 4_000_000_000
"""Bytes that replies may take: some two million of them."""
ENDPOINT = ""
"""The model of an entry that is an endpoint's description, and no reply."""
RENEWED = "`codechat cache clear` renews it"
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_TABLE = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, model TEXT NOT NULL, reply TEXT NOT NULL)"


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


def is_final(reply: Reply) -> bool:
    """Whether the same question would get this answer again; a provider's filter differs from day to day."""
    return reply.finish_reason != "content_filter"


async def recall_or_ask(
    question: CachedQuestion | None, ask: Callable[[], Awaitable[Reply]], keep: Callable[[Reply], bool] = is_final
) -> Reply:
    """The cached reply, with its recorded usage and latency; else that of `ask`, cached if `keep` agrees.

    If the same question is already under way, this call waits for its reply and takes it as a cached one. If that reply
    is not to be kept, this call asks for itself; if that call was cancelled, this one takes its place. A question of
    None is never cached. Raises only what `ask` raises.
    """
    if question is None:
        return await ask()
    place = (asyncio.get_running_loop(), location(), question.key())
    while (known := recall(question)) is None and place in _UNDER_WAY:
        known = await asyncio.shield(_UNDER_WAY[place])
        if known is not _CANCELLED:
            break
    if known is not None:
        COUNTERS.cache_hits += 1
        return known
    under_way = None if place in _UNDER_WAY else _UNDER_WAY.setdefault(place, place[0].create_future())
    shared: Reply | None = None
    try:
        reply = await ask()
        if keep(reply):
            store(question, reply)
            shared = _reply(_text(reply))
        return reply
    except asyncio.CancelledError:
        shared = _CANCELLED
        raise
    finally:
        if under_way is not None:
            del _UNDER_WAY[place]
            under_way.set_result(shared)


_UNDER_WAY: dict[tuple[asyncio.AbstractEventLoop, Path, str], "asyncio.Future[Reply | None]"] = {}
"""Questions under way, by loop, file and key: the reply as the cache gives it; None if it is not to be shared."""
_CANCELLED = Reply("", "cancelled")
"""In place of the reply to a caller that was cancelled."""


def recall(question: CachedQuestion) -> Reply | None:
    """The cached reply."""
    file = _file()
    text = file.get(question.key())
    try:
        return None if text is None else _reply(text)
    except (ValueError, TypeError) as problem:
        file.give_up(f"{problem}; {RENEWED}")
        return None


def store(question: CachedQuestion, reply: Reply) -> None:
    """Keep a reply; `settle` writes it at the latest."""
    _file().put(question.key(), question.model, _text(reply))


def recall_endpoint_info(address: str, model: str) -> str | None:
    """The last kept description of the endpoint that serves a model at an address; None if there is none."""
    return _file().get(_endpoint_key(address, model)) if location().exists() else None


def store_endpoint_info(address: str, model: str, text: str) -> None:
    """Keep an endpoint's description of a model."""
    _file().put(_endpoint_key(address, model), ENDPOINT, text)


def _endpoint_key(address: str, model: str) -> str:
    return content_hash(["endpoint", address, model])


async def settle() -> None:
    """Write what is pending and close the files; the next question opens them again."""
    for path, file in list(_FILES.items()):
        file.settle()
        if not file.broken:  # a broken one stays, so that it is reported once
            del _FILES[path]


class _File:
    """One process's use of the file. After an error the file is not touched again, as if it were empty."""

    def __init__(self, path: Path) -> None:
        self.broken, self._written_s = False, -GROUPING_S
        self._path, self._pending, self._open = path, dict[str, tuple[str, str]](), contextlib.ExitStack()
        reason = unfit(path)
        try:
            if not reason:
                self._db = self._open.enter_context(contextlib.closing(open_file(path)))
                self._db.execute(f"PRAGMA busy_timeout={AT_ONCE_MS}")
        except UNUSABLE as problem:
            reason = f"{problem}; {RENEWED}"
        if reason:
            self.give_up(reason)

    def get(self, key: str) -> str | None:
        """The text of an entry, by an indexed read of some 20 µs; None if the file is busy."""
        if not self.broken:
            with self._guarded():
                query = "SELECT model, reply FROM replies WHERE key=?"
                found = self._pending.get(key) or self._db.execute(query, (key,)).fetchone()
                return None if found is None else str(found[1])
        return None

    def put(self, key: str, model: str, text: str) -> None:
        """Keep an entry, which is written with those of a quarter of a second, at the latest by `settle`."""
        self._pending[key] = (model, text)
        if time.monotonic() >= self._written_s + GROUPING_S:
            self._write()

    def _write(self) -> None:
        if self._pending and not self.broken:
            self._written_s = time.monotonic()
            with self._guarded():
                write(self._db, [(key, *entry) for key, entry in self._pending.items()])
                self._pending.clear()

    def settle(self) -> None:
        """Write what is pending, and close."""
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
    usage = reply.usage
    counted = [usage.input_tokens, usage.output_tokens, usage.cached_input_tokens]
    more = usage.fields() if usage.tiers or usage.cache_write_tokens else counted  # a form that all versions read
    return json.dumps([reply.text, reply.finish_reason, more, reply.latency_s])


def _reply(text: str) -> Reply:
    answer, finish_reason, counted, latency_s = json.loads(text)
    usage = Usage.of(counted) if isinstance(counted, dict) else Usage(*counted)
    return Reply(answer, finish_reason, latency_s, usage=usage, cached=True)


_FILES: dict[Path, _File] = {}


def _file() -> _File:
    path = location()
    if path not in _FILES:
        _FILES[path] = _File(path)
    return _FILES[path]


# -- the file ----------------------------------------------------------------------------------------------------


class WrongSchema(Exception):
    """The file was written by another version."""


UNUSABLE = (sqlite3.Error, OSError, WrongSchema)


def location() -> Path:
    """The cache's file, in its own folder that only this user may enter."""
    return cache_root() / "replies" / "replies.db"


def unfit(path: Path) -> str:
    """Why the cache is not used at a place, in words; empty if it can be.

    Its processes share memory, which those of several machines cannot.
    """
    kind = file_system(path)
    if not is_network(kind):
        return ""
    where = "hardware.scratch (or CODECHAT_CACHE_DIR)"
    return f"it is on a file system of type {kind}; set {where} to a folder of this machine"


def open_file(path: Path) -> sqlite3.Connection:
    """A connection to the cache's file, made if missing. Raises one of `UNUSABLE`."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    db = sqlite3.connect(path, timeout=10.0, check_same_thread=False)
    try:
        if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        found = db.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, SCHEMA):
            raise WrongSchema(f"it has schema {found}, this codechat reads {SCHEMA}")
        db.execute(_TABLE)
        if found == 0:
            db.execute(f"PRAGMA user_version={SCHEMA}")
        db.execute("SELECT key, model, reply FROM replies LIMIT 0")
    except BaseException:
        db.close()
        raise
    return db


def write(db: sqlite3.Connection, entries: Iterable[tuple[str, str, str]]) -> None:
    """Add or replace entries (key, model, reply), and delete the oldest if the file holds more than it may."""
    with db:
        db.executemany("INSERT OR REPLACE INTO replies VALUES (?,?,?)", entries)
        oldest = "DELETE FROM replies WHERE rowid IN (SELECT rowid FROM replies ORDER BY rowid LIMIT 10)"
        while _bytes_used(db) > BOUND and db.execute(oldest).rowcount:
            pass


def _bytes_used(db: sqlite3.Connection) -> int:
    """The bytes of all pages in use: free ones are used again before the file grows."""
    counts = ("page_count", "freelist_count", "page_size")
    pages, free, size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in counts)
    return int((pages - free) * size)


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
    query = "SELECT model, count(*), sum(length(reply)) FROM replies WHERE model<>? GROUP BY model ORDER BY model"
    try:
        with contextlib.closing(open_file(path)) as db:
            models = tuple(db.execute(query, (ENDPOINT,)).fetchall())
    except UNUSABLE as problem:
        raise UserError(f"cannot read the response cache {path}: {problem}", "renew it: codechat cache clear") from None
    return Contents(path, sum(entries for _, entries, _ in models), size_of(path), models)


def clear() -> Contents:
    """Empty the cache and free its space, even while runs use it; returns what was removed.

    A file that cannot be read is removed. Raises `UserError` if that fails too.
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
        except (sqlite3.DatabaseError, WrongSchema) as problem:
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
