"""The MLflow store that a run left in a folder, as tests read it."""

import os
import warnings
from pathlib import Path
from typing import Any


def client_of(folder: Path) -> Any:
    """A client of the folder's store.

    Its URI is absolute: MLflow keeps one connection per URI for the life of a process, so that a relative one would
    read the store of whichever test opened it first.
    """
    import mlflow

    return mlflow.MlflowClient(f"sqlite:///{folder.absolute()}/mlflow/store.db")


def client_at(uri: str) -> Any:
    """A client of any store. MLflow, and what it is built on, warn when they open one."""
    import mlflow

    os.environ.setdefault("MLFLOW_SQLALCHEMYSTORE_POOLCLASS", "NullPool")  # keeps no connection of a server's few
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = mlflow.MlflowClient(uri)
        client.search_experiments(max_results=1)
    return client
