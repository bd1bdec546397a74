"""Read the journals of finished cells without changing them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from codechat.errors import UserError
from codechat.journal.schema import SCHEMA, prepare


def read_values(path: Path, payer: str) -> Iterator[tuple[str, str, str]]:
    """Session, step and value (JSON) of every answer of a role; nothing if the journal is gone or cannot be read.

    An older journal is brought up to date in memory; the file stays as it is.
    """
    try:
        with (
            closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as found,
            closing(sqlite3.connect(":memory:")) as memory,
        ):
            journal = found
            if found.execute("PRAGMA user_version").fetchone()[0] != SCHEMA:
                found.backup(memory)
                prepare(memory, path)
                journal = memory
            yield from journal.execute("SELECT session, name, value FROM steps WHERE payer=?", (payer,))
    except (sqlite3.Error, UserError):  # a cell copied without its journal can still be read
        return
