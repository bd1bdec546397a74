"""How the journal's file is opened: in WAL mode, by two connections, or by one on a network's file system.

Two connections share memory through a mapped file beside the journal (`-shm`), which a network's file system does not
give reliably. There one connection has the file for itself (`locking_mode=EXCLUSIVE`, set before WAL): no such file is
made, and another connection is locked out. The file's format, and what a commit promises, are the same.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from codechat.errors import UserError
from codechat.journal.schema import guard, prepare
from codechat.mounts import file_system, is_network

WAIT_S = 10.0
"""So long a connection waits for another one that has the file."""

HELD = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
"""Codes of an error that says: another connection has the file."""


class Database:
    """An open journal file. Raises `UserError` if it cannot be opened, or another process has it for itself."""

    def __init__(self, path: Path) -> None:
        self._path, self._files = path, contextlib.ExitStack()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = self._files.enter_context(contextlib.closing(connect(path)))
            self._writer.execute("PRAGMA synchronous=FULL")
            prepare(self._writer, path)
            self._turn: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
            if is_network(file_system(path)):
                # What is not committed yet must not be read, and the two threads have one connection.
                self._reader, self._turn = self._writer, threading.Lock()
            else:
                # Reads never wait for a commit's fsync. The loop may run in another thread than that which opens this.
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
        """The connection to write by. A failed write raises `UserError`, with what was committed kept."""
        with self._turn, guard(self._writer, self._path):
            yield self._writer

    def close(self) -> None:
        """Release the file."""
        self._files.close()


def connect(path: Path) -> sqlite3.Connection:
    """A connection in WAL mode, which has the file for itself on a network's file system. Raises `sqlite3.Error`."""
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
    if getattr(error, "sqlite_errorcode", None) in HELD and is_network(kind):
        return UserError(
            f"the journal {path} is in use by another process: on a file system of type {kind} one alone can open it",
            "wait for that process, or stop it: what it recorded is kept",
        )
    return UserError(f"cannot open the journal {path}: {error}", "make the folder writable, or set runs_dir")
