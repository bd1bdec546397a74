"""The journal's file: its tables, the migration from earlier versions, and how it is opened.

A step's name is `<turn>/<role or kind of step>`, with further parts if a turn has several such steps. `payer` is the
charged role, null for a step that asks no model. `ended` is when a session ended, in seconds since 1970.

`taken` has the charges of merged journals by their `origin`: merging again replaces them, so that nothing counts twice;
likewise `runs`, a row for each process, whose `origin` is null for runs of this journal. `batches` are the providers'
batches of this cell, `batched` the batch of each request, null if it has no answer there. A batch is recorded before it
is submitted.

The file is opened in WAL mode by two connections, which share memory through a mapped file (`-shm`). Network file
systems do not support that reliably: there, one connection locks the file (`locking_mode=EXCLUSIVE`, set before WAL).
"""

import contextlib
import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from codechat.base.errors import UserError
from codechat.base.mounts import file_system, is_network
from codechat.run.journal.ledger import COUNTS

SCHEMA = 6
WORK = ("steps", "sessions", "batches", "ledger", "taken")
"""The tables that hold the results of calls and tests."""
RECORDS = (*WORK, "runs", "endpoints")
"""The tables that hold the results of calls, tests and runs."""

_COUNTS = ", ".join(f"{name} INTEGER NOT NULL DEFAULT 0" for name in COUNTS)
_TABLES = f"""
CREATE TABLE IF NOT EXISTS steps (
    session TEXT, name TEXT, digest TEXT, value TEXT, payer TEXT, PRIMARY KEY (session, name, digest)
);
CREATE TABLE IF NOT EXISTS sessions (
    session TEXT PRIMARY KEY, record TEXT, completed INTEGER NOT NULL DEFAULT 1, slim TEXT, ended REAL
);
CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY, wall_s REAL, origin TEXT);
CREATE TABLE IF NOT EXISTS endpoints (
    place TEXT, base_url TEXT, said TEXT, fingerprints TEXT, met REAL, PRIMARY KEY (place, base_url, said)
);
CREATE TABLE IF NOT EXISTS batches (name TEXT PRIMARY KEY, size INTEGER, made REAL, file TEXT, remote TEXT);
CREATE TABLE IF NOT EXISTS batched (request TEXT PRIMARY KEY, batch TEXT);
CREATE INDEX IF NOT EXISTS batched_by_batch ON batched (batch);
CREATE TABLE IF NOT EXISTS ledger (payer TEXT PRIMARY KEY, {_COUNTS});
CREATE TABLE IF NOT EXISTS taken (origin TEXT, payer TEXT, {_COUNTS}, PRIMARY KEY (origin, payer));
CREATE TABLE IF NOT EXISTS origin (id TEXT);
INSERT INTO origin SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT 1 FROM origin);
"""
_FROM_1 = """
ALTER TABLE sessions ADD COLUMN completed INTEGER NOT NULL DEFAULT 1;
ALTER TABLE sessions ADD COLUMN slim TEXT;
INSERT INTO ledger (payer, calls, input_tokens, output_tokens, cached_input_tokens, retries)
SELECT CASE WHEN name LIKE '%/reply' THEN 'model' WHEN name LIKE '%/adherence' THEN 'adherence'
            ELSE 'applicability' END AS payer,
       count(*),
       CAST(total(json_extract(value, '$.usage.input_tokens')) AS INTEGER),
       CAST(total(json_extract(value, '$.usage.output_tokens')) AS INTEGER),
       CAST(total(json_extract(value, '$.usage.cached_input_tokens')) AS INTEGER),
       CAST(total(json_extract(value, '$.retries')) AS INTEGER)
FROM steps WHERE name LIKE '%/reply' OR name LIKE '%/adherence' OR name LIKE '%/applicable' GROUP BY payer;
"""
# `4/reply` and `4/<instruction>/applicable` became `4/model` and `4/applicability/<instruction>`. Steps of tests keep
# their old names, which are never looked up: an unfinished session runs its tests again, which costs no call.
_FROM_2 = """
ALTER TABLE steps ADD COLUMN payer TEXT;
UPDATE steps SET payer = 'adherence' WHERE name LIKE '%/adherence';
UPDATE steps SET payer = 'model', name = substr(name, 1, length(name) - length('reply')) || 'model'
    WHERE name LIKE '%/reply';
UPDATE steps SET payer = 'applicability', name = substr(name, 1, instr(name, '/')) || 'applicability/'
    || substr(name, instr(name, '/') + 1, length(name) - instr(name, '/') - length('/applicable'))
    WHERE name LIKE '%/applicable';
"""
# When earlier sessions ended, and who answered, is not known.
_FROM_3 = "ALTER TABLE sessions ADD COLUMN ended REAL;"
_STEPS = {1: _FROM_1, 2: _FROM_2, 3: _FROM_3, 4: "ALTER TABLE runs ADD COLUMN origin TEXT;", 5: ""}
MIGRATIONS = {old: "".join(_STEPS[each] for each in range(old, SCHEMA)) for old in _STEPS}

CHARGE = (
    f"INSERT INTO ledger (payer, {', '.join(COUNTS)}) VALUES (?{', ?' * len(COUNTS)}) "
    f"ON CONFLICT (payer) DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in COUNTS)}"
)


def all_empty(tables: Sequence[str]) -> str:
    """The query whether tables have no row."""
    return f"SELECT NOT EXISTS ({' UNION ALL '.join(f'SELECT 1 FROM {table}' for table in tables)})"


def prepare(db: sqlite3.Connection, path: Path) -> None:
    """Create the tables, or migrate the tables of an earlier version. Raises `UserError` for a later version."""
    schema = db.execute("PRAGMA user_version").fetchone()[0]
    if schema == SCHEMA:
        return
    if schema not in (0, *MIGRATIONS):
        problem = f"{path} was written with journal schema {schema}, this codechat reads {SCHEMA}"
        raise UserError(problem, "use the codechat that wrote it, or choose another runs_dir")
    migration = MIGRATIONS.get(schema, "")
    db.executescript(f"BEGIN; {_lacking(db)} {_TABLES} {migration} PRAGMA user_version={SCHEMA}; COMMIT;")


def _lacking(db: sqlite3.Connection) -> str:
    """The statements that add missing counts to the tables of an earlier version."""
    known = {table: {row[1] for row in db.execute(f"PRAGMA table_info({table})")} for table in ("ledger", "taken")}
    lacking = ((table, name) for table, columns in known.items() if columns for name in COUNTS if name not in columns)
    return "".join(f"ALTER TABLE {table} ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0;" for table, name in lacking)


@contextlib.contextmanager
def guard(db: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Report a failed write (full disk, read-only folder) as a `UserError`; committed rows are kept.

    After any exception nothing of the write is left open.
    """
    try:
        yield
    except Exception as error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        if not isinstance(error, sqlite3.Error):
            raise
        remedy = "free some space or choose another runs_dir, then run the same command again: it resumes"
        raise UserError(f"cannot write the journal {path}: {error}", remedy) from error


INTO = "endpoints (place, base_url, said, fingerprints, met)"
ALL_ENDPOINTS = "SELECT place, base_url, said, fingerprints, met FROM endpoints ORDER BY met, rowid"


class EndpointRecord(NamedTuple):
    """An endpoint that answered, or was about to, for the model at a place of the config.

    `info` is its description of the model, as JSON; `fingerprints` are from its replies; `at` is its last answer, in
    seconds since 1970.
    """

    place: str
    base_url: str
    info: str
    fingerprints: tuple[str, ...]
    at: float

    @property
    def facts(self) -> dict[str, Any]:
        """The description, parsed."""
        facts: dict[str, Any] = json.loads(self.info)
        return facts

    def row(self) -> tuple[str | float, ...]:
        return (self.place, self.base_url, self.info, json.dumps(self.fingerprints), self.at)

    @classmethod
    def of(cls, row: tuple[str, str, str, str, float]) -> Self:
        """Read a row."""
        return cls(*row[:3], tuple(json.loads(row[3])), row[4])


WAIT_S = 10.0  # for another connection that has the file
IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)  # error codes: another connection has the file


class Database:
    """An open journal file. Raises `UserError` if it cannot be opened, or another process has locked it."""

    def __init__(self, path: Path) -> None:
        self._path, self._files = path, contextlib.ExitStack()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = self._files.enter_context(contextlib.closing(connect(path)))
            self._writer.execute("PRAGMA synchronous=FULL")
            prepare(self._writer, path)
            self._turn: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
            if is_network(file_system(path)):
                # Two threads share one connection, and uncommitted rows must not be read.
                self._reader, self._turn = self._writer, threading.Lock()
            else:
                # Reads never wait for a commit's fsync.
                self._reader = self._files.enter_context(contextlib.closing(connect(path)))
        except BaseException as error:
            self._files.close()
            if isinstance(error, sqlite3.Error | OSError):
                raise _explain(path, error) from error
            raise

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows that a query finds."""
        with self._turn:
            return self._reader.execute(query, values).fetchall()

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection for writing. A failed write raises `UserError`; committed rows are kept."""
        with self._turn, guard(self._writer, self._path):
            yield self._writer

    def close(self) -> None:
        """Release the file."""
        self._files.close()


def connect(path: Path) -> sqlite3.Connection:
    """A connection in WAL mode, which locks the file on a network file system. Raises `sqlite3.Error`."""
    db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=WAIT_S)
    try:
        if is_network(file_system(path)):
            db.execute("PRAGMA locking_mode=EXCLUSIVE")
        db.execute("PRAGMA journal_mode=WAL")
    except BaseException:
        db.close()
        raise
    return db


def _explain(path: Path, error: Exception) -> UserError:
    kind = file_system(path)
    if getattr(error, "sqlite_errorcode", None) in IN_USE and is_network(kind):
        problem = (
            f"the journal {path} is in use by another process: on a file system of type {kind} one alone can open it"
        )
        return UserError(problem, "wait for that process, or stop it: what it recorded is kept")
    return UserError(f"cannot open the journal {path}: {error}", "make the folder writable, or set runs_dir")
