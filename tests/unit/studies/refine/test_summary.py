"""What the terminal says of a finished cell."""

import io
import json
from pathlib import Path

from rich.console import Console

from codechat.cli.cell_view import summary
from codechat.report.metrics import Measures
from codechat.studies.refine.metrics import REFINE, refine_metrics
from support.codeif import MEASURES, Talk, write_talk
from support.refine_cells import Made, sessions_of


def lines_of(measures: Measures, metrics: object) -> dict[str, str]:
    """The shown lines by their names."""
    assert isinstance(metrics, dict)
    shown = io.StringIO()
    Console(file=shown, width=300, color_system=None).print(summary(measures, metrics, "the cell"))
    title, *rest = (line.strip() for line in shown.getvalue().splitlines())
    assert title == "the cell"
    return dict(line.split("  ", 1) for line in rest if "  " in line)


def test_a_refinement_cell_keeps_its_own_lines() -> None:
    lines = lines_of(REFINE, refine_metrics(list(sessions_of(Made("m", tasks=12, turns=4, errored=1))), seed=0))
    assert list(lines) == [
        "sessions", "Pass@1, turn 0 → 3", "Mann–Kendall trend", "Mean Sustainable Turns", "adherence, turn 1 → 3",
        "regression", "self-correction", "outcomes",
    ]  # fmt: skip
    assert lines["sessions"].strip().startswith("11 completed, 1 errored")
    assert lines["Mean Sustainable Turns"].endswith(" of 4")


def test_any_other_protocol_shows_all_that_it_measures(tmp_path: Path) -> None:
    metrics = json.loads((write_talk(Talk("m", "dynamic", tasks=8), tmp_path) / "metrics.json").read_text())
    lines = lines_of(MEASURES["dynamic"], metrics)
    assert "instruction rounds" in lines["sessions"]
    for final in MEASURES["dynamic"].finals:
        assert lines[final.label].strip().startswith(f"{metrics['overall'][final.key]:.3f} [")
    last = len(metrics["ia"]) - 1
    ends = f"{metrics['ia'][0]:.3f} → {metrics['ia'][-1]:.3f}"
    assert lines[f"Instruction Accuracy, turn 0 → {last}"].strip() == ends
    forgetting = [name for name in lines if name.startswith("Instruction Forgetting Ratio, turn 1")]
    assert forgetting, "a series is told from its first value on"
    strategies = lines["Instruction Accuracy by strategy"]
    size = metrics["n"]["by_strategy"]["ia"]["Code Standard"]
    share = f"{metrics['by_strategy']['ia']['Code Standard']:.3f}"
    assert f"Code Standard: {share} (n {size}{'*' * (size < 10)})" in strategies
