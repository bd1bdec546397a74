"""Cells by a real SLURM of one node: an array, a time limit, a requeue, and no call that is paid for twice."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codechat.testing import OpenAIServer
from codechat.testing.cells import command
from support.processes import Slow, in_process, records_of, sweeps_of, wait_until
from support.slurm import lacking, slurm

pytestmark = [pytest.mark.slurm, pytest.mark.skipif(bool(lacking()), reason=lacking())]
LONG = 240
TURNS = 10


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    with slurm() as folder:
        yield folder


def sweep_of(url: str, folder: Path, *more: str, seeds: str = "1,2,3,4") -> "subprocess.CompletedProcess[str]":
    """A cell of two tasks with ten turns for each seed."""
    words = command(url, 2, "runs", f"agenda.turns={TURNS}", f"seed={seeds}", *more)
    words.remove("tracking=none")  # it may be among the further ones
    words.insert(words.index("codechat") + 1, "-m")
    return in_process(words, folder)


def logs_in(folder: Path) -> list[str]:
    """What the elements of the array printed."""
    return [path.read_text() for path in sorted((folder / "runs/.sweeps").glob("*/logs/*.log"))]


def queue() -> str:
    """What is in the queue."""
    return subprocess.run(["squeue", "--noheader"], capture_output=True, text=True, check=True).stdout


def test_cells_are_ended_at_the_time_limit_requeued_and_resumed(cluster: Path, tmp_path: Path) -> None:
    """Four cells, 80 calls; the records and the tag are those of the serial launcher."""
    folders = [tmp_path / "serial", tmp_path / "slurm"]
    for folder in folders:
        folder.mkdir()
    slow = Slow(LONG / TURNS)  # no cell ends before its time limit
    with OpenAIServer(slow) as server:
        options = ["launcher=slurm", "launcher.sbatch=--time=3", "launcher.setup=echo prepared"]
        done = sweep_of(server.base_url, folders[1], *options)
        assert done.returncode == 0, done.stderr
        assert "submitted 4 cells as job " in done.stderr
        assert "compare" not in done.stdout
        wait_until(lambda: len(server.calls) >= 8)
        done = sweep_of(server.base_url, folders[1], *options)
        assert "submitted" not in done.stderr, "what is in the queue is not submitted again"
        assert done.stdout.count(" runs ") == 4, done.stdout
        with OpenAIServer(Slow(0)) as other:  # while their time passes
            assert sweep_of(other.base_url, folders[0]).returncode == 0
        wait_until(lambda: all("interrupted: calls under way" in text for text in logs_in(folders[1])), LONG)
        assert len(server.calls) < 4 * 2 * TURNS
        slow.seconds = 0
        done = sweep_of(server.base_url, folders[1], *options, "launcher.wait=true")
        assert done.returncode == 0, "\n".join(
            [done.stdout, done.stderr, *logs_in(folders[1]), (cluster / "slurmctld.log").read_text()]
        )
        # a busy cluster may end elements before they ask to come back: they are submitted anew
        lost = sum(map(int, re.findall(r"submitted (\d+) cells? as job", done.stderr)))
        assert done.stdout.count(" done ") == 4
        assert len(server.calls) == 4 * 2 * TURNS == 80
    logs = logs_in(folders[1])
    assert 4 <= len(logs) <= 4 + lost, "an element that is lost before it starts leaves no log"
    assert sum(text.count("prepared\n") >= 2 for text in logs) >= 4 - lost >= 1, "the elements came back"
    assert records_of(folders[1] / "runs") == records_of(folders[0] / "runs")
    assert sweeps_of(folders[1], 4) == sweeps_of(folders[0], 4)


@pytest.mark.usefixtures("cluster")
def test_a_cancelled_cell_stays_away_until_it_is_submitted_again(tmp_path: Path) -> None:
    slow, words = Slow(4), ["launcher=slurm", "tracking=none"]
    with OpenAIServer(slow) as server:
        assert sweep_of(server.base_url, tmp_path, *words, seeds="1,2").returncode == 0
        wait_until(lambda: len(server.calls) >= 2)
        subprocess.run(["scancel", "--me"], check=True)
        wait_until(lambda: not queue())
        assert all("not put back" in text for text in logs_in(tmp_path))
        slow.seconds = 0
        done = sweep_of(server.base_url, tmp_path, *words, "launcher.wait=true", seeds="1,2")
        assert "submitted 2 cells" in done.stderr
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count(" done ") == 2
        assert len(server.calls) == 2 * 2 * TURNS


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("launcher.sbatch=--partition=nope", "invalid partition specified: nope"),
        ("launcher.sbatch=--gres=gpu:9", "Invalid generic resource"),
        ("launcher.sbatch=--no-such", "unrecognized option '--no-such'"),
    ],
)
def test_what_slurm_refuses_is_told(tmp_path: Path, option: str, told: str) -> None:
    done = sweep_of("http://127.0.0.1:9/v1", tmp_path, "launcher=slurm", option, seeds="1,2")
    assert done.returncode == 2, done.stdout
    assert told in done.stderr
    assert "`sinfo` lists its partitions" in done.stderr
    assert done.stderr.count("\n") <= 5


@pytest.mark.usefixtures("cluster")
def test_a_cell_that_cannot_run_is_shown_after_waiting(tmp_path: Path) -> None:
    """Its dataset was there when it was submitted."""
    row = {
        "task_id": "m/0",
        "prompt": "def f(x):\n",
        "entry_point": "f",
        "canonical_solution": "    return x\n",
        "tests": "assert f(1) == 1",
    }
    (tmp_path / "tasks.jsonl").write_text(json.dumps(row))
    words = [
        sys.executable,
        "-m",
        "codechat",
        "-m",
        "model=echo",
        "agenda.turns=2",
        "tracking=none",
        "dataset=jsonl",
        "dataset.path=tasks.jsonl",
        "launcher=slurm",
        "launcher.wait=true",
        "launcher.setup=rm tasks.jsonl",
    ]
    done = in_process(words, tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert " not run " in done.stdout


def test_without_sbatch_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    if shutil.which("sbatch"):
        pytest.skip("needs a Python without SLURM beside it")
    done = sweep_of("http://127.0.0.1:9/v1", tmp_path, "launcher=slurm", seeds="1,2")
    assert done.returncode == 2
    assert done.stderr.startswith("error: launcher=slurm ") and "`sbatch`" in done.stderr
    assert "launcher=joblib" in done.stderr
