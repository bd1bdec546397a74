"""Do memory and speed stay flat from 1,000 to 10,000 sessions of ten turns?

    python benchmarks/scale.py --sessions 1000 3000 10000

A model answers at once from a script and an instant sandbox passes everything, so that what is left is the engine:
agenda, selection by the rules, extraction, journal, records, metrics. Each size is a process of its own, which also
tells what it held before the first session (interpreter, libraries, the dataset's tasks) and the seconds of the end:
sessions.jsonl, metrics with their intervals.
"""

import argparse
import asyncio
import dataclasses
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any


def resident_mb() -> float:
    """The memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def peak_mb() -> float:
    """The most that it ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Watch(threading.Thread):
    """The most that the write-ahead log of a journal ever was, in MB."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.most, self._over = folder, 0.0, threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.25):
            for path in self.folder.glob("*/journal.db-wal"):
                self.most = max(self.most, path.stat().st_size / 2**20)

    def stop(self) -> float:
        self._over.set()
        return self.most


def cell_of(sessions: int, folder: str) -> Any:
    """A cell over the starter tasks, repeated under other names."""
    from instant import register

    from codechat.run.cell import build_cell
    from codechat.run.settings.compose import compose
    from codechat.testing import dataset_tasks

    tasks = dataset_tasks("starter")
    register([task.reference or "" for task in tasks])
    words = ["sandbox=instant", "tracking=none", "model=instant", f"runs_dir={folder}", "model.max_concurrency=64"]
    many = tuple(dataclasses.replace(tasks[n % len(tasks)], task_id=f"t/{n}") for n in range(sessions))
    return dataclasses.replace(build_cell(compose(words)), tasks=many)


def measure(sessions: int, place: str | None) -> dict[str, float]:
    """One size, in this process."""
    from codechat.models.calls import Brake
    from codechat.report.metrics import Effort
    from codechat.report.metrics.spending import Tariff
    from codechat.run.cell.budget import Budget
    from codechat.run.journal import Journal
    from codechat.run.running.observer import Silent
    from codechat.run.running.sessions import SessionsInJournal, run_missing_sessions

    with tempfile.TemporaryDirectory(dir=place) as folder:
        base = resident_mb()
        cell = cell_of(sessions, folder)
        before = resident_mb()
        journal, watch = Journal(cell.folder / "journal.db"), Watch(Path(folder))
        watch.start()
        began, cpu = time.perf_counter(), time.process_time()
        asyncio.run(run_missing_sessions(cell, journal, Silent(), Brake(), Budget(None, None, Tariff())))
        wall, cpu = time.perf_counter() - began, time.process_time() - cpu
        during, began = peak_mb(), time.perf_counter()
        SessionsInJournal(cell, journal).write()
        cell.protocol.metrics(SessionsInJournal(cell, journal), seed=0, effort=Effort())
        journal.close()
        return {
            "sessions": sessions,
            "dataset_mb": before - base,
            "before_mb": before,
            "peak_held_mb": during,
            "peak_mb": peak_mb(),
            "sessions_per_s": sessions / wall,
            "cpu_ms_per_turn": 1000 * cpu / sessions / 10,
            "end_s": time.perf_counter() - began,
            "wal_mb": watch.stop(),
            "journal_mb": (cell.folder / "journal.db").stat().st_size / 2**20,
        }


def main() -> None:
    """Measure each size, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, nargs="+", default=[1000, 3000, 10000])
    parser.add_argument("--folder", help="where the cell lies: on a memory disk no fsync waits for a device")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measure(chosen.one, chosen.folder)))
        return
    for number, sessions in enumerate(chosen.sessions):
        words = [
            sys.executable,
            __file__,
            f"--one={sessions}",
            *([f"--folder={chosen.folder}"] if chosen.folder else []),
        ]
        found = json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout)
        if number == 0:
            print("  ".join(f"{name:>15}" for name in found))
        print("  ".join(f"{value:>15,.1f}" for value in found.values()), flush=True)


if __name__ == "__main__":
    main()
