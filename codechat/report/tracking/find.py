"""The cells of an MLflow experiment as folders, for a report."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

from codechat.base.errors import UserError, nearest
from codechat.base.files import content_hash, write_atomically
from codechat.base.records import TRACKED
from codechat.base.seal import SEAL, break_seal
from codechat.report.tracking import TrackingError
from codechat.report.tracking.address import Address
from codechat.report.tracking.mlflow_run import FILES
from codechat.report.tracking.runs import CELL_TAG, PROGRESS
from codechat.report.tracking.store import failures, open_client

PAGE = 1_000
CONTENT_TAG = "codechat.dataset_hash"


def find_cells(uri: str | None, experiment: str, condition: str, downloads: Path) -> list[Path]:
    """A folder per finished cell of the experiment that meets the condition (MLflow's filter string; empty: all).

    A run's files are downloaded into a folder under `downloads`, named by the cell id. Raises `UserError` for an
    unknown experiment, a wrong condition or no runs, and `TrackingError` if the store fails.
    """
    address = Address.of(uri)
    if address.database is not None and not address.database.is_file():
        remedy = "give uri=…, or run from the folder that has it"
        raise UserError(f"there is no MLflow store {address.database}", remedy)
    with failures(address):
        client = open_client(address)
        return [_fetch(client, run, downloads) for run in _runs(client, experiment, condition)]


def _runs(client: Any, experiment: str, condition: str) -> list[Any]:
    import mlflow

    found = client.get_experiment_by_name(experiment)
    if found is None:
        known = [one.name for one in client.search_experiments()]
        raise UserError(f"there is no MLflow experiment '{experiment}'", nearest(experiment, known))
    runs: list[Any] = []
    token: str | None = ""
    try:
        while token is not None:
            page = client.search_runs([found.experiment_id], condition, max_results=PAGE, page_token=token or None)
            # a cell that only began has no metric but its progress
            finished = (run for run in page if any(not key.startswith(PROGRESS) for key in run.data.metrics))
            runs += [run for run in finished if CELL_TAG in run.data.tags]
            token = page.token or None
    except mlflow.exceptions.MlflowException as error:
        if error.error_code != "INVALID_PARAMETER_VALUE":
            raise
        cause = str(error).partition("\n")[0]
        raise UserError(f"filter={condition}: {cause}", "e.g. filter=\"params.`agenda.turns` = '10'\"") from error
    if not runs:
        none = f"no cell of the experiment '{experiment}' meets the filter"
        raise UserError(
            none if condition else f"'{experiment}' has no finished cell",
            "look at its runs in MLflow; a filter names params.`…`, tags.`…` or metrics.`…`",
        )
    return runs


def _fetch(client: Any, run: Any, downloads: Path) -> Path:
    name = str(run.data.tags[CELL_TAG])  # set by anyone who may write to the store: it must not lead elsewhere
    folder = downloads / (name if re.fullmatch(r"\w+", name) else content_hash(name))[:16]
    folder.mkdir(parents=True, exist_ok=True)
    logged = {item.path for item in client.list_artifacts(run.info.run_id)}
    break_seal(folder)
    for name in (*FILES, *({SEAL} & logged)):
        if name not in logged:
            raise TrackingError(f"the run {run.info.run_name} has no {name}: log the cell again")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client.download_artifacts(run.info.run_id, name, str(folder))
    content = {"dataset": {"content_hash": run.data.tags.get(CONTENT_TAG)}}
    write_atomically(folder / TRACKED, json.dumps(content) + "\n")
    return folder
