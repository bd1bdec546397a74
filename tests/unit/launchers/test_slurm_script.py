"""The job's script on a SLURM that is played by programs of a few lines: what becomes of an interrupted cell."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codechat.launchers.slurm import script

CELL = "#!/bin/sh\ntrap 'exit 130' TERM\necho ready\nwhile :; do sleep 0.1; done\n"


def played(folder: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> str:
    """What the script prints of a cell that is asked to end, with these commands of SLURM's."""
    for name, text in {"cell": CELL, **{name: f"#!/bin/sh\n{text}\n" for name, text in programs.items()}}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "cell"))
    (folder / "job.sh").write_text(script(folder, "own", {}, None))
    own = {"PATH": f"{folder}:{os.environ['PATH']}", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "2"}
    with subprocess.Popen(
        ["bash", folder / "job.sh"], stdout=subprocess.PIPE, text=True, env=own, cwd=folder
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        said = process.stdout.read()
        assert process.wait(60) in (130, 143)  # the cell may end while the cluster is asked
    return said


ASKED_TWICE = 'if [ -e asked ]; then echo RUNNING; else : > asked; echo "it is busy" >&2; exit 1; fi'
REFUSES_ONCE = 'if [ -e refused ]; then echo "$@"; else : > refused; exit 1; fi'


def test_a_busy_cluster_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert played(tmp_path, monkeypatch, squeue=ASKED_TWICE, scontrol=REFUSES_ONCE) == "requeue 7_2\n"


@pytest.mark.parametrize(("squeue", "state"), [("echo COMPLETING", "COMPLETING"), ("exit 1", "unknown")])
def test_a_cell_that_stays_away_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squeue: str, state: str
) -> None:
    said = played(tmp_path, monkeypatch, squeue=squeue, scontrol="echo no")
    assert said == f"element 2 is not put back into the queue: its state is {state}\n"
