"""Conversations from the run to MLflow, the report and the export: nothing on the way knows the refinement alone."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.commands.report import run_report
from codechat.cli.commands.upload import upload
from codechat.run.run import run
from codechat.run.settings.compose import compose
from support.stores import client_of

pytestmark = pytest.mark.long

RENDERED = True
TASKS = [
    {
        "task_id": f"mine/{number}", "prompt": "Write double(x), which doubles a number.", "entry_point": "double",
        "canonical_solution": "def double(x):\n    return 2 * x\n", "tests": ["assert double(2) == 4"],
        "requirements": [
            {"type": "Edge Case Handling", "text": "0 gives 0.", "tests": "assert double(0) == 0"},
            {"type": "Annotation Coverage", "text": "Annotate it.", "tests": "assert double.__annotations__"},
        ],
    }
    for number in range(2)
]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working folder with a finished cell of each conversation, both in its MLflow store."""
    folder = tmp_path_factory.mktemp("tracked")
    before = Path.cwd()
    os.chdir(folder)
    try:
        Path("tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in TASKS))
        for protocol in ("static", "dynamic"):
            words = [f"protocol={protocol}", "model=echo", "dataset=jsonl", "dataset.path=tasks.jsonl"]
            assert run(compose([*words, "hardware.workers=1"])).status == 0
        yield folder
    finally:
        os.chdir(before)


def metrics_of(protocol: str) -> dict[str, Any]:
    (path,) = Path("runs").glob(f"*{protocol}*/metrics.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.parametrize("protocol", ["static", "dynamic"])
def test_mlflow_has_its_series_turn_by_turn(place: Path, protocol: str) -> None:
    client = client_of(place)
    experiment = client.get_experiment_by_name("codechat")
    (run,) = client.search_runs([experiment.experiment_id], f"params.`protocol.kind` = '{protocol}'")
    metrics = metrics_of(protocol)
    history = client.get_metric_history(run.info.run_id, "turn/ia")
    assert {point.step: point.value for point in history} == dict(enumerate(metrics["ia"]))
    assert metrics["ia"][:2] != metrics["ia"][1:3], "echo keeps what it had and adds nothing"
    assert run.data.metrics["final/ia"] == metrics["overall"]["ia"]
    assert run.data.metrics["final/ia_Annotation_Coverage"] == metrics["by_strategy"]["ia"]["Annotation Coverage"] == 0
    assert run.data.metrics["cost/wall_s"] > 0
    assert f"| Instruction Accuracy | {metrics['overall']['ia']:.4g} |" in run.data.tags["mlflow.note.content"]
    logged = {item.path for item in client.list_artifacts(run.info.run_id, "tables")}
    assert {"tables/finals.csv", "tables/turns.tex", "tables/by_strategy.md"} <= logged


def test_one_report_holds_both_and_a_cell_is_uploaded_again(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_report(["experiment=codechat", "out=report"]) == 0
    told = capsys.readouterr().out
    assert "static conversation: final" in told
    assert "dynamic conversation: final" in told
    assert "2 cells" in told
    assert (place / "report" / "index.html").stat().st_size > 10_000
    assert (place / "report" / "tables" / "static_finals.csv").is_file()
    figures = {path.name for path in (place / "report" / "figures").iterdir()}
    assert {"static_ia.png", "static_ca_all.svg", "dynamic_ife.svg", "dynamic_by_strategy.png"} <= figures
    assert "dynamic_by_level.svg" not in figures, "one group alone is all there is"
    (folder,) = Path("runs").glob("*dynamic*")
    assert upload([f"run={folder}"]) == 0
