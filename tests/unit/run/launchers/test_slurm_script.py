"""An element of an array on a SLURM that is played by programs of a few lines: what becomes of it once interrupted."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from codechat.cli import sweep
from codechat.run.launchers.slurm import Array, requeue, script


@pytest.fixture
def element(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of commands that element 2 of job 7 finds first."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "7")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "2")
    monkeypatch.setattr("time.sleep", lambda _: None)
    return tmp_path


def play(folder: Path, **programs: str) -> None:
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)


ASKED_TWICE = 'if [ -e "$0.asked" ]; then echo RUNNING; else : > "$0.asked"; echo "it is busy" >&2; exit 1; fi'
REFUSES_ONCE = 'if [ -e "$0.refused" ]; then echo "$@" > "$0.done"; else : > "$0.refused"; exit 1; fi'
DONE = 'echo "$@" > "$0.done"'


@pytest.mark.parametrize(
    ("squeue", "scontrol"), [(ASKED_TWICE, REFUSES_ONCE), ("echo SIGNALING", DONE), ("echo RUNNING", DONE)]
)
def test_an_interrupted_element_goes_back_also_if_the_cluster_is_busy(
    element: Path, squeue: str, scontrol: str, capsys: pytest.CaptureFixture[str]
) -> None:
    play(element, squeue=squeue, scontrol=scontrol)
    requeue()
    assert (element / "scontrol.done").read_text() == "requeue 7_2\n"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("squeue", "state"), [("echo COMPLETING", "COMPLETING"), ("exit 1", "unknown")])
def test_an_element_that_stays_away_says_so(
    element: Path, squeue: str, state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    play(element, squeue=squeue, scontrol=DONE)
    requeue()
    (told,) = capsys.readouterr().out.splitlines()
    assert told.startswith("element 2 ") and told.endswith(f" {state}")
    assert not (element / "scontrol.done").exists()


def test_an_element_that_is_asked_to_end_before_its_cell_begins_goes_back(
    element: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(element, squeue="echo RUNNING", scontrol=DONE)
    array = Array(element)
    array.add([[("seed=1",)], [("seed=2",)]])

    def interrupted(words: Sequence[str]) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(sweep, "compose", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep.run_cells([f"file={array.cells}", "element=2"])
    assert (element / "scontrol.done").read_text() == "requeue 7_2\n"


def test_the_script_becomes_the_process_of_its_cells(element: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(element, cell='echo "$$ $@"')
    monkeypatch.setattr(sys, "executable", str(element / "cell"))
    array = Array(element / "a folder")
    (element / "job.sh").write_text(script(array, "own", "echo prepared"))
    with subprocess.Popen(["bash", element / "job.sh"], stdout=subprocess.PIPE, text=True, cwd=element) as process:
        said, _ = process.communicate(timeout=60)
    assert said == f"prepared\n{process.pid} -m codechat cells file={array.cells} element=2\n"
