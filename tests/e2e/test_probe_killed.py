"""A probe is killed in the midst of tasks, again and again: it resumes, and its files come out the same."""

import itertools
import random
import time
from pathlib import Path

import pytest

from codechat.run.run import run
from codechat.run.settings.compose import compose
from support import processes

pytestmark = pytest.mark.long

KILLS = 3
WORKERS = 2
TASKS = 12


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []


def inputs(out: Path) -> list[str]:
    return [line for path in (out / "inputs").glob("*.jsonl") for line in lines(path)]


def test_a_killed_probe_resumes_with_equal_files(tmp_path: Path) -> None:
    rates = [f"model.regression.{scope}=0.5" for scope in ("cosmetic", "structural", "semantic")]
    cell = ["model=drifter", "model.unseen=1", *rates, "judge=rules", "tracking=none", f"dataset.limit={TASKS}"]
    run(compose([*cell, f"runs_dir={tmp_path / 'runs'}"]))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    words = [f"runs={tmp_path / 'runs'}", "n=80", f"hardware.workers={WORKERS}"]
    assert processes.ended(processes.start(tmp_path, "probe", f"out={whole}", *words)) == 0

    chosen, kept = random.Random(2), list[int]()
    for number in itertools.count(1):
        partial = killed / "turns.jsonl.partial"
        process, before = processes.start(tmp_path, "probe", f"out={killed}", *words), len(lines(partial))
        while process.is_alive() and len(lines(partial)) == before:
            time.sleep(0.005)
        time.sleep(chosen.uniform(0, 0.1))
        process.kill()
        process.join()
        kept.append(len(lines(partial)))
        assert kept[-1] > before, "what an earlier call wrote is kept"
        assert not (killed / "turns.jsonl").exists()
        if number == KILLS:
            break
    assert kept[-1] < TASKS, "it was killed in the midst of a task"
    assert len(inputs(killed)) < TASKS
    with partial.open("r+b") as file:  # the last line as a kill in the midst of the writing leaves it
        file.truncate(partial.stat().st_size - 40)
    first = inputs(killed)
    assert processes.ended(processes.start(tmp_path, "probe", f"out={killed}", *words)) == 0
    assert (killed / "turns.jsonl").read_bytes() == (whole / "turns.jsonl").read_bytes()
    assert sorted(inputs(killed)) == sorted(inputs(whole))
    assert set(first) <= set(inputs(killed)), "inputs are not made anew"
    assert not partial.exists()
