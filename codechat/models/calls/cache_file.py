"""The response cache's file: its tables, its bound, its contents, and how it is emptied.

One SQLite file in WAL mode, in `CODECHAT_CACHE_DIR` or else in the user's cache folder. It holds replies under a hash
of everything that determines them; it contains neither conversations nor keys. Its bound is written in the file itself,
so that all processes keep to it. Beside the replies it keeps how endpoints described themselves when they gave them, so
that a cell that takes replies from the cache knows whose they are without asking.
"""

import contextlib
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from codechat.base.environment import cache_root
from codechat.base.errors import UserError
from codechat.base.mounts import file_system, is_network

SCHEMA = 1
BOUND = 4_000_000_000
"""Bytes that replies may take unless the user sets another bound: some two million replies."""
LEAST_BOUND = 1_000_000
KEPT_SHARE = 0.98  # of the bound, after the oldest have left: so that not every further reply makes others leave

_TABLE = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, model TEXT NOT NULL, reply TEXT NOT NULL)"
# Later than schema 1, which does without. Triggers note the times also of replies that an older codechat writes.
_LATER = (
    "CREATE TABLE IF NOT EXISTS endpoints (address TEXT, model TEXT, said TEXT, PRIMARY KEY (address, model))",
    "CREATE TABLE IF NOT EXISTS bound (bytes INTEGER NOT NULL)",
)
_NOW = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"  # milliseconds, as time.time() has seconds
_USES = (
    "CREATE TABLE uses (key TEXT PRIMARY KEY, used INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE INDEX uses_by_time ON uses (used)",
    "INSERT INTO uses SELECT key, 0 FROM replies",
    f"CREATE TRIGGER reply_kept AFTER INSERT ON replies "
    f"BEGIN INSERT OR REPLACE INTO uses VALUES (new.key, {_NOW}); END",
    "CREATE TRIGGER reply_left AFTER DELETE ON replies BEGIN DELETE FROM uses WHERE key = old.key; END",
)
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class WrongSchema(Exception):
    """The file was written by another version."""


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
        for statement in _LATER:
            db.execute(statement)
        if not _notes_uses(db):
            # from now on it is kept when replies were used last: those that are there already count as the oldest
            with db:
                db.execute("BEGIN IMMEDIATE")
                if not _notes_uses(db):  # else another process was faster
                    for statement in _USES:
                        db.execute(statement)
    except BaseException:
        db.close()
        raise
    return db


def _notes_uses(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name='reply_left'").fetchone() is not None


def write(db: sqlite3.Connection, replies: Iterable[tuple[str, str, str]], used: Iterable[tuple[int, str]]) -> None:
    """Add replies (key, model, reply), note when others were used last (milliseconds, key), and keep to the bound.

    All of it or nothing. Raises `sqlite3.Error`.
    """
    with db:
        db.executemany("INSERT OR IGNORE INTO replies VALUES (?,?,?)", replies)
        db.executemany("UPDATE uses SET used=? WHERE key=?", used)
        _keep_to_bound(db)


def _keep_to_bound(db: sqlite3.Connection) -> None:
    """Have the least recently used replies leave, if the file holds more than it may."""
    bound = _bound(db)
    if _bytes_used(db) <= bound:
        return
    leaving = "DELETE FROM replies WHERE key IN (SELECT key FROM uses ORDER BY used, key LIMIT ?)"
    while (too_much := 1 - KEPT_SHARE * bound / _bytes_used(db)) > 0:
        entries = db.execute("SELECT count(*) FROM uses").fetchone()[0]
        if not db.execute(leaving, (max(1, int(too_much * entries)),)).rowcount:
            return


def _bytes_used(db: sqlite3.Connection) -> int:
    """The bytes of all pages in use: free ones are used again before the file grows."""
    counts = ("page_count", "freelist_count", "page_size")
    pages, free, size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in counts)
    return int((pages - free) * size)


def _bound(db: sqlite3.Connection) -> int:
    found = db.execute("SELECT bytes FROM bound").fetchone()
    return BOUND if found is None else int(found[0])


@dataclass(frozen=True, slots=True)
class Contents:
    """The cache's entries, bytes on disk, the bound in bytes, and per model its name, entries and bytes of replies."""

    path: Path
    entries: int
    size: int
    bound: int = BOUND
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
            bound = _bound(db)
    except (sqlite3.Error, OSError, WrongSchema) as problem:
        raise UserError(f"cannot read the response cache {path}: {problem}", "renew it: codechat cache clear") from None
    return Contents(path, sum(entries for _, entries, _ in models), size_of(path), bound, models)


def set_bound(bound: int) -> Contents:
    """Set the bytes that replies may take, for all processes from now on; if they take more, the least recently used
    leave at once. Raises `UserError` for a bound that is too small, and for a file that cannot be written."""
    if bound < LEAST_BOUND:
        raise UserError(f"the response cache needs {LEAST_BOUND:,} bytes at least", f"bytes={BOUND} is the default")
    path = location()
    try:
        with contextlib.closing(open_file(path)) as db:
            with db:
                db.execute("DELETE FROM bound")
                db.execute("INSERT INTO bound VALUES (?)", (bound,))
                _keep_to_bound(db)
            _give_space_back(db)
    except (sqlite3.Error, OSError, WrongSchema) as problem:
        remedy = "try again, or renew it: codechat cache clear"
        raise UserError(f"cannot write the response cache {path}: {problem}", remedy) from None
    return contents()


def clear() -> Contents:
    """Empty the cache and free its space, even while runs use it; returns what was removed. The bound stays.

    A file that cannot be read is removed. Raises `UserError` if that fails too.
    """
    path, before, entries = location(), size_of(location()), 0
    try:
        try:
            if path.exists():
                entries = _empty(path)
        except (sqlite3.DatabaseError, WrongSchema) as problem:
            if getattr(problem, "sqlite_errorcode", None) in BUSY:
                raise OSError(str(problem)) from None
            for file in files_of(path):
                file.unlink(missing_ok=True)
    except OSError as problem:
        raise UserError(f"cannot clear the response cache {path}: {problem}", "try again, or remove the file") from None
    return Contents(path, entries, before - size_of(path))


def _empty(path: Path) -> int:
    with contextlib.closing(open_file(path)) as db:
        with db:
            entries = int(db.execute("SELECT count(reply) FROM replies").fetchone()[0])
            db.execute("DELETE FROM replies")
            db.execute("DELETE FROM endpoints")
        _give_space_back(db)
    return entries


def _give_space_back(db: sqlite3.Connection) -> None:
    db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def files_of(path: Path) -> list[Path]:
    """The files of a SQLite database in WAL mode, whether they exist or not."""
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]


def size_of(path: Path) -> int:
    """The bytes of a database on disk."""
    return sum(file.stat().st_size for file in files_of(path) if file.exists())


def recall_statement(address: str, model: str) -> str | None:
    """The last kept description of the endpoint that serves a model at an address; None if there is none.

    None also if the file is unusable, of which the cache itself warns.
    """
    if unfit(location()) or not location().exists():
        return None
    query = "SELECT said FROM endpoints WHERE address=? AND model=?"
    try:
        with contextlib.closing(open_file(location(), wait_s=0.05)) as db:
            row = db.execute(query, (address, model)).fetchone()
    except (sqlite3.Error, OSError, WrongSchema):
        return None
    return None if row is None else str(row[0])


def keep_statement(address: str, model: str, text: str) -> None:
    """Keep an endpoint's description of a model; of an unusable file the cache itself warns."""
    if unfit(location()):
        return
    try:
        with contextlib.closing(open_file(location())) as db, db:
            db.execute("INSERT OR REPLACE INTO endpoints VALUES (?,?,?)", (address, model, text))
    except (sqlite3.Error, OSError, WrongSchema):
        return
