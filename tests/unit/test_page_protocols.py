"""What the page is given of protocols other than the refinement: standings, figures, and turns with their checks."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.metrics import Measures
from codechat.report.cells import LoadedCell, load_cells
from codechat.report.page.archive import Index
from codechat.report.page.bodies import body_of
from codechat.report.page.findings import findings
from codechat.report.page.overview import cell_values, protocol_values
from codechat.report.page.standings import standing
from support.conversation_cells import MEASURES, Talk, talks_of, write_talk


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadedCell, ...]:
    runs = tmp_path_factory.mktemp("runs")
    for made in (
        Talk("strong", meets=0.95, tasks=8),
        Talk("weak", meets=0.2, tasks=8),
        Talk("weak", "dynamic", tasks=4),
    ):
        write_talk(made, runs)
    return load_cells([runs])


def baseline(cell: LoadedCell) -> LoadedCell:
    return replace(cell, config={"model": {"kind": "echo"}})


def test_a_protocols_cells_bring_its_figures_under_their_keys(cells: tuple[LoadedCell, ...]) -> None:
    static, dynamic = protocol_values(cells)
    assert (static["key"], dynamic["key"]) == ("static", "dynamic")
    assert static["name"] == "CodeIF-Bench, static conversation"
    assert [series["key"] for series in static["series"]] == [series.key for series in MEASURES["static"].series]
    values = cell_values(cells, Index())
    json.dumps(values)
    for cell, shown in zip(cells, values, strict=True):
        assert shown["protocol"] == cell.protocol
        assert shown["agenda"] == "", "an agenda that the protocol does not use is no setting"
        assert shown["series"]["ia"] == [cell.metrics["ia"], cell.metrics["ci"]["ia"]]
        assert shown["finals"]["ca"] == [cell.metrics["overall"]["ca"], cell.metrics["ci"]["overall"]["ca"]]
        assert "mst" not in shown


def test_the_standing_names_the_best_by_the_first_figure(cells: tuple[LoadedCell, ...]) -> None:
    measures = MEASURES["static"]
    strong, weak = (cell for cell in cells if cell.protocol == "static")
    told = standing(measures, [weak, strong])
    assert told["title"] == f"strong leads: Instruction Accuracy {100 * strong.metrics['overall']['ia']:.1f} %"
    assert told["text"].startswith("Tasks whose code meets the turn's own instruction, on codeif_bench.")
    assert told["text"].endswith("Their intervals are apart.")
    assert told["facts"] == [("2", "cells"), ("16", "sessions; 0 errored")]
    assert standing(measures, [weak, baseline(strong)])["title"].startswith("Instruction Accuracy"), "no rival is left"
    assert " and " in standing(measures, [weak, replace(weak, model="twin")])["title"], "nobody leads"
    falling = replace(measures, finals=(replace(measures.finals[0], higher_is_better=False),))
    assert standing(falling, [weak, strong])["title"].startswith("weak leads")
    assert standing(Measures("own", "Own: words"), [weak])["title"] == "Own"


def test_the_headline_without_refinements_is_of_most_rivals(cells: tuple[LoadedCell, ...]) -> None:
    assert findings(cells, ())["title"].startswith("strong leads")
    others = [baseline(cell) if cell.protocol == "static" else cell for cell in cells]
    told = findings(others, ())
    assert told["facts"][0] == ("1", "cell"), "baselines are no rivals"


def test_a_verifiable_instruction_is_searched_and_filtered_like_any(tmp_path: Path) -> None:
    index = Index()
    sessions = list(talks_of(Talk("m", "dynamic", tasks=2)))
    for session in sessions:
        index.add(0, session)
    for number, session in enumerate(sessions):
        body = body_of(session, index.instructions, None)
        told = list(index.instructions)
        for place, (turn, stored) in enumerate(zip(session.turns, body["turns"], strict=True)):
            own: dict[str, Any] = turn.model_extra or {}
            required = own["requirement"]
            assert (index.asked[number][place] == -1) == (required is None)
            if required is not None:
                assert told[stored["instruction"]] == (required["id"], required["text"], required["strategy"], "")
            assert stored["more"]["checks"] == own["checks"]
            assert stored["more"]["round"] == own["round"]
            assert "requirement" not in stored["more"], "told already"
