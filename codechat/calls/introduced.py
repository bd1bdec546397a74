"""What endpoints said of themselves when their replies were cached: beside the response cache, in the same file.

So that a cell that takes replies from the cache knows whose they are, without asking the endpoint.
"""

import contextlib
import sqlite3

from codechat.calls.cache_file import WrongSchema, location, open_file, unfit

WAIT_S = 0.05


def recall_statement(address: str, model: str) -> str | None:
    """What was kept last of the endpoint that serves a model at an address; None if nothing, or the file is unusable.

    The cache itself warns of an unusable file.
    """
    if unfit(location()) or not location().exists():
        return None
    query = "SELECT said FROM endpoints WHERE address=? AND model=?"
    try:
        with contextlib.closing(open_file(location(), WAIT_S)) as db:
            row = db.execute(query, (address, model)).fetchone()
    except (sqlite3.Error, OSError, WrongSchema):
        return None
    return None if row is None else str(row[0])


def keep_statement(address: str, model: str, text: str) -> None:
    """Keep what an endpoint says of a model; an unusable file is left to the cache's own warning."""
    if unfit(location()):
        return
    try:
        with contextlib.closing(open_file(location())) as db, db:
            db.execute("INSERT OR REPLACE INTO endpoints VALUES (?,?,?)", (address, model, text))
    except (sqlite3.Error, OSError, WrongSchema):
        return
