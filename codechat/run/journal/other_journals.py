"""Other journals: read without changing them, or merged into a cell's journal, repeatedly if need be."""

import contextlib
import logging
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from codechat.base.errors import UserError
from codechat.base.mounts import file_system, is_network
from codechat.run.journal.database import (
    ALL_ENDPOINTS,
    IN_USE,
    INTO,
    RECORDS,
    SCHEMA,
    Database,
    EndpointRecord,
    all_empty,
    connect,
    prepare,
)
from codechat.run.journal.ledger import COUNTS, Charge, Ledger

log = logging.getLogger(__name__)


def read_values(path: Path, payer: str) -> Iterator[tuple[str, str, str]]:
    """Session, step and value (JSON) of every answer of a role; nothing if the journal cannot be read.

    An older journal is migrated in memory. A journal that another process has locked is left out with a warning.
    """
    try:
        with closing(_open(path)) as journal, closing(sqlite3.connect(":memory:")) as memory:
            if old := journal.execute("PRAGMA user_version").fetchone()[0] != SCHEMA:
                journal.backup(memory)
                prepare(memory, path)
            query = "SELECT session, name, value FROM steps WHERE payer=?"
            yield from (memory if old else journal).execute(query, (payer,))
    except (sqlite3.Error, UserError) as error:  # a cell copied without its journal can still be read
        if getattr(error, "sqlite_errorcode", None) in IN_USE:
            log.warning("the journal %s is not read: another process has it for itself; wait until that ends", path)


def is_blank(path: Path) -> bool:
    """Whether there is no journal, or a closed and readable one without records."""
    if not path.exists():
        return True
    try:
        if path.with_name(f"{path.name}-wal").exists():
            return False
        with closing(_unshared(path)) as found:
            return bool(found.execute(all_empty(RECORDS)).fetchone()[0])
    except sqlite3.Error:
        return False


def _open(path: Path) -> sqlite3.Connection:
    """A connection for reading. Raises `sqlite3.Error`.

    On a network file system a read-only connection cannot lock the file: it is used only if no process writes.
    """
    if not is_network(file_system(path)):
        return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    if path.exists() and path.with_name(f"{path.name}-wal").exists():
        return connect(path)
    return _unshared(path)


def _unshared(path: Path) -> sqlite3.Connection:
    """A connection to a file that no process writes; it creates no further files."""
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)


_CHARGES = ", ".join(COUNTS)
# The index alone finds existing steps: their values are not read.
_STEPS = """
INSERT INTO main.steps SELECT session, name, digest, value, payer FROM other.steps AS theirs
WHERE session IN (SELECT session FROM wanted) AND NOT EXISTS (
    SELECT 1 FROM main.steps AS ours
    WHERE ours.session = theirs.session AND ours.name = theirs.name AND ours.digest = theirs.digest)
"""
_SESSIONS = """
INSERT OR REPLACE INTO main.sessions SELECT session, record, completed, slim, ended FROM other.sessions AS theirs
WHERE session IN (SELECT session FROM wanted) AND NOT EXISTS (
    SELECT 1 FROM main.sessions AS ours WHERE ours.session = theirs.session AND ours.completed >= theirs.completed)
"""


def merge_journal(into: Path, source: Path, sessions: Collection[str], name: str) -> None:
    """Copy sessions with their steps, and the charges of the source's processes, into a journal.

    Both files are created or migrated as by `Journal`. Existing steps stay; the charges, under `name` and the source's
    origin, replace the charges of an earlier merge. Raises `UserError`.
    """
    with _attached(into, source) as db:
        _copy(db, sessions)
        origin = origin_name(name, db.execute("SELECT id FROM other.origin").fetchone()[0])
        db.execute("DELETE FROM main.taken WHERE origin=?", (origin,))
        charges = f"INSERT INTO main.taken (origin, payer, {_CHARGES}) SELECT ?, payer, {_CHARGES} FROM other.ledger"
        db.execute(charges, (origin,))
        db.execute("DELETE FROM main.runs WHERE origin=?", (origin,))
        wall = "INSERT INTO main.runs (wall_s, origin) SELECT total(wall_s), ? FROM other.runs WHERE origin IS NULL"
        db.execute(wall, (origin,))


def origin_name(name: str, origin: str) -> str:
    """The name of a journal's charges in another journal; a journal that was created anew has another origin."""
    return f"{name}/{origin}"


def copy_sessions(into: Path, source: Path, sessions: Collection[str]) -> None:
    """Copy sessions with their steps; their charges stay with the source. Raises `UserError`."""
    with _attached(into, source) as db:
        _copy(db, sessions)


@dataclass(frozen=True, slots=True)
class Account:
    """The usage of a journal's own processes, and of merged journals by name.

    `origin` is a random name from the journal's creation; `endpoints` answered the cell.
    """

    origin: str
    own: Ledger
    taken: dict[str, Ledger]
    endpoints: tuple[EndpointRecord, ...]


def account_of(path: Path) -> Account:
    """Read a journal's account. Raises `UserError`."""
    own, taken = Ledger(), dict[str, Ledger]()
    with closing(Database(path)) as database:
        for row in database.read(f"SELECT payer, {_CHARGES} FROM ledger"):
            own.add(Charge(*row))
        for origin, *charge in database.read(f"SELECT origin, payer, {_CHARGES} FROM taken"):
            taken.setdefault(origin, Ledger()).add(Charge(*charge))
        origin = str(database.read("SELECT id FROM origin")[0][0])
        return Account(origin, own, taken, tuple(EndpointRecord.of(row) for row in database.read(ALL_ENDPOINTS)))


@contextlib.contextmanager
def _attached(into: Path, source: Path) -> Iterator[sqlite3.Connection]:
    """A transaction on one journal, to which another one is attached as `other`."""
    Database(source).close()  # migrates it, and recovers the WAL of a killed process
    with closing(Database(into)) as database, database.writing() as db:
        db.execute("ATTACH ? AS other", (str(source),))
        db.execute("BEGIN")
        yield db
        db.execute("COMMIT")


def _copy(db: sqlite3.Connection, sessions: Collection[str]) -> None:
    db.execute("CREATE TEMP TABLE wanted (session TEXT PRIMARY KEY)")
    db.executemany("INSERT INTO wanted VALUES (?)", [(each,) for each in sessions])
    db.execute(_STEPS)
    db.execute(_SESSIONS)
    for table in ("batches", "batched"):  # of all sessions: they are few
        db.execute(f"INSERT OR IGNORE INTO main.{table} SELECT * FROM other.{table}")
    # the endpoints of the other journal, each with the fingerprints from both
    ours = {record[:3]: record for record in map(EndpointRecord.of, db.execute(ALL_ENDPOINTS))}
    query = ALL_ENDPOINTS.replace("FROM endpoints", "FROM other.endpoints")
    for theirs in map(EndpointRecord.of, db.execute(query).fetchall()):
        known = ours.get(theirs[:3], theirs)
        fingerprints = tuple(dict.fromkeys((*known.fingerprints, *theirs.fingerprints)))
        both = theirs._replace(fingerprints=fingerprints, at=max(known.at, theirs.at))
        db.execute(f"INSERT OR REPLACE INTO main.{INTO} VALUES (?, ?, ?, ?, ?)", both.row())
