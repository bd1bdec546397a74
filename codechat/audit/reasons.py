"""Why a candidate was found applicable or not: the records leave it out, the cell's journal holds it."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

_SUFFIX = "/applicable"


def applicability_reasons(folder: Path) -> dict[tuple[str, int, str], str]:
    """The judge's reasons by (session, turn, instruction); nothing where the journal is gone or cannot be read."""
    path = folder / "journal.db"
    if not path.is_file():
        return {}
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as journal:
            rows = journal.execute("SELECT session, name, value FROM steps WHERE name LIKE ?", (f"%{_SUFFIX}",))
            return dict(_reason(*row) for row in rows)
    except sqlite3.Error:  # a copy without its journal audits as well; only the reasons are missing then
        return {}


def _reason(session: str, name: str, value: str) -> tuple[tuple[str, int, str], str]:
    turn, _, instruction = name.removesuffix(_SUFFIX).partition("/")
    return (session, int(turn), instruction), str(json.loads(value).get("reason", ""))
