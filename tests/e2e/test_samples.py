"""`samples=k`: k seeds by one command, pooled by reports, told apart by exports, grouped by a tag."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from codechat.base.errors import UserError
from codechat.base.records import read_sessions
from codechat.cli.app import main
from codechat.cli.run import split_samples, with_seeds
from codechat.cli.sweep import read_recipe, run_sweep
from support.stores import client_at

pytestmark = pytest.mark.long

WORDS = ("model=drifter", "dataset.limit=3", "agenda.turns=4", "tracking=none", "hardware.workers=1")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def tags() -> dict[str, str]:
    """The group of each cell, by the end of its folder's name."""
    files = Path("runs").glob("*/tracking.json")
    return {file.parent.name: json.loads(file.read_text())["tags"]["codechat.repeats"] for file in files}


def test_several_seeds_by_one_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["samples=2", *WORDS, "seed=5"]) == 0
    assert main([*WORDS, "agenda=semantic"]) == 0
    shown = capsys.readouterr().out
    assert "2 cells" in shown
    assert "seed=5" in shown
    assert "seed=6" in shown
    found = {folder: next(read_sessions(folder / "sessions.jsonl")).seed for folder in Path("runs").glob("*-*")}
    assert sorted(found.values()) == [0, 5, 6]
    groups = tags()
    assert len(groups) == 3
    assert len(set(groups.values())) == 2, "the other agenda is another group"
    assert main(["report", "runs=runs", "out=report"]) == 0
    told = capsys.readouterr()
    assert "\n3 cells, " in told.out, "pooled ones are counted too"
    assert re.search(r"drifter \(agenda=balanced\) .*2 cells .*\(seeds 5, 6\)", told.err)
    board = pd.read_csv("report/tables/leaderboard.csv")
    assert dict(zip(board["variant"], board["samples"], strict=True)) == {"agenda=balanced": 2, "agenda=semantic": 1}
    assert "pools 2 cells" in Path("report/index.html").read_text()
    assert main(["export", "runs=runs", "out=turns.csv"]) == 0
    turns = pd.read_csv("turns.csv")
    assert turns.groupby("entrant")["seed"].unique().map(sorted).to_dict() == {
        "drifter (agenda=balanced)": [5, 6],
        "drifter (agenda=semantic)": [0],
    }


def test_a_store_finds_the_repeats_by_their_tag(tmp_path: Path) -> None:
    tracked = [word for word in WORDS if not word.startswith("tracking")]
    assert main(["samples=2", *tracked]) == 0
    assert main([*tracked, "agenda=semantic"]) == 0
    client = client_at(f"sqlite:///{tmp_path}/mlflow/store.db")
    experiment = [client.get_experiment_by_name("codechat").experiment_id]
    groups = [run.data.tags["codechat.repeats"] for run in client.search_runs(experiment)]
    assert len(groups) == 3, "one run a cell"
    (common,) = {group for group in groups if groups.count(group) == 2}
    found = client.search_runs(experiment, f"tags.`codechat.repeats` = '{common}'")
    assert sorted(run.data.params["seed"] for run in found) == ["0", "1"]


def test_the_same_command_again_calls_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["samples=2", *WORDS]) == 0
    before = {path: path.stat().st_mtime_ns for path in Path("runs").glob("*/sessions.jsonl")}
    assert len(before) == 2
    capsys.readouterr()
    assert main(["samples=3", *WORDS]) == 0
    shown = capsys.readouterr().out
    assert "cell 3 of 3" in shown
    assert len(list(Path("runs").glob("*/sessions.jsonl"))) == 3


def test_agendas_of_one_seed_are_alike_while_replies_differ() -> None:
    assert main(["samples=2", *WORDS, "agenda.seed=7"]) == 0
    cells = [list(read_sessions(path)) for path in Path("runs").glob("*/sessions.jsonl")]
    assert [session.agenda for session in cells[0]] == [session.agenda for session in cells[1]]
    assert main(["samples=2", *WORDS, "agenda.seed=8"]) == 0
    assert len(set(tags().values())) == 1
    assert main(["report", "runs=runs", "out=report"]) == 0
    variance = pd.read_csv("report/tables/repeats_variance.csv")
    assert set(variance["apart"]) == {"no agenda yet", "samples share draws"}
    (seeds,) = pd.read_csv("report/tables/repeats.csv")["seeds"]
    assert re.findall(r"\d+", seeds) == ["0", "7", "1", "7", "0", "8", "1", "8"]


def test_samples_is_one_whole_number(capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("samples=0", "samples=two", "samples=1,2"):
        assert main([word, *WORDS]) == 2
        assert "samples=3" in capsys.readouterr().err
    assert split_samples(["a=b"]) == (1, ["a=b"])
    with pytest.raises(UserError):
        split_samples(["samples=2", "samples=3"])


def test_every_combination_has_its_seeds() -> None:
    assert list(with_seeds(("a=1", "seed=4"), 2)) == [("a=1", "seed=4"), ("a=1", "seed=5")]
    assert list(with_seeds(("a=1",), 2)) == [("a=1", "seed=0"), ("a=1", "seed=1")]
    assert list(with_seeds(("a=1", "seed=4"), 1)) == [("a=1", "seed=4")]


def test_a_recipe_may_have_samples(capsys: pytest.CaptureFixture[str]) -> None:
    Path("sweeps").mkdir()
    Path("sweeps/own.yaml").write_text("question: Is it so?\ngrids:\n  - samples: 2\n    agenda.turns: [2, 3]\n")
    assert read_recipe("own").grids[0]["samples"] == 2
    assert run_sweep(["+sweep=own", "model=echo", "dataset.limit=1", "tracking=none", "dry_run=true"]) == 0
    assert "sweep own: 4 cells" in capsys.readouterr().out
