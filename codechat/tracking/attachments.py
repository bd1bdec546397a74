"""A cell's dataset and tables in MLflow, besides params and metrics."""

import csv
import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codechat.tracking import DatasetInfo
from codechat.tracking.locks import insist

TABLES = "tables"
LOGGED_TAG = "mlflow.loggedArtifacts"  # lists the files that the user interface shows as tables
DIGEST = 12  # characters of the content hash: MLflow takes 36, and its list of runs shows few


def log_dataset(client: Any, run_id: str, dataset: DatasetInfo) -> None:
    """Make the dataset an input of the run, once.

    A store has one entry per content, shared by all its cells: a tag of the input says which tasks the cell used.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag

    digest = dataset.content_hash[:DIGEST]
    if any(known.dataset.digest == digest for known in client.get_run(run_id).inputs.dataset_inputs):
        return
    entry = Dataset(
        name=dataset.name,
        digest=digest,
        source_type="codechat",
        source=json.dumps({"uri": dataset.source}),
        profile=json.dumps({"num_rows": dataset.tasks}),
    )
    tags = [InputTag("mlflow.data.context", "eval"), InputTag("codechat.tasks", str(dataset.used))]
    insist(lambda: client.log_inputs(run_id, [DatasetInput(entry, tags)]))


def log_tables(client: Any, run: Any, folder: Path) -> None:
    """Log a cell's CSV files a second time, as the JSON that MLflow draws and compares.

    A file of an earlier logging is replaced (MLflow's own `log_table` would append rows to it).
    """
    tables = {path.stem: as_table(path) for path in sorted(folder.glob("*.csv"))}
    if not tables:
        return
    with tempfile.TemporaryDirectory() as temporary:
        for name, table in tables.items():
            Path(temporary, f"{name}.json").write_text(json.dumps(table), encoding="utf-8")
        client.log_artifacts(run.info.run_id, temporary, artifact_path=TABLES)
    known = json.loads(run.data.tags.get(LOGGED_TAG, "[]"))
    new = [entry for name in tables if (entry := {"path": f"{TABLES}/{name}.json", "type": "table"}) not in known]
    if new:
        client.set_tag(run.info.run_id, LOGGED_TAG, json.dumps([*known, *new]))


def as_table(path: Path) -> Mapping[str, list[Any]]:
    """A CSV file's header and rows in MLflow's layout; numbers as numbers, empty fields null."""
    with path.open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    return {"columns": header, "data": [[_value(text) for text in row] for row in rows]}


def _value(text: str) -> str | float | None:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else text  # JSON has no other numbers
    return text or None
