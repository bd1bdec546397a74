"""How several cells open, and write to, one store at a time.

MLflow creates a database, and adds an experiment or a dataset, by looking first and inserting then: of two clients at
once, one fails.
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
ATTEMPTS = 5
LONGEST_PAUSE_S = 0.5

T = TypeVar("T")


@contextlib.contextmanager
def lock(address: Address) -> Iterator[None]:
    """Hold the lock file of an SQLite store; other stores have none. Raises `TrackingError` after `LOCK_TIMEOUT_S`."""
    if address.database is None:
        yield
        return
    try:
        with FileLock(f"{address.database}.lock", timeout=LOCK_TIMEOUT_S):
            yield
    except Timeout as error:
        raise TrackingError(f"another process has kept {error.lock_file} for {LOCK_TIMEOUT_S} s") from error


def insist(write: Callable[[], T]) -> T:
    """Write, and again if the store refuses a row that another client has just added: MLflow finds it then.

    Raises MLflow's error of the last attempt. A store that does not answer is not asked again.
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
