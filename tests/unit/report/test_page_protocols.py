"""What the page is given of protocols other than the refinement: standings, figures, and turns with their checks."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.report.build import comparisons_of, headline_of, sections_of
from codechat.report.comparison import Comparison, LoadedCell
from codechat.report.data import Board, Chart, Headline, ReportData, Section
from codechat.report.generic import overview as claims
from codechat.report.loading import load_cells
from codechat.report.metrics import Measures
from codechat.report.metrics.measures import interval_of
from codechat.report.page import Index, body_of, overview
from support.codeif import MEASURES, Talk, talks_of, write_talk


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


def sections(cells: Sequence[LoadedCell]) -> list[Section]:
    return list(sections_of(comparisons_of(cells)))


def standing(measures: Measures, cells: list[LoadedCell]) -> Headline:
    return claims.standing(Comparison(measures, (), tuple(cells)))


def test_a_protocols_cells_bring_its_figures(cells: tuple[LoadedCell, ...]) -> None:
    static, dynamic = sections(cells)
    assert [(each.key, each.link) for each in (static, dynamic)] == [
        ("protocol-static", "Static"),
        ("protocol-dynamic", "Dynamic"),
    ]
    claim, board, passing, charts, *groups = static.parts
    assert [type(part) for part in groups] == [str, Board] and groups[1].sort == MEASURES["static"].finals[0].label
    assert isinstance(claim, str)
    assert claim.startswith("strong leads")
    assert isinstance(passing, str)
    assert MEASURES["static"].passed in passing
    own = [cell for cell in cells if cell.protocol == "static"]
    assert isinstance(board, Board)
    columns = {column.title: column for column in board.columns}
    final = MEASURES["static"].finals[0]
    assert board.sort == final.label
    assert columns["Model"].values == tuple(own)
    assert columns[final.label].values == [
        (cell.metrics["overall"]["ia"], cell.metrics["ci"]["overall"]["ia"]) for cell in own
    ]
    assert "Agenda" not in columns, "an agenda that the protocol does not use is no setting"
    chart = charts[0]
    assert isinstance(chart, Chart)
    assert [chart.title for chart in charts] == [series.label for series in MEASURES["static"].series]
    assert [(line.values, line.ci) for line in chart.lines] == [
        (cell.metrics["ia"], interval_of(cell.metrics, MEASURES["static"].series[0])) for cell in own
    ]


def test_the_page_gets_it_as_json(cells: tuple[LoadedCell, ...]) -> None:
    studies = comparisons_of(cells)
    data = ReportData(cells, (), (), {}, headline_of(studies, ()), sections_of(studies))
    shown = json.loads(json.dumps(overview(data, None)))
    assert shown["findings"]["kicker"] == "CodeIF-Bench, static conversation · CodeIF-Bench, dynamic conversation"
    assert [cell["setting"] for cell in shown["cells"]] == [""] * 3
    board, groups = [part for part in shown["sections"][1]["parts"] if isinstance(part, dict)]
    assert groups["is"] == "Board" and "Strategy" in [column["title"] for column in groups["columns"]]
    assert board["is"] == "Board"
    assert board["columns"][0]["values"] == [place for place, cell in enumerate(cells) if cell.protocol == "dynamic"]


def test_the_standing_names_the_best_by_the_first_figure(cells: tuple[LoadedCell, ...]) -> None:
    measures = MEASURES["static"]
    strong, weak = (cell for cell in cells if cell.protocol == "static")
    told = standing(measures, [weak, strong])
    assert told.title == f"strong leads: Instruction Accuracy {strong.metrics['overall']['ia']:.3f}"
    assert "own instruction" in told.text and "codeif_bench" in told.text
    assert told.text.endswith("Their intervals are apart.")
    assert told.facts == [("2", "cells"), ("16", "sessions; 0 errored")]
    assert standing(measures, [weak, baseline(strong)]).title.startswith("Instruction Accuracy"), "no rival is left"
    assert " and " in standing(measures, [weak, replace(weak, model="twin")]).title, "nobody leads"
    falling = replace(measures, finals=(replace(measures.finals[0], higher_is_better=False),))
    assert standing(falling, [weak, strong]).title.startswith("weak leads")
    assert standing(Measures("own", "Own: words"), [weak]).title == "Own"


def test_the_headline_without_refinements_is_of_most_rivals(cells: tuple[LoadedCell, ...]) -> None:
    assert headline_of(comparisons_of(cells), ()).title.startswith("strong leads")
    others = [baseline(cell) if cell.protocol == "static" else cell for cell in cells]
    told = headline_of(comparisons_of(others), ())
    assert told.facts[0] == ("1", "cell"), "baselines are no rivals"


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
            assert (index.columns([])["asked"][number][place] == -1) == (required is None)
            if required is not None:
                assert told[stored["instruction"]] == (required["id"], required["text"], required["strategy"], "")
            assert stored["more"]["checks"] == own["checks"]
            assert stored["more"]["round"] == own["round"]
            assert "requirement" not in stored["more"], "told already"
