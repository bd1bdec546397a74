"""The MLflow store that a run left in a folder, as tests read it."""

from pathlib import Path
from typing import Any


def client_of(folder: Path) -> Any:
    """A client of the folder's store.

    Its URI is absolute: MLflow keeps one connection per URI for the life of a process, so that a relative one would
    read the store of whichever test opened it first.
    """
    import mlflow

    return mlflow.MlflowClient(f"sqlite:///{folder.absolute()}/mlflow/store.db")
