"""`dry_run=true` tells what a cell would take, and takes nothing."""

import json
import re
import subprocess
import sys
from pathlib import Path

from codechat.testing import OpenAIServer, dataset_tasks, fading_solver
from codechat.testing.cells import command

NOBODY = "http://127.0.0.1:9/v1"
PRICED = ("model.prices={input: 1, output: 10}", "judge=llm")


def run(words: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=100, check=False)


def row(output: str, name: str) -> list[str]:
    found = re.findall(rf"^{name} +(.+)$", output, re.MULTILINE)
    return re.split(r"  +", found[-1].strip())


def test_an_estimate_asks_nobody_and_leaves_no_folder(tmp_path: Path) -> None:
    judges = [
        f"judge.{role}.{key}" for role in ("applicability", "adherence") for key in ("prices={input: 2, output: 2}",)
    ]
    done = run(
        command(NOBODY, 4, "runs", "dry_run=true", *PRICED, "model@judge.applicability=gpt_oss_20b",
                "model@judge.adherence=gpt_oss_20b", *judges), tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "would hold 4 sessions, 40 turns" in done.stdout
    assert "Assumed:" in done.stdout
    calls, sent, received, cost = (float(text.replace(",", "")) for text in row(done.stdout, "model"))
    assert calls == 40
    assert abs(cost - (sent + 10 * received) / 1e6) <= 0.01
    calls, sent, received, cost = (float(text.replace(",", "")) for text in row(done.stdout, "judges"))
    assert (calls, received) == (4 * 9 * 3, 4 * 9 * 3 * 200)
    assert abs(cost - 2 * (sent + received) / 1e6) <= 0.01
    assert not list(tmp_path.iterdir())


def test_it_is_near_to_what_the_same_cell_takes(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "codechat", "tracking=none", "dataset.limit=6"]
    assert run([*words, "model=echo"], tmp_path).returncode == 0
    (cell,) = (tmp_path / "runs").iterdir()
    turns = [turn for line in (cell / "sessions.jsonl").read_text().splitlines() for turn in json.loads(line)["turns"]]
    sent = sum(len(message["content"]) for turn in turns for message in turn["request"]) / 4
    done = run([*command(NOBODY, 6, "other"), "dry_run=true"], tmp_path)
    assert 0.7 < float(row(done.stdout, "model")[1].replace(",", "")) / sent < 1.5
    assert row(done.stdout, "judges")[0] == "0", "rules ask nobody"


def test_what_the_journal_holds_costs_nothing_and_a_sweep_is_summed(tmp_path: Path) -> None:
    with OpenAIServer(fading_solver(dataset_tasks("starter"))) as server:
        words = command(server.base_url, 3, "runs", "agenda.turns=3")
        assert run([*words, "seed=0"], tmp_path).returncode == 0
        before = len(server.calls)
        sweep = [*words, "seed=0,1", "dry_run=true"]
        sweep.insert(sweep.index("codechat") + 1, "-m")
        done = run(sweep, tmp_path)
        assert done.returncode == 0, done.stderr
        assert len(server.calls) == before
    assert "would hold 0 of 3 sessions, 0 turns" in done.stdout
    assert "would hold 3 sessions, 9 turns" in done.stdout
    assert "2 cells" in done.stdout
    assert row(done.stdout, "model")[0] == "9", "the sum of both cells"
    assert len(list((tmp_path / "runs").iterdir())) == 1
