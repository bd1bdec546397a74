"""The job's script on a SLURM that is played by programs of a few lines: what becomes of an interrupted cell."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codechat.run.launchers.slurm import script

CELL = "#!/bin/sh\ntrap 'exit 130' TERM\necho ready\nwhile :; do sleep 0.1; done\n"


def played(folder: Path, monkeypatch: pytest.MonkeyPatch, setup: str | None = None, **programs: str) -> str:
    """What the script prints of a cell that is asked to end, by its setup or else once it runs, with these commands."""
    for name, text in {"cell": CELL, **{name: f"#!/bin/sh\n{text}\n" for name, text in programs.items()}}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "cell"))
    (folder / "job.sh").write_text(script(folder, "own", {}, setup))
    own = {"PATH": f"{folder}:{os.environ['PATH']}", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "2"}
    with subprocess.Popen(
        ["bash", folder / "job.sh"], stdout=subprocess.PIPE, text=True, env=own, cwd=folder
    ) as process:
        assert process.stdout is not None
        if setup is None:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGTERM)
        said = process.stdout.read()
        assert process.wait(60) in (130, 143)  # the cell may end while the cluster is asked
    return said


# Their files lie beside them: the job's script runs in the folder of whoever starts it.
ASKED_TWICE = 'if [ -e "$0.asked" ]; then echo RUNNING; else : > "$0.asked"; echo "it is busy" >&2; exit 1; fi'
REFUSES_ONCE = 'if [ -e "$0.refused" ]; then echo "$@"; else : > "$0.refused"; exit 1; fi'


def test_a_busy_cluster_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert played(tmp_path, monkeypatch, squeue=ASKED_TWICE, scontrol=REFUSES_ONCE) == "requeue 7_2\n"


def test_a_cell_whose_signal_is_not_yet_delivered_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert played(tmp_path, monkeypatch, squeue="echo SIGNALING", scontrol='echo "$@"') == "requeue 7_2\n"


def test_a_cell_that_is_asked_before_it_begins_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = played(tmp_path, monkeypatch, "kill -TERM $$", squeue="echo RUNNING", scontrol='echo "$@"')
    assert said.removeprefix("ready\n") == "requeue 7_2\n"


@pytest.mark.parametrize(("squeue", "state"), [("echo COMPLETING", "COMPLETING"), ("exit 1", "unknown")])
def test_a_cell_that_stays_away_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squeue: str, state: str
) -> None:
    said = played(tmp_path, monkeypatch, squeue=squeue, scontrol="echo no")
    assert said == f"element 2 is not put back into the queue: its state is {state}\n"
