"""Time and memory of `report` at the paper's scale: 8 models × 542 tasks × 10 turns of made-up sessions.

    python benchmarks/report_scale.py            # all of it
    python benchmarks/report_scale.py --share 10 # a tenth of the tasks

The cells are made first, in a folder of their own; then the command runs in a fresh process, as a user's would.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from codechat.testing.refine_cells import paper, write_cell

ROOT = Path(__file__).parent.parent

# About what a solution of these datasets has, with the reply around it and a history that grows by both each turn.
CODE = "def solve(values):\n" + "".join(f"    step_{n} = [value + {n} for value in values]\n" for n in range(14))
CODE += "    return step_13\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=int, default=1, help="make one task of so many only")
    share = parser.parse_args().share
    with tempfile.TemporaryDirectory(prefix="codechat-report-") as name:
        place = Path(name)
        started = time.monotonic()
        made = paper((164 // share, 378 // share), code=CODE, errored=1, overflows=1)
        for cell in made:
            write_cell(cell, place / "runs")
        size = sum(path.stat().st_size for path in place.rglob("sessions.jsonl"))
        making = time.monotonic() - started
        started = time.monotonic()
        command = [sys.executable, "-m", "codechat", "report", f"runs={place / 'runs'}", f"out={place / 'out'}"]
        subprocess.run(command, check=True, cwd=place, stdout=sys.stderr, env={"PYTHONPATH": str(ROOT), "PATH": ""})
        wall = time.monotonic() - started
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(json.dumps({
            "cells": len(made),
            "sessions": sum(cell.tasks for cell in made),
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
