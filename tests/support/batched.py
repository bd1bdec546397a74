"""Small cells whose calls go into batches, run in processes that can be killed at any moment."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codechat.testing.cells import without_times

# Each line of the input is a command, run by a fork of a process that has imported everything. With a number, the answers
# of batches after so many reach nobody, and the process dies once those before have had time to be written down.
FORKING = f"""
import asyncio, itertools, json, os, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import codechat.models.calls.transport, openai, pydantic_ai.direct, pydantic_ai.models.anthropic, pydantic_ai.providers.anthropic
from codechat.models.calls import batches
from codechat.cli.app import main
from codechat.testing.cells import register_instant
from support.batched import words
register_instant()
import numpy, codechat.cli.run, codechat.cli.run, codechat.run.run
from codechat import compose
compose([*words("http://nowhere", "."), "sandbox=instant"])  # each fork would load all of this anew
def give_no_more_than(most, give=batches._give):
    given = itertools.count(1)
    def giving(answer, result):
        number = next(given)
        if number <= most:
            give(answer, result)
        if number == most:
            asyncio.get_running_loop().call_later(0.3, os.kill, os.getpid(), 9)
    batches._give = giving
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            command, most = json.loads(line)
            if most is not None:
                give_no_more_than(most)
            status = main(command)
        finally:
            sys.stdout.flush()
            os._exit(status)
    print("child", child, flush=True)
    print("ended", os.waitpid(child, 0)[1], flush=True)
"""


def words(url: str, runs: Path, *more: str) -> list[str]:
    """A cell of three starter tasks and three turns in batches."""
    return [
        "tracking=none", "model=openai", f"model.base_url={url}", "model.name=fading-20", f"runs_dir={runs}",
        "dataset.limit=3", "agenda.turns=3", "model.cache=false", "model.tier=batch", "model.batch_poll_s=0.01", *more,
    ]  # fmt: skip


class Runner:
    """Runs commands in forks, one at a time."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._child = 0

    def run(self, command: list[str], *, answers: int | None = None) -> int:
        """The exit status of a command; -9 if it was killed, or after so many answers from batches."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([command, answers]) + "\n")
        self._process.stdin.flush()
        self._child = int(self._read("child"))
        return os.waitstatus_to_exitcode(int(self._read("ended")))

    def kill(self, by: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the command that runs."""
        os.kill(self._child, by)

    def _read(self, what: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(f"{what} "):
                return line.split()[1]
        raise AssertionError("the runner has ended")


@contextmanager
def runner() -> Iterator[Runner]:
    """A process that runs commands."""
    command = [sys.executable, "-c", FORKING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Runner(process)
        finally:
            process.kill()


def records(runs: Path) -> list[Any]:
    """The sessions of the one cell in a folder, without times and tiers."""
    (cell,) = runs.iterdir()
    lines = (cell / "sessions.jsonl").read_text().splitlines()
    return [_without_tiers(without_times(json.loads(line))) for line in lines]


def _without_tiers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_tiers(each) for key, each in value.items() if key != "tiers"}
    return [_without_tiers(each) for each in value] if isinstance(value, list) else value
