"""A cell that is stopped, by the user or by its budget: calls under way are kept, and no call is ever sent twice."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from codechat.testing import Call, OpenAIServer, dataset_tasks, fading_solver
from codechat.testing.cells import CONCURRENCY, command, digest, records
from codechat.testing.cells import without_times as without_seconds
from support.processes import Slow, wait_until
from support.processes import in_process as run

pytestmark = pytest.mark.long

SMALL = ("agenda.turns=3",)
LONG = 300


class Held:
    """Answers once it is told to; a gate that tests open."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self._answer = fading_solver(dataset_tasks("starter"))

    async def __call__(self, call: Call) -> Any:
        while not self.open.is_set():  # noqa: ASYNC110  the event belongs to another thread
            await asyncio.sleep(0.01)
        return self._answer(call)


def start(words: list[str], folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def process(words: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=LONG, check=False)


def until_busy(server: OpenAIServer, process: "subprocess.Popen[str]") -> None:
    for _ in range(100 * LONG):
        if server.in_flight == CONCURRENCY:
            return
        assert process.poll() is None, process.communicate()
        threading.Event().wait(0.01)
    raise AssertionError("the cell asks nothing")


def interrupt(process: "subprocess.Popen[str]", how: int) -> str:
    """Send the signal, and wait until it is heeded."""
    assert process.stderr is not None
    process.send_signal(how)
    while line := process.stderr.readline():
        if "interrupted" in line:
            return line
    raise AssertionError("nothing was said of the interruption")


def most_often(server: OpenAIServer) -> int:
    return max(Counter(map(digest, server.calls)).values())


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_one_interruption_finishes_the_calls_under_way_and_starts_none(tmp_path: Path, how: int) -> None:
    held = Held()
    with OpenAIServer(held) as server:
        words = command(server.base_url, 8, "runs", *SMALL)
        with start(words, tmp_path) as process:
            until_busy(server, process)
            interrupt(process, how)
            held.open.set()
            _, errors = process.communicate(timeout=LONG)
        assert process.returncode == 130, errors
        assert "Resume: " in errors
        assert "Traceback" not in errors
        assert len(server.calls) == CONCURRENCY, "no call was started after the interruption"
        done = run(words, tmp_path)
        assert done.returncode == 0, done.stderr
        assert len(server.calls) == 8 * 3
        assert most_often(server) == 1, "a reply that came after the interruption was paid for again"
        run(command(server.base_url, 8, "plain", *SMALL), tmp_path)
    assert records(tmp_path / "runs") == records(tmp_path / "plain")


def test_a_second_interruption_ends_at_once_and_the_journal_resumes(tmp_path: Path) -> None:
    held = Held()
    with OpenAIServer(held) as server:
        words = command(server.base_url, 4, "runs", *SMALL)
        with start(words, tmp_path) as process:
            until_busy(server, process)
            interrupt(process, signal.SIGINT)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)  # well before calls under way would be given up
        assert process.returncode == 130
        assert "Resume: " in errors
        assert "Traceback" not in errors
        held.open.set()
        done = run(words, tmp_path)
        assert done.returncode == 0, done.stderr
        assert most_often(server) == 2, "only what was under way is asked again"
    assert len(records(tmp_path / "runs")) == 4


def test_an_interrupted_sweep_ends_with_the_table_of_its_cells(tmp_path: Path) -> None:
    held = Held()
    with OpenAIServer(held) as server:
        words = command(server.base_url, 4, "runs", *SMALL, "seed=1,2")
        words.insert(words.index("codechat") + 1, "-m")
        with start(words, tmp_path) as process:
            until_busy(server, process)
            interrupt(process, signal.SIGINT)
            held.open.set()
            output, errors = process.communicate(timeout=LONG)
    assert process.returncode == 130
    (row,) = [line for line in output.splitlines() if "interrupted" in line]
    assert "seed=1" in row
    assert "codechat -m tracking=none" in errors, "the command that resumes the sweep"
    assert "cell 2 of 2" not in output


def test_a_budget_ends_a_cell_and_a_higher_one_resumes_it(tmp_path: Path) -> None:
    with OpenAIServer(fading_solver(dataset_tasks("starter"))) as server:
        priced = (*SMALL, "model.prices={input: 1000000, output: 0}")  # a dollar a token
        words = command(server.base_url, 12, "runs", *priced)
        done = run([*words, "budget_usd=6500"], tmp_path)
        assert done.returncode == 3, done.stdout + done.stderr
        assert "$6,500.00 (budget_usd)" in done.stderr
        assert "a higher budget_usd" in done.stderr
        (cell,) = (tmp_path / "runs").iterdir()
        metrics = json.loads((cell / "metrics.json").read_text())
        assert 0 < metrics["completed"] < 12
        assert metrics["sessions"] == 12
        sessions = [json.loads(line) for line in (cell / "sessions.jsonl").read_text().splitlines()]
        cut = [session for session in sessions if session["status"] == "errored"]
        assert len(cut) == metrics["errored"] == 12 - metrics["completed"]
        (error,) = {session["error"] for session in cut}
        assert error.startswith("not finished: ") and "$6,500.00 (budget_usd)" in error
        used = metrics["tokens"]["model"]["input_tokens"]
        assert metrics["cost_usd"] == {"model": used, "judge": None}
        assert 6500 <= metrics["spent_usd"]["model"] < 8000, "calls under way were finished, and no more started"
        asked = len(server.calls)
        again = run([*words, "budget_usd=6500"], tmp_path)
        assert again.returncode == 3
        assert len(server.calls) == asked, "the budget holds over all processes"
        more = run([*words, "budget_usd=1000000"], tmp_path)
        assert more.returncode == 0, more.stderr
        assert most_often(server) == 1
        assert len(server.calls) == 12 * 3
        tokens = run([*command(server.base_url, 12, "other", *SMALL), "budget_tokens=9000"], tmp_path)
        assert tokens.returncode == 3
        assert "9,000 tokens (budget_tokens)" in tokens.stderr


def test_a_budget_in_dollars_needs_a_price(tmp_path: Path) -> None:
    done = run(command("http://127.0.0.1:9/v1", 1, "runs", "budget_usd=5"), tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: budget_usd ") and "model.prices=" in done.stderr
    assert "model.prices=" in done.stderr
    assert not (tmp_path / "runs").exists()


def with_mounts(script: str, words: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a shell script whose mounts nobody else sees; `"$@"` are the words."""
    unshare = ["unshare", "-m" if os.geteuid() == 0 else "-Urm"]
    if not shutil.which("unshare") or process([*unshare, "mount", "-t", "tmpfs", "none", "/mnt"], folder).returncode:
        pytest.skip("needs the right to mount")
    (folder / "runs").mkdir()
    return process([*unshare, "sh", "-c", script, "sh", *words], folder)


def test_a_full_disk_is_told_and_leaves_what_resumes(tmp_path: Path) -> None:
    """The disk is full in the middle of the cell; then it is enlarged, and the same command run again."""
    script = (
        'mount -t tmpfs -o size=400k none runs && "$@"; echo "status $?"; '
        'mount -o remount,size=50m runs && "$@" >&2 && cp -r runs/* kept'
    )
    (tmp_path / "kept").mkdir()
    with OpenAIServer(fading_solver(dataset_tasks("starter"))) as server:
        done = with_mounts(script, command(server.base_url, 8, "runs"), tmp_path)
        assert done.returncode == 0, done.stderr
        assert "status 2" in done.stdout
        told = done.stderr.partition("fading-12")[0].strip().splitlines()
        assert "cannot write" in told[0], told
        assert "free some space" in done.stderr
        assert len(told) <= 5
        assert "Traceback" not in done.stderr
        assert len(server.calls) - 8 * 10 <= 2 * CONCURRENCY, "what was committed is not asked again"
        run(command(server.base_url, 8, "plain"), tmp_path)
    (cell,) = (tmp_path / "kept").iterdir()
    (plain,) = (tmp_path / "plain").iterdir()
    assert timeless(cell) == timeless(plain)


def timeless(cell: Path) -> list[Any]:
    lines = (cell / "sessions.jsonl").read_text().splitlines()
    return [without_seconds(json.loads(line)) for line in lines]


def test_a_read_only_folder_is_told(tmp_path: Path) -> None:
    script = 'mount --bind runs runs && mount -o remount,bind,ro runs && "$@"'
    done = with_mounts(script, command("http://127.0.0.1:9/v1", 1, "runs"), tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "cannot write" in done.stderr
    assert "runs_dir" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_killed_process_counts_its_time(tmp_path: Path) -> None:
    """Up to its last write, at most two calls and a second before the kill."""
    answer = Slow(0.4)
    with OpenAIServer(answer) as server:
        words = command(server.base_url, 6, "runs", "agenda.turns=4", "judge=rules", "model.max_concurrency=2")
        with start(words, tmp_path) as process:
            wait_until(lambda: server.calls)
            began = time.monotonic()
            wait_until(lambda: len(server.calls) >= 18)
            killed_s = time.monotonic() - began
            process.kill()
        answer.seconds = 0.1
        resumed = time.monotonic()
        left = 24 - len(server.calls)
        done = run(words, tmp_path)
        assert done.returncode == 0, done.stderr
        whole_s = killed_s + time.monotonic() - resumed
    (metrics,) = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/metrics.json")]
    assert killed_s > 2.5
    assert killed_s - 1.0 - 2 * 0.4 + left * 0.1 / 2 < metrics["wall_s"] < whole_s + 20
