"""Verdicts on disk, which every process of this user on this machine shares; without programs and tests.

One SQLite file in WAL mode. It only saves time: if it cannot be used, everything is tested, and one warning says so.
"""

import contextlib
import functools
import hashlib
import logging
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

import codechat
from codechat.calls.cache_file import unfit
from codechat.domain import Verdict
from codechat.environment import VERSION, cache_root
from codechat.errors import UserError
from codechat.files import content_hash
from codechat.sandbox import SandboxConfig
from codechat.sandbox.process import secret_folder
from codechat.suites.calls.truth import machine
from codechat.texts import writable

log = logging.getLogger(__name__)

SCHEMA = 1
MOST = 200_000
"""Verdicts that are kept; the oldest go first."""
_WAIT_S = 0.05
_TABLE = "CREATE TABLE IF NOT EXISTS verdicts (number INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, verdict TEXT)"
_TRIM = "DELETE FROM verdicts WHERE number <= (SELECT max(number) FROM verdicts) - ?"
_DECIDE = ("suites", "sandbox", "languages/python")
_VERDICT: TypeAdapter[Verdict] = TypeAdapter(Verdict)


class KeptVerdicts:
    """One cell's use of the file; `weak` says whether its sandbox is."""

    def __init__(self, config: SandboxConfig, *, weak: bool) -> None:
        self._db: sqlite3.Connection | None = None
        self._here = [machine(), VERSION, _code(), config.model_dump(mode="json"), weak]
        path = _location()
        if reason := unfit(path):
            log.warning("the kept verdicts %s are not used: %s", path, reason)
            return
        try:
            secret_folder("verdicts")
            self._db = _open(path)
        except (sqlite3.Error, UserError) as problem:
            log.warning("the kept verdicts %s are not used: %s; `codechat cache clear` renews them", path, problem)

    def get(self, key: str) -> Verdict | None:
        """The verdict under a key, if it was kept under the same limits, by the same code, on this machine."""
        if self._db is None:
            return None
        with contextlib.suppress(sqlite3.Error, ValueError):
            row = self._db.execute("SELECT verdict FROM verdicts WHERE key=?", (self._own(key),)).fetchone()
            return None if row is None else _VERDICT.validate_json(row[0])
        return None

    def put(self, key: str, verdict: Verdict) -> None:
        """Keep a verdict; it is left out if another process writes for long."""
        if self._db is not None:
            text = _VERDICT.dump_json(writable(verdict)).decode()
            with contextlib.suppress(sqlite3.Error), self._db:
                self._db.execute("INSERT OR IGNORE INTO verdicts (key, verdict) VALUES (?, ?)", (self._own(key), text))

    def close(self) -> None:
        """Release the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _own(self, key: str) -> str:
        return content_hash([key, self._here])


@dataclass(frozen=True, slots=True)
class Contents:
    """How many verdicts are kept where, and their bytes on disk."""

    path: Path
    entries: int
    size: int


def contents() -> Contents:
    """What is kept; nothing if it cannot be read."""
    path, entries = _location(), 0
    if path.exists():
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path, timeout=_WAIT_S)) as db:
            entries = int(db.execute("SELECT count(*) FROM verdicts").fetchone()[0])
    return Contents(path, entries, sum(each.stat().st_size for each in _files() if each.exists()))


def clear() -> Contents:
    """Remove all verdicts; returns what was removed. A running cell then tests again, and keeps nothing more."""
    gone = contents()
    for path in _files():
        path.unlink(missing_ok=True)
    return gone


def _location() -> Path:
    return cache_root() / "verdicts" / "verdicts.db"


def _files() -> list[Path]:
    return [_location().with_name(_location().name + suffix) for suffix in ("", "-wal", "-shm")]


def _open(path: Path) -> sqlite3.Connection:
    """The file, made if it is missing. Raises `sqlite3.Error`."""
    db = sqlite3.connect(path, timeout=_WAIT_S, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        if db.execute("PRAGMA user_version").fetchone()[0] not in (0, SCHEMA):
            raise sqlite3.DatabaseError("another version of codechat wrote them")
        with db:
            db.execute(_TABLE)
            db.execute(f"PRAGMA user_version={SCHEMA}")
            db.execute(_TRIM, (MOST,))
    except BaseException:
        db.close()
        raise
    return db


@functools.cache
def _code() -> str:
    """A hash of the code that decides verdicts, so that those of other code are not taken."""
    root = Path(codechat.__path__[0])
    sources = (path for folder in _DECIDE for path in sorted((root / folder).rglob("*.py")))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
