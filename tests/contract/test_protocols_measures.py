"""What every protocol says that it measures is enough to show its cells, one without a session too."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from codechat.cli.cell_view import summary
from codechat.report import write_figures, write_tables
from codechat.report.metrics import Effort, headline_of, points_of
from codechat.report.metrics.measures import FIELD, measures_in
from codechat.run.protocols import PROTOCOLS, DialogueProtocol, Parts
from codechat.run.settings.compose import compose
from codechat.studies.refine.instructions import INSTRUCTIONS

NAMES = [component.name for component in PROTOCOLS]


def protocol(name: str) -> DialogueProtocol:
    replayed = ["model=replay", "model.path=sessions.jsonl"] if name in ("recorded", "refined") else []
    experiment = compose([f"protocol={name}", *replayed]).config
    pool = INSTRUCTIONS.build(experiment.instructions)
    return PROTOCOLS.build(
        experiment.protocol, Parts(experiment.judge, {"agenda": experiment.part("agenda"), "pool": pool})
    )


def metrics_of(found: DialogueProtocol) -> dict[str, Any]:
    """metrics.json of a cell without sessions, read back."""
    metrics = {**found.metrics([], seed=0, effort=Effort()), FIELD: found.measures.describe()}
    read: dict[str, Any] = json.loads(json.dumps(metrics))
    return read


@pytest.mark.parametrize("name", NAMES)
def test_metrics_json_says_how_to_read_it(name: str) -> None:
    found = protocol(name)
    assert measures_in(metrics_of(found)) == found.measures
    assert found.measures.title


@pytest.mark.parametrize("name", NAMES)
def test_a_cell_without_a_session_is_shown_all_the_same(name: str, tmp_path: Path) -> None:
    found = protocol(name)
    metrics = metrics_of(found)
    assert all(point.value == 0 for point in points_of(found.measures, metrics))
    assert "final/errored" in headline_of(found.measures)
    write_tables(found.measures, metrics, tmp_path / "tables")
    write_figures(found.measures, metrics, "nothing", tmp_path / "figures")
    assert (tmp_path / "tables" / "turns.csv").is_file() or not found.measures.series
    shown = io.StringIO()
    Console(file=shown, width=200).print(summary(found.measures, metrics, "nothing"))
    assert "0 completed" in shown.getvalue()
