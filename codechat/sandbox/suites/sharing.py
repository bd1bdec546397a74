"""Verdicts that programs share: if their compiled code is equal, under tests that see no more than that.

They are kept on disk for every process of this user on this machine, without programs and tests, in one SQLite file in
WAL mode. It only saves time: if it cannot be used, everything is tested, and one warning says so.
"""

import contextlib
import functools
import hashlib
import logging
import sqlite3
import sys
from pathlib import Path

from pydantic import TypeAdapter

from codechat.base.domain import Program, Target, Verdict
from codechat.base.environment import VERSION, cache_root
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.texts import writable
from codechat.models.calls.cache import Contents, files_of, size_of, unfit
from codechat.sandbox import Sandbox, SandboxConfig
from codechat.sandbox.languages import code_key
from codechat.sandbox.process import secret_folder
from codechat.sandbox.suites import Suite
from codechat.sandbox.suites.calls.reference_results import machine

log = logging.getLogger(__name__)

SCHEMA = 1
MOST = 200_000
"""Verdicts that are kept; the oldest go first."""
_WAIT_S = 0.05
_TABLE = "CREATE TABLE IF NOT EXISTS verdicts (number INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, verdict TEXT)"
_TRIM = "DELETE FROM verdicts WHERE number <= (SELECT max(number) FROM verdicts) - ?"
_VERDICT: TypeAdapter[Verdict] = TypeAdapter(Verdict)


def exact_key(program: Program, suite: Suite) -> str:
    """A hash of all that decides a verdict in one sandbox, the program's text among it."""
    return _key(program.source, program.target, suite.kind, suite.key)


def shared_key(program: Program, suite: Suite, sandbox: Sandbox) -> str | None:
    """A hash that programs of one verdict have in common; None if the program shares none but with its own text.

    What codechat's own interpreter reads says nothing of programs that another version runs.
    """
    # `SharesVerdicts` by its one member: `isinstance` takes as long as reading the program
    if not getattr(suite, "shares", False) or not sandbox.config.share:
        return None
    if sandbox.config.libraries().minor != sys.version_info[:2]:
        return None
    code = code_key(program)
    return None if code is None else _key(("compiled code", code), program.target, suite.kind, suite.key)


def may_share(verdict: Verdict) -> bool:
    """Whether a verdict is the same for programs of one `shared_key`: an exception tells lines of the program, and
    tests beside it may see where its objects lie."""
    told = verdict.failure is not None and verdict.failure.exception is not None
    return not told and verdict.outcome not in ("no_code", "syntax_error") and not verdict.inside


def may_outlast(verdict: Verdict) -> bool:
    """Whether another process may take a verdict over: what hangs on the machine's state is tested again."""
    return may_share(verdict) and verdict.outcome in ("pass", "fail") and verdict.decided == "outside"


@functools.lru_cache(maxsize=1024)  # asked for before a check and after it
def _key(what: str | tuple[str, str], target: Target, kind: str, suite: str) -> str:
    return content_hash([what, target.language, target.entry_point, target.signature, kind, suite])


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
        """Keep a verdict, unless another process writes for long."""
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


def contents() -> Contents:
    """The number of kept verdicts and their bytes on disk; no entries if the file cannot be read."""
    path, entries = _location(), 0
    if path.exists():
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path, timeout=_WAIT_S)) as db:
            entries = int(db.execute("SELECT count(*) FROM verdicts").fetchone()[0])
    return Contents(path, entries, size_of(path))


def clear() -> Contents:
    """Remove all verdicts; returns what was removed. A running cell then tests again, and keeps nothing more."""
    gone = contents()
    for path in files_of(_location()):
        path.unlink(missing_ok=True)
    return gone


def _location() -> Path:
    return cache_root() / "verdicts" / "verdicts.db"


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
    sources = sorted(Path(__file__).parent.parent.rglob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
