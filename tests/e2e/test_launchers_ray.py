"""Cells as tasks of a Ray cluster, where Ray is installed: it is not among what the tests install, for its size."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from codechat.testing import OpenAIServer
from codechat.testing.cells import command
from support.processes import Slow, metrics_of, records_of, sweeps_of, wait_until

pytestmark = [pytest.mark.ray, pytest.mark.skipif(find_spec("ray") is None, reason="needs codechat[ray]")]
LONG = 240


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cluster of one node, which launcher.address=auto finds."""
    folder = tmp_path_factory.mktemp("ray")
    words = [str(Path(sys.executable).parent / "ray"), "start", "--head", "--block", "--node-ip-address=127.0.0.1"]
    words += ["--port=6379", "--num-cpus=4", "--include-dashboard=false", "--disable-usage-stats"]
    with pytest.MonkeyPatch.context() as patch, (folder / "log").open("wb") as log:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        process = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            wait_until(lambda: "Ray runtime started" in (folder / "log").read_text())
            yield
        finally:
            process.terminate()
            process.wait(60)


def run(words: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    folder.mkdir(exist_ok=True)
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=LONG, check=False)


@pytest.mark.usefixtures("cluster")
def test_four_cells_are_those_of_the_serial_launcher(tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "codechat",
        "-m",
        "model=drifter",
        "dataset.limit=3",
        "agenda.turns=3",
        "seed=1,2,3,4",
    ]
    for launcher in ("serial", "ray"):
        done = run([*words, f"launcher={launcher}"], tmp_path / launcher)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.partition("\nsweep adhoc-")[2].count(" done ") == 4
    serial, ray = tmp_path / "serial", tmp_path / "ray"
    assert records_of(ray / "runs") == records_of(serial / "runs")
    assert metrics_of(ray / "runs") == metrics_of(serial / "runs")
    assert sweeps_of(ray, 4) == sweeps_of(serial, 4)


@pytest.mark.usefixtures("cluster")
def test_an_interruption_keeps_what_is_recorded(tmp_path: Path) -> None:
    with OpenAIServer(Slow(0.3)) as server:
        words = command(server.base_url, 4, "runs", "agenda.turns=6", "seed=1,2,3,4", "launcher=ray")
        words.insert(words.index("codechat") + 1, "-m")
        process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)  # fmt: skip
        wait_until(lambda: len(server.calls) > 20)
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=LONG)
        assert process.returncode == 130, output + errors
        done = run(words, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(server.calls) == 4 * 4 * 6, "a reply was paid for twice"
