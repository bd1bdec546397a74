"""The printed link opens MLflow on the charts that one came for: seen in a browser, without typing."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.report.metrics import Point, headline_of
from codechat.report.tracking import TRACKING, FinishedCell, TrackedRun
from codechat.report.tracking.runs import CELL_TAG, PROGRESS
from codechat.studies.refine.metrics import REFINE
from support.browser import chromium
from support.mlflow_store import client_of

pytestmark = pytest.mark.long

POINTS = (
    *(Point("turn/pass_at_1", value, turn) for turn, value in enumerate([1.0, 0.75, 0.5])),
    *(Point("turn/iar", value, turn) for turn, value in enumerate([0.5, 0.75], 1)),
    Point("cost/wall_s", 1.5),
    Point("cost/model_input_tokens", 7),
    Point("final/completed", 4.0),
    Point("final/mst", 2.25),
    Point("final/delta_pct", -50.0),
)


def track(folder: Path, name: str) -> TrackedRun:
    (folder / name).mkdir()
    cell = FinishedCell(name, name, {}, POINTS, folder / name, headline=headline_of(REFINE))
    tracked = TRACKING.build(TRACKING.validate({"kind": "mlflow"})).log(cell)
    assert tracked is not None
    return tracked


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_link_names_a_view_that_the_experiment_has(folder: Path) -> None:
    tracked, again = track(folder, "one"), track(folder, "two")
    address, _, key = tracked.charts.partition("&viewStateShareKey=")
    assert address == "http://127.0.0.1:5000/#/experiments/1/runs?compareRunsMode=CHART"
    assert tracked.charts == again.charts, "cells of one protocol share a view"
    tags = client_of(folder).get_experiment(tracked.experiment_id).tags
    state = json.loads(tags[f"mlflow.sharedViewState.{key}"])
    assert [(chart["type"], chart["metricKey"]) for chart in state["compareRunCharts"]] == [
        ("LINE", "turn/pass_at_1"),
        ("BAR", "final/mst"),
        ("BAR", "final/delta_pct"),
    ]
    assert [section["name"] for section in state["compareRunSections"]] == ["turn", "final", "cost"]
    assert {section["columns"] for section in state["compareRunSections"]} == {2}, "a title is a whole key"
    assert len(tags[f"mlflow.sharedViewState.{key}"]) < 5000, "the longest tag of an experiment"


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """A server without the runners of MLflow's own jobs, which are nine processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/mlflow/store.db"]
    server = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until_healthy(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def wait_until_healthy(port: int, server: "subprocess.Popen[bytes]") -> None:
    for _ in range(900):
        assert server.poll() is None, "the server ended"
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
            return
        time.sleep(0.1)
    raise AssertionError("the server did not come up")


def shown(driver: Any, *words: str) -> str:
    """The page's text once it has these words; the first page of a server takes half a minute on a busy machine."""
    for _ in range(180):
        text = str(driver.find_element("tag name", "body").text)
        if all(word in text for word in words):
            return text
        time.sleep(0.5)
    raise AssertionError(f"MLflow does not show {words}: {text}")


def show_progress(folder: Path, cell: str) -> None:
    """Make the run of a cell that is shown while it runs."""
    from mlflow.entities import Metric

    client = client_of(folder)
    experiment = client.create_experiment("codechat", artifact_location=(folder / "artifacts").as_uri())
    run_id = client.create_run(experiment, tags={CELL_TAG: cell}).info.run_id
    for step in (0, 5, 10):
        names = ("sessions", "pass_rate", "tokens", "dollars", "errors")
        client.log_batch(run_id, [Metric(PROGRESS + name, step, 1000 * step, step) for name in names])


@pytest.mark.browser
def test_mlflow_opens_on_what_one_came_for(folder: Path) -> None:
    """What was counted while a cell ran comes behind everything else."""
    (folder / "mlflow").mkdir()
    show_progress(folder, "one")
    track(folder, "one")
    tracked = track(folder, "two")
    with serving(folder) as site, chromium(folder / "profile") as driver:
        driver.set_window_size(1900, 1600)
        driver.get(tracked.charts.replace("http://127.0.0.1:5000", site))
        text = shown(driver, "Add section", "pass_at_1", "delta_pct")
    places = [text.find(name) for name in ("pass_at_1", "turn/iar", "mst", "delta_pct", "\ncost", "\nprogress")]
    assert -1 not in places, text
    assert places == sorted(places), text
