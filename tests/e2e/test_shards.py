"""Shards of a cell, each by a process of its own: merged, they are the cell that one process would have made."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from codechat.testing import Call, OpenAIServer, dataset_tasks, fading_solver
from codechat.testing.cells import command, digest, records, without_times
from support.processes import in_process as run

pytestmark = pytest.mark.long

TASKS, TURNS = 6, 3
SMALL = (f"agenda.turns={TURNS}", "hardware.workers=1")
LONG = 300


def words(server: OpenAIServer, runs: str, *more: str) -> list[str]:
    return [word for word in command(server.base_url, TASKS, runs, *SMALL, *more) if word != "tracking=none"]


def shard(index: int, count: int) -> list[str]:
    return [f"shard.index={index}", f"shard.count={count}"]


def together(commands: list[list[str]], folder: Path) -> list["subprocess.CompletedProcess[str]"]:
    started = [
        subprocess.Popen(each, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for each in commands
    ]
    ended = [(each.args, *each.communicate(timeout=LONG), each.returncode) for each in started]
    return [subprocess.CompletedProcess(args, status, out, err) for args, out, err, status in ended]


def one_cell(runs: Path) -> Path:
    (cell,) = runs.iterdir()
    return cell


def measured(runs: Path) -> Any:
    return without_times(json.loads((one_cell(runs) / "metrics.json").read_text()))


def asked(calls: list[Call]) -> Counter[str]:
    return Counter(map(digest, calls))


class Plain:
    """The cell as one process makes it: its records, metrics, config and calls."""

    def __init__(self, folder: Path) -> None:
        with OpenAIServer(fading_solver(dataset_tasks("starter"))) as server:
            done = run(words(server, "runs", "tracking=none"), folder)
            assert done.returncode == 0, done.stderr
            self.calls = asked(server.calls)
        self.records, self.metrics = records(folder / "runs"), measured(folder / "runs")
        self.name = one_cell(folder / "runs").name
        self.config = (one_cell(folder / "runs") / "config.yaml").read_text().replace(server.base_url, "URL")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Plain:
    return Plain(tmp_path_factory.mktemp("plain"))


def check_equal(runs: Path, server: OpenAIServer, plain: Plain) -> None:
    assert records(runs) == plain.records
    assert measured(runs) == plain.metrics
    assert asked(server.calls) == plain.calls, "nothing was paid twice"
    assert one_cell(runs).name == plain.name


@pytest.mark.parametrize("count", [1, 2, 4])
def test_shards_at_once_and_their_merge_are_the_whole_cell_tracked_once(
    tmp_path: Path, plain: Plain, count: int
) -> None:
    with OpenAIServer(fading_solver(dataset_tasks("starter"))) as server:
        whole = words(server, "runs")
        for done in together([[*whole, *shard(index, count)] for index in range(count)], tmp_path):
            assert done.returncode == 0, done.stderr
            assert "completed, 0 errored" in done.stdout
            (merging,) = [line for line in done.stdout.splitlines() if "this merges and measures them" in line]
            assert "shard." not in merging and "dataset.limit=6" in merging
        cell = one_cell(tmp_path / "runs")
        assert [path.name for path in cell.iterdir()] == ["shards"], "no shard writes the cell's results"
        assert not (tmp_path / "mlflow").exists(), "no shard tracks anything"
        assert len(server.calls) == TASKS * TURNS
        merged = run(whole, tmp_path)
        assert merged.returncode == 0, merged.stderr
        assert "nothing was run" in merged.stdout
        check_equal(tmp_path / "runs", server, plain)
        config = (cell / "config.yaml").read_text().replace(server.base_url, "URL")
        untracked = [text.partition("tracking:")[0] for text in (config, plain.config)]
        assert untracked[0] == untracked[1]
        before = (cell / "metrics.json").read_text()
        assert run(whole, tmp_path).returncode == 0, "a second merge is harmless"
        assert without_times(json.loads(before)) == measured(tmp_path / "runs")
        check_equal(tmp_path / "runs", server, plain)
    with contextlib.closing(sqlite3.connect(tmp_path / "mlflow" / "store.db")) as store:
        assert store.execute("SELECT status FROM runs").fetchall() == [("FINISHED",)]


def test_a_killed_shard_is_finished_by_the_merge_and_nothing_is_paid_twice(tmp_path: Path, plain: Plain) -> None:
    solve = fading_solver(dataset_tasks("starter"))
    killed: list[int] = []

    def answer(call: Call) -> Any:
        if killed and call.number == 5:
            os.kill(killed[0], signal.SIGKILL)
            killed.clear()
        return solve(call)

    with OpenAIServer(answer) as server:
        whole = words(server, "runs", "tracking=none", "model.max_concurrency=1")
        with subprocess.Popen([*whole, *shard(1, 2)], cwd=tmp_path, stdout=subprocess.PIPE) as process:
            killed.append(process.pid)
            process.communicate(timeout=LONG)
        assert process.returncode == -signal.SIGKILL
        under_way = asked(server.calls[-1:])
        assert run([*whole, *shard(0, 2)], tmp_path).returncode == 0
        merged = run(whole, tmp_path)
        assert merged.returncode == 0, merged.stderr
        assert records(tmp_path / "runs") == plain.records
        assert asked(server.calls) - plain.calls == under_way, "only the call that the kill cut off was sent again"
        # The tokens of that call are not known to anybody: it was never answered.
        assert measured(tmp_path / "runs") == plain.metrics


def test_a_killed_shard_resumes_as_a_shard(tmp_path: Path, plain: Plain) -> None:
    with OpenAIServer(fading_solver(dataset_tasks("starter"))) as server:
        whole = words(server, "runs", "tracking=none")
        stopped = run([*whole, *shard(0, 2), "budget_tokens=1000"], tmp_path)
        assert stopped.returncode == 3, stopped.stdout + stopped.stderr
        assert "500 tokens (budget_tokens / 2 shards)" in stopped.stderr
        assert 0 < len(server.calls) < TASKS // 2 * TURNS
        assert run([*whole, *shard(0, 2)], tmp_path).returncode == 0
        assert run(whole, tmp_path).returncode == 0, "the merge does what the other shard would have done"
        check_equal(tmp_path / "runs", server, plain)


def test_shards_of_different_counts_and_a_cell_that_was_begun_whole(tmp_path: Path, plain: Plain) -> None:
    with OpenAIServer(fading_solver(dataset_tasks("starter"))) as server:
        whole = words(server, "runs", "tracking=none")
        assert run([*whole, "budget_tokens=1500"], tmp_path).returncode == 3
        begun = len(server.calls)
        assert 0 < begun < TASKS * TURNS
        for index, count in ((0, 2), (1, 4), (2, 3)):
            done = run([*whole, *shard(index, count)], tmp_path)
            assert done.returncode == 0, done.stderr
        assert run(whole, tmp_path).returncode == 0
        check_equal(tmp_path / "runs", server, plain)
        again = run([*whole, *shard(0, 2)], tmp_path)
        assert again.returncode == 0
        assert "nothing was run" in again.stdout
        check_equal(tmp_path / "runs", server, plain)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["shard.index=4", "shard.count=4"], "there is no shard 4 of 4\nshard.index counts from 0: the last one is"),
        (["shard.index=-1", "shard.count=4"], "there is no shard -1 of 4"),
        (["shard.count=4"], "shard.count=4 needs shard.index\nchoose one, from 0 to 3"),
        (["shard.index=0"], "shard.index=0 needs shard.count"),
        (["shard.index=0", "shard.count=0"], "shard.count: Input should be greater than or equal to 1"),
        (["shard.indx=0"], "there is no option shard.indx\ndid you mean 'index'?"),
    ],
)
def test_a_part_that_there_is_not_is_a_mistake(tmp_path: Path, given: list[str], said: str) -> None:
    done = run(command("http://127.0.0.1:9/v1", 2, "runs", *given), tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) <= 5
    assert not (tmp_path / "runs").exists()


def test_a_running_shard_refuses_the_merge_and_every_other_way_to_run_its_tasks(tmp_path: Path, plain: Plain) -> None:
    solve, told = fading_solver(dataset_tasks("starter")), dict[str, Any]()

    def refused(*more: str) -> str:
        done = run([*told["whole"], *more], tmp_path)
        assert done.returncode == 2, done.stdout
        assert len(done.stderr.splitlines()) <= 5
        return done.stderr

    with OpenAIServer(solve) as server:
        told["whole"] = words(server, "runs", "tracking=none")
        held = _Held(server, solve)
        with subprocess.Popen([*told["whole"], *shard(1, 2)], cwd=tmp_path, stdout=subprocess.PIPE) as process:
            held.until_busy(process)
            assert "still running the shard" in (said := refused()) and "shards/1-of-2" in said
            assert "in use" in refused(*shard(1, 2))
            assert "tasks in common" in refused(*shard(3, 4))
            held.release()
            process.communicate(timeout=LONG)
        assert run([*told["whole"], *shard(0, 4)], tmp_path).returncode == 0
        held = _Held(server, solve)
        with subprocess.Popen(told["whole"], cwd=tmp_path, stdout=subprocess.PIPE) as process:
            held.until_busy(process)
            assert "in use" in (said := refused(*shard(2, 4))) and "all that is missing" in said
            held.release()
            process.communicate(timeout=LONG)
        check_equal(tmp_path / "runs", server, plain)


class _Held:
    """Keeps a server's answers back."""

    def __init__(self, server: OpenAIServer, solve: Any) -> None:
        self._server, self._open = server, threading.Event()

        async def answer(call: Call) -> Any:
            while not self._open.is_set():  # noqa: ASYNC110  the event belongs to another thread
                await asyncio.sleep(0.01)
            return solve(call)

        server.behaviour = answer

    def until_busy(self, process: "subprocess.Popen[bytes]") -> None:
        while not self._server.in_flight:
            assert process.poll() is None
            time.sleep(0.01)

    def release(self) -> None:
        self._open.set()


def test_a_shard_that_another_checkpoint_answered_is_not_merged(tmp_path: Path) -> None:
    solve = fading_solver(dataset_tasks("starter"))
    for index, root in enumerate(("one", "another")):
        with OpenAIServer(solve, models=("fading-12",), facts={"root": root}) as server:
            whole = words(server, "runs", "tracking=none")
            assert run([*whole, *shard(index, 2)], tmp_path).returncode == 0
    done = run(whole, tmp_path)
    assert done.returncode == 2
    assert "shards/1-of-2" in done.stderr and "merged" in done.stderr
    assert re.search("root .*'another'.*'one'", done.stderr)
    assert "remove that folder" in done.stderr


def test_an_estimate_counts_what_shards_recorded(tmp_path: Path) -> None:
    with OpenAIServer(fading_solver(dataset_tasks("starter"))) as server:
        whole = words(server, "runs", "tracking=none")
        assert run([*whole, *shard(0, 3)], tmp_path).returncode == 0
        assert "4 of 6 sessions, 12 turns" in run([*whole, "dry_run=true"], tmp_path).stdout
        other = run([*whole, *shard(1, 3), "dry_run=true"], tmp_path)
        assert "would hold 2 sessions, 6 turns" in other.stdout
