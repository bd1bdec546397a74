"""Read the journals of finished cells without changing them."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from codechat.errors import UserError
from codechat.journal.opening import HELD, connect
from codechat.journal.schema import RECORDS, SCHEMA, prepare
from codechat.mounts import file_system, is_network

log = logging.getLogger(__name__)


def read_values(path: Path, payer: str) -> Iterator[tuple[str, str, str]]:
    """Session, step and value (JSON) of every answer of a role; nothing if the journal is gone or cannot be read.

    An older journal is brought up to date in memory; the file stays as it is. One that another process has for itself
    is left out with a warning.
    """
    try:
        with closing(_open(path)) as found, closing(sqlite3.connect(":memory:")) as memory:
            journal = found
            if found.execute("PRAGMA user_version").fetchone()[0] != SCHEMA:
                found.backup(memory)
                prepare(memory, path)
                journal = memory
            yield from journal.execute("SELECT session, name, value FROM steps WHERE payer=?", (payer,))
    except (sqlite3.Error, UserError) as error:  # a cell copied without its journal can still be read
        if getattr(error, "sqlite_errorcode", None) in HELD:
            log.warning("the journal %s is not read: another process has it for itself; wait until that ends", path)


def is_blank(path: Path) -> bool:
    """Whether nothing was recorded yet in a journal that no process has open, or there is none.

    One that cannot be read, or was not closed, is not blank.
    """
    if not path.exists():
        return True
    tables = " UNION ALL ".join(f"SELECT 1 FROM {table}" for table in RECORDS)
    try:
        if path.with_name(f"{path.name}-wal").exists():
            return False
        with closing(_unshared(path)) as found:
            return bool(found.execute(f"SELECT NOT EXISTS ({tables})").fetchone()[0])
    except sqlite3.Error:
        return False


def _open(path: Path) -> sqlite3.Connection:
    """A connection to read by. Raises `sqlite3.Error`.

    On a network's file system one that only reads cannot lock the file, so that it must know that nobody writes.
    """
    if not is_network(file_system(path)):
        return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    if path.exists() and path.with_name(f"{path.name}-wal").exists():
        return connect(path)
    return _unshared(path)


def _unshared(path: Path) -> sqlite3.Connection:
    """A connection to a file that nobody writes: it makes no files beside it."""
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
