"""The journal's tables, and the migration from earlier versions.

A step's name is `<turn>/<role or kind of step>`, followed by more parts if a turn has several of them. `payer` is the
role that is charged; null for a step that asks no model. `ended` is when a session ended, in seconds since 1970.

`taken` holds the charges of other journals whose steps were taken in, by their `origin`: a row is replaced when it is
taken in again, so that nothing counts twice. So do `runs`, whose `origin` is null for runs of this journal.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from codechat.errors import UserError
from codechat.journal.ledger import COUNTS

SCHEMA = 5
RECORDS = ("steps", "sessions", "runs", "endpoints", "ledger", "taken")
"""The tables that hold what came of calls, tests and runs."""

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
_FROM_4 = "ALTER TABLE runs ADD COLUMN origin TEXT;"
_STEPS = {1: _FROM_1, 2: _FROM_2, 3: _FROM_3, 4: _FROM_4}
MIGRATIONS = {old: "".join(_STEPS[each] for each in range(old, SCHEMA)) for old in _STEPS}

CHARGE = (
    f"INSERT INTO ledger (payer, {', '.join(COUNTS)}) VALUES (?{', ?' * len(COUNTS)}) "
    f"ON CONFLICT (payer) DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in COUNTS)}"
)


def prepare(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables, or bring those of an earlier version up to date. Raises `UserError` for a later version."""
    found = db.execute("PRAGMA user_version").fetchone()[0]
    if found == SCHEMA:
        return
    if found not in (0, *MIGRATIONS):
        raise UserError(
            f"{path} was written with journal schema {found}, this codechat reads {SCHEMA}",
            "use the codechat that wrote it, or choose another runs_dir",
        )
    migration = MIGRATIONS.get(found, "")
    db.executescript(f"BEGIN; {_TABLES} {migration} PRAGMA user_version={SCHEMA}; COMMIT;")


@contextlib.contextmanager
def guard(db: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Report a failed write (full disk, read-only folder) as a `UserError`, with what was committed kept."""
    try:
        yield
    except sqlite3.Error as error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise UserError(
            f"cannot write the journal {path}: {error}",
            "free some space or choose another runs_dir, then run the same command again: it resumes",
        ) from error
