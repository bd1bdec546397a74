"""What keeps cells that end together from breaking a store, or each other's runs.

MLflow creates and migrates a database, and adds an experiment, a dataset or a tag, by looking first and inserting
then: two clients at once conflict, and one of them fails.
"""

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from filelock import FileLock, Timeout

from codechat.report.tracking import TrackingError
from codechat.report.tracking.address import Address

LOCK_TIMEOUT_S = 120
ADVISORY_KEY = 0x636F646563686174  # "codechat": PostgreSQL's locks are numbers, each database has its own
ATTEMPTS = 5
LONGEST_PAUSE_S = 0.5

T = TypeVar("T")


@contextlib.contextmanager
def lock(address: Address) -> Iterator[None]:
    """Hold the lock of an SQLite or PostgreSQL store among all clients of codechat; other stores have none.

    Raises `TrackingError` if another process keeps it for longer than `LOCK_TIMEOUT_S`.
    """
    if address.database is not None:
        try:
            with FileLock(f"{address.database}.lock", timeout=LOCK_TIMEOUT_S):
                yield
        except Timeout as error:
            raise TrackingError(f"another process has kept {error.lock_file} for {LOCK_TIMEOUT_S} s") from error
    elif address.is_postgres:
        with _advisory_lock(address.client_uri):
            yield
    else:
        yield


@contextlib.contextmanager
def _advisory_lock(uri: str) -> Iterator[None]:
    """PostgreSQL's lock, on a connection of its own: the server frees it when that ends, also by a kill."""
    import sqlalchemy

    # Without a transaction: one that stays open would hold up a migration.
    engine = sqlalchemy.create_engine(uri, poolclass=sqlalchemy.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"SET lock_timeout = '{LOCK_TIMEOUT_S}s'"))
        try:
            connection.execute(sqlalchemy.text(f"SELECT pg_advisory_lock({ADVISORY_KEY})"))
        except sqlalchemy.exc.OperationalError as error:
            if type(error.orig).__name__ != "LockNotAvailable":
                raise
            raise TrackingError(f"another process has kept the store's lock for {LOCK_TIMEOUT_S} s") from None
        yield


def insist(write: Callable[[], T]) -> T:
    """Write, and again if the store refuses. Raises MLflow's error of the last attempt.

    The clients of an MLflow server share no lock. If two add the same row, the second is refused; when it tries again,
    MLflow finds the row. A store that does not answer is not asked again.
    """
    import mlflow

    for _ in range(ATTEMPTS - 1):
        try:
            return write()
        except mlflow.exceptions.MlflowException as error:
            if error.error_code != "BAD_REQUEST":  # MLflow's code for whatever its database refuses
                raise
        time.sleep(random.uniform(0, LONGEST_PAUSE_S))
    return write()
