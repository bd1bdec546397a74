"""A cell whose folder is on a network's file system: killed, resumed, run by shards, and read by the other commands."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from codechat.testing import Call, OpenAIServer, dataset_tasks, fading_solver
from codechat.testing.cells import command, digest, records
from support.machine import write_mounts
from support.processes import codechat, in_process

pytestmark = pytest.mark.long

TASKS, TURNS = 4, 3
LONG = 300
FORCED = (
    "import sys, codechat.base.mounts; from pathlib import Path; codechat.base.mounts.MOUNTS = Path(sys.argv.pop(1));"
    "import codechat.run.journal.database as opening; opening.WAIT_S = 3.0;"
    "from codechat.cli.app import main; sys.exit(main(sys.argv[1:]))"
)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "nfs").mkdir()
    write_mounts(tmp_path / "mounts", nfs=tmp_path / "nfs")
    return tmp_path


def forced(here: Path, *words: str) -> list[str]:
    return [sys.executable, "-c", FORCED, str(here / "mounts"), *words]


def cell(here: Path, server: OpenAIServer, *more: str) -> list[str]:
    plain = command(server.base_url, TASKS, str(here / "nfs"), f"agenda.turns={TURNS}", "hardware.workers=1", *more)
    return forced(here, *plain[plain.index("codechat") + 1 :])


def run(words: list[str], here: Path) -> "subprocess.CompletedProcess[str]":
    """The same in this process."""
    if FORCED not in words:
        return in_process(words, here)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codechat.base.mounts.MOUNTS", here / "mounts")
        patch.setattr("codechat.run.journal.database.WAIT_S", 3.0)
        return codechat(here, *words[words.index(FORCED) + 2 :])


def ran(words: list[str], here: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, cwd=here, capture_output=True, text=True, timeout=LONG, check=False)


def test_a_cell_there_is_killed_and_resumed_and_other_commands_read_it(here: Path) -> None:
    solve, killed, seen = fading_solver(dataset_tasks("starter")), list[int](), list[str]()
    refused: list[subprocess.CompletedProcess[str]] = []

    def answer(call: Call) -> Any:
        if killed and call.number == 5:
            seen.extend(path.name for path in (here / "nfs").rglob("journal.db*"))
            estimate = cell(here, server, "dry_run=true", "model.max_concurrency=1")
            thread = threading.Thread(target=lambda: refused.append(ran(estimate, here)))
            thread.start()
            thread.join()
            os.kill(killed[0], signal.SIGKILL)
            killed.clear()
        return solve(call)

    with OpenAIServer(answer) as server:
        words = cell(here, server, "model.max_concurrency=1", f"hardware.scratch={here / 'scratch'}")
        with subprocess.Popen(words, cwd=here, stdout=subprocess.PIPE) as process:
            killed.append(process.pid)
            process.communicate(timeout=LONG)
        assert process.returncode == -signal.SIGKILL
        assert sorted(seen) == ["journal.db", "journal.db-wal"], "no file of shared memory"
        (told,) = refused
        assert told.returncode == 2
        assert "in use" in told.stderr and "type nfs" in told.stderr
        assert len(told.stderr.splitlines()) <= 5
        done = run(words, here)
        assert done.returncode == 0, done.stderr
        assert max(Counter(map(digest, server.calls)).values()) == 2, "only the call that the kill cut off"
        assert len(server.calls) == TASKS * TURNS + 1
        local = command(server.base_url, TASKS, str(here / "local"), f"agenda.turns={TURNS}", "hardware.workers=1")
        assert run(local, here).returncode == 0
    assert records(here / "nfs") == records(here / "local")
    assert not list(here.rglob("*-shm"))
    assert (here / "scratch" / "expected").is_dir()
    (folder,) = (here / "nfs").iterdir()
    for reading in (
        ["report", f"runs={folder}", "out=report"],
        ["export", f"run={folder}", "out=turns.csv"],
        ["audit", "export", f"runs={folder}", "out=audit", "n=3"],
    ):
        read = run(forced(here, *reading), here)
        assert read.returncode == 0, read.stderr
    assert not list(here.rglob("*-shm"))


def test_shards_there_are_merged(here: Path) -> None:
    with OpenAIServer(fading_solver(dataset_tasks("starter"))) as server:
        assert run(cell(here, server, "budget_tokens=900"), here).returncode == 3
        shards = [
            subprocess.Popen(
                cell(here, server, f"shard.index={index}", "shard.count=2"), cwd=here, stdout=subprocess.DEVNULL
            )
            for index in range(2)
        ]
        assert [process.wait(timeout=LONG) for process in shards] == [0, 0]
        assert run(cell(here, server), here).returncode == 0
        assert max(Counter(map(digest, server.calls)).values()) == 1
        assert len(server.calls) == TASKS * TURNS
    assert len(records(here / "nfs")) == TASKS
    assert not list(here.rglob("*-shm"))


def test_the_caches_go_to_the_scratch_folder(here: Path) -> None:
    with OpenAIServer(fading_solver(dataset_tasks("starter"))) as server:
        for runs in ("one", "two"):
            words = [
                *cell(here, server, "model.cache=true", f"hardware.scratch={here / 'scratch'}"),
                f"runs_dir={runs}",
            ]
            done = ran(words, here)  # this process may know what references return
            assert done.returncode == 0, done.stderr
        assert len(server.calls) == TASKS * TURNS, "the second cell found all replies"
    assert (here / "scratch" / "replies" / "replies.db").exists()
    assert list((here / "scratch" / "expected").iterdir())
