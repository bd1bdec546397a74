"""What it costs a cell to be shown in MLflow while it runs: `python benchmarks/live.py --pairs 5`.

The same cell, with `tracking.live` true and false by turns, each in a fresh process with an MLflow store (SQLite) of
its own that was made before: `--sessions` dialogues of ten turns with a local server, in a process of its own, that
answers after `--latency` seconds. Everything is real: sandbox, rules, journal, metrics, figures, tracking.

Printed are the medians over all pairs, and of the differences within pairs: the seconds of the whole process, and the
CPU seconds of its own threads (without the sandbox's processes, whose share is the same). `points` is how often the
progress was logged, and `a point` what one costs in CPU, measured in the thread that logs it: that figure is steady,
also on a machine that is busy otherwise. Its share of the `PAUSE_S` between two points is what a long cell pays.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def serve(latency: float) -> None:
    """Serve until killed: every answer is the starter task's reference, `latency` seconds late."""
    import asyncio

    from codechat.testing import Call, OpenAIServer, dataset_tasks, reference_solver

    solve = reference_solver(dataset_tasks("starter"))

    async def late(call: Call) -> Any:
        await asyncio.sleep(latency)
        return solve(call)

    with OpenAIServer(late, keep_calls=False) as server:
        print(server.base_url, flush=True)
        time.sleep(36_000)


def cell(words: list[str]) -> None:
    """Run a cell in this process, and print what it took."""
    import resource

    from codechat.cli.app import main as codechat
    from codechat.report.tracking.live import LiveRun

    spent: list[float] = []
    log = LiveRun._log

    def timed(run: LiveRun) -> None:
        before = time.thread_time()
        log(run)
        spent.append(time.thread_time() - before)

    LiveRun._log = timed  # type: ignore[method-assign,assignment]
    began = time.perf_counter()
    status = codechat(words)
    used = resource.getrusage(resource.RUSAGE_SELF)
    took = {"wall_s": time.perf_counter() - began, "cpu_s": used.ru_utime + used.ru_stime, "points": spent}
    print(json.dumps(took | {"status": status}))


def make_store(folder: Path) -> None:
    """An empty store: making one takes seconds, and a cell finds the one of the cell before."""
    from codechat.report.tracking import TRACKING

    tracker: Any = TRACKING.build(TRACKING.validate({"kind": "mlflow", "uri": f"sqlite:///{folder}/store.db"}))
    tracker.open(folder / "runs")


def measure(live: bool, url: str, store: Path, sessions: int, concurrency: int) -> dict[str, Any]:
    """Run the cell once in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "mlflow").mkdir()
        shutil.copy(store, Path(folder, "mlflow", "store.db"))
        words = [
            "model=openai", f"model.base_url={url}", "model.name=m", "model.api_key_env=null", "model.cache=false",
            f"model.max_concurrency={concurrency}", f"dataset.limit={sessions}", f"tracking.live={str(live).lower()}",
        ]  # fmt: skip
        command = [sys.executable, str(Path(__file__).absolute()), "--role=cell", *words]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["status"] == 0, done.stderr
    return found


def main() -> None:
    """Run the pairs, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--role", choices=["serve", "cell"], help=argparse.SUPPRESS)
    chosen, words = parser.parse_known_args()
    if chosen.role == "serve":
        serve(chosen.latency)
    elif chosen.role == "cell":
        cell(words)
    else:
        _compare(chosen.pairs, chosen.sessions, chosen.latency, chosen.concurrency)


def _compare(pairs: int, sessions: int, latency: float, concurrency: int) -> None:
    command = [sys.executable, __file__, "--role=serve", f"--latency={latency}"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as folder:
            make_store(Path(folder))
            store = Path(folder, "store.db")
            found: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
            for number in range(pairs):
                for live in (True, False) if number % 2 else (False, True):
                    found[live].append(measure(live, url, store, sessions, concurrency))
                    took = found[live][-1]
                    print(f"live={live!s:<5} wall {took['wall_s']:.2f} s, CPU {took['cpu_s']:.2f} s", flush=True)
        _show(found)
    finally:
        server.kill()
        server.wait()


def _show(found: dict[bool, list[dict[str, Any]]]) -> None:
    from codechat.report.tracking.live import PAUSE_S

    for name in ("wall_s", "cpu_s"):
        shown, hidden = ([each[name] for each in found[live]] for live in (True, False))
        difference = statistics.median(one - other for one, other in zip(shown, hidden, strict=True))
        usual = statistics.median(hidden)
        print(
            f"{name:<7} live {statistics.median(shown):.2f}, not {usual:.2f}; "
            f"median difference {difference:+.2f} s = {100 * difference / usual:+.1f} %"
        )
    points = [seconds for each in found[True] for seconds in each["points"][1:]]  # the first opens the connection
    one = statistics.median(points)
    print(f"points {len(points) / len(found[True]):.0f} a cell, a point {1000 * one:.1f} ms of CPU", end=" ")
    print(f"= {100 * one / PAUSE_S:.2f} % of {PAUSE_S:.0f} s")


if __name__ == "__main__":
    main()
