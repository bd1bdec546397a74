"""Does a cell survive kills and faults with the same records, without asking twice?

Two tests against a local OpenAI-protocol server. Both print a line of JSON, and exit 1 if something was lost::

    python benchmarks/endurance.py crash --kills 30
    python benchmarks/endurance.py faults --share 0.2
"""

import argparse
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codechat.testing import (
    CUT_SHORT,
    EMPTY_CHOICES,
    RESET,
    TRUNCATED_JSON,
    Call,
    OpenAIServer,
    dataset_tasks,
    error,
    fading_solver,
    rate_limited,
    stall,
)
from codechat.testing.cells import CONCURRENCY, command, digest, records

PATIENT = ("model.timeout_s=2", "model.call_timeout_s=120", "model.max_retries=12")
FAULTS = (
    rate_limited(), rate_limited(0.05), error(500, "internal"), error(503, "overloaded"),
    RESET, stall(3.0), TRUNCATED_JSON, CUT_SHORT, EMPTY_CHOICES,
)  # fmt: skip


def committed(runs: Path) -> set[str]:
    """The digests of all requests whose replies the journal holds."""
    found: set[str] = set()
    for path in runs.glob("*/journal.db"):
        with closing(sqlite3.connect(path)) as database:
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
            if "steps" in tables:
                found |= {row[0] for row in database.execute("SELECT digest FROM steps WHERE name LIKE '%/reply'")}
    return found


@dataclass(frozen=True)
class CrashReport:
    """What the kills cost."""

    kills: int
    requests: int
    needed: int
    asked_again: int
    in_flight_at_most: int  # a call keeps its slot until its reply is committed
    committed_asked_again: int
    same_records: bool

    @property
    def good(self) -> bool:
        kept = not self.committed_asked_again and self.asked_again <= self.in_flight_at_most
        return self.same_records and kept and self.requests == self.needed + self.asked_again


def crash_test(folder: Path, kills: int, tasks: int, seed: int = 0) -> CrashReport:
    """Kill one cell's process `kills` times at random moments, let it finish, compare with an undisturbed run."""
    luck = random.Random(seed)
    answer = fading_solver(dataset_tasks("starter"))

    def slowly(call: Call) -> Any:
        time.sleep(luck.uniform(0.0, 0.01))
        return answer(call)

    with OpenAIServer(slowly) as server:
        _finish(command(server.base_url, tasks, str(folder / "plain")), folder)
        needed = len(server.calls)
        server.calls.clear()
        disturbed, again = folder / "disturbed", command(server.base_url, tasks, str(folder / "disturbed"))
        done: set[str] = set()
        bad = seen = 0
        for _ in range(kills):
            # each kill comes after a few more answers, so that the kills are spread over the whole run
            _kill_after(again, folder, server, luck.randint(1, max(1, 2 * needed // kills - 1)), luck)
            bad += sum(digest(call) in done for call in server.calls[seen:])
            seen, done = len(server.calls), committed(disturbed)
        _finish(again, folder)
        bad += sum(digest(call) in done for call in server.calls[seen:])
        repeats = sum(count - 1 for count in Counter(map(digest, server.calls)).values())
        same = records(folder / "plain") == records(disturbed)
    return CrashReport(kills, len(server.calls), needed, repeats, CONCURRENCY * kills, bad, same)


def _kill_after(words: list[str], folder: Path, server: OpenAIServer, answers: int, luck: random.Random) -> None:
    goal = len(server.calls) + answers
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _wait(lambda: len(server.calls) >= goal or process.poll() is not None)
        time.sleep(luck.uniform(0.0, 0.03))
        process.send_signal(signal.SIGKILL)


def _finish(words: list[str], folder: Path) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the cell makes no progress")
        time.sleep(0.005)


@dataclass(frozen=True)
class FaultReport:
    """What the faults cost."""

    requests: int
    faults: int
    completed: int
    sessions: int
    retries: int
    same_records: bool

    @property
    def good(self) -> bool:
        return self.same_records and self.completed == self.sessions and self.faults > 0


def fault_test(folder: Path, share: float, tasks: int, seed: int = 0) -> FaultReport:
    """The same cell with a share of failing requests, every kind of fault among them, and without."""
    luck, answer, faults = random.Random(seed), fading_solver(dataset_tasks("starter")), _forever()
    met = 0

    def moody(call: Call) -> Any:
        nonlocal met
        if luck.random() < share:
            met += 1
            return next(faults)
        return answer(call)

    for name, behaviour in (("plain", answer), ("faulty", moody)):
        with OpenAIServer(behaviour) as server:
            words = command(server.base_url, tasks, str(folder / name), *PATIENT)
            _finish(words, folder)
            requests = len(server.calls)
    (cell,) = (folder / "faulty").iterdir()
    metrics = json.loads((cell / "metrics.json").read_text())
    same = records(folder / "plain") == records(folder / "faulty")
    return FaultReport(requests, met, metrics["completed"], metrics["sessions"], metrics["retries"], same)


def _forever() -> Iterator[Any]:
    while True:
        yield from FAULTS


def main() -> int:
    """Run one of the tests in a temporary folder; the exit status says whether it held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("test", choices=["crash", "faults"])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if chosen.test == "crash":
            report: CrashReport | FaultReport = crash_test(Path(folder), chosen.kills, chosen.tasks, chosen.seed)
        else:
            report = fault_test(Path(folder), chosen.share, chosen.tasks, chosen.seed)
    print(json.dumps(asdict(report)))
    print("held" if report.good else "BROKEN")
    return 0 if report.good else 1


if __name__ == "__main__":
    sys.exit(main())
