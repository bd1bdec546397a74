"""Sweeps of several cells in processes of their own, and what they leave."""

import asyncio
import json
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codechat.testing import Call, dataset_tasks, fading_solver
from codechat.testing.cells import without_times
from support.mlflow_store import client_of


class Slow:
    """Answers after some seconds; a test may change them at any time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._answer = fading_solver(dataset_tasks("starter"))

    async def __call__(self, call: Call) -> Any:
        asked = time.monotonic()
        while (left := asked + self.seconds - time.monotonic()) > 0:  # noqa: ASYNC110  `seconds` may change
            await asyncio.sleep(min(left, 0.1))
        return self._answer(call)


def cells_in(runs: Path) -> list[Path]:
    """The folders of the cells, without those of launchers."""
    return [path for path in runs.iterdir() if not path.name.startswith(".")]


def records_of(runs: Path) -> dict[str, list[Any]]:
    """The sessions of every cell, without times."""
    return {
        cell.name: [without_times(json.loads(line)) for line in (cell / "sessions.jsonl").read_text().splitlines()]
        for cell in cells_in(runs)
    }


def metrics_of(runs: Path) -> dict[str, Any]:
    """The metrics of every cell, without times."""
    return {cell.name: without_times(json.loads((cell / "metrics.json").read_text())) for cell in cells_in(runs)}


def sweeps_of(folder: Path, cells: int) -> set[str]:
    """The sweep tags in a folder's store, which has a finished run with metrics for each of so many cells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's own, of SQLAlchemy
        client = client_of(folder)
        runs = client.search_runs([client.get_experiment_by_name("codechat").experiment_id])
    assert [run.info.status for run in runs] == ["FINISHED"] * cells
    assert all("final/mst" in run.data.metrics for run in runs)
    return {run.data.tags["codechat.sweep"] for run in runs}


def wait_until(what: Callable[[], object], seconds: float = 120) -> None:
    """Wait for something that comes true."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        threading.Event().wait(0.05)
