"""How long do four equal cells take at once, beside one of them?

    python benchmarks/launchers.py

Each cell holds dialogues with a server on loopback that answers in half a second. One cell is a command of its own, the
four are a sweep by `launcher=joblib`. Both are timed from the start of the command to its end, the second time after a
first one that works out what the references return and fills the caches of the files.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time

from codechat.testing import Answer, Call, OpenAIServer, dataset_tasks, fading_solver
from codechat.testing.cells import command


def main() -> int:
    """Print both times and their ratio; the exit status is 1 if the four take more than 1.5 times as long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds of an answer; default: 0.5")
    parser.add_argument("--tasks", type=int, default=24, help="tasks of a cell; default: 24")
    chosen = parser.parse_args()
    solver = fading_solver(dataset_tasks("starter"))

    async def slowly(call: Call) -> Answer | str:
        await asyncio.sleep(chosen.latency)
        answer = solver(call)
        assert isinstance(answer, Answer | str)
        return answer

    with OpenAIServer(slowly, keep_calls=False) as server:
        words = command(server.base_url, chosen.tasks, "runs")
        at = words.index("codechat") + 1
        sweep = [*words[:at], "-m", *words[at:], "seed=1,2,3,4", "launcher=joblib", "launcher.jobs=4"]
        seconds([*words, "seed=1"])
        one, four = seconds([*words, "seed=1"]), seconds(sweep)
    print(f"one cell {one:.1f} s, four at once {four:.1f} s: {four / one:.2f} times as long")
    return int(four > 1.5 * one)


def seconds(words: list[str]) -> float:
    """The time of a command in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
