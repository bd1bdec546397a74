"""`report` and `export` on real cells: models that fade by chance, run through the whole engine."""

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from codechat.base.errors import UserError
from codechat.cli.commands.export import AGENT_COLUMNS, COLUMNS, run_export
from codechat.cli.commands.report import run_report
from codechat.datasets import DATASETS
from codechat.report.loading import load_cells
from codechat.report.tracking.runs import find_cells
from codechat.run.run import run
from codechat.run.settings.compose import compose
from codechat.testing import OpenAIServer, fading_solver
from support.mistakes import mistake
from support.recount import near, recount
from support.refine_cells import Made, write_cell
from support.stores import client_of

DRAWN = True
STARTER = DATASETS.build(DATASETS.validate({"kind": "starter"})).tasks
MODELS = ("fading-5", "fading-30")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working folder with three finished cells, and an MLflow store that knows them."""
    folder = tmp_path_factory.mktemp("cells")
    before = Path.cwd()
    os.chdir(folder)
    try:
        with OpenAIServer(fading_solver(STARTER)) as server:
            for model in MODELS:
                cell(f"model.name={model}", "model=openai", f"model.base_url={server.base_url}")
            cell("model=echo")
        yield folder
    finally:
        os.chdir(before)


def cell(*overrides: str) -> None:
    outcome = run(compose(["dataset.limit=8", "agenda.turns=5", *overrides]), sweep="fade")
    assert outcome.status == 0


def table(out: Path, name: str) -> list[dict[str, str]]:
    with (out / "tables" / f"{name}.csv").open() as stream:
        return list(csv.DictReader(stream))


def folder_of(model: str) -> Path:
    (found,) = Path("runs").glob(f"{model}-*")
    return found


@pytest.fixture(scope="module")
def report(place: Path) -> Path:
    assert run_report(["runs=runs", "out=report"]) == 0
    return place / "report"


@pytest.mark.long
def test_a_report_of_a_folder_of_runs(report: Path) -> None:
    out = report
    assert (out / "index.html").stat().st_size > 10_000
    board = table(out, "leaderboard")
    assert [row["model"] for row in board] == ["echo", "fading-5", "fading-30"]
    for row in board:
        truth = recount(folder_of(row["model"]))
        assert near(row["mst"], truth["mst"])
        assert near(row["pass_last"], truth["pass_at_1"][-1])
        assert near(row["regression"], truth["regression"])
        metrics = json.loads((folder_of(row["model"]) / "metrics.json").read_text())
        assert metrics["mst"] == pytest.approx(truth["mst"])
        assert [float(row["mst_ci_low"]), float(row["mst_ci_high"])] == metrics["ci"]["mst"]


def test_mlflow_agrees_with_the_recount(place: Path) -> None:
    client = client_of(place)
    experiment = client.get_experiment_by_name("codechat")
    for tracked in client.search_runs([experiment.experiment_id]):
        model = tracked.data.params["model.name"]
        truth = recount(folder_of(model))
        shown = tracked.data.metrics
        assert shown["final/mst"] == pytest.approx(truth["mst"])
        assert shown["final/delta_pct"] == pytest.approx(truth["delta_pct"])
        assert shown["final/regression"] == pytest.approx(truth["regression"])
        history = client.get_metric_history(tracked.info.run_id, "turn/pass_at_1")
        assert [point.value for point in sorted(history, key=lambda point: point.step)] == pytest.approx(
            truth["pass_at_1"]
        )


def test_a_report_of_an_experiment_is_that_of_its_runs(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_report(["experiment=codechat", "out=two"]) == 0
    told = capsys.readouterr().out
    assert "3 cells" in told
    assert str(Path("two", "index.html")) in told
    # the page names the cells' folders, which differ
    files = [path for path in report.rglob("*") if path.is_file() and path.name != "index.html"]
    assert len(files) > 50
    for path in files:
        assert path.read_bytes() == Path("two", path.relative_to(report)).read_bytes(), path.name


def test_a_filter_chooses_cells_by_parameter_and_tag(place: Path) -> None:
    faded = find_cells(None, "codechat", "params.`model.name` LIKE 'fading%'", Path("faded"))
    assert {found.model for found in load_cells(faded)} == set(MODELS)
    assert len(find_cells(None, "codechat", "tags.`codechat.sweep` = 'fade'", Path("swept"))) == 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["experiment=codechta", "out=x"], "did you mean 'codechat'"),
        (["experiment=codechat", "filter=params.`model.name` = 'nobody'", "out=x"], "meets the filter"),
        (["experiment=codechat", "filter=nonsense", "out=x"], "filter=nonsense"),
        (["experiment=codechat", "uri=sqlite:///nowhere.db", "out=x"], "there is no MLflow store"),
        (["experiment=codechat", "runs=runs", "out=x"], "report needs cells"),
        (["out=x"], "report needs cells"),
        (["runs=runs"], "out is required"),
        (["runs=runs", "filter=a", "out=x"], "filter goes with experiment"),
        (["runs=missing", "out=x"], "there is no folder missing"),
        (["runs=runs", "ouf=x"], "did you mean 'out'"),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(place: Path, words: list[str], told: str) -> None:
    with pytest.raises(UserError) as mistake:
        run_report(words)
    assert told in str(mistake.value)
    assert not Path("x").exists()


def test_what_is_left_out_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for model in ("done", "running", "other"):
        write_cell(Made(model, tasks=3, turns=3), tmp_path / "runs")
    running, other = (next((tmp_path / "runs").glob(f"{name}-*")) for name in ("running", "other"))
    (running / "metrics.json").unlink()
    sessions = (other / "sessions.jsonl").read_text().replace('"protocol":"refine"', '"protocol":"repair"')
    (other / "sessions.jsonl").write_text(sessions)
    assert run_report([f"runs={tmp_path / 'runs'}", f"out={tmp_path / 'out'}"]) == 0
    told = capsys.readouterr().err
    assert f"not finished: {running.name}" in told
    assert "metrics.json" in told and "run them again" in told
    assert f"written again): {other.name}." in told
    assert [row["model"] for row in table(tmp_path / "out", "leaderboard")] == ["done"]
    with mistake("metrics.json", "run them again"):
        run_report([f"runs={other}", f"out={tmp_path / 'none'}"])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_export_has_one_row_a_turn(place: Path, tmp_path: Path, suffix: str) -> None:
    run, out = folder_of("fading-30"), tmp_path / f"turns.{suffix}"
    assert run_export([f"run={run}", f"out={out}"]) == 0
    frame: Any = pd.read_parquet(out) if suffix == "parquet" else pd.read_csv(out)
    assert list(frame.columns) == [column.name for column in COLUMNS]
    truth = recount(run)
    assert len(frame) == 8 * 5
    assert frame.groupby("turn")["passed"].mean().tolist() == pytest.approx(truth["pass_at_1"])
    follow = frame[(frame["turn"] > 0) & ~frame["skipped"]]
    broken = follow[follow["passed_before"] == True]  # noqa: E712  the column may hold missing values
    assert 1 - broken["passed"].mean() == pytest.approx(truth["regression"])
    assert frame.loc[frame["turn"] == 0, "instruction"].isna().all()
    records = [json.loads(line) for line in (run / "sessions.jsonl").read_text().splitlines()]
    codes = [turn["code"] for session in records for turn in session["turns"]]
    assert frame["code"].tolist() == codes
    assert frame["input_tokens"].sum() == truth["model_tokens"]["input_tokens"]


def test_csv_and_parquet_hold_the_same(tmp_path: Path) -> None:
    run = write_cell(
        Made("m", tasks=9, turns=4, errored=1, overflows=2, code="def f(x):\n    return 'a,\"b é'\n"), tmp_path
    )
    for suffix in ("csv", "parquet"):
        run_export([f"run={run}", f"out={tmp_path / 'turns'}.{suffix}"])
    texts = {column.name: str for column in COLUMNS if column.kind == "string"}
    one = pd.read_csv(tmp_path / "turns.csv", keep_default_na=False, na_values=[""], dtype=texts)
    two = pd.read_parquet(tmp_path / "turns.parquet")
    assert one.isna().equals(two.isna())
    for name in one.columns:
        assert one[name].dropna().astype(str).tolist() == two[name].dropna().astype(str).tolist(), name


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run=.", "out=x.xlsx"], "cannot write '.xlsx' files"),
        (["run=.", "out=x.csv"], "is no cell's folder: it has no sessions.jsonl"),
        (["ran=.", "out=x.csv"], "did you mean 'run'"),
        (["out=x.csv"], "run is required"),
    ],
)
def test_export_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as mistake:
        run_export(words)
    assert told in str(mistake.value)


def test_the_documents_name_every_table_figure_and_column(report: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text()
    for column in (*COLUMNS, *AGENT_COLUMNS):
        assert f"`{column.name}`" in text, column.name
    for path in report.rglob("*.*"):
        if path.parent.name in ("tables", "figures"):
            assert f"`{path.stem}`" in text, path.stem
