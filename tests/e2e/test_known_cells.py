"""Cells that end when enough is known: their records, their resumption, and what a report makes of them."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.app import main
from codechat.report.metrics.statistics import difference_interval, in_order, mean_interval
from codechat.run.cell import build_cell
from codechat.run.settings.compose import compose

WORDS = ["dataset.limit=12", "agenda.turns=2", "tracking=none", "judge=rules"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cells(runs: str = "runs") -> dict[str, Path]:
    """The finished cells' folders, by model."""
    found = {}
    for path in sorted(Path(runs).glob("*/sessions.jsonl")):
        found[str(sessions(path.parent)[0]["model"])] = path.parent
    return found


def sessions(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]


def metrics(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return found


def bare(folder: Path) -> list[str]:
    """The records without what is timed."""

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: strip(each) for name, each in value.items() if not name.endswith("_s")}
        return [strip(each) for each in value] if isinstance(value, list) else value

    return [json.dumps(strip(each)) for each in sessions(folder)]


def run(*words: str, status: int = 0) -> None:
    assert main([*WORDS, *words]) == status


def test_a_cell_ends_when_its_interval_is_narrow(capsys: pytest.CaptureFixture[str]) -> None:
    run("model=echo", "stop.width=1.2")
    said = capsys.readouterr().out
    folder = cells()["echo"]
    about, found = metrics(folder)["stopped"], sessions(folder)
    assert 0 < about["tasks"] == len(found) < 12 == about["of"]
    assert re.search(rf"Tasks run +{len(found)} *\nof tasks in all +12 *\n", said)
    low, high = metrics(folder)["ci"]["mst"]
    assert (low, high) == mean_interval([2] * len(found), 2, 12)
    assert high - low <= 1.2
    names = [each["task_id"] for each in found]
    whole = [task.task_id for task in build_cell(compose([*WORDS, "model=echo"])).tasks]
    assert names == [task for task in whole if task in in_order(whole, 0)[: len(found)]]
    assert metrics(folder)["measures"]["protocol"] == "stopped"
    run("model=echo", "stop.width=1.2", "runs_dir=again", "model.max_concurrency=1", "max_errors=3")
    assert bare(folder) == bare(cells("again")["echo"])
    assert main(["rescore", f"run={folder}", "out=rescored"]) == 2


@pytest.mark.long
def test_a_sweep_ends_when_its_differences_are_decided(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-m", *WORDS, "model=echo,drifter", "stop.difference=true", "seed=1"]
    assert main(words) == 0
    found = cells()
    both = [metrics(found[name])["stopped"]["tasks"] for name in ("echo", "drifter")]
    assert both[0] == both[1] <= 12
    before = {name: bare(folder) for name, folder in found.items()}
    capsys.readouterr()
    assert main(words) == 0  # what is recorded is not run again
    assert "tracking=none stop.until" not in capsys.readouterr().out
    assert before == {name: bare(folder) for name, folder in cells().items()}
    run("model=echo", "seed=1")  # the same tasks as a cell of a fixed size
    assert main(["report", "runs=runs", "out=report"]) == 0
    pairs = Path("report/tables/stopped_pairs.csv").read_text().splitlines()
    assert len(pairs) == 2
    values = [
        {each["task_id"]: _sustained(each["turns"]) for each in sessions(found[name])} for name in ("drifter", "echo")
    ]
    order = in_order(values[0], 1)
    low, high = difference_interval([values[0][t] for t in order], [values[1][t] for t in order], 2, 12)
    assert f"{low}" in pairs[1]
    assert f"{high}" in pairs[1]
    page = Path("report/index.html").read_text()
    assert "Stopped when known" in page
    fixed = Path("report/tables/main.csv")
    tables = "".join(path.read_text() for path in fixed.parent.glob("*.csv") if not path.name.startswith("stopped"))
    assert "drifter" not in tables


def _sustained(turns: Sequence[dict[str, Any]]) -> int:
    return [*(turn["passed"] for turn in turns), False].index(False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["stop.difference=true"], "sweep"),
        (["stop.width=1", "shard.index=0", "shard.count=2"], "shard"),
        (["stop.width=1", "stop.figure=pass_at_1", "stop.turn=7"], "0 to 1"),
        (["stop.width=0"], "greater than 0"),
    ],
)
def test_what_cannot_end_so_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("model=echo", *words, status=2)
    assert said in capsys.readouterr().err
    assert not list(Path().glob("runs/*/sessions.jsonl"))


def test_a_sweep_of_one_cell_has_nothing_to_compare(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", *WORDS, "model=echo", "stop.difference=true"]) == 2
    assert "two cells" in capsys.readouterr().err
