"""Time and memory of `report` at the paper's scale: 8 models × 542 tasks × 10 turns.

    python benchmarks/report_scale.py            # all of it
    python benchmarks/report_scale.py --share 10 # a tenth of the tasks

The cells are the drifter's on the starter tasks, one for each model and dataset. Their sessions are copied until there
are as many as the dataset has tasks. Then the command runs in a fresh process, as a user's would.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

from codechat import compose, run
from codechat.base.records import read_sessions, write_sessions
from codechat.report.metrics.measures import FIELD
from codechat.studies.refine.metrics import refine_metrics

ROOT = Path(__file__).parent.parent
MODELS = 8
TASKS = (164, 378)


def make_cell(runs: Path, number: int, tasks: int) -> None:
    """A finished cell of so many sessions."""
    words = ["model=drifter", f"model.name=model-{number}", f"seed={number + MODELS * tasks}", "tracking=none"]
    outcome = run(compose([*words, f"runs_dir={runs / str(tasks)}"]))
    sessions = list(read_sessions(outcome.folder / "sessions.jsonl"))
    copies = [
        session.model_copy(update={"task_id": f"{session.task_id}/{copy}", "session_id": f"{session.session_id}{copy}"})
        for copy, session in enumerate(islice(cycle(sessions), tasks))
    ]
    write_sessions(outcome.folder / "sessions.jsonl", copies)
    assert outcome.metrics is not None
    metrics = {**refine_metrics(copies, seed=number), FIELD: outcome.metrics[FIELD]}
    (outcome.folder / "metrics.json").write_text(json.dumps(metrics))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=int, default=1, help="make one task of so many only")
    share = parser.parse_args().share
    with tempfile.TemporaryDirectory(prefix="codechat-report-") as name:
        place = Path(name)
        started = time.monotonic()
        for tasks in TASKS:
            for number in range(MODELS):
                make_cell(place / "runs", number, tasks // share)
        size = sum(path.stat().st_size for path in place.rglob("sessions.jsonl"))
        making = time.monotonic() - started
        started = time.monotonic()
        folders = ",".join(str(folder) for folder in sorted((place / "runs").iterdir()))
        command = [sys.executable, "-m", "codechat", "report", f"runs={folders}", f"out={place / 'out'}"]
        subprocess.run(command, check=True, cwd=place, stdout=sys.stderr, env={"PYTHONPATH": str(ROOT), "PATH": ""})
        wall = time.monotonic() - started
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(json.dumps({
            "cells": MODELS * len(TASKS),
            "sessions": MODELS * sum(tasks // share for tasks in TASKS),
            "sessions_mb": round(size / 1e6, 1),
            "making_s": round(making, 1),
            "report_wall_s": round(wall, 1),
            "report_cpu_s": round(used.ru_utime + used.ru_stime, 1),
            "report_peak_mb": round(used.ru_maxrss / 1024, 1),
            "page_mb": round((place / "out" / "index.html").stat().st_size / 1e6, 2),
            "out_mb": round(sum(p.stat().st_size for p in (place / "out").rglob("*") if p.is_file()) / 1e6, 1),
        }, indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
