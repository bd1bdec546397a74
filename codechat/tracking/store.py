"""An MLflow store, opened so that concurrent cells do not break it and MLflow does not print."""

import contextlib
import logging
import os
import socket
import sqlite3
import warnings
from collections.abc import Iterator
from typing import Any

from filelock import FileLock, Timeout

from codechat.environment import silence
from codechat.errors import UserError
from codechat.tracking import TrackingError
from codechat.tracking.address import Address, without_password

LOCK_TIMEOUT_S = 120
CONNECT_TIMEOUT_S = 5
# A silent server delays the cell by half a minute, not by the quarter of an hour of MLflow's defaults.
PATIENCE = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "15",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
}

# The address that MLflow would print after each run can contain the password of the URI. Its progress bars, one for
# every file, would come between the lines of a report.
QUIET = {"MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true", "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false"}


class Store:
    """A client and the experiment's id. Always pass that id on: MLflow's own default can be another experiment."""

    def __init__(self, address: Address, client: Any, experiment_id: str) -> None:
        self.address, self.client, self.experiment_id = address, client, experiment_id

    @classmethod
    def open(cls, address: Address, experiment: str) -> "Store":
        """Create the database and the experiment if they are missing. Raises as `failures` does, and `UserError`."""
        prepare(address)
        with lock(address), warnings.catch_warnings():
            # A local database is created under its lock: two migrations at once would break it for good.
            warnings.simplefilter("ignore")
            client = client_of(address)
            return cls(address, client, _experiment(client, experiment, address.artifacts))


def prepare(address: Address) -> None:
    """Configure MLflow's output, telemetry and timeouts, and fail fast if the store cannot be reached."""
    os.environ |= QUIET
    silence(os.environ)
    for name, value in PATIENCE.items():
        os.environ.setdefault(name, value)
    _reach(address)


def client_of(address: Address) -> Any:
    """MLflow's client for a store after `prepare`; opening a local store can migrate it."""
    import mlflow

    for chatter in ("mlflow", "alembic"):
        logging.getLogger(chatter).setLevel(logging.ERROR)
    return mlflow.MlflowClient(address.client_uri)


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


def _experiment(client: Any, name: str, artifacts: str | None) -> str:
    """The id of the experiment of this name, created if missing; another process may create it at the same time."""
    import mlflow

    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name, artifact_location=artifacts))
        except mlflow.exceptions.MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            found = client.get_experiment_by_name(name)
    if found.lifecycle_stage == "deleted":
        raise UserError(
            f"the MLflow experiment '{name}' is in the trash",
            f"restore it (mlflow experiments restore -x {found.experiment_id}), or choose another tracking.experiment",
        )
    return str(found.experiment_id)


@contextlib.contextmanager
def lock(address: Address) -> Iterator[None]:
    """Hold a local store's lock. A server orders its own clients."""
    if address.database is None:
        yield
        return
    try:
        with FileLock(f"{address.database}.lock", timeout=LOCK_TIMEOUT_S):
            yield
    except Timeout as error:
        raise TrackingError(f"another process has kept {error.lock_file} for {LOCK_TIMEOUT_S} s") from error


@contextlib.contextmanager
def failures(address: Address) -> Iterator[None]:
    """Turn a store's errors into `TrackingError`, and a missing database driver into `UserError`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UserError(
            f"tracking.uri={without_password(address.uri)} needs a driver that is not installed",
            f"install the package that provides the Python module '{error.name}'",
        ) from error
    except Exception as error:
        if not isinstance(error, _store_errors()):
            raise
        # The cause may hold the URI with its password, so only its cleaned words are kept.
        cause = without_password(str(error).strip().partition("\n")[0])[:300] or type(error).__name__
        raise TrackingError(f"cannot log to MLflow at {without_password(address.uri)}: {cause}") from None


def _store_errors() -> tuple[type[Exception], ...]:
    """The exceptions of MLflow and its libraries for a failing store; MLflow may not be imported yet."""
    import mlflow
    import requests
    import sqlalchemy

    return (
        mlflow.exceptions.MlflowException, requests.RequestException, sqlalchemy.exc.SQLAlchemyError,
        sqlite3.Error, OSError,
    )  # fmt: skip
