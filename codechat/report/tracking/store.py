"""An MLflow store, opened without MLflow's output, its errors as messages of one line, and writes of several cells.

MLflow creates a database, and adds an experiment or a dataset, by looking first and inserting then: of two clients at
once, one fails.
"""

import contextlib
import logging
import os
import random
import socket
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from codechat.base.environment import silence
from codechat.base.errors import UserError
from codechat.report.tracking import TrackingError
from codechat.report.tracking.address import REMEDY, Address, without_password

DRIVERS = {"": "codechat[postgres]", "psycopg": "codechat[postgres]", "MySQLdb": "mysqlclient", "pymysql": "PyMySQL"}
"""The package of a driver's module, if its name differs; psycopg without its library names no module."""
CONNECT_TIMEOUT_S, LOCK_TIMEOUT_S = 5, 120
ATTEMPTS, LONGEST_PAUSE_S = 5, 0.5
# A silent server delays the cell by half a minute; MLflow's defaults are a quarter of an hour.
PATIENCE = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "15",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
}
# A process opens a connection when it needs one: hundreds of cells would use up a server's connections, and idle
# connections may be dead after hours.
UNPOOLED = {"MLFLOW_SQLALCHEMYSTORE_POOLCLASS": "NullPool"}

# The address that MLflow would print after each run can contain the password of the URI; a progress bar for every file
# would come between the lines of a report.
QUIET = {"MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true", "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false"}

T = TypeVar("T")


@dataclass(frozen=True)
class Store:
    """A client and the experiment's id. Always pass that id on: MLflow's own default can be another experiment."""

    client: Any
    experiment_id: str

    @classmethod
    def open(cls, address: Address, experiment: str, artifacts: str | None, runs_dir: Path) -> "Store":
        """Create the database and the experiment if they are missing. Raises as `failures` does, and `UserError`.
        `artifacts` is the user's place for the files of a new experiment, None for the default."""
        client, place = open_client(address), address.artifacts(artifacts, runs_dir)
        found = _experiment(client, experiment, place)
        if artifacts is not None and found.artifact_location != place:
            raise UserError(
                f"the MLflow experiment '{experiment}' keeps its files in {found.artifact_location}",
                "leave tracking.artifacts out, or choose another tracking.experiment",
            )
        return cls(client, str(found.experiment_id))


def check_packages(address: Address, artifacts: str | None) -> None:
    """Raise `UserError` if the library that reaches a database or a bucket is missing: before a cell runs."""
    if artifacts is not None and artifacts.startswith("s3://") and find_spec("boto3") is None:
        raise UserError(f"tracking.artifacts={artifacts} needs the package boto3", "pip install boto3")
    if not address.needs_driver:
        return
    import sqlalchemy

    uri = without_password(address.uri)
    try:
        sqlalchemy.make_url(address.client_uri).get_dialect().import_dbapi()
    except ImportError as error:
        package = DRIVERS.get(error.name or "", error.name or "")
        raise UserError(f"tracking.uri={uri} needs a driver: {error}", f"pip install '{package}'") from error
    except sqlalchemy.exc.ArgumentError as error:
        raise UserError(f"tracking.uri={uri} is no address of a database", REMEDY) from error


def configure(address: Address) -> None:
    """Configure MLflow's output, telemetry and timeouts for a store: before it is imported."""
    os.environ |= QUIET
    silence(os.environ)
    for name, value in {**PATIENCE, **(UNPOOLED if address.needs_driver else {})}.items():
        os.environ.setdefault(name, value)


def open_client(address: Address) -> Any:
    """MLflow's client for a store; a missing or older database is made or migrated. Use within `failures`."""
    configure(address)
    _reach(address)
    import mlflow

    for chatter in ("mlflow", "alembic"):
        logging.getLogger(chatter).setLevel(logging.ERROR)
    with lock(address), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = mlflow.MlflowClient(address.client_uri)
        client.search_experiments(max_results=1)  # under the lock: two migrations at once would break a database
    return client


def _reach(address: Address) -> None:
    """Fail fast if MLflow would keep trying: for a file it cannot open, or a database server that is down."""
    if address.database is not None:
        address.database.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(address.database, timeout=CONNECT_TIMEOUT_S)) as connection:
            connection.execute("PRAGMA schema_version")
        if not os.access(address.database, os.W_OK):
            raise TrackingError(f"{address.database} is read-only")
    elif address.socket is not None:
        socket.create_connection(address.socket, timeout=CONNECT_TIMEOUT_S).close()


def _experiment(client: Any, name: str, artifacts: str | None) -> Any:
    """The experiment of this name, created if missing; another process may create it at the same time."""
    import mlflow

    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return client.get_experiment(client.create_experiment(name, artifact_location=artifacts))
        except mlflow.exceptions.MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            found = client.get_experiment_by_name(name)
    if found.lifecycle_stage == "deleted":
        raise UserError(
            f"the MLflow experiment '{name}' is in the trash",
            f"restore it (mlflow experiments restore -x {found.experiment_id}), or choose another tracking.experiment",
        )
    return found


@contextlib.contextmanager
def failures(address: Address) -> Iterator[None]:
    """Turn a store's errors into `TrackingError`, and a missing package into `UserError`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UserError(
            f"the store {without_password(address.uri)} needs the package {error.name}, which is not installed",
            f"pip install {error.name}",
        ) from error
    except Exception as error:
        import mlflow
        import sqlalchemy

        # requests' errors are OSErrors
        refused = (mlflow.exceptions.MlflowException, sqlalchemy.exc.SQLAlchemyError, sqlite3.Error, OSError)
        if not isinstance(error, refused):
            raise
        # The cause may hold the URI with its password, so only its cleaned words are kept.
        cause = without_password(str(error).strip().partition("\n")[0])[:300] or type(error).__name__
        raise TrackingError(f"cannot log to MLflow at {without_password(address.uri)}: {cause}") from None


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
    """Write, and again if the store refuses a row that another client has just added, which MLflow finds then. Raises
    MLflow's error of the last attempt. A store that does not answer is not asked again."""
    import mlflow

    for _ in range(ATTEMPTS - 1):
        try:
            return write()
        except mlflow.exceptions.MlflowException as error:
            if error.error_code != "BAD_REQUEST":  # MLflow's code for a refusal of the database
                raise
        time.sleep(random.uniform(0, LONGEST_PAUSE_S))
    return write()
