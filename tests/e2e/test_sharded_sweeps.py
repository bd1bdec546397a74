"""`-m shard.count=N`: a launcher runs every cell by its shards, and merges them."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from codechat.testing import OpenAIServer, dataset_tasks, fading_solver
from codechat.testing.cells import command, without_times
from support.processes import in_process

pytestmark = pytest.mark.long
SMALL = ("agenda.turns=3", "seed=0,1")


def run(words: list[str], folder: Path, flag: tuple[str, ...] = ("-m",)) -> str:
    """What a command prints; in a process of its own if it starts others, which it leaves for what comes next."""
    place = words.index("codechat") + 1
    command = [*words[:place], *flag, *words[place:]]
    if "launcher=joblib" in words:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)
    else:
        done = in_process(command, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sessions(runs: Path) -> list[object]:
    paths = sorted(runs.glob("*/sessions.jsonl"))
    return [without_times(json.loads(line)) for path in paths for line in path.read_text().splitlines()]


def metrics(runs: Path) -> list[object]:
    return [without_times(json.loads(path.read_text())) for path in sorted(runs.glob("*/metrics.json"))]


def test_a_sweep_in_shards_is_the_sweep_and_is_not_run_twice(tmp_path: Path) -> None:
    with OpenAIServer(fading_solver(dataset_tasks("starter"))) as server:
        run(command(server.base_url, 4, "whole", *SMALL), tmp_path)
        calls = len(server.calls)
        parts = command(server.base_url, 4, "parts", *SMALL, "shard.count=2", "launcher=joblib", "launcher.jobs=2")
        said = run(parts, tmp_path)
        assert len(server.calls) == 2 * calls
        assert len(re.findall(r"shard 1-of-2: 2 .*, 0 errored", said)) == 2
        assert said.count(" done ") == 2, "the table has the cells, not their shards"
        assert "shard 1-of-2" not in run(parts, tmp_path), "merged cells are not run by their shards again"
        assert len(server.calls) == 2 * calls
    assert sessions(tmp_path / "parts") == sessions(tmp_path / "whole") != []
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")
    assert len(list((tmp_path / "parts").glob("*/shards/*-of-2/ended.json"))) == 4


def test_a_shard_that_came_to_no_end_is_run_again_alone(tmp_path: Path) -> None:
    with OpenAIServer(fading_solver(dataset_tasks("starter"))) as server:
        parts = command(server.base_url, 4, "parts", "agenda.turns=3", "seed=0,1", "shard.count=2")
        run(parts, tmp_path)
        calls = len(server.calls)
        (cell, _) = sorted((tmp_path / "parts").glob("*/metrics.json"))
        cell.unlink()
        (cell.parent / "shards/1-of-2/ended.json").unlink()
        said = run(parts, tmp_path)
        assert cell.exists()
        assert len(server.calls) == calls, "its replies are recorded"
        assert "cell 1 of 2" in said


def test_a_launcher_runs_one_cell_by_shards_too(tmp_path: Path) -> None:
    with OpenAIServer(fading_solver(dataset_tasks("starter"))) as server:
        asked = ("shard.count=2", "launcher=joblib", "launcher.jobs=2")
        said = run(command(server.base_url, 4, "parts", "agenda.turns=3", *asked), tmp_path, flag=())
        run(command(server.base_url, 4, "whole", "agenda.turns=3"), tmp_path, flag=())
    assert said.count("-of-2: 2 sessions completed, 0 errored") == 2
    assert said.count(" done ") == 1, "the table has the cell, not its shards"
    assert sessions(tmp_path / "parts") == sessions(tmp_path / "whole") != []
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")
