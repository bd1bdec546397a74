"""Shards of one cell at once, and their merge, beside the same cell by one process.

    python benchmarks/shards.py --tasks 40 --latency 0.5 --concurrency 2 --shards 4

Every process is the command of a user. All ask one server on loopback, which answers after `latency` seconds; each asks
`concurrency` calls at once, which is what makes one process slow. `ratio` is the time of the shards and the merge, from
the first start to the last end, as a part of the time of the one process; imports and starts are within both.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from codechat.testing import Call, OpenAIServer, dataset_tasks, reference_solver
from codechat.testing.cells import records


def command(url: str, chosen: argparse.Namespace, runs: str, *more: str) -> list[str]:
    """The words that run the cell, or one shard of it."""
    return [
        sys.executable, "-m", "codechat", "tracking=none", "model=openai", f"model.base_url={url}", "model.name=m",
        f"model.max_concurrency={chosen.concurrency}", "model.cache=false", f"dataset.limit={chosen.tasks}",
        f"agenda.turns={chosen.turns}", f"runs_dir={runs}", *more,
    ]  # fmt: skip


def timed(commands: list[list[str]], folder: str) -> float:
    """The seconds that all commands take at once. Raises `CalledProcessError` if one fails."""
    started = time.monotonic()
    processes = [subprocess.Popen(each, cwd=folder, stdout=subprocess.DEVNULL) for each in commands]
    for process in processes:
        if process.wait():
            raise subprocess.CalledProcessError(process.returncode, process.args)
    return time.monotonic() - started


def main() -> None:
    """Measure once, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--shards", type=int, default=4)
    chosen = parser.parse_args()
    solve = reference_solver(dataset_tasks("starter"))

    async def late(call: Call) -> Any:
        await asyncio.sleep(chosen.latency)
        return solve(call)

    with tempfile.TemporaryDirectory() as folder, OpenAIServer(late, keep_calls=False) as server:
        alone = timed([command(server.base_url, chosen, "alone")], folder)
        calls = server.answered
        whole = command(server.base_url, chosen, "parts")
        parts = [[*whole, f"shard.index={index}", f"shard.count={chosen.shards}"] for index in range(chosen.shards)]
        together, merged = timed(parts, folder), timed([whole], folder)
        figures = {
            "alone_s": round(alone, 1),
            "shards_s": round(together, 1),
            "merge_s": round(merged, 1),
            "ratio": round((together + merged) / alone, 3),
            "calls": [calls, server.answered - calls],
            "equal": records(Path(folder) / "alone") == records(Path(folder) / "parts"),
        }
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
